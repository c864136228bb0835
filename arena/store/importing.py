"""A record that comes in again: links of an export, in a database in which nobody has played.

What is not in an export is not made up: a battle of which the vote alone came is hidden, for it
has no words, and the transcripts that votes bind stay as they were recorded, for verification.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlmodel import Session, col

from arena.domain.battle import BattleState
from arena.domain.model import Kind
from arena.domain.vote import Choice
from arena.errors import BrokenRecordError
from arena.store import backup, remarks
from arena.store.engine import migrate, opened, shown
from arena.store.tables import (
    AnswerRow,
    BattleRow,
    ChainRow,
    ExclusionRow,
    LinkRow,
    MarkRow,
    ModelRow,
    PromptLabelRow,
    TurnRow,
    VoteRemarkRow,
    VoteRow,
    VoterRow,
)
from judge.labels.refusals import REFUSAL
from rating.errors import DataError

BATCH = 1000
"""Links that are written at a time."""
FACETS = ("category", "language", "intent", "turns", "chars", "hard", "instructions")
_REFUSALS = {(1, 1): "both", (1, 0): "a", (0, 1): "b", (0, 0): "none"}
_OF_BATTLE = (
    *("mode", "model_a", "model_b", "sampler", "sampler_version", "pair_probability", "repicks"),
    *("prompt_set", "prompt_id", "pacing"),
)
"""What a vote binds of its battle, by names that both have."""
_UNKNOWN = {"side_seed": 0, "system_prompt_hash_a": "", "system_prompt_hash_b": ""}
NO_NONCE = ""
"""Of a text that came by an import: its vote binds what was recorded, not this."""
_PLACES = Table(
    "numbered",
    MetaData(),
    Column("public_id", String, primary_key=True),
    Column("id", Integer, nullable=False),
    prefixes=["TEMPORARY"],
)
"""Battles by the order in which they are exported."""
_SHOW = (
    update(BattleRow)
    .where(col(BattleRow.public_id) == bindparam("name"))
    .values(hidden=None, created=bindparam("since"), erased=bindparam("gone"))
)
_COMMENT = (
    update(VoteRemarkRow)
    .where(
        col(VoteRemarkRow.vote_id)
        == select(col(VoteRow.id))
        .where(col(VoteRow.battle_id) == bindparam("battle"))
        .scalar_subquery()
    )
    .values(comment=bindparam("text"))
)
_OF_THESE: Any = bindparam("battles", expanding=True)
_LAST = (
    select(
        col(AnswerRow.battle_id),
        func.coalesce(func.max(col(VoteRow.turn)), func.max(col(AnswerRow.turn))),
    )
    .join(VoteRow, col(VoteRow.battle_id) == col(AnswerRow.battle_id), isouter=True)
    .where(col(AnswerRow.battle_id).in_(_OF_THESE))
    .group_by(col(AnswerRow.battle_id))
)
"""The turn that was voted on, or else the last one."""
_TURN = postgresql.insert(TurnRow)
_KEEP_TURN = _TURN.on_conflict_do_update(
    index_elements=["battle_id", "turn"],
    set_={name: _TURN.excluded[name] for name in ("prompt", "nonce", "created")},
)
_FIRST_TURN = (
    select(func.min(col(TurnRow.id)))
    .where(col(TurnRow.battle_id) == bindparam("battle"))
    .scalar_subquery()
)
_SCRUB = update(TurnRow).where(col(TurnRow.id) == _FIRST_TURN).values(scrubbed=bindparam("pieces"))
_KEEP_VOTER = postgresql.insert(VoterRow).on_conflict_do_nothing()
"""SQLite writes it in the same words."""

Row = Mapping[str, Any]


@contextmanager
def incoming(url: str, now: datetime) -> Iterator["Incoming"]:
    """Open a database in which nobody has played; what is written is there as a whole, or not.

    Raises
    ------
    StoreError
        If the database is in use, or cannot be written.
    """
    with opened(url) as target, backup.files_named(f"import into {shown(target)}"):
        migrate(target)
        with target.begin() as connection:
            backup.empty(connection, "Import")
            yield Incoming(connection, now)
            backup.number_on(connection)


class Incoming:
    """Links that are written in their order, some at a time, in one transaction.

    Parameters
    ----------
    now : datetime
        When what has no time of its own came in.
    """

    def __init__(self, connection: Connection, now: datetime) -> None:
        self._connection = connection
        self._now = now
        self._head = ""
        self._links = 0
        self._votes: list[dict[str, Any]] = []
        self._exclusions: list[dict[str, Any]] = []
        self._others: list[dict[str, Any]] = []
        self._known_models: set[str] = set()
        self._prints: dict[str, str] = {}
        self._ids: Counter[type] = Counter()
        self._numbered = False

    def model(self, row: Row) -> None:
        """Take a model, by the names of an export's columns; before the votes on it."""
        created = row["created"].replace(tzinfo=UTC)
        whole = {name: value for name, value in row.items() if name != "model"}
        self._connection.execute(
            insert(ModelRow), {**whole, "id": row["model"], "created": created}
        )
        self._known_models.add(row["model"])

    def number(self, battles: Sequence[str]) -> str | None:
        """Take the ids of battles in their order, before the votes; gives one that is doubled."""
        if not self._numbered:
            _PLACES.create(self._connection)
            self._numbered = True
        there = Counter(battles) + Counter(self.numbered(battles).keys())
        if twice := next((name for name in battles if there[name] > 1), None):
            return twice
        ids = self._new_ids(BattleRow, len(battles))
        rows = [{"public_id": name, "id": key} for name, key in zip(battles, ids, strict=True)]
        self._connection.execute(insert(_PLACES), rows)
        return None

    def numbered(self, battles: Collection[str]) -> dict[str, int]:
        """Give the numbers of those battles that have one."""
        if not self._numbered:
            return {}
        query = select(_PLACES.c.public_id, _PLACES.c.id)
        rows = self._connection.execute(query.where(_PLACES.c.public_id.in_(battles)))
        return dict(rows.all())

    def battles(self, rows: Sequence[Row]) -> str | None:
        """Take numbered battles whole, once the votes are there; gives one that does not fit.

        A battle fits if it has a vote where the record has one.
        """
        voted = {row["battle_id"] for row in rows if row["winner"] is not None}
        names: list[str] = [row["battle_id"] for row in rows]
        query = select(col(BattleRow.public_id)).where(col(BattleRow.public_id).in_(names))
        there = set(self._connection.scalars(query))
        if odd := next((name for name in names if (name in voted) != (name in there)), None):
            return odd
        shown = [
            {
                "name": row["battle_id"],
                "since": row["created"].replace(tzinfo=UTC),
                "gone": self._now if row["erased"] else None,
            }
            for row in rows
        ]
        keys = self.numbered(names)
        new = [row for row in rows if row["battle_id"] not in there]
        if new:
            self._write_models_named({row[f"model_{side}"] for row in new for side in "ab"})
            owners = self._owners(new)
            self._connection.execute(
                insert(BattleRow), [_unvoted(row, keys, owners) for row in new]
            )
        self._connection.execute(_SHOW, shown)
        comments = [
            {"battle": keys[row["battle_id"]], "text": row["comment"]}
            for row in rows
            if row["comment"]
        ]
        if comments:
            self._connection.execute(_COMMENT, comments)
        return None

    def answers(self, rows: Sequence[Row]) -> str | None:
        """Take answers of numbered battles; gives one whose battle is not there."""
        names: set[str] = {row["battle_id"] for row in rows}
        keys = self.numbered(names)
        if lacking := names - keys.keys():
            return min(lacking)
        self._write_models_named({row["model"] for row in rows})
        self._connection.execute(insert(AnswerRow), [_answer(row, keys) for row in rows])
        return None

    def turns(self, rows: Sequence[tuple[Row, Sequence[str | None]]]) -> None:
        """Take what was asked in battles up to the vote, once the answers are there."""
        keys = self.numbered([row["battle_id"] for row, _ in rows])
        last = dict(self._connection.execute(_LAST, {"battles": [*keys.values()]}).all())
        turns = [
            {
                "battle_id": keys[row["battle_id"]],
                "turn": last.get(keys[row["battle_id"]], len(asked)) - len(asked) + place,
                "prompt": prompt or "",
                "nonce": None if prompt is None else NO_NONCE,
                "created": row["created"].replace(tzinfo=UTC),
            }
            for row, asked in rows
            for place, prompt in enumerate(asked, 1)
        ]
        ids = self._new_ids(TurnRow, len(turns))
        if turns:
            numbered = [{"id": key, **turn} for key, turn in zip(ids, turns, strict=True)]
            self._connection.execute(_KEEP_TURN, numbered)

    def scrubbed(self, pieces: Mapping[str, int]) -> None:
        """Take how many personal pieces are gone from the prompts of battles, by their ids."""
        if pieces:
            keys = self.numbered(pieces)
            rows = [{"battle": keys[name], "pieces": n} for name, n in pieces.items()]
            self._connection.execute(_SCRUB, rows)

    def session(self) -> Session:
        """Give a session that reads what was written."""
        return Session(self._connection)

    def vote(self, row: Row) -> None:
        """Take a vote with all that it binds, by the names of an export's columns."""
        self._votes.append({**row, **self._link(row)})

    def exclusion(self, row: Row, bound: Row) -> None:
        """Take an exclusion; ``bound`` is what it binds."""
        if not bound["vote"] < row["link"]:
            raise _no_vote(row["link"], bound["vote"])
        self._exclusions.append({"bound": dict(bound), **self._link(row)})

    def other(self, row: Row, reason: str, bound: Row | None) -> None:
        """Take a link that is no row of another table: hashes alone, or a tombstone."""
        self._others.append(
            {
                "kind": row["link_kind"],
                "reason": reason,
                "bound": None if bound is None else dict(bound),
                **self._link(row),
            }
        )

    def mark(self, row: Row) -> None:
        """Take the mark."""
        self._connection.execute(insert(MarkRow), {**self._link(row), "created": self._now})

    def flush(self) -> None:
        """Write what waits, if it is enough for a statement."""
        if len(self._votes) + len(self._exclusions) + len(self._others) >= BATCH:
            self._write()

    def end(self) -> None:
        """Write what still waits, and the end of the chain."""
        self._write()
        for model, fingerprint in self._prints.items():
            query = update(ModelRow).where(col(ModelRow.id) == model)
            self._connection.execute(query, {"fingerprint": fingerprint})
        end = {"id": 1, "head": self._head, "links": self._links, "imported": self._links}
        self._connection.execute(insert(ChainRow), end)

    def _link(self, row: Row) -> dict[str, Any]:
        columns = {name: row[name] for name in ("link", "content", "hash")}
        columns["previous_hash"] = self._head
        self._head, self._links = row["hash"], row["link"]
        return columns

    def _write(self) -> None:
        if self._votes:
            self._write_votes(self._votes)
        if self._others:
            self._connection.execute(insert(LinkRow), self._others)
        if self._exclusions:
            self._write_exclusions(self._exclusions)
        self._votes, self._others, self._exclusions = [], [], []

    def _write_votes(self, votes: Sequence[dict[str, Any]]) -> None:
        for vote in votes:
            vote["ts"] = vote["ts"].replace(tzinfo=UTC)
        self._write_models(votes)
        self._write_voters(votes)
        battles = self._write_battles(votes)
        turns = dict(zip(battles, self._new_ids(TurnRow, len(votes)), strict=True))
        rows: list[dict[str, Any]] = [
            {
                "id": turns[vote["battle_id"]],
                "battle_id": battles[vote["battle_id"]],
                "turn": vote["turn"],
                "prompt": "",
                "nonce": None,
                "created": vote["ts"],
            }
            for vote in votes
        ]
        self._connection.execute(insert(TurnRow), rows)
        ids = self._new_ids(VoteRow, len(votes))
        rows = [
            self._vote(vote, key, battles[vote["battle_id"]])
            for vote, key in zip(votes, ids, strict=True)
        ]
        self._connection.execute(insert(VoteRow), rows)
        labels = [one for vote in votes for one in self._labels(vote, turns[vote["battle_id"]])]
        if labels:
            self._connection.execute(insert(PromptLabelRow), labels)
        beside = [
            remarks.imported(vote, key)
            for vote, key in zip(votes, ids, strict=True)
            if vote["remarked"] is not None
        ]
        if beside:
            self._connection.execute(insert(VoteRemarkRow), beside)

    def _vote(self, vote: Row, key: int, battle: int) -> dict[str, Any]:
        names = (
            *("turn", "attempt_a", "attempt_b", "order_shown", "seconds_to_vote"),
            *("fingerprint_a", "fingerprint_b", "transcript_hash"),
            *("link", "content", "previous_hash", "hash"),
        )
        return {name: vote[name] for name in names} | {
            "id": key,
            "battle_id": battle,
            "voter_id": vote["voter"],
            "outcome": vote["winner"],
            "key": "",
            "created": vote["ts"],
            "tags_a": {},
            "tags_b": {},
            "comment_a": "",
            "comment_b": "",
        }

    def _write_models(self, votes: Sequence[Row]) -> None:
        new: dict[str, dict[str, Any]] = {}
        for vote in votes:
            for side in "ab":
                model, fingerprint = vote[f"model_{side}"], vote[f"fingerprint_{side}"]
                if model not in self._known_models:
                    new[model] = _model(model, fingerprint, vote["ts"])
                if model in self._prints or model in new:
                    self._prints[model] = fingerprint
        self._known_models |= new.keys()
        if new:
            self._connection.execute(insert(ModelRow), list(new.values()))

    def _write_voters(self, votes: Sequence[Row]) -> None:
        """Write who voted; raises `DataError` of one who is of two kinds, or two persons."""
        owners = {vote["voter"]: vote for vote in reversed(votes)}
        rows = [
            {
                "id": voter,
                "kind": vote["voter_kind"],
                "person": None if vote["person"] == voter else vote["person"],
                "created": vote["ts"],
            }
            for voter, vote in owners.items()
        ]
        self._connection.execute(_KEEP_VOTER, rows)
        query = select(col(VoterRow.id), col(VoterRow.kind), col(VoterRow.person))
        query = query.where(col(VoterRow.id).in_(owners))
        known = {
            key: (kind, person or key) for key, kind, person in self._connection.execute(query)
        }
        for vote in votes:
            kind, person = known[vote["voter"]]
            for name, value in (("voter_kind", kind), ("person", person)):
                if vote[name] != value:
                    msg = (
                        f"The row of link {vote['link']} has {name} {vote[name]!r}, and another "
                        f"of voter {vote['voter']!r} has {value!r}."
                    )
                    raise DataError(msg)

    def _write_battles(self, votes: Sequence[Row]) -> dict[str, int]:
        """Write the battles of votes, hidden; gives their keys, in the order of the votes."""
        names = [vote["battle_id"] for vote in votes]
        query = select(col(BattleRow.public_id)).where(col(BattleRow.public_id).in_(names))
        there = Counter(names) + Counter(self._connection.scalars(query))
        if twice := next((name for name in names if there[name] > 1), None):
            msg = f"The battle {twice!r} is voted on twice."
            raise BrokenRecordError(msg)
        keys = self.numbered(names)
        new = [name for name in names if name not in keys]
        keys |= dict(zip(new, self._new_ids(BattleRow, len(new)), strict=True))
        rows = [
            {
                **{name: vote[name] for name in _OF_BATTLE},
                **_UNKNOWN,
                "id": keys[vote["battle_id"]],
                "public_id": vote["battle_id"],
                "owner": vote["voter"],
                "state": _state(vote["winner"]),
                "app_version": "",
                "created": vote["ts"],
                "hidden": vote["ts"],
            }
            for vote in votes
        ]
        self._connection.execute(insert(BattleRow), rows)
        return {name: keys[name] for name in names}

    def _write_models_named(self, names: Collection[str]) -> None:
        """Write models of which no more is known than that they answered."""
        new = sorted(set(names) - self._known_models)
        self._known_models.update(new)
        if new:
            rows = [_model(name, "", self._now) for name in new]
            self._connection.execute(insert(ModelRow), rows)

    def _owners(self, rows: Sequence[Row]) -> dict[tuple[str, str], str]:
        """Write who asked; gives an id of each, by person and kind.

        A person of another kind asked on a device of which the file says no more.
        """
        pairs = {(row["voter"], row["voter_kind"]): row for row in rows}
        ids = {voter for voter, _ in pairs}
        query = select(col(VoterRow.id), col(VoterRow.kind)).where(col(VoterRow.id).in_(ids))
        kinds = dict(self._connection.execute(query).all())
        owners, new = {}, []
        for (voter, kind), row in pairs.items():
            known = kinds.setdefault(voter, kind)
            is_own = known == kind
            owners[voter, kind] = voter if is_own else f"{voter}-{kind}"
            new.append(
                {
                    "id": owners[voter, kind],
                    "kind": kind,
                    "person": None if is_own else voter,
                    "created": row["created"].replace(tzinfo=UTC),
                }
            )
        self._connection.execute(_KEEP_VOTER, new)
        return owners

    def _labels(self, vote: Row, turn: int) -> Iterator[dict[str, Any]]:
        values = {facet: vote[facet] for facet in FACETS if vote[facet] is not None}
        if vote["refused_a"] is not None:
            values[REFUSAL] = _REFUSALS[vote["refused_a"], vote["refused_b"]]
        for facet, value in values.items():
            name, _, version = vote["tagger"].rpartition(" ")
            yield {
                "turn_id": turn,
                "facet": facet,
                "value": str(value),
                "score": None,
                "tagger": name,
                "tagger_version": version,
                "created": self._now,
            }

    def _write_exclusions(self, exclusions: Sequence[dict[str, Any]]) -> None:
        """Write exclusions beside their votes; those of withheld votes as they are."""
        targets = {one["bound"]["vote"] for one in exclusions}
        query = select(col(VoteRow.link), col(VoteRow.id)).where(col(VoteRow.link).in_(targets))
        keys = dict(self._connection.execute(query).all())
        withheld = select(col(LinkRow.link)).where(
            col(LinkRow.link).in_(targets - keys.keys()), col(LinkRow.kind) == "vote"
        )
        alone = set(self._connection.scalars(withheld))
        ours, others = [], []
        for one in exclusions:
            bound = one.pop("bound")
            if bound["vote"] in keys:
                moment = datetime.fromisoformat(bound["ts"])
                of_vote = {"vote_id": keys[bound["vote"]], "created": moment}
                ours.append({**one, **of_vote, **{n: bound[n] for n in _OF_EXCLUSION}})
            elif bound["vote"] in alone:
                others.append({**one, "kind": "exclusion", "reason": "", "bound": bound})
            else:
                raise _no_vote(one["link"], bound["vote"])
        for table, rows in ((ExclusionRow, ours), (LinkRow, others)):
            if rows:
                self._connection.execute(insert(table), rows)

    def _new_ids(self, table: type, n: int) -> range:
        first = self._ids[table] + 1
        self._ids[table] += n
        return range(first, first + n)


