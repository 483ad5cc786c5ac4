"""Names are read by whole words."""

from __future__ import annotations

import pytest

from shoal.data.column_words import (
    IDENTIFIER,
    MAYBE_SENSITIVE,
    SENSITIVE,
    names_place,
    words_of,
)


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
    assert not (SENSITIVE | MAYBE_SENSITIVE) & set(words_of(name))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Diagnose", SENSITIVE), ("enfermedad", SENSITIVE), ("Maladie_1", SENSITIVE),
        ("GEHALT", MAYBE_SENSITIVE), ("diagnostic principal", MAYBE_SENSITIVE),
        ("Nachname", IDENTIFIER), ("Prénom", IDENTIFIER), ("Straße", IDENTIFIER),
    ],
)  # fmt: skip
def test_the_commonest_words_of_other_languages_are_known(name, meant):
    assert meant & set(words_of(name))


@pytest.mark.parametrize(
    ("name", "is_place"),
    [("zip", True), ("ZIP", True), ("post_code", True), ("PostCode", True), ("postal", True),
     ("zipper", False), ("post_id_code", False), ("code", False)],
)  # fmt: skip
def test_places(name, is_place):
    assert names_place(words_of(name)) is is_place
