"""Streams for tests: adversarial inputs, a run in memory, a plain check of a trace."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import polars as pl
from hypothesis import strategies as st

from sample_policies import content_of
from shoal.policy.policy import Policy
from shoal.streams.checkpoint import Checkpoint
from shoal.streams.core import StreamCore

TREE = {"tree": {"north": ["a", "b", {"far": ["c", "d"]}], "south": ["e", "f"]}}
SPAN = {"north": "abcd", "far": "cd", "south": "ef", "*": "abcdef"}
QUASI = ("age", "pay", "town")


def policy_of(
    method="fads", k=3, more=(), missing="value", seed=0, subject=True, **parameters
) -> Policy:
    attributes = {
        "who": "subject" if subject else "drop",
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "pay": {"role": "quasi", "type": "number", "domain": [-5, 5], "weight": 2},
        "town": {"role": "quasi", "hierarchy": TREE},
        "ill": "sensitive",
        "note": "plain",
    }
    named = {"name": method, **parameters}
    return Policy.from_dict(
        content_of(attributes, k, *more, method=named, missing=missing, seed=seed)
    )


def stream_of(n, seed=0, people=None, constant=False, missing=0.0) -> pl.DataFrame:
    """n records of `people` people."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, people or max(1, n // 2), n)
    age, pay = rng.integers(0, 101, n), rng.integers(-50, 51, n) / 10
    town = rng.integers(0, 6, n)
    if constant:
        age[:], pay[:], town[:] = 40, 1.5, 2
    cells = {
        "who": [f"p{w}" for w in who],
        "age": [str(a) for a in age],
        "pay": [f"{p:.1f}" for p in pay],
        "town": ["abcdef"[t] for t in town],
        "ill": [f"i{i}" for i in rng.integers(0, 4, n)],
        "note": [f"n{i}" for i in range(n)],
    }
    frame = pl.DataFrame(cells)
    for name in QUASI if missing else ():
        frame = frame.with_columns(
            pl.when(pl.Series(rng.random(n) < missing))
            .then(None)
            .otherwise(pl.col(name))
            .alias(name)
        )
    return frame


