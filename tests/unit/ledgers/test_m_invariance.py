"""m-invariance: whoever compares releases finds at least m sensitive values for everybody."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from republish_cases import POLICY, append, wearers
from shoal.attacks.run.attack import audit_ledger
from shoal.auditor.ledger.history import LedgerHistory
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.private import Identities
from shoal.errors import InfeasibleError, InputError, PromiseError
from shoal.ledgers.kernels.exchange_values import ALONE, CROWDING, exchange
from shoal.ledgers.methods.m_invariance import _assign
from shoal.policy.policy import Policy
from thorough import examples

QUASI = ["age", "height", "sex"]


REFINE = ("none", "exchange", "regroup")


def policy(k: int = 4, m: int = 2, refine: str = "none", **more: object) -> Policy:
    content = json.loads(json.dumps(POLICY)) | more
    content["attributes"]["beat"] = {"role": "drop"}
    content["attributes"]["change"] = {"role": "operation"}
    return (
        Policy.from_dict(content).with_k(k).with_method("m-invariance", {"m": m, "refine": refine})
    )


def change(frame: pl.DataFrame, operation: str) -> pl.DataFrame:
    return frame.with_columns(change=pl.lit(operation))


def changes(**frames: pl.DataFrame) -> pl.DataFrame:
    """An increment: what is deleted, updated and inserted."""
    return pl.concat([change(frame, operation) for operation, frame in frames.items()])


def begun(folder: Path, n: int, **more) -> tuple[Path, pl.DataFrame]:
    """A ledger that has published n people, and these."""
    append(folder / "L", change(wearers(n, 1), "insert"), policy(**more))
    return folder / "L", wearers(n, 1)


def by_class(ledger: Path, release: int) -> tuple[dict[tuple, Counter], dict[int, tuple]]:
    """What each class shows, and the class of each real record; nothing of Shoal's audit."""
    frame = pl.read_csv(ledger / f"{release:04d}" / "data.csv", infer_schema=False)
    shown: dict[tuple, Counter] = {}
    for row in frame.to_dicts():
        shown.setdefault(tuple(row[name] for name in QUASI), Counter())[row["activity"]] += 1
    records = Identities.read(Ledger.at(ledger).step_of(release)).records.tolist()
    cells = frame.select(QUASI).rows()
    return shown, {record: cells[i] for i, record in enumerate(records) if record >= 0}


def candidates(ledger: Path) -> dict[int, set[str]]:
    """The values that all classes of each record have in common, over all releases."""
    left: dict[int, set[str]] = {}
    for release in Ledger.at(ledger).releases():
        shown, classes = by_class(ledger, release)
        for record, cells in classes.items():
            left[record] = left.get(record, set(shown[cells])) & set(shown[cells])
    return left


@settings(max_examples=examples(3, 12), suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1000), st.integers(2, 3), st.integers(2, 5), st.sampled_from(REFINE))
def test_everybody_keeps_m_values_while_people_come_leave_and_change(
    tmp_path_factory, seed, m, k, refine
):
    ledger, rng = tmp_path_factory.mktemp("m") / "L", np.random.default_rng(seed)
    asked = policy(k, m, refine)
    present = wearers(120, 10 * seed)
    append(ledger, change(present, "insert"), asked)
    for step in (1, 2):
        gone = present.sample(int(rng.integers(1, 25)), seed=step)
        stays = present.filter(~present["who"].is_in(gone["who"].to_list()))
        older = stays.sample(8, seed=step).with_columns(pl.col("age") + 1)
        new = wearers(int(rng.integers(5, 40)), 10 * seed + step)
        try:
            append(ledger, changes(delete=gone, update=older, insert=new), asked)
        except InfeasibleError:
            break  # too few stayed of one signature: refused, and said so
        present = pl.concat([stays.filter(~stays["who"].is_in(older["who"].to_list())), older, new])
    assert all(len(values) >= m for values in candidates(ledger).values())
    for release in Ledger.at(ledger).releases():
        shown, classes = by_class(ledger, release)
        assert all(max(values.values()) * m <= values.total() for values in shown.values())
        assert min(Counter(classes.values()).values()) >= k, "invented rows do not count"
    assert audit_ledger(ledger).holds


