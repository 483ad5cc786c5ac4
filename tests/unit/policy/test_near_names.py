"""Names that a table and its policy write in two ways are said to be; `other: plain` publishes no
column that only looks new.
"""

import time
import unicodedata

import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.data.option import nearest
from shoal.errors import InputError


def policy(other: str = "plain", method: str = "mondrian", **more) -> dict:
    age = {"role": "quasi", "type": "number", "domain": [0, 100]}
    columns = {"first name": "identifier", "age": age, "disease": "sensitive", **more}
    return content_of(columns, 2, other=other, method={"name": method})


def table(**more: list) -> pl.DataFrame:
    names, ages = ["Ann", "Bob", "Cem", "Dan"], [20, 20, 30, 40]
    illnesses = ["flu", "flu", "hiv", "hiv"]
    return pl.DataFrame({"first name": names, "age": ages, "disease": illnesses, **more})


NEAR = {
    "First Name": "named like 'first name' (identifier)",
    "FIRST_NAME": "named like 'first name' (identifier)",
    "\ufb01rst-name.": "named like 'first name' (identifier)",  # a ligature
    "Disease ": "named like 'disease' (sensitive)",
    "\u0430ge": "named like 'age' (quasi)",  # a Cyrillic letter
}


@pytest.mark.parametrize("name", NEAR)
def test_a_column_named_like_another_must_be_named(name):
    shown = (
        f"columns '{name}': not in the policy, but {NEAR[name]}; name it under 'attributes',"
        " 'other: plain' would publish it"
    )
    with pytest.raises(InputError) as refused:
        shoal.publish(table(**{name: list("wxyz")}), policy())
    assert str(refused.value) == shown
    dropped = shoal.publish(table(**{name: list("wxyz")}), policy("drop"))
    assert dropped.data.columns == ["age", "disease"]


def test_names_as_long_as_texts_are_not_compared_letter_by_letter():
    signs = [chr(0x4E00 + 37 * i % 150) for i in range(20_000)]
    started = time.process_time()
    assert nearest("".join(signs), ["".join(signs[::-1])]) is None
    assert nearest("a" * 300, ["A" * 300]) == "A" * 300
    assert [nearest("a" * 1_000_000, ["age"]) for _ in range(20)] == [None] * 20
    assert time.process_time() - started < 2


def test_a_column_that_copies_a_removed_one_must_be_named():
    copied = table(who=["Ann", "Bob", "Cem", "Dan"])
    with pytest.raises(InputError, match=r"'who'.*holds the cells of 'first name' \(identifier\)"):
        shoal.publish(copied, policy())
    assert "who" in shoal.publish(copied, policy(who="plain")).data.columns


def test_what_only_looks_a_little_alike_is_published():
    more = {"surname": list("wxyz"), "age group": list("aabb"), "who": ["Ann", "Bob", "Cem", "Eve"]}
    assert set(shoal.publish(table(**more), policy()).data.columns) >= set(more)


def test_a_constant_is_no_copy():
    constant = table(land=["DE"] * 4, country=["DE"] * 4)
    assert "land" in shoal.publish(constant, policy(country="drop")).data.columns


def test_streams_and_ledgers_refuse_it_too(tmp_path):
    near = table(Firstname=list("wxyz"))
    stream = shoal.stream(policy(method="fads", disease="plain"), delta=50)
    with pytest.raises(InputError, match="named like 'first name'"):
        stream.push(near)
    with pytest.raises(InputError, match="named like 'first name'"):
        shoal.republish(near, policy() | {"method": None}, tmp_path / "l")


BESIDE_AGE = ["Age", "age ", "a\u200bge", "\u0430ge", "\uff41ge"]


@pytest.mark.parametrize("name", BESIDE_AGE)
def test_an_audit_judges_no_release_with_a_column_beside_that_is_named_alike(name):
    """The attack: true ages stand beside the published ones, and nobody asked about them."""
    released = pl.DataFrame({"age": ["20-29"] * 6, "sex": ["m"] * 6, name: list("012345")})
    with pytest.raises(InputError, match=r"not named, but named like 'age' \(quasi\)"):
        shoal.audit(released, quasi=["age", "sex"], k=2)
    assert not shoal.audit(released, quasi=["age", "sex", name], k=2).holds
    asked = content_of({"age": "quasi", "sex": "quasi"}, 2, other="plain")
    with pytest.raises(InputError, match=r"named like 'age' \(quasi\); .*nobody has judged it"):
        shoal.audit(released, asked)


ROWS = [f"{30 + i % 4},M,a" for i in range(40)]


def refused(tmp_path, text: str, names: tuple[str, ...] = ("age", "sex", "d"), **own) -> str:
    (tmp_path / "in.csv").write_text(text, newline="")
    content = content_of(dict.fromkeys(names, "quasi") | own, 4)
    policy = shoal.Policy.from_dict(content, tmp_path)
    with pytest.raises(InputError) as said:
        shoal.publish_file(tmp_path / "in.csv", policy, tmp_path / "out.csv")
    return str(said.value)


def test_names_of_other_capitals_are_said_to_be(tmp_path):
    said = refused(tmp_path, "\n".join(["AGE,Sex , d", *ROWS]))
    assert "3 of 3 names differ from those of the policy only by capitals, blanks" in said
    assert "'AGE' for 'age'" in said


def test_names_between_another_mark_lead_to_the_delimiter(tmp_path):
    said = refused(tmp_path, "\n".join(["age,sex,d", *ROWS]).replace(",", "^"))
    assert "'^' parts those of the policy; say read={'delimiter': '^'}" in said


def test_letters_that_are_composed_otherwise_are_said_to_be(tmp_path):
    nfd = unicodedata.normalize("NFD", "âge")
    said = refused(tmp_path, "\n".join([f"{nfd},sex,d", *ROWS]), ("âge", "sex", "d"))
    assert "names differ only by capitals, blanks, marks or how letters are composed" in said


def test_lines_of_old_macs_are_said_to_be(tmp_path):
    said = refused(tmp_path, "\r".join(["age,sex,d", *ROWS]))
    assert "its lines end in carriage returns alone, as on old Macs" in said


def test_a_hierarchy_with_a_first_line_of_names_or_in_a_workbook_is_said_to_be(tmp_path):
    (tmp_path / "h.csv").write_text("sex;group\nM;*\nF;*\n")
    (tmp_path / "h.xlsx").write_bytes(b"PK\x03\x04" + 20 * b"\0")
    text = "\n".join(["age,sex,d", *ROWS])
    own = {"role": "quasi", "hierarchy": "h.csv"}
    assert "if its first line names the columns" in refused(tmp_path, text, sex=own)
    own = {"role": "quasi", "hierarchy": "h.xlsx"}
    assert "is a workbook; save its sheet as .csv" in refused(tmp_path, text, sex=own)


def test_json_that_is_read_as_csv_is_said_to_be(tmp_path):
    """As a pipe into `shoal stream -` brings it."""
    said = refused(tmp_path, '{"age": 1, "sex": "M"}\n{"age": 2, "sex": "F"}\n')
    assert "the first line is JSON" in said
    assert "whose name says that it is JSON lines" in said
