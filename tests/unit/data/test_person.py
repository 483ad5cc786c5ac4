"""Who is one person in invented tables: the worked examples of the rule, and their neighbours; and
where records are counted although a column may number people, every verb says so.
"""

import functools
import warnings

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import person_bed
import shoal as library
from person_bed import BEDS, answer, sexes, spread
from sample_policies import content_of
from shoal.data.column_words import name_of
from shoal.data.person import decision
from shoal.data.person.columns import Look, look_of
from shoal.data.person.decision import Answer, PersonCandidate, who_is_a_person
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.samples import patients, purchases
from thorough import examples


def first_of(frame) -> tuple[str, tuple[str, ...]]:
    """The verdict, and the columns of the first candidate."""
    found = answer(frame)
    return found.verdict.name, found.candidates[0].columns


def candidates(frame, identifiers=()) -> list[tuple[str, ...]]:
    found = who_is_a_person(Table(pl.DataFrame(frame)), identifiers)
    return [one.columns for one in found.candidates]


def encoded(frame: pl.DataFrame) -> Table:
    table = Table(frame)
    for title in table.names:
        table.column(title)
    return table


@functools.cache
def answered(name: str, seed: int = 1) -> tuple[pl.DataFrame, Answer]:
    frame = BEDS[name].frame(seed)
    return frame, answer(frame)


@pytest.mark.parametrize("seed", range(1, examples(2, 4)))
@pytest.mark.parametrize("name", BEDS)
def test_the_bed_and_under_hidden_names_nothing_that_is_sure_and_wrong(name, seed):
    bed, (frame, found) = BEDS[name], answered(name, seed)
    listed = [frozenset(one.columns) for one in found.candidates]
    assert found.verdict.name == bed.verdict
    assert listed[:1] == ([frozenset(bed.first)] if bed.first else [])
    assert set(listed) >= {frozenset(other) for other in bed.others}
    hidden = answer(bed.frame(seed, hidden=True))
    if hidden.verdict.name == "SURE":
        assert hidden.candidates[0].columns == (f"x{frame.columns.index(*bed.first)}",)


@pytest.mark.parametrize("name", BEDS)
@given(data=st.data())
@settings(max_examples=examples(1, 3), deadline=None)
def test_a_constant_column_the_order_of_rows_and_an_early_encoding_change_nothing(name, data):
    frame, found = answered(name)
    title = data.draw(st.sampled_from(["note", "sex", "patient_id", "Vorname", "household"]))
    if title not in frame.columns:
        assert answer(frame.with_columns(pl.lit("x").alias(title))) == found
    assert who_is_a_person(encoded(frame)) == found
    seed = data.draw(st.integers(0, 10_000))
    shuffled = answer(frame.sample(fraction=1, shuffle=True, seed=seed))
    assert shuffled.verdict is found.verdict
    assert {one.columns for one in shuffled.candidates} == {one.columns for one in found.candidates}


@pytest.mark.parametrize("name", ["visits", "measured", "unnamed", "named"])
def test_one_row_a_person_is_none(name):
    bed = BEDS[name]
    first = answered(name)[0].unique(bed.first, keep="first", maintain_order=True)
    assert answer(first).verdict.name in ("NONE", "ASK")
    assert bed.first not in candidates(first)


@pytest.mark.parametrize(
    ("name", "form", "least"),
    [
        ("ssn", "10{0}-12-2{0}37", 1), ("mrn", "{0}", 3), ("email", "ann{0}@x.org", 1),
        ("login", "ann{0}", 3), ("phone", "+41 44 555 01 0{0}", 3), ("passport", "C01X0{0}", 3),
        ("iban", "DE8937040044053201300{0}", 2),  # one account may be everybody's
        ("uuid", "3f2504e0-4f89-11d3-9a0c-0305e82c330{0}", 2),
        ("birth_number", "5001{0:02}/1000", 3), ("rodne_cislo", "5001{0:02}/1000", 3),
        ("Geburtsnummer", "5001{0:02}/1000", 3),
    ],
)  # fmt: skip
def test_however_few_people_a_column_of_identifiers_names_it_is_asked_about(name, form, least):
    """But two words may be a flag, and whether there is an identifier numbers nobody."""
    for people in {least, 3, 9}:
        who = np.repeat(np.arange(people), 4)
        frame = {name: [form.format(i) for i in who], "v": np.arange(len(who)) % 7}
        assert first_of(frame) == ("ASK", (name,))
    for cells in (["yes", "no"], ["0", "1"], ["", "x"]):
        assert not candidates({name: cells * 20, "v": np.arange(40) % 7})


