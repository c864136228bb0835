"""Votes of Parquet files apart by voter, in a work folder: for boards larger than memory.

The files are read once. Each vote becomes twelve bytes, a 64-bit hash of its voter and the codes
of its models and label, in the file of one of some parts; all votes of a voter are in one part.
What the parts add to a board is kept beside them, so that a run that was killed goes on.
"""

import fcntl
import hashlib
import itertools
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rating import __version__
from rating.comparisons import Comparisons, Sums
from rating.counting import narrowest
from rating.errors import DataError, RatingError
from rating.options import RateOptions
from rating.outcome import OUTCOMES, Outcome
from rating.tables import peers
from rating.tables.coding import Coded, Table, first_blank, key_of, n_repeated
from rating.tables.columns import REQUIRED, Reading
from rating.tables.duckdb_engine import connected, require_held, rows_in_parquet, rows_of
from rating.tables.files import Files, all_quoted, expanded, kind_of, quoted
from rating.tables.sources import LONGEST, label_column
from rating.tables.vote_filter import LABELS, MOST_MODELS, refuse_many
from rating.typing import Bools, Integers

Progress = Callable[[int, int], None]

IN_A_PART = 2_000_000
MOST_PARTS = 512
"""Files open at once; a process may have a thousand."""
AT_ONCE = 1 << 17
"""Rows that are coded at a time: their arrays stay in the processor's cache."""
IN_A_BLOCK = 1 << 20
"""Votes that are parted and written at a time."""
BLOCKS_AT_ONCE = 256
BYTES_A_VOTE = 13
LONG_NAME = 256
"""Bytes of a voter's name from which it is hashed by itself."""

MODEL_BITS, LABEL_BITS = 11, 6
ROLES = REQUIRED
_MASK = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


