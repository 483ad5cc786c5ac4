"""Who is one person in invented tables: the worked examples of the rule, and their neighbours; and
where records are counted although a column may number people, every verb says so.
"""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import person_bed
import shoal as library
from person_bed import BEDS, sexes, spread
from sample_policies import content_of
from shoal.data.column_words import name_of
from shoal.data.person import decision
from shoal.data.person.columns import Look, look_of
from shoal.data.person.decision import Answer, PersonCandidate, who_is_a_person
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.samples import patients, purchases
from thorough import examples

F03 = (
    "device_id imei imsi msisdn CALLING_NUM medallion account AccountNumber pupil resident"
    " nhs_number PESEL dni Versichertennummer Patientennummer Fallnummer PATID patnr SUBJID USUBJID"
    " respondent uid userid user_id hash pseudonym 患者番号 会员号 cookie session mac contract"
    " Kundennummer matricule code_patient IDPAZIENTE id_persona email_hash"
).split()

NUMBERED = (
    "codigo_paciente codice_paziente cod_assistito код_пациента ид_клиента 病人ID 病人号"
    " 환자번호 회원번호 사번 学号 Teilnehmer Einwohner henkilotunnus رقم_المريض"
    " αριθμός_ασθενή κωδικός_πελάτη מספר_מטופל"
    " KVNR NISS tckn UPN MBI beneficiary pasient deelnemer"
    " PTID empno tc_kimlik reviewerID author_id enrollee policyholder IPP NSS wearer PAN"
).split()


def answer(frame: pl.DataFrame) -> Answer:
    return who_is_a_person(Table(frame))


def encoded(frame: pl.DataFrame) -> Table:
    table = Table(frame)
    for title in table.names:
        table.column(title)
    return table


def candidates(frame: pl.DataFrame) -> list[tuple[str, ...]]:
    return [one.columns for one in answer(frame).candidates]


@pytest.mark.parametrize("seed", range(1, examples(2, 4)))
@pytest.mark.parametrize("name", BEDS)
def test_the_bed(name, seed):
    bed = BEDS[name]
    found = answer(bed.frame(seed))
    listed = [frozenset(one.columns) for one in found.candidates]
    assert found.verdict.name == bed.verdict
    assert listed[:1] == ([frozenset(bed.first)] if bed.first else [])
    assert set(listed) >= {frozenset(other) for other in bed.others}


@pytest.mark.parametrize("seed", range(1, examples(2, 4)))
@pytest.mark.parametrize("name", BEDS)
def test_under_hidden_names_nothing_is_sure_and_wrong(name, seed):
    bed = BEDS[name]
    found = answer(bed.frame(seed, hidden=True))
    if found.verdict.name == "SURE":
        place = bed.frame().columns.index(*bed.first)
        assert found.candidates[0].columns == (f"x{place}",)


def test_one_row_a_person_is_none():
    for name in ("visits", "measured", "unnamed", "named"):
        bed = BEDS[name]
        first = bed.frame().unique(bed.first, keep="first", maintain_order=True)
        assert answer(first).verdict.name in ("NONE", "ASK"), name
        assert bed.first not in candidates(first), name


@pytest.mark.parametrize("name", F03)
def test_numbers_of_people_in_many_languages_are_found(name):
    rng = np.random.default_rng(1)
    who = rng.integers(0, 60, 600)
    codes = np.array([f"{n:08x}" for n in rng.integers(16**7, 16**8, 60)])
    frame = {name: codes[who], "v": rng.integers(0, 100, 600), "cat": rng.choice(list("abcd"), 600)}
    assert candidates(pl.DataFrame(frame)) == [(name,)]


@pytest.mark.parametrize("name", NUMBERED)
def test_plain_numbers_of_people_are_found_by_their_names(name):
    rng = np.random.default_rng(1)
    frame = {name: rng.integers(1, 60, 600), "v": rng.integers(0, 100, 600)}
    assert candidates(pl.DataFrame(frame)) == [(name,)]


