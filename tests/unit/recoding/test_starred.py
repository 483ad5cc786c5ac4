"""Rows that show the mark in every quasi-identifier: one rule for whoever made them, by cells."""

import json

import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import shoal as library
from sample_policies import content_of
from shoal.data.release import is_withheld
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning

K2, L2 = {"model": "k-anonymity", "k": 2}, {"model": "l-diversity", "attribute": "ill", "l": 2}
AGE = {"role": "quasi", "type": "number", "domain": [0, 100]}


def policy(*promises, missing="suppress", quasi=None, **more):
    attributes = {**(quasi or {"age": AGE}), "ill": "sensitive"}
    return content_of(attributes, promises=[*promises], missing=missing, **more)


def table(*rows, names=("age", "ill")):
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


@pytest.fixture
def judged(folder, shoal):
    """The exit status and certificate of `shoal audit` on such a file."""

    def judged(content, released, original=None):
        (folder / "p.yaml").write_text(yaml.safe_dump(content))
        released.write_csv("out.csv")
        more = ()
        if original is not None:
            original.write_csv("in.csv")
            more = ("--original", "in.csv")
        done = shoal("audit", "out.csv", "-p", "p.yaml", *more, "--json", "-q")
        return done.status, json.loads(done.out)

    return judged


def measured(certificate):
    return [promise["measured"] for promise in certificate["promises"]]


FLU, HIV = ("[20, 30]", "flu"), ("[20, 30]", "hiv")


@pytest.mark.parametrize(
    ("rows", "holds", "found", "starred", "withheld"),
    [
        # the attack: blank everything out, and a promise about sensitive values "holds"
        ([("*", "flu")] * 3, False, [3, 1], 3, 0),
        ([FLU, HIV, ("*", "hiv")], False, [1, 1], 1, 0),
        ([FLU, HIV, ("*", "*")], True, [2, 2], 1, 1),
        ([FLU, HIV, ("*", "")], False, [1, 1], 1, 0),
    ],
    ids=["stars alone", "one beside a class", "one withheld", "one without a value"],
)
def test_a_file_s_starred_rows_are_one_class_or_withheld(
    judged, rows, holds, found, starred, withheld
):
    status, certificate = judged(policy(K2, L2), table(*rows))
    assert (status == 0, measured(certificate)) == (holds, found)
    records = {"in": None, "out": 3, "suppressed": starred, "withheld": withheld}
    assert certificate["records"] == records
    if starred == 1:
        original = table(("20", "flu"), ("30", "hiv"), ("", "hiv"))
        status, certificate = judged(policy(K2), table(*rows), original)
        assert (status == 0, measured(certificate)) == (holds, found[:1])


def test_what_the_method_starred_and_what_was_suppressed_are_one_class():
    """The town's root is the mark, so the class of x and y shows what the suppressed show: four
    people, three of them ill with a. Apart, both would be safe.
    """
    towns = [("x", "a"), ("y", "b"), (None, "a"), (None, "a"), ("z", "a"), ("z", "b")]
    frame = table(*towns, names=("town", "ill"))
    alpha = {"model": "alpha-k-anonymity", "attribute": "ill", "alpha": 0.5, "k": 2}
    content = policy(alpha, quasi={"town": {"role": "quasi"}}, method={"name": "mondrian"})
    done = library.publish(frame, content)
    starred = {ill for town, ill in done.data.rows() if town == "*"}
    assert starred in ({"*"}, {"a", "b"})
    assert library.audit(done.data, content).holds
    assert library.audit(done.data, content, frame, trace=done.trace).holds


def test_no_row_shows_anything_and_a_promise_fails():
    """x and y alone hold as a class of two; with three more of a it is 4 of 5, and nothing to
    hide among is left.
    """
    towns = [("x", "a"), ("y", "b"), (None, "a"), (None, "a"), (None, "a")]
    alpha = {"model": "alpha-k-anonymity", "attribute": "ill", "alpha": 0.6, "k": 2}
    content = policy(alpha, quasi={"town": {"role": "quasi"}}, method={"name": "mondrian"})
    with pytest.raises(library.InfeasibleError, match="no quasi-identifier can be shown") as caught:
        library.publish(table(*towns, names=("town", "ill")), content)
    assert "the nearest that holds is alpha = 0.8" in str(caught.value)


