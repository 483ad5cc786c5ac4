"""Joint audits of tables, streams and ledgers about the same people."""

import copy
import json
from pathlib import Path

import polars as pl
import pytest
import yaml

import naive_beside as naive
import shoal
from beside_cases import HOSPITAL, SALES, classes, expected, out_of, people, together, values
from republish_cases import append, grown, policy, wearers
from shoal import publish
from shoal.auditor.ledger.release_view import verify_ledger
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.private import Identities, token_of
from shoal.errors import InputError
from shoal.reports.text import beside_lines

COUNTS = ("people", "below_k", "alone", "least")
H_QUASI, S_QUASI = ["age", "town"], ["age", "income"]
SAME = "disease=diagnosis"


def pair(frames=None, policies=(HOSPITAL, SALES)):
    """Two tables that were published, each as an audit takes it: by default those of FADS."""
    return [out_of(*one) for one in zip(frames or (TABLE, BOUGHT), policies, strict=True)]


def released(n=40, seed=0, ids=range(50)):
    """A hospital and a shop that published."""
    return pair(people(n, seed, ids))


def placed(hospital, shop):
    """The same as plain dicts."""
    return [
        classes(hospital[0], hospital[2]["person"], H_QUASI),
        classes(shop[0], shop[2]["customer"], S_QUASI),
    ]


def counted(found):
    return {name: found[name] for name in COUNTS}


# The example of the FADS paper, section 2.1

NAMES = ["Tom", "Mike", "John", "Ann", "Eve"]
TABLE = pl.DataFrame(
    {
        "person": NAMES[:3],
        "age": [20, 25, 30],
        "town": ["a"] * 3,
        "disease": ["flu", "gout", "ulcer"],
    }
)
BOUGHT = pl.DataFrame(
    {
        "customer": NAMES[2:],
        "age": [30, 40, 50],
        "income": [5, 6, 7],
        "diagnosis": ["ulcer", "asthma", "ulcer"],
    }
)


@pytest.fixture
def john(folder):
    """A class {Tom, Mike, John} of a table and one {John, Ann, Eve} of another, as files."""
    for name, frame, asked in (("table", TABLE, HOSPITAL), ("bought", BOUGHT, SALES)):
        frame.write_csv(f"{name}.csv")
        Path(f"{name}.yaml").write_text(yaml.safe_dump(asked))
        shoal.publish(frame, asked).data.write_csv(f"{name}-out.csv")
    listed(BOUGHT_RELEASE | {"original": "bought.csv"})
    return folder


OWN = ["audit", "table-out.csv", "-p", "table.yaml", "--original", "table.csv"]
OTHER = ["--others", "others.yaml"]
BOUGHT_RELEASE = {"release": "bought-out.csv", "policy": "bought.yaml"}


def listed(*releases, **asked):
    """Writes a file of other releases."""
    Path("others.yaml").write_text(yaml.safe_dump({"releases": [*releases], **asked}))