@pytest.mark.parametrize("name", ["patient_id", "ssn"])
@pytest.mark.parametrize(
    "form",
    [
        "101-{0:04}", "2019-{0:05}", "19850102-{0:04}", "{0:02}-34-56", "1,{0:03}", "({0})",
        "-{0}", "1.{0:03}E+09", "{1}.0", "201903{0:02}",
    ],
)  # fmt: skip
def test_the_number_of_a_person_is_found_in_whatever_form(name, form):
    rng = np.random.default_rng(1)
    who = spread(rng, 80, 8)
    frame = {name: [form.format(i + 10, i + 1000) for i in who]}
    frame |= {"sex": sexes(rng, 80)[who], "birth_year": rng.integers(1930, 2010, 80)[who]}
    found = answer(pl.DataFrame(frame))
    assert (found.verdict.name, found.candidates[0].columns) == ("SURE", (name,))


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("phone", "(212) 555-{0:04}"), ("Telefon", "+41 (0)79 555 {0:04}"),
        ("from", "Ann Lee <lee{0}@x.org>"), ("visitor", "1033{0}.1368477{0:03}"),
        ("device", "-3074457345618{0:06}"), ("uid", "-3074457345618{0:06}"),
        ("imei", "3.5432{0}E+14"), ("card_no", "123,{0:03}"), ("patient", "{0},25"),
        ("customer", "[{0}]"), ("participant", "14-3-{0}"),
    ],
)  # fmt: skip
def test_a_column_of_people_is_asked_about_though_it_looks_like_a_measure(name, form):
    rng = np.random.default_rng(1)
    who = spread(rng, 80, 8)
    frame = {name: [form.format(i + 10) for i in who], "n_drugs": rng.integers(0, 40, len(who))}
    assert candidates(pl.DataFrame(frame)) == [(name,)]


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("ssn", "10{0}-12-2{0}37"), ("mrn", "{0}"), ("email", "ann{0}@x.org"), ("login", "ann{0}"),
        ("phone", "+41 44 555 01 0{0}"), ("iban", "DE8937040044053201300{0}"),
        ("passport", "C01X0{0}"), ("uuid", "3f2504e0-4f89-11d3-9a0c-0305e82c330{0}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("people", [1, 2, 3, 9])
def test_however_few_people_a_column_of_identifiers_names_it_is_asked_about(name, form, people):
    if people <= {"iban": 1, "uuid": 1}.get(name, 2 * (name not in ("ssn", "email"))):
        return  # one account may be everybody's, and two words a flag
    who = np.repeat(np.arange(people), 4)
    frame = pl.DataFrame({name: [form.format(i) for i in who], "v": np.arange(len(who)) % 7})
    found = answer(frame)
    assert (found.verdict.name, found.candidates[0].columns) == ("ASK", (name,))


@pytest.mark.parametrize("cells", [["yes", "no"], ["0", "1"], ["", "x"]])
@pytest.mark.parametrize("name", ["ssn", "email", "phone", "iban", "passport", "uuid", "login"])
def test_whether_there_is_an_identifier_numbers_nobody(name, cells):
    assert not candidates(pl.DataFrame({name: cells * 20, "v": np.arange(40) % 7}))


@pytest.mark.parametrize("people", [1, 2, 9])
def test_a_declared_identifier_that_repeats_is_a_candidate_whatever_its_name(people):
    table = Table(pl.DataFrame({"x": [f"a{i % people}" for i in range(36)], "v": [1, 2, 3] * 12}))
    assert not who_is_a_person(table).candidates
    (found,) = who_is_a_person(table, ["x"]).candidates
    assert (found.columns, found.people, found.records) == (("x",), people, 36)


@pytest.mark.parametrize("name", ["num_client", "no_client", "n_patient", "nurse_id", "teacher"])
def test_a_declared_identifier_of_counted_people_or_of_staff_is_a_candidate(name):
    table = Table(pl.DataFrame({name: np.arange(120) % 12, "ward": [*"ABC"] * 40}))
    assert [one.columns for one in who_is_a_person(table, [name]).candidates] == [(name,)]


@pytest.mark.parametrize("name", ["birth_number", "rodne_cislo", "Geburtsnummer"])
def test_a_national_number_that_is_named_for_the_birth_is_asked_about(name):
    who = np.repeat(np.arange(12), 10)
    frame = pl.DataFrame({name: [f"5001{i:02}/1000" for i in who], "ward": [*"ABC"] * 40})
    found = answer(frame)
    assert (found.verdict.name, [one.columns for one in found.candidates]) == ("ASK", [(name,)])


@pytest.mark.parametrize("name", ["first_name", "hospital"])
def test_a_declared_identifier_that_several_share_numbers_nobody(name):
    table = Table(pl.DataFrame({name: ["Ann", "Ben", "Eva"] * 12, "v": [1, 2, 3] * 12}))
    assert not who_is_a_person(table, [name]).candidates


@pytest.mark.parametrize(("episodes", "verdict"), [(1, "SURE"), (3, "ASK")])
def test_a_number_of_which_people_have_several_is_asked_about(episodes, verdict):
    rng = np.random.default_rng(1)
    episode = np.repeat(np.arange(60 * episodes), 3)
    who = episode % 60
    frame = pl.DataFrame(
        {
            "patient_id": [f"P{i:05}" for i in episode],
            "first_name": rng.choice(person_bed.FIRST, 60)[who],
            "last_name": rng.choice(person_bed.LAST, 60)[who],
            "birth_date": [f"19{i % 60 + 30}-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in who],
            "sex": sexes(rng, 60)[who],
        }
    )
    found = answer(frame)
    assert (found.verdict.name, found.candidates[0].columns) == (verdict, ("patient_id",))
    others = [{*one.columns} for one in found.candidates[1:]]
    assert others == [{"first_name", "last_name", "birth_date"}] * (episodes > 1)


@pytest.mark.parametrize("name", ["patient_id", "patient_no", "patient_admission_no"])
@pytest.mark.parametrize(("numbers", "verdict"), [(1, "SURE"), (2, "ASK"), (3, "ASK"), (5, "ASK")])
@pytest.mark.parametrize("birth", ["birth_date", "birth_year"])
def test_a_number_is_not_sure_where_the_same_birth_and_sex_recur_under_several(
    name, numbers, verdict, birth
):
    if numbers == 1 and name == "patient_admission_no":
        return  # is asked about by its name alone
    rng = np.random.default_rng(2)
    number = spread(rng, 60 * numbers, 3)
    who = number % 60
    days = np.datetime64("1930-01-01") + rng.integers(0, 27_000, 60)
    frame = {
        name: [f"A{i:04}" for i in number],
        birth: days.astype(str if birth == "birth_date" else "datetime64[Y]").astype(str)[who],
        "sex": sexes(rng, 60)[who],
        "district": rng.choice(list("NSWE"), 60)[who],
        "ward": rng.choice(list("ABC"), len(who)),
    }
    found = answer(pl.DataFrame(frame))
    assert (found.verdict.name, found.candidates[0].columns) == (verdict, (name,))


@pytest.mark.parametrize("name", ["patient_id", "user_id", "member_no"])
@pytest.mark.parametrize("people", [12, 28, 60])
def test_typing_errors_in_a_nearly_constant_column_make_no_row_a_person(name, people):
    rng = np.random.default_rng(people)
    number = rng.permutation(np.repeat(np.arange(people), 4))
    wrong = rng.permutation(np.arange(4 * people) < round(0.08 * 4 * people))
    sex = np.where(wrong, "m", "f")
    frame = pl.DataFrame({name: [f"P{1001 + one}" for one in number], "sex": sex})
    frame = frame.with_columns(
        district=pl.Series(number % 9), visit=rng.integers(0, 3, len(number))
    )
    assert candidates(frame) == [(name,)]


@pytest.mark.parametrize("name", ["person", "person_id", "patient_id", "customer_id"])
def test_the_number_of_a_person_is_asked_about_though_births_contradict_it(name):
    rows = np.arange(200)
    frame = pl.DataFrame({name: [f"m{row % 90}" for row in rows], "born": 1950 + rows % 40})
    assert candidates(frame) == [(name,)]


@pytest.mark.parametrize("names", [("Name", "Vorname", "Geb."), ("Nachname", "Vorname", "GebDat")])
def test_people_whom_name_and_birth_tell_apart_are_asked_about(names):
    rng = np.random.default_rng(1)
    who = spread(rng, 200, 5)
    texts = (rng.choice([*"abcdefghij"], 200), rng.choice([*"klmnopqrst"], 200))
    days = np.array([f"19{i % 60 + 30}-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(200)])
    frame = {name: cells[who] for name, cells in zip(names, (*texts, days), strict=True)}
    found = candidates(pl.DataFrame({**frame, "drug": rng.integers(0, 40, len(who))}))
    assert {*found[0]} == {*names}


@pytest.mark.parametrize("name", ["num_patient", "No. Kunde", "n_secu", "total_x"])
def test_a_number_that_is_named_as_a_count_is_asked_about_where_it_agrees_as_people_do(name):
    rng = np.random.default_rng(1)
    who = spread(rng, 80, 8)
    frame = {name: who + 1000, "n_drugs": rng.integers(0, 40, len(who))}
    frame |= {"sex": sexes(rng, 80)[who], "birth_year": rng.integers(1930, 2010, 80)[who]}
    found = answer(pl.DataFrame(frame))
    assert (found.verdict.name, found.candidates[0].columns) == ("ASK", (name,))


@pytest.mark.parametrize("heading", ["file_no", "unit_no", "tag", "blood_donor", "country_code"])
@pytest.mark.parametrize("personal", [("sex",), ("birth_year",), ("sex", "birth_year")])
def test_a_stay_is_not_sure_beside_a_key_of_any_heading_that_agrees_as_well(heading, personal):
    rng = np.random.default_rng(1)
    stay = spread(rng, 300, 4)
    who = np.repeat(np.arange(180), rng.integers(1, 3, 180))[:300][stay % 250]
    about = {"sex": sexes(rng, 180)[who], "birth_year": rng.integers(1930, 2010, 180)[who]}
    frame = {"patient_no": stay % 250 + 1000, heading: who, "drug": rng.integers(0, 40, len(who))}
    found = answer(pl.DataFrame({**frame, **{name: about[name] for name in personal}}))
    assert found.verdict.name == "ASK"
    assert {(heading,), ("patient_no",)} <= {one.columns for one in found.candidates}


@pytest.mark.parametrize(
    "name",
    "patient_scan_id patient_biopsy_no patient_tumor_id student_exam_no donor_bag_no"
    " voter_ballot_no Patientenprobennummer Kundenbestellnummer".split(),
)
def test_a_number_of_what_a_person_has_is_asked_about(name):
    rng = np.random.default_rng(1)
    event = spread(rng, 150, 3)
    about = {"sex": sexes(rng, 150), "birth_year": rng.integers(1930, 2010, 150)}
    frame = {name: [f"S-{i + 1000}" for i in event], "cost": rng.integers(0, 900, len(event))}
    found = answer(pl.DataFrame(frame | {key: cells[event] for key, cells in about.items()}))
    assert (found.verdict.name, found.candidates[0].columns) == ("ASK", (name,))


@pytest.mark.parametrize(
    "foreign",
    ["kind", "coat", "incoterm", "breed", "Rasse", "Rechtsform", "plan", "tariff", "fuel_type"],
)
def test_what_animals_firms_accounts_or_machines_have_makes_a_number_no_sure_person(foreign):
    rng = np.random.default_rng(1)
    who = spread(rng, 200, 6)
    frame = {
        "customer_id": who + 10_000,
        foreign: rng.choice(list("abc"), 200)[who],
        "city": rng.integers(0, 30, 200)[who],
        "amount": rng.integers(0, 900, len(who)),
    }
    assert answer(pl.DataFrame(frame)).verdict.name == "ASK"
    frame[foreign] = rng.choice(list("abc"), len(who))  # bought, not what the buyer is
    assert answer(pl.DataFrame(frame)).verdict.name == "SURE"


def test_a_candidate_says_how_many_people_rows_and_most_rows_it_means():
    frame = pl.DataFrame({"user": ["ann"] * 3 + ["bob"] * 2 + ["eve", "?"], "x": list("abcabca")})
    (found,) = answer(frame).candidates
    assert (found.people, found.records, found.most) == (3, 6, 3)
    assert answer(frame).asked == {
        "question": "person",
        "candidates": ["user"],
        "text": "who is one person? by user: 3 people, 2.0 rows each on average, 3 at most of one;"
        " or every record",
    }


def test_keys_that_say_the_same_are_one_candidate_and_none_is_published():
    found = answer(BEDS["calls"].frame())
    assert set(found.candidates[0].twins) == {"imei", "imsi"}
    assert {"imei", "imsi", "called"} <= set(found.removed)


def test_a_profile_is_named_with_its_counts():
    found = answer(BEDS["wearers"].frame())
    assert found.question.startswith("who is one person? no column numbers people, but only 49 ")
    assert "stand in 4000 records" in str(found.candidates[0])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("patient_nbr", "person"), ("PATID", "person"), ("IDPAZIENTE", "person"),
        ("Patientennummer", "person"), ("customer_type", "thing"), ("member of a labor union", ""),
        ("patient_age", "age"), ("doctor_sex", "sex"), ("arztnr", "staff"), ("zip", "thing"),
        ("ZIP code", "thing"), ("nhs_number", "civil"), ("email", "contact"),
        ("is_email_verified", ""), ("from", "contact"), ("from_date", "thing"),
        ("called", "contact"), ("vorname", "first"), ("Prénom", "first"), ("last name", "last"),
        ("name", "name"), ("product_name", "thing"),
        ("kind", ""),
        ("Kind-Nr", "person"), ("hospital_id", "group"), ("HHID", "group"),
        ("icd", "thing"), ("card_no", "proxy"), ("claim_no", "event"), ("UTILITYID", "number"),
        ("paid", ""), ("covid", ""), ("患者番号", "person"), ("性别", "sex"), ("", ""),
    ],
)  # fmt: skip
def test_names_have_classes(name, kind):
    assert name_of(name).kind == kind


@pytest.mark.parametrize("name", ["patient_nbr", "Schüler-Nr", "nhs number", "Prénom", "idade"])
@pytest.mark.parametrize("change", [str.upper, str.lower, str.title, person_bed.without_accents])
def test_case_and_accents_of_a_name_change_nothing(name, change):
    known, changed = name_of(name), name_of(change(name))
    assert (changed.kind, changed.is_number) == (known.kind, known.is_number)


@pytest.mark.parametrize(
    ("cells", "name", "look"),
    [
        (["a@b.c", "d@e.f"], "x", Look("text", "mail")),
        (["Ann <a@b.c>", "<d@e.f>"], "x", Look("text", "mail")),
        (["(212) 555-0143", "+1 (212) 555-0143"], "x", Look("text", "phone")),
        (["1033501218.1368477899", "52018.1500000001"], "x", Look("text", "long")),
        (["3.54321E+14", "1e+11"], "x", Look("text", "long")),
        (["-3074457345618258603", "9153457345618258603"], "x", Look("int", "digits")),
        (["3.2E+07", "1e8"], "x", Look("text")),
        (["10.0.1.2", "192.168.0.17:443"], "x", Look("text", "ip")),
        (["2001:db8::1", "fe80::a1"], "x", Look("text", "ip")),
        (["a5NKL+tLE3zQ6Ol/0f1RuWtW1bQ="], "x", Look("text", "hex")),
        (["00:1a:2b:3c:4d:5e"], "x", Look("text", "mac")),
        (["1234567", "7654321"], "x", Look("int", "digits")),
        (["001", "120"], "x", Look("int", "zeros")),
        (["1", "20", "300"], "x", Look("int")),
        (["20240131", "20231224"], "x", Look("time")),
        (["1700000000", "1710000000"], "start_ts", Look("time")),
        (["1700000000", "1710000000"], "card", Look("int", "digits")),
        (["2024-01-31 10:11", "1999-12-01"], "x", Look("time")),
        (["2024-01", "1999-12"], "x", Look("time")),
        (["85-01-02", "99-12-31"], "x", Look("time")),
        (["1.2.2024", "31.12.99"], "x", Look("time")),
        (["1000.0", "1001.0"], "x", Look("whole")),
        (["10-20", "20-30"], "age_group", Look("span")),
        (["0-9", "10 - 20"], "x", Look("span")),
        (["2019-00123", "2020-00007"], "x", Look("text", "parted")),
        (["12-34-56", "99-34-56"], "x", Look("text", "parted")),
        (["1.5", "2"], "x", Look("fraction")),
        (["1.0", "2.0"], "x", Look("whole")),
        (["[0-10)", "[10-20)"], "x", Look("span")),
        (["-1", "4"], "x", Look("negative")),
        (["S001", "K17"], "x", Look("text", "prefix")),
        (["1" * 5000, "2" * 5000], "x", Look("int", "digits")),
        ([], "x", Look("empty")),
    ],
)
def test_cells_are_told_by_how_they_are_written(cells, name, look):
    assert look_of(cells, name_of(name), len(cells)) == look


@pytest.mark.parametrize("cell", ["a@" + "." * 10**6 + " b", "A@" + "a." * 10**6 + "@"])
def test_how_a_long_cell_is_written_is_found_in_a_blink(cell):
    assert look_of([cell], name_of("x"), 1) == Look("text")


def test_the_samples():
    renamed = patients.generate(800, 7).rename({"patient": "fallnr"})
    assert candidates(renamed) == [("fallnr",)]
    assert candidates(purchases.generate(3000, 1)) == [("customer",)]


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


# What changes nothing


@pytest.mark.parametrize("name", BEDS)
@given(data=st.data())
@settings(max_examples=examples(1, 3), deadline=None)
def test_a_constant_column_changes_nothing(name, data):
    title = data.draw(st.sampled_from(["note", "sex", "patient_id", "Vorname", "household"]))
    frame = BEDS[name].frame()
    if title not in frame.columns:
        assert answer(frame.with_columns(pl.lit("x").alias(title))) == answer(frame)


@pytest.mark.parametrize("name", BEDS)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=examples(1, 3), deadline=None)
def test_the_order_of_rows_changes_nothing(name, seed):
    frame = BEDS[name].frame()
    shuffled = answer(frame.sample(fraction=1, shuffle=True, seed=seed))
    found = answer(frame)
    assert shuffled.verdict is found.verdict
    assert {one.columns for one in shuffled.candidates} == {one.columns for one in found.candidates}


@pytest.mark.parametrize("name", BEDS)
def test_whether_columns_are_encoded_already_changes_nothing(name):
    frame = BEDS[name].frame()
    assert who_is_a_person(encoded(frame)) == answer(frame)


def test_blanks_and_missing_cells_are_nobody():
    frame = BEDS["measured"].frame()
    some = pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit(" NA ")).otherwise(pl.col("SUBJID"))
    (found,) = answer(frame.with_columns(SUBJID=some)).candidates
    assert (found.people, found.records) == (40, 266)


