"""What the arena raises.

::

    ArenaError
    ├── SettingsError           the roster, the environment or an option is wrong
    ├── StoreError              the database cannot be used
    │   ├── PoolingError        ... because a pooler gives each transaction another session
    │   ├── SchemaError         ... because its schema is not the one of this version
    │   └── BrokenRecordError   ... because its votes are not as they were recorded
    ├── UnknownPersonError      the arena knows nobody of this name or id
    ├── ProviderError           a provider of OpenID Connect let nobody in
    ├── RoomError               an operator's request cannot be carried out
    ├── EndpointError           a model did not answer (carries a FailureClass)
    └── PlayError               the visitor asked for something that cannot be done
        ├── BadPromptError      empty, too long, or not in the recordings
        ├── UnknownBattleError  no such battle, or another user's
        ├── NotReadyError       not both answers are complete
        ├── AlreadyVotedError   the battle holds another choice
        ├── LimitError          too many battles for now (carries when the next is free)
        ├── BusyError           the visitor holds as much at a time as they may
        ├── FullError           all visitors together do
        ├── UnknownStudyError   no such study, or nothing of it waits for who asks
        ├── RatingRefusedError  a study does not take this rating
        ├── UnknownSourceError  no registered application has this token
        ├── PausedSourceError   the application is paused
        ├── BadComparisonError  what an application sent is no comparison
        ├── SentBeforeError     another comparison was sent under its key
        └── ClosingError        the arena is going down, and takes no new battles

What is wrong with files, votes and verdicts are `rating.errors`, in all three packages.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from arena.domain.vote import Choice, FailureClass, Finished
from rating.sentences import Sentence


class ArenaError(Exception):
    """Base of all errors that the arena raises on purpose; its text is for people."""


class SettingsError(ArenaError):
    """A setting, option or roster entry is wrong: names file, key and value."""


class StoreError(ArenaError):
    """The database cannot be opened, read or written."""


class PoolingError(StoreError):
    """A pooler gives each transaction another session of PostgreSQL."""

    def __init__(self) -> None:
        super().__init__(
            "The database is reached through a pooler that pools transactions, and the arena "
            "needs session pooling: set pool_mode = session (PgBouncer), or connect without it."
        )


class SchemaError(StoreError):
    """The database's schema is not one that this version knows."""


class BrokenRecordError(StoreError):
    """The chain of votes does not hold: names the first break."""


class UnknownPersonError(ArenaError):
    """The arena knows nobody of this name or id, or more than one."""


class ProviderError(ArenaError):
    """A provider of OpenID Connect let nobody in: the text gives the reason, in its words."""


class RoomError(ArenaError):
    """A request of the operator cannot be carried out; the message is a `Sentence`."""


class EndpointError(ArenaError):
    """A model did not answer.

    The text may quote the provider: it is for logs and operators, never for a page.

    Attributes
    ----------
    refuses : tuple of str
        Optional parameters that the endpoint says it does not take.
    counted : Finished or None
        What the endpoint counted of a whole reply that failed: it is paid for all the same.
    """

    def __init__(
        self,
        failure: FailureClass,
        detail: str,
        *,
        retry_after_s: float | None = None,
        refuses: tuple[str, ...] = (),
        counted: Finished | None = None,
    ) -> None:
        super().__init__(f"{failure}: {detail}")
        self.failure = failure
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.refuses = refuses
        self.counted = counted


class PlayError(ArenaError):
    """A visitor asked for something that cannot be done; says so in a `Sentence`."""


class BadPromptError(PlayError):
    """The prompt is empty, too long, or not one that the recordings answer."""


class UnknownBattleError(PlayError):
    """No such battle, or another user's: nobody learns which of the two."""

    def __init__(self) -> None:
        super().__init__(Sentence("There is no such battle, or it belongs to another visitor."))


class NotReadyError(PlayError):
    """The battle does not take a vote now."""


class AlreadyVotedError(PlayError):
    """The battle holds another choice, which stands."""

    def __init__(self, choice: Choice) -> None:
        choice_words = CHOICE_WORDS[choice]
        super().__init__(
            Sentence("You have already voted on this battle: %(choice)s.", choice=choice_words)
        )
        self.choice = choice


class LimitError(PlayError):
    """Too many battles for now.

    Attributes
    ----------
    free_at : datetime.datetime
        When the next one may begin, on a full minute.
    """

    def __init__(self, reached: str, free_at: datetime) -> None:
        begun = free_at.replace(second=0, microsecond=0)
        self.free_at = begun if begun == free_at else begun + timedelta(minutes=1)
        when = f"{self.free_at:%H:%M}"
        super().__init__(
            Sentence("%(reached)s The next is free at %(time)s UTC.", reached=reached, time=when)
        )

    def wait_s(self, now: datetime) -> int:
        """Give the whole seconds until then, one at the least."""
        return max(1, math.ceil((self.free_at - now).total_seconds()))


class BusyError(PlayError):
    """The visitor, or their network, holds as much at a time as they may."""


class FullError(PlayError):
    """All visitors together hold as much at a time as the arena gives."""


class UnknownStudyError(PlayError):
    """No such study, or no such item of the one who asks."""

    def __init__(self) -> None:
        super().__init__(Sentence("There is no such study, or it has no item for you."))


class RatingRefusedError(PlayError):
    """A study does not take this rating; what it has stays as it is."""


class UnknownSourceError(PlayError):
    """No registered application has this token, or it was revoked."""

    def __init__(self) -> None:
        super().__init__(
            Sentence(
                "No source has this token. Send that which arena sources add has printed, in the "
                "header Authorization: Bearer TOKEN."
            )
        )


class PausedSourceError(PlayError):
    """An application is paused: it may send the same again once it is resumed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            Sentence(
                "The application %(name)s is paused here, and nothing was saved. Send the same "
                "again later.",
                name=name,
            )
        )


class BadComparisonError(PlayError):
    """What an application sent is no comparison of two answers."""


class SentBeforeError(PlayError):
    """Another comparison was sent under the same key, and stands."""

    def __init__(self, key: str, others: Sequence[str]) -> None:
        super().__init__(
            Sentence(
                "The key %(key)s was sent before, with other values of: %(names)s. Send what is "
                "new under a key of its own.",
                key=repr(key),
                names=", ".join(others),
            )
        )


class ClosingError(PlayError):
    """The arena is going down: running battles may end, new ones are not begun."""

    def __init__(self) -> None:
        super().__init__(Sentence("The arena is being restarted. Try again in a minute."))


CHOICE_WORDS = {
    Choice.A: Sentence("A was better"),
    Choice.B: Sentence("B was better"),
    Choice.TIE: Sentence("a tie"),
    Choice.BOTH_BAD: Sentence("both were bad"),
    Choice.SKIP: Sentence("you skipped it"),
}
"""A choice in words, as the second half of a sentence."""

ERASED = Sentence("The texts of this battle were deleted. Start a new battle.")
"""Why a battle without words takes neither a vote nor a turn."""

EXPIRED = Sentence(
    "This battle is closed: it was left for too long without a vote. Start a new one."
)
"""Why a battle that nobody voted on in time takes neither a vote nor a turn."""