@dataclass(frozen=True, slots=True)
class Source:
    """Parquet files of which nothing is read but models, winners and voters.

    Attributes
    ----------
    columns : mapping of str to str
        The column of each role.
    labels : mapping of str to str
        Values of theirs in the column of the winner, and ours.
    """

    paths: tuple[Path, ...]
    columns: Mapping[str, str]
    labels: Mapping[str, str]
    rows: int

    @classmethod
    def of(cls, source: object, options: RateOptions) -> "Source | None":
        """Take Parquet files that are rated by voter alone, as they are; None of anything else."""
        files = Files.of(source)
        alone = options.interval == "sandwich" and options.cluster in (None, "voter")
        alone = alone and options.claims == "population" and options.by is None
        if files is None or files.where is not None or options.weighted or not alone:
            return None
        paths = expanded(files.paths)
        if options.style or kind_of(paths[0]) != "Parquet":
            return None
        schema = pq.read_schema(paths[0])
        named = dict(files.columns)
        there = [*schema.names, *(ours for ours in named if ours not in schema.names)]
        reading = Reading.of(options)
        if reading.needs_time or peers.recognised(schema.names) is not None:
            return None
        texts, numbers = reading.roles(there, by=False)
        columns = {role: named.get(name, name) for role, name in texts.items()}
        if numbers or {*texts} != {*ROLES, "voter"} or not _readable(schema, columns):
            return None
        if files.labels and label_column(files, there) != columns["winner"]:
            return None
        with connected() as connection:
            whole = rows_of(connection, paths)
            rows = whole.project(all_quoted(dict.fromkeys(columns.values())))
            require_held(rows, paths)
            repeated = n_repeated(whole, key_of(there, files.where)) if not named else 0
            a, b, winner = (rows.project(quoted(columns[role])).distinct() for role in ROLES)
            labels = dict(files.labels)
            unknown = {labels.get(name, name) for (name,) in winner.fetchall()} - {*LABELS, None}
            by_name = bool(unknown) and not unknown.isdisjoint(
                name for (name,) in a.union(b).fetchall()
            )
        if repeated or by_name or "" in labels:  # what a row means depends on other columns
            return None
        return cls(tuple(paths), columns, dict(files.labels), rows_in_parquet(paths))

    def key(self, options: RateOptions) -> str:
        """Name what is rated and how: files by size and time, how they are read, all options."""
        files = [(os.path.realpath(p), p.stat().st_size, p.stat().st_mtime_ns) for p in self.paths]
        read = [self.columns, self.labels]
        identity = [__version__, files, read, asdict(options), IN_A_PART]
        return hashlib.sha256(json.dumps(identity, default=str).encode()).hexdigest()

    def first(self, role: str) -> int | None:
        """Return the number of the first row that has none or a blank in a role."""
        with connected() as connection:
            return first_blank(rows_of(connection, self.paths), self.columns[role])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the columns, some rows at a time; models and labels as dictionaries."""
        names = [self.columns[role] for role in ROLES]
        for path in self.paths:
            # To read ahead would keep the whole file in memory.
            how = {"read_dictionary": names, "pre_buffer": False, "buffer_size": 1 << 20}
            try:
                with pq.ParquetFile(path, **how) as file:
                    yield from file.iter_batches(AT_ONCE, columns=[*self.columns.values()])
            except (pa.ArrowException, OSError) as error:
                reason = str(error).splitlines()[0][:LONGEST]
                raise DataError(f"Cannot read the votes of {str(path)!r}: {reason}") from error


def _readable(schema: pa.Schema, columns: Mapping[str, str]) -> bool:
    def holds_text(kind: pa.DataType) -> bool:
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))

    kinds = {role: schema.field(name).type for role, name in columns.items()}
    voter = kinds.pop("voter")
    texts = all(map(holds_text, kinds.values()))
    return texts and bool(holds_text(voter) or pa.types.is_integer(voter))


@dataclass(slots=True)
class _Counts:
    """Votes by both models, label, and whether the voter is missing, as they are read."""

    names: dict[str, dict[str, int]] = field(default_factory=lambda: {r: {} for r in ROLES})
    table: NDArray[np.int64] = field(default_factory=lambda: np.zeros((1, 1, 1, 2), np.int64))

    def coded(self, role: str, column: Any) -> NDArray[np.uint32]:
        """Return codes of the names of a batch, from 1 as they are met; 0 is a missing one."""
        if not isinstance(column, pa.DictionaryArray):
            column = column.dictionary_encode()
        known = self.names[role]
        place = [
            0 if name is None else known.setdefault(name, len(known) + 1)
            for name in column.dictionary.to_pylist()
        ]
        if len(known) >= 1 << (LABEL_BITS if role == "winner" else MODEL_BITS):
            if role != "winner":
                refuse_many([*known][: MOST_MODELS + 1])
            some = ", ".join(map(repr, [*known][:5]))
            raise DataError(f"The winner has over {1 << LABEL_BITS} labels, {some} among them.")
        codes: Integers = column.indices.fill_null(len(place)).to_numpy(zero_copy_only=False)
        return np.array([*place, 0], dtype=np.uint32)[codes]

    def add(self, codes: Sequence[NDArray[np.uint32]], missing: Bools) -> None:
        """Count the votes of a batch."""
        shape = (*(len(self.names[role]) + 1 for role in ROLES), 2)
        grown = [(0, new - old) for new, old in zip(shape, self.table.shape, strict=True)]
        self.table = np.pad(self.table, grown)
        at = np.ravel_multi_index((*codes, missing.astype(np.uint32)), shape)
        self.table += np.bincount(at, minlength=self.table.size).reshape(shape)

    def as_table(self, source: Source) -> Table:
        """Return the counts as a table, in which one name stands for every voter."""
        at = np.nonzero(self.table)
        texts = {
            role: Coded(
                tuple(source.labels.get(n, n) if role == "winner" else n for n in names), c
            )
            for (role, names), c in zip(self.names.items(), (c - 1 for c in at), strict=False)
        }
        texts["voter"] = Coded(("somebody",), -at[3])
        return Table(texts, {}, self.table[at], source.first)


def hashed(column: Any, seed: int) -> tuple[NDArray[np.uint64], Bools]:
    """Hash the voters of a batch, and say of which votes the voter is missing or blank.

    Eight bytes at a time, mixed as the end of MurmurHash3. Two of n voters share a hash with a
    probability of about ``n^2 / 2^65``: 7e-5 for fifty million.
    """
    if isinstance(column, pa.DictionaryArray):
        words, missing = hashed(column.dictionary, seed)
        at = column.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
        return np.append(words, np.uint64(0))[at], np.append(missing, True)[at]
    if pa.types.is_integer(column.type):
        words = column.fill_null(0).cast(pa.int64(), safe=False).to_numpy().view(np.uint64)
        return _mixed(_mixed(words ^ np.uint64(seed))), np.asarray(column.is_null())
    column = column.cast(pa.large_string())
    _, ends, raw = column.buffers()
    at = np.frombuffer(ends, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    text = np.append(np.frombuffer(raw or b"", dtype=np.uint8), np.zeros(8, dtype=np.uint8))
    lengths = np.diff(at)
    words = np.ndarray(len(text) - 7, dtype="<u8", buffer=text, strides=(1,))
    state = _mixed(np.uint64(seed) ^ (lengths.astype(np.uint64) * _SPREAD))
    left = np.flatnonzero((lengths > 0) & (lengths <= LONG_NAME))
    for first in range(0, LONG_NAME, 8):
        rest = lengths[left] - first
        word = words[at[left] + first] & _MASK[rest.clip(max=8)]
        state[left] = _mixed(state[left] ^ word)
        left = left[rest > 8]
        if not left.size:
            break
    for row in np.flatnonzero(lengths > LONG_NAME):
        digest = hashlib.blake2b(text[at[row] : at[row + 1]].tobytes(), digest_size=8)
        state[row] ^= np.frombuffer(digest.digest(), dtype="<u8")[0]
    blank = lengths == 0
    odd = np.flatnonzero(~blank)
    begins = text[at[odd]]
    odd = odd[(begins <= ord(" ")) | (begins >= 0x80)]
    if odd.size:
        blank[odd] = np.asarray(pc.utf8_is_space(column.take(pa.array(odd))).fill_null(True))
    return state, blank | np.asarray(column.is_null())


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = words ^ (words >> np.uint64(33))
    for factor in _FACTORS:
        words *= factor
        words ^= words >> np.uint64(33)
    return words


@dataclass(frozen=True, slots=True)
class _Folder:
    """A work folder: ``counts.npz``, a file of votes for each part, and results.

    It is of one user, and held by one process at a time.
    """

    path: Path
    seed: int
    rows: int
    progress: Progress

    @property
    def n_parts(self) -> int:
        """Number of parts, by which the votes are some millions in each."""
        return min(max(1, -(-self.rows // IN_A_PART)), MOST_PARTS)

    def part(self, number: int) -> Path:
        """Name the file of the votes of a part."""
        return self.path / f"part-{number:03}.votes"

    def counted(self, source: Source) -> _Counts:
        """Read the source, unless a run before has: count the votes, and part them by voter."""
        stored_at = self.path / "counts.npz"
        if stored_at.exists():
            stored = _loaded(stored_at)
            return _Counts(json.loads(str(stored["names"])), stored["table"])
        counts = _Counts()
        with ExitStack() as files:
            parts = [files.enter_context(self.part(i).open("wb")) for i in range(self.n_parts)]
            words, codes = np.empty(IN_A_BLOCK, dtype="<u8"), np.empty(IN_A_BLOCK, dtype="<u4")
            n, done = 0, 0
            for batch in source.batches():
                if n + len(batch) > IN_A_BLOCK:
                    self._write(words[:n], codes[:n], parts)
                    n = 0
                some, packed = self._coded(batch, source, counts)
                words[n : n + len(some)], codes[n : n + len(some)] = some, packed
                n, done = n + len(some), done + len(batch)
                self.progress(done, 2 * self.rows)
            self._write(words[:n], codes[:n], parts)
        pa.default_memory_pool().release_unused()
        names = np.array(json.dumps(counts.names))
        _store(stored_at, {"names": names, "table": counts.table})
        return counts

    def _coded(
        self, batch: Any, source: Source, counts: _Counts
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Count the votes of a batch, and give those that name their voter."""
        codes = [counts.coded(role, batch.column(source.columns[role])) for role in ROLES]
        words, missing = hashed(batch.column(source.columns["voter"]), self.seed)
        counts.add(codes, missing)
        packed = codes[0] << np.uint32(MODEL_BITS + LABEL_BITS)
        packed |= codes[1] << np.uint32(LABEL_BITS)
        packed |= codes[2]
        return (words[~missing], packed[~missing]) if missing.any() else (words, packed)

    def _write(
        self, words: NDArray[np.uint64], codes: NDArray[np.uint32], parts: Sequence[IO[bytes]]
    ) -> None:
        """Write a block to each part: the number of its votes, their voters, and their codes."""
        # By the upper half of the hash, as dice are rolled with a fraction of one.
        part = ((words >> np.uint64(32)) * np.uint64(len(parts))) >> np.uint64(32)
        part = part.astype(np.uint16)
        order = np.argsort(part, kind="stable")
        words, codes = words[order], codes[order]
        sizes, first = np.bincount(part, minlength=len(parts)), 0
        for file, n in zip(parts, sizes, strict=True):
            own = slice(first, first + n)
            file.writelines((np.uint64(n).tobytes(), words[own].data, codes[own].data))
            first += n

    def result(self, name: str, number: int) -> Path:
        """Name the file of what a part adds."""
        return self.path / f"{name}-{number:03}.npz"


