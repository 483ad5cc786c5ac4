"""Rows that hold nothing of anybody don't count as people in silence; those of people raise no
alarm, however little is known of them.
"""

import random
import time
from itertools import product

import polars as pl
import pytest

from sample_policies import content_of
from shoal.cli.main import status_of
from shoal.data.person.people import ANY_TEST
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.columns import input_warnings
from shoal.policy.binding.table import bound_table
from shoal.policy.policy import Policy
from thorough import every

ROLES = {"pid": "subject", **dict.fromkeys(("age", "sex", "city", "consent"), "quasi")}
ROLES |= {"ill": "sensitive", "total": "sensitive"}


def a_person(number: int) -> dict[str, str]:
    drawn = random.Random(number)
    return {
        "pid": f"P{number}",
        "age": str(drawn.choice([20, 30, 40])),
        "sex": drawn.choice("FM"),
        "city": drawn.choice(["Basel", "Bern"]),
        "consent": drawn.choice(["TRUE", "FALSE"]),
        "ill": drawn.choice(["flu", "gout", "asthma"]),
        "total": str(drawn.randrange(1, 300)),
    }


PEOPLE = [a_person(number) for number in range(60)]
NOTHING = dict.fromkeys(ROLES, "")


def table_of(rows: list[dict[str, str]]) -> Table:
    return Table(pl.DataFrame([{"nr": str(i), **row} for i, row in enumerate(rows)]))


def policy_of(subject: str = "subject", **more: str) -> Policy:
    return Policy.from_dict(content_of({**ROLES, "pid": subject, "nr": "identifier", **more}, 4))


def said_of(rows: list[dict[str, str]] | pl.DataFrame, policy: Policy) -> list[str]:
    table = Table(rows) if isinstance(rows, pl.DataFrame) else table_of(rows)
    found = input_warnings(table, policy.model)
    return [one.text for one in found if one.code == "rows-apart"]


def looks_of(rows: list[dict[str, str]] | pl.DataFrame, policy: Policy) -> list[str]:
    """How each warning begins."""
    return [text.split(" like ")[0] for text in said_of(rows, policy)]


def quasi(names: str, cells: list[object]) -> tuple[pl.DataFrame, Policy]:
    """Columns that are all quasi-identifiers, of one letter each."""
    frame = pl.DataFrame(cells, schema=[*names], orient="row").cast(pl.String)
    return frame, Policy.from_dict(content_of(dict.fromkeys(names, "quasi"), 2))


def test_subtotals_in_the_column_of_people_are_said():
    rows = PEOPLE + [{**NOTHING, "pid": f"Subtotal {i}"} for i in range(8)]
    (said,) = said_of(rows, policy_of())
    assert said.startswith("8 people have no value in any column that a release shows")
    assert "Subtotal" not in said


TOTALS = (
    "Total|Sum|Grand total|Gesamt|合計|Sous-total|Totale generale|TOTAL:|Итого|Mean|Median|Average"
    "|Mittelwert|Durchschnitt|Moyenne|Promedio|Overall mean|Σ|Ø|Übertrag|Gesamt: 200|Total (n=9)"
    "|Σύνολο|합계|Общий итог|الإجمالي الكلي"
)
OF_BASEL = (
    '{} Total|Summe {}|{} Итог|{} 汇总|{} 集計|{} 요약|إجمالي {}|סה"כ {}|Součet z {}|{} Count'
    "|{} Max|{} Anzahl|Nombre {}|Média {}|Recuento de {}|Počet z {}|Gemiddelde {}|{} データの個数"
    "|Σ {}"
)


@pytest.mark.parametrize(
    ("word", "title", "place"),
    every(11, product([*TOTALS.split("|"), *OF_BASEL.split("|")], ["pid", "city"], [0, 30, 60])),
)
def test_a_row_of_totals_is_said_wherever_it_stands(word, title, place):
    word = word.format("P7" if title == "pid" else "Basel")
    total = {**NOTHING, title: word, "age": "1790", "total": "8123"}
    rows = [*PEOPLE[:place], total, *PEOPLE[place:]]
    (said,) = said_of(rows, policy_of())
    assert said.startswith("1 row looks like a total, a note or a second line of names and counts")
    assert word not in said
    assert said_of(rows * 2, policy_of())[0].startswith("2 rows look like a total")


