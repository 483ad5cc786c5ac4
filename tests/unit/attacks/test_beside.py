"""Joint audits of tables, streams and ledgers about the same people."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import polars as pl
import pytest
import yaml

import naive_beside as naive
import shoal
from beside_cases import HOSPITAL, SALES, classes, expected, people, together, values
from republish_cases import append, grown, policy, wearers
from shoal.auditor.ledger.export import verify_ledger
from shoal.errors import InputError
from shoal.policy.policy import Policy
from shoal.reports.text import beside_lines

COUNTS = ("people", "below_k", "alone", "least")
H_QUASI, S_QUASI = ["age", "town"], ["age", "income"]
SAME = "disease=diagnosis"


def released(n=40, seed=0, ids=range(50)):
    """A hospital and a shop that published; each as an audit takes it."""
    hospital, shop = people(n, seed, ids)
    one = shoal.publish(hospital, HOSPITAL)
    other = shoal.publish(shop, SALES)
    return (one.data, HOSPITAL, hospital), (other.data, SALES, shop)


def placed(hospital, shop):
    """The same as plain dicts."""
    return [
        classes(hospital[0], hospital[2]["person"], H_QUASI),
        classes(shop[0], shop[2]["customer"], S_QUASI),
    ]


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
def john(tmp_path, monkeypatch):
    """A class {Tom, Mike, John} of a table and one {John, Ann, Eve} of another, as files."""
    monkeypatch.chdir(tmp_path)
    for name, frame, asked in (("table", TABLE, HOSPITAL), ("bought", BOUGHT, SALES)):
        frame.write_csv(f"{name}.csv")
        Path(f"{name}.yaml").write_text(yaml.safe_dump(asked))
        shoal.publish(frame, asked).data.write_csv(f"{name}-out.csv")
    listed(BOUGHT_RELEASE | {"original": "bought.csv"})
    return tmp_path


OWN = ["audit", "table-out.csv", "-p", "table.yaml", "--original", "table.csv"]
OTHER = ["--others", "others.yaml"]
BOUGHT_RELEASE = {"release": "bought-out.csv", "policy": "bought.yaml"}


def listed(*releases, **asked):
    """Writes a file of other releases."""
    Path("others.yaml").write_text(yaml.safe_dump({"releases": [*releases], **asked}))


def test_john_stands_alone_in_two_three_anonymous_releases(john, shoal):
    alone = shoal(*OWN)
    assert alone.status == 0
    listed(BOUGHT_RELEASE | {"original": "bought.csv"}, same=[SAME])
    found = shoal(*OWN, *OTHER, "--json", "-o", "c.json")
    assert found.status == 1
    measured = json.loads(Path("c.json").read_text())["beside"]
    assert json.loads(found.out)["beside"] == measured
    assert {name: measured[name] for name in COUNTS} == {
        "people": 1,
        "below_k": 1,
        "alone": 1,
        "least": 1,
    }
    (disease,) = measured["attributes"]
    assert (disease["certain"], disease["least"], disease["none"]) == (1, 1, 0)
    assert not measured["holds"]
    assert "John" not in found.out


def test_paths_are_relative_to_the_file(john, shoal, monkeypatch):
    (john / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    words = ["audit", "../table-out.csv", "-p", "../table.yaml", "--original", "../table.csv"]
    found = shoal(*words, "--others", "../others.yaml", "--k", "2")
    assert found.status == 1
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
    found = shoal(*OWN, *OTHER)
    assert found.status == 2
    lines = found.err.splitlines()
    assert len(lines) == len(said)
    assert all(any(part in line for line in lines) for part in said)
    assert "secret" not in found.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*OWN[:4], *OTHER], "give it with --original"),
        (
            ["audit", "table-out.csv", "--column", "quasi=age", "--k", "2", *OTHER],
            "takes no --others",
        ),
    ],
)
def test_what_can_not_be_judged_is_refused_with_a_way_out(john, shoal, words, said):
    found = shoal(*words)
    assert found.status == 2
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
    done = shoal("publish", "table.csv", "-p", "table.yaml", "-o", "o.csv", *OTHER, *attack[:2])
    assert done.status == 0
    assert "beside" not in json.loads(Path("o.csv.certificate.json").read_text())


@pytest.mark.parametrize("which", [0, 1])
def test_without_subject_ids_nobody_can_be_found_again(which):
    asked = [copy.deepcopy(HOSPITAL), copy.deepcopy(SALES)]
    subject = ("person", "customer")[which]
    asked[which]["attributes"][subject]["role"] = "drop"
    given_ = [
        (shoal.publish(frame, own).data, own, frame)
        for frame, own in zip((TABLE, BOUGHT), asked, strict=True)
    ]
    with pytest.raises(
        InputError, match=("released", "others, release 1")[which] + ".*names no 'subject'"
    ):
        together(*given_)


@pytest.mark.parametrize("written", ["P1 P2 P3", "0p1 0p2 0p3", "p1.0 p2.0 p3.0", "p1 p2 P3"])
def test_ids_that_are_written_otherwise_are_not_taken_for_others(written):
    names = ["p1", "p2", "p3"]
    table, again = (TABLE.with_columns(person=pl.Series(n)) for n in (names, written.split()))
    pair = [(shoal.publish(one, HOSPITAL).data, HOSPITAL, one) for one in (table, again)]
    others = len({*written.split()} - {*names})
    said = f"others, release 1: {others} of its people are those of released"
    with pytest.raises(InputError, match=said):
        together(*pair)


def test_shuffled_rows_are_refused():
    shuffled = SALES | {"render": {"order": "shuffled"}}
    one = (shoal.publish(TABLE, HOSPITAL).data, HOSPITAL, TABLE)
    with pytest.raises(InputError, match="can't be matched"):
        together(one, (shoal.publish(BOUGHT, shuffled).data, shuffled, BOUGHT))


def test_an_original_of_another_release_is_refused():
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
    assert {name: found[name] for name in COUNTS} == expected(plain, k)
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
    two = together(hospital, shop)
    three = together(hospital, shop, third)
    assert three["below_k"] >= two["below_k"]
    assert [pair["releases"] for pair in three["pairs"]] == [[1, 2], [1, 3], [2, 3]]
    assert {name: three["pairs"][0][name] for name in COUNTS} == {
        name: two[name] for name in COUNTS
    }


def test_the_least_k_and_l_that_policies_ask_are_asked_together():
    hospital, shop = released(40, 5)
    strict = HOSPITAL | {
        "promises": [
            {"model": "k-anonymity", "k": 6},
            {"model": "l-diversity", "attribute": "disease", "l": 2},
        ]
    }
    one = (shoal.publish(hospital[2], strict).data, strict, hospital[2])
    found = together(one, shop, same=[SAME])
    assert found["k"] == 3
    assert found["attributes"][0]["asked"] == 2


# Streams and ledgers


def test_a_stream_is_one_release_with_several_records_of_a_person(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hospital, shop = people(40, 6, range(50))
    bought = pl.concat([shop, shop.sample(30, seed=1)])
    bought.write_csv("bought.csv")
    Path("sales.yaml").write_text(yaml.safe_dump(SALES | {"method": {"name": "fads", "delta": 20}}))
    from shoal.cli.main import status_of

    done = status_of("stream bought.csv -p sales.yaml -o out.csv --trace t.jsonl -q".split())
    assert done == 0
    out, trace = pl.read_csv("out.csv", infer_schema=False), pl.read_ndjson("t.jsonl").sort("row")
    names = bought["customer"].gather(trace["seq"])
    table = shoal.publish(hospital, HOSPITAL).data
    plain = [classes(table, hospital["person"], H_QUASI), classes(out, names, S_QUASI)]
    assert max(len(own) for own in plain[1].values()) > 1
    found = together((table, HOSPITAL, hospital), (out, "sales.yaml", bought, "t.jsonl"))
    assert found["releases"][1]["kind"] == "stream"
    assert {name: found[name] for name in COUNTS} == expected(plain, 3)
    table.write_csv("table-out.csv")
    hospital.write_csv("table.csv")
    Path("table.yaml").write_text(yaml.safe_dump(HOSPITAL))
    listed(
        {"release": "out.csv", "policy": "sales.yaml", "original": "bought.csv", "trace": "t.jsonl"}
    )
    assert status_of([*OWN, *OTHER, "-o", "c.json", "-q"]) == 1
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
    quasi = ["age", "height", "sex"]
    labels = classes(release.data, names, quasi)
    shown = ledger_classes(folder)
    assert {name: found[name] for name in COUNTS} == expected([labels, shown], 4)
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
    other = (shop[0], *by_two(shop[2], SALES, SWAPPED))
    found = together(one, other)
    assert {name: found[name] for name in COUNTS} == expected(placed(hospital, shop), 3)


@pytest.mark.parametrize("house", ["0{}", "{}.0", "٠{}"])
def test_people_of_several_columns_are_not_taken_for_others_where_one_is_spelled_otherwise(house):
    hospital, shop = released(40, 1)
    one = (hospital[0], *by_two(hospital[2], HOSPITAL, ORDERED))
    other = (shop[0], *by_two(shop[2], SALES, ORDERED, house))
    with pytest.raises(InputError, match="would be taken for others"):
        together(one, other)


def test_people_of_a_ledger_are_not_taken_for_others_where_a_column_is_spelled_otherwise(tmp_path):
    asked = policy("rounded-partition", k=4).model.model_dump(mode="json", exclude_unset=True)
    named, frame = by_two(wearers(30, 1), asked, ORDERED)
    append(tmp_path / "L", frame, Policy.from_dict(named).with_method("crp", {}))
    release = shoal.publish(wearers(30, 1), asked)
    _, other = by_two(wearers(30, 1), asked, ORDERED, "0{}")
    with pytest.raises(InputError, match="30 of its people are those of others, release 1"):
        together((release.data, named, other, release.trace), tmp_path / "L")


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
    """Token -> class, from the published files and the private rows; names by their tokens."""
    from shoal.connectors.ledger import Ledger
    from shoal.connectors.ledger.private import Identities, token_of

    ledger = Ledger.at(folder)
    name_of = {
        int(token_of(name, ledger.key), 16): name
        for seed in (1, 2)
        for name in wearers(30, seed)["who"]
    }
    found = {}
    for number in ledger.releases():
        frame = pl.read_csv(folder / f"{number:04d}" / "data.csv", infer_schema=False)
        tokens = Identities.read(ledger.step_of(number)).subjects.tolist()
        for token, cells in zip(tokens, frame.select("age", "height", "sex").rows(), strict=True):
            found[name_of[token]] = {(number, cells)}
    return found


def test_a_ledger_may_come_first(tmp_path, shoal):
    folder = grown(tmp_path / "L", 1, 30)
    again = wearers(30, 1)
    again.write_csv(tmp_path / "again.csv")
    (tmp_path / "p.yaml").write_text(
        yaml.safe_dump(
            policy("rounded-partition", k=4).model.model_dump(mode="json", exclude_unset=True)
        )
    )
    words = ("-p", tmp_path / "p.yaml", "-o", tmp_path / "o.csv", "--trace", tmp_path / "t.jsonl")
    assert shoal("publish", tmp_path / "again.csv", *words).status == 0
    other = {"release": "o.csv", "policy": "p.yaml", "original": "again.csv", "trace": "t.jsonl"}
    (tmp_path / "others.yaml").write_text(yaml.safe_dump({"releases": [other]}))
    found = shoal("audit", "--ledger", folder, "--others", tmp_path / "others.yaml", "--json")
    report = json.loads(found.out)
    assert found.status == (0 if report["beside"]["holds"] else 1)
    assert report["beside"]["people"] == 30
    assert report["holds"] == report["beside"]["holds"]


def test_a_page_says_what_is_left_beside_other_releases():
    from shoal.reports.in_short import in_short

    hospital, shop = released(40, 5)
    certificate = shoal.audit(*hospital)
    found = together(hospital, shop)
    text = str(in_short(certificate.extended(beside=found)))
    assert f"{found['below_k']} are left among fewer than 3" in text
    assert "stay hidden by all of them" in str(
        in_short(certificate.extended(beside=found | {"holds": True}))
    )


@pytest.mark.parametrize("subject", [["customer", "shop"], "customer"])
def test_people_whom_other_columns_name_together_are_refused(subject):
    (_, asked, hospital), _ = released()
    asked = copy.deepcopy(asked) | {"subject": ["person", "ward"]}
    asked["attributes"] |= {name: {"role": "identifier"} for name in ("person", "ward")}
    hospital = hospital.with_columns(ward=pl.lit("w"))
    one = shoal.publish(hospital, asked)
    other = copy.deepcopy(asked)
    if isinstance(subject, str):
        del other["subject"], other["attributes"]["ward"], other["attributes"]["person"]
        other["attributes"]["customer"] = {"role": "subject"}
    else:
        other["subject"] = subject
        renamed = zip(["person", "ward"], subject, strict=True)
        other["attributes"] |= {new: other["attributes"].pop(old) for old, new in renamed}
    shop = hospital.rename({"person": "customer", "ward": "shop"})
    shop = shop if isinstance(subject, list) else shop.drop("shop")
    two = shoal.publish(shop, other)
    others = [shoal.OtherRelease(release=one.data, policy=asked, original=hospital)]
    for call in (
        lambda: shoal.audit(two.data, other, shop, others=others),
        lambda: shoal.publish(shop, other, others=others),
    ):
        with pytest.raises(InputError, match="other columns"):
            call()
