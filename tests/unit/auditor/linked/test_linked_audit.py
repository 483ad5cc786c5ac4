"""Audits of linked tables: what they measure, and every fault that was planted is found."""

import hashlib
import json
import tempfile
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linked_cases
import shoal as library
from naive_linked import candidates
from sample_policies import content_of
from shoal.auditor.linked.audit import audit_linked
from shoal.auditor.linked.labels import View, ViewedTable, exposures
from shoal.auditor.linked.matching import is_saturated
from shoal.auditor.linked.reading import RARE, is_beyond_chance
from shoal.data.certificate import Certificate
from shoal.data.linked import PEOPLE, Known
from shoal.errors import InputError
from shoal.policy.policy import Policy


def audit(released, original=None, policy=None, **more):
    asked = Policy.from_dict(policy or linked_cases.policy(**more))
    return audit_linked(released, asked, original).certificate


def measured(*given, promise=0, **more):
    return audit(*given, **more)["promises"][promise]["measured"]


def by_number(tables):
    """The tables with numbers from 1 for keys, in the order of rows."""
    patients, visits = tables["people"]["patient"], tables["visits"]["visit"]
    numbers = ({key: i for i, key in enumerate(keys, 1)} for keys in (patients, visits))
    return rekeyed(tables, **dict(zip(("patient", "visit"), numbers, strict=True)))


def rekeyed(tables, **keys):
    """The tables with other keys. keys: by column, what each becomes wherever it stands."""
    return {
        name: frame.with_columns(
            pl.col(key).replace_strict(new) for key, new in keys.items() if key in frame.columns
        )
        for name, frame in tables.items()
    }


@pytest.fixture(scope="module")
def tables():
    return linked_cases.world(40)


@pytest.fixture(scope="module")
def released(tables):
    return linked_cases.published(tables)


def test_an_honest_release_holds_from_its_files_alone_and_with_its_originals(released, tables):
    alone, beside = audit(released), audit(released, tables)
    assert alone.holds
    assert beside.holds
    assert alone["linked"]["audited"] == "files"
    assert alone["promises"][0]["measured"] == beside["promises"][0]["measured"] == 3
    assert beside["linked"]["matching"] == {"people": 40, "tried": 40, "least": 3, "below": 0}


def test_counts_that_a_release_adds_are_not_said_to_be_published_as_they_are(released):
    """Other columns are, and what is said of them names their table."""
    mails = released["visits"].with_columns(mail=pl.format("{}@post.org", "visit"))
    found = audit({**released, "visits": mails}, other="plain").warnings
    said = {one.column: one.text for one in found}
    assert "visits.rows" in released["people"].columns
    assert not {"visits.rows", "drugs.rows", "visits.drugs.rows"} & said.keys()
    assert "'visits.mail' is not protected: it is published as it is" in said["visits.mail"]


def test_rows_taken_for_people_are_found_to_hide_nobody(tables):
    shown = {"age": pl.lit("*"), "visits.rows": pl.lit("[1, 4]")}
    raw = by_number(tables)
    certificate = audit({**raw, "people": raw["people"].with_columns(**shown)})
    assert not certificate.holds
    assert certificate["promises"][0]["measured"] == 1
    below = {(row["table"], row["known"]): row["below"] for row in certificate["linked"]["exposed"]}
    assert below[PEOPLE, "all"] == 0
    assert below["visits", "all"] > below["visits", "count"]


def test_its_certificate_is_read_again_and_holds_no_cell(released, tables):
    text = audit(released, tables).to_json()
    read = Certificate.parsed(text.encode(), "certificate.json")
    assert read.holds
    assert [table["name"] for table in read["tables"]] == ["people", "visits", "drugs"]
    assert not any(cell in text for cell in ("insulin", "gout", '"p7"'))


def test_it_is_audited_from_the_command_line_and_from_python(released, tables, folder, shoal):
    for name, frames in (("out", released), ("clinic", tables)):
        Path(name).mkdir()
        for table, frame in frames.items():
            frame.write_csv(f"{name}/{table}.csv")
    Path("policy.json").write_text(json.dumps(linked_cases.policy()))
    words = ["audit", "out", "-p", "policy.json"]
    assert shoal(*words, "-o", "c.json", "--report", "r.html").status == 0
    assert Certificate.load("c.json").holds
    assert "everybody hides among at least 3" in Path("r.html").read_text("utf-8")
    beside = shoal(*words, "--original", "clinic", "--json", status=0)
    assert "each fits at least 3 published people" in shoal(*words, "--original", "clinic").err
    stated = json.loads(beside.out)
    digest = hashlib.sha256(Path("out/visits.csv").read_bytes()).hexdigest()
    assert stated["tables"][1]["sha256"] == digest
    assert library.audit("out", "policy.json", "clinic")["promises"] == stated["promises"]
    assert "asked 4, measured 3: DOES NOT HOLD" in shoal(*words, "--k", 4, status=1).err