def test_without_the_private_part_boxes_fail_nothing_and_the_audit_says_what_is_open(
    tmp_path, shoal
):
    ledger, first = begun(tmp_path, 300)
    for month in (2, 3):
        gone = first.slice(20 * month, 10)
        append(ledger, changes(delete=gone, insert=wearers(30, month)), policy())
    assert shoal("audit", "--ledger", ledger).err.endswith("history: holds\n")
    ledger.with_name("L.private").rename(tmp_path / "elsewhere")
    audited = shoal("audit", "--ledger", ledger, status=0)
    assert "who is in which class of several releases was not judged" in audited.err
    assert audited.err.endswith("history: holds as far as the published files show\n")
    for release in audit_ledger(ledger).releases[1:]:
        found = {one.check: one.people for one in release.findings}
        assert found.pop("signatures") is None
        assert 0 < found["boxes"] <= release.certificate["records"]["out"]


def test_counterfeits_are_published_as_counts_and_fill_what_those_who_left_leave_open(tmp_path):
    ledger, frame = begun(tmp_path, 80)
    assert pl.read_csv(ledger / "0001" / "counterfeits.csv").height == 0, (
        "nothing has to be filled at first"
    )
    walkers = frame.filter(pl.col("activity") == "walk").head(5)
    done = append(ledger, change(walkers, "delete"), policy())
    counted = pl.read_csv(ledger / "0002" / "counterfeits.csv", infer_schema=False)
    stated = done.certificate["counterfeits"]
    assert stated["records"] == counted["counterfeits"].cast(int).sum() > 0
    identities = Identities.read(Ledger.at(ledger).step_of(2))
    assert stated["records"] == int((~identities.is_real).sum())
    shown, _ = by_class(ledger, 2)
    assert {tuple(row[name] for name in QUASI) for row in counted.to_dicts()} <= set(shown)


def test_new_records_take_the_place_of_counterfeits(tmp_path):
    ledger, frame = begun(tmp_path, 80)
    walkers = frame.filter(pl.col("activity") == "walk").head(3)
    new = wearers(40, 2).filter(pl.col("activity") == "walk")
    done = append(ledger, changes(delete=walkers, insert=new), policy())
    assert done.certificate["counterfeits"]["records"] == 0


FEW = wearers(60, 1).head(2)
FLYING = pl.concat([FEW.head(1), FEW.tail(1).with_columns(activity=pl.lit("fly"))])


@pytest.mark.parametrize(
    ("increment", "words"),
    [
        (
            change(wearers(3, 2), "delete"),
            r"updates or deletions of people who are not in the table: 3 \(rows 1, 2, 3\); correct",
        ),
        (
            change(FEW, "insert"),
            r"in earlier releases: 2 \(rows 1, 2\);.* of somebody who is in the table as",
        ),
        (change(FLYING, "update"), r"updates of the sensitive value to one .*: 1 \(row 2\)"),
        (
            change(wearers(3, 2), "upsert"),
            r"whose operation is not insert, update or delete: 3 \(rows 1, 2, 3\)",
        ),
    ],
    ids=["strangers leave", "twice", "outside the signature", "a fourth operation"],
)
def test_what_can_not_be_is_refused_and_changes_nothing(tmp_path, increment, words):
    ledger, _ = begun(tmp_path, 60)
    with pytest.raises((InputError, PromiseError), match=words):
        append(ledger, increment, policy())
    assert Ledger.at(ledger).releases() == [1]
    assert Ledger.at(ledger).verify() == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"activity": "fly"}, r"to one that the person's class did not show: 1 \(row 2\)"),
        ({"age": "999"}, r"attribute 'age': 1 record .* \(row 2\)"),
    ],
)
def test_what_is_wrong_beside_a_deletion_is_said_and_not_the_deletion(tmp_path, wrong, words):
    """Whoever obeyed left the deletion out, and deleted nobody."""
    asked = policy(missing="reject")
    append(tmp_path / "L", change(wearers(24, 1), "insert"), asked)
    people = wearers(24, 1).cast(pl.String)
    gone = people[3:4].with_columns(pl.all().exclude("who").shift())
    bad = people[5:6].with_columns(**{name: pl.lit(value) for name, value in wrong.items()})
    with pytest.raises(InputError, match=words) as refused:
        append(tmp_path / "L", changes(delete=gone, update=bad), asked)
    assert "row 1" not in str(refused.value.said)


