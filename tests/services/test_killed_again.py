"""Recoveries that are killed themselves: whatever is left, the next run leads to the same."""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from left_by_kills import DRAFT, Left, left_by_kills, left_in, put_back
from republish_cases import policy as ledger_policy
from republish_cases import wearers
from sample_policies import content_of
from shoal.ledgers.republish import republish_file
from shoal.policy.policy import Policy
from shoal.streams.options import StreamOptions
from shoal.streams.run import stream_file
from shoal.tables.publish import publish_file
from shoal.tables.request import PublishRequest
from stream_cases import policy_of, stream_of
from thorough import every

TABLE = "sqlite:///out.db?table=released"


def of_stream(sink: str, **write: str) -> Callable[[], object]:
    """Of people, with records that are set aside and a trace, in several steps."""
    aside = pl.when(pl.int_range(pl.len()) % 37 == 5).then(pl.lit("old")).otherwise("age")
    stream_of(110, seed=4).with_columns(age=aside).write_parquet("in.parquet")
    asked = StreamOptions("in.parquet", sink, Path("state"), trace="trace.jsonl")
    policy = policy_of("fads", delta=30).with_files({}, write)
    return lambda: stream_file(asked, policy, progress=lambda stage: None)


def of_ledger(releases: int, output: str | None) -> Callable[[], object]:
    """The next release behind so many."""
    for number in range(releases + 1):
        wearers(40, number).write_csv(f"{number}.csv")
    for number in range(releases):
        republish_file(f"{number}.csv", ledger_policy(), "L", output=output)
    return lambda: republish_file(f"{releases}.csv", ledger_policy(), "L", output=output)


def of_release(output: str) -> Callable[[], object]:
    """A release in place of an earlier one that was signed."""
    wearers(60, 1).write_csv("in.csv")
    roles = {"who": "subject", "age": "quasi", "height": "quasi", "sex": "quasi"}
    policy = Policy.from_dict(content_of({**roles, "activity": "sensitive", "beat": "plain"}, 4))
    publish_file("in.csv", policy.with_k(8), output)
    return lambda: publish_file("in.csv", policy, output, PublishRequest(replace=True))


RUNS = {
    "a stream into a file": partial(of_stream, "out.csv"),
    "a stream into a packed file": partial(of_stream, "out.csv.gz"),
    "a stream into Parquet": partial(of_stream, "out.parquet"),
    "a stream into a folder": partial(of_stream, "out/", roll="2KB"),
    "a stream into a table": partial(of_stream, TABLE),
    "a ledger's first release": partial(of_ledger, 0, None),
    "a ledger's second release": partial(of_ledger, 1, None),
    "a ledger's first release into a table": partial(of_ledger, 0, TABLE),
    "a ledger's second release into a table": partial(of_ledger, 1, TABLE),
    "a release in a file": partial(of_release, "out.csv"),
    "a release in a folder": partial(of_release, "out/"),
    "a release in a table": partial(of_release, TABLE),
}


@pytest.fixture
def settled(folder, monkeypatch) -> Path:
    """An empty folder, where the same run writes the same bytes at any time."""
    monkeypatch.setattr("shoal.connectors.feeds.SLICE", 40)
    monkeypatch.setattr("time.time", lambda: 1.7e9)
    monkeypatch.setattr("time.process_time", lambda: 0.0)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    same = {"token_hex": lambda size: "1" * 2 * size, "token_bytes": bytes}
    for module in ("shoal.streams.run", "shoal.connectors.ledger"):  # none that names drafts
        monkeypatch.setattr(f"{module}.secrets", SimpleNamespace(**same))
    return folder


@pytest.mark.parametrize("of", every(3, RUNS))
def test_what_a_killed_recovery_leaves_leads_to_the_same(settled, of):
    run = RUNS[of]()
    first = left_by_kills(settled, run)
    expected, seen = shown(first[-1]), {digest(left) for left in first}
    for killed in few(first, 4):
        put_back(settled, killed)
        recovery = left_by_kills(settled, run)
        assert shown(left_in(settled)) == expected
        new = [left for left in recovery if digest(left) not in seen]
        seen |= {digest(left) for left in new}
        for killed_again in few(new, 1):
            put_back(settled, killed_again)
            run()
            assert shown(left_in(settled)) == expected


def few(states: list[Left], count: int) -> list[Left]:
    step = max(len(states) // count, 1)
    return every(step, states, first=step // 2)


def digest(left: Left) -> str:
    return hashlib.sha256(repr(shown(left)).encode()).hexdigest()


def shown(left: Left) -> dict[str, object]:
    """What has to be the same; the status tells of resuming, which may be more than once."""
    found: dict[str, object] = {}
    for name, kept in left.items():
        content: object = kept.content
        if name == "state/status.json" and kept.content is not None:
            said = json.loads(kept.content)
            content = [said[part] for part in ("state", "commits", "records", "verdict")]
        found[DRAFT.sub("", name)] = kept.mode, content
    return found