def test_of_many_records_too_the_answer_is_that_of_an_encoded_table():
    frame = purchases.generate(3000, 1)
    many = pl.concat([frame.with_columns(customer=pl.col("customer") + f"-{i}") for i in range(20)])
    found = answer(many)
    assert [one.columns for one in found.candidates] == [("customer",)]
    assert found.candidates[0].people == 20 * frame["customer"].n_unique()
    assert who_is_a_person(encoded(many)) == found


# Where records are counted although a column may number people, every verb says so


@pytest.fixture
def twice() -> pl.DataFrame:
    """200 people with two rows each; sex and birth year are theirs, the ward is the visit's."""
    rng = np.random.default_rng(7)
    person = np.tile(np.arange(200), 2)
    return pl.DataFrame(
        {
            "fallnr": (person + 5000).astype(str),
            "sex": np.array(["m", "f"])[rng.integers(0, 2, 200)][person],
            "born": (1930 + rng.integers(0, 70, 200))[person].astype(str),
            "ward": np.array(list("abcd"))[rng.integers(0, 4, 400)],
        }
    )


@pytest.mark.parametrize(
    ("agreeing", "named"),
    [
        ((), "up to 12 each;"),
        (("a", "b", "c", "d"), "agree on a, b, c, d;"),
        (("a", "b", "c", "d", "e"), "agree on a, b, c and 2 more;"),
    ],
)
def test_columns_that_are_not_named_are_counted(agreeing, named):
    assert named in str(PersonCandidate(("case",), 9, 90, 12, agreeing))