@pytest.mark.parametrize("people", [1, 2, 9])
def test_a_declared_identifier_that_repeats_is_a_candidate_whatever_its_name(people):
    table = Table(pl.DataFrame({"x": [f"a{i % people}" for i in range(36)], "v": [1, 2, 3] * 12}))
    assert not who_is_a_person(table).candidates
    (found,) = who_is_a_person(table, ["x"]).candidates
    assert (found.columns, found.people, found.records) == (("x",), people, 36)


def test_a_declared_identifier_of_counted_people_or_of_staff_is_one_and_a_shared_one_is_not():
    for name in ("num_client", "no_client", "n_patient", "nurse_id", "teacher"):
        frame = {name: np.arange(120) % 12, "ward": [*"ABC"] * 40}
        assert candidates(frame, [name]) == [(name,)]
    for name in ("first_name", "hospital"):
        assert not candidates({name: ["Ann", "Ben", "Eva"] * 12, "v": [1, 2, 3] * 12}, [name])


@pytest.mark.parametrize(("episodes", "verdict"), [(1, "SURE"), (3, "ASK")])
def test_a_number_of_which_people_have_several_is_asked_about(episodes, verdict):
    rng = np.random.default_rng(1)
    episode = np.repeat(np.arange(60 * episodes), 3)
    who = episode % 60
    frame = {
        "patient_id": [f"P{i:05}" for i in episode],
        "first_name": rng.choice(person_bed.FIRST, 60)[who],
        "last_name": rng.choice(person_bed.LAST, 60)[who],
        "birth_date": [f"19{i % 60 + 30}-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in who],
        "sex": sexes(rng, 60)[who],
    }
    assert first_of(frame) == (verdict, ("patient_id",))
    others = [{*columns} for columns in candidates(frame)[1:]]
    assert others == [{"first_name", "last_name", "birth_date"}] * (episodes > 1)


@pytest.mark.parametrize("name", ["patient_id", "user_id", "member_no"])
@pytest.mark.parametrize("people", [12, 28, 60])
def test_typing_errors_in_a_nearly_constant_column_make_no_row_a_person(name, people):
    rng = np.random.default_rng(people)
    number = rng.permutation(np.repeat(np.arange(people), 4))
    wrong = rng.permutation(np.arange(4 * people) < round(0.08 * 4 * people))
    frame = {name: [f"P{1001 + one}" for one in number], "sex": np.where(wrong, "m", "f")}
    frame |= {"district": number % 9, "visit": rng.integers(0, 3, len(number))}
    assert candidates(frame) == [(name,)]


@pytest.mark.parametrize("name", ["person", "person_id", "patient_id", "customer_id"])
def test_the_number_of_a_person_is_asked_about_though_births_contradict_it(name):
    rows = np.arange(200)
    frame = {name: [f"m{row % 90}" for row in rows], "born": 1950 + rows % 40}
    assert candidates(frame) == [(name,)]


@pytest.mark.parametrize("names", [("Name", "Vorname", "Geb."), ("Nachname", "Vorname", "GebDat")])
def test_people_whom_name_and_birth_tell_apart_are_asked_about(names):
    frame = answered("named")[0].select("Nachname", "Vorname", "Geburtstag", "Praxis")
    assert {*candidates(frame.rename(dict(zip(frame.columns, names, strict=False))))[0]} == {*names}


@pytest.mark.parametrize("heading", ["file_no", "unit_no", "tag", "blood_donor", "country_code"])
@pytest.mark.parametrize("personal", [("sex",), ("birth_year",), ("sex", "birth_year")])
def test_a_stay_is_not_sure_beside_a_key_of_any_heading_that_agrees_as_well(heading, personal):
    rng = np.random.default_rng(1)
    stay = spread(rng, 300, 4)
    who = np.repeat(np.arange(180), rng.integers(1, 3, 180))[:300][stay % 250]
    about = {"sex": sexes(rng, 180)[who], "birth_year": rng.integers(1930, 2010, 180)[who]}
    frame = {"patient_no": stay % 250 + 1000, heading: who, "drug": rng.integers(0, 40, len(who))}
    found = answer({**frame, **{name: about[name] for name in personal}})
    assert found.verdict.name == "ASK"
    assert {(heading,), ("patient_no",)} <= {one.columns for one in found.candidates}


FOREIGN = (
    "kind coat incoterm breed Rasse Rechtsform plan tariff fuel_type djurslag dyreart raza robe"
    " Branche WZ2008 ateco settore cnae tipo_entidad pkd Haushaltsgroesse household_size Zaehlertyp"
    " marca potenza_kw customs_office giro отрасль repo watts taxon"
).split()


@pytest.mark.parametrize("foreign", FOREIGN)
def test_what_animals_firms_accounts_or_machines_have_makes_a_number_no_sure_person(foreign):
    rng = np.random.default_rng(1)
    who = spread(rng, 200, 6)
    frame = {
        "customer_id": who + 10_000,
        foreign: rng.choice(list("abc"), 200)[who],
        "city": rng.integers(0, 30, 200)[who],
        "amount": rng.integers(0, 900, len(who)),
    }
    assert answer(frame).verdict.name == "ASK"
    frame[foreign] = rng.choice(list("abc"), len(who))  # bought, not what the buyer is
    assert answer(frame).verdict.name == "SURE"


def test_events_of_several_are_not_asked_about_where_every_record_has_a_persons_number():
    frame = {"game_no": np.arange(400) // 20 + 7000, "minutes": np.arange(400) % 90}
    assert candidates(frame) == [("game_no",)]
    assert not candidates({"player_id": np.arange(400) + 1000, **frame})


def test_a_candidate_says_how_many_people_rows_and_most_rows_it_means():
    found = answer({"user": ["ann"] * 3 + ["bob"] * 2 + ["eve", "?"], "x": list("abcabca")})
    (one,) = found.candidates
    assert (one.people, one.records, one.most) == (3, 6, 3)
    assert found.asked == {
        "question": "person",
        "candidates": ["user"],
        "text": "who is one person? by user: 3 people, 2.0 rows each on average, 3 at most of one;"
        " or every record",
    }


@pytest.mark.parametrize(
    ("columns", "agreeing", "said"),
    [
        (("case",), (), "up to 12 each;"),
        (("case",), tuple("abcd"), "agree on a, b, c, d;"),
        (("case",), tuple("abcde"), "agree on a, b, c and 2 more;"),
        (("site", "no"), (), "columns site, no: 90 records carry 9 different combinations"),
    ],
)
def test_columns_together_and_columns_that_are_not_named_are_said(columns, agreeing, said):
    assert said in str(PersonCandidate(columns, 9, 90, 12, agreeing))


def test_keys_that_say_the_same_are_one_candidate_and_none_is_published():
    found = answered("calls")[1]
    assert found.candidates[0].columns == ("msisdn",)
    assert {"imei", "imsi", "called"} <= set(found.removed)


def visits_with_codes(codes, **more):
    """1,200 visits of 400 patients, each with one of 30 codes, which all but a few wards share."""
    rng = np.random.default_rng(8)
    drawn = rng.integers(0, 30, 1200)
    return {
        "patient_no": [f"{100_000 + 7 * number}" for number in rng.integers(0, 400, 1200)],
        "finding": [codes(number) for number in drawn],
        "ward": [f"ward {'ABCDEFGH'[number % 8]}" for number in drawn],
        **{name: [which(number) for number in drawn] for name, which in more.items()},
    }


def test_codes_that_agree_on_what_is_coarser_alone_number_nobody():
    found = answer(visits_with_codes(lambda number: f"X{number:03d}"))
    assert found.candidates[0].columns == ("patient_no",)
    assert all("finding" not in one.columns for one in found.candidates)
    assert found.removed == ()


def test_diagnoses_that_repeat_as_numbers_do_are_published_as_private():
    visits = visits_with_codes(
        lambda number: f"{'EJK'[number % 3]}{10 + number}.9",
        doctor=lambda number: "xyz"[number % 3],
    )
    assert "finding" in answer(visits).removed
    roles = library.Policy.from_dict(yaml.safe_load(library.propose(pl.DataFrame(visits)))).model
    assert roles.attributes["finding"].role == "sensitive"
    assert roles.attributes["patient_no"].role == "subject"


def test_a_profile_is_named_with_its_counts_and_warned_of_where_nothing_numbers_people():
    frame, found = answered("wearers")
    assert found.question.startswith("who is one person? no column numbers people, but only 49 ")
    assert "stand in 4000 records" in str(found.candidates[0])
    with pytest.warns(ReleaseWarning, match="but only 49 profiles of age, gender, height, weight"):
        library.publish(frame.drop("X1", "steps"), quasi=["age", "gender"], k=5, other="drop")


KINDS = {
    "person": "patient_nbr PATID IDPAZIENTE Patientennummer Kind-Nr 患者番号",
    "thing": "customer_type zip ZIP_code from_date product_name icd",
    "contact": "email from called",
    "first": "vorname Prénom",
    "last": "last_name",
    "name": "name",
    "group": "hospital_id HHID",
    "age": "patient_age Вік גיל Ηλικία Tuổi อายุ سن",
    "sex": "doctor_sex 性别 Стать מין Φύλο Giới_tính Spol เพศ جنسیت Køn",
    "birth": "Дата_народження תאריך_לידה Ημ._γέννησης Ngày_sinh วันเกิด تاریخ_تولد Data_ur."
    " Datum_nar.",
    "staff": "arztnr Лікар רופא Ιατρός Bác_sĩ Liječnik แพทย์ پزشک",
    "civil": "nhs_number",
    "proxy": "card_no",
    "event": "claim_no",
    "number": "UTILITYID",
    "": "member_of_a_labor_union is_email_verified kind paid covid",
}


@pytest.mark.parametrize(
    ("name", "kind"), [("", ""), *((n, kind) for kind in KINDS for n in KINDS[kind].split())]
)
def test_names_have_classes(name, kind):
    assert name_of(name).kind == name_of(name.replace("_", " ")).kind == kind


@pytest.mark.parametrize("name", ["patient_nbr", "Schüler-Nr", "nhs number", "Prénom", "idade"])
@pytest.mark.parametrize("change", [str.upper, str.lower, str.title, person_bed.without_accents])
def test_case_and_accents_of_a_name_change_nothing(name, change):
    known, changed = name_of(name), name_of(change(name))
    assert (changed.kind, changed.is_number) == (known.kind, known.is_number)


LOOKS = {
    Look("text", "mail"): [["a@b.c", "d@e.f"], ["Ann <a@b.c>", "<d@e.f>"]],
    Look("text", "phone"): [["(212) 555-0143", "+1 (212) 555-0143"]],
    Look("text", "long"): [["1033501218.1368477899", "52018.1500000001"], ["3.54321E+14", "1e+11"]],
    Look("text", "ip"): [["10.0.1.2", "192.168.0.17:443"], ["2001:db8::1", "fe80::a1"]],
    Look("text", "hex"): [["a5NKL+tLE3zQ6Ol/0f1RuWtW1bQ="]],
    Look("text", "mac"): [["00:1a:2b:3c:4d:5e"]],
    Look("text", "parted"): [["2019-00123", "2020-00007"], ["12-34-56", "99-34-56"]],
    Look("text", "prefix"): [["S001", "K17"]],
    Look("text"): [
        ["3.2E+07", "1e8"], ["a@" + "." * 10**6 + " b"], ["A@" + "a." * 10**6 + "@"],
    ],  # the long ones in a blink
    Look("int", "digits"): [
        ["-3074457345618258603", "9153457345618258603"], ["1234567", "7654321"],
        ["1700000000", "1710000000"], ["1" * 5000, "2" * 5000],
    ],
    Look("int", "zeros"): [["001", "120"]],
    Look("int"): [["1", "20", "300"]],
    Look("time"): [
        ["20240131", "20231224"], ["2024-01-31 10:11", "1999-12-01"], ["2024-01", "1999-12"],
        ["85-01-02", "99-12-31"], ["1.2.2024", "31.12.99"],
    ],
    Look("whole"): [["1000.0", "1001.0"], ["1.0", "2.0"]],
    Look("span"): [["10-20", "20-30"], ["0-9", "10 - 20"], ["[0-10)", "[10-20)"]],
    Look("fraction"): [["1.5", "2"]],
    Look("negative"): [["-1", "4"]],
    Look("empty"): [[]],
}  # fmt: skip


@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_cells_are_told_by_how_they_are_written(look):
    assert {look_of(cells, name_of("x"), len(cells)) for cells in LOOKS[look]} == {look}


def test_seconds_are_a_time_where_the_name_says_so():
    assert look_of(["1700000000", "1710000000"], name_of("start_ts"), 2) == Look("time")


def test_the_samples_and_many_records_whose_table_is_encoded_already():
    renamed = patients.generate(800, 7).rename({"patient": "fallnr"})
    assert candidates(renamed) == [("fallnr",)]
    frame = purchases.generate(3000, 1)
    many = pl.concat(
        frame.with_columns(pl.concat_str(pl.lit(letter), "customer").alias("customer"))
        for letter in "abcdefghijklmnopqrst"
    )
    found = answer(many)
    assert [one.columns for one in found.candidates] == candidates(frame) == [("customer",)]
    assert found.candidates[0].people == 20 * frame["customer"].n_unique()
    assert who_is_a_person(encoded(many)) == found


@pytest.mark.long
def test_diabetes(data_folder):
    frame = pl.read_csv(data_folder / "diabetes130" / "diabetic_data.csv.gz", infer_schema=False)
    found = answer(frame)
    assert (found.verdict.name, candidates(frame)) == ("SURE", [("patient_nbr",)])
    assert (found.candidates[0].people, found.candidates[0].records) == (71518, 101766)


def test_adult_and_cup(adult, data_folder):
    assert candidates(adult) == []
    cup = pl.read_csv(data_folder / "cup" / "cup.csv.gz", infer_schema=False, separator=";")
    assert candidates(cup) == []


def test_blanks_and_missing_cells_are_nobody():
    some = pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit(" NA ")).otherwise(pl.col("SUBJID"))
    (found,) = answer(answered("measured")[0].with_columns(SUBJID=some)).candidates
    assert (found.people, found.records) == (40, 266)


@pytest.mark.parametrize(
    "other",
    [
        pl.col("email").str.to_lowercase(),
        pl.col("email") + " ",
        pl.col("email") + "\u200b",
        pl.col("email").str.replace("A", "\uff21"),
    ],
)
@pytest.mark.parametrize("is_encoded", [False, True])
def test_people_whose_two_records_spell_them_otherwise_are_asked_about(other, is_encoded):
    rng = np.random.default_rng(1)
    about = {"age": rng.integers(18, 90, 200), "zip": rng.integers(13000, 13100, 200)}
    once = pl.DataFrame({"email": [f"Ann{number}@x.org" for number in range(200)]} | about)
    table = Table(pl.concat([once, once.with_columns(other.alias("email"))]))
    if is_encoded:
        table.encode(["email"])
    (asked,) = who_is_a_person(table).candidates
    found = (asked.columns, asked.people, asked.records, asked.agreeing)
    assert found == (("email",), 200, 400, ("age", "zip"))


@pytest.mark.parametrize("place", [0, 45, 89])
@pytest.mark.parametrize("name", ["patient_id", "qqq"])
def test_of_very_many_columns_telling_names_and_most_values_are_looked_at(monkeypatch, place, name):
    looked_at = []

    class Counted(decision.PersonColumn):
        def __init__(self, table, title, rows):
            looked_at.append(title)
            super().__init__(table, title, rows)

    monkeypatch.setattr(decision, "PersonColumn", Counted)
    monkeypatch.setattr(decision, "MOST_COLUMNS", 30)
    rng = np.random.default_rng(1)
    cells = {f"c{j}": rng.integers(0, 5, 120).astype(str) for j in range(90)}
    people = np.repeat([f"A{7 * i + 100}" for i in range(40)], 3)
    names = list(cells)
    names[place] = name
    found = candidates(pl.DataFrame({**cells, name: people}).select(names))
    assert len(looked_at) == 30
    assert name in looked_at
    if name == "patient_id":
        assert found == [(name,)]


@pytest.fixture
def twice() -> pl.DataFrame:
    """200 people with two rows each; sex and birth year are theirs, the ward is the visit's."""
    rng = np.random.default_rng(7)
    person = np.tile(np.arange(200), 2)
    frame = {"fallnr": (person + 5000).astype(str), "sex": sexes(rng, 200)[person]}
    frame["born"] = (1930 + rng.integers(0, 70, 200))[person].astype(str)
    return pl.DataFrame(frame | {"ward": rng.choice(list("abcd"), 400)})


@pytest.fixture
def run(twice, folder, shoal):
    """Publishes and checks by a policy with what it says of the number."""
    twice.write_csv("t.csv")
    quasi = {name: {"role": "quasi"} for name in ("sex", "born", "ward")}

    def both(**number):
        content = content_of({"fallnr": number, **quasi}, 5, method={"name": "mondrian"})
        (folder / "p.yaml").write_text(yaml.safe_dump(content))
        publish = shoal("publish", "t.csv", "-p", "p.yaml", "-o", "out.csv", "-q", "--replace")
        return publish, shoal("policy", "check", "p.yaml", "t.csv")

    return both


def test_publish_and_policy_check_warn_where_no_subject_is_named(run):
    publish, check = run(role="drop")
    assert (publish.status, check.status) == (0, 0)
    assert "shoal: column 'fallnr': 400 records carry 200 different values" in publish.err
    assert "if it numbers people, give it the role 'subject'" in check.err
    publish, _ = run(role="subject")
    assert publish.status == 0
    assert "different values" not in publish.err


def test_a_declared_identifier_of_full_names_that_seldom_recur_is_warned_of(folder, shoal):
    names = [f"{first} {last}" for first in person_bed.FIRST[:6] for last in person_bed.LAST[:6]]
    table = {"who": [*names, *names[:4]], "age": [str(20 + i % 36 % 12) for i in range(40)]}
    pl.DataFrame(table | {"city": ["Ulm"] * 40}).write_csv("t.csv")
    roles = {"who": "identifier", "age": {"role": "quasi"}, "city": "plain"}
    content = content_of(roles, 4, method={"name": "mondrian"})
    (folder / "p.yaml").write_text(yaml.safe_dump(content))
    publish = shoal("publish", "t.csv", "-p", "p.yaml", "-o", "out.csv", "-q")
    assert publish.status == 0
    assert "column 'who': 40 records carry 36 different values" in publish.err


def test_a_structured_question_is_open_until_it_is_deleted_and_must_be_whole(run, tmp_path):
    asked = {"question": "person", "candidates": ["fallnr", ["a", "b"]]}
    for done in run(role="drop", ask=asked):
        assert done.status == 2
        assert "who is one person, by fallnr, a + b, or every record?" in done.err
    assert not (tmp_path / "out.csv").exists()
    for ask in ({"question": "other", "candidates": ["x"]}, asked | {"candidates": []}, {}):
        for done in run(role="drop", ask=ask):
            assert (done.status, "ask" in done.err) == (2, True)


def test_policy_init_proposes_the_subject_and_asks(twice):
    text = library.propose(twice)
    proposed = yaml.safe_load(text)["attributes"]["fallnr"]
    assert proposed["role"] == "subject"
    assert proposed["ask"]["question"] == "person"
    assert proposed["ask"]["candidates"] == ["fallnr"]
    assert "200 people, 2.0 rows each on average, 2 at most of one" in proposed["ask"]["text"]
    (line,) = [line for line in text.splitlines() if "fallnr" in line]
    assert line.endswith("agree on sex, born: the people that k counts, removed")


def test_the_certificate_and_python_say_it_too(twice):
    number = {"role": "quasi", "type": "number", "domain": [5000, 5200]}
    policy = content_of({"fallnr": number, "sex": "quasi", "born": "drop", "ward": "drop"}, 5)
    policy["method"] = {"name": "mondrian"}
    with pytest.warns(ReleaseWarning, match="if it numbers people") as caught:
        done = library.publish(twice, policy)
    assert [one.message.code for one in caught] == ["people-assumed"]
    text = str(answer(twice).candidates[0])
    assumed = {"code": "people-assumed", "severity": "open", "text": text}
    assert done.certificate["warnings"] == [assumed]
    policy["attributes"]["fallnr"] = {"role": "subject"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert library.publish(twice, policy).certificate["warnings"] == []