# The planted faults: each of them is found, and nothing but it was changed.


def test_a_filler_row_is_found_even_where_a_whole_class_has_one(released, tables):
    people = released["people"]
    key = people["visits.rows"].str.contains("1") & (people["visits.rows"] != "1")
    members = people.filter(people["age"] == people.filter(~key)["age"][0])["patient"].to_list()
    visits = released["visits"]
    first = visits.height + 1
    filler = pl.DataFrame(
        {"visit": range(first, first + len(members)), "patient": members, "cost": "*"}
        | {"disease": "*", "drugs.rows": "0"},
        schema=visits.schema,
    )
    planted = {**released, "visits": pl.concat([visits, filler])}
    assert audit(planted)["faults"]["extra_rows"] == len(members)
    without_counts = {**planted, "people": people.drop("visits.rows")}
    assert audit(without_counts, tables)["faults"]["matched"] > 0


def test_invented_people_are_found_beside_the_originals(released, tables):
    """Everybody has a twin with the same rows, so that k people seem to be twice as many."""
    more = {
        "patient": pl.col("patient").cast(pl.Int64) + released["people"].height,
        "visit": pl.col("visit").cast(pl.Int64) + released["visits"].height,
    }
    twins = {}
    for name, frame in released.items():
        other = [more[key].cast(frame[key].dtype) for key in more.keys() & {*frame.columns}]
        twins[name] = pl.concat([frame, frame.with_columns(other)])
    assert audit(twins).holds
    beside = audit(twins, tables)
    assert not beside.holds
    assert beside["faults"]["invented"] > len(tables["people"])
    assert audit(released, tables)["faults"]["invented"] == 0


def test_a_row_moved_to_another_person_is_found(released):
    visits = released["visits"]
    keys = visits["patient"].to_list()
    keys[0] = next(key for key in keys if key != keys[0])
    planted = {**released, "visits": visits.with_columns(pl.Series("patient", keys))}
    assert measured(planted) == 1
    assert not audit(planted).holds


@pytest.mark.parametrize("people", [12, 300])
def test_keys_in_the_order_of_what_rows_show_are_found(people):
    large = linked_cases.published(linked_cases.world(people), k=1 if people == 12 else 3)
    order = large["visits"].sort(pl.col("cost").str.extract(r"(\d+)").cast(pl.Int64))["visit"]
    renamed = {old: new for new, old in enumerate(order, 1)}
    assert audit(large)["faults"]["ordered_keys"] == 0
    assert audit(rekeyed(large, visit=renamed))["faults"]["ordered_keys"] == 1


@pytest.mark.parametrize(("keep", "days"), [(None, 201), ("weekday", 29)])
def test_days_that_were_not_moved_are_found(released, keep, days):
    tables = {**linked_cases.policy()["tables"]}
    dated = tables["visits"]["attributes"] | {"day": {"role": "quasi", "type": "date"}}
    tables["visits"] = {**tables["visits"], "attributes": dated}
    more = {"tables": tables, "anchor": {"first": "visits.day", "keep": keep}}
    by_chance, unmoved = linked_cases.moved(released, step=7 if keep else 1)
    honest = audit(by_chance, **more)
    assert honest["faults"]["odd_days"] == 0
    assert honest.holds, honest["promises"]
    assert honest["linked"]["anchor"]["least_hull_days"] == days
    assert audit(unmoved, **more)["faults"]["odd_days"] > 0


def few_with_days(anchors, hull):
    """Four people with a visit each on their first day, and a policy of them."""
    people = {"patient": range(1, 5), "age": "40"}
    shown = {"anchor.day": anchors, "anchor.hull": hull, "visits.rows": "1"}
    visits = {"patient": range(1, 5), "day": anchors}
    return {"people": pl.DataFrame({**people, **shown}), "visits": pl.DataFrame(visits)}