def test_a_root_with_another_label_is_not_the_mark():
    tree = {"tree": {"anywhere": ["x", "y"]}}
    content = policy(K2, L2, quasi={"town": {"role": "quasi", "hierarchy": tree}})
    released = table(*[("anywhere", "a")] * 2, *[("*", "b")] * 2, names=("town", "ill"))
    certificate = library.audit(released, content)
    assert (certificate["classes"]["count"], certificate["records"]["suppressed"]) == (2, 2)


@pytest.mark.parametrize(
    ("cells", "dtype", "expected"),
    [
        (["*", "*"], pl.String, True),
        (["*", None], pl.String, False),
        (["*", "*"], pl.Categorical, True),
        (["*", "a"], pl.Categorical, False),
        ([None, None], pl.Int64, True),
        ([None, 3], pl.Int64, False),
    ],
)
def test_what_hides_a_value(cells, dtype, expected):
    table = Table(pl.DataFrame({"s": pl.Series([cells[0], *cells], dtype=dtype)}))
    starred = pl.Series([False, True, True]).to_numpy()
    assert is_withheld(table, ["s"], starred, "*") is expected
    assert is_withheld(table, [], starred, "*")
    assert not is_withheld(table, [], starred | True, "*")
    assert not is_withheld(table, [], starred & False, "*")


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_hidden_values_are_nowhere_in_a_file_of_any_format(folder, shoal, kind):
    """Not in a dictionary either, which typed formats carry along."""
    roles = {"age": AGE, "dose": {"role": "sensitive", "type": "number"}}
    (folder / "p.yaml").write_text(yaml.safe_dump(policy(K2, L2, quasi=roles)))
    ill = pl.Series(["flu", "cold"] * 2 + ["SECRET"], dtype=pl.Enum(["flu", "cold", "SECRET"]))
    frame = pl.DataFrame({"age": [20, 20, 30, 30, None], "dose": [1, 2, 1, 2, 7], "ill": ill})
    frame.write_parquet("in.parquet")
    out = f"out.{kind}"
    assert shoal("publish", "in.parquet", "-p", "p.yaml", "-o", out, "-q").status == 0
    assert b"SECRET" not in (folder / out).read_bytes()
    done = shoal("audit", out, "-p", "p.yaml", "--original", "in.parquet", "--json", "-q", status=0)
    assert json.loads(done.out)["records"]["withheld"] == 1
    if kind == "csv":
        assert (folder / out).read_text().splitlines()[-1] == "*,*,*"


def test_loss_charges_starred_rows_whether_they_are_a_class_or_withheld():
    """Two of 20 to 30 (a tenth of the domain) and three starred: 2 * 2 + 3 * 5 = 19."""
    rows = [("[20, 30]", "a"), ("[20, 30]", "b")]
    charged = [
        library.audit(table(*rows, *starred), policy(K2))["utility"]
        for starred in ([("*", "a"), ("*", "b"), ("*", "b")], [("*", "*")] * 3)
    ]
    assert charged[0] == charged[1]
    assert charged[0]["discernibility"] == 19
    assert charged[0]["gcp"] == pytest.approx((2 * 0.1 + 3) / 5)
    assert charged[0]["average_class_size"] == 1


