"""Who recurs under several numbers, or under none, is asked about; namesakes by chance are not."""

import numpy as np
import polars as pl
import pytest

from shoal.advise.propose import propose_policy
from shoal.data.person import recurrence
from shoal.data.person.decision import Verdict, who_is_a_person
from shoal.data.person.recurrence import agree_beyond_neighbours
from shoal.data.table import Table

SYLLABLES = np.array([first + second for first in "bdfglmnrst" for second in "aeiou"])


def visits(
    people: int,
    columns: str,
    numbers: float = 1,
    rows: int = 2,
    number: str = "patient_id",
    older: float = 0,
) -> Table:
    """Visits in any order. numbers: of each person on average. columns: what stands beside them.
    older: by how many years people are from one number to the next.
    """
    rng = np.random.default_rng(11)
    born = np.datetime64("1940-01-01") + rng.integers(0, 23_000, people)
    of_person = {
        "birth_date": born.astype(str),
        "birth_year": born.astype("datetime64[Y]").astype(str),
        "age": (2024 - born.astype("datetime64[Y]").astype(int) - 1970).astype(str),
        "sex": rng.choice(["f", "m"], people),
        "nationality": rng.choice([*"abcde"], people),
        "zip": rng.integers(8_000, 8_400, people).astype(str),
        "first_name": rng.choice(SYLLABLES, people),
        "last_name": np.char.add(rng.choice(SYLLABLES, people), rng.choice(SYLLABLES, people)),
        "height": rng.integers(150, 198, people).astype(str),
    }
    numbered = rng.permutation(np.arange(round(people * numbers)))
    visited = rng.permutation(np.repeat(numbered, rows))
    wave, who = np.divmod(visited, people)
    cells = {name: values[who] for name, values in of_person.items()} | {
        "wave": (wave + 1).astype(str),
        "admitted": np.char.add((2019 + wave).astype(str), "-05-12"),
    }
    if older:
        cells["age"] = (cells["age"].astype(int) + older * wave).astype(str)
    frame = {
        **({number: (100_000 + visited).astype(str)} if number else {}),
        **{name: cells[name] for name in columns.split()},
        "amount": rng.integers(0, 900, len(who)).astype(str),
    }
    return Table(pl.DataFrame(frame))


@pytest.mark.parametrize(
    ("people", "columns"),
    [
        *((300, own) for own in ("birth_date sex", "birth_date sex zip")),
        # many share a year of birth and a sex, so that there only the place tells who recurs
        *((300, own) for own in ("birth_year sex zip", "age sex zip")),
        *((60, f"{birth} sex nationality") for birth in ("birth_date", "birth_year")),
    ],
)
@pytest.mark.parametrize("number", ["mrn", "patient_id", "patient_no", "patient_admission_no"])
@pytest.mark.parametrize("numbers", [1, 2, 3, 5])
def test_one_number_per_visit_is_asked_about(people, columns, number, numbers):
    found = who_is_a_person(visits(people, columns, numbers, number=number))
    is_sure = numbers == 1 and number != "patient_admission_no"  # a doubtful name
    assert found.verdict is (Verdict.SURE if is_sure else Verdict.ASK)
    assert found.candidates[0].columns == (number,)


@pytest.mark.parametrize(("people", "numbers", "rows"), [(20_000, 2, 2), (12_000, 4, 3)])
def test_who_recurs_is_found_in_many_rows(people, numbers, rows):
    several = visits(people, "birth_date sex", numbers, rows)
    one = visits(people * numbers, "birth_date sex", 1, rows)
    found = [who_is_a_person(table).verdict for table in (several, one)]
    assert found == [Verdict.ASK, Verdict.SURE]


