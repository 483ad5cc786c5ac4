"""t-closeness in a ledger: compared with the release, or with the whole table as of it."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from republish_cases import POLICY, append, grown, wearers
from shoal.attacks.run.attack import audit_ledger
from shoal.policy.policy import Policy


def asked(
    t: float, reference: str | None = None, method: str = "crp", beat: bool = False, **changes
) -> Policy:
    shown = {} if reference is None else {"reference": reference}
    attributes = POLICY["attributes"] | {"beat": {"role": "sensitive", "type": "number"}}
    names = ["activity", "beat"] if beat else ["activity"]
    promises = [*POLICY["promises"], {"model": "t-closeness", "attributes": names, "t": t, **shown}]
    content = {**POLICY, "attributes": attributes, "promises": promises} | changes
    return Policy.from_dict(content).with_method(method, {})


def doing(n: int, seed: int, *activities: str) -> pl.DataFrame:
    return wearers(n, seed).with_columns(
        activity=pl.Series([activities[i % len(activities)] for i in range(n)])
    )


def farthest(ledger: Path, release: int, name: str, ordered: bool) -> float:
    """In the files, the greatest distance of an increment's class from the table as of it."""
    parts = [pl.read_csv(ledger / f"{r:04d}" / "data.csv") for r in range(1, release + 1)]
    values = sorted(set(pl.concat(parts)[name]))

    def shares(frame: pl.DataFrame) -> np.ndarray:
        return np.array([(frame[name] == value).sum() for value in values]) / frame.height

    whole = shares(pl.concat(parts))
    distances = []
    for _, members in parts[-1].group_by("age", "height", "sex"):
        apart = shares(members) - whole
        distances.append(
            np.abs(apart.cumsum()).sum() / (len(values) - 1) if ordered else np.abs(apart).sum() / 2
        )
    return max(distances)


@pytest.mark.parametrize("reference", ["release", "table"])
def test_an_increment_of_one_value_is_close_to_itself_and_far_from_the_table(tmp_path, reference):
    policy = asked(0.3, reference)
    append(tmp_path / "L", doing(40, 1, "walk", "sit"), policy)
    done = append(tmp_path / "L", doing(40, 2, "walk"), policy)
    if reference == "release":
        assert done.certificate["promises"][1]["measured"] == 0
    else:
        # with all 40 more there are 60 of 80 who walk: a quarter away, and classes can't be closer
        assert done.certificate["promises"][1] == {
            "model": "t-closeness",
            "attributes": ["activity"],
            "reference": "table",
            "asked": 0.3,
            "measured": 0.25,
            "holds": True,
        }
        waits = append(tmp_path / "L", doing(40, 3, "stand"), policy)
        assert (waits.release, waits.waiting) == (None, 40)
        assert "t-closeness" in waits.reasons[0]
    assert audit_ledger(tmp_path / "L").holds


@pytest.mark.parametrize("method", ["crp", "static-1"])
def test_what_is_measured_is_the_distance_from_all_that_is_published(tmp_path, method):
    ledger, policy = tmp_path / "L", asked(0.4, "table", method, beat=True)
    for seed in (1, 2, 3):
        promise = append(ledger, wearers(60, seed), policy).certificate["promises"][1]
        wanted = max(
            farthest(ledger, seed, "activity", False), farthest(ledger, seed, "beat", True)
        )
        assert promise["measured"] == pytest.approx(wanted, abs=1e-12)
    found = audit_ledger(ledger)
    assert found.holds
    assert not audit_ledger(ledger.rename(tmp_path / "public")).knows_people, (
        "without the private part, too"
    )


def test_a_table_that_is_published_anew_is_compared_with_itself(tmp_path):
    for reference in ("release", "table"):
        grown(tmp_path / reference, 2, 60, asked(0.4, reference, "k-pprp"))
    a, b = (pl.read_csv(tmp_path / name / "0002" / "data.csv") for name in ("release", "table"))
    assert a.equals(b)


def test_a_person_counts_once_for_each_value(tmp_path):
    """Everybody's record comes three times; the table is as it was."""
    policy = asked(0.5, "table")
    measured = []
    for name, times in (("once", 1), ("thrice", 3)):
        for seed in (1, 2):
            frame = pl.concat([doing(40, seed, "walk", "sit", "lie")] * times)
            done = append(tmp_path / name, frame, policy)
        measured.append(done.certificate["promises"][1]["measured"])
    assert measured[0] == pytest.approx(measured[1])


def test_who_is_suppressed_is_not_in_the_table(tmp_path):
    policy = asked(0.5, "table", missing="suppress")
    frame = doing(40, 1, "walk", "sit").with_columns(age=pl.col("age").cast(pl.String))
    hidden = doing(40, 7, "lie").with_columns(age=pl.lit(""))
    append(tmp_path / "L", pl.concat([frame, hidden]), policy)
    done = append(tmp_path / "L", doing(40, 2, "walk", "sit"), policy)
    assert done.certificate["promises"][1]["measured"] <= 0.5
    assert done.certificate["classes"]["count"] > 1
    assert audit_ledger(tmp_path / "L").holds


def test_published_once_the_table_is_the_release():
    frame = wearers(60, 1)
    same = [
        shoal.publish(frame, asked(0.3, reference, "rounded-partition"))
        for reference in ("release", "table")
    ]
    assert same[0].data.equals(same[1].data)


@pytest.mark.parametrize(
    "settings", [{"reference": "union"}, {"reference": "table", "joint": True}]
)
def test_references_that_can_not_be_are_refused(settings):
    promise = {"model": "t-closeness", "attributes": ["activity", "beat"], "t": 0.3, **settings}
    with pytest.raises(shoal.InputError, match="t-closeness"):
        Policy.from_dict({**POLICY, "promises": [promise]})


def altered(path: Path, old: bytes, new: bytes) -> None:
    path.write_bytes(path.read_bytes().replace(old, new))


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


DAMAGES = {
    "values": lambda ledger: altered(ledger / "0001" / "data.csv", b"sit", b"walk"),
    "rows": lambda ledger: cut_off(ledger / "0001" / "data.csv"),
    "people": lambda ledger: cut_off(ledger.parent / "L.private" / "000001" / "rows.parquet"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_nothing_is_compared_with_a_table_that_was_changed(tmp_path, damage):
    """A third from the true table; a sixth from one in which the first 20 walk, too."""
    ledger, policy = tmp_path / "L", asked(0.3, "table")
    for seed in (1, 2):
        append(ledger, doing(40, seed, "walk", "sit"), policy)
    DAMAGES[damage](ledger)
    with pytest.raises(shoal.LedgerError, match="is damaged"):
        append(ledger, doing(40, 3, "walk"), policy)
    assert not (ledger / "0003").exists()