def test_few_withheld_people_are_said():
    """Who finds no class for a person knows that it is one of the three, in that ward."""
    quasi = {"age": AGE, "who": {"role": "subject"}, "ward": {"role": "plain"}}
    content = policy({"model": "k-anonymity", "k": 10}, quasi=quasi)
    rows = [("20", "ab"[i % 2], str(i), "w") for i in range(10)]
    missing = [(None, "a", str(100 + i // 2), "w") for i in range(6)]
    with pytest.warns(ReleaseWarning) as caught:
        done = library.publish(table(*rows, *missing, names=("age", "ill", "who", "ward")), content)
    expected = (
        "3 people withheld, fewer than k = 10: whoever finds no class for a person knows it is one"
        " of them; 'ward' is still shown"
    )
    assert expected in [str(one.message) for one in caught]
    stated = {"code": "withheld-few", "severity": "open", "text": expected}
    assert stated in done.certificate["warnings"]
    rows, hidden = [("20", "ab"[i % 2]) for i in range(4)], ("*", "*")
    text = library.audit(table(*rows, hidden), policy(K2))["warnings"][0]["text"]
    assert text.startswith("1 record withheld, fewer than k = 2: ")
    assert text.endswith("knows it is one of them")
    found = library.audit(table(*rows, hidden, hidden), policy(K2))["warnings"]
    assert [one["code"] for one in found] == ["sensitive-unpromised"]


ROWS = st.tuples(
    st.sampled_from(["*", "[10, 20]", "30"]),
    st.sampled_from(["*", "x"]),
    st.sampled_from(["*", "a", "b"]),
)


@given(st.lists(ROWS, min_size=1, max_size=9))
def test_an_audit_finds_the_classes_of_the_definition(rows):
    names = ("age", "town", "ill")
    dicts = [dict(zip(names, row, strict=True)) for row in rows]
    labels = naive.classes_by_cells(dicts, ["age", "town"], ["ill"])
    content = policy(K2, L2, missing="value", quasi={"age": AGE, "town": {"role": "quasi"}})
    certificate = library.audit(table(*rows, names=names), content)
    numbers = {label for label in labels if label >= 0}
    values = [row["ill"] for row in dicts]
    least_k = min((naive.k_measured(labels, None, n) for n in numbers), default=None)
    least_l = min((naive.fewest_distinct(labels, None, [values], n) for n in numbers), default=None)
    assert measured(certificate) == [least_k, least_l]
    starred = sum(naive.is_starred(row, ["age", "town"]) for row in dicts)
    assert certificate["records"]["suppressed"] == starred
    assert certificate["records"]["withheld"] == labels.count(-1)


CELLS = st.tuples(
    st.sampled_from([None, "20", "21", "60"]),
    st.sampled_from([None, "x", "y", "z"]),
    st.sampled_from("aab"),
    st.sampled_from("12345678"),
)
ENTROPY = {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "entropy"}
PROMISES = st.sampled_from(
    [
        L2,
        {"model": "alpha-k-anonymity", "attribute": "ill", "alpha": 0.7, "k": 2},
        {"model": "t-closeness", "attributes": ["ill"], "t": 0.3},
        ENTROPY,
        {"model": "p-sensitive-k-anonymity", "attributes": ["ill"], "p": 2, "k": 3},
    ]
)


@given(
    st.lists(CELLS, min_size=2, max_size=14),
    st.lists(PROMISES, max_size=2, unique_by=lambda promise: promise["model"]),
    st.sampled_from(["suppress", "value"]),
    st.sampled_from([{"name": "mondrian"}, {"name": "full-domain", "suppression": 0.4}]),
    st.booleans(),
)
def test_publish_and_both_audits_agree(rows, promises, missing, method, has_subject):
    quasi = {"age": AGE, "town": {"role": "quasi"}}
    quasi["who"] = {"role": "subject" if has_subject else "drop"}
    content = policy(K2, *promises, missing=missing, quasi=quasi, method=method)
    frame = table(*rows, names=("age", "town", "ill", "who"))
    try:
        done = library.publish(frame, content)
    except library.InfeasibleError:
        return
    except library.PromiseError:
        # hiding the sensitive values of some takes them from the table that t compares with
        assert any(promise["model"] == "t-closeness" for promise in promises)
        return
    alone = library.audit(done.data, content)
    beside = library.audit(done.data, content, frame, trace=done.trace)
    assert alone["records"] | {"in": len(rows)} == beside["records"] == done.certificate["records"]
    assert beside["promises"] == done.certificate["promises"]
    assert beside.holds
    if not has_subject:
        assert alone["promises"] == beside["promises"]
        assert alone.holds


OF_PEOPLE = {"age": AGE, "who": {"role": "subject"}}


def increment(number: int, *starred: str) -> pl.DataFrame:
    """Four people of four ages, and the diseases of those without one."""
    shown = [(str(20 + i), "ab"[i % 2], f"p{number}-{i}") for i in range(4)]
    hidden = [(None, ill, f"x{number}-{i}") for i, ill in enumerate(starred)]
    return table(*shown, *hidden, names=("age", "ill", "who"))


def test_a_ledger_hides_and_audits_by_the_same_rule(tmp_path):
    """Two starred people who are ill with a and b are a class; one alone, or two of a, are not."""
    content = policy(K2, L2, quasi=OF_PEOPLE, render={"order": "input"})
    ledger, shown = tmp_path / "ledger", []
    for number, starred in enumerate(("ab", "aa")):
        done = library.republish(increment(number, *starred), content, ledger)
        assert done.certificate["records"]["suppressed"] == 2
        released = pl.read_csv(ledger / f"000{number + 1}" / "data.csv")
        shown.append({*released.filter(age="*")["ill"]})
    assert shown == [{"a", "b"}, {"*"}]
    audited = library.audit_ledger(ledger)
    assert audited.holds
    assert [release.certificate["records"]["withheld"] for release in audited.releases] == [0, 2]
    assert library.verify_ledger(ledger)[0] == 2


@settings(max_examples=30)  # each writes a ledger of several releases
@given(st.lists(st.lists(st.sampled_from("aab"), min_size=1, max_size=5), min_size=1, max_size=3))
def test_an_exported_ledger_keeps_k_and_l_if_its_releases_do(tmp_path_factory, starred):
    """starred: of each increment, the diseases of those without an age."""
    content = policy(K2, L2, quasi=OF_PEOPLE)
    folder = tmp_path_factory.mktemp("ledger") / "L"
    for number, diseases in enumerate(starred):
        library.republish(increment(number, *diseases), content, folder)
    assert library.audit_ledger(folder).holds
    assert library.verify_ledger(folder)[0] == len(starred)
    assert library.audit(library.ledger_table(folder), content).holds


def test_a_stream_of_stars_alone_says_why_it_is_withheld(folder, shoal):
    """Whether some record shows something is known at the end: until then, any later one could."""
    table(*(("", ill) for ill in "aabb" * 3)).write_csv("in.csv")
    (folder / "p.yaml").write_text(yaml.safe_dump(policy(K2, L2)))
    done = shoal("stream", "in.csv", "-p", "p.yaml", "-o", "out.csv", "--set", "delta=4", "-q")
    assert done.status == 1
    assert "promise 'l-diversity' does not hold on the release: asked 2, measured 1" in done.err
    assert "nothing was written, since every record is suppressed" in done.err
    assert not (folder / "out.csv").exists()


def test_a_release_that_holds_by_its_stars_alone_merges_more_classes():
    """average-risk counts no starred row: a class of stars can't make up for a class of four."""
    dates = ["2015-05-24", *["2014-01-09"] * 3, "2015-05-24", "2014-01-09", *["2015-05-24"] * 5]
    dates += ["2014-01-09", "2015-05-24", "2015-05-24", "2014-01-09"]
    people = "7 9 6 7 8 2 9 2 7 0 6 5 2 10 6".split()
    day = {"role": "quasi", "hierarchy": {"dates": ["month", "year"]}}
    risk = {"model": "average-risk", "threshold": 0.2}
    words = {"method": {"name": "tcloseness-fcm"}, "missing": "suppress", "seed": 0}
    asked = content_of({"day": day, "person": "subject"}, 4, risk, **words)
    published = library.publish(pl.DataFrame({"day": dates, "person": people}), asked)
    assert published.certificate.holds
    assert set(published.data["day"]) == {"*"}  # nothing else holds
    assert measured(published.certificate) == [8, 1 / 8]
