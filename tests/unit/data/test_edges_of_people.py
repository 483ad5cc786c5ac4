"""Ways in which one person, or one value, was taken for several, or nobody for somebody."""

from __future__ import annotations

import unicodedata

import polars as pl
import pytest

import shoal
from shoal.data.person_names import names_of, person_name, same_value, without_nobody
from shoal.errors import InputError

SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
"""Marks of format that are drawn around numbers and words."""

POLICY = {
    "version": 1,
    "attributes": {
        "id": {"role": "subject"},
        "age": {"role": "quasi", "type": "number", "domain": [0, 99]},
        "ill": {"role": "sensitive"},
    },
    "promises": [{"model": "k-anonymity", "k": 2}],
}


def with_ill(**keys):
    attributes = POLICY["attributes"] | {"ill": {"role": "sensitive", **keys}}
    promises = [*POLICY["promises"], {"model": "l-diversity", "attribute": "ill", "l": 2}]
    return POLICY | {"attributes": attributes, "promises": promises}


def test_signs_of_format_and_what_is_no_character_make_nobody_another_person():
    unseen = [c for c in range(0x110000) if unicodedata.category(chr(c)) == "Cf" and c not in SEEN]
    unseen += [*range(0xFDD0, 0xFDF0), 0xFFFE, 0xFFFF, 0xE1000]
    texts = [f"P{chr(c)}1" for c in unseen]
    assert {person_name(text) for text in texts} == {"P1"}
    assert {same_value(text) for text in texts} == {"p1"}
    assert set(names_of(pl.Series(texts))) == {"P1"}


@pytest.mark.parametrize("order", ["alphabetical", "frequency", ["low", "Low"]])
def test_an_order_that_lists_a_value_in_two_spellings_is_refused(order):
    frame = pl.DataFrame({"id": ["a", "b"], "age": [1, 2], "ill": ["low", "Low"]})
    with pytest.raises(InputError, match="its order lists twice"):
        shoal.publish(frame, with_ill(type="ordinal", order=order))


@pytest.mark.parametrize("blank", [" ", "\u200b", "n/a", None])
def test_rows_of_texts_that_stand_for_no_value_are_nobody(blank):
    frame = pl.DataFrame({"a": ["x", blank, blank], "b": ["y", "hiv", blank]})
    kept, said = without_nobody(frame, ["", "n/a"])
    assert kept.height == 2
    assert [one.code for one in said] == ["empty-rows"]


@pytest.mark.parametrize("spelled", [" p{}", "P{}", "p{}\u200b"])
def test_a_copy_of_the_subject_in_another_spelling_is_refused(spelled):
    numbers = range(6)
    frame = pl.DataFrame(
        {
            "id": [f"p{n}" for n in numbers],
            "age": [30] * 6,
            "ill": ["a", "b"] * 3,
            "ref": [spelled.format(n) for n in numbers],
        }
    )
    with pytest.raises(InputError, match="'ref'"):
        shoal.publish(frame, POLICY | {"other": "plain"})


def test_a_text_for_no_value_that_ends_in_a_blank_names_nobody():
    frame = pl.DataFrame({"id": ["a", "NULL "], "age": [1, 2], "ill": ["x", "y"]})
    with pytest.raises(InputError, match="without a subject"):
        shoal.publish(frame, POLICY | {"missing_values": ["", "NULL "]})


def test_a_stream_sets_aside_whom_a_decimal_names(tmp_path, monkeypatch, shoal):
    monkeypatch.chdir(tmp_path)
    import json

    lines = [f'{{"id": {n}, "age": 30, "ill": "a"}}' for n in ("1", "1.0", "1e0", "2", '"3"')]
    (tmp_path / "s.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "p.json").write_text(json.dumps(POLICY))
    done = shoal("stream", "s.jsonl", "-p", "p.json", "-o", "o.csv")
    assert pl.read_csv("o.csv").height == 3
    assert "2 bad records" in done.err


@pytest.mark.parametrize(
    "text",
    [
        "k: 0x" + "f" * 4_000,
        "[" * 150 + "]" * 150,
    ],
)
def test_numbers_and_depths_beyond_reason_are_refused(tmp_path, text):
    path = tmp_path / "p.yaml"
    path.write_text(f"version: 1\nx: {text}\n" if text[0] == "[" else f"version: 1\n{text}\n")
    with pytest.raises(InputError, match="fix the syntax"):
        shoal.Policy.load(path)


def test_a_key_of_very_many_parts_is_refused_before_it_is_read(tmp_path):
    (tmp_path / "p.toml").write_text("a" + ".a" * 50_000 + " = 1\n")
    with pytest.raises(InputError, match="more than 100 parts"):
        shoal.Policy.load(tmp_path / "p.toml")
