"""Names are read by whole words."""

import polars as pl
import pytest

from shoal.data.column_words import looks_like_data, mean, names_place, words_of
from shoal.data.table import Table


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("patient_nbr", ["patient", "nbr"]),
        ("PatientID", ["patient", "id"]),
        ("IBANNumber", ["iban", "number"]),
        ("diag_1", ["diag", "1"]),
        ("addr2street", ["addr", "2", "street"]),
        ("marital-status", ["marital", "status"]),
        ("num persons worked", ["num", "persons", "worked"]),
        ("Größe", ["grösse"]),
        ("Straße_Nr", ["strasse", "nr"]),
        ("Prénom", ["prénom"]),
        ("郵便番号", ["郵便番号"]),
        ("DISPOSITION", ["disposition"]),
        ("A1Cresult", ["a", "1", "cresult"]),
        ("", []),
        ("__", []),
    ],
)
def test_words_are_parted_by_signs_digits_and_capitals(name, words):
    assert words_of(name) == words


@pytest.mark.parametrize(
    "name", ["discharge_disposition_id", "num_medications", "DISPOSition", "scoreboard", "outcost"]
)
def test_a_part_of_a_word_says_nothing(name):
    assert not mean(words_of(name), "sensitive")
    assert not mean(words_of(name), "maybe_sensitive")


NAMED = {
    "identifier": """
        Name surname E-Mail IBAN Nachname Patientenname Familienname Straße Wohnadresse
        Telefonnummer Prénom Adresse Téléphone Apellidos Dirección Teléfono
        姓名 患者姓名 手机号码 家庭住址 联系电话 氏名 患者氏名 住所 電話番号 フリガナ 名前
    """,
    "sensitive": """
        Diagnose Hauptdiagnose Hauptdiagnose_(ICD-10) Nebendiagnosen Vorerkrankung ICD10 Maladie_1
        Enfermedad diagnóstico Medikament 主要诊断 入院诊断 病名 診断名 既往歴
    """,
    "maybe_sensitive": """
        GEHALT Jahresgehalt Stundenlohn Haushaltseinkommen Behandlungskosten Salaire Ingresos
        diagnostic_principal 年収 月收入 住院费用 給与
    """,
    "place": "PLZ Postleitzahl Code_postal Código_postal 郵便番号 邮政编码 zip",
}


@pytest.mark.parametrize(
    ("name", "meant"), [(name, meant) for meant in NAMED for name in NAMED[meant].split()]
)
def test_words_and_compounds_of_other_languages_are_known(name, meant):
    assert [one for one in NAMED if mean(words_of(name), one)] == [meant]


@pytest.mark.parametrize(
    ("name", "is_place"),
    [("zip", True), ("ZIP", True), ("post_code", True), ("PostCode", True), ("postal", True),
     ("zipper", False), ("post_id_code", False), ("code", False)],
)  # fmt: skip
def test_places(name, is_place):
    assert names_place(words_of(name)) is is_place


FULL = [f"{first} {last}" for first in ("Ana", "Bo", "Cy") for last in ("Li", "Meyer-Ott", "Rey")]
TEXTS = {
    "name": FULL,
    "street": [f"{full.split()[1]} Street {i}" for i, full in enumerate(FULL)],
    "code": [f"rare{i}" for i in range(9)],
    "mail": [f"{full.split()[0]}{i}@mail.example" for i, full in enumerate(FULL)],
}


@pytest.mark.parametrize(
    "shown", [["name", "mail"], ["mail", "code"], ["name", "street"], [*TEXTS]]
)
def test_names_that_are_written_as_their_cells_look_like_data(shown):
    rows = pl.DataFrame({name: TEXTS[name] for name in shown})
    record = Table(rows[1:].rename(dict(zip(shown, rows.row(0), strict=True))))
    assert looks_like_data(record, record.names) == record.names
    assert looks_like_data(Table(rows), rows.columns) == []


@pytest.mark.parametrize(
    "columns",
    [
        {"Full Name": FULL, "Home Town": FULL[::-1]},
        {"ID1": TEXTS["code"], "ID2": TEXTS["code"][::-1]},
        {"Item 1": ["Item 1a", "Item 2b"] * 5, "Item 2": ["Answer 1", "Answer 2"] * 5},
        {"mail@work": TEXTS["mail"], "age": ["1", "2", "3"] * 3},
    ],
)
def test_names_of_columns_that_are_written_as_cells_may_be_are_names(columns):
    table = Table(pl.DataFrame({name: cells[:9] for name, cells in columns.items()}))
    assert looks_like_data(table, table.names) == []


@pytest.mark.parametrize(
    "name", ["1945-08-17", "17.8.1945", "8/17/45", "2020-03", "1945-08-17 08:30"]
)
def test_a_date_above_dates_looks_like_data_and_one_above_counts_does_not(name):
    days = [f"{name[:-1]}{digit}" for digit in range(1, 4)]
    for table in (Table(pl.DataFrame({"a": days, name: days})), Table(pl.DataFrame({name: days}))):
        assert looks_like_data(table, table.names) == [name]
        table.encode(table.names)
        table.column(name)
        assert looks_like_data(table, table.names) == [name]
    counts = Table(pl.DataFrame({name: ["1", "20", ""]}))
    assert looks_like_data(counts, [name]) == []
