"""Users, known by more than a cookie: their roles, and how they came in."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from arena.domain.vote import VoterKind


class Role(StrEnum):
    """Roles; each includes the permissions of those before it."""

    VOTER = "voter"
    RESEARCHER = "researcher"
    ADMIN = "admin"

    def covers(self, needed: "Role") -> bool:
        """Whether it may do what another role may.

        Examples
        --------
        >>> Role.ADMIN.covers(Role.RESEARCHER), Role.VOTER.covers(Role.RESEARCHER)
        (True, False)
        """
        order = list(Role)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True)
class Person:
    """A person who was invited, or who logged in.

    Attributes
    ----------
    id : str
        Their id as a voter: one person is one voter on all their devices.
    name : str
        For themself and for admins; no public page shows it.
    sessions : int
        Number that the cookies of their devices carry; another one signs all of them out.
    blocked : bool
        Whether they are kept out.
    """

    id: str
    name: str
    role: Role
    kind: VoterKind
    sessions: int = 1
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Entrance:
    """Who signs in, according to a proxy or provider that the arena trusts.

    Attributes
    ----------
    issuer : str
        Who says it: `PROXY`, or the address of a provider of OpenID Connect.
    subject : str
        Keyed hash of whom the issuer knows them as.
    role : Role
        The least that the settings give them.
    decides : bool
        Whether the issuer knows every admin, so that who is none there is none here.
    """

    issuer: str
    subject: str
    name: str
    role: Role = Role.VOTER
    decides: bool = False

    def after(self, before: Role) -> Role:
        """Give the role that a person has who signs in with another."""
        is_withdrawn = self.decides and before is Role.ADMIN
        return self.role if is_withdrawn or not before.covers(self.role) else before


INVITES = "invite"
PROXY = "proxy"
"""Issuers beside the addresses of providers: the arena's own links, and the proxy before it."""


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation link.

    Attributes
    ----------
    name : str
        Whom it is for; with several uses each of them has this name and a number.
    person : str or None
        Id of the person whose further device it lets in; None lets in a new user.
    """

    role: Role
    name: str
    uses: int
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """An invitation that still admits a user.

    Attributes
    ----------
    id : int
        Number of the invitation; the link itself is not kept.
    used : int
        How often of ``invitation.uses`` times.
    """

    id: int
    invitation: Invitation
    used: int
    created: datetime
    expires: datetime


@dataclass(frozen=True, slots=True)
class Known:
    """Whom the settings name: an address of mail, or a name as the proxy or provider gives it."""

    admins: frozenset[str] = frozenset()
    researchers: frozenset[str] = frozenset()

    def role(self, name: str) -> Role:
        """Give the least that a person of this name may do."""
        if name.casefold() in self.admins:
            return Role.ADMIN
        return Role.RESEARCHER if name.casefold() in self.researchers else Role.VOTER


@dataclass(frozen=True, slots=True)
class Provider:
    """Where people sign in by OpenID Connect.

    Attributes
    ----------
    issuer : str
        Its address, without a slash at the end.
    name : str
        What the button calls it.
    trusts_mail : bool
        Whether addresses that it does not mark as verified count, as those of Entra ID.
    domains, groups : frozenset of str
        Those whose accounts may enter, in lower case; any where none is named.
    admin_groups : frozenset of str
        Groups whose members are admins, in lower case.
    """

    issuer: str
    client_id: str
    client_secret: str | None = field(repr=False)
    name: str
    trusts_mail: bool = False
    domains: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    admin_groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What was deleted, or would be, with a voter's texts.

    Attributes
    ----------
    texts : int
        Prompts and answers.
    judgements : int
        Questions to judges that quote them, with the replies.
    names : int
        Rows in which the person had a name.
    votes : int
        Votes that were taken out, with what excluded them; the others stay.
    comments : int
        Comments on ratings in studies.
    ratings : int
        Ratings in studies: taken out with the votes, else no longer known as theirs where the
        arena forgets who they are.
    """

    battles: int
    texts: int
    judgements: int
    names: int = 0
    votes: int = 0
    comments: int = 0
    ratings: int = 0


class Perishable(StrEnum):
    """What may be kept for this many days; the values stand in the log of acts."""

    WORDS = "words"
    UNVOTED = "battles without a vote"