@pytest.mark.parametrize(("hull", "alone"), [("[2020-03-01, 2020-05-20]", 0), ("*", 4)])
def test_days_of_few_people_that_were_not_moved_are_found_beside_the_original(hull, alone):
    content = linked_cases.policy(4, anchor={"first": "visits.day"})
    del content["attributes"]["blood"], content["tables"]["drugs"]
    content["tables"]["visits"] = {
        "parent": {"people": "patient"},
        "attributes": {"day": {"role": "quasi", "type": "date"}},
    }
    asked = Policy.from_dict(content)
    true = ["2020-03-01", "2020-03-09", "2020-04-02", "2020-05-20"]
    drawn = ["2020-03-09", "2020-05-03", "2020-03-18", "2020-04-11"]
    original = few_with_days(true, hull)
    original["people"] = original["people"].select("patient", "age")
    for days, found in ((true, 4), (drawn, alone)):
        released = few_with_days(days, hull)
        assert audit_linked(released, asked).certificate["faults"]["odd_days"] == alone
        faults = audit_linked(released, asked, original).certificate["faults"]
        assert faults["odd_days"] == found


@given(st.lists(st.floats(0, 1), max_size=8), st.data())
def test_what_is_beyond_chance_is_as_rare_as_a_plain_sum_says(chances, data):
    found = data.draw(st.integers(0, len(chances)))
    exact = [1.0]
    for chance in chances:
        exact = [
            p * (1 - chance) + q * chance for p, q in zip([*exact, 0], [0, *exact], strict=True)
        ]
    if is_beyond_chance(found, np.array(chances)):
        assert sum(exact[found:]) <= RARE * (1 + 1e-9)
    elif all(chances[i] == chances[0] for i in range(len(chances))) and found == len(chances) > 0:
        assert chances[0] ** found > RARE / 2


def test_keys_of_the_original_repeated_keys_and_orphans_are_found(released):
    people = released["people"].with_columns(patient="p" + pl.col("patient").cast(pl.String))
    visits = released["visits"].with_columns(patient="p" + pl.col("patient").cast(pl.String))
    faults = audit({**released, "people": people, "visits": visits})["faults"]
    assert faults["original_keys"] == 40
    twice = released["visits"].with_columns(visit=pl.lit(1))
    faults = audit({**released, "visits": twice})["faults"]
    assert faults["repeated_keys"] == released["visits"].height - 1
    assert faults["orphans"] == released["drugs"].height - 1


def one_known(**more):
    """A policy by which nothing has to be withheld."""
    content = linked_cases.policy(assume=["counts-unknown"], **more)
    content["tables"]["visits"]["rows"] = {"known": 1}
    content["tables"]["drugs"]["rows"] = {"known": "none"}
    return content


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """Tables with numbers for keys, a release of them, and by table the row behind each row."""
    folder = tmp_path_factory.mktemp("numbered")
    original = by_number(linked_cases.world(60))
    done = library.publish(original, one_known(), output=folder / "out", trace=folder / "trace")
    lines = map(json.loads, (folder / "trace").read_text("utf-8").splitlines())
    behind = {name: [] for name in original}
    for line in lines:
        behind[line["table"]].append(line["seq"])
    return original, done.data, behind


def test_new_keys_in_a_drawn_order_are_those_of_nobody(numbered):
    original, released, _ = numbered
    for seed in range(5):
        found = audit(released, original, one_known(seed=seed))
        assert found.holds
        assert not found.grave


@pytest.mark.parametrize("table", ["people", "visits"])
def test_keys_kept_from_the_original_are_found_beside_it_and_named(numbered, table):
    original, released, behind = numbered
    key = {"people": "patient", "visits": "visit"}[table]
    rows = released[table].height
    true = [int(original[table][key][seq]) for seq in behind[table]]
    spare = iter(sorted({*range(1, rows + 1)} - {*true}))  # a release has keys from 1 to its rows
    kept = [str(one if one <= rows else next(spare)) for one in true]
    new = dict(zip(released[table][key], kept, strict=True))
    changed = {
        name: frame.sample(fraction=1, shuffle=True, seed=1)
        for name, frame in rekeyed(released, **{key: new}).items()
    }
    alone = audit(changed, None, one_known())
    assert alone["faults"]["original_keys"] == 0  # who has not the original can't tell
    found = audit(changed, original, one_known())
    assert found["faults"]["kept_keys"] > rows / 2
    assert not found.holds
    (said,) = found.grave
    assert said.text.startswith(
        f"table '{table}': keys in column '{key}' are those of the original"
    )


def hashed(name):
    return lambda key: hashlib.new(name, str(key).encode()).hexdigest()