def test_john_stands_alone_in_two_three_anonymous_releases(john, shoal, monkeypatch):
    assert shoal(*OWN).status == 0
    listed(BOUGHT_RELEASE | {"original": "bought.csv"}, same=[SAME])
    found = shoal(*OWN, *OTHER, "--json", "-o", "c.json", status=1)
    measured = json.loads(Path("c.json").read_text())["beside"]
    assert json.loads(found.out)["beside"] == measured
    assert counted(measured) == dict.fromkeys(COUNTS, 1)
    (disease,) = measured["attributes"]
    assert (disease["certain"], disease["least"], disease["none"]) == (1, 1, 0)
    several = {**measured, "attributes": [disease | {"none": 2}]}
    said = "for 2 no value in common: they have several records, or it changed"
    assert said in "\n".join(beside_lines(several))
    assert not measured["holds"]
    assert "John" not in found.out
    (john / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")  # paths are relative to the file
    words = [f"../{word}" if "." in word else word for word in (*OWN, *OTHER)]
    found = shoal(*words, "--k", "2", status=1)
    assert "1 person in several: 1 left among fewer than 2, 1 of these alone" in found.err


@pytest.mark.parametrize(
    ("releases", "asked", "said"),
    [
        ([BOUGHT_RELEASE], {}, ["release 1: has no 'original'"]),
        ([{}], {}, ["releases.0.release: is missing"]),
        ([], {}, ["releases: is not a list of releases"]),
        ([BOUGHT_RELEASE], {"attacker": "all"}, ["attacker: must be 'presence' or 'own'"]),
        ([{"release": "L", "policy": "table.yaml"}], {}, ["release 1 is a ledger"]),
        (
            [{"relase": "secret", "policy": 7}],
            {"atacker": "own", "k": 0},
            ["k: must be", "release: is missing", "policy: is not", "mean 'release'", "'attacker'"],
        ),
        (
            [BOUGHT_RELEASE],
            {"strict": True, "attacker": "own"},
            ["strict: is about who knows which people are missing"],
        ),
        ([BOUGHT_RELEASE | {"original": "bought.csv"}], {"same": ["disease"]}, ["fewer than two"]),
    ],
)
def test_a_file_of_others_is_judged_as_a_whole(john, shoal, releases, asked, said):
    listed(*releases, **asked)
    Path("L").mkdir()
    Path("L/ledger.json").write_text("{}")
    found = shoal(*OWN, *OTHER, status=2)
    lines = found.err.splitlines()
    assert len(lines) == len(said)
    assert all(any(part in line for line in lines) for part in said)
    assert "secret" not in found.err


def test_what_can_not_be_judged_is_refused_with_a_way_out(john, shoal):
    columns = ["audit", "table-out.csv", "--column", "quasi=age", "--k", "2"]
    for words, said in ((OWN[:4], "give it with --original"), (columns, "--others cannot be used")):
        found = shoal(*words, *OTHER, status=2)
        assert said in found.err
        assert len(found.err.splitlines()) == 1


def test_attacks_use_every_release_and_those_with_an_original_are_judged(john, shoal):
    TABLE.write_csv("again.csv")
    again = {"release": "table-out.csv", "policy": "table.yaml"}
    attack = ["--attack", "intersection", "-o", "c.json", "-q"]
    for releases, judged in (([again], 0), ([again, again | {"original": "again.csv"}], 2)):
        listed(*releases)
        assert shoal("attack", *OWN[1:], *OTHER, *attack, "--replace").status == 0
        found = json.loads(Path("c.json").read_text())
        assert found["attacks"]["intersection"]["releases"] == 1 + len(releases)
        assert len(found.get("beside", {"releases": ()})["releases"]) == judged
    listed(again)
    shoal("publish", "table.csv", "-p", "table.yaml", "-o", "o.csv", *OTHER, *attack[:2], status=0)
    assert "beside" not in json.loads(Path("o.csv.certificate.json").read_text())


@pytest.mark.parametrize("which", [0, 1])
def test_without_subject_ids_nobody_can_be_found_again(which):
    asked = [copy.deepcopy(HOSPITAL), copy.deepcopy(SALES)]
    asked[which]["attributes"][("person", "customer")[which]]["role"] = "drop"
    where = ("released", "others, release 1")[which]
    with pytest.raises(InputError, match=where + ".*names no 'subject'"):
        together(*pair(policies=asked))


@pytest.mark.parametrize("written", ["P1 P2 P3", "0p1 0p2 0p3", "p1.0 p2.0 p3.0", "p1 p2 P3"])
def test_ids_that_are_written_otherwise_are_not_taken_for_others(written):
    names = ["p1", "p2", "p3"]
    frames = [TABLE.with_columns(person=pl.Series(n)) for n in (names, written.split())]
    others = len({*written.split()} - {*names})
    said = f"others, release 1: {others} of its people are those of released"
    with pytest.raises(InputError, match=said):
        together(*pair(frames, (HOSPITAL, HOSPITAL)))


def test_rows_that_can_not_be_matched_and_an_original_of_another_release_are_refused():
    shuffled = SALES | {"render": {"order": "shuffled"}}
    with pytest.raises(InputError, match="can't be matched"):
        together(*pair(policies=(HOSPITAL, shuffled)))
    hospital, shop = released()
    wrong = hospital[2].with_columns(pl.col("age").reverse())
    with pytest.raises(InputError, match="not a true release of its original"):
        together((hospital[0], HOSPITAL, wrong), shop)


# Against plain counts


@pytest.mark.parametrize(("seed", "k"), [(0, 2), (1, 3), (2, 3), (3, 4), (4, 6)])
def test_counts_are_those_of_a_plain_intersection(seed, k):
    hospital, shop = released(30, seed, range(40))
    found = together(hospital, shop, k=k, l=2, same=[SAME])
    plain = placed(hospital, shop)
    assert counted(found) == expected(plain, k)
    shown = {
        (number, label): own
        for number, frame, quasi, name in (
            (0, hospital[0], H_QUASI, "disease"),
            (1, shop[0], S_QUASI, "diagnosis"),
        )
        for label, own in values(frame, quasi, name).items()
    }
    left = [len(naive.candidates(plain, person, shown)) for person in naive.several(plain)]
    (row,) = found["attributes"]
    assert (row["below"], row["certain"]) == (sum(v < 2 for v in left), left.count(1))
    assert row["none"] == 0, "nobody's disease changes"
    assert found["holds"] == (found["below_k"] == 0 and row["below"] == 0)


@pytest.mark.parametrize("seed", range(5))
def test_whom_an_attacker_of_own_presence_can_not_exclude_includes_all_members(seed):
    hospital, shop = released(30, seed, range(40))
    known = together(hospital, shop)
    own = together(hospital, shop, attacker="own")
    assert own["people"] == known["people"]
    assert own["below_k"] <= known["below_k"]
    assert own["least"] >= known["least"]
    assert own["below_k"] == plain_own(hospital, shop, 3)


def plain_own(hospital, shop, k):
    """How many of those in both fit by fewer than k people, from the text of the cells."""
    known = {row["customer"]: row for row in shop[2].to_dicts()}
    for row in hospital[2].to_dicts():
        known[row["person"]] = known.get(row["person"], {}) | row
    one, other = placed(hospital, shop)
    out = [(H_QUASI, one), (S_QUASI, other)]
    return sum(len(naive.like(out, known, person)) < k for person in one.keys() & other.keys())


def test_people_who_are_in_one_release_only_lose_nothing():
    one, _ = released(30, 1, range(40))
    _, other = released(30, 2, range(100, 140))
    found = together(one, other)
    assert found["holds"]
    assert (found["people"], found["least"]) == (0, None)
    assert "nobody is in two of them" in "\n".join(beside_lines(found))


def test_a_third_release_never_helps_and_is_told_apart_by_pairs():
    hospital, shop = released(40, 3, range(50))
    third = released(40, 4, range(50))[1]
    two, three = together(hospital, shop), together(hospital, shop, third)
    assert three["below_k"] >= two["below_k"]
    assert [pair["releases"] for pair in three["pairs"]] == [[1, 2], [1, 3], [2, 3]]
    assert counted(three["pairs"][0]) == counted(two)


def test_the_least_k_and_l_that_policies_ask_are_asked_together():
    diverse = {"model": "l-diversity", "attribute": "disease", "l": 2}
    strict = HOSPITAL | {"promises": [{"model": "k-anonymity", "k": 6}, diverse]}
    found = together(*pair(people(40, 5, range(50)), (strict, SALES)), same=[SAME])
    assert (found["k"], found["attributes"][0]["asked"]) == (3, 2)


# Streams and ledgers


def test_a_stream_is_one_release_with_several_records_of_a_person(folder, shoal):
    hospital, shop = people(40, 6, range(50))
    bought = pl.concat([shop, shop.sample(30, seed=1)])
    bought.write_csv("bought.csv")
    Path("sales.yaml").write_text(yaml.safe_dump(SALES | {"method": {"name": "fads", "delta": 20}}))
    stream = "stream bought.csv -p sales.yaml -o out.csv --trace t.jsonl -q"
    assert shoal(*stream.split()).status == 0
    out, trace = pl.read_csv("out.csv", infer_schema=False), pl.read_ndjson("t.jsonl").sort("row")
    names = bought["customer"].gather(trace["seq"])
    table = publish(hospital, HOSPITAL).data
    plain = [classes(table, hospital["person"], H_QUASI), classes(out, names, S_QUASI)]
    assert max(len(own) for own in plain[1].values()) > 1
    found = together((table, HOSPITAL, hospital), (out, "sales.yaml", bought, "t.jsonl"))
    assert found["releases"][1]["kind"] == "stream"
    assert counted(found) == expected(plain, 3)
    table.write_csv("table-out.csv")
    hospital.write_csv("table.csv")
    Path("table.yaml").write_text(yaml.safe_dump(HOSPITAL))
    listed(
        {"release": "out.csv", "policy": "sales.yaml", "original": "bought.csv", "trace": "t.jsonl"}
    )
    assert shoal(*OWN, *OTHER, "-o", "c.json", "-q").status == 1
    assert json.loads(Path("c.json").read_text())["beside"]["alone"] == found["alone"]


def test_a_ledger_is_one_release_by_the_classes_of_all_its_increments(tmp_path):
    folder = grown(tmp_path / "L", 2, 30)
    everybody = pl.concat([wearers(30, 1), wearers(30, 2)])
    again = everybody.with_columns(age=pl.col("age") + 1)
    asked = policy("rounded-partition", k=4)
    release = shoal.publish(again, asked)
    one, names = (release.data, asked, again, release.trace), again["who"].gather(release.trace)
    found = together(one, folder)
    assert found["people"] == 60
    assert found["releases"][1]["sha256"] == verify_ledger(folder)[1]
    labels = classes(release.data, names, ["age", "height", "sex"])
    assert counted(found) == expected([labels, ledger_classes(folder)], 4)
    (activity,) = found["attributes"]
    assert activity["names"] == ["activity", "activity"]
    assert activity["none"] == 0
    with pytest.raises(InputError, match="leave out 'own'"):
        together(one, folder, attacker="own")
    other = again.with_columns(who="0" + pl.col("who"))
    with pytest.raises(
        InputError, match="released: 60 of its people are those of others, release 1"
    ):
        together((release.data, asked, other, release.trace), folder)
    with pytest.raises(InputError, match="two ledgers"):
        together(one, folder, folder)


def by_two(original: pl.DataFrame, asked: dict, subject: list[str], house: str = "{}"):
    """Policy and original, whose people are named by two columns, listed in this order."""
    who = original.columns[0]
    numbers = [int(number) for number in original[who].str.extract(r"(\d+)$")]
    parts = {
        "house": [house.format(number // 5) for number in numbers],
        "member": [f"{number % 5}" for number in numbers],
    }
    attributes = {name: one for name, one in asked["attributes"].items() if name != who}
    attributes |= {name: {"role": "identifier"} for name in parts}
    named = asked | {"attributes": attributes, "subject": subject}
    return named, pl.DataFrame(parts).hstack(original.drop(who))


ORDERED, SWAPPED = ["house", "member"], ["member", "house"]


def test_people_of_several_columns_are_found_again_in_whatever_order_policies_list_them():
    hospital, shop = released(40, 1)
    one = (hospital[0], *by_two(hospital[2], HOSPITAL, ORDERED))
    found = together(one, (shop[0], *by_two(shop[2], SALES, SWAPPED)))
    assert counted(found) == expected(placed(hospital, shop), 3)


@pytest.mark.parametrize("house", ["0{}", "{}.0", "٠{}"])
def test_people_of_several_columns_are_not_taken_for_others_where_one_is_spelled_otherwise(house):
    hospital, shop = released(40, 1)
    one = (hospital[0], *by_two(hospital[2], HOSPITAL, ORDERED))
    other = (shop[0], *by_two(shop[2], SALES, ORDERED, house))
    with pytest.raises(InputError, match="would be taken for others"):
        together(one, other)


@pytest.mark.parametrize("of_ledger", ["Ann.Lee{}@x.org", "00{}.0ann.lee@X", "00000000000000{}"])
def test_people_of_a_ledger_are_not_taken_for_others_however_it_spells_them(tmp_path, of_ledger):
    form = of_ledger.lower().lstrip("0")
    by_ledger, by_table = (
        wearers(30, 1).with_columns(who=pl.Series([spelled.format(i) for i in range(100, 130)]))
        for spelled in (of_ledger, form)
    )
    append(tmp_path / "L", by_ledger)
    asked = policy("rounded-partition", k=4)
    release = shoal.publish(by_table, asked)
    with pytest.raises(InputError, match="30 of its people are those of others, release 1"):
        together((release.data, asked, by_table, release.trace), tmp_path / "L")


def ledger_classes(folder):
    """Name -> class, from the published files and the private rows."""
    ledger = Ledger.at(folder)
    names = pl.concat([wearers(30, seed) for seed in (1, 2)])["who"]
    name_of = {int(token_of(name, ledger.key), 16): name for name in names}
    found = {}
    for number in ledger.releases():
        frame = pl.read_csv(folder / f"{number:04d}" / "data.csv", infer_schema=False)
        tokens = Identities.read(ledger.step_of(number)).subjects.tolist()
        for token, cells in zip(tokens, frame.select("age", "height", "sex").rows(), strict=True):
            found[name_of[token]] = {(number, cells)}
    return found


def test_a_ledger_may_come_first(tmp_path, shoal, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = grown(tmp_path / "L", 1, 30)
    wearers(30, 1).write_csv("again.csv")
    asked = policy("rounded-partition", k=4).model.model_dump(mode="json", exclude_unset=True)
    Path("p.yaml").write_text(yaml.safe_dump(asked))
    shoal(*"publish again.csv -p p.yaml -o o.csv --trace t.jsonl".split(), status=0)
    listed({"release": "o.csv", "policy": "p.yaml", "original": "again.csv", "trace": "t.jsonl"})
    found = shoal("audit", "--ledger", folder, *OTHER, "--json")
    report = json.loads(found.out)
    assert found.status == (0 if report["beside"]["holds"] else 1)
    assert report["beside"]["people"] == 30
    assert report["holds"] == report["beside"]["holds"]


@pytest.mark.parametrize("several", [True, False])
def test_people_whom_other_columns_name_together_are_refused(several):
    (_, asked, hospital), _ = released()
    hospital = hospital.with_columns(ward=pl.lit("w"))
    attributes = {name: one for name, one in asked["attributes"].items() if name != "person"}

    def named_by(*names):
        if len(names) == 1:
            return asked | {"attributes": attributes | {names[0]: {"role": "subject"}}}
        parts = {name: {"role": "identifier"} for name in names}
        return asked | {"subject": [*names], "attributes": attributes | parts}

    mine = named_by("person", "ward")
    other = named_by("customer", "shop") if several else named_by("customer")
    shop = hospital.rename({"person": "customer", "ward": "shop"})
    shop = shop if several else shop.drop("shop")
    one, two = shoal.publish(hospital, mine), shoal.publish(shop, other)
    others = [shoal.OtherRelease(release=one.data, policy=mine, original=hospital)]
    for call in (
        lambda: shoal.audit(two.data, other, shop, others=others),
        lambda: shoal.publish(shop, other, others=others),
    ):
        with pytest.raises(InputError, match="other columns"):
            call()