@pytest.mark.parametrize("word", ["", "x", "Zusammen", "Basel Qwerty"])
@pytest.mark.parametrize("grand", [False, True])
def test_sums_among_the_rows_are_said_whatever_they_are_called(word, grand):
    def of(rows):
        return {**NOTHING, "city": word, "total": str(sum(int(row["total"]) for row in rows))}

    parts = [[one for one in PEOPLE if one["city"] == city] for city in ("Basel", "Bern")]
    rows = [row for part in parts for row in [*part, of(part)]] + [of(PEOPLE)] * grand
    assert said_of(rows, policy_of("identifier"))[0].startswith(f"{2 + grand} rows look like a tot")
    for place in (0, 40):
        rows = [*PEOPLE[:place], of(PEOPLE[:place] or PEOPLE), *PEOPLE[place:]]
        assert looks_of(rows, policy_of("identifier")) == ["1 row looks"]


@pytest.mark.parametrize("word", ["", "x", "Basel Qwerty"])
@pytest.mark.parametrize("where", ["above", "below"])
@pytest.mark.parametrize("statistic", ["sum", "mean", "rounded", "number"])
def test_what_is_computed_of_each_part_is_said_above_it_and_below_it(word, where, statistic):
    drawn, groups = random.Random(1), []
    for group in "ABCDE":
        some = [a_person(drawn.randrange(1000)) | {"city": group} for _ in range(11)]
        numbers = [int(row["total"]) for row in some]
        mean = sum(numbers) / len(numbers)
        told = {"sum": sum(numbers), "mean": f"{mean:.1f}", "rounded": round(mean), "number": 11}
        total = {**NOTHING, "city": word or group, "total": str(told[statistic])}
        groups.append([total, *some] if where == "above" else [*some, total])
    assert looks_of([row for some in groups for row in some], policy_of("identifier")) == [
        "5 rows look"
    ]
    others = [{**a_person(drawn.randrange(1000)), "age": "", "sex": ""} for _ in range(5)]
    rows = [row for one, some in zip(others, groups, strict=True) for row in [*some[1:-1], one]]
    assert said_of(rows, policy_of("identifier")) == []


ALL_OF = "All|ALL|Alle|Overall|Whole ward|Station gesamt|Hospital Total|All Basel|Basel (all)"


@pytest.mark.parametrize("word", ALL_OF.split("|"))
@pytest.mark.parametrize("place", [0, 30, 60])
def test_a_row_of_all_is_said_where_it_lacks_a_value(word, place):
    row = {**PEOPLE[0], "sex": "", "age": "47", "city": word}
    rows = [*PEOPLE[:place], row, *PEOPLE[place:]]
    assert looks_of(rows, policy_of("identifier")) == ["1 row looks"]
    complete = [*PEOPLE, {**PEOPLE[0], "city": word}]
    if not {"total", "gesamt"} & {*word.lower().split()}:
        assert said_of(complete, policy_of("identifier")) == []


@pytest.mark.parametrize("place", [0, 30, 60])
def test_a_row_of_zeros_is_said_unless_they_may_be_answers(place):
    zeros = dict.fromkeys(ROLES, "0")
    for row in (zeros, {**zeros, "pid": "P99"}):
        rows = [*PEOPLE[:place], row, *PEOPLE[place:]]
        assert looks_of(rows, policy_of()) == ["1 row looks"]
    answers = [{**row, "sex": "01"[i % 2], "ill": "0", "city": "0"} for i, row in enumerate(PEOPLE)]
    assert said_of([*answers, zeros], policy_of()) == []
    assert said_of([*PEOPLE, {**zeros, "pid": "P99", "age": "20"}], policy_of()) == []


STATISTICS = "SD|Std|Std.abw.|Min|MAX|N|n|count|Anzahl|Ecart type|Écart-type|Std. Dev.|75%|Q1"


@pytest.mark.parametrize("word", STATISTICS.split("|"))
@pytest.mark.parametrize("more", [(), ("Mean",), ("Min.", "q3", "Total")])
def test_rows_of_statistics_below_the_data_are_said(word, more):
    rows = [{**NOTHING, "pid": one, "age": "17.2", "total": "8123"} for one in (word, *more)]
    (said,) = said_of([*PEOPLE, *rows], policy_of())
    assert said.startswith(f"{len(rows)} row{'s look' if more else ' looks'} like a total, a note")


@pytest.mark.parametrize("last", [["N"], ["N", "N"], ["N", "max"], ["Y", "Min"], ["SD"]])
def test_values_that_are_called_as_statistics_raise_no_alarm(last):
    rows = [row | {"sex": "YN"[i % 2], "ill": "max"} for i, row in enumerate(PEOPLE)]
    rows += [{**a_person(99), "sex": one, "city": "", "ill": ""} for one in last]
    assert said_of(rows, policy_of()) == []