def test_the_command_says_how_many_rows_are_invented_and_how_many_people_were_deleted(
    folder, shoal
):
    policy().save("p.yaml")
    run = ("republish", "i.csv", "-p", "p.yaml", "--ledger", "L")
    frame = wearers(80, 1)
    change(frame, "insert").write_csv("i.csv")
    first = shoal(*run, status=0)
    assert "\n0 of these rows are invented\n" in first.err
    assert "deleted" not in first.err
    header = Path("L/0001/data.csv").read_text().splitlines()[0]
    change(frame.filter(pl.col("activity") == "walk").head(5), "delete").write_csv("i.csv")
    second = shoal(*run)
    invented = json.loads(Path("L/0002/certificate.json").read_text())["counterfeits"]["records"]
    assert invented > 1
    assert f"\n{invented} of these rows are invented\n" in second.err
    said = f"{invented} of these rows are invented: L/0002/counterfeits.csv says in which classes"
    assert said in shoal("ledger", "export", "L", "-o", "t.csv").err
    assert "invented" not in shoal("ledger", "export", "L", "-o", "u.csv", "--release", "1").err
    for stated in (first, second):
        assert "may all have the same value" not in stated.err, "a signature has m values"
    assert "\n5 people were deleted\n" in second.err
    left = frame.filter(pl.col("activity") != "walk")
    subject = policy().subject
    gone, moved = left.head(2), left.tail(1)
    (change(gone, "delete").select("change", subject).write_csv("i.csv"))
    third = shoal(*run, status=0)
    change(left.tail(2), "delete").select("change", subject).write_csv("i.csv")
    asked = json.loads(shoal(*run, "--what-if", "--json", "-q").out)
    assert {one["method"]: one["outcome"] for one in asked}["m-invariance"] == "published"
    change(left.tail(2), "Delete").select("change", subject).write_csv("i.csv")
    for more in ((), ("--what-if",)):
        wrong = shoal(*run, *more)
        said = "not insert, update or delete: 2 (rows 1, 2)"
        assert (wrong.status, said in wrong.err) == (2, True), wrong.err
    assert "\n2 people were deleted\n" in third.err
    assert Path("L/0003/data.csv").read_text().splitlines()[0] == header
    change(moved, "update").write_csv("i.csv")
    assert "\n1 person was updated\n" in shoal(*run).err
    change(gone, "delete").select("change").write_csv("i.csv")
    assert shoal(*run).status == 2


def test_signatures_have_as_many_values_as_l_diversity_asks_for(tmp_path):
    content = json.loads(json.dumps(POLICY))
    content["attributes"] |= {"beat": {"role": "drop"}, "change": {"role": "operation"}}
    promise = {"model": "l-diversity", "attribute": "activity", "l": 3}
    content["promises"] = [{"model": "k-anonymity", "k": 3}, promise]
    content.pop("method", None)
    for named in ({}, {"method": {"name": "m-invariance"}}):
        ledger = tmp_path / f"L{len(named)}"
        asked = Policy.from_dict(content | named)
        done = append(ledger, change(wearers(80, 1), "insert"), asked)
        assert done.certificate["method"]["parameters"]["m"] == 3
        assert done.certificate.holds


def test_a_quiet_audit_says_what_does_not_hold(folder, shoal):
    append(Path("L"), change(wearers(80, 1), "insert"), policy())
    assert shoal("audit", "--ledger", "L", "-q").err == ""
    policy().save("p.yaml")
    data = Path("L/0001/data.csv")
    one = shoal("audit", str(data), "-p", "p.yaml")
    assert "to count people, run 'shoal audit --ledger L'" in one.err
    data.write_text(data.read_text().replace("walk", "rest", 1))
    assert shoal("audit", "--ledger", "L", "-q", status=1).err.count("DOES NOT HOLD") > 0