@pytest.mark.parametrize("table", ["people", "visits"])
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (hashed("md5"), "are md5 digests of those"),
        (hashed("sha1"), "are sha1 digests of those"),
        (hashed("sha256"), "are sha256 digests of those"),
        (lambda key: str(key + 100_000), "ascend or descend with rows or keys"),
        (lambda key: str(3 * key + 7), "ascend or descend with rows or keys"),
        (lambda key: str(99_999 - key), "ascend or descend with rows or keys"),
        (lambda key: f"P{key:05}", "ascend or descend with rows or keys"),
    ],
)
def test_keys_that_anybody_can_undo_are_found_beside_the_original(numbered, table, made, said):
    original, released, behind = numbered
    key = {"people": "patient", "visits": "visit"}[table]
    kept = [made(int(original[table][key][seq])) for seq in behind[table]]
    new = dict(zip(released[table][key], kept, strict=True))
    found = audit(rekeyed(released, **{key: new}), original, one_known())
    assert found["faults"]["kept_keys"] > 0.9 * released[table].height
    texts = [one.text for one in found.grave]
    assert any(
        f"table '{table}': keys in column '{key}' {said} of the original" in t for t in texts
    )


@pytest.mark.parametrize("sort", ["patient", "age"])
def test_keys_drawn_beside_a_sorted_original_are_those_of_nobody(numbered, sort):
    original, released, _ = numbered
    original = {**original, "people": original["people"].sort(sort)}
    for seed in range(5):
        drawn = np.random.default_rng(seed).permutation(released["people"].height) + 1
        new = dict(zip(released["people"]["patient"], map(str, drawn), strict=True))
        changed = rekeyed(released, patient=new)
        assert audit(changed, original, one_known())["faults"]["kept_keys"] == 0


@pytest.mark.parametrize("table", ["people", "visits"])
def test_rows_in_the_order_of_the_original_are_found_beside_it_and_named(numbered, table):
    original, released, behind = numbered
    order = np.argsort(behind[table])
    sorted_rows = {**released, table: released[table][order]}
    found = audit(sorted_rows, original, one_known())
    assert found["faults"]["kept_order"] == 1
    assert not found.holds
    (said,) = found.grave
    assert said.text.startswith(f"table '{table}': rows stand in the order of the original")


def stays(k: int, numbers: list[int], wards: int, seed: int):
    """People with their stays in one order of steps, k with each number of stays, and a policy by
    which they are a class of their own.
    """
    rng = np.random.default_rng(seed)
    each = rng.permutation(numbers * k).tolist()
    steps = ["in" if step % 2 == 0 else "out" for number in each for step in range(number)]
    frames = {
        "people": pl.DataFrame({"patient": [f"p{i}" for i in range(len(each))]}),
        "stays": pl.DataFrame(
            {
                "patient": [f"p{i}" for i, number in enumerate(each) for _ in range(number)],
                "step": steps,
                "ward": rng.integers(0, wards, len(steps)),
            }
        ),
    }
    attributes = {"step": {"role": "quasi"}, "ward": {"role": "sensitive"}}
    content = content_of(
        {"patient": "subject"},
        k,
        seed=seed,
        tables={"stays": {"parent": {"people": "patient"}, "attributes": attributes}},
    )
    return frames, content


@settings(max_examples=25)
@given(
    st.integers(10, 40),
    st.sampled_from([[2], [2, 4], [1, 2], [2, 3]]),
    st.integers(1, 2),
    st.integers(0, 1000),
)
def test_no_release_is_said_to_keep_an_order_that_it_drew(k, numbers, wards, seed):
    """The rows of a person may stand in one order in the original and in the release."""
    frames, content = stays(k, numbers, wards, seed)
    with tempfile.TemporaryDirectory() as folder:
        done = library.publish(frames, content, output=Path(folder) / "out")
        assert done.certificate["tables"][1]["rows"]["withheld"] == 0
        assert library.audit(done.data, content, original=frames)["faults"]["kept_order"] == 0


def test_rows_of_people_in_the_order_of_the_original_are_found(tmp_path):
    frames, content = stays(20, [2, 3], 3, seed=1)
    done = library.publish(frames, content, output=tmp_path / "out", trace=tmp_path / "trace")
    lines = map(json.loads, (tmp_path / "trace").read_text("utf-8").splitlines())
    order = np.argsort([line["seq"] for line in lines if line["table"] == "stays"])
    kept = {**done.data, "stays": done.data["stays"][order]}
    assert library.audit(kept, content, original=frames)["faults"]["kept_order"] == 1


