"""A column that is named for people is asked about, whatever stands beside it that sounds as if it
were theirs: an eye, a picture, a child, an account; and beside it, whom nobody must be asked about.
"""

import numpy as np
import polars as pl
import pytest

from person_bed import FIRST, LAST, answer, asked
from shoal.advise.propose import propose_policy
from shoal.data.column_words import name_of
from shoal.reports.advice_in_words import question_lines


def records(title: str, people: int, each: int = 6, form: str = "{}") -> dict[str, np.ndarray]:
    """The records of people, in any order, and what is measured in each."""
    rng = np.random.default_rng(41)
    who = rng.permutation(np.repeat(np.arange(1, people + 1), each))
    return {
        title: np.array([form.format(one) for one in who]),
        "score": rng.integers(0, 40, len(who)),
    }


DAYS = [f"2023-{month:02}-1{day}" for month in range(1, 13) for day in range(9)]


def any_of(rows: int, *values: object) -> np.ndarray:
    return np.random.default_rng(5).choice(values, rows)


def numbered(title: str, cells: list[object], each: int = 6) -> dict[str, np.ndarray]:
    """The records of those who are called so."""
    frame = records(title, len(cells), each)
    return frame | {title: np.array(cells)[frame[title].astype(int) - 1]}


OF_OTHERS = {
    "Eye": ("OD", "OS"),
    "blood_pressure": range(100, 180),
    "blood_glucose": range(70, 200),
    "genre": ("rock", "pop", "jazz"),
    "race": ("Spa", "Imola", "Monza", "Baku"),
    "face_race": [*"WBAL"],
    "ETA": range(1, 40),
    "age_months": range(6, 200),
    "gestational_age_weeks": range(20, 41),
    "account_age_days": range(2000),
    "age_rating": (0, 6, 12, 16, 18),
    "Alter der Ware": range(40),
    "hair_cortisol": range(300),
    "height_cm": range(70, 180),
    "kön_på_bild": [*"mk"],
}


@pytest.mark.parametrize("title", ["subject_id", "user", "reader_no", "patient_id", "child_id"])
@pytest.mark.parametrize("people", [24, 60])
@pytest.mark.parametrize("other", OF_OTHERS)
def test_an_eye_an_account_and_a_picture_drop_no_number_of_people(title, people, other):
    frame = records(title, people)
    assert (title,) in asked(frame | {other: any_of(people * 6, *OF_OTHERS[other])})


@pytest.mark.parametrize(
    ("sex", "age"), [("face_sex", "face_age"), ("pet_sex", "pet_age"), ("child_sex", "child_dob")]
)
def test_a_face_a_pet_and_a_child_of_users_are_not_the_users(sex, age):
    frame = records("user_id", 60, form="u47{}x7") | {sex: any_of(360, *"FM")}
    assert asked(frame | {age: any_of(360, *range(1990, 2020))}) == [("user_id",)]


def test_a_dependent_tells_no_member_apart_where_each_record_has_another():
    births = [f"{2000 + i % 20}-0{i // 20 % 9 + 1}-{i % 19 + 10}" for i in range(360)]
    frame = records("Member ID", 60) | {"Dependent DOB": np.array(births)}
    assert asked(frame | {"Dependent Sex": any_of(360, *"FM")}) == [("Member ID",)]


@pytest.mark.parametrize(
    ("name", "own"),
    [
        *(("sex", True), ("Age", True), ("birth_date", True), ("Geburtsjahr", True)),
        *(("patient_age", True), ("user_sex", True), ("child_age", False), ("pet_age", False)),
        *(("genre", False), ("Eye", False), ("account_age", False), ("age_months", False)),
    ],
)
def test_a_sex_and_an_age_are_a_users_own_unless_the_name_says_whose_they_are(name, own):
    of_user, of_anybody = name_of(name).is_own_of(["user"]), name_of(name).is_own_of([])
    assert of_user == (own and not name.startswith("patient"))
    assert of_anybody == (own or name == "child_age")


@pytest.mark.parametrize("people", [9, 60])
def test_a_clerk_whose_records_differ_by_sex_and_age_is_not_asked_about_but_named(people):
    frame = records("user_id", people, 40) | {"sex": any_of(40 * people, *"FM")}
    frame |= {"age": any_of(40 * people, *range(100)), "test": any_of(40 * people, *"ABC")}
    found = answer(frame)
    assert (found.verdict.name, found.doubted) == ("NONE", ("user_id",))


