"""Sixty forms of numbers and dates: each is read, or asked about, and never taken in silence."""

from collections.abc import Callable
from datetime import date, datetime, timedelta

import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.policy.proposal.cells import ODD

N = 60
NUMBERS = [1234 + 1571 * i for i in range(N)]
DAYS = [date(1990, 1, 1) + timedelta(days=37 * i) for i in range(N)]
STAMPS = [datetime(2024, 3, 1, 0, 7) + timedelta(hours=29 * i) for i in range(N)]
MONTHS = {
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
}
SHORT = {
    "de": "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.",
    "fr": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
}
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
WIDE = str.maketrans("0123456789", "０１２３４５６７８９")

COMMA, POINT = {"decimal": ","}, {}


def grouped(mark: str, tail: str = "") -> Callable[[int], str]:
    return lambda number: f"{number:,}".replace(",", mark) + tail


def at_start(sign: str) -> Callable[[int], str]:
    return lambda number: f"{sign}{number}" if number % 5 == 0 else str(number)


def month_of(names: str, form: str) -> Callable[[date], str]:
    return lambda day: form.format(day=day, month=names.split()[day.month - 1])


def strf(form: str) -> Callable[[date], str]:
    return lambda day: day.strftime(form)


def bare(form: str) -> Callable[[date], str]:
    """Without zeros before days and months."""
    return lambda day: form.format(y=day.year, m=day.month, d=day.day)


def reiwa(form: str) -> Callable[[date], str]:
    return lambda day: form.format(y=day.year - 1988, m=day.month, d=day.day)


NUMBER_FORMS = [  # where, how a number is written, what `read` says, None where it is asked about
    ("plain", str, POINT),
    ("plain", "{}.5".format, POINT),
    ("blanks around it", " {} ".format, POINT),
    ("exponent", "{}e3".format, POINT),
    ("US", grouped(","), {"decimal": ","}),  # asked about as well
    ("US", grouped(",", ".50"), {"thousands": ","}),
    ("DE", "{},5".format, COMMA),
    ("DE", grouped(".", ",50"), {"decimal": ",", "thousands": "."}),
    ("FR", grouped(" "), {"thousands": " "}),
    ("FR", grouped(" ", ",50"), {"decimal": ",", "thousands": " "}),
    ("FR", grouped("\u00a0", ",50"), {"decimal": ",", "thousands": " "}),
    ("FR", grouped("\u202f", ",50"), {"decimal": ",", "thousands": " "}),
    ("SI", grouped("\u2009", ".50"), {"thousands": " "}),
    ("CH", grouped("'"), {"thousands": "'"}),
    ("CH", grouped("'", ".50"), {"thousands": "'"}),
    ("CH", grouped("’", ".50"), {"thousands": "'"}),
    ("AT", grouped("'", ",50"), {"decimal": ",", "thousands": "'"}),
    ("US", "${}".format, None),
    ("US", grouped(",", " USD"), None),
    ("US", lambda number: f"({number})" if number % 5 == 0 else str(number), None),
    ("SAP", lambda number: f"{number}-" if number % 5 == 0 else str(number), None),
    ("DE", grouped(".", " €"), None),
    ("FR", grouped("\u202f", " €"), None),
    ("CH", lambda number: "CHF " + grouped("'", ".50")(number), None),
    ("CH", lambda number: f"Fr. {number}.–".replace("–", "-"), None),
    ("UK", "£{}".format, None),
    ("CN", "¥{}".format, None),
    ("CN", "{}元".format, None),
    ("CN", "{}万".format, None),
    ("JP", "{}円".format, None),
    ("JP", lambda number: str(number).translate(WIDE), None),
    ("Arabic", lambda number: str(number).translate(ARABIC), None),
    ("percent", lambda number: f"{number / 1000:.1f} %", None),
    ("unit", "{} kg".format, None),
    ("minus sign", at_start("−"), None),
]
DAY_FORMS = [
    ("ISO", date.isoformat, POINT),
    ("compact", strf("%Y%m%d"), {"dates": "%Y%m%d"}),
    ("DE", strf("%d.%m.%Y"), {"dates": "%d.%m.%Y"}),
    ("DE", bare("{d}.{m}.{y}"), {"dates": "%d.%m.%Y"}),
    ("FR", strf("%d/%m/%Y"), {"dates": "%d/%m/%Y"}),
    ("US", strf("%m/%d/%Y"), {"dates": "%m/%d/%Y"}),
    ("US", bare("{m}/{d}/{y}"), {"dates": "%m/%d/%Y"}),
    ("NL", strf("%d-%m-%Y"), {"dates": "%d-%m-%Y"}),
    ("US", strf("%m-%d-%Y"), {"dates": "%m-%d-%Y"}),
    ("JP", strf("%Y/%m/%d"), {"dates": "%Y/%m/%d"}),
    ("CN", bare("{y}/{m}/{d}"), {"dates": "%Y/%m/%d"}),
    ("CN", strf("%Y.%m.%d"), {"dates": "%Y.%m.%d"}),
    ("CN", bare("{y}年{m}月{d}日"), {"dates": "%Y年%m月%d日"}),
    ("Oracle", strf("%d-%b-%Y"), {"dates": "%d-%b-%Y"}),
    ("Oracle", lambda day: day.strftime("%d-%b-%Y").upper(), {"dates": "%d-%b-%Y"}),
    ("UK", strf("%d %b %Y"), {"dates": "%d %b %Y"}),
    ("UK", strf("%d %B %Y"), {"dates": "%d %B %Y"}),
    ("US", strf("%b %d, %Y"), {"dates": "%b %d, %Y"}),
    ("US", strf("%B %d, %Y"), {"dates": "%B %d, %Y"}),
    ("DE", month_of(MONTHS["de"], "{day.day}. {month} {day.year}"), None),
    ("DE", month_of(SHORT["de"], "{day.day}. {month} {day.year}"), None),
    ("FR", month_of(MONTHS["fr"], "{day.day} {month} {day.year}"), None),
    ("FR", month_of(SHORT["fr"], "{day.day} {month} {day.year}"), None),
    ("DE", strf("%d.%m.%y"), None),
    ("FR", strf("%d/%m/%y"), None),
    ("JP", reiwa("令和{y}年{m}月{d}日"), None),
    ("JP", reiwa("R{y}.{m}.{d}"), None),
]
STAMP_FORMS = [
    ("ISO", datetime.isoformat, POINT),
    ("DE", strf("%d.%m.%Y %H:%M"), {"dates": "%d.%m.%Y %H:%M"}),
    ("US", strf("%m/%d/%Y %I:%M %p"), {"dates": "%m/%d/%Y %I:%M %p"}),
    ("JP", strf("%Y/%m/%d %H:%M:%S"), {"dates": "%Y/%m/%d %H:%M:%S"}),
    ("clock", strf("%H:%M"), None),
    ("hours", lambda stamp: f"{stamp.day * 3}:{stamp.minute:02}", None),
]
FORMS = [
    pytest.param(list(map(form, values)), kind, read, id=f"{where} {form(values[3])}")
    for values, kind, forms in (
        (NUMBERS, "number", NUMBER_FORMS),
        (DAYS, "dates", DAY_FORMS),
        (STAMPS, "dates", STAMP_FORMS),
    )
    for where, form, read in forms
]


