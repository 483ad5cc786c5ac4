"""What the desk answers: each look calls one public job on the table that it holds.

Looks whose name begins with `show_` answer with cells, for the person at the screen alone; the
server neither keeps nor logs them. All others answer with counts and names of columns.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.advise.attacker_view import attacker_views
from shoal.advise.check import findings_of
from shoal.advise.estimate import free_memory
from shoal.advise.matching import match_hierarchies
from shoal.advise.profile import profile
from shoal.advise.propose import propose_policy
from shoal.advise.risk import risk
from shoal.auditor.ledger.history import audit_releases
from shoal.auditor.ledger.release_view import verify_ledger
from shoal.auditor.verdict import of_cells
from shoal.connectors import coded_files, files, traces
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.private import DeferredRecords
from shoal.data.findings import AttributeFinding
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.table import read_hierarchy, table_text
from shoal.data.progress import Progress, no_progress
from shoal.data.single_ends import number_steps
from shoal.data.table import Table, as_text
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.binding.past_memory import memory_of
from shoal.policy.loading import read_options, reading_of
from shoal.policy.policy import Policy
from shoal.policy.proposal.cells import ColumnCells
from shoal.policy.proposal.notation import as_read
from shoal.policy.proposal.roles import advised_step
from shoal.samples import sample
from shoal.web.policy_text import Context
from shoal.web.sign_off import trace_of

MOST_ROWS = 50
ROWS_BELOW, PROFILED = 3, 1000  # shown, and rows profiled, of a table not yet opened


class Looks:
    """One table at a time, read once. progress: gets the stages of looks that may take long."""

    def __init__(self, progress: Progress = no_progress) -> None:
        self._progress = progress
        self._frames: dict[tuple[Any, ...], files.SourceFile] = {}
        self._every, self._rows = 1, 0
        self._views: Context = {}
        self._walks: Context = {}

    def answer(self, name: str, asked: Context) -> Context:
        """What a look finds. asked: may name `every`, of a table of which a sample is looked at."""
        self._every = int(asked.pop("every", 1))
        look = getattr(self, f"look_{name}", None)
        if look is None:
            raise InputError(f"look '{name}': there is none of this name")
        return look(**asked)

    # The table

    def _source(self, table: str, read: Context | None = None) -> files.SourceFile:
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
                sampled = coded_files.read_sampled(table, self._every, reading)
                self._frames[key], self._rows = sampled
            else:
                self._frames[key] = files.read(table, reading=reading)
                self._rows = self._frames[key].frame.height
        return self._frames[key]

    def _asked(self, table: str, policy: Context, base: str) -> tuple[Policy, Any]:
        """A policy, and the table as it says that it is written."""
        asked = Policy.from_dict(policy, base)
        return asked, self._source(table, policy.get("read")).frame

    def look_open(self, table: str, read: Context) -> Context:
        """How large a table is and what its columns are called, or that it is too large."""
        needed, free = memory_of(table), free_memory()
        if self._every == 1 and free and needed > free / 2:
            least = 2 * needed / free
            every = next(10**n for n in range(1, 10) if 10**n >= least or n == 9)
            return {"too_large": {"free": free, "every": every}}
        read = self._below_title(table, read)
        source = self._source(table, read)
        return {
            "read": read,
            "rows": source.frame.height,
            "rows_in_all": self._rows,
            "columns": source.frame.columns,
            "sha256": source.sha256,
            "bytes": Path(table).stat().st_size,
        }

    def _below_title(self, table: str, read: Context) -> Context:
        """How a table is read: below a title where its first line is one."""
        try:
            self._source(table, read)
        except InputError:
            begins = files.beginning(table, reading_of(read_options(read)))
            is_asked = "header" in read or ("sheet" not in read and len(begins.sheets) > 1)
            if is_asked or begins.below_title is None:
                raise
            return {**read, "header": begins.below_title}
        return read

    def look_show_beginning(self, table: str, read: Context) -> Context:
        """The first lines of a table as they are written, and as it is read by these options."""
        answer: Context = {"sheets": [], "lines": [], "read": read, "columns": []}
        try:
            begins = files.beginning(table, reading_of(read_options(read)))
            answer |= {"sheets": begins.sheets, "lines": begins.lines}
            if "sheet" not in read and len(begins.sheets) > 1:
                read = answer["read"] = {**read, "sheet": begins.sheets[0]}
            if "header" not in read and begins.below_title is not None:
                read = answer["read"] = {**read, "header": begins.below_title}
            if memory_of(table) > (free_memory() or 0) / 2:
                return answer  # opening it says so
            frame = self._source(table, read).frame
            kinds = profile(frame.head(PROFILED), read=read).columns
            answer["columns"] = [[one.name, one.kind] for one in kinds]
            answer["rows"] = cells_of(frame.head(ROWS_BELOW))
        except InputError as refused:
            answer["trouble"] = list(refused.said)
        return answer

    def look_sample(self, table: str) -> Context:
        """Writes 1,000 invented patients; no policy beside them, since the page proposes one."""
        sample("patients", 1000, 7).write_csv(table)
        Path(table).chmod(0o600)
        return {}

    def look_propose(self, table: str, read: Context) -> Context:
        """A first policy, with the reason for every role."""
        found = propose_policy(self._source(table, read).frame, read=read)
        return {
            "content": found.content,
            "reasons": {column.name: column.reason for column in found.columns},
        }

    def look_profile(self, table: str, policy: Context, base: str) -> Context:
        """What the columns hold, and who may be one person, tried on the table."""
        asked, frame = self._sound(policy, base), self._source(table, policy.get("read")).frame
        read = None if asked is not None else policy.get("read")
        return profile(frame, read=read, policy=asked, progress=self._progress).to_dict()

    def _sound(self, policy: Context, base: str) -> Policy | None:
        """The policy with its questions answered as proposed, where it is one at all."""
        attributes = {
            name: {key: value for key, value in settings.items() if key != "ask"}
            for name, settings in (policy.get("attributes") or {}).items()
        }
        try:
            return Policy.from_dict({**policy, "attributes": attributes}, base)
        except InputError:
            return None

    def look_risk(self, table: str, policy: Context, base: str) -> Context:
        """How many are alone, and what each column gives away; of several tables, by all rows."""
        asked, frame = self._asked(table, policy, base)
        return risk(frame, asked, special=False, progress=self._progress).to_dict()

    def look_check(self, table: str, policy: Context, base: str) -> Context:
        """Every finding about the policy and the table, values counted only."""
        asked, frame = self._asked(table, policy, base)
        found = findings_of(asked, frame)
        remarks = of_cells(asked.tables.original_table(Table(frame)), asked)
        whole = Table(as_read(frame, asked.notation))
        roles = ("quasi", "sensitive", "plain", "drop")
        named = [name for name in whole.names if asked.role_of(name) in roles]
        steps = {name: advised_step(ColumnCells.of(whole.column(name))) for name in named}
        return {
            "steps": {name: step for name, step in steps.items() if step},
            "findings": [plain_finding(finding) for finding in found],
            "remarks": [remark.report() for remark in remarks],
        }

    def look_policy(self, policy: Context, base: str) -> Context:
        """Whether it is a policy at all: raises InputError."""
        Policy.from_dict(policy, base).build_promises()
        return {}

    # Cells, for the screen alone

    def look_show_rows(self, table: str, read: Context, first: int = 0) -> Context:
        """Some rows, as they are written."""
        frame = self._source(table, read).frame.slice(first, MOST_ROWS)
        return {"first": first, "tables": [{"columns": frame.columns, "rows": cells_of(frame)}]}

    def look_show_draft(
        self, table: str, policy: Context, draft: str, rows: list[int], is_starred: bool = False
    ) -> Context:
        """Rows before and after; nothing where it is unknown which row became which.

        rows: of the table. is_starred: instead of these, the first ones that are suppressed.
        """
        source = self._source(table, policy.get("read")).frame
        after = files.read(draft).frame
        path = trace_of(Path(draft).parent)
        trace = np.zeros(0, dtype=np.int64) if path is None else traces.traced_rows(path)
        if not np.array_equal(np.sort(trace), np.arange(source.height)):
            return {"is_unmatched": True}
        if is_starred:
            rows = trace[_starred(after, policy)[:MOST_ROWS]].tolist()
        return {"tables": [before_and_after(source.select(after.columns), after, trace, rows)]}

    def look_show_attacker(
        self, table: str, policy: Context, base: str, draft: str, row: int | str
    ) -> Context:
        """What somebody who knows the quasi-identifiers of one row sees of it in a draft."""
        if draft not in self._views:
            asked, frame = self._asked(table, policy, base)
            trace = trace_of(Path(draft).parent)
            self._views = {draft: attacker_views(draft, asked, frame, trace=trace)}  # one at a time
        return self._views[draft].of_row(row).to_dict()

    def look_ledger_chain(self, folder: str) -> Context:
        """Whether the chain of a ledger is whole: its length, the hash to note, and who waits."""
        releases, last = verify_ledger(folder)
        waiting = DeferredRecords.of(Ledger(Path(folder))).records
        return {"releases": releases, "hash": last, "waiting": waiting}

    def look_ledger_history(self, folder: str) -> Context:
        """What an audit of a ledger's history finds, release by release."""
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
                    "findings": [*broken, *map(str, one.violations)],
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

    def look_lattice(
        self, table: str, policy: Context, base: str, levels: dict[str, int]
    ) -> Context:
        """Levels of a global recoding and their neighbours: what they lose, and whether safe."""
        from shoal.advise.marginal import lattice_walk  # which few look at

        key = json.dumps([policy, base], sort_keys=True, default=str)
        if key not in self._walks:
            asked, frame = self._asked(table, policy, base)
            self._walks = {key: lattice_walk(frame, asked)}  # one at a time
        found: Context = self._walks[key].around(levels)
        return found

    def look_match(self, table: str, policy: Context, base: str, folder: str) -> Context:
        """Which table of a folder fits which column, by values."""
        asked, frame = self._asked(table, policy, base)
        return {"files": [one.to_dict() for one in match_hierarchies(frame, folder, asked)]}

    def look_edit_tree(
        self, file: str, edits: list[Context], rare: Context | None = None
    ) -> Context:
        """A hierarchy's table after some edits; its file stays as it is.

        rare: of which table, policy and attribute the rows are counted, for edits that group what
        is rare.
        """
        if rare is not None:
            counts = self._counts(**rare)
            edits = [{**edit, "counts": counts} if "rare" in edit else edit for edit in edits]
        tree = read_hierarchy(file)
        try:
            edited = tree.edited(edits)
        except InputError:
            if not any("group" in edit or "rare" in edit for edit in edits):
                raise
            below_the_root = {"step": tree.rows().shape[1] - 2}  # where a new group has room
            edited = tree.edited([below_the_root, *edits])
        return {"text": table_text(edited)}

    def _counts(self, table: str, policy: Context, base: str, attribute: str) -> dict[str, int]:
        """How many rows have each value of a column, as the policy reads it."""
        asked, frame = self._asked(table, policy, base)
        read, _ = asked.tables.cells.read_original(frame)
        return dict(as_text(read[attribute]).value_counts().iter_rows())

    def _hierarchy(self, table: str, policy: Context, base: str, attribute: str) -> Hierarchy:
        """A column's hierarchy, from its table or made of the values it fits; else a flat one."""
        asked, frame = self._asked(table, policy, base)
        declared = asked.model.attributes[attribute].hierarchy
        if isinstance(declared, str):
            return read_hierarchy(asked.base / declared, attribute)
        ((kind, argument),) = (declared or {"flat": True}).items()
        maker = registry.makers()[kind].from_spec(argument)
        cells = as_text(asked.tables.original_frame(frame)[attribute]).unique().to_list()
        values = np.array([cell for cell in cells if asked.model.is_value(cell)], dtype=object)
        return maker.make(values[~maker.values_without_leaf(values)])

    def look_tree_text(self, table: str, policy: Context, base: str, attribute: str) -> Context:
        """The hierarchy of a column as a table."""
        return {"text": table_text(self._hierarchy(table, policy, base, attribute))}

    def look_show_steps(self, table: str, policy: Context, base: str, attribute: str) -> Context:
        """What readers see of a column at each step: groups, some of their names, rows, people."""
        asked, frame = self._asked(table, policy, base)
        rows = self._hierarchy(table, policy, base, attribute).rows()
        declared = asked.model.attributes[attribute]
        if declared.type == "number" and declared.hierarchy is None:
            rows = number_steps(rows, declared.round, asked.render)
        steps = list(dict.fromkeys(map(tuple, rows.T)))  # none that changes nothing
        whole = asked.tables.original_frame(frame)
        who = whole[asked.subject] if asked.subject else pl.int_range(whole.height, eager=True)
        held = pl.DataFrame({"value": as_text(whole[attribute]), "who": who})
        shown = steps[bool(declared.round) :]
        return {"levels": [_level(steps[0], labels, held) for labels in shown]}

    def look_show_tree(
        self, table: str, policy: Context, base: str, attribute: str, find: str = "", page: int = 1
    ) -> Context:
        """A hierarchy's nodes, each with its rows, root first: a page of them, or what is found."""
        rows = self._hierarchy(table, policy, base, attribute).rows()
        return tree_of(rows, self._counts(table, policy, base, attribute), find, page)

    def look_show_values(self, table: str, policy: Context, base: str, attribute: str) -> Context:
        """The values of a column that its hierarchy has no place for, with their rows."""
        asked, frame = self._asked(table, policy, base)
        found = [f for f in findings_of(asked, frame) if f.attribute == attribute]
        values = list(dict.fromkeys(value for f in found for value in f.values))
        rows = self._counts(table, policy, base, attribute)
        return {"values": [{"value": v, "rows": rows.get(v, 0)} for v in values[:200]]}