@dataclass(frozen=True, slots=True)
class StoredParts:
    """The parts of a work folder, as `rating.comparisons.Parts`.

    Attributes
    ----------
    models : tuple of str
    places : sequence of ndarray
        By `ROLES`, what a code is: a position in ``models``, or an outcome; -1 counts for nothing.
    """

    folder: _Folder
    models: tuple[str, ...]
    places: tuple[Integers, ...]

    @classmethod
    def of(
        cls,
        folder: _Folder,
        source: Source,
        counts: _Counts,
        models: tuple[str, ...],
        both_bad: str,
    ) -> "StoredParts":
        """Take the models in the order of the board, and labels as outcomes."""
        index = {name: place for place, name in enumerate(models)}
        outcome: dict[str, int] = {}
        for label in counts.names["winner"]:
            means = LABELS.get(source.labels.get(label, label))
            if means is Outcome.BOTH_BAD and both_bad != "outcome":
                means = Outcome.TIE if both_bad == "tie" else None
            outcome[label] = -1 if means is None else OUTCOMES.index(means)
        places = [
            np.array([-1, *(known.get(name, -1) for name in counts.names[role])], dtype=kind)
            for role, known, kind in zip(
                ROLES, (index, index, outcome), [narrowest(len(models))] * 2 + ["i1"], strict=True
            )
        ]
        return cls(folder, models, tuple(places))

    def each(self, work: Callable[[Comparisons], Sums], name: str | None = None) -> Iterable[Sums]:
        """Call a function with every part, in threads; see `rating.comparisons.Parts`."""
        if name is None:
            return self._run(work, name)
        for _ in self._run(work, name):
            pass
        return _Stored([self.folder.result(name, i) for i in range(self.folder.n_parts)])

    def _run(self, work: Callable[[Comparisons], Sums], name: str | None) -> Iterator[Sums]:
        folder = self.folder

        def one(number: int) -> Sums:
            path = None if name is None else folder.result(name, number)
            if path is not None and path.exists():
                return {}
            sums = work(self.comparisons(number))
            if path is None:
                return sums
            _store(path, sums)
            return {}

        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            try:
                for done, sums in enumerate(pool.map(one, range(folder.n_parts)), 1):
                    folder.progress(folder.n_parts + done, 2 * folder.n_parts)
                    yield sums
            finally:
                pool.shutdown(cancel_futures=True)

    def comparisons(self, number: int) -> Comparisons:
        """Read a part: its votes in the order of their voters, one row each or counted."""
        words, codes, n = _votes(self.folder.part(number))
        order = np.argsort(words)
        voter, codes = words[order], codes[order]
        del words
        low = (1 << MODEL_BITS) - 1
        of_a, of_b, of_outcome = self.places
        a = of_a[codes >> (MODEL_BITS + LABEL_BITS)]
        b = of_b[(codes >> LABEL_BITS) & low]
        outcome = of_outcome[codes & ((1 << LABEL_BITS) - 1)]
        live = (a >= 0) & (b >= 0) & (a != b) & (outcome >= 0)
        n = n if n is None else n[order]
        if not live.all():
            voter, a, b, outcome = voter[live], a[live], b[live], outcome[live]
            n = n if n is None else n[live]
        new = np.ones(len(voter), dtype=bool)
        new[1:] = voter[1:] != voter[:-1]
        index = np.cumsum(new) - 1
        weight = np.ones(len(a)) if n is None else n.astype(np.float64)
        return Comparisons(
            models=self.models,
            pairs=np.column_stack([a, b]),
            outcome=outcome,
            votes=np.ones(len(a), dtype=np.int8) if n is None else n,
            weight=weight,
            weight_sq=weight,
            voter=index,
            n_voters=int(new.sum()),
            n_self=0,
        )


