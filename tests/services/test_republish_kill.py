"""Real processes that append to one ledger: killed at any instant, or two at once."""

import json
import random
import re
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from failing_calls import Killed, failing_at_every_step
from real_commands import Process, ended, started
from republish_cases import POLICY, append, save, take_back, wearers
from shoal.attacks.run.attack import audit_ledger
from shoal.auditor.ledger.terms import returns_people
from shoal.connectors.files import file_sha256
from shoal.connectors.ledger import DATA, Ledger
from shoal.ledgers.republish import republish
from shoal.policy import registry
from shoal.policy.policy import Policy
from thorough import LONG, examples, long_where

INCREMENTS, PEOPLE = 3, 200
STEPS = ("fsync", "rename", "replace", "unlink")
STOPS = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture
def place(tmp_path) -> Path:
    """Increments and a policy; nothing is published yet."""
    (tmp_path / "p.json").write_text(json.dumps(POLICY))
    for i in range(INCREMENTS):
        wearers(PEOPLE, i).write_csv(tmp_path / f"{i}.csv")
    return tmp_path


def begun(place: Path, increment: int) -> Process:
    """An append in a process of its own."""
    return started(place, "republish", f"{increment}.csv", *"-p p.json --ledger L -q".split())


def assert_everybody_is_published_once(place: Path) -> None:
    found = audit_ledger(place / "L")
    assert found.holds, found.damage
    assert len(found.releases) == INCREMENTS
    assert sum(r.certificate["records"]["out"] for r in found.releases) == INCREMENTS * PEOPLE
    assert not [p.name for p in (*place.rglob(".*.part"),)]


@pytest.mark.parametrize("signals", [(signal.SIGKILL,), STOPS], ids=["killed", "stopped"])
def test_ended_at_any_instant_the_ledger_is_whole_and_nothing_is_published_twice(place, signals):
    """The end falls anywhere between start and end; the same increment is tried again afterwards.
    A stop gives exit status 130 and leaves no draft, or the release is out.
    """
    rng = random.Random(7)
    append(place / "warm", wearers(PEOPLE, 99))  # kernels are compiled
    ended(place, "--version")
    clock = time.monotonic()
    assert begun(place, 0).wait(timeout=120) == 0
    usual = time.monotonic() - clock
    for trial in range(examples(3, 6)):
        increment = 1 + trial % (INCREMENTS - 1)
        process = begun(place, increment)
        time.sleep(usual * rng.uniform(0.3, 1.05))
        process.send_signal(signals[trial % len(signals)])
        _, err = process.communicate(timeout=60)
        # a stop before Python has begun ends it as the system does
        assert process.returncode in (0, 130, *(-one for one in signals)), err
        if process.returncode == 0:
            assert Ledger.at(place / "L").step_for(file_sha256(place / f"{increment}.csv"))
        if signals is STOPS:
            assert not [*place.rglob(".*.part")]
        assert Ledger.at(place / "L").verify() == []
    for i in range(INCREMENTS):
        append(place / "L", wearers(PEOPLE, i))
    assert_everybody_is_published_once(place)


METHODS = [
    method
    for method in registry.methods().values()
    if method.verb == "republish" and (LONG or not method.is_comparator)
]