_OF_EXCLUSION = ("policy", "rule", "version", "reason")


def _unvoted(
    row: Row, keys: Mapping[str, int], owners: Mapping[tuple[str, str], str]
) -> dict[str, Any]:
    return {
        **{name: row[name] for name in _OF_BATTLE},
        **_UNKNOWN,
        "id": keys[row["battle_id"]],
        "public_id": row["battle_id"],
        "owner": owners[row["voter"], row["voter_kind"]],
        "state": row["state"],
        "app_version": "",
        "created": row["created"].replace(tzinfo=UTC),
    }


def _answer(row: Row, keys: Mapping[str, int]) -> dict[str, Any]:
    names = (
        *("turn", "side", "attempt", "status", "error_class", "finish_reason", "first_token_s"),
        *("duration_s", "tokens_in", "tokens_out", "price_input", "price_output", "cost"),
        "measured",
    )
    return {name: row[name] for name in names} | {
        "battle_id": keys[row["battle_id"]],
        "model_id": row["model"],
        "text": row["text"] or "",
        "nonce": None if row["text"] is None else NO_NONCE,
        "reasoning": "",
        "decoding": {},
        "created": row["created"].replace(tzinfo=UTC),
    }


def _no_vote(link: int, vote: int) -> DataError:
    return DataError(f"Link {link} excludes the vote at link {vote!r}, and there is none.")


def _state(winner: str) -> BattleState:
    return BattleState.SKIPPED if winner == Choice.SKIP else BattleState.VOTED


def _model(model: str, fingerprint: str, created: datetime) -> dict[str, Any]:
    """Give a model of which an export of votes says no more than this."""
    return {
        "id": model,
        "name": model,
        "organisation": "",
        "kind": Kind.MODEL,
        "licence": "",
        "fingerprint": fingerprint,
        "created": created,
    }