def test_there_are_sixty():
    assert len(FORMS) >= 60


def proposed(cells: list[str], **more) -> shoal.Proposal:
    frame = pl.DataFrame({"x": cells, "sex": ["f", "m"] * (len(cells) // 2)})
    return shoal.propose_policy(frame, **more)


@pytest.mark.parametrize(("cells", "kind", "read"), FORMS)
def test_a_form_is_read_or_asked_about(cells, kind, read):
    found = proposed(cells)
    own = found.content["attributes"]["x"]
    if read is None:
        assert "ask" in own
    else:
        assert found.read == read
        assert own.get("type") == "number" if kind == "number" else "dates" in own["hierarchy"]


@pytest.mark.parametrize(("cells", "kind", "read"), [form for form in FORMS if form.values[2]])
def test_what_is_read_is_published_and_holds(cells, kind, read):
    found = proposed(cells)
    frame = pl.DataFrame({"x": cells, "sex": ["f", "m"] * (N // 2)})
    content = dict(found.content)
    content["attributes"]["x"].pop("ask", None)
    release = shoal.publish(frame, content)
    assert release.certificate.holds
    assert shoal.audit(release.data, content, original=frame, trace=release.trace).holds


@pytest.mark.parametrize("odd", ["2023-02-29", "0000-00-00", "12?"])
@pytest.mark.parametrize("form", [date.isoformat, strf("%d.%m.%Y")], ids=["ISO", "DE"])
def test_one_odd_cell_among_dates_is_asked_about(form, odd):
    found = proposed([*map(form, DAYS[1:]), odd])
    assert found.questions["x"] == ODD.format(1)


@pytest.mark.parametrize("form", [str, "{},5".format], ids=["whole", "DE"])
def test_one_odd_cell_among_numbers_is_asked_about(form):
    assert proposed([*map(form, NUMBERS[1:]), "1O2"]).questions["x"] == ODD.format(1)


def test_spans_beside_numbers_are_no_odd_cells():
    assert "x" not in proposed([*(str(20 + i % 20) for i in range(N - 2)), "80+", "80+"]).questions


def test_one_key_of_read_does_not_stop_the_search_for_the_others():
    frame = pl.DataFrame({"x": ["1 234,5", "2 345,5"] * 20, "y": ["1,5", "2,5"] * 20})
    for known in ({"thousands": " "}, {"decimal": ","}):
        found = shoal.propose_policy(frame, read=known)
        assert found.read == {"decimal": ",", "thousands": " "}


def test_codes_with_leading_zeros_are_text():
    cells = [f"{i % 30:03d}.{i % 10}" for i in range(N)]
    assert "type" not in proposed(cells).content["attributes"]["x"]


def test_groups_of_equal_length_are_asked_about():
    found = proposed([f"6{i % 90 + 10} {345 + i} {i + 600}" for i in range(N)])
    assert "codes" in found.questions["x"]


# Publish recognizes the same forms


def said_of_labels(frame: pl.DataFrame, policy: shoal.Policy) -> list[shoal.ReleaseWarning]:
    release = shoal.publish(frame, policy)
    return [one for one in release.warnings if one.code == "read-as-text"]


@pytest.mark.parametrize(("cells", "kind", "read"), FORMS)
def test_words_read_a_form_or_publish_warns_of_it(cells, kind, read):
    frame = pl.DataFrame({"x": cells})
    policy = shoal.Policy.from_columns(frame, quasi="x", k=5)
    own = policy.model.attributes["x"]
    is_read = own.type == "number" if kind == "number" else own.hierarchy is not None
    assert is_read != bool(said_of_labels(frame, policy))
    if is_read and read != {"decimal": ","}:
        assert policy.model.read.model_dump(exclude_unset=True) == read


@pytest.mark.parametrize(("cells", "kind", "read"), FORMS)
def test_publish_warns_of_a_form_that_a_policy_gives_no_type(cells, kind, read):
    frame = pl.DataFrame({"x": cells})
    (said,) = said_of_labels(frame, shoal.Policy.from_dict(content_of({"x": "quasi"}, 5)))
    assert said.severity == "note"
    labels = content_of({"x": {"role": "quasi", "type": "category"}}, 5)
    assert not said_of_labels(frame, shoal.Policy.from_dict(labels))


def test_numbers_that_are_read_by_words_are_published_as_numbers(tmp_path):
    frame = pl.DataFrame({"kg": [f"{40 + i % 30},{i % 10}" for i in range(N)], "own": [1.5] * N})
    release = shoal.publish(frame, quasi=["kg", "own"], k=5)
    assert release.numbers("mid")["kg"].dtype == pl.Float64
    assert release.certificate.holds
    release.save(tmp_path / "out.csv")
    read = shoal.read_release(tmp_path / "out.csv", numbers="mid").data
    assert read["kg"].equals(release.numbers("mid")["kg"])


def test_publish_warns_of_sensitive_numbers_as_text_where_closeness_depends_on_it():
    frame = pl.DataFrame({"age": [i % 40 for i in range(N)], "lab": [f"{i}.5" for i in range(N)]})
    words = {"quasi": "age", "sensitive": "lab", "k": 10}
    (said,) = said_of_labels(frame, shoal.Policy.from_columns(frame, **words, t=0.5))
    assert said.text.startswith("attribute 'lab': has no type, so any two values are equally far")
    assert "say 'type: number'" in said.text
    assert not said_of_labels(frame, shoal.Policy.from_columns(frame, **words, l=2))
    numbers = frame.cast({"lab": pl.Float64})
    assert not said_of_labels(numbers, shoal.Policy.from_columns(numbers, **words, t=0.5))


def test_few_numbers_and_names_are_labels_without_a_word():
    frame = pl.DataFrame({"grade": ["1", "2", "3"] * 20, "town": ["Ulm", "Bonn"] * 30})
    policy = shoal.Policy.from_dict(content_of({"grade": "quasi", "town": "quasi"}, 5))
    assert said_of_labels(frame, policy) == []


@pytest.mark.parametrize("text", ["{},5", "{} %"])
def test_the_command_and_policy_check_warn_of_untyped_numbers_and_verify_agrees(
    shoal, text, tmp_path
):
    cells = [text.format(20 + i % 12) for i in range(N)]
    pl.DataFrame({"x": cells, "y": cells}).write_csv(tmp_path / "t.csv", separator=";")
    (tmp_path / "p.yaml").write_text(
        "version: 1\nattributes: {x: {role: quasi}, y: {role: drop}}\n"
        "promises: [{model: k-anonymity, k: 5}]\n"
    )
    files = [tmp_path / name for name in ("t.csv", "p.yaml", "o.csv")]
    original, policy, output = map(str, files)
    published = shoal("publish", original, "-p", policy, "-o", output)
    assert "attribute 'x': has no type" in published.err
    assert "attribute 'x': has no type" in shoal("policy", "check", policy, original).err
    assert shoal("verify", output, "-p", policy, "--original", original).status == 0


@pytest.mark.parametrize("empty", [[None] * 200, [float("nan")] * 200, [""] * 200, ["NULL"] * 200])
def test_a_column_without_values_asks_nothing(empty):
    found = shoal.propose_policy(pl.DataFrame({"a": [1, 2] * 100, "empty": empty}), k=5)
    assert "# empty: dropped" in found.text
    assert not [question for question in found.questions if "empty" in question]
