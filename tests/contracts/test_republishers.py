"""The same battery for every method of re-publication from the registry, plug-ins included."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from republish_cases import append
from sample_policies import content_of
from shoal.attacks.run.attack import audit_ledger
from shoal.auditor.ledger.terms import returns_people
from shoal.data.ledger_view import LedgerView
from shoal.data.partition import Matrix
from shoal.errors import PromiseError
from shoal.ledgers.planned_release import partition_table
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.testing import OnlyK
from shoal_papers.baselines.rebuild import TABLE_METHODS, Static1
from thorough import examples, long_where

METHODS = [m for m in registry.methods().values() if m.verb == "republish"]
LEAKS = {"static-2"}
TREE = {"tree": {"north": ["a", "b", {"far": ["c", "d"]}], "south": ["e", "f"]}}
POLICY = content_of(
    {
        "who": {"role": "subject"},
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "grade": {"role": "quasi", "type": "ordinal", "order": ["low", "mid", "a, b", "high"]},
        "home": {"role": "quasi", "hierarchy": TREE},
        "sex": {"role": "quasi"},
        "ill": {"role": "sensitive"},
    },
    3,
    {"model": "l-diversity", "attribute": "ill", "l": 2},
)


def variants(method: registry.Method):
    """The method by default and with every choice of its own; some must leak."""
    yield {}
    for parameter in method.parameters:
        for choice in parameter.choices or ():
            if choice != parameter.default and parameter.name not in ("by", "cluster"):
                yield {parameter.name: choice}


VARIANTS = [(m, v) for m in METHODS for v in variants(m)]
IDS = [f"{m.name}-{v}" for m, v in VARIANTS]


def increment(n: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    frame = {
        "who": [f"{seed}-{i}" for i in range(n)],
        "age": rng.integers(0, 100, n).astype(str),
        "grade": rng.choice(["low", "mid", "a, b", "high"], n),
        "home": rng.choice(list("abcdef"), n),
        "sex": rng.choice(["x", "y", "z"], n),
        "ill": rng.choice(["u", "v", "w"], n, p=[0.4, 0.35, 0.25]),
    }
    for name in ("age", "grade", "home", "sex"):
        frame[name] = np.where(rng.random(n) < 0.1, "", frame[name])
    return pl.DataFrame(frame)


def policy(method: registry.Method, parameters: dict, **changes) -> Policy:
    return Policy.from_dict(POLICY | changes).with_method(method.name, parameters)


def leaks(method: registry.Method, parameters: dict) -> bool:
    return method.name in LEAKS or parameters.get("arrivals") == "any"


@pytest.mark.parametrize(
    ("method", "parameters"), long_where(lambda v: v[1] != {}, VARIANTS), ids=IDS
)
@pytest.mark.parametrize("seed", range(examples(1, 3)))
def test_every_release_keeps_every_promise_and_so_does_the_history(
    tmp_path, method, parameters, seed
):
    ledger, asked = tmp_path / "L", policy(method, parameters)
    accepted = 0
    for step, n in enumerate((40, 2, 25, 17)):
        before = contents(ledger)
        done = append(
            ledger, increment(n, 100 * seed + step), asked, allow_leaks=leaks(method, parameters)
        )
        accepted += n
        assert {p: c for p, c in contents(ledger).items() if p in before} == before, (
            "what is published stays"
        )
        if done.certificate is not None:
            assert done.certificate.extended(history=None).holds
            assert done.certificate.holds or leaks(method, parameters)
            assert done.certificate["faults"] == {"uncovered": 0, "changed": 0}
    found = audit_ledger(ledger)
    assert all(r.certificate.holds for r in found.releases)
    assert found.holds or leaks(method, parameters)
    shown = [r.certificate["records"]["out"] for r in found.releases]
    published = sum(shown if method.implementation.covers == "increment" else shown[-1:])
    assert published + done.waiting >= accepted, "nobody is lost; invented records may come on top"


def contents(ledger: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in ledger.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "method", [m for m in METHODS if not returns_people(m.implementation)], ids=lambda m: m.name
)
def test_a_release_that_breaks_the_history_is_withheld_and_nothing_is_left_of_it(tmp_path, method):
    """Whatever a method does, nothing is published before the audit."""
    ledger, asked = tmp_path / "L", policy(method, {})
    append(ledger, increment(40, 1), asked)
    before = contents(ledger), contents(ledger.with_name("L.private"))
    again = increment(30, 2)
    if method.implementation.covers == "increment" or not leaks(method, {}):
        again = pl.concat([again, increment(40, 1).head(2)])
    with pytest.raises(PromiseError):
        append(ledger, again, asked)
    assert (contents(ledger), contents(ledger.with_name("L.private"))) == before


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_the_same_increments_give_the_same_bytes_in_any_row_order(tmp_path, method):
    asked, allow_leaks = policy(method, {}), leaks(method, {})
    for name in "AB":
        for seed in (1, 2):
            frame = increment(30, seed)[:: 1 if name == "A" else -1]
            append(tmp_path / name, frame, asked, allow_leaks=allow_leaks)
    for release in ("0001", "0002"):
        a, b = (tmp_path / name / release / "data.csv" for name in "AB")
        assert a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_deletions_are_done_or_refused(tmp_path, method):
    attributes = POLICY["attributes"] | {"change": {"role": "operation"}}
    asked = policy(method, {}, attributes=attributes)
    ledger = tmp_path / "L"
    append(ledger, increment(60, 1).with_columns(change=pl.lit("insert")), asked)
    leaving = increment(60, 1).head(4).with_columns(change=pl.lit("delete"))
    more = pl.concat([increment(40, 2).with_columns(change=pl.lit("insert")), leaving])
    if method.implementation.changes:
        assert append(ledger, more, asked).release == 2
        assert audit_ledger(ledger).holds
    else:
        with pytest.raises(Exception, match="it can only add people") as refused:
            append(ledger, more, asked)
        assert refused.value.exit_status == 2


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_infeasible_promises_wait_and_are_reported(tmp_path, method):
    strict = [*POLICY["promises"], {"model": "l-diversity", "attribute": "ill", "l": 5}]
    done = append(tmp_path / "L", increment(40, 1), policy(method, {}, promises=strict))
    assert done.release is None
    assert done.reasons
    assert done.waiting == 40


@pytest.mark.parametrize("name", TABLE_METHODS)
def test_a_view_offers_every_method_for_tables(name):
    """By the names that `by` and `cluster` take."""
    matrix = Matrix.from_columns(np.arange(12.0)[:, None], [11.0])
    placed = Static1(by=name).publish(
        matrix, LedgerView(partition=partition_table), OnlyK(matrix, 3), np.random.default_rng(0)
    )
    assert np.bincount(placed.labels).min() >= 3
