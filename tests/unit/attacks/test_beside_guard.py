"""Tables that are published beside releases which are out."""

import copy
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

import naive_beside as naive
import shoal
from beside_cases import (
    HOSPITAL,
    SALES,
    classes,
    expected,
    others_of,
    out_of,
    people,
    together,
    with_k,
)
from republish_cases import grown, policy, wearers
from shoal.attacks.beside.guard import BesideGuard, OldCells
from shoal.auditor.sharing import ABSENT
from shoal.errors import InfeasibleError, InputError

H_QUASI, S_QUASI = ["age", "town"], ["age", "income"]
NONE = np.zeros(0, dtype=np.int64)
WIDE = with_k(HOSPITAL, 8)


def published(seed, strict=False, asked=SALES, again=0):
    """A hospital of wide classes, and a shop beside it. again: patients with two records."""
    hospital, shop = people(70, seed, range(90))
    is_here = pl.col("person").is_in([*hospital["person"]])
    later = people(70, seed + 50, range(90))[0].filter(is_here)
    out = out_of(pl.concat([hospital, later[:again]]), WIDE)
    return out, (shoal.publish(shop, asked, others=others_of(out, strict=strict)), asked, shop)


def shown(shop):
    """The classes of people who are in one: withheld rows show the mark everywhere."""
    release, _, original = shop
    rows = release.data.with_columns(original["customer"])
    kept = rows.filter(~pl.all_horizontal(pl.col([*S_QUASI, "diagnosis"]).cast(pl.String) == "*"))
    return classes(kept, kept["customer"], S_QUASI)


@pytest.mark.parametrize("seed", range(6))
def test_an_aligned_release_passes_the_joint_audit_and_a_plain_one(seed):
    hospital, shop = published(seed)
    release = shop[0]
    found = together(hospital, (release.data, SALES, shop[2]))
    assert found["holds"]
    both = [classes(hospital[0], hospital[2]["person"], H_QUASI), shown(shop)]
    plain = expected(both, 3)
    stated = release.certificate["beside"]
    assert plain["below_k"] == 0
    assert plain["people"] == found["people"] == stated["people"] > 10
    assert plain["least"] == stated["least"] >= 3
    withheld = len(naive.several([both[0], {name: {0} for name in shop[2]["customer"]}]))
    assert stated["withheld"] == withheld - plain["people"]
    assert release.certificate["records"]["withheld"] == stated["withheld"]


@pytest.mark.parametrize(("seed", "again"), [*((seed, 0) for seed in range(4)), (4, 15), (5, 30)])
def test_strict_leaves_nobody_missing_among_fewer_than_k(seed, again):
    hospital, shop = published(seed, strict=True, again=again)
    old = classes(hospital[0], hospital[2]["person"], H_QUASI)
    new = shown(shop)
    for members in naive.members([old]).values():
        absent = members - new.keys()
        assert members <= absent or len(absent) == 0 or len(absent) >= 3
    for members in naive.members([new]).values():
        assert not 0 < len(members - old.keys()) < 3
    assert shop[0].certificate["beside"]["strict"]


def test_other_promises_hold_inside_old_classes_so_values_remain_too():
    asked = copy.deepcopy(SALES)
    asked["promises"].append({"model": "l-diversity", "attribute": "diagnosis", "l": 2})
    hospital, shop = published(1, asked=asked)
    judged = shop[0].data, asked, shop[2]
    found = together(hospital, judged, same=["disease=diagnosis"])
    assert found["holds"]
    assert found["attributes"][0]["asked"] == 2


@pytest.mark.parametrize("attacker", ["presence", "own"])
def test_beside_releases_of_other_people_nothing_changes(attacker):
    strict = attacker == "presence"
    hospital, _ = people(60, 1, range(60))
    _, shop = people(60, 2, range(100, 160))
    out = out_of(hospital, WIDE)
    beside = shoal.publish(shop, SALES, others=others_of(out, strict=strict, attacker=attacker))
    assert beside.data.equals(shoal.publish(shop, SALES).data)
    assert beside.certificate["beside"] | {"releases": []} == {
        "k": 3, "attacker": attacker, "releases": [], "people": 0, "below_k": 0, "alone": 0,
        "least": None, "strict": strict, "withheld": 0, "newcomers": 60, "holds": True,
    }  # fmt: skip


def test_shuffled_rows_are_checked_by_whose_they_are():
    _, (release, *_) = published(3, asked=SALES | {"render": {"order": "shuffled"}})
    assert release.certificate["beside"]["holds"]
    assert release.certificate["beside"]["least"] >= 3


def test_a_ledger_may_be_out(tmp_path):
    folder = grown(tmp_path / "L", 2, 40)
    again = wearers(40, 1).with_columns(age=pl.col("age") + 1)
    asked = policy("rounded-partition", k=4)
    release = shoal.publish(again, asked, others=others_of(folder))
    assert release.certificate["beside"]["people"] == 40
    assert together((release.data, asked, again, release.trace), folder)["holds"]


def test_uniting_whole_classes_keeps_what_was_checked():
    rng = np.random.default_rng(1)
    cells = np.repeat([0, 1, 2, ABSENT], 12)
    labels = np.repeat(np.arange(16), 3)
    old = OldCells(BesideGuard(()), 3, cells, np.array([9, 0, 4]), NONE, NONE)
    for _ in range(20):
        assert old.report(labels)["holds"]
        one, other = rng.choice(np.unique(labels), 2)
        labels = np.where(labels == one, other, labels)
    split = np.where(np.arange(48) == 0, 99, labels)
    assert old.report(split)["alone"] == 1
    assert not old.report(split)["holds"]


