"""Invented tables, to be published beforehand: small ones, to compile for this machine what a verb
would compile when it first runs; and others of the size and the shape of real ones, to be watched.

A kernel is compiled for the types it is called with, so small tables of invented people are
published with each method: over orders and over hierarchies, with repeated people and without,
under k alone and under each promise that has kernels of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from shoal.connectors import files
from shoal.connectors.linked_tables import place_in_folder
from shoal.connectors.record_ends import lines_of
from shoal.data.linked import PEOPLE, LinkedTables
from shoal.data.numba_kernels import always
from shoal.data.progress import Progress, no_progress, tell
from shoal.errors import InfeasibleError, InputError
from shoal.ledgers.republish import republish_file
from shoal.linked.publish import publish_linked
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.samples import generators, sample
from shoal.streams.options import StreamOptions
from shoal.streams.run import stream_file
from shoal.tables.publish import publish_file
from shoal.tables.request import PublishRequest

VERBS = ("publish", "stream", "republish", "fuse")
CENTRAL_TWIN = "tds"  # of `fuse`: the same kernels in one process
SMALL, LARGE = 1_100, 60_000
"""Records of a table; above 1,000 classes are annealed, above 50,000 the first cuts have kernels of
their own."""
DIVERSITY = {"model": "l-diversity", "attribute": "disease", "l": 2, "kind": "distinct"}
CLOSENESS = {"model": "t-closeness", "attributes": ["disease"], "t": 0.5}
SHARES = {"model": "alpha-k-anonymity", "attribute": "zip", "alpha": 0.25, "k": 5}
"""So small a share that cuts for most classes are tried, too."""
FEW = (74, 16, 99, 7, 14, 41, 2, 5)  # distinct values of people's columns, as a census has them
OTHERS = 10_000  # distinct values of a column that is published as it is


@dataclass(frozen=True)
class _Run:
    """One release whose publication compiles what it needs.

    method: its name, "" for the one that the verb chooses itself.
    """

    verb: str
    method: str
    sample: str
    policy: Mapping[str, Any]
    records: int = SMALL

    def into(self, folder: Path) -> None:
        """Publish a table of invented people; to a ledger, a second one of other people, too."""
        policy = Policy.from_dict(self.policy)
        if policy.model.is_linked:
            publish_linked(sample("clinic", self.records, 1), policy, str(folder / "released"))
            return
        if self.method:
            policy = policy.with_method(self.method)
        names = []
        for seed in (1, 2) if self.verb == "republish" else (1,):
            names.append(str(folder / f"{seed}.csv"))
            files.write(sample(self.sample, self.records, seed), Path(names[-1]))
        with suppress(InfeasibleError):  # what is asked in vain was compiled all the same
            if self.verb == "stream":
                options = StreamOptions(
                    names[0], str(folder / "release.csv"), folder / "checkpoint"
                )
                stream_file(options, policy, progress=no_progress)
            elif self.verb == "republish":
                for name in names:
                    republish_file(name, policy, folder / "ledger", allow_leaks=True)
            else:
                publish_file(names[0], policy, str(folder / "release.csv"))


def warm_up(
    verbs: Sequence[str] = (), every_method: bool = False, progress: Progress = no_progress
) -> int:
    """Compile what these verbs need: with the methods they choose themselves, or with every one.

    verbs: of publish, stream, republish and fuse; all if empty. Returns how many functions were
    compiled: 0 where all were on disk already. Nothing is kept but compiled code. Raises InputError
    for an unknown verb.
    """
    for verb in verbs:
        if verb not in VERBS:
            raise InputError(f"verb '{verb}': compiles nothing; choose among {', '.join(VERBS)}")
    runs = [run for verb in VERBS if verb in (verbs or VERBS) for run in _runs(verb, every_method)]
    from numba.core import event

    compiled: list[object] = []

    class Compiling(event.Listener):
        on_start = on_end = staticmethod(compiled.append)

    with (
        tempfile.TemporaryDirectory(prefix="shoal-warmup-") as base,
        always(compiled=True),
        event.install_listener("numba:compile", Compiling()),
    ):
        for number, run in enumerate(runs, start=1):
            by = f" by {run.method}" if run.method else ""
            stage = f"warming up {number} of {len(runs)}: {run.verb}{by}"
            tell(progress, stage, number - 1, len(runs))
            folder = Path(base) / str(number)
            folder.mkdir()
            run.into(folder)
        if runs:  # which long texts need, and no table of a run is so long
            lines_of(np.frombuffer(b"a\n1\n", dtype=np.uint8), 2)
    return len(compiled) // 2  # where each begins and ends


def _runs(verb: str, every_method: bool) -> Iterator[_Run]:
    known = [method.name for method in registry.methods().values() if method.verb == verb]
    names = [*known, ""] if every_method else [""]
    apart = [m.name for m in registry.methods().values() if m.renders_two_tables]
    for name in names:
        if verb == "stream":
            yield _Run(verb, name, "purchases", _bundled("purchases"))
        elif verb == "republish":
            # with k alone, as every method takes it
            only_k = {"promises": [{"model": "k-anonymity", "k": 10}]}
            yield _Run(verb, name, "wearables", _bundled("wearables") | only_k)
        else:
            for policy in _tables() if name not in apart else [_in_two_tables()]:
                yield _Run("publish", CENTRAL_TWIN if verb == "fuse" else name, "patients", policy)
    if verb == "publish":
        orders, _, _, trees, *_ = _tables()
        # by orders records agree, and are cut together; hardly any do by trees as well
        yield _Run(verb, "", "patients", orders, LARGE)
        yield _Run(verb, "", "patients", trees, LARGE)
        yield _Run(verb, "", "clinic", _bundled("clinic"))
        some_known = _bundled("clinic")
        some_known["tables"]["visits"]["rows"] = {"known": 2}
        some_known["tables"]["drugs"]["rows"] = {"known": "none"}
        some_known["assume"] = ["counts-unknown"]
        yield _Run(verb, "", "clinic", some_known)
        # patients whose postal code is the secret, since no disease is rare enough
        shares = {**next(_tables()), "promises": [SHARES]}
        shares["attributes"]["zip"] = {"role": "sensitive"}
        yield _Run(verb, "rounded-partition", "patients", shares)


def _tables() -> Iterator[Mapping[str, Any]]:
    """Policies for patients: each record its own person, or several; over orders, over trees."""
    trees = _bundled("patients")
    one_each = deepcopy(trees)
    one_each["attributes"]["patient"] = {"role": "identifier"}
    orders = deepcopy(one_each)
    orders["attributes"]["zip"] = {"role": "plain"}
    for policy, promises in (
        (orders, []),
        (orders, [DIVERSITY]),
        (orders, [CLOSENESS]),
        (one_each, []),
        (trees, []),
        (trees, [DIVERSITY]),
        (trees, [CLOSENESS]),
    ):
        yield policy | {"promises": [{"model": "k-anonymity", "k": 5}, *promises]}


def _in_two_tables() -> Mapping[str, Any]:
    """Patients with one sensitive attribute, and nothing that passes through."""
    policy = _bundled("patients")
    for name, attribute in policy["attributes"].items():
        hidden = ("sensitive", "plain", "identifier", "subject")
        if attribute["role"] in hidden and name != "disease":
            policy["attributes"][name] = {"role": "drop"}
    del policy["label"]
    return policy | {"promises": [DIVERSITY]}


def _bundled(name: str) -> dict[str, Any]:
    """A sample's policy without rounding, which not every method takes."""
    policy = dict(yaml.safe_load(generators()[name].POLICY))
    for attribute in policy["attributes"].values():
        attribute.pop("round", None)
    return policy


