"""What the desk answers: each look calls one public job on the table that it holds.

Looks whose name begins with `show_` answer with cells, for the person at the screen alone; the
server neither keeps nor logs them. All others answer with counts and names of columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.advise.check import check
from shoal.advise.estimate import machine_memory
from shoal.auditor.findings import of_cells
from shoal.connectors import delimited, files
from shoal.connectors.coded_files import PARQUET_ROWS, frames_of
from shoal.connectors.dialect import DELIMITED, UTF8, Reading
from shoal.connectors.record_ends import PIECE, Pieces
from shoal.connectors.typed import plain, require_unfolded
from shoal.data import cores
from shoal.data.findings import AttributeFinding
from shoal.data.table import Table, as_text
from shoal.data.unpacking import is_packed
from shoal.errors import InputError, library_errors_as
from shoal.policy.binding.files import original_table
from shoal.policy.binding.past_memory import memory_of
from shoal.policy.loading import read_options, reading_of
from shoal.policy.policy import Policy

Answer = dict[str, Any]
MOST_ROWS = 50


class Looks:
    """One table at a time, read once."""

    def __init__(self) -> None:
        self._frames: dict[tuple[Any, ...], files.SourceFile] = {}
        self._every, self._rows = 1, 0
        self._views: dict[str, Any] = {}
        self._walks: dict[str, Any] = {}

    def answer(self, name: str, asked: dict[str, Any]) -> Answer:
        """What a look finds. asked: may name `every`, of a table of which a sample is looked at."""
        self._every = int(asked.pop("every", 1))
        look = getattr(self, f"look_{name}", None)
        if look is None:
            raise InputError(f"look '{name}': there is none of this name")
        found: Answer = look(**asked)
        return found

    # The table

    def _source(self, table: str, read: dict[str, Any] | None = None) -> files.SourceFile:
        """The table as it is written, from memory where its file is as it was."""
        stat = Path(table).stat()
        options = repr(sorted((read or {}).items()))
        key = (table, stat.st_mtime_ns, stat.st_size, options, self._every)
        if key not in self._frames:
            self._frames.clear()  # one at a time
            self._views.clear()
            self._walks.clear()
            reading = reading_of(read_options(read or {}))
            if self._every > 1:
                sampled = read_sampled(table, self._every, reading)
                self._frames[key], self._rows = sampled.source, sampled.rows
            else:
                self._frames[key] = files.read(table, reading=reading)
                self._rows = self._frames[key].frame.height
        return self._frames[key]

    def look_open(self, table: str, read: dict[str, Any]) -> Answer:
        """How large a table is and what its columns are called, or that it is too large."""
        needed, free = memory_of(table), free_memory()
        if self._every == 1 and free and needed > free / 2:
            return {"too_large": {"free": free, "every": _tenfold(2 * needed / free)}}
        source = self._source(table, read)
        return {
            "rows": source.frame.height,
            "rows_in_all": self._rows,
            "columns": source.frame.columns,
            "sha256": source.sha256,
            "bytes": Path(table).stat().st_size,
        }

    def look_sample(self, table: str) -> Answer:
        """Writes 1,000 invented patients; no policy beside them, since the page proposes one."""
        from shoal.samples import sample

        sample("patients", 1000, 7).write_csv(table)
        Path(table).chmod(0o600)
        return {}

    def look_propose(self, table: str, read: dict[str, Any]) -> Answer:
        """A first policy, with the reason for every role."""
        from shoal.advise.propose import propose_policy

        found = propose_policy(self._source(table, read).frame, read=read)
        return {
            "content": found.content,
            "reasons": {column.name: column.reason for column in found.columns},
        }

    def look_profile(self, table: str, policy: Answer, base: str) -> Answer:
        """What the columns hold, and who may be one person, tried on the table."""
        from shoal.advise.profile import profile

        asked, frame = self._sound(policy, base), self._source(table, policy.get("read")).frame
        read = None if asked is not None else policy.get("read")
        return profile(frame, read=read, policy=asked).to_dict()

    def _sound(self, policy: Answer, base: str) -> Policy | None:
        """The policy with its questions answered as proposed, where it is one at all."""
        attributes = {
            name: {key: value for key, value in settings.items() if key != "ask"}
            for name, settings in (policy.get("attributes") or {}).items()
        }
        try:
            return Policy.from_dict({**policy, "attributes": attributes}, base)
        except InputError:
            return None

    def look_risk(self, table: str, policy: Answer, base: str) -> Answer:
        """How many are alone, and what each column gives away."""
        from shoal.advise.profile import risk

        asked = Policy.from_dict(policy, base)
        return risk(self._source(table, policy.get("read")).frame, asked).to_dict()

    def look_check(self, table: str, policy: Answer, base: str) -> Answer:
        """Every finding about the policy and the table, values counted only."""
        asked = Policy.from_dict(policy, base)
        frame = self._source(table, policy.get("read")).frame
        found = check(asked, frame)
        remarks = of_cells(original_table(Table(frame), asked), asked)
        return {
            "findings": [_plain(finding) for finding in found],
            "remarks": [remark.report() for remark in remarks],
        }

    def look_policy(self, policy: Answer, base: str) -> Answer:
        """Whether it is a policy at all: raises InputError."""
        Policy.from_dict(policy, base).build_promises()
        return {}

    # Cells, for the screen alone

    def look_show_rows(self, table: str, read: dict[str, Any], first: int = 0) -> Answer:
        """Some rows, as they are written."""
        frame = self._source(table, read).frame.slice(first, MOST_ROWS)
        return {"columns": frame.columns, "first": first, "rows": _cells(frame)}

    def look_show_draft(
        self, table: str, policy: Answer, draft: str, rows: list[int], is_starred: bool = False
    ) -> Answer:
        """Rows before and after; nothing where it is unknown which row became which.

        is_starred: instead of these rows, the first ones that are suppressed.
        """
        source = self._source(table, policy.get("read")).frame
        after = files.read(draft).frame
        render = policy.get("render") or {}
        if render.get("order", "input") != "input" or after.height != source.height:
            return {"columns": [], "rows": [], "is_shuffled": True}
        if is_starred:
            rows = _starred(after, policy)[:MOST_ROWS]
        kept = [row for row in rows if 0 <= row < min(source.height, after.height)]
        return {
            "columns": after.columns,
            "rows": kept,
            "before": _cells(source.select(after.columns)[kept]),
            "after": _cells(after[kept]),
        }

    def look_show_attacker(
        self, table: str, policy: Answer, base: str, draft: str, row: int | str
    ) -> Answer:
        """What somebody who knows the quasi-identifiers of one row sees of it in a draft."""
        from shoal.advise.attacker_view import attacker_views

        if draft not in self._views:
            asked = Policy.from_dict(policy, base)
            frame = self._source(table, policy.get("read")).frame
            self._views = {draft: attacker_views(draft, asked, frame)}  # one at a time
        return self._views[draft].of_row(row).to_dict()

    def look_ledger_chain(self, folder: str) -> Answer:
        """Whether the chain of a ledger is whole: its length, the hash to note, and who waits."""
        from shoal.auditor.ledger.export import verify_ledger
        from shoal.connectors.ledger import Ledger
        from shoal.connectors.ledger.panel import DeferredRecords

        releases, last = verify_ledger(folder)
        waiting = DeferredRecords.of(Ledger(Path(folder))).records
        return {"releases": releases, "hash": last, "waiting": waiting}

    def look_ledger_history(self, folder: str) -> Answer:
        """What an audit of a ledger's history finds, release by release."""
        from shoal.auditor.ledger.history import audit_releases
        from shoal.reports.text import history_sentences

        found = audit_releases(folder)
        releases = []
        for one in found.releases:
            stated = one.certificate
            broken = [p["model"] for p in stated["promises"] if not p["holds"]]
            releases.append(
                {
                    "number": one.number,
                    "records": stated["records"]["out"],
                    "people": stated.get("subjects"),
                    "groups": stated["classes"]["count"],
                    "loss": stated["utility"]["gcp"],
                    "findings": [*broken, *(history_sentences(one) if one.violations else [])],
                }
            )
        return {
            "holds": found.holds,
            "releases": releases,
            "damage": list(found.damage),
            "leaked": any(one.violations for one in found.releases),
            "records": sum(one["records"] for one in releases),
            "groups": sum(one["groups"] for one in releases),
            "loss": releases[-1]["loss"] if releases else None,
        }

    def look_lattice(self, table: str, policy: Answer, base: str, levels: dict[str, int]) -> Answer:
        """Levels of a global recoding and their neighbours: what they lose, and whether safe."""
        from shoal.advise.marginal import lattice_walk

        key = json.dumps([policy, base], sort_keys=True, default=str)
        if key not in self._walks:
            asked = Policy.from_dict(policy, base)
            frame = self._source(table, policy.get("read")).frame
            self._walks = {key: lattice_walk(frame, asked)}  # one at a time
        return {**self._walks[key].around(levels), "heights": self._walks[key].heights}

    def look_match(self, table: str, policy: Answer, base: str, folder: str) -> Answer:
        """Which table of a folder fits which column, by values."""
        from shoal.advise.proposal.matching import match_hierarchies

        asked = Policy.from_dict(policy, base)
        found = match_hierarchies(self._source(table, policy.get("read")).frame, folder, asked)
        return {"files": [one.to_dict() for one in found]}

    def look_edit_tree(self, file: str, edits: list[Answer], rare: Answer | None = None) -> Answer:
        """A hierarchy's table after some edits; its file stays as it is.

        rare: of which table, policy and attribute the rows are counted, for edits that group what
        is rare.
        """
        from shoal.data.hierarchies.table import read_hierarchy, table_text

        if rare is not None:
            counts = self._counts(rare["table"], rare["policy"], rare["attribute"])
            edits = [{**edit, "counts": counts} if "rare" in edit else edit for edit in edits]
        return {"text": table_text(read_hierarchy(file).edited(edits))}

    def _counts(self, table: str, policy: Answer, attribute: str) -> dict[str, int]:
        """How many rows have each value of a column."""
        column = self._source(table, policy.get("read")).frame[attribute]
        return dict(as_text(column).value_counts().iter_rows())

    def look_show_tree(
        self, table: str, policy: Answer, base: str, attribute: str, find: str = "", page: int = 1
    ) -> Answer:
        """A hierarchy's nodes, each with its rows, root first: a page of them, or what is found."""
        from shoal.data.hierarchies.table import read_hierarchy
        from shoal.web.looks import tree_of

        file = Path(base) / policy["attributes"][attribute]["hierarchy"]
        counts = self._counts(table, policy, attribute)
        return tree_of(read_hierarchy(file).rows(), counts, find, page)

    def look_show_values(self, table: str, policy: Answer, base: str, attribute: str) -> Answer:
        """The values of a column that its hierarchy has no place for, with their rows."""
        asked = Policy.from_dict(policy, base)
        frame = self._source(table, policy.get("read")).frame
        found = [f for f in check(asked, frame) if f.attribute == attribute]
        values = list(dict.fromkeys(value for f in found for value in f.values))
        counts = as_text(frame[attribute]).value_counts(name="rows")
        rows = dict(counts.iter_rows())
        return {"values": [{"value": v, "rows": rows.get(v, 0)} for v in values[:200]]}