def _votes(path: Path) -> tuple[NDArray[np.uint64], NDArray[np.uint32], Integers | None]:
    """Read the votes of a part; of far too many for one, those that are alike are counted."""
    if path.stat().st_size <= 4 * IN_A_PART * BYTES_A_VOTE:
        return (*_joined([*_blocks(path)]), None)
    words, codes = _joined([])
    n, blocks = np.empty(0, dtype=np.int64), _blocks(path)
    while some := [*itertools.islice(blocks, BLOCKS_AT_ONCE)]:
        words, codes = _joined([(words, codes), *some])
        n = np.append(n, np.ones(len(words) - len(n), dtype=np.int64))
        order = np.lexsort((codes, words))
        words, codes = words[order], codes[order]
        new = np.ones(len(words), dtype=bool)
        new[1:] = (words[1:] != words[:-1]) | (codes[1:] != codes[:-1])
        words, codes, n = words[new], codes[new], np.add.reduceat(n[order], np.flatnonzero(new))
    return words, codes, n


Block = tuple[NDArray[np.uint64], NDArray[np.uint32]]


def _blocks(path: Path) -> Iterator[Block]:
    with path.open("rb") as file:
        while head := file.read(8):
            n = int.from_bytes(head, "little")
            yield np.frombuffer(file.read(8 * n), "<u8"), np.frombuffer(file.read(4 * n), "<u4")