# Files, and what is refused


@pytest.fixture
def folder(folder):
    hospital, shop = people(70, 5, range(90))
    for name, frame, asked in (("h", hospital, WIDE), ("s", shop, SALES)):
        frame.write_csv(f"{name}.csv")
        Path(f"{name}.yaml").write_text(yaml.safe_dump(asked))
    shoal.publish(hospital, WIDE).data.write_csv("h-out.csv")
    other = {"release": "h-out.csv", "policy": "h.yaml", "original": "h.csv"}
    Path("others.yaml").write_text(yaml.safe_dump({"releases": [other]}))
    Path("lacking.yaml").write_text("releases: [{release: h-out.csv, policy: h.yaml}]")
    return folder


PUBLISH = ["publish", "s.csv", "-p", "s.yaml", "-o", "out.csv"]
BESIDE = ["--others", "others.yaml"]


@pytest.mark.parametrize("attacker", ["presence", "own"])
def test_from_the_command_line_to_a_certificate_that_verifies(folder, shoal, attacker):
    asked = yaml.safe_load(Path("others.yaml").read_text()) | {"attacker": attacker}
    Path("others.yaml").write_text(yaml.safe_dump(asked))
    done = shoal(*PUBLISH, *BESIDE, status=0)
    assert "0 left among fewer than 3" in done.err
    assert ("for an attacker who knows that a person was published" in done.err) is (
        attacker == "own"
    )
    stated = json.loads(Path("out.csv.certificate.json").read_text())["beside"]
    assert (stated["attacker"], stated["holds"]) == (attacker, True)
    assert [release["kind"] for release in stated["releases"]] == ["table"]
    assert shoal("verify", "out.csv", "-p", "s.yaml", "--original", "s.csv").status == 0
    own = ["audit", "out.csv", "-p", "s.yaml", "--original", "s.csv"]
    assert shoal(*own, *BESIDE).status == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*PUBLISH, "--others", "lacking.yaml"], "release 1: has no 'original'"),
        ([*PUBLISH, "--strict"], "--strict: write 'strict: true' into a file"),
        ([*PUBLISH, *BESIDE, "--method", "full-domain"], "recodes globally"),
        ([*PUBLISH, *BESIDE, "--k", "60"], "are withheld beside other releases"),
        ([*PUBLISH, *BESIDE, "--explain"], "which --others refuses"),
    ],
)
def test_what_can_not_be_aligned_is_refused(folder, shoal, words, said):
    done = shoal(*words)
    assert done.status in (2, 3)
    assert said in done.err
    assert not Path("out.csv").exists()


def test_a_release_that_breaks_its_own_promises_is_no_ground(folder):
    hospital, shop = pl.read_csv("h.csv"), pl.read_csv("s.csv")
    out = pl.read_csv("h-out.csv", infer_schema=False), with_k(WIDE, 60), hospital
    with pytest.raises(InputError, match="does not keep its own promises"):
        shoal.publish(shop, SALES, others=others_of(out))


def test_people_of_several_records_and_tables_without_subjects_are_refused():
    hospital, shop = people(60, 1, range(60))
    out = out_of(hospital, WIDE)
    with pytest.raises(InputError, match="2 people have several records"):
        shoal.publish(pl.concat([shop, shop[:2]]), SALES, others=others_of(out))
    unnamed = copy.deepcopy(SALES)
    unnamed["attributes"]["customer"]["role"] = "drop"
    with pytest.raises(InputError, match="names no 'subject'"):
        shoal.publish(shop, unnamed, others=others_of(out))


@pytest.mark.parametrize("attacker", ["presence", "own"])
def test_no_k_is_said_to_hold_that_is_counted_without_the_withheld(attacker):
    """With a smaller k others are withheld."""
    hospital, shop = people(60, 1, range(90))
    out = out_of(hospital)
    with pytest.raises(InfeasibleError, match=r"withheld beside .* left are") as refused:
        shoal.publish(shop, with_k(SALES, 40), others=others_of(out, attacker=attacker))
    assert "nearest" not in str(refused.value)


@pytest.mark.parametrize(("attacker", "k"), [("presence", 20), ("own", 52)])
def test_nothing_is_published_where_k_people_are_left_of_no_old_class(attacker, k):
    hospital, shop = people(60, 1, range(60))  # everybody is in both
    out = out_of(hospital)
    with pytest.raises(InfeasibleError, match="publish both on one grouping"):
        shoal.publish(shop, with_k(SALES, k), others=others_of(out, attacker=attacker))


@pytest.mark.parametrize(("newcomers", "holds"), [(0, True), (1, False), (2, True)])
def test_newcomers_of_a_class_are_none_or_k_where_differences_count(newcomers, holds):
    cells = np.array([0, 0, *[ABSENT] * newcomers])
    old = OldCells(BesideGuard((), strict=True), 2, cells, np.zeros(1, dtype=np.int64), NONE, NONE)
    assert old.report(np.zeros(len(cells), dtype=np.int32))["holds"] is holds


def test_people_are_together_who_share_the_old_class_and_the_new_one():
    cells = np.array([1, 1, 0, 0])
    old = OldCells(BesideGuard((), strict=True), 2, cells, np.zeros(2, dtype=np.int64), NONE, NONE)
    assert old.report(np.array([0, 0, 2, 2]))["least"] == 2
    assert old.report(np.array([0, 1, 2, 2]))["alone"] == 2