GROUPS = ["Arm", "Set", "Match", "Class", "Clinic", "Cluster", "Station", "Store", "Pair", "Table"]


def crossed(people: int, groups: int, title: str, group: str, share: float = 1) -> pl.DataFrame:
    who, within = np.divmod(np.arange(people * groups), groups)
    some = np.random.default_rng(3).random(len(who)) < share
    frame = {title: who + 1, group: within + 1, "score": any_of(len(who), *range(40))}
    return {name: cells[some] for name, cells in frame.items()}


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    ("people", "groups", "share"), [(24, 5, 1), (80, 4, 0.74), (5000, 4, 1), (12, 30, 1)]
)
def test_who_takes_part_in_every_group_is_asked_about(group, people, groups, share):
    assert ("Patient ID",) in asked(crossed(people, groups, "Patient ID", group, share))


@pytest.mark.parametrize(
    "title", ["Surname", "Nachname", "Apellidos", "Nom de famille", "Family name", "Vorname"]
)
def test_a_last_or_a_first_name_is_asked_about_where_it_is_the_only_name(title):
    names = [f"{one[:4]}{other[-4:].lower()}" for one in LAST[:8] for other in FIRST[:8]]
    frame = numbered(title, names[1:61])
    assert asked(frame | {"Date": any_of(360, *DAYS[:72])}) == [(title,)]
    alone = {title: frame[title], "age": any_of(360, *range(18, 90))}
    assert asked(alone | {"income": any_of(360, *range(900))}) == []  # namesakes


STAFF = "nurse_id|Teacher ID|Physician_Profile_ID|Nurse|Cashier No|Agent ID|Arzt"


@pytest.mark.parametrize("title", STAFF.split("|"))
@pytest.mark.parametrize("people", [12, 60])
def test_staff_are_asked_about_where_nobody_else_is_in_the_table(title, people):
    frame = records(title, people, 30) | {"shift": any_of(30 * people, *"EFN")}
    assert asked(frame) == [(title,)]
    for other in ("patient_sex", "diagnosis", "client"):
        assert (title,) not in asked(frame | {other: any_of(30 * people, *"ABC")})


def test_a_column_that_looks_like_people_is_named_where_no_column_is_taken_to_number_them():
    frame = numbered("Surname", FIRST, 45)
    frame["Date"] = any_of(720, *DAYS[:72])
    proposal = propose_policy(pl.DataFrame(frame).cast(pl.String), k=5)
    *_, line = question_lines(proposal)
    assert line.startswith("no column is taken to number people, though Surname may: every record")


IN_ROUNDS = "Race Number|Race No|RaceNo|Race #|sex_worker_id|Constable|Comptable|Stable no|Cep No"
IN_ROUNDS += "|Azubi|Nageur|Dossard|Atleta|Pettorale|Oppilas|Žák|Öğrenci|Участник|ΑΜΚΑ|生徒|학생"


@pytest.mark.parametrize("title", IN_ROUNDS.split("|"))
@pytest.mark.parametrize("form", ["{}", "06{:07}1", "N{:03}"])
def test_a_word_for_a_number_or_for_people_outweighs_others(title, form):
    frame = records(title, 120, 5, form)
    frame |= {"round": any_of(600, *range(1, 13)), "time_s": any_of(600, *np.arange(50, 90) / 10)}
    found = answer(frame)
    assert title in (*found.doubted, *(name for one in found.candidates for name in one.columns))


GIVEN = "Hospital Number|Unit No|Trial ID|Line Number|School ID|Spitalnummer|N° d'hôpital|Site code"


@pytest.mark.parametrize("title", GIVEN.split("|"))
@pytest.mark.parametrize("counter", ["Patient No", "Patient", "subject"])
def test_numbers_that_a_group_may_have_given_are_asked_about(title, counter):
    frame = records(title, 60) | {"day": any_of(360, *DAYS)}
    assert asked(frame) == [(title,)]
    frame |= {counter: np.arange(360) + 1}
    assert asked(frame) == [(title,), (counter,)]
    assert (title,) not in asked(frame | {"name": np.array(FIRST * 23)[:360]})
    assert asked(frame | {"sex": any_of(360, *"FM"), "age": any_of(360, *range(90))}) == []
    assert asked(frame | {counter: np.arange(360) ** 2 + 1009}) == []
    assert asked(records(title, 12, 30) | {"day": any_of(360, *DAYS)}) == []
    assert answer(records(title, 60, 40) | {"day": any_of(2400, *DAYS)}).doubted == (title,)


