"""A judge's ratings regressed on people's, with errors in both, and the line turned round."""

from dataclasses import dataclass

import numpy as np

from rating.typing import Floats
from rating.uncertainty.student import quantile

LEAST_SHARE = 0.3
"""Share of the spread of people's ratings that is at least taken for more than sampling."""


@dataclass(frozen=True, slots=True)
class Line:
    """``judge = mean_judge + slope (people - mean_people)`` over n models that both rated, nats.

    Attributes
    ----------
    slope, slope_variance : float
        What the judge's ratings move per nat of people's.
    scatter : float
        Residual variance of the judge's ratings, with ``n - 2`` degrees of freedom.
    miss : float
        Variance by which the judge misses models beyond sampling error.
    """

    n: int
    mean_people: float
    mean_judge: float
    slope: float
    slope_variance: float
    scatter: float
    miss: float

    @classmethod
    def of(
        cls, people: Floats, judge: Floats, v_people: Floats, v_judge: Floats, shared: float
    ) -> "Line":
        """Fit the line by moments corrected for the sampling errors of both.

        With sample moments S, mean variances v and the mean covariance of both errors, v_xy::

            den = max(S_yy - v_y, LEAST_SHARE S_yy)     slope = (S_xy - v_xy) / den
            slope_variance = (S_yy scatter + (slope v_y)^2) / den^2 / (n - 1)
            miss = max(0, scatter - v_x - slope^2 v_y + 2 slope v_xy)

        Parameters
        ----------
        people, judge : ndarray of shape (n,), n >= 3
            Ratings y and x.
        v_people, v_judge : ndarray of shape (n,)
            Their variances.
        shared : float
            v_xy: people and the judge saw the same answers.

        References
        ----------
        .. [1] W. A. Fuller, Measurement Error Models, 1987, section 1.2. Where we deviate: the
           corrected variance of people's ratings has a floor.
        """
        n, noise = len(people), float(v_people.mean())
        y, x = people - people.mean(), judge - judge.mean()
        s_yy = float(y @ y) / (n - 1)
        den = max(s_yy - noise, LEAST_SHARE * s_yy)
        slope = (float(x @ y) / (n - 1) - shared) / den
        scatter = float(((x - slope * y) ** 2).sum()) / (n - 2)
        sampled = float(v_judge.mean()) + slope**2 * noise - 2 * slope * shared
        slope_variance = (s_yy * scatter + (slope * noise) ** 2) / den**2 / (n - 1)
        means = float(people.mean()), float(judge.mean())
        return cls(n, *means, slope, slope_variance, scatter, max(0.0, scatter - sampled))

    def people(self, judge: float) -> float:
        """Return people's rating at a judge's: the line turned round."""
        return self.mean_people + (judge - self.mean_judge) / self.slope

    def interval(self, judge: float, variance: float, level: float) -> tuple[float, float] | None:
        """Return Fieller's interval for people's rating of a new model.

        With ``d = judge - mean_judge``, ``V = miss + variance + scatter / n`` and Student's t of
        ``n - 2`` degrees of freedom, the ends are::

            mean_people + (slope d -+ t sqrt(d^2 slope_variance + V A)) / A
            A = slope^2 - t^2 slope_variance

        None where ``A <= 0`` or ``slope <= 0``: the slope is not shown to be above zero.

        Parameters
        ----------
        variance : float
            Sampling variance of the judge's rating of it.

        References
        ----------
        .. [1] E. C. Fieller, "Some problems in interval estimation", Journal of the Royal
           Statistical Society B 16(2), 1954, pp. 175-185.

        Examples
        --------
        >>> line = Line(20, 0.0, 0.0, 0.5, 0.0, 0.0, 0.01)
        >>> [round(end, 3) for end in line.interval(0.5, 0.0, 0.95)]
        [0.58, 1.42]
        """
        t = quantile(level, self.n - 2)
        a = self.slope**2 - t**2 * self.slope_variance
        if a <= 0 or self.slope <= 0:
            return None
        d = judge - self.mean_judge
        around = self.miss + variance + self.scatter / self.n
        half = t * float(np.sqrt(d**2 * self.slope_variance + around * a))
        middle = self.slope * d
        return self.mean_people + (middle - half) / a, self.mean_people + (middle + half) / a
