"""Ledgers of people who come again: what is published of whom, refused, and remembered."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from republish_cases import POLICY, append, wearers
from republish_cases import policy as of_wearers
from sample_policies import content_of
from shoal.attacks.run.attack import audit_ledger
from shoal.connectors.ledger import DATA, Ledger
from shoal.connectors.ledger.private import Identities
from shoal.errors import InputError, PromiseError
from shoal.ledgers.methods import sticky
from shoal.policy.policy import Policy
from shoal.reports.history import write_history_report
from shoal.reports.in_short import ledger_in_short
from sticky_cases import policy
from thorough import examples


def begun(folder: Path, n: int, *mode: str, **more: object) -> tuple[Path, Policy]:
    """A ledger that has published n people, and its policy."""
    asked = policy(*mode, k=3, **more)
    append(folder / "L", wearers(n, 1), asked)
    return folder / "L", asked


def later(frame: pl.DataFrame, seed: int, values: str = "new") -> pl.DataFrame:
    """The same people, a little older; with other values unless these are to stay."""
    rng = np.random.default_rng(seed)
    moved = frame.with_columns(age=pl.Series(rng.integers(15, 80, frame.height)))
    if values == "new":
        moved = moved.with_columns(activity=pl.Series(rng.choice(["walk", "sit"], frame.height)))
    return moved


def cells(ledger: Path, release: int) -> pl.DataFrame:
    frame = pl.read_csv(ledger / f"{release:04d}" / DATA, infer_schema=False)
    own = Identities.read(Ledger.at(ledger).step_of(release))
    return frame.with_columns(person=pl.Series(own.subjects), record=pl.Series(own.records))


def test_everybody_is_published_again_with_the_same_group(tmp_path):
    ledger, asked = begun(tmp_path, 30)
    done = append(ledger, later(wearers(30, 1), 5), asked)
    never = dict.fromkeys("founded waiting superseded withheld retired closed carried".split(), 0)
    rounds = done.certificate["classes"]["count"]
    assert done.certificate["panel"] == never | {"mode": "lockstep", "people": 30, "rounds": rounds}
    quasi = ["age", "height", "sex"]
    first, second = (cells(ledger, release).sort("person") for release in (1, 2))
    assert first["record"].equals(second["record"]), "the same number in every release"
    pairs = set(zip(first.select(quasi).rows(), second.select(quasi).rows(), strict=True))
    assert len(pairs) == first.select(quasi).n_unique() == second.select(quasi).n_unique()
    least = done.certificate["classes"]["min"]
    assert done.certificate["risk"]["at_least_once"] == pytest.approx(1 - (1 - 1 / least) ** 2)
    found = audit_ledger(ledger)
    assert found.holds
    assert found.releases[1].certificate["risk"] == done.certificate["risk"]
    assert done.certificate["history"]["findings"] == [
        finding.report() for finding in found.releases[1].findings
    ]


def test_the_newer_record_replaces_the_one_that_waits(tmp_path):
    ledger, asked = begun(tmp_path, 12)
    assert append(ledger, later(wearers(12, 1), 2).tail(7), asked).release is None
    done = append(ledger, later(wearers(12, 1), 3), asked)
    assert done.certificate["panel"]["superseded"] == 7
    assert done.certificate["records"]["out"] == 12


def test_patience_counts_increments_that_led_to_no_release(tmp_path):
    """Two are absent for ever: in the third increment one follows them, the rest goes on."""
    ledger, asked = begun(tmp_path, 12, size=12)
    for seed in (2, 3):
        assert append(ledger, later(wearers(12, 1), seed).head(10), asked).release is None
    done = append(ledger, later(wearers(12, 1), 4).head(10), asked)
    assert done.release == 2
    assert done.certificate["records"]["out"] == 9
    assert done.certificate["panel"]["retired"] == 3
    assert done.certificate["panel"]["withheld"] == 1
    again = append(ledger, later(wearers(12, 1), 5), asked)
    assert again.certificate["panel"]["withheld"] == 3
    assert audit_ledger(ledger).holds


def test_members_may_miss_a_release_where_values_are_fresh(tmp_path):
    ledger, asked = begun(tmp_path, 12, "together", size=12)
    done = append(ledger, later(wearers(12, 1), 2).head(9), asked)
    assert (done.certificate["guards"], done.certificate["records"]["out"]) == ("company", 9)
    checks = {f["check"]: f for f in done.certificate["history"]["findings"]}
    assert checks["atoms"]["least"] == 3
    assert checks["company"]["least"] == 9
    assert audit_ledger(ledger).holds


def test_values_that_stay_are_carried_for_the_absent(tmp_path):
    ledger, asked = begun(tmp_path, 12, "carried", size=12)
    again = later(wearers(12, 1), 2, "same").head(8)
    changed = again.with_columns(
        activity=pl.when(pl.arange(pl.len()) == 0).then(pl.lit("run")).otherwise("activity")
    )
    stated = append(ledger, changed, asked).certificate["panel"]
    assert (stated["carried"], stated["withheld"]) == (5, 1), "four are absent, one changed"
    first, second = (cells(ledger, release).sort("person") for release in (1, 2))
    assert first["activity"].equals(second["activity"])
    ages = changed["age"][1:]
    assert second["age"].unique().to_list() == [f"[{ages.min()}, {ages.max()}]"]
    assert audit_ledger(ledger).holds


@pytest.mark.parametrize("mode", ["lockstep", "together", "carried"])
def test_groups_that_break_a_promise_are_united(tmp_path, mode):
    diverse = {"model": "l-diversity", "attribute": "activity", "l": 3}
    ledger, asked = tmp_path / "L", policy(mode, k=3, promises=[diverse])
    first = append(ledger, wearers(40, 1), asked)
    same = "same" if mode == "carried" else "new"
    again = later(wearers(40, 1), 2, same)
    if mode != "carried":  # few show anything but one value
        rest = pl.when(pl.arange(pl.len()) % 7 == 0).then("activity").otherwise(pl.lit("lie"))
        again = again.with_columns(activity=rest)
    done = append(ledger, again, asked)
    assert done.certificate.holds
    if mode != "carried":
        assert done.certificate["classes"]["count"] < done.certificate["panel"]["rounds"]
        assert done.certificate["panel"]["rounds"] == first.certificate["panel"]["founded"]
    assert audit_ledger(ledger).holds


# The theorem


@pytest.mark.parametrize("mode", ["lockstep", "carried"])
@pytest.mark.parametrize("seed", range(examples(1, 2)))
def test_permuted_trajectories_give_the_same_bytes(tmp_path, mode, seed):
    """Whole trajectories change hands among people of one history, also where many are alike."""
    rng = np.random.default_rng(seed)
    asked, n, increments = policy(mode, k=3, size=5, patience=1), 24, 5
    frames = []
    for t in range(increments):
        name = [f"w{i}" + ("" if mode == "carried" else f" {t}") for i in range(n)]
        columns = {
            "who": [f"p{i:02d}" for i in range(n)],
            "age": rng.integers(40, 44, n),
            "height": [170] * n,
            "sex": ["f"] * n,
            "activity": name,
            "beat": [60] * n,
        }
        here = rng.random(n) < (0.97 if mode == "lockstep" else 0.8)
        frames.append(pl.DataFrame(columns).filter(pl.Series(here)))
    for frame in frames:
        append(tmp_path / "A", frame, asked)
    swapped = permuted(tmp_path / "A", frames, rng)
    assert any(not a.equals(b) for a, b in zip(frames, swapped, strict=True))
    for frame in swapped:
        append(tmp_path / "B", frame, asked)
    releases = Ledger.at(tmp_path / "A").releases()
    assert len(releases) > 2
    assert releases == Ledger.at(tmp_path / "B").releases()
    for release in releases:
        a, b = ((tmp_path / x / f"{release:04d}" / DATA).read_text() for x in "AB")
        assert sorted(a.splitlines()) == sorted(b.splitlines())


def permuted(ledger: Path, frames: list[pl.DataFrame], rng) -> list[pl.DataFrame]:
    """The same increments, where everybody shows what somebody of the same history showed."""
    history: dict[int, list] = {}
    shown: dict[int, list[str]] = {}
    token: dict[str, int] = {}  # by the number in the values that only this person shows
    for release in Ledger.at(ledger).releases():
        rows = cells(ledger, release).select("person", "age", "activity").iter_rows()
        for person, age, value in rows:
            history.setdefault(person, []).append((release, age))
            shown.setdefault(person, []).append(value)
            token[value.split()[0]] = person
    atoms: dict[tuple, list[int]] = {}
    for person, classes in history.items():
        atoms.setdefault(tuple(classes), []).append(person)
    becomes: dict[tuple[int | None, str], str] = {}
    for members in atoms.values():
        for person, i in zip(members, rng.permutation(len(members)).tolist(), strict=True):
            for own, other in zip(shown[person], shown[members[i]], strict=True):
                becomes[person, own] = other

    def shows(who: str, value: str) -> str:
        return becomes.get((token.get(f"w{int(who[1:])}"), value), value)

    rows = (
        [shows(*row) for row in frame.select("who", "activity").iter_rows()] for frame in frames
    )
    return [
        frame.with_columns(activity=pl.Series(own)) for frame, own in zip(frames, rows, strict=True)
    ]


# What is refused


def test_everybody_has_one_record_and_a_name(tmp_path):
    twice = pl.concat([wearers(12, 1), wearers(2, 1)]).with_columns(pl.col("who").cast(pl.String))
    nameless = wearers(1, 5).with_columns(who=pl.lit(None, dtype=pl.String))
    with pytest.raises(InputError) as refused:
        append(tmp_path / "L", pl.concat([twice, nameless]), policy(k=3))
    message = " ".join([str(refused.value), *refused.value.findings])
    assert "further records of people who have one already: 2" in message
    assert "records without a 'who': 1" in message
    assert not list(tmp_path.glob("L*"))


FRESH, STEADY = (
    {"activity": {"role": "sensitive", "over_time": how}} for how in ("fresh", "steady")
)
PLAIN = "the policy can't say how plain columns change over time"


@pytest.mark.parametrize(
    ("roles", "more", "message"),
    [
        ({}, {"missing": "suppress"}, "can't suppress records"),
        ({}, {"render": {"order": "input"}}, "rows in the input's order would show who is who"),
        ({**FRESH, "beat": "drop"}, {"other": "plain"}, PLAIN),
        (STEADY, {}, PLAIN),
        ({"who": "drop"}, {}, "needs a subject"),
    ],
)
def test_policies_under_which_people_can_not_return_are_refused(tmp_path, roles, more, message):
    content = content_of(POLICY["attributes"] | roles, 4, **more)
    with pytest.raises(InputError) as refused:
        append(tmp_path / "L", wearers(30, 1), Policy.from_dict(content).with_method("sticky", {}))
    assert message in " ".join([str(refused.value), *refused.value.findings])


def test_over_time_belongs_to_sensitive_attributes():
    age = POLICY["attributes"]["age"] | {"over_time": "steady"}
    with pytest.raises(InputError, match="'over_time' belongs to a sensitive attribute"):
        of_wearers(roles={"age": age})


def test_a_ledger_is_of_people_who_come_again_or_of_people_who_do_not(tmp_path):
    append(tmp_path / "A", wearers(30, 1), policy(k=3))
    once = policy(k=3).with_method("crp", {})
    with pytest.raises(InputError, match="the ledger's people come again"):
        append(tmp_path / "A", wearers(30, 2), once)
    append(tmp_path / "B", wearers(30, 1), once)
    with pytest.raises(
        InputError, match=r"begin another ledger .whoever is in both may be singled out"
    ):
        append(tmp_path / "B", wearers(30, 2), policy(k=3))


def test_a_release_that_breaks_the_history_is_withheld(tmp_path, monkeypatch):
    """Whatever the method does, nothing is published before the audit."""
    ledger, asked = begun(tmp_path, 12, "together", size=12)
    append(ledger, later(wearers(12, 1), 2).head(9), asked)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr(sticky, "in_company", lambda rounds, k: np.ones(len(rounds), dtype=bool))
    with pytest.raises(PromiseError, match="company: 2 people"):
        # two who were always there, and one who was not
        append(ledger, pl.concat([wearers(12, 1).head(2), wearers(12, 1).tail(1)]), asked)
    now = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    now.pop(tmp_path / "increment.csv"), before.pop(tmp_path / "increment.csv")
    assert now == before


# What is remembered


@pytest.mark.parametrize("name", ["members.parquet", "groups.parquet", "carried.parquet"])
def test_a_changed_panel_is_found_and_nothing_is_appended(tmp_path, name):
    ledger, asked = begun(tmp_path, 30, "carried")
    path = tmp_path / "L.private" / "000001" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert any(name in finding for finding in Ledger.at(ledger).verify())
    with pytest.raises(Exception, match=name):
        append(ledger, later(wearers(30, 1), 2, "same"), asked)


def test_only_the_last_panel_is_kept_and_names_nobody(tmp_path):
    ledger, asked = tmp_path / "L", policy("carried", k=3)
    append(ledger, wearers(30, 1, "PERSON"), asked)
    append(ledger, later(wearers(30, 1, "PERSON"), 2, "same"), asked)
    assert len(list((tmp_path / "L.private").rglob("members.parquet"))) == 1
    for path in [*tmp_path.glob("L/**/*"), *tmp_path.glob("L.private/**/*")]:
        assert not path.is_file() or b"PERSON" not in path.read_bytes(), path


def test_the_same_increments_give_the_same_bytes_in_any_row_order(tmp_path):
    """In ledgers with other keys: nothing follows the tokens."""
    for name, order in (("A", lambda f: f), ("B", lambda f: f.reverse())):
        alike = wearers(30, 1).with_columns(age=pl.lit(40), height=pl.lit(170), sex=pl.lit("f"))
        for frame in (alike, later(alike, 2)):
            append(tmp_path / name, order(frame), policy(k=3))
    for release in ("0001", "0002"):
        a, b = (tmp_path / name / release / DATA for name in "AB")
        assert a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize("mode", ["lockstep", "carried"])
def test_intersecting_all_releases_leaves_nobody_among_fewer_than_k(tmp_path, mode):
    ledger, asked = tmp_path / "L", policy(mode, k=3)
    for seed in range(1, 4):
        same = "same" if mode == "carried" else "new"
        here = later(wearers(30, 1), seed, same).filter(pl.Series(np.arange(30) % 9 != seed))
        append(ledger, here, asked)
    found = audit_ledger(ledger, attack=["intersection"]).attacks["intersection"]
    assert found["linked"]["below_k"]["share"] == 0


def test_a_report_counts_people_who_come_again_once(tmp_path):
    ledger, asked = begun(tmp_path, 30)
    append(ledger, later(wearers(30, 1), 2), asked)
    found = audit_ledger(ledger)
    message = " ".join(line.says for line in ledger_in_short(found))
    assert "60 records of 30 people" in message
    write_history_report(found, tmp_path / "r.html")
    assert "People who share all their classes and absences" in (tmp_path / "r.html").read_text()