def test_without_keys_rows_that_show_the_same_are_counted(released):
    bare = {name: frame.drop("visit", "patient", strict=False) for name, frame in released.items()}
    honest = audit(bare, keys="none")
    assert honest["promises"][0]["measured"] == 3
    assert honest["tables"][1]["rows"]["published"] == released["visits"].height
    lone = pl.concat([bare["visits"], bare["visits"].head(1).with_columns(cost=pl.lit("[7, 9]"))])
    assert measured({**bare, "visits": lone}, keys="none") == 1


CODES = {"role": "quasi", "type": "set", "separator": ";"}


@pytest.mark.parametrize(
    ("shown", "other"), [("", "*"), ("a;*", "a")], ids=["the set", "one of its elements"]
)
def test_what_shows_nothing_is_not_what_is_not_there(released, shown, other):
    policy = linked_cases.policy()
    policy["attributes"]["codes"] = CODES
    for first, least in ((shown, 3), (other, 1)):
        cells = pl.Series("codes", [first, *[shown] * (released["people"].height - 1)])
        people = released["people"].with_columns(cells)
        assert measured({**released, "people": people}, policy=policy) == least


def test_elements_of_a_released_set_count_as_often_as_they_are_written():
    policy = codes_policy()
    policy["attributes"]["codes"] = CODES
    people = {"patient": [*"1234"], "codes": ["a", "a;a", "a;a;a", "a;a;a;a"]}
    release = {"people": pl.DataFrame(people), "bills": pl.DataFrame({"patient": [*"1234"]})}
    assert measured(release, policy=policy) == 1


# Any m known rows, with the originals: every choice of rows is tried.


def codes_policy(k=2, m=2):
    tree = {"a": ["a1", "a2"], "b": ["b1", "b2"]}
    return content_of(
        {"patient": "subject", "codes": CODES | {"known": m, "hierarchy": {"tree": tree}}},
        k,
        tables={"bills": {"parent": {"people": "patient"}, "rows": {"known": "count"}}},
    )


@pytest.mark.parametrize(
    ("shown", "k", "least"),
    [
        (["a;a", "a;b", "a;a;b", "b"], 2, 2),  # the worked example
        (["a1;a2", "a;b", "a;a;b", "b"], 2, 0),  # a1 as it is, so nobody shows it beside a b
        (["a;a", "a;b", "a;a", "a"], 2, 1),  # all but one b are gone: who has one shows it
        (["a;a;b", "a", "a;a;b", "b"], 2, 2),  # rows changed hands, and still two of all fit
        (["a1", "a1", "a1", "a1"], 4, 4),  # what nobody shows drops out of what is known
    ],
)
def test_the_attack_tries_every_choice_of_known_elements(shown, k, least):
    bills = pl.DataFrame({"patient": []}, schema={"patient": pl.String})
    true = ["a1;a2", "a1;b1", "a1;a2;b1", "b2"]
    people = pl.DataFrame({"patient": ["1", "2", "3", "4"], "codes": shown, "bills.rows": "0"})
    original = pl.DataFrame({"patient": ["p1", "p2", "p3", "p4"], "codes": true})
    found = audit(
        {"people": people, "bills": bills}, {"people": original, "bills": bills}, codes_policy(k)
    )
    assert found["linked"]["matching"]["least"] == least


# Any m known drugs of visits that are known as a whole, each with its visit.

SPANS = {"cost": [(0, 1), (0, 0), (1, 1)], "dose": [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2)]}


def doses_policy(k, m):
    policy = linked_cases.policy(k)
    del policy["attributes"]["blood"]
    policy["tables"]["visits"]["attributes"].pop("disease")
    dose = {"role": "quasi", "type": "number", "domain": [0, 9]}
    policy["tables"]["drugs"] |= {"rows": {"known": m}, "attributes": {"dose": dose}}
    return policy


def frames_of(world, write=str, key="p{}"):
    """The tables of people (age, visits), with visits (cost, doses)."""
    people = [{"patient": key.format(i), "age": write(age)} for i, (age, _) in enumerate(world, 1)]
    every = [(i, visit) for i, (_, visits) in enumerate(world, 1) for visit in visits]
    visits = [
        {"visit": key.format(j), "patient": key.format(i), "cost": write(cost)}
        for j, (i, (cost, _)) in enumerate(every, 1)
    ]
    drugs = [
        {"visit": key.format(j), "dose": write(dose)}
        for j, (_, (_, doses)) in enumerate(every, 1)
        for dose in doses
    ]
    text = pl.String
    return {
        "people": pl.DataFrame(people),
        "visits": pl.DataFrame(visits, dict.fromkeys(("visit", "patient", "cost"), text)),
        "drugs": pl.DataFrame(drugs, dict.fromkeys(("visit", "dose"), text)),
    }