@pytest.mark.parametrize("title", ["Patient", "Name", "patient_id", "Participant"])
@pytest.mark.parametrize(("sign", "asks"), [("-", False), ("?", False), ("", True), ("NA", True)])
def test_signs_that_people_type_for_no_value_are_no_merged_cells(title, sign, asks):
    cells = np.array([f"P{i}" if i % 10 else sign for i in range(1, 201)])
    assert bool(asked({title: cells, "score": any_of(200, *range(40))})) == asks


SIZES = {"A": 70, "B": 50, "C": 31, "D": 22}


def in_sites(form: str, sizes: dict[str, int], each: int = 1) -> tuple[list[str], list[str]]:
    """(records,) whose site, and whose number in it."""
    of = [(site, form.format(i + 1)) for site, count in sizes.items() for i in range(count)]
    return tuple(map(list, zip(*(one for one in of for _ in range(each)), strict=True)))


BEGUN_ANEW = "site Praxis Einrichtung year 施設 sede hospital country study x7"


@pytest.mark.parametrize("title", BEGUN_ANEW.split())
@pytest.mark.parametrize("form", ["P{:03}", "{:04}", "{}", "S-{:02}", "P-{}", "sub-{:02}"])
def test_a_number_that_begins_anew_is_asked_about_with_its_pair(title, form):
    sites, numbers = in_sites(form, SIZES, 4)
    frame = {title: sites, "patient_id": numbers, "score": any_of(len(sites), *range(40))}
    assert asked(frame) == [("patient_id",), (title, "patient_id")]


@pytest.mark.parametrize("wave", ["Wave", "item", "correct"])
def test_a_number_that_runs_through_all_waves_stays_sure(wave):
    frame = records("patient_id", 60, 8, "P{:03}")
    assert answer(frame | {wave: any_of(480, *"ABC")}).verdict.name == "SURE"