# Tables of the size and the shape of real ones.


@dataclass(frozen=True)
class Shape:
    """Of an invented table: its quasi-identifiers, the distinct values of each (None: few, as a
    census has them), further columns, and the k to publish it with.
    """

    quasi: int
    k: int = 10
    other: int = 1
    values: tuple[int, ...] | None = None

    def table(self, records: int) -> pl.DataFrame:
        """A table of this number of records; low values are frequent, as people's are uneven."""
        rng = np.random.default_rng(1)
        columns = {}
        for column in range(self.quasi):
            values = (self.values or FEW)[column % len(self.values or FEW)]
            codes = (values * rng.random(records) ** 2).astype(np.int32)
            columns[f"q{column}"] = 10 ** len(str(values)) + codes  # as many digits each
        for column in range(self.other):
            columns[f"o{column}"] = 10_000_000 + rng.integers(OTHERS, size=records, dtype=np.int32)
        return pl.DataFrame(columns)

    @property
    def attributes(self) -> dict[str, dict[str, str]]:
        """What a policy says of its columns."""
        quasi = {f"q{i}": {"role": "quasi", "type": "number"} for i in range(self.quasi)}
        return quasi | {f"o{i}": {"role": "plain"} for i in range(self.other)}

    @property
    def policy(self) -> Policy:
        return Policy.from_dict(
            {
                "version": 1,
                "attributes": self.attributes,
                "promises": [{"model": "k-anonymity", "k": self.k}],
                "method": {"name": "rounded-partition", "refine": "none"},
                "seed": 1,
            }
        )

    def invent(self, records: int, folder: Path) -> Path:
        """Writes such a table; where it is."""
        source = folder / "table.csv"
        files.write(self.table(records), source)
        return source

    def publish(self, source: Path, folder: Path, progress: Progress) -> Path:
        """Publishes it; where the release is."""
        release = folder / "release.csv"
        request = PublishRequest(replace=True, progress=progress)
        publish_file(str(source), self.policy, str(release), request)
        return release