def span(ends):
    lo, hi = ends
    return str(lo) if lo == hi else f"[{lo}, {hi}]"


def found_by_doses(published, original, k, m):
    release = frames_of(published, span, "{}")
    audited = audit(release, frames_of(original), doses_policy(k, m))
    return audited["linked"]["matching"]["least"], audited


def recoded(original, random):
    """A release of a few people: one way to publish costs, and one for doses below each cost, with
    a visit here and there withheld, and a dose here and there somebody else's.
    """

    def covering(name, value):
        return random.choice([one for one in SPANS[name] if one[0] <= value <= one[1]])

    costs = {cost: covering("cost", cost) for cost in (0, 1)}
    doses = {(cost, dose): covering("dose", dose) for cost in (0, 1) for dose in (0, 1, 2)}

    def shown(cost, dose):
        return random.choice(SPANS["dose"]) if random.random() < 0.05 else doses[cost, dose]

    def visits_of(visits):
        kept = [visit for visit in visits if random.random() < 0.9]
        return [(costs[cost], [shown(cost, dose) for dose in own]) for cost, own in kept]

    return [((0, 9), visits_of(visits)) for _, visits in original]


@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_who_knows_drugs_with_their_visits_is_taken_for_as_many_as_a_plain_count_says(random, m):
    def visit():
        return random.randint(0, 1), random.choices((0, 1, 2), k=random.randint(0, 2))

    original = [
        (random.randint(0, 9), [visit() for _ in range(random.randint(0, 3))]) for _ in range(5)
    ]
    published = recoded(original, random)
    least = min(candidates(published, own, m) for own in original)
    assert found_by_doses(published, original, 5, m)[0] == least


def test_a_drug_that_moved_to_another_visit_is_found_although_the_files_alone_hold():
    """Everybody has a cheap visit with dose 1 and a dear one with dose 2; two people's doses are
    published below the other visit, where two people show each of them.
    """
    original = [(40, [(0, [1]), (1, [2])])] * 2 + [(40, [(0, [2]), (1, [1])])] * 2
    honest = [((40, 40), [((0, 0), [(a, a)]), ((1, 1), [(b, b)])]) for a, b in [(1, 2), (2, 1)] * 2]
    least, certificate = found_by_doses(honest, original, 2, 2)
    assert (least, certificate.holds) == (2, True)
    moved = [((40, 40), [((0, 0), [(a, a)]), ((1, 1), [(a, a)])]) for a in (1, 2) * 2]
    least, certificate = found_by_doses(moved, original, 2, 2)
    assert least == 0
    assert certificate["promises"][0]["measured"] == 2
    assert certificate["faults"]["matched"] == 4


def test_a_column_that_was_to_be_removed_is_found(released):
    policy = linked_cases.policy()
    policy["attributes"]["name"] = {"role": "identifier"}
    policy["tables"]["visits"]["attributes"]["who"] = {"role": "subject"}
    policy["tables"]["drugs"]["attributes"]["bill"] = {"role": "identifier", "pseudonym": "keyed"}
    drugs = released["drugs"].with_columns(bill=pl.lit("0123456789abcdef" * 2))
    assert audit({**released, "drugs": drugs}, policy=policy).holds
    people = released["people"].with_columns(name=pl.lit("Ada"))
    visits = released["visits"].with_columns(who=pl.lit("p1"))
    left = {"people": people, "visits": visits, "drugs": drugs.with_columns(bill=pl.lit("b1"))}
    assert audit(left, policy=policy)["faults"]["not_removed"] == 3


# Labels, sets of rows and matchings beside slow truths.


@st.composite
def small_worlds(draw):
    """Up to 7 people with up to 3 visits of two kinds, each with up to 2 drugs of two kinds."""
    kind = st.integers(0, 1)
    visit = st.tuples(kind, st.lists(kind, max_size=2))
    return draw(st.lists(st.tuples(kind, st.lists(visit, max_size=3)), min_size=1, max_size=7))


def table_of(name, parent, groups, known=Known.ALL, shows_value=True):
    """A table of these groups of rows, each below one row of its parent."""
    starts = np.concatenate(([0], np.cumsum([len(group) for group in groups]))).astype(np.int64)
    values = [value for group in groups for value in group] if shows_value else []
    cells = [np.array(values, dtype=np.int64)] if shows_value else []
    return ViewedTable(name, parent, starts, cells, known)