def test_columns_together_say_so():
    text = str(PersonCandidate(("site", "number"), 9, 90, 12))
    assert text.startswith("columns site, number: 90 records carry 9 different combinations")


@pytest.fixture
def policy(twice, tmp_path, monkeypatch) -> dict:
    monkeypatch.chdir(tmp_path)
    twice.write_csv("t.csv")
    quasi = {name: {"role": "quasi"} for name in ("sex", "born", "ward")}
    content = content_of({"fallnr": {"role": "drop"}, **quasi}, 5)
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(content))
    return content


def test_publish_warns_and_publishes(policy, shoal):
    done = shoal("publish", "t.csv", "-p", "p.yaml", "-o", "out.csv", "-q", "--method", "mondrian")
    assert done.status == 0
    assert "shoal: column 'fallnr': 400 records carry 200 different values" in done.err


def test_with_a_subject_nobody_is_warned(policy, tmp_path, shoal):
    policy["attributes"]["fallnr"] = {"role": "subject"}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(policy))
    done = shoal("publish", "t.csv", "-p", "p.yaml", "-o", "out.csv", "-q", "--method", "mondrian")
    assert done.status == 0
    assert "different values" not in done.err


def test_policy_check_warns_and_is_content(policy, shoal):
    done = shoal("policy", "check", "p.yaml", "t.csv")
    assert done.status == 0
    assert "if it numbers people, give it the role 'subject'" in done.err