def test_who_left_does_not_come_back(tmp_path):
    ledger, frame = begun(tmp_path, 60)
    append(ledger, changes(delete=frame.head(2), insert=wearers(30, 2)), policy())
    with pytest.raises(PromiseError, match="in earlier releases"):
        append(ledger, change(frame.head(2), "insert"), policy())


def test_somebody_who_waits_may_leave(tmp_path):
    ledger, both = begun(tmp_path, 2)
    done = append(ledger, changes(delete=both.head(1), insert=wearers(60, 2)), policy())
    assert done.certificate["subjects"] + done.waiting == 61


def test_too_few_who_stay_are_reported_and_nothing_is_published(tmp_path):
    ledger, frame = begun(tmp_path, 60, k=10)
    leaving = change(frame.head(57), "delete")
    with pytest.raises(InfeasibleError):
        append(ledger, leaving, policy(k=10))
    assert Ledger.at(ledger).releases() == [1]


def test_a_person_whom_no_class_takes_waits_and_the_table_is_not_published_again(tmp_path):
    ledger, shown, waited = tmp_path / "L", 0, 0
    for seed in range(8):
        done = append(ledger, change(wearers(60 if seed == 0 else 1, seed), "insert"), policy())
        if done.release is None:
            waited += 1
            assert done.waiting
            assert "no class has room" in done.reasons[0]
        else:
            assert done.certificate["records"]["out"] > shown, "a release shows somebody new"
            shown = done.certificate["records"]["out"]
    assert waited
    assert audit_ledger(ledger).holds


NO_ANSWER = ["", "refused"]


