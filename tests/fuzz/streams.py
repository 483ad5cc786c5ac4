"""Streams: every prefix of the sink judged, then the file that the command would write."""

from pathlib import Path
from random import Random

import polars as pl

import shoal
from fuzz import draw
from fuzz.cells import Policy, Table
from fuzz.draw import Case
from fuzz.judge import judge
from fuzz.outcome import Outcome, compare, write_inputs
from fuzz.tables import match_of, methods, some_method
from shoal.data.progress import no_progress
from shoal.streams.options import StreamOptions
from shoal.streams.run import stream_file

LITERAL = {"preset": "paper", "strict": False}  # break promises on purpose, as printed


def draw_case(random: Random, method: str | None = None) -> Case:
    """A stream whose records come some at a time."""
    name = method or random.choice(methods("stream"))
    records = random.choice([1, 20, 60, 60, 110])
    columns, sensitive = draw.draw_columns(random, records, draw.STREAM_KINDS)
    asked = draw.promises(sensitive, random, shares=False)
    asked = [p | ({"k": min(p["k"], 3)} if "k" in p else {}) for p in asked]
    if sensitive and random.random() < 0.2:
        asked.append({"model": "t-closeness", "attributes": [*sensitive], "t": 0.5})
    chosen = some_method(name, random)
    chosen = {key: v for key, v in chosen.items() if LITERAL.get(key) != v}
    policy = columns.policy(asked, chosen | {"delta": random.choice([6, 15, 40])})
    follows = any(isinstance(a.get("order"), str) for a in policy["attributes"].values())
    if follows or any(p["model"] == "t-closeness" for p in asked) or random.random() < 0.1:
        policy["reference"] = "reference.csv"
    if random.random() < 0.3:
        policy["render"] = {"order": random.choice(["input", "content"])}
    files = {"h.csv": draw.HIERARCHY, "reference.csv": columns.table().text()}
    # one record at a time takes twenty times as long as thirty, and few of them find as much
    size = random.choice([1, 7, 30, 1000] if records < 60 else [*[3, 7, 30] * 3, 1000, 1])
    return Case("stream", policy, columns.table(), files, (size,))


def run(case: Case, folder: Path, random: Random) -> Outcome:
    """Everything that has to be true of one stream."""
    outcome = Outcome()
    policy = Policy.of(case.policy, case.files)
    table = case.table if "reference" in case.policy else None
    asked = write_inputs(case, folder)
    with outcome.of("stream"):
        released = _released(asked, case, outcome, policy, table)
        if released is None:
            return outcome
        if released.rows and judge(policy, released).is_blank:
            outcome.status = "nothing but stars"
            return outcome
        _written(asked, folder, case, outcome, policy, table)
    return outcome


def _released(asked, case, outcome, policy, table) -> Table | None:
    """What a program gets that pushes the records; every prefix of it is judged."""
    frame = pl.DataFrame(case.table.rows, schema=case.table.names, orient="row")
    size, stream, rows = case.parts[0], shoal.stream(asked), []
    for at in range(0, frame.height, size):
        batch = stream.push(frame[at : at + size])
        rows += _rows(batch)
        if batch.height and not _prefix_holds(rows, batch.columns, case, outcome, policy, table):
            return None
    batch = stream.flush()
    rows += _rows(batch)
    outcome.counts["rows"] += len(rows)
    if rows and not _prefix_holds(rows, batch.columns, case, outcome, policy, table):
        return None
    return Table(batch.columns, rows)


def _rows(batch: pl.DataFrame) -> list[list[str]]:
    text = batch.with_columns(pl.all().cast(pl.String).fill_null(""))
    return [list(row) for row in text.rows()]


def _prefix_holds(rows, names, case, outcome, policy, table) -> bool:
    released = Table(list(names), rows)
    match = match_of(released, case.table)
    verdict = judge(policy, released, case.table, match, table)
    outcome.require(len(set(match)) == len(match), "stream: a record leaves twice", "")
    # as long as nothing but stars has left, nothing is told of anybody
    is_safe = verdict.holds or (verdict.is_blank and not verdict.changed)
    outcome.require(is_safe, "stream: a prefix breaks a promise", str(verdict))
    outcome.counts["prefixes"] += 1
    return not outcome.problems


def _written(asked, folder, case, outcome, policy, table) -> None:
    """What the command writes: audited without the original, and verified."""
    out = folder / "out.csv"
    options = StreamOptions(str(folder / "table.csv"), str(out), durability="process")
    certificate, _ = stream_file(options, asked, progress=no_progress)
    released = Table.read(out.read_text(encoding="utf-8"))
    if not released.rows:
        outcome.status = "nothing published"
        return
    match = match_of(released, case.table)
    verdict = judge(policy, released, case.table, match, table)
    is_safe = verdict.holds or (verdict.is_blank and not verdict.changed)
    outcome.require(is_safe, "stream file: breaks a promise", str(verdict))
    compare(outcome, "stream file", _without_counts(certificate), verdict)
    outcome.audit("audit of a stream", asked, out, judge(policy, released, reference=table))
    outcome.verify(out, {}, {"policy": asked})


def _without_counts(certificate):
    """A stream's own count of suppressed records is by record, not by cells."""
    content = dict(certificate)
    content.pop("faults", None)
    return content