@pytest.mark.parametrize("columns", ["birth_date sex", "birth_year sex zip", "age sex zip"])
@pytest.mark.parametrize("numbers", [1, 2])
def test_of_very_many_records_the_births_around_the_middle_tell_who_recurs(
    columns, numbers, monkeypatch
):
    frame = visits(1_000, columns, numbers, rows=1, number="").frame
    unknown = frame.head(900 * numbers).with_columns(pl.lit("").alias(frame.columns[0]))
    table = Table(pl.concat([frame, unknown, unknown, unknown]))
    whole = who_is_a_person(table)
    compared = []

    def looked_at(ranks, keys, *grow):
        compared.append(0 if grow else len(ranks))
        return agree_beyond_neighbours(ranks, keys, *grow)

    monkeypatch.setattr(recurrence, "agree_beyond_neighbours", looked_at)
    monkeypatch.setattr(recurrence, "MOST_RANKED", 400)
    assert who_is_a_person(table) == whole
    assert 400 <= max(compared) <= 600


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
def test_few_people_of_two_numbers_are_enough_where_chance_repeats_nobody(share):
    assert who_is_a_person(visits(200, "birth_date sex zip", 1 + share)).verdict is Verdict.ASK


def test_an_unknown_birth_that_many_share_is_nobody_who_recurs():
    frame = visits(2_000, "birth_date sex", rows=1).frame
    one = pl.when(pl.arange(0, frame.height) % 10 == 0).then(pl.lit("1900-01-01"))
    frame = frame.with_columns(one.otherwise("birth_date").alias("birth_date"))
    assert who_is_a_person(Table(pl.concat([frame, frame]))).verdict is Verdict.SURE


@pytest.mark.parametrize("number", ["customer_id", ""])
@pytest.mark.parametrize(
    ("columns", "profile"),
    [
        ("birth_date sex", {"birth_date", "sex"}),
        ("birth_year sex zip", {"birth_year", "sex", "zip"}),
        ("birth_date sex zip", {"birth_date", "sex", "zip"}),
        ("first_name last_name sex", {"first_name", "last_name"}),
    ],
)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_profiles_that_recur_are_asked_about_where_each_number_has_one_row(
    columns, profile, rows, number
):
    found = who_is_a_person(visits(300, columns, numbers=rows, rows=1, number=number))
    assert [{*one.columns} for one in found.candidates] == [profile] * (rows > 1)


@pytest.mark.parametrize("number", ["respondent_id", "caseid", ""])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(
    ("columns", "older"),
    [
        *[("age sex zip", 1), ("wave age sex zip", 1), ("admitted age sex nationality", 1)],
        *[("wave age sex height", 1), ("admitted age sex", 1)],
        *[("age zip", 1), ("age sex zip", 0.1), ("wave age sex zip", 2), ("wave age sex zip", 0.5)],
        *(("age sex zip nationality", years) for years in (0.5, 2, 3, 5)),
    ],
)
def test_who_recurs_in_a_panel_of_people_who_grow_older_is_asked_about(
    columns, older, rows, number
):
    """Where a number has several rows of one wave, the number is asked about, too."""
    several = visits(300, columns, numbers=3, rows=rows, number=number, older=older)
    assert who_is_a_person(several).verdict is Verdict.ASK
    one = who_is_a_person(visits(900, columns, rows=1, number=number, older=older))
    assert one.verdict is not Verdict.ASK


@pytest.mark.parametrize("born", ["birth_year", "birth_date"])
def test_namesakes_born_in_one_year_recur_if_they_are_many(born):
    frame = visits(900, f"first_name last_name {born}", rows=1, number="").frame
    copied = pl.when(pl.arange(0, 900) != 1)
    names = ["first_name", "last_name", born]
    one = frame.with_columns(copied.then(name).otherwise(pl.col(name).first()) for name in names)
    verdicts = {"birth_year": Verdict.NONE, "birth_date": Verdict.ASK}
    assert who_is_a_person(Table(one)).verdict is verdicts[born]
    assert who_is_a_person(Table(pl.concat([frame, frame.head(300)]))).verdict is Verdict.ASK


TURNS = {
    "eye": "OD OS",
    "knee": "left right",
    "time": "baseline month3 month6",
    "tooth": "11 12 13",
}