ADVERSARIAL = {
    "one person": lambda n: stream_of(n, people=1),
    "k - 1 people": lambda n: stream_of(n, people=2),
    "few people": lambda n: stream_of(n, people=4),
    "all equal": lambda n: stream_of(n, constant=True),
    "sorted": lambda n: stream_of(n).sort(pl.col("age").cast(pl.Int64)),
    "bursts": lambda n: stream_of(n).sort("who"),
    "missing": lambda n: stream_of(n, missing=0.2),
    "one outlier a batch": (
        lambda n: stream_of(n, people=n).with_columns(
            age=pl.when(pl.int_range(n) % 20 == 7).then(pl.lit("100")).otherwise(pl.lit("20"))
        )
    ),
    "one sensitive value": lambda n: stream_of(n).with_columns(ill=pl.lit("i0")),
    "every record twice": lambda n: pl.concat([stream_of(n // 2 + 1)] * 2)[:n],
    "ordinary": lambda n: stream_of(n, people=n),
}


@dataclass
class Run:
    """What a stream published, and what became of each record."""

    rows: list[dict]
    trace: list[dict]

    @property
    def bytes(self) -> bytes:
        return repr((self.rows, self.trace)).encode()


def run(
    policy: Policy,
    frame: pl.DataFrame,
    chunk: int = 10**9,
    restart: bool = False,
    expired: tuple[int, ...] = (),
) -> Run:
    """The stream in chunks; with `restart`, through a snapshot behind every chunk.

    expired: behind each chunk, the record up to which all have to leave.
    """
    core, rows, trace = StreamCore(policy, frame.columns), [], []

    def take(batch):
        if batch is None:
            return
        if batch.frame.height:
            core.measure(batch, batch.frame)
        decided = batch.decided
        for i in range(len(decided)):
            trace.append(
                {
                    "seq": int(batch.position[i]),
                    "release": int(decided.release[i]),
                    "class": int(decided.cluster[i]),
                    "kind": ("new", "reuse", "suppress", "hold", "drop")[decided.kind[i]],
                    "emitted": int(decided.emitted[i]),
                    "arrival": int(decided.seq[i]),
                    "row": int(batch.row[i]) + len(rows) if batch.row[i] >= 0 else None,
                }
            )
        rows.extend(batch.frame.to_dicts())

    for at in range(0, frame.height, chunk):
        part = frame[at : at + chunk]
        batch, wrong = core.push(part, at + np.arange(part.height))
        assert not wrong
        take(batch)
        if at // chunk < len(expired):
            take(core.expire(min(expired[at // chunk], core.arrived - 1)))
        if restart:
            state = core.snapshot()
            core = StreamCore(policy, frame.columns)
            core.restore(state)
    take(core.flush())
    return Run(rows, trace)


def broken_rules(
    found: Run, frame: pl.DataFrame, k: int, l: int = 1, together: bool = False, hulls: bool = True
) -> list[str]:
    """What a stream breaks of the rules that hold for every method; empty for an honest one.

    together: whether a release may hold a new cluster and records that use it again, as with ticks.
    hulls: whether clusters publish what their own records span, not a region.
    """
    broken = []
    records = frame.to_dicts()
    if sorted(t["seq"] for t in found.trace) != list(range(len(records))):
        broken.append("a record was decided twice or never")
    shown = sorted((t for t in found.trace if t["row"] is not None), key=lambda t: t["row"])
    if [t["row"] for t in shown] != list(range(len(found.rows))):
        broken.append("rows and trace differ")
    if any(
        (t["row"] is not None) != (t["kind"] in ("new", "reuse", "suppress")) for t in found.trace
    ):
        broken.append("a kind does not fit its row")
    first, members, made, reused = {}, defaultdict(list), {}, []
    for stated, row in zip(shown, found.rows, strict=True):
        record = records[stated["seq"]]
        if row["note"] != record["note"]:
            broken.append("a plain cell was changed")
        cells = tuple(row[name] for name in QUASI)
        is_starred = set(cells) == {"*"}
        if row["ill"] != ("*" if is_starred else record["ill"]):
            broken.append("a sensitive cell was changed, or shown beside nothing else")
        if stated["kind"] == "suppress":
            if not is_starred:
                broken.append("a suppressed record shows something")
            continue
        if not all(covers(cell, record[name]) for name, cell in zip(QUASI, cells, strict=True)):
            broken.append("a cell does not cover the truth")
        first.setdefault(cells, stated["release"])
        members[cells, stated["release"]].append(record["who"])
        if stated["kind"] == "new":
            made.setdefault(stated["class"], (stated["release"], cells, []))[2].append(record)
        else:
            reused.append((stated["class"], stated["release"], cells))
    for number, release, cells in reused:
        if (
            number not in made
            or made[number][0] > release
            or (made[number][0] == release and not together)
        ):
            broken.append("a cluster was used before it was made")
        elif made[number][1] != cells:
            broken.append("a cluster changed its cells")
    for cells, release in first.items():
        if len(set(members[cells, release])) < k:
            broken.append("a class had fewer than k people when it first showed up")
    for _, cells, group in made.values():
        if len({r["who"] for r in group}) < k or len({r["ill"] for r in group}) < l:
            broken.append("a new cluster breaks a promise")
        if hulls and cells != hull(group):
            broken.append("a cluster publishes other than its hull")
    return sorted(set(broken))


def covers(cell, value) -> bool:
    if cell == "*" or cell == value:
        return True
    if cell is None or value is None:
        return False
    if cell.startswith("["):
        lo, hi = cell[1:-1].split(", ")
        return float(lo) <= float(value) <= float(hi)
    return value in SPAN.get(cell, "")


def hull(group) -> tuple:
    """The published cells of some records: the value, the interval, or the lowest node."""
    cells = []
    for name in ("age", "pay"):
        values = [r[name] for r in group]
        if None in values:
            cells.append(None if set(values) == {None} else "*")
            continue
        lo, hi = min(values, key=float), max(values, key=float)
        cells.append(lo if float(lo) == float(hi) else f"[{lo}, {hi}]")
    towns = {r["town"] for r in group}
    if len(towns) == 1:
        cells.append(towns.pop())
    elif None in towns:
        cells.append("*")
    else:
        cells.append(
            min((n for n, span in SPAN.items() if towns <= set(span)), key=lambda n: len(SPAN[n]))
        )
    return tuple(cells)


@st.composite
def streams(draw):
    """Any of the adversarial inputs, of any small length."""
    kind = draw(st.sampled_from(sorted(ADVERSARIAL)))
    return ADVERSARIAL[kind](draw(st.integers(0, 90)))


@st.composite
def cases(draw):
    """Values and people of some records, k, delta and a seed."""
    n, seed = draw(st.integers(1, 60)), draw(st.integers(0, 999))
    rng = np.random.default_rng(seed)
    high = draw(st.sampled_from([4, 101]))
    values = np.column_stack(
        [rng.integers(0, high, n), rng.integers(-5, 6, n), rng.integers(0, 6, n)]
    ).astype(float)
    people = rng.integers(0, draw(st.sampled_from([2, 9, 500])), n).astype(np.int64)
    return values, people, draw(st.integers(2, 4)), draw(st.integers(4, 20)), seed


def stop_at(monkeypatch, *steps: int) -> None:
    """Stops a run at these commits, counted over all runs."""
    commit = Checkpoint.commit
    count = 0

    def counted(self, state):
        nonlocal count
        count += 1
        if count in steps:
            raise KeyboardInterrupt
        commit(self, state)

    monkeypatch.setattr(Checkpoint, "commit", counted)