@pytest.mark.parametrize("group", ["year", "cntry", "Klasse", "x7"])
@pytest.mark.parametrize("number", ["candidate_no", "Teilnehmernummer", "respondent_id"])
@pytest.mark.parametrize("block", ["room", "sex", "region"])
def test_what_is_given_by_blocks_of_numbers_makes_none_sure_that_may_begin_anew(
    group, number, block
):
    groups, numbers = map(np.repeat, (range(2016, 2022), np.arange(1, 101)), (100, 1))
    frame = {group: groups, number: np.tile(numbers, 6), "score": any_of(600, *range(40))}
    blocks = np.array([*"mf"])[(frame[number] - 1) // 50]
    assert asked(frame | {block: blocks}) == [(number,), (group, number)]
    drawn = np.random.default_rng(3).permutation(np.resize([*"mf"], 100))
    assert answer(frame | {block: drawn[frame[number] - 1]}).verdict.name == "SURE"


@pytest.mark.parametrize("group", ["hospital", "Praxis", "x7"])
@pytest.mark.parametrize("number", ["patient_id", "Patientennummer"])
def test_people_who_differ_from_group_to_group_are_asked_about_with_both(group, number):
    rng, sizes = np.random.default_rng(4), (200, 40)
    who = rng.permutation(np.repeat(np.arange(240), 3))
    frame = {group: np.repeat([*"AB"], sizes)[who], number: (np.arange(240) % 200 + 1)[who]}
    own = {"sex": rng.choice([*"mf"], 240), "birth_year": rng.integers(1930, 2000, 240)}
    assert asked(frame | {name: of[who] for name, of in own.items()}) == [
        (number,), (group, number),
    ]  # fmt: skip
    same = {name: of[frame[number] - 1] for name, of in own.items()}
    assert answer(frame | same).verdict.name == "SURE"


def test_a_number_within_a_cohort_is_asked_about_with_it():
    cohort, patient, hour = (axis.ravel() for axis in np.mgrid[1:9, 1:41, 0:5])
    frame = {"cohort": cohort, "patient_no": patient, "hours": hour, "sex": ["M"] * 1600}
    frame |= {"arm": np.where(patient % 4, "active", "placebo"), "conc": any_of(1600, *range(90))}
    assert asked(frame) == [("patient_no",), ("cohort", "patient_no")]


@pytest.mark.parametrize("title", ["centre", "country", "Praxis"])
@pytest.mark.parametrize("number", ["patient", "subject_no"])
def test_who_differ_by_sex_and_age_in_each_centre_are_a_record_each(title, number):
    sites, numbers = in_sites("{}", SIZES)
    frame = {title: sites, number: numbers, "sex": any_of(173, *"FM")}
    frame |= {"age": np.random.default_rng(8).integers(18, 90, 173), "bmi": any_of(173, 21, 24)}
    assert (number,) not in asked(frame)


@pytest.mark.parametrize("forms", ["{}-{}-{} {}{}{}", "{}.{}.{}-7 {}{}{}-7", "P-{}{}{} P{}{}{}"])
@pytest.mark.parametrize("own", [True, False])
def test_a_number_that_is_written_with_and_without_signs_is_not_sure(forms, own):
    rng = np.random.default_rng(3)
    who = rng.permutation(np.repeat(np.arange(200), 3))
    parts = rng.integers((100, 10, 1000), (800, 99, 9999), (200, 3))
    for share, verdict in ((0.3, "ASK"), (0.0, "SURE")):
        is_other = rng.random(600) < share
        written = zip(who, is_other, strict=True)
        cells = [forms.split()[int(other)].format(*parts[one]) for one, other in written]
        frame = {"SSN": np.array(cells), "ward": any_of(600, *"ABC")}
        if own:
            frame |= {"sex": rng.choice([*"FM"], 200)[who]}
        assert answer(frame).verdict.name == verdict


GAPS = np.sort(np.random.default_rng(6).permutation(140)[:100] + 1)
DRAWN = np.random.default_rng(6).permutation(99_000)[:100] + 100


LETTERS = [f"{one}{other}{first}" for first in "XYZ" for one in "BDFGK" for other in "AEIOU"]
LAYOUTS = {
    "sport": (8, {"round": range(1, 13), "time_s": np.arange(50, 900) / 10, "rank": range(1, 41)}),
    "diary": (9, {"meal": [*"BLD"], "kcal": range(100, 900)}),
    "trials": (40, {"trial": range(1, 41), "rt": range(300, 900), "correct": [0, 1]}),
    "answers": (20, {"item": range(1, 31), "answer": range(1, 6)}),
    "pressure": (4, {"systolic": range(100, 180), "diastolic": range(60, 110)}),
    "days": (6, {"day": DAYS}),
    "items": (6, {"item": [*"abc"]}),
}
FORMS = {"running": range(1, 76), "gaps": GAPS[:75], "random": DRAWN[:75], "letters": LETTERS}
UNKNOWN = "Trikot|zrv|선수들|TN|dossard|Nr. Teiln|대상자"


@pytest.mark.parametrize("title", UNKNOWN.split("|"))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_repeats_in_most_records_under_an_unknown_title_is_at_least_doubted(
    title, form, layout
):
    cells, (each, others) = FORMS[form], LAYOUTS[layout]
    frame = numbered(title, list(cells), each)
    del frame["score"]
    rng = np.random.default_rng(7)
    frame |= {name: rng.choice(values, 75 * each) for name, values in others.items()}
    found = answer(frame)
    assert title in (*found.doubted, *(name for one in found.candidates for name in one.columns))
    assert {*found.doubted} <= {title}
    one_each = {name: cells[:75] for name, cells in frame.items()} | {title: np.array(cells)}
    assert asked(one_each) == []


@pytest.mark.parametrize("title", ["NMI", "trackable", "home", "Haushalt", "foyer"])
@pytest.mark.parametrize("form", ["MAC{:06}", "63{:02}A7", "{}"])
@pytest.mark.parametrize("each", [40, 101, 400])
def test_numbers_and_codes_under_unknown_titles_are_doubted_however_many_records_each_has(
    title, form, each
):
    frame = records(title, 60, each, form) | {"hour": any_of(60 * each, *range(24))}
    assert answer(frame).doubted == (title,)
    assert answer(frame | {"region": np.char.str_len(frame[title])}).doubted == (title,)
    assert not answer(frame | {"sex": any_of(60 * each, *"FM")}).doubted


def test_an_id_behind_capitals_is_asked_about_however_many_records_each_has():
    frame = records("LCLid", 60, 150, "MAC{:06}")
    assert asked(frame | {"hour": any_of(9000, *range(24))}) == [("LCLid",)]


def test_measures_from_one_on_and_words_in_many_records_are_not_doubted():
    measured = np.random.default_rng(8).gamma(3, 8, 20_000).astype(int) + 1
    frame = {"km": measured, "make": any_of(20_000, *FIRST), "origin": any_of(20_000, *LETTERS)}
    assert answer(frame).doubted == ()


def test_measures_and_remarks_under_unknown_titles_are_not_doubted():
    frame = {"rank": any_of(600, *range(1, 60)), "remark": any_of(600, *FIRST)}
    remarks = np.array([f"{one} seemed {two}" for one in LETTERS for two in LETTERS])
    frame |= {"remark": any_of(600, *remarks[::50]), "bp": any_of(600, *range(60, 180))}
    assert answer(frame).doubted == ()


@pytest.mark.parametrize("values", [range(70, 200), range(1900, 2020), range(100, 3000, 25)])
def test_measures_years_and_round_prices_are_not_taken_for_numbers_with_gaps(values):
    frame = {"x7": any_of(900, *values), "day": any_of(900, *DAYS)}
    assert answer(frame).doubted == ()
    assert asked({"x7": frame["x7"], "form": any_of(900, *"abc")}) == []


def test_a_number_with_points_of_thousands_is_doubted_under_any_title():
    drawn = [f"{number // 1000}.{number % 1000:03}" for number in 100 * DRAWN + 7]
    frame = numbered("Expte", [one for one in drawn if len(one) < 10][:60])
    assert answer(frame | {"day": any_of(360, *DAYS)}).doubted == ("Expte",)


WAVES = {
    **{"T{w}_{p:03}": (1, 2, 3), "V{w}-{p:03}": (1, 2, 3, 4), "{w}-{c}": ("pre", "post")},
    **{"{w}/{p:03}": (2021, 2022, 2023), "{w}_{p:03}": ("Baseline", "Followup")},
    **{"STUDY-T{w}-{p:03}": (1, 2, 3), "{w}.{p}": ("t0", "t1", "t2"), "W{w}#{c}": (1, 2)},
}


@pytest.mark.parametrize("title", ["Patient ID", "id", "Code", "Teilnehmer"])
@pytest.mark.parametrize("form", WAVES)
@pytest.mark.parametrize("share", [0.8, 1])
def test_keys_that_begin_with_a_wave_are_asked_about(title, form, share):
    rng = np.random.default_rng(4)
    codes = [f"{'ABCDEFG'[p % 7]}{'HJKLM'[p % 5]}{p % 90 + 10}X" for p in range(1, 101)]
    cells = [form.format(w=w, p=p + 1, c=codes[p]) for p in range(100) for w in WAVES[form]]
    cells = [cell for cell in cells if rng.random() < share]
    found = answer({title: cells, "item": any_of(len(cells), *"abc")})
    assert [(one.columns, one.is_profile) for one in found.candidates] == [((title,), True)]


def test_numbers_of_sites_of_several_sizes_are_no_waves():
    sites, numbers = in_sites("{:03}", SIZES)
    cells = [f"{site}-{number}" for site, number in zip(sites, numbers, strict=True)]
    kept = np.random.default_rng(4).random(173) < 0.8
    for some in (np.array(cells), np.array(cells)[kept]):
        assert asked({"patient_id": some, "item": any_of(len(some), *"abc")}) == []


STAFF_IDS = ["Staff no", "Staff ID", "staff_number"]


@pytest.mark.parametrize("own", ["Respondent ID", "Response ID", "participant_id", "respondent_id"])
@pytest.mark.parametrize("title", ["ID", "Code", "Pseudonym", "Kennung", *STAFF_IDS])
def test_an_id_that_repeats_is_asked_about_first_beside_a_number_of_each_response(own, title):
    frame = numbered(title, list(10_000 + DRAWN)) | {own: np.arange(600) * 7 + 10**9}
    others = [] if own == "Response ID" or title in STAFF_IDS else [(own,)]
    assert asked(frame | {"Wave": any_of(600, *"123")}) == [(title,), *others]


FULL = [f"{first} {last}" for first in FIRST for last in LAST][:200]


@pytest.mark.parametrize("own", ["Mitarbeiter", "Name", "Employee"])
def test_who_leads_people_of_a_name_each_is_not_asked_about(own):
    frame = {own: FULL, "Vorgesetzte": any_of(200, *FULL[:20]), "Eintritt": any_of(200, *DAYS)}
    assert asked(frame) == []
    assert asked({"teacher": FULL, "subject": any_of(200, "Math", "Bio", "Eng")}) == []


def test_ages_marks_and_referrers_are_not_asked_about():
    ages = np.random.default_rng(8).integers(15, 90, 400)
    frame = {"idno": DRAWN[0] + np.arange(400) ** 2, "agea": ages, "inwde": any_of(400, *DAYS)}
    assert asked(frame) == []
    assert asked({"alumno": np.arange(400) + 1, "historia": any_of(400, *range(11))}) == []
    frame = {"client": np.arange(400) + 1, "age": ages}
    frame["sex"] = np.random.default_rng(99).choice([*"FM"], 400)
    assert asked(frame | {"referrer": any_of(400, *FULL[:30])}) == []


def test_a_hospital_number_is_asked_about_beside_keys_of_several_pictures():
    frame = records("Patient No", 60, 4, "E{:03}") | {"day": any_of(240, *DAYS)}
    frame["Hospital Number"] = 4000 + 13 * (np.random.default_rng(3).permutation(240) % 40)
    nth = np.arange(240) // 60
    people = np.tile(np.arange(60), 4)
    frame["Patient No"] = np.array([f"E{p:03}_{n}.png" for p, n in zip(people, nth, strict=True)])
    assert asked(frame) == [("Patient No",), ("Hospital Number",)]


def in_families(number: str, member: str, few: bool) -> dict[str, np.ndarray]:
    """Records of the members of families, in any order."""
    rng = np.random.default_rng(3)
    sizes = rng.choice([1, 2], 400, p=[0.9, 0.1]) if few else rng.integers(1, 6, 400)
    of = np.repeat(np.arange(400), sizes)
    nth = np.concatenate([np.arange(size) + 1 for size in sizes])
    rows = rng.permutation(np.repeat(np.arange(len(of)), 3))
    frame = {number: np.array([f"M{10_000 + 3 * one}X" for one in of[rows]])}
    return frame | {member: nth[rows], "wave": np.tile([1, 2, 3], len(of))}


RANKS = ["PNUM", "PNO", "rang", "family_rank", "x7"]
FAMILIES = [(number, rank) for number in ("MCSID", "insured_number", "AHV") for rank in RANKS]
FAMILIES += [("member_id", "person_code"), ("subscriber_id", "member_seq")]


@pytest.mark.parametrize(
    ("number", "member"), [*FAMILIES, ("Versichertennummer", "Familienmitglied")]
)
@pytest.mark.parametrize("few", [False, True])
def test_a_number_that_counts_who_share_another_is_asked_about_with_it(number, member, few):
    frame = in_families(number, member, few)
    assert {(number,), (number, member)} <= {*asked(frame)}
    scale = answer(
        frame | {"x8": any_of(len(frame["wave"]), 1, 1, 1, 2, 3)} | {member: frame["wave"]}
    )
    assert (number, "x8") not in [one.columns for one in scale.candidates]


@pytest.mark.parametrize("title", ["x7", "Praxis", "code", "centre_id", "Einrichtung"])
@pytest.mark.parametrize("beside", [{}, {"region": 5}, {"region": 5, "size": 11}])
def test_groups_of_one_size_under_an_unknown_title_are_never_sure(title, beside):
    frame = records(title, 40, 25, "C{:02}")
    groups = np.array([int(cell[1:]) for cell in frame[title]])
    frame |= {name: 7 * groups % values for name, values in beside.items()}
    assert answer(frame).verdict.name != "SURE"


def test_callers_are_asked_about_first_and_managers_are_named():
    calls = {"dst": any_of(600, *range(200, 260)), "src": any_of(600, *DRAWN)}
    assert asked(calls | {"duration": any_of(600, *range(90))}) == [("src",), ("dst",)]
    frame = {"Mitarbeiter": FULL, "Vorgesetzte": any_of(200, *FULL[:20])}
    assert answer(frame | {"Eintritt": any_of(200, *DAYS)}).doubted == ("Vorgesetzte",)