@dataclass(frozen=True)
class LinkedShape:
    """Of invented linked tables, people first.

    tables: the shape of each. parents: the place of the table above, of all but people. counts: of
    all but people, how many rows a row above has, and which share of these has as many.
    """

    tables: Sequence[Shape]
    parents: Sequence[int]
    counts: Sequence[Mapping[str, float]]

    @classmethod
    def of(cls, tables: LinkedTables, others: Mapping[str, int], k: int) -> LinkedShape:
        """The shape of tables that were read. others: by table, columns published as they are."""
        names = [table.name for table in tables.tree.tables]
        shapes = []
        for name in names:
            values = tuple(len(a.texts) for a in tables.rows[name].encoded.attributes)
            shapes.append(Shape(len(values), k, others.get(name, 0), values or None))
        counts = []
        for name in names[1:]:
            rows, times = np.unique(tables.rows[name].counts, return_counts=True)
            shares = (times / times.sum()).tolist()
            counts.append(dict(zip(map(str, rows.tolist()), shares, strict=True)))
        parents = [names.index(table.parent or PEOPLE) for table in tables.tree.tables[1:]]
        return cls(shapes, parents, counts)

    @property
    def quasi(self) -> int:
        return sum(shape.quasi for shape in self.tables)

    @property
    def other(self) -> int:
        return sum(shape.other for shape in self.tables)

    @property
    def k(self) -> int:
        return self.tables[0].k

    @property
    def names(self) -> list[str]:
        return [PEOPLE, *(f"t{place}" for place, _ in enumerate(self.parents, start=1))]

    @property
    def policy(self) -> Policy:
        first, *below = self.tables
        tables = {
            name: {
                "parent": {self.names[parent]: "above"},
                "key": "key",
                "attributes": shape.attributes,
            }
            for name, shape, parent in zip(self.names[1:], below, self.parents, strict=True)
        }
        return Policy.from_dict(
            {
                "version": 1,
                "attributes": {"key": {"role": "subject"}, **first.attributes},
                "tables": tables,
                "promises": [{"model": "k-anonymity", "k": first.k}],
                "seed": 1,
            }
        )

    def invent(self, records: int, folder: Path) -> Path:
        """Writes such tables of this number of people into a folder; where it is."""
        rng = np.random.default_rng(2)
        source = folder / "tables"
        source.mkdir(exist_ok=True)
        sizes = [records]
        frames = [self._keyed(0, records)]
        for place, (parent, counts) in enumerate(zip(self.parents, self.counts, strict=True), 1):
            rows = rng.choice([int(n) for n in counts], sizes[parent], p=list(counts.values()))
            above = np.repeat(np.arange(sizes[parent]), rows)
            sizes.append(len(above))
            frames.append(self._keyed(place, len(above)).with_columns(above=pl.Series(above)))
        for name, frame in zip(self.names, frames, strict=True):
            files.write(frame, Path(place_in_folder(source, name)))
        return source

    def _keyed(self, place: int, rows: int) -> pl.DataFrame:
        return pl.DataFrame({"key": np.arange(rows)}).hstack(self.tables[place].table(rows))

    def publish(self, source: Path, folder: Path, progress: Progress) -> Path:
        """Publishes them; where the release is."""
        release = folder / "released"
        publish_linked(str(source), self.policy, str(release), replace=True, progress=progress)
        return release