def _joined(blocks: Sequence[Block]) -> Block:
    words, codes = zip(*blocks, strict=True) if blocks else ((), ())
    return np.concatenate([np.empty(0, "<u8"), *words]), np.concatenate(
        [np.empty(0, "<u4"), *codes]
    )


@dataclass(frozen=True, slots=True)
class _Stored:
    """Results in files, read again each time they are gone through."""

    paths: Sequence[Path]

    def __iter__(self) -> Iterator[Sums]:
        return map(_loaded, self.paths)


def _store(path: Path, arrays: Sums) -> None:
    """Write arrays so that the file is there whole, or not at all."""
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def _loaded(path: Path) -> Sums:
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


@contextmanager
def work_folder(source: Source, options: RateOptions, progress: Progress) -> Iterator[_Folder]:
    """Give the work folder of a rating, as it was left; afterwards it is removed.

    It stays where the process is stopped, so that the same rating goes on from there.

    Raises
    ------
    DataError
        If another user has a folder of this name, another process is at it, or there is too
        little room.
    """
    key = source.key(options)
    base = Path(tempfile.gettempdir()) / f"arena-rate-{os.getuid()}"
    _own(base)
    path = base / key[:32]
    free = shutil.disk_usage(base).free + sum(f.stat().st_size for f in path.glob("*"))
    if free < BYTES_A_VOTE * source.rows:
        msg = (
            f"To rate {source.rows:,} votes by voter takes {BYTES_A_VOTE * source.rows / 1e9:.1f} "
            f"GB in {str(base)!r}, and {free / 1e9:.1f} GB are free: set TMPDIR to a folder with "
            "more room."
        )
        raise DataError(msg)
    with (base / f"{path.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            msg = f"Another process rates these votes, in {str(path)!r}: wait for it, or end it."
            raise DataError(msg) from error
        _own(path)
        try:
            yield _Folder(path, int(key[:15], 16), source.rows, progress)
        except RatingError:
            _removed(path, lock)
            raise
        _removed(path, lock)


def _removed(path: Path, lock: IO[str]) -> None:
    shutil.rmtree(path)
    Path(lock.name).unlink()


def _own(path: Path) -> None:
    """Make a folder that nobody else can enter; raises `DataError` if there is another."""
    path.mkdir(mode=0o700, exist_ok=True)
    there = path.lstat()
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid() or there.st_mode & 0o077:
        msg = (
            f"{str(path)!r} is not a folder of yours alone, and votes are not written there: "
            "remove it, or set TMPDIR to another folder."
        )
        raise DataError(msg)