@pytest.mark.parametrize("note", ["Source: registry", "n = 300", "* preliminary figures"])
def test_notes_below_a_table_are_said_and_a_second_line_of_names(note):
    notes = [{**NOTHING, "city": note}, {**NOTHING, "city": f"{note} (2)"}]
    frame = pl.DataFrame([*PEOPLE, *notes, {name: name for name in ROLES}])
    assert looks_of(frame, policy_of(nr="drop")) == ["3 rows look"]


@pytest.mark.parametrize("value", ["Total", "total", "Sum"])
def test_a_value_that_is_called_so_and_a_person_with_one_raise_no_alarm(value):
    rows = [row | ({"ill": value} if i % 3 else {}) for i, row in enumerate(PEOPLE)]
    rows += [row | {"consent": "", "pid": f"Q{i}"} for i, row in enumerate(rows[:9])]
    rows += [{**NOTHING, "pid": "R1", "city": "Olten"}, {**PEOPLE[0], "pid": "Sumi", "sex": "sex"}]
    assert said_of(rows, policy_of()) == []


@pytest.mark.parametrize("filled", [{"consent": "FALSE"}, {"consent": "FALSE", "total": "0"}])
@pytest.mark.parametrize("counter", ["identifier", "plain"])
@pytest.mark.parametrize("sign", ["", "-", "n/a"])
def test_spare_rows_of_a_form_are_said(filled, counter, sign):
    rows = PEOPLE + [{**dict.fromkeys(ROLES, sign), **filled} for _ in range(30)]
    assert said_of(rows, policy_of("identifier", nr=counter))[0].startswith("30 people")


def test_what_all_rows_hold_makes_nobody():
    rows = [{**row, "consent": "TRUE"} for row in [*PEOPLE, *[NOTHING] * 2]]
    assert said_of(rows, policy_of("identifier"))[0].startswith("2 people")


@pytest.mark.parametrize("subject", ["subject", "identifier"])
@pytest.mark.parametrize("answered", ["age", "sex", "consent", "ill", "total"])
def test_people_who_gave_one_answer_raise_no_alarm(subject, answered):
    some = [{**NOTHING, "pid": row["pid"], answered: row[answered]} for row in PEOPLE[:30]]
    assert said_of(some + PEOPLE[30:], policy_of(subject)) == []


def test_one_person_with_one_answer_raises_no_alarm():
    assert said_of([*PEOPLE, {**NOTHING, "sex": "F"}], policy_of("identifier")) == []


def test_a_rare_value_that_is_all_that_is_known_of_one_raises_no_alarm():
    """It was taken for what "all such rows" repeat."""
    rows = [*map(a_person, range(200)), {**NOTHING, "total": "160.9"}]
    assert said_of(rows, policy_of("identifier")) == []


def test_questions_that_are_asked_of_men_alone_raise_no_alarm():
    asked = ("ill", "total", "city")
    rows = [row | dict.fromkeys(asked, "") if row["sex"] == "F" else row for row in PEOPLE]
    policy = policy_of("identifier", age="drop", consent="drop", city="sensitive")
    assert said_of(rows, policy) == []


def test_a_visit_without_values_of_a_known_person_raises_no_alarm():
    visits = [{**NOTHING, "pid": row["pid"]} for row in PEOPLE]
    assert said_of(PEOPLE + visits, policy_of()) == []


@pytest.mark.parametrize("subject", ["subject", "identifier"])
@pytest.mark.parametrize("sign", ["-", "?", "N/A", "unknown", "\\N", "<NA>", "#NV"])
def test_rows_of_signs_for_no_value_are_refused_until_they_are_listed(subject, sign):
    rows, policy = table_of([*PEOPLE, *[dict.fromkeys(ROLES, sign)] * 9]), policy_of(subject)
    with pytest.raises(InputError, match="9 rows hold nothing but usual signs") as refused:
        bound_table(rows, policy)
    assert "'missing_values'" in str(refused.value)
    assert "if they are people, name who is one under 'subject'" in str(refused.value)
    content = policy.model.model_dump(exclude_unset=True) | {"missing_values": ["", sign]}
    listed = Policy.from_dict(content)
    assert bound_table(listed.tables.original_table(rows), listed).encoded.records == 60


@pytest.mark.parametrize("memory", [[], ["--memory", "1 GB"]])
def test_check_and_publish_refuse_rows_of_signs_alike(folder, capsys, memory):
    table_of([*PEOPLE, dict.fromkeys(ROLES, "-")]).frame.write_csv("t.csv")
    policy_of().save("p.yaml")
    said = []
    for command in (["policy", "check", "p.yaml", "t.csv"], "publish t.csv -p p.yaml -o o.csv"):
        words = command if isinstance(command, list) else [*command.split(), *memory]
        capsys.readouterr()
        assert status_of(words) == 2
        said.append(capsys.readouterr().err.splitlines()[-1])
    assert said[0] == said[1]
    assert "1 row holds nothing but usual signs" in said[0]