def test_policy_init_proposes_the_subject_and_asks(twice):
    text = library.propose(twice)
    proposed = yaml.safe_load(text)["attributes"]["fallnr"]
    assert proposed["role"] == "subject"
    assert proposed["ask"]["question"] == "person"
    assert proposed["ask"]["candidates"] == ["fallnr"]
    assert "200 people, 2.0 rows each on average, 2 at most of one" in proposed["ask"]["text"]
    (line,) = [line for line in text.splitlines() if "fallnr" in line]
    assert line.endswith("agree on sex, born: the people that k counts, removed")


def test_a_structured_question_is_open_until_it_is_deleted(policy, tmp_path, shoal):
    policy["attributes"]["fallnr"]["ask"] = {
        "question": "person",
        "candidates": ["fallnr", ["a", "b"]],
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(policy))
    asked = "who is one person, by fallnr, a + b, or every record?"
    for words in (
        ("policy", "check", "p.yaml", "t.csv"),
        ("publish", "t.csv", "-p", "p.yaml", "-o", "o.csv"),
    ):
        done = shoal(*words)
        assert done.status == 2
        assert asked in done.err
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    "ask",
    [{"question": "other", "candidates": ["x"]}, {"question": "person", "candidates": []}, {}],
)
def test_a_structured_question_must_be_whole(policy, tmp_path, shoal, ask):
    policy["attributes"]["fallnr"]["ask"] = ask
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(policy))
    done = shoal("policy", "check", "p.yaml", "t.csv")
    assert (done.status, "ask" in done.err) == (2, True)