def first_and_next(method: registry.Method) -> tuple[Policy, list[pl.DataFrame]]:
    """A policy and two increments: of other people, or of the same ones, a year older."""
    # no plain column: it would show which rows a method invents
    attributes = POLICY["attributes"] | {"beat": {"role": "drop"}}
    asked = Policy.from_dict(POLICY | {"attributes": attributes}).with_method(method.name, {})
    if not returns_people(method.implementation):
        return asked, [wearers(PEOPLE, 0), wearers(PEOPLE, 1)]
    again = wearers(PEOPLE, 0).with_columns(pl.col("age") + 1).head(PEOPLE - 5)
    return asked, [wearers(PEOPLE, 0), pl.concat([again, wearers(PEOPLE // 4, 1)])]


@pytest.mark.parametrize(
    "method", long_where(lambda m: m.name != "crp", METHODS), ids=lambda m: m.name
)
def test_killed_between_any_two_steps_on_disk(place, monkeypatch, method):
    """The same without luck: the process dies before and after every rename, sync and removal of an
    append.
    """
    ledger = place / "L"
    asked, (first, following) = first_and_next(method)
    append(ledger, first, asked, allow_leaks=True)
    save(place)
    append(ledger, following, asked, allow_leaks=True)
    undisturbed = (ledger / "0002" / DATA).read_bytes()
    for failing in failing_at_every_step(Killed, monkeypatch, STEPS):
        take_back(place)
        with failing as tried, suppress(Killed):
            append(ledger, following, asked, allow_leaks=True)
        assert Ledger.at(ledger).verify() == [], tried
        done = append(ledger, following, asked, allow_leaks=True)
        assert done.release == 2, tried
        assert Ledger.at(ledger).verify() == [], tried
        assert Ledger.at(ledger).releases() == [1, 2]
        assert (ledger / "0002" / DATA).read_bytes() == undisturbed
    assert len(tried) > 10, "there were instants to die at"


def test_processes_at_once_append_one_after_the_other(place):
    for process in [begun(place, i) for i in range(INCREMENTS)]:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert_everybody_is_published_once(place)


def test_processes_that_wait_for_a_lock_that_is_removed_append_one_after_the_other(tmp_path):
    """Some are refused and take the empty private part away, while others wait for its lock."""
    from concurrent.futures import ThreadPoolExecutor

    from shoal.errors import ShoalError

    def tried(seed: int) -> bool:
        try:
            frame = (
                wearers(30, seed)
                if seed % 3 == 0
                else wearers(30, seed).with_columns(age=pl.lit("old"))
            )
            republish(frame, POLICY, tmp_path / "L")
        except ShoalError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        done = sum(pool.map(tried, range(24)))
    found = audit_ledger(tmp_path / "L")
    assert found.holds, found.damage
    assert len(found.releases) == done == 8


def test_a_ledger_that_was_copied_and_continued_twice_is_found_by_the_hash_that_was_noted(place):
    """Each copy is whole by itself. Every append prints the hash to note."""
    assert begun(place, 0).wait(timeout=120) == 0
    for part in ("", ".private"):
        shutil.copytree(place / f"L{part}", place / f"copy{part}")
    noted = {}
    for ledger, increment in (("L", 1), ("copy", 2)):
        command = ["republish", f"{increment}.csv", "-p", "p.json", "--ledger", ledger]
        shown = ended(place, *command)
        assert shown.returncode == 0
        noted[ledger] = re.search(r"--noted ([0-9a-f]{64})$", shown.stderr, re.MULTILINE)[1]
    for ledger in noted:
        assert ended(place, "ledger", "verify", ledger).returncode == 0
        for own, hash_noted in noted.items():
            found = ended(place, "ledger", "verify", ledger, "--noted", hash_noted)
            assert (found.returncode == 0) == (own == ledger), found.stderr
            assert ("the noted release is not in it" in found.stderr) == (own != ledger)


def test_two_processes_with_the_same_increment_publish_it_once(place):
    processes = [begun(place, 0) for _ in range(2)]
    assert [p.wait(timeout=120) for p in processes] == [0, 0]
    assert Ledger.at(place / "L").releases() == [1]


@pytest.mark.parametrize("stop", STOPS)
def test_a_stopped_append_leaves_no_draft(place, stop):
    assert begun(place, 0).wait(timeout=120) == 0
    process = begun(place, 1)
    while not list((place / "L").glob(".*.part")) and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(stop)
    process.communicate(timeout=60)
    assert not list((place / "L").glob(".*.part"))
    assert Ledger.at(place / "L").verify() == []