NAMES = {"pid": "Person ID", "age": "How old are you?", "sex": "Sex", "city": "Where do you live?"}
NAMES |= {"consent": "Do you agree?", "ill": "What have you?", "total": "Total cost"}
IMPORTED = {name: f'{{"ImportId":"{name}"}}' for name in ROLES}
TYPES = {**dict.fromkeys(ROLES, "varchar"), "age": "int", "total": "double"}
SURVEY = {**NOTHING, **dict.fromkeys(("age", "city", "ill", "sex"), "Open-Ended Response")}


@pytest.mark.parametrize("lines", [[NAMES], [TYPES], [SURVEY], [IMPORTED], [NAMES, IMPORTED]])
def test_lines_that_say_in_other_words_what_columns_are_are_said(lines):
    rows = "1 row looks" if len(lines) == 1 else f"{len(lines)} rows look"
    assert looks_of(pl.DataFrame([*lines, *PEOPLE]), policy_of(nr="drop")) == [rows]


def test_units_below_the_names_of_columns_are_said_though_they_are_listed_as_missing():
    units = {**NOTHING, "pid": "no.", "age": "years", "sex": "f/m", "ill": "ICD 10", "total": "CHF"}
    content = content_of({**ROLES, "pid": "identifier", "consent": "drop"}, 4)
    policy = Policy.from_dict({**content, "missing_values": ["", "years", "no.", "CHF"]})
    rows = [{**row, "pid": str(7000 + i)} for i, row in enumerate(PEOPLE)]
    assert "1 row looks" in looks_of(pl.DataFrame([units, *rows]), policy)
    assert said_of(pl.DataFrame([{**rows[0], "age": "years"}, *rows[1:]]), policy) == []


@pytest.mark.parametrize("sex", ["F", "other"])
@pytest.mark.parametrize("age", ["unknown", "not asked", "20"])
@pytest.mark.parametrize("city", ["Olten", "La Chaux-de-Fonds", "Bern"])
def test_a_first_person_with_rare_values_raises_no_alarm(sex, age, city):
    first = {**PEOPLE[0], "sex": sex, "age": age, "city": city}
    assert said_of([first, *PEOPLE[1:]], policy_of()) == []
    names = [{"pid": f"Anna {'abcdef'[i % 6]}{'uvwxyz'[i // 10]}x", "age": "20"} for i in range(60)]
    frame = pl.DataFrame([{**names[0], "age": age}, *names[1:]])
    policy = Policy.from_dict(content_of({"pid": "identifier", "age": "quasi"}, 4))
    assert not [one for one in input_warnings(Table(frame), policy.model) if "looks" in one.text]


WORDS = (
    "Общий итог|Totale complessivo|Suma końcowa|Eindtotaal|Végösszeg|الإجمالي الكلي|รวม|Tổng cộng|x"
)
HEALTH = {
    **{"pid": "identifier", "cost": "sensitive"},
    **dict.fromkeys(("ward", "sex", "age", "kg"), "quasi"),
}


def a_patient(number: int) -> dict[str, str]:
    drawn = random.Random(number)
    person = {"pid": f"P{number}", "sex": drawn.choice("FM"), "ward": drawn.choice("AB")}
    person["age"] = str(drawn.randrange(20, 90))
    return person | {"kg": f"{drawn.uniform(50, 99):.1f}", "cost": str(drawn.randrange(1, 400))}


def said_below(rows: list[dict[str, str]], *last: dict[str, str]) -> list[str]:
    frame = pl.DataFrame([*rows, *({**dict.fromkeys(HEALTH, ""), **row} for row in last)])
    return looks_of(frame, Policy.from_dict(content_of(HEALTH, 4)))


PATIENTS = [a_patient(number) for number in range(40)]
NUMBERS = {name: [float(row[name]) for row in PATIENTS] for name in ("age", "kg", "cost")}
SUMS = {name: f"{sum(numbers):.1f}" for name, numbers in NUMBERS.items()}
MEANS = {name: f"{sum(numbers) / 40:.2f}" for name, numbers in NUMBERS.items()}
ENDS = [{n: str(end(numbers)) for n, numbers in NUMBERS.items()} for end in (min, max)]


@pytest.mark.parametrize("word", every(2, WORDS.split("|")))
def test_sums_and_means_below_the_data_are_said_whatever_they_are_called(word):
    for row in (SUMS, MEANS, {"kg": SUMS["kg"]}, {"age": "40", "cost": "40"}):
        assert said_below(PATIENTS, {"pid": word, **row}) == ["1 row looks"]
    rows = [{"pid": word, "sex": "F", **SUMS}, *({"pid": word, **row} for row in ENDS)]
    assert said_below(PATIENTS, *rows) == ["3 rows look"]
    assert said_below(PATIENTS, {"pid": word, **ENDS[0]}) == ["1 row looks"]


