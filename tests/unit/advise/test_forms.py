"""Columns that are known by how their cells are written, and numbers of people by many names."""

import polars as pl
import pytest

import shoal

N = 60
ICD = [f"{'EIJK'[i % 4]}{10 + i % 30}.{i % 9}" for i in range(N)]
ATC = [f"N0{i % 7}B{'ABC'[i % 3]}{10 + i % 20}" for i in range(N)]
MAILS = [f"p{i}@mail.example" for i in range(N // 2)] * 2
PHONES = [f"+49 30 {1_000_000 + 37 * (i % 30)}" for i in range(N)]
LOCAL_PHONES = [f"0{30 + i % 5}/{100_000 + 37 * (i % 30)}" for i in range(N)]
CODES = [f"{i % 30:07d}" for i in range(N)]
ROOMS = [f"A{10 + i % 30}" for i in range(N)]


def iban(number: int) -> str:
    """A German account number with right check digits."""
    account = f"{37040044_0000000000 + number:018d}"
    return f"DE{98 - int(account + '131400') % 97:02d}{account}"


IBANS = [iban(532013 + i % 30) for i in range(N)]
FAKED = [f"DE12{37040044_0000000000 + i % 30}" for i in range(N)]


def role_of(name: str, cells: list[str | None]) -> str:
    ages = [str(20 + i % 9) for i in range(len(cells))]
    found = shoal.propose_policy(pl.DataFrame({name: cells, "age": ages}))
    return found.columns[0].role


@pytest.mark.parametrize(
    ("cells", "role"),
    [
        (ICD, "sensitive"), ([*ICD[:-3], "?", "unknown", "U07.1"], "sensitive"),
        (ATC, "sensitive"), (PHONES, "identifier"), (LOCAL_PHONES, "identifier"),
        (IBANS, "identifier"), (FAKED, "quasi"), (CODES, "quasi"), (ROOMS, "quasi"),
    ],
)  # fmt: skip
def test_a_column_of_any_name_is_known_by_the_form_of_its_values(cells, role):
    assert role_of("x", cells) == role


def test_addresses_are_removed_or_number_the_people():
    assert role_of("x", MAILS) in ("identifier", "subject")


@pytest.mark.parametrize(
    "name",
    ["Kundennummer", "Patienten-Nr.", "N° patient", "Número de paciente", "患者番号", "患者ID",
     "病人编号", "客户编号", "会員番号", "社員番号"],
)  # fmt: skip
def test_numbers_of_people_in_many_languages(name):
    cells = [f"{1000 + 7 * (i % 400)}" for i in range(800)]
    ages = [str(20 + (i % 400) % 60) for i in range(800)]
    sexes = ["fm"[(i % 400) // 7 % 2] for i in range(800)]
    frame = pl.DataFrame({name: cells, "age": ages, "sex": sexes})
    assert shoal.propose_policy(frame).subject == name


def test_free_text_in_few_rows_is_judged_on_those():
    notes = [f"seen again on day {i} by somebody else" for i in range(30)]
    notes = [*notes, notes[0], *[None] * 500]
    assert role_of("note", notes) == "drop"
    few = [f"part {'abcdef'[i % 6]} of it" for i in range(30)] + [None] * 500
    assert role_of("note", few) == "quasi"


def test_phrases_that_are_often_new_are_free_text_although_some_repeat():
    notes = [f"complains of pain since day {i}" for i in range(90)] + ["no findings today"] * 130
    assert role_of("note", notes) == "drop"
    jobs = [f"worker in trade {'abcdefghij'[i // 6]}{'uvwxyz'[i % 6]}" for i in range(60)] * 5
    assert role_of("job", jobs) == "quasi"