def view_of(world, visits=Known.ALL, drugs=Known.ALL):
    rows = [visit for _, own in world for visit in own]
    return View(
        [
            table_of(PEOPLE, None, [[cell for cell, _ in world]]),
            table_of("visits", PEOPLE, [[kind for kind, _ in own] for _, own in world], visits),
            table_of("drugs", "visits", [some for _, some in rows], drugs),
        ]
    )


KNOWN = [(Known.ALL, Known.ALL), (Known.COUNT, Known.ALL), (Known.COUNT, Known.COUNT)]


@given(small_worlds(), st.sampled_from(KNOWN))
def test_people_have_one_label_exactly_if_all_that_is_known_of_their_rows_is_equal(world, known):
    visits, drugs = known

    def shown(kind, some):
        of_drugs = sorted(some) if drugs is Known.ALL else len(some)
        return kind if visits is Known.ALL else 0, of_drugs

    labels = view_of(world, visits, drugs).labels
    plain = [(cell, sorted(shown(*visit) for visit in own)) for cell, own in world]
    for (i, one), (j, other) in combinations(enumerate(plain), 2):
        assert (labels[i] == labels[j]) == (one == other)


def test_the_number_of_drugs_of_visits_that_are_only_counted_betrays_people():
    names, visits = [f"{i}" for i in range(1, 41)], linked_cases.policy()["tables"]["visits"]
    counted = {**visits, "rows": {"known": "count"}, "attributes": {}}
    policy = linked_cases.policy()
    policy["tables"] = {"visits": counted, "drugs": policy["tables"]["drugs"]}
    original = {
        "people": pl.DataFrame({"patient": names, "age": 40, "blood": "A"}),
        "visits": pl.DataFrame({"visit": names, "patient": names}),
        "drugs": pl.DataFrame(
            {"visit": [name for name in names for _ in range(int(name))], "drug": "iron"}
        ),
    }
    found = audit(original, original, policy)
    assert found["promises"][0]["measured"] == 1
    assert found["linked"]["matching"]["least"] < 3


def test_a_value_of_the_row_that_a_known_row_hangs_from_is_asked_about():
    """Everybody has two visits, and each visit with drug 1 is about flu."""
    policy = linked_cases.policy(k=2)
    policy["tables"]["visits"]["attributes"].pop("cost")
    policy["tables"]["drugs"] |= {"rows": {"known": 1}, "attributes": {"drug": {"role": "quasi"}}}
    policy["promises"].append({"model": "l-diversity", "attribute": "visits.disease", "l": 2})
    people, visits = [f"{i}" for i in range(1, 5)], [f"{i}" for i in range(1, 9)]
    released = {
        "people": pl.DataFrame({"patient": people, "age": "40", "blood": "A", "visits.rows": "2"}),
        "visits": pl.DataFrame({"visit": visits, "patient": people * 2, "drugs.rows": "1"}),
        "drugs": pl.DataFrame({"visit": visits, "drug": ["1"] * 4 + ["2"] * 4}),
    }

    def least(diseases):
        visits = released["visits"].with_columns(pl.Series("disease", diseases))
        return measured({**released, "visits": visits}, policy=policy, promise=1)

    assert least(["flu"] * 4 + ["cold"] * 4) == 1
    assert least(["flu", "cold"] * 4) == 2


def test_a_value_below_a_row_is_asked_about_by_what_that_row_shows():
    """Everybody has two visits, and the drug of each cheap one is iron."""
    policy = linked_cases.policy(k=2)
    policy["promises"].append({"model": "l-diversity", "attribute": "drugs.drug", "l": 2})
    people, visits = [f"{i}" for i in range(1, 5)], [f"{i}" for i in range(1, 9)]
    cost = pl.Series("cost", ["10"] * 4 + ["90"] * 4)
    released = {
        "people": pl.DataFrame({"patient": people, "age": "40", "blood": "A", "visits.rows": "2"}),
        "visits": pl.DataFrame(
            {"visit": visits, "patient": people * 2, "disease": "flu", "drugs.rows": "1"}
        ).with_columns(cost),
    }

    def least(drugs):
        drugs = pl.DataFrame({"visit": visits, "drug": drugs})
        return measured({**released, "drugs": drugs}, policy=policy, promise=1)

    assert least(["iron"] * 4 + ["gold", "zinc"] * 2) == 1
    assert least(["iron", "gold", "zinc", "tin"] + ["gold", "zinc"] * 2) == 2