@pytest.mark.parametrize("last", ["N=40", "Total patients: 40", "%", "Общий итог", "★"])
def test_a_last_row_that_alone_is_empty_but_for_an_unusual_text_is_said(last):
    assert said_below(PATIENTS, {"pid": last}) == ["1 row looks"]
    assert said_below([{**PATIENTS[0], "age": "", "kg": "", "cost": ""}, *PATIENTS], {"pid": last})


def test_zeros_alone_below_the_data_are_said():
    assert said_below(PATIENTS, {"cost": "0"}, {"kg": "0.0"}) == ["2 rows look"]
    assert said_below(PATIENTS, {"cost": "1"}, {"kg": "0.0", "sex": "F"}) == []


@pytest.mark.parametrize("order", ["pid", "age", "kg", "cost"])
@pytest.mark.parametrize("people", [3, 5, 40])
def test_people_in_any_order_are_not_taken_for_statistics(order, people):
    rows = sorted(PATIENTS[:people], key=lambda row: (len(row[order]), row[order]))
    for some in (rows, rows[::-1], [{**row, "sex": ""} for row in rows]):
        assert said_below(some) == []
        assert said_below(some, {**PATIENTS[0], "cost": "", "kg": ""}) == []


@pytest.mark.parametrize("cells", [[1, 2, 3, 4, 10], [1, 2, 3, 3, 3], [0, 0, 1, 1, 2], [5] * 5])
def test_one_column_of_five_numbers_raises_no_alarm(cells):
    rows = [{**a_patient(i), "cost": str(cell), "kg": ""} for i, cell in enumerate(cells)]
    assert said_below(rows) == []
    assert said_of(*quasi("c", [[cell] for cell in cells])) == []


def test_answers_on_a_scale_and_flags_are_not_taken_for_statistics():
    for last in ("0000", "1111", "3333", "0123"):
        rows = [[str((i * j) % 4) for j in (1, 3, 5, 7)] for i in range(40)] + [[*last]]
        assert said_of(*quasi("abcd", rows)) == []


TESTS = "TEST001|ZZTEST|DUMMY|Test Patient|Mustermann, Max|Beispiel|Example|Demo Patient|XXX"
TESTS += "|John Doe|Doe, Jane|Mickey Mouse|Training Patient|Fake Person|TESTFALL|DO NOT USE"


@pytest.mark.parametrize("test", TESTS.split("|"))
def test_records_of_a_test_are_said_with_their_column(test):
    found = input_warnings(table_of([*PEOPLE, {**a_person(1), "pid": test}]), policy_of().model)
    (said,) = [one for one in found if one.code == "rows-apart"]
    assert said.text.startswith("attribute 'pid': 1 row looks like a record of a test")
    assert said.column == "pid"
    assert test not in said.text


def test_names_of_tests_are_looked_for_as_fast_as_other_words():
    """One sign between two words took a hundred times as long as all words together."""
    remarks = pl.Series([f"Some larger remark on number {i}, which is long" for i in range(30_000)])
    started = time.process_time()
    assert not remarks.str.contains(ANY_TEST).any()
    assert time.process_time() - started < 0.3


NOBODY = "guest|Guest 12|anonymous|Gast|ANSWER KEY|VACANT|N/A (closed)|匿名|ゲスト".split("|")
NAMES_OF = [f"Eva {'ABCDEF'[i % 6]}{'uvwxyz'[i // 10]}{'aeiou'[i % 5]}n" for i in range(60)]
NAMED = [{**row, "pid": name} for row, name in zip(PEOPLE, NAMES_OF, strict=True)]


@pytest.mark.parametrize("called", [*NOBODY, "Laufkundschaft", "-- open --"])
@pytest.mark.parametrize("people", [PEOPLE, NAMED])
@pytest.mark.parametrize("count", [1, 12])
def test_rows_of_nobody_and_of_many_under_one_name_are_said(called, people, count):
    rows = people + [{**a_person(100 + i), "pid": called} for i in range(count)]
    said = [one for one in said_of(rows, policy_of()) if "several people under one name" in one]
    assert len(said) == (called in NOBODY or (people is PEOPLE and count > 1))
    assert not any(called in one for one in said)


