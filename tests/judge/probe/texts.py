"""Texts made up of a few hundred words, and arenas, for probes that need many."""

import numpy as np

from judge.case import Case, Message
from judge.probe.people import Alignment, RatedTexts, World
from judge.probe.prompts import Clustering, Retrieval
from judge.probe.robustness import Robustness, Sensitivity
from judge.probe.similarity import Plan, random_measure
from rating.rows import VoteRows

SYLLABLES = ["ka", "lo", "mi", "ta", "ren", "dos", "vel", "bri", "nas", "tor", "ume", "pol"]
LEXICON = [f"{a}{b}" for a in SYLLABLES for b in SYLLABLES]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def fixed_rng() -> np.random.Generator:
    return rng(1)


def sentence(rng: np.random.Generator, words: list[str], n: int = 9) -> str:
    """Words with a verb among them and a number, ending with a full stop."""
    drawn = [str(word) for word in rng.choice(words, size=n)]
    drawn.insert(3, "is")
    drawn.insert(6, str(rng.integers(100, 999)))
    return " ".join(drawn).capitalize() + "."


def texts(n: int, *, seed: int = 0, sentences: int = 4) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(sentence(rng, LEXICON) for _ in range(sentences)) for _ in range(n)]


def rated(n_prompts: int = 30, *, seed: int = 1) -> RatedTexts:
    """Three summaries a prompt, of more or fewer of the words of its text."""
    rng = np.random.default_rng(seed)
    references = texts(n_prompts, seed=seed)
    rows = [(i, share) for i in range(n_prompts) for share in (0.9, 0.5, 0.2)]
    pieces = [references[i].split()[: round(45 * share)] for i, share in rows]
    summaries = [" ".join(rng.permutation(words)) for words in pieces]
    return RatedTexts(
        "summaries",
        tuple(references[i] for i, _ in rows),
        tuple(summaries),
        np.array([i for i, _ in rows]),
        ("relevance",),
        np.array([[share] for _, share in rows]) + rng.normal(0, 0.2, (len(rows), 1)),
    )


def pairs(n: int = 60, *, seed: int = 2) -> list[Case]:
    """Pairs of responses of some sentences each, every one to another prompt."""
    both = texts(2 * n, seed=seed)
    prompts = texts(n, seed=seed + 1, sentences=1)
    return [
        Case((Message("user", prompt),), a, b)
        for prompt, a, b in zip(prompts, both[:n], both[n:], strict=True)
    ]


def topics(n: int = 60, *, seed: int = 3) -> tuple[list[str], list[str]]:
    """Texts of six topics, each with its own words and some of all; in the order of topics."""
    rng = np.random.default_rng(seed)
    of = [i * 6 // n for i in range(n)]
    own = [LEXICON[20 * topic : 20 * topic + 20] for topic in of]
    return [sentence(rng, words * 20 + LEXICON) for words in own], [f"topic {i}" for i in of]


def rounds_at_nothing(plan: Plan, n: int) -> int:
    """How often the interval of what draws lots holds 0."""
    estimates = [
        plan.read(plan.ask(random_measure(seed)), rng=np.random.default_rng(seed)).estimate
        for seed in range(n)
    ]
    return sum(
        one.lower is not None and one.upper is not None and one.lower <= 0 <= one.upper
        for one in estimates
    )


def plans(seed: int = 4) -> list[Plan]:
    """Small plans for all five axes."""
    grouped, labels = topics()
    documents = texts(80, seed=seed)
    questions = [" ".join(text.split()[3:9]) for text in documents[:30]]
    relevant = {(i, i): 1.0 for i in range(30)}
    many = texts(60, seed=seed + 1)
    return [
        Alignment((rated(),), "made up"),
        Robustness.plan(many, "made up", rng=np.random.default_rng(seed)),
        Sensitivity.plan(many, "made up", rng=np.random.default_rng(seed)),
        Clustering.plan(grouped, labels, "made up"),
        Retrieval.plan(questions, documents, relevant, "made up", rng=np.random.default_rng(seed)),
    ]


def world(
    rng: np.random.Generator,
    *,
    n_models: int = 10,
    n_voters: int = 200,
    taste: float = 0.4,
    tie_rate: float = 0.1,
    spread: float = 0.8,
) -> World:
    """Make an arena whose voters differ much in how often they vote.

    Votes per voter are lognormal (log-mean 1.7, log-sd 1.4, rounded up), pairs uniform, and
    strengths spaced evenly from ``-spread`` to ``spread``.
    """
    n_votes = np.ceil(rng.lognormal(1.7, 1.4, n_voters)).astype(np.int64)
    voter = rng.permutation(np.repeat(np.arange(n_voters), n_votes))
    a = rng.integers(n_models, size=len(voter))
    b = (a + rng.integers(1, n_models, size=len(voter))) % n_models
    names = tuple(f"m{i:0{len(str(n_models - 1))}}" for i in range(n_models))
    strengths = np.linspace(-spread, spread, n_models)
    battles = VoteRows.scored(names, a, b, np.full(len(a), 0.5), voter)
    return World(battles, strengths, taste, tie_rate)