@given(small_worlds(), st.integers(1, 3))
def test_who_knows_m_visits_finds_as_many_people_as_trying_them_does(world, m):
    rows = [[((kind, len(drugs)), set()) for kind, drugs in own] for _, own in world]
    found = view_of(world, visits=m, drugs=Known.COUNT).fewest_alike
    assert found.tolist() == fewest_by_trying(rows, [cell for cell, _ in world], m)


kinds = st.lists(st.integers(0, 1), max_size=2)
visits = st.tuples(kinds, st.lists(kinds, max_size=2))


@given(st.lists(st.lists(visits, max_size=2), min_size=1, max_size=5), st.integers(1, 3))
def test_rows_of_several_tables_may_hang_from_the_same_row(world, m):
    """Drugs hang from visits, and results from samples, which hang from visits."""

    everything = [visit for own in world for visit in own]
    samples = [results for _, own in everything for results in own]
    view = View(
        [
            table_of(PEOPLE, None, [[0] * len(world)], shows_value=False),
            table_of("visits", PEOPLE, world, shows_value=False),
            table_of("drugs", "visits", [drugs for drugs, _ in everything], m),
            table_of("samples", "visits", [own for _, own in everything], shows_value=False),
            table_of("results", "samples", samples, m),
        ]
    )
    rows = [
        [
            *(
                (("drug", value, len(own)), {visit})
                for visit, (drugs, own) in enumerate(person)
                for value in drugs
            ),
            *(
                (("result", value, len(own)), {visit, (visit, sample)})
                for visit, (_, own) in enumerate(person)
                for sample, results in enumerate(own)
                for value in results
            ),
        ]
        for person in world
    ]
    whole = [sorted(len(own) for _, own in person) for person in world]
    assert view.fewest_alike.tolist() == fewest_by_trying(rows, whole, m)


def fewest_by_trying(rows, whole, m):
    """Among how many people each hides. rows: of each person, what each row shows, and the rows
    that it hangs from; whole: what is known of each person beside m rows.
    """

    def shared(one, other):
        return len(one[1] & other[1])

    def fits(known, theirs):
        pairs = list(combinations(range(len(known)), 2))
        return [row[0] for row in known] == [row[0] for row in theirs] and all(
            shared(known[i], known[j]) == shared(theirs[i], theirs[j]) for i, j in pairs
        )

    return [
        min(
            sum(
                whole[other] == whole[person]
                and any(fits(known, chosen) for chosen in permutations(rows[other], size))
                for other in range(len(rows))
            )
            for size in range(m + 1)
            for known in combinations(rows[person], size)
        )
        for person in range(len(rows))
    ]


@given(small_worlds())
def test_more_knowledge_never_leaves_more_people_hidden(world):
    below = {(e.table, e.known): e.below for e in exposures(view_of(world), 3)}
    assert below[PEOPLE, "all"] <= below["visits", "1"] <= below["visits", "2"]
    assert below["visits", "2"] <= below["visits", "all"]


def test_sets_that_are_too_many_to_count_are_refused_not_guessed():
    rows = 840  # which leave 98 million choices of 3
    table = ViewedTable("visits", PEOPLE, np.array([0, rows]), [np.arange(rows)], 3)
    view = View([ViewedTable(PEOPLE, None, np.array([0, 1]), []), table])
    with pytest.raises(InputError, match="not judged"):
        _ = view.fewest_alike


@given(
    st.integers(1, 4).flatmap(
        lambda rows: st.lists(
            st.lists(st.booleans(), min_size=rows, max_size=rows), min_size=1, max_size=4
        )
    )
)
def test_rows_are_matched_exactly_if_some_assignment_fits(lines):
    fits = np.array(lines)
    slots, rows = fits.shape
    some = any(
        all(fits[slot, row] for slot, row in enumerate(chosen))
        for chosen in permutations(range(rows), slots)
    )
    assert is_saturated(fits) == some


def test_people_with_thousands_of_rows_are_matched():
    fits = np.ones((1500, 1500), dtype=bool)
    assert is_saturated(fits)
    assert not is_saturated(fits[:, 1:])


def test_the_attack_finds_exactly_those_whom_a_person_fits(tables, released):
    certificate = audit(released, tables, k=5)
    assert certificate["linked"]["matching"]["least"] >= 3
    wrong = tables["people"].with_columns(age=pl.col("age") + 101)
    shifted = {**tables, "people": wrong}
    policy = linked_cases.policy()
    policy["attributes"]["age"]["domain"] = [0, 300]
    found = audit(released, shifted, policy)
    assert found["linked"]["matching"]["least"] == 0
    assert found["faults"]["matched"] == 40