def before_and_after(
    source: pl.DataFrame, after: pl.DataFrame, trace: np.ndarray, rows: list[int]
) -> Context:
    """Some rows of a table, each with what it is in a draft; None for one that is not in it.

    source: the columns that are shown. trace: (published,) of each row of the draft, its own there.
    """
    kept = [row for row in rows if 0 <= row < source.height]
    shown, place = after.select(source.columns), np.full(source.height, -1)
    place[trace] = np.arange(len(trace))
    return {
        "columns": source.columns,
        "rows": kept,
        "before": cells_of(source[kept]),
        "after": [cells_of(shown[[at]])[0] if at >= 0 else None for at in place[kept].tolist()],
    }


def _starred(frame: pl.DataFrame, policy: Context) -> list[int]:
    """The rows that show the mark in every column that others could know."""
    attributes = policy.get("attributes") or {}
    quasi = [n for n in frame.columns if (attributes.get(n) or {}).get("role") == "quasi"]
    mark = (policy.get("render") or {}).get("suppressed", "*")
    if not quasi:
        return []
    is_marked = pl.all_horizontal(as_text(frame[name]) == mark for name in quasi)
    return frame.select(is_marked).to_series().arg_true().to_list()


def cells_of(frame: pl.DataFrame) -> list[list[str]]:
    """Every row's cells as text, for the person at the screen alone."""
    return [list(row) for row in zip(*map(as_text, frame.get_columns()), strict=True)]