def silent(n: int, seed: int) -> pl.DataFrame:
    """Of every four people, one did not answer and one refused to."""
    answers = pl.Series("activity", ["", "refused", "walk", "sit"] * (n // 4))
    return wearers(n, seed).with_columns(answers)


def test_nobody_hides_among_those_who_did_not_answer_in_another_way(tmp_path):
    """Two texts for no value are one value: a class of both would show no value of anybody."""
    ledger = tmp_path / "L"
    for n, seed in ((80, 1), (40, 2)):
        append(ledger, change(silent(n, seed), "insert"), policy(missing_values=NO_ANSWER))
    for release in (1, 2):
        shown, _ = by_class(ledger, release)
        for values in shown.values():
            absent = [v for v in values if v in (None, *NO_ANSWER)]
            assert len(absent) <= 1
            assert len(values) >= 2
    assert audit_ledger(ledger).holds


def test_a_class_of_missing_texts_alone_is_found_by_the_audit(tmp_path):
    """The same ledger as if each text were a value: of m = 2, one is left."""
    ledger = tmp_path / "L"
    append(ledger, change(silent(80, 1), "insert"), policy())
    assert audit_ledger(ledger).holds
    frame = pl.read_csv(ledger / "0001" / "data.csv", infer_schema=False)
    history = LedgerHistory(Ledger.at(ledger), policy(missing_values=NO_ANSWER), last_table=1)
    broken = [f.check for f in history.audit(1).violations]
    classes = frame.group_by(QUASI).agg("activity")["activity"].to_list()
    assert {frozenset(v or "" for v in rows) for rows in classes} >= {frozenset(NO_ANSWER)}
    assert broken == ["frequencies"]


def test_buckets_take_the_commoner_of_two_texts_for_no_value():
    waiting = {0: list(range(5)), 1: list(range(10, 14)), 2: list(range(20, 22))}
    buckets: dict = {}
    _assign(buckets, waiting, 2, 1, frozenset({0, 1}))
    assert {s: bucket.records for s, bucket in buckets.items()} == {
        (0, 2): {0: [0, 1], 2: [20, 21]}
    }
    assert waiting == {0: [2, 3, 4], 1: [10, 11, 12, 13], 2: []}


def test_exchanges_lose_less_and_invent_nobody(tmp_path):
    """Adding other values to choose from loses less again."""
    lost = []
    for refine in REFINE:
        done = append(tmp_path / refine, change(wearers(200, 2), "insert"), policy(2, 2, refine))
        assert done.certificate["counterfeits"]["records"] == 0
        assert done.certificate["records"]["out"] == 200
        lost.append(done.certificate["utility"]["squared_error"])
    assert lost[0] > lost[1] > lost[2]


def squared_error(points: np.ndarray, labels: np.ndarray) -> float:
    members = [points[labels == c] for c in np.unique(labels)]
    return sum(float(((rows - rows.mean(axis=0)) ** 2).sum()) for rows in members)


def shown_by(given: dict[str, np.ndarray], labels: np.ndarray) -> list[Counter]:
    classes = range(len(given["may_regroup"]))
    return [Counter(given["values"][labels == c].tolist()) for c in classes]


def crowding(shown: list[Counter]) -> float:
    """The sum of log n over all classes, the n-th of their signatures; the first is ALONE."""
    crowds = Counter(frozenset(values) for values in shown)
    return sum(math.log(ALONE) + math.lgamma(n + 1) for n in crowds.values())


def classes_of_four_values(seed: int) -> dict[str, np.ndarray]:
    """Random classes of three signatures, one or two records of each of two values."""
    rng = np.random.default_rng(seed)
    values, labels, stays, signatures, may_regroup = [], [], [], [], []
    for signature in [np.sort(rng.choice(4, 2, replace=False)) for _ in range(3)]:
        for _ in range(3):
            rows = int(rng.integers(1, 3))
            values += [v for v in signature for _ in range(rows)]
            labels += [len(signatures)] * (2 * rows)
            stays += (rng.random(2 * rows) < 0.3).tolist()
            may_regroup.append(rows == 1 and rng.random() < 0.8)
            signatures.append(signature)
    return {
        "points": rng.integers(0, 10, (len(values), 2)).astype(float),
        "values": np.array(values, dtype=np.int32),
        "labels": np.array(labels, dtype=np.int32),
        "stays": np.array(stays),
        "signatures": np.array(signatures, dtype=np.int32),
        "may_regroup": np.array(may_regroup),
    }


def keeps_promises(
    given: dict[str, np.ndarray], before: np.ndarray, after: np.ndarray, own: np.ndarray
) -> bool:
    """Whether those who stay see the values that they saw at first, and classes hold each value as
    often as before, or two others once each if they may and held nobody who stays.

    own: the class at first of each record.
    """
    at_first, was, shown = (shown_by(given, labels) for labels in (own, before, after))
    for c, may_regroup in enumerate(given["may_regroup"]):
        is_open = may_regroup and not given["stays"][before == c].any()
        if was[c] != shown[c] and not (is_open and sorted(shown[c].values()) == [1, 1]):
            return False
    return all(
        set(shown[after[i]]) == set(at_first[own[i]]) for i in np.flatnonzero(given["stays"])
    )


@given(st.integers(0, 100_000))
def test_no_exchange_that_keeps_the_promises_is_left_that_loses_less(seed):
    """Less squared error, or more classes of one signature at the price of some."""
    given_arrays = classes_of_four_values(seed)
    found = {name: array.copy() for name, array in given_arrays.items()}
    exchange(*found.values())
    own, labels, points = given_arrays["labels"], found["labels"], found["points"]
    price = CROWDING * squared_error(points, own) / len(found["signatures"])

    def lost(labels: np.ndarray) -> float:
        return squared_error(points, labels) - price * crowding(shown_by(found, labels))

    for c, values in enumerate(shown_by(found, labels)):
        assert sorted(values) == sorted(found["signatures"][c].tolist())
        assert set(values.values()) == set(shown_by(found, own)[c].values())
    assert keeps_promises(found, labels, labels, own)
    least = lost(labels)
    assert least <= lost(own) + 1e-6
    for i in range(len(labels)):
        for j in range(i):
            other = labels.copy()
            other[[i, j]] = other[[j, i]]
            loses_less = lost(other) < least - 1e-6 * (1 + squared_error(points, labels))
            assert not (loses_less and keeps_promises(found, labels, other, own))