def test_publish_warns_of_profiles_where_nothing_numbers_people():
    frame = BEDS["wearers"].frame().drop("X1", "steps")
    with pytest.warns(ReleaseWarning, match="but only 49 profiles of age, gender, height, weight"):
        library.publish(frame, quasi=["age", "gender"], k=5, other="drop")


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
    once = pl.DataFrame(
        {
            "email": [f"Ann{number}@x.org" for number in range(200)],
            "age": rng.integers(18, 90, 200),
            "zip": rng.integers(13000, 13100, 200),
        }
    )
    table = Table(pl.concat([once, once.with_columns(other.alias("email"))]))
    if is_encoded:
        table.encode(["email"])
    (asked,) = who_is_a_person(table).candidates
    found = (asked.columns, asked.people, asked.records, asked.agreeing)
    assert found == (("email",), 200, 400, ("age", "zip"))


def test_the_certificate_and_python_say_it_too(twice):
    policy = content_of(
        {
            "fallnr": {"role": "quasi", "type": "number", "domain": [5000, 5200]},
            "sex": {"role": "quasi"},
            "born": {"role": "drop"},
            "ward": {"role": "drop"},
        },
        5,
        method={"name": "mondrian"},
    )
    with pytest.warns(ReleaseWarning, match="if it numbers people") as caught:
        done = library.publish(twice, policy)
    assert [one.message.code for one in caught] == ["people-assumed"]
    assert done.certificate["warnings"] == [
        {
            "code": "people-assumed",
            "severity": "open",
            "text": str(who_is_a_person(Table(twice)).candidates[0]),
        }
    ]
    policy["attributes"]["fallnr"] = {"role": "subject"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert library.publish(twice, policy).certificate["warnings"] == []


@pytest.mark.parametrize("place", [0, 250, 499])
@pytest.mark.parametrize("name", ["patient_id", "qqq"])
def test_of_very_many_columns_telling_names_and_most_values_are_looked_at(monkeypatch, place, name):
    looked_at = []

    class Counted(decision.PersonColumn):
        def __init__(self, table, title, rows):
            looked_at.append(title)
            super().__init__(table, title, rows)

    monkeypatch.setattr(decision, "PersonColumn", Counted)
    rng = np.random.default_rng(1)
    cells = {f"c{j}": rng.integers(0, 5, 120).astype(str) for j in range(500)}
    people = np.repeat([f"A{7 * i + 100}" for i in range(40)], 3)
    names = list(cells)
    names[place] = name
    frame = pl.DataFrame({**cells, name: people}).select(names)
    answer = decision.who_is_a_person(Table(frame))
    assert len(looked_at) == decision.MOST_COLUMNS
    assert name in looked_at
    if name == "patient_id":
        assert [one.columns for one in answer.candidates] == [(name,)]