@pytest.mark.parametrize("title", TURNS)
@pytest.mark.parametrize("dropped", [0, 0.1])
@pytest.mark.parametrize("columns", ["age", "age sex", "birth_year nationality", ""])
def test_rows_of_one_person_one_below_another_are_asked_about(title, dropped, columns):
    turns, rng = TURNS[title].split(), np.random.default_rng(5)
    people = visits(200, columns, rows=1, number="").frame.drop("amount")
    whose = np.repeat(np.arange(200), rng.choice([1, len(turns)], 200, p=[dropped, 1 - dropped]))
    places = np.concatenate([np.arange(n) for n in np.unique(whose, return_counts=True)[1]])
    beside = {title: np.array(turns)[places], "pressure": rng.integers(10, 40, len(whose))}
    frame = people[whose].with_columns(**{name: pl.Series(of) for name, of in beside.items()})
    found = who_is_a_person(Table(frame.cast(pl.String)))
    assert found.verdict is (Verdict.ASK if columns else Verdict.NONE)
    assert columns or found.may_recur is (title != "tooth")


@pytest.mark.parametrize("title", TURNS)
@pytest.mark.parametrize("is_sorted", [True, False])
def test_people_to_whom_values_are_given_in_turn_are_not_asked_about(title, is_sorted):
    people = visits(240, "age sex", rows=1, number="").frame
    people = people.sort("age") if is_sorted else people
    given = pl.Series(title, TURNS[title].split() * 240)[:240]
    assert who_is_a_person(Table(people.with_columns(given))).verdict is Verdict.NONE


def test_groups_of_each_age_and_both_sexes_are_not_asked_about():
    ages, places = np.tile(np.repeat(np.arange(20), 2), 9) * 5, np.repeat(np.arange(9), 40)
    groups = {"region": places, "age": ages, "sex": [*"mf"] * 180, "count": np.arange(360) % 97}
    assert who_is_a_person(Table(pl.DataFrame(groups).cast(pl.String))).verdict is Verdict.NONE


def test_beside_a_question_about_profiles_one_number_is_the_subject():
    frame = visits(300, "birth_date sex", numbers=3, rows=1, number="client_id").frame
    twice = frame.with_columns(customer_id=pl.col("client_id"))
    roles = [one["role"] for one in propose_policy(twice, k=2).content["attributes"].values()]
    assert roles.count("subject") == 1


def test_profiles_are_counted_in_however_many_rows():
    found = who_is_a_person(visits(20_000, "birth_date sex zip", rows=10, number=""))
    assert [{*one.columns} for one in found.candidates] == [{"birth_date", "sex", "zip"}]
    one = visits(200_000, "birth_date sex zip", rows=1, number="")
    assert who_is_a_person(one).verdict is Verdict.NONE


@pytest.mark.parametrize("beside", ["", " sex", " zip", " sex zip"])
def test_names_that_recur_under_several_numbers_are_asked_about(beside):
    several = who_is_a_person(visits(200, f"first_name last_name{beside}", numbers=2))
    assert several.candidates[1].columns == ("first_name", "last_name")
    alone = who_is_a_person(visits(200, f"first_name last_name{beside}"))
    assert alone.verdict is Verdict.SURE


def test_namesakes_by_chance_do_not_recur():
    """Of 9,000 people with 50 first names and 2,500 last names, many share both."""
    table = visits(9_000, "first_name last_name sex")
    assert table.frame.select("first_name", "last_name").n_unique() < 8_800
    assert who_is_a_person(table).verdict is Verdict.SURE


@pytest.mark.parametrize(
    ("people", "columns", "may_recur"),
    [
        (2_000, "birth_date sex", False),
        (100_000, "birth_date sex", False),
        (600_000, "birth_date sex", True),
        (600_000, "birth_date sex zip", False),
        (300, "age sex", False),
        (9_000, "age sex", True),
        (300, "sex", True),
    ],
)
def test_that_nobody_recurs_is_known_until_each_birth_is_of_many(people, columns, may_recur):
    found = who_is_a_person(visits(people, columns, rows=1, number=""))
    assert (found.verdict, found.may_recur) == (Verdict.NONE, may_recur)


@pytest.mark.parametrize("people", [100_000, 200_000])
def test_people_of_two_records_are_asked_about_though_many_have_their_birth(people):
    found = who_is_a_person(visits(people, "birth_date sex", number=""))
    assert [{*one.columns} for one in found.candidates] == [{"birth_date", "sex"}]