@pytest.mark.parametrize("number", ["0", "000000", "999999", "0000-0000", "12345", "P-1"])
def test_a_number_that_stands_for_several_people_is_said(number):
    several = [{**a_person(100 + i), "pid": number} for i in range(20)]
    (said,) = said_of([*PEOPLE, *PEOPLE, *several], policy_of())
    assert said.startswith("attribute 'pid': 20 rows look like records of a test, of nobody or of")
    often = [{**several[0], "ill": row["ill"]} for row in several]
    assert said_of([*PEOPLE, *PEOPLE, *often], policy_of()) == []
    others = [{**a_person(i), "pid": f"P{i % 10}"} for i in range(60)]
    assert said_of([*others, *several], policy_of()) == []
    (said,) = said_of([*PEOPLE * 12, *several], policy_of())
    assert said.startswith("attribute 'pid': 20 rows look like")


def a_place_in(count: int, *seed: object) -> str:
    return str(1000 + random.Random(str(seed)).randrange(count))


KNOWN = {"year of birth": 60, "surname": 400, "age": 60, "city": 40}


@pytest.mark.parametrize("signs", [["999999"], ["0", "999999"], ["0", "99999", "Onbekend"]])
@pytest.mark.parametrize("rows", [12, 40])
@pytest.mark.parametrize(("known", "values"), KNOWN.items())
def test_what_stands_for_several_people_is_said_beside_people_of_many_records(
    signs, rows, known, values
):
    roles = {"pid": "subject", known: "drop" if known == "surname" else "quasi", "kg": "quasi"}
    policy = Policy.from_dict(content_of(roles, 2))
    many = [(i, j) for i in range(90) for j in range(150 // (i + 1) + 2)]
    own = [(f"P{i}", a_place_in(values, i), f"{j % 7}") for i, j in many]
    drawn = [(sign, i) for sign in signs for i in range(rows)]
    several = [(sign, f"{1000 + 7 * i % values}", f"{i % 7}") for sign, i in drawn]
    for people, begin in (
        (own, []),
        (own + several, [f"attribute 'pid': {len(several)} rows look"]),
    ):
        assert looks_of(pl.DataFrame(people, schema=[*roles], orient="row"), policy) == begin


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_people_of_many_records_who_move_raise_no_alarm(rate, seed):
    drawn = random.Random(seed)
    rows = []
    for i in range(90):
        city = drawn.randrange(9)
        for _ in range(150 // (i + 1) + 2):
            city = drawn.randrange(9) if drawn.random() < rate else city
            rows.append((f"P{i}", f"{city}", drawn.choice("abc")))
    roles = {"pid": "subject", "city": "quasi", "kg": "quasi"}
    frame = pl.DataFrame(rows, schema=[*roles], orient="row")
    assert said_of(frame, Policy.from_dict(content_of(roles, 2))) == []


def test_sites_and_namesakes_are_not_taken_for_what_stands_for_several_people():
    sites = [{**row, "pid": f"site {i % 4}"} for i, row in enumerate(PEOPLE)]
    assert said_of(sites, policy_of()) == []
    namesakes = [{**a_person(100 + i), "pid": "Eva Graf"} for i in range(12)]
    assert said_of([*NAMED, *namesakes], policy_of()) == []


OF_POSTS = {"post": "identifier", "surname": "identifier", "first name": "identifier"}
OF_POSTS |= dict.fromkeys(("sex", "birth", "department", "grade"), "quasi") | {"pay": "sensitive"}
OWN = ("surname", "first name", "sex", "birth", "pay")


def a_post(number: int) -> dict[str, str]:
    drawn = random.Random(number)
    return {
        "post": str(5000 + number),
        "surname": f"{drawn.choice(['Sutt', 'Grab', 'Hof'])}{drawn.choice(['er', 'mann', 'li'])}",
        "first name": drawn.choice(["Eva", "Max", "Ida"]),
        "sex": drawn.choice("FM"),
        "birth": str(drawn.randrange(1960, 2000)),
        "department": drawn.choice(["IT", "HR", "Law"]),
        "grade": str(drawn.randrange(1, 9)),
        "pay": str(drawn.randrange(2000, 5000)),
    }


POSTS = [a_post(number) for number in range(200)]
FOR_POSTS = Policy.from_dict(content_of(OF_POSTS, 2))


def looks_of_one(**cells: str) -> list[str]:
    """How warnings of posts begin, of which one has these cells."""
    rows = [row | (cells if i == 5 else {}) for i, row in enumerate(POSTS)]
    return looks_of(pl.DataFrame(rows), FOR_POSTS)


def with_gaps(gaps: dict[int, tuple[str, ...]], without: tuple[str, ...] = ()) -> list[str]:
    """How warnings of posts begin, of which some columns are empty in these rows."""
    rows = [row | dict.fromkeys(gaps.get(i, ()), "") for i, row in enumerate(POSTS)]
    roles = {name: role for name, role in OF_POSTS.items() if name not in without}
    policy = Policy.from_dict(content_of(roles, 2))
    return said_of(pl.DataFrame(rows).drop(without), policy)


@pytest.mark.parametrize("empty", [OWN, OWN[:-1]])
@pytest.mark.parametrize("without", [(), ("sex", "birth"), ("first name", "birth")])
def test_posts_that_nobody_holds_are_said(empty, without):
    gaps = dict.fromkeys(range(5, 200, 18), empty) | {7: ("birth",), 9: ("sex",)}
    (said,) = with_gaps(gaps, without)
    assert said.startswith("11 rows look like vacant posts without a name, sex, birth or age")
    (one,) = with_gaps({5: empty}, without)
    assert one.startswith("1 row looks like a vacant post without a name")


def test_posts_without_names_are_said_where_they_lack_one_thing_more():
    gaps, names = dict.fromkeys(range(5, 200, 18), OWN), ("surname", "first name")
    assert len(with_gaps(gaps, names)) == 1
    assert with_gaps(dict.fromkeys(gaps, OWN[:-1]), names) == []


@pytest.mark.parametrize(
    "gaps",
    [
        dict.fromkeys(range(5, 200, 18), OWN[1:]),
        dict.fromkeys(range(0, 200, 4), OWN),
        {i: tuple(one for j, one in enumerate(OWN) if i % 2**j == 0) for i in range(1, 200)},
        {i: OWN if i == 5 else OWN[i % 4 :][:1] for i in range(5, 200, 18)},
    ],
)
def test_people_of_whom_less_is_known_raise_no_alarm(gaps):
    assert with_gaps(gaps) == []


HOLDERS = [f"{'ABCDEFGHIJ'[i % 10]}uwe {'KLMNOPQRSTUVWXYZABCD'[i // 10]}ung" for i in range(200)]


@pytest.mark.parametrize("called", ["to be filled", "TBC", "offen", "", "вакансия"])
def test_posts_whose_holders_have_one_text_are_said_though_pay_is_planned(called):
    rows = [
        {**row, "holder": called if i % 18 == 5 else HOLDERS[i]}
        | (dict.fromkeys(("sex", "birth"), "") if i % 18 == 5 else {})
        for i, row in enumerate(POSTS)
    ]
    frame = pl.DataFrame(rows).drop("surname", "first name")
    roles = {name: role for name, role in OF_POSTS.items() if name in frame.columns}
    policy = Policy.from_dict(content_of({**roles, "holder": "drop"}, 2))
    assert looks_of(frame, policy) == ["11 rows look"]
    assert said_of(frame.with_columns(holder=pl.Series(HOLDERS)), policy) == []
    assert said_of(frame.with_columns(sex=pl.lit("F")), policy) == []


PARTS = "John|Doe,Doe|Jane,Mickey|Mouse,Foo|Bar,Sample|Person,admin|admin,X|X,Fulano|de Tal"


@pytest.mark.parametrize("parts", [pair.split("|") for pair in PARTS.split(",")])
def test_parts_of_a_name_that_are_a_test_together_are_said_once(parts):
    for (first, last), said in ((parts, 1), ((parts[0], "Suter"), 0), (("Ida", parts[1]), 0)):
        found = looks_of_one(**{"surname": last, "first name": first})
        assert found == ["attribute 'first name': 1 row looks"] * said


@pytest.mark.parametrize(
    "called", "VOID|gelöscht|cancelled|admin|TST001|QA_USER|walk-in".split("|")
)
@pytest.mark.parametrize(("title", "role"), [("id", "identifier"), ("pid", "subject")])
def test_what_is_written_otherwise_among_numbers_of_rows_is_said(called, title, role):
    rows = [{**row, "pid": "", title: str(7000 + i)} for i, row in enumerate(PEOPLE)]
    policy = policy_of("identifier", **{title: role})
    assert said_of(rows, policy) == []
    odd = [*rows[:9], {**rows[9], title: called}, *rows[10:]]
    assert looks_of(odd, policy) == [f"attribute '{title}': 1 row looks"]
    many = [{**row, title: f"{called}{i}"} if i % 9 == 0 else row for i, row in enumerate(rows)]
    assert looks_of(many, policy_of("identifier", **{title: "identifier"})) == []


@pytest.mark.parametrize("sign", ["NN", "N.N.", "n. n.", "N N"])
def test_two_letters_for_no_name_are_said_unless_they_may_be_initials(sign):
    named = {"surname": sign, "first name": ""}
    assert looks_of_one(**named) == ["attribute 'surname': 1 row looks"]
    assert looks_of_one(surname=sign) == []
    letters = [f"{one}.{two}." for two in "KLMN" for one in "ABCN"] * 13
    frame = pl.DataFrame(POSTS).with_columns(pl.Series("surname", letters[:200]))
    frame[5, "first name"] = ""
    assert said_of(frame, FOR_POSTS) == []
    assert said_of([*NAMED, {**a_person(1), "pid": "Anna Hannen"}], policy_of()) == []


def test_people_and_states_that_are_called_so_raise_no_alarm():
    assert said_of([*NAMED, {**a_person(1), "pid": "Anna Guest"}], policy_of()) == []
    states = [{**row, "state": row["ill"].replace("flu", "vacant")} for row in PEOPLE]
    assert said_of(states, policy_of(state="drop")) == []
    assert said_of(PEOPLE + [{**row, "pid": "unknown"} for row in PEOPLE[:9]], policy_of()) == []


@pytest.mark.parametrize("surname", ["Gast", "Guest", "Ospite", "Anonym", "Total", "Sum", "Summa"])
def test_a_surname_that_is_a_word_for_nobody_is_said_without_a_first_name_alone(surname):
    people = [{**row, "surname": f"Graf{i}", "first name": "Eva"} for i, row in enumerate(PEOPLE)]
    policy = policy_of("identifier", surname="identifier", **{"first name": "identifier"})
    for first, count in (("Petra", 0), ("", 1), (surname, 1)):
        rows = [*people, {**people[0], "surname": surname, "first name": first}]
        assert bool(said_of(rows, policy)) == count


GRADES = {"who": "subject", "id": "identifier", "login": "identifier", "section": "quasi"}
GRADES |= {"quiz": "sensitive", "exam": "sensitive"}


@pytest.mark.parametrize("label", ["    Points Possible", "Punkte", "满分", "Max, Points"])
@pytest.mark.parametrize("marks", [("20", "60"), ("20.00", "99"), ("25", "100.0")])
@pytest.mark.parametrize("place", [0, 2])
def test_a_first_row_of_what_can_be_reached_is_said(label, marks, place):
    cells = [
        (f"{4 * i}", f"u{i}", "AB"[i % 2], f"{i * 7 % 20}", f"{i * 11 % 60}") for i in range(60)
    ]
    rows = [dict(zip(GRADES, (NAMES_OF[i], *cells[i]), strict=True)) for i in range(60)]
    most = dict.fromkeys(GRADES, "") | {"who": label, "quiz": marks[0], "exam": marks[1]}
    policy = Policy.from_dict(content_of(GRADES, 4))
    assert looks_of(pl.DataFrame([*rows[:place], most, *rows[place:]]), policy) == ["1 row looks"]
    best = {**rows[0], "quiz": "20", "exam": "60"}
    for first in (best, {**best, "id": ""}, {**best, "id": "", "login": "", "quiz": "7"}):
        assert looks_of(pl.DataFrame([first, *rows[1:]]), policy) == []


@pytest.mark.parametrize(
    "pid", ["Testa", "Latest", "Contesti", "protest 9", "what a lab test is", "John Doering"]
)
def test_names_that_hold_the_letters_and_tables_of_tests_raise_no_alarm(pid):
    assert said_of([*PEOPLE, {**a_person(1), "pid": pid}], policy_of()) == []
    tests = [{**row, "pid": f"TEST{i}"} for i, row in enumerate(PEOPLE)]
    assert said_of(tests, policy_of()) == []
    some = [{"test_nr": f"{'test' if i < 4 else 'B'}{i}", **row} for i, row in enumerate(PEOPLE)]
    assert said_of(some, policy_of(test_nr="identifier")) == []
    assert said_of([*PEOPLE, {**a_person(1), "ill": "test"}], policy_of()) == []


def test_lines_that_repeat_all_names_are_refused_with_their_rows(folder, capsys):
    names, rows = ",".join(ROLES), [",".join(row.values()) for row in PEOPLE]
    (folder / "t.csv").write_text("\n".join([names, *rows[:9], names, *rows, f" {names}", ""]))
    Policy.from_dict(content_of(ROLES, 4)).save("p.yaml")
    for command in ("policy init t.csv -o q.yaml", "publish t.csv -p p.yaml -o o.csv"):
        assert status_of(command.split()) == 2
        assert "data: rows 10, 71 repeat the names of all columns" in capsys.readouterr().err
    (folder / "t.csv").write_text("\n".join([names, *rows]))
    assert status_of("policy init t.csv -o q.yaml".split()) == 0
    (folder / "t.csv").write_text("\n".join([rows[0], *rows]))
    assert status_of("policy init t.csv -o r.yaml".split()) == 2
    assert "names that look like data" in capsys.readouterr().err