def free_memory() -> int | None:
    """Bytes of memory that nobody uses; None where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    whole = machine_memory()
    return None if whole is None else whole // 2


def _tenfold(least: float) -> int:
    """The power of ten that is at least so much."""
    found = 10
    while found < least and found < 10**9:
        found *= 10
    return found


def _starred(frame: pl.DataFrame, policy: Answer) -> list[int]:
    """The rows that show the mark in every column that others could know."""
    attributes = policy.get("attributes") or {}
    quasi = [n for n in frame.columns if (attributes.get(n) or {}).get("role") == "quasi"]
    mark = (policy.get("render") or {}).get("suppressed", "*")
    if not quasi:
        return []
    is_marked = pl.all_horizontal(as_text(frame[name]) == mark for name in quasi)
    return frame.select(is_marked).to_series().arg_true().to_list()


def _cells(frame: pl.DataFrame) -> list[list[str]]:
    columns = [as_text(series).to_list() for series in frame.get_columns()]
    return [list(row) for row in zip(*columns, strict=True)]


def _plain(finding: AttributeFinding) -> Answer:
    return {
        "message": finding.message,
        "attribute": finding.attribute or _named(finding.message),
        "fault": finding.kind.name,
        "values": len(finding.values),
    }


def _named(message: str) -> str:
    """The attribute that a message begins with, so that the page can lead to it."""
    head, _, rest = message.partition("attribute '")
    return rest.partition("'")[0] if not head else ""


# One row in so many of a table that does not fit into memory, read piece by piece.


@dataclass(frozen=True)
class SampledFile:
    """The first row, and then one in every so many. rows: of the whole table.

    It overstates who is alone: a person's other rows, and those who look alike, may be left out.
    """

    source: files.SourceFile
    rows: int


def read_sampled(path: str, every: int, reading: Reading) -> SampledFile:
    """One row in `every` of the table in a file; raises InputError where it is wrong.

    Whatever its size, no more is held than the sample and a piece.
    """
    kind = files.format_to_read(path)
    try:
        if kind == ".parquet":
            with cores.beside(files.file_sha256, path) as hashed:
                frame, rows = _every(_of_parquet(path), every)
                return SampledFile(files.SourceFile(frame, hashed()), rows)
        if kind not in DELIMITED or is_packed(path):
            raise InputError(
                f"file '{path}': is too large to be read as a whole, and only plain delimited text"
                " and Parquet are sampled; convert it"
            )
        beginning = delimited.begin(Path(path), path, kind, reading)
        if beginning.above or beginning.dialect.encoding != UTF8:
            raise InputError(
                f"file '{path}': is too large to be read as a whole; write it as UTF-8 text without"
                " a title, or as Parquet"
            )
        pieces = Pieces(Path(path), PIECE, path=path)
        texts = [pl.String()] * len(beginning.header)
        frame, rows = _every(frames_of(pieces, Path(path), path, beginning, texts), every)
        return SampledFile(files.SourceFile(frame, pieces.sha256, beginning.dialect), rows)
    except OSError as failed:
        raise InputError(
            f"file '{path}': can't be read ({failed.strerror}); check the name and permissions"
        ) from None


def _every(frames: Iterator[pl.DataFrame], every: int) -> tuple[pl.DataFrame, int]:
    """One row in `every` of all that come, and how many came."""
    kept: list[pl.DataFrame] = []
    rows = 0
    for frame in frames:
        offset = -rows % every
        if offset < frame.height or not kept:
            kept.append(frame.gather_every(every, offset))
        rows += frame.height
    if not rows:
        raise InputError("file: holds no records; publish a table with at least k people")
    return pl.concat(kept), rows


def _of_parquet(path: str) -> Iterator[pl.DataFrame]:
    with library_errors_as(f"file '{path}': is not a complete parquet file; write it again"):
        require_unfolded([path], ".parquet", f"file '{path}'")
        schema = pl.read_parquet_schema(path)
        plain(pl.DataFrame(schema=schema), f"file '{path}'")
        scanned = pl.scan_parquet(path, glob=False, low_memory=True)
        yield from scanned.collect_batches(chunk_size=PARQUET_ROWS, maintain_order=True)


# A hierarchy as its editor shows it: nodes in order with their rows, a page of them at a time.


Node = dict[str, Any]
PER_PAGE = 200
MOST_PARTS = 40  # of a bar that shows what readers see
MOST_NAMES = 4  # groups of a step that are named


def tree_of(
    rows: np.ndarray, counts: dict[str, int], find: str = "", page: int = 1
) -> dict[str, Any]:
    """The nodes of a hierarchy, depth first. rows: (leaves, steps + 1), value first, root last.

    find: only nodes whose label holds this, and what is above them. Every node has a number, which
    pages and searches leave as it is.
    """
    nodes = _nodes(rows, counts)
    shown = [node for node in nodes if find.casefold() in str(node["label"]).casefold()]
    pages = max(1, -(-len(shown) // PER_PAGE))
    page = min(max(page, 1), pages)
    first = (page - 1) * PER_PAGE
    return {
        "nodes": _with_those_above(nodes, shown[first : first + PER_PAGE]),
        "groups": [n["label"] for n in nodes if not n["is_leaf"]][:PER_PAGE],
        "found": len(shown),
        "page": page,
        "pages": pages,
        "steps": rows.shape[1] - 1,
        "levels": [_level(rows, step, counts) for step in range(rows.shape[1])],
    }


def _nodes(rows: np.ndarray, counts: dict[str, int]) -> list[Node]:
    nodes: list[Node] = []
    places: dict[tuple[str, ...], Node] = {}
    for path in sorted(tuple(dict.fromkeys(reversed(row))) for row in rows.tolist()):
        for depth in range(len(path)):
            own = path[: depth + 1]
            if own not in places:
                places[own] = {
                    "number": len(nodes),
                    "above": places[own[:-1]]["number"] if depth else None,
                    "label": own[-1],
                    "depth": depth,
                    "rows": 0,
                    "is_leaf": depth == len(path) - 1,
                }
                nodes.append(places[own])
            places[own]["rows"] += counts.get(path[-1], 0)
    return nodes


def _with_those_above(nodes: list[Node], shown: list[Node]) -> list[Node]:
    """The nodes, each behind all that it belongs to."""
    wanted = set()
    for node in shown:
        number: int | None = node["number"]
        while number is not None and number not in wanted:
            wanted.add(number)
            number = nodes[number]["above"]
    return [nodes[number] for number in sorted(wanted)]


def _level(rows: np.ndarray, step: int, counts: dict[str, int]) -> dict[str, Any]:
    """What readers see at a step: how many groups, the names of a few, their rows side by side."""
    sizes: dict[str, int] = {}
    for value, label in zip(rows[:, 0].tolist(), rows[:, step].tolist(), strict=True):
        sizes[label] = sizes.get(label, 0) + counts.get(value, 0)
    parts = list(sizes.values())
    return {
        "count": len(sizes),
        "names": list(sizes) if len(sizes) <= MOST_NAMES else [],
        "parts": [*parts[: MOST_PARTS - 1], sum(parts[MOST_PARTS - 1 :])],
    }