def plain_finding(finding: AttributeFinding) -> Context:
    """A finding as the page gets it: with counts, without values."""
    return {
        "message": finding.message,
        "attribute": finding.attribute or _named(finding.message),
        "fault": finding.kind.name,
        "values": len(finding.values),
        "rows": finding.count,
    }


def _named(message: str) -> str:
    """The attribute that a message begins with, so that the page can lead to it."""
    head, _, rest = message.partition("attribute '")
    return rest.partition("'")[0] if not head else ""


# A hierarchy as its editor shows it: nodes in order with their rows, a page of them at a time.


PER_PAGE = 200
MOST_PARTS = 40  # of a bar that shows what readers see
MOST_NAMES = 4  # groups of a step that are named


def tree_of(rows: np.ndarray, counts: dict[str, int], find: str = "", page: int = 1) -> Context:
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
    }


def _nodes(rows: np.ndarray, counts: dict[str, int]) -> list[Context]:
    nodes: list[Context] = []
    places: dict[tuple[str, ...], Context] = {}
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


def _with_those_above(nodes: list[Context], shown: list[Context]) -> list[Context]:
    """The nodes, each behind all that it belongs to."""
    wanted = set()
    for node in shown:
        number: int | None = node["number"]
        while number is not None and number not in wanted:
            wanted.add(number)
            number = nodes[number]["above"]
    return [nodes[number] for number in sorted(wanted)]


def _level(values: Sequence[str], labels: Sequence[str], held: pl.DataFrame) -> Context:
    """What readers see at a step: how many groups, the names of a few, their rows side by side, and
    how many people the smallest and the largest have. held: of each row, the value and whose it is.
    """
    groups = pl.DataFrame({"value": values, "label": labels})
    rows, people = pl.len().alias("rows"), pl.col("who").n_unique().alias("people")
    sizes = held.join(groups, on="value").group_by("label").agg(rows, people)
    seen = groups.select("label").unique(maintain_order=True)
    seen = seen.join(sizes, on="label", how="left", maintain_order="left")
    parts = seen["rows"].fill_null(0).to_list()
    return {
        "count": seen.height,
        "names": seen["label"].head(MOST_NAMES).to_list(),
        "parts": [*parts[: MOST_PARTS - 1], sum(parts[MOST_PARTS - 1 :])],
        "people": [seen["people"].min() or 0, seen["people"].max() or 0],
    }
