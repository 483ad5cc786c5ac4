"""Publish without a policy file: columns and numbers as keywords."""

import datetime
import warnings
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from sample_policies import content_of
from shoal.data.warnings import SENSITIVE_UNPROMISED
from shoal.errors import InputError
from shoal.reports.text import MEASURES

SENSITIVE = {"sensitive": "disease", "subject": "patient", "other": "drop"}


def attributes_of(policy: shoal.Policy) -> dict:
    return policy.model.model_dump(mode="json", exclude_unset=True)["attributes"]


@pytest.fixture
def days() -> pl.DataFrame:
    """Forty people with one column of every kind."""
    n = range(40)
    grade = pl.Series([("low", "mid", "high")[i % 3] for i in n])
    return pl.DataFrame(
        {
            "age": [20 + i for i in n],
            "code": [f"{1000 + i % 8:05}" for i in n],
            "seen": [datetime.date(2019, 1, 1) + datetime.timedelta(60 * i) for i in n],
            "grade": grade.cast(pl.Enum(["low", "mid", "high"])),
            "sex": ["f" if i % 2 else "m" for i in n],
            "pay": [1000 + 7 * i for i in n],
            "note": [f"note {i}" for i in n],
        }
    )


# The policy that the words make


def test_each_column_is_generalized_as_its_values_say(days):
    release = shoal.publish(
        days, quasi=["age", "code", "seen", "grade", "sex"], sensitive="pay", drop="note", k=4, l=2
    )
    dates = ["day", "month", "quarter", "year", "decade"]
    assert attributes_of(release.policy) == {
        "age": {"role": "quasi", "type": "number", "domain": [0, 120]},
        "code": {"role": "quasi", "hierarchy": {"prefix": 5}},
        "seen": {"role": "quasi", "hierarchy": {"dates": dates}},
        "grade": {"role": "quasi", "order": ["low", "mid", "high"]},
        "sex": {"role": "quasi"},
        "pay": {"role": "sensitive", "type": "number"},
        "note": {"role": "drop"},
    }
    assert release.certificate.holds
    assert release.certificate["classes"]["min"] >= 4


def test_l_and_t_are_promised_of_every_sensitive_column(days):
    asked = {"sensitive": ["sex", "grade"], "other": "drop", "k": 4, "l": 2, "t": 0.9}
    release = shoal.publish(days, quasi="age", **asked)
    assert release.policy.model.promises == [{"model": "k-anonymity", "k": 4}] + [
        promise
        for name in ("sex", "grade")
        for promise in (
            {"model": "l-diversity", "attribute": name, "l": 2, "kind": "distinct"},
            {"model": "t-closeness", "attributes": [name], "t": 0.9},
        )
    ]


def test_settings_of_a_quasi_identifier_go_before_what_its_column_says(days):
    quasi = {"age": {"domain": [0, 200], "round": 10}, "sex": None, "grade": {"weight": 2}}
    release = shoal.publish(days, quasi=quasi, other="drop", k=4)
    assert attributes_of(release.policy) == {
        "age": {"role": "quasi", "domain": [0, 200], "round": 10},
        "sex": {"role": "quasi"},
        "grade": {"role": "quasi", "order": ["low", "mid", "high"], "weight": 2},
    }


def test_a_set_of_columns_is_as_good_as_a_list(days):
    one = shoal.publish(days, quasi={"age", "sex", "grade"}, other="drop", k=4)
    other = shoal.publish(days, quasi=["age", "grade", "sex"], other="drop", k=4)
    assert one.data.equals(other.data)


def test_numbers_as_text_are_numbers_two_of_them_a_category_and_nan_is_no_value():
    frame = pl.DataFrame({"age": ["9", "10", "31", "40"], "flag": ["0", "1", "0", "1"]})
    release = shoal.publish(frame, quasi=["age", "flag"], k=2)
    assert attributes_of(release.policy) == {
        "age": {"role": "quasi", "type": "number", "domain": [0, 120]},
        "flag": {"role": "quasi"},
    }
    frame = pl.DataFrame({"age": [20.5, 31.0, float("nan"), 40.0] * 3})
    missing = frame.with_columns(pl.col("age").fill_nan(None))
    one, other = (shoal.publish(table, quasi="age", k=2) for table in (frame, missing))
    assert one.certificate.holds
    assert one.data.equals(other.data)


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.Table, pl.DataFrame])
def test_the_same_words_give_the_same_release_of_any_kind_of_frame(sample_table, kind):
    words = {"quasi": ["age", "sex", "education"], "k": 5, "l": 2, **SENSITIVE}
    known = shoal.publish(sample_table, **words)
    made = {pd.DataFrame: pl.DataFrame.to_pandas, pa.Table: pl.DataFrame.to_arrow}
    release = shoal.publish(made.get(kind, Streamed)(sample_table), **words)
    assert isinstance(release.data, kind)
    assert pl.DataFrame(release).equals(known.data)  # as a stream of Arrow
    assert release.policy == known.policy


class Streamed:
    """What hands itself on as a stream of Arrow and is nothing else."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("call", [shoal.publish, shoal.compare, shoal.Policy.from_columns])
def test_a_stream_that_can_be_read_only_once_is_read_once(days, call):
    table = days.select("age", "sex", "grade").to_arrow()
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    call(stream, quasi=["age", "sex"], k=2, other="drop")
    assert shoal.propose_policy(stream) == shoal.propose_policy(pl.from_arrow(table))


def test_categories_of_pandas_keep_their_order():
    order = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    frame = pd.DataFrame({"grade": pd.Series(["low", "high", "mid", "high"] * 3, dtype=order)})
    release = shoal.publish(frame, quasi="grade", k=3)
    assert attributes_of(release.policy)["grade"]["order"] == ["low", "mid", "high"]
    words = {"quasi": "age", "sensitive": "grade", "plain": "size", "k": 3, "t": 0.9}
    release = shoal.publish(frame.assign(age=range(12), size=frame["grade"]), **words)
    known = attributes_of(release.policy)
    assert known["grade"] == {"role": "sensitive", "order": ["low", "mid", "high"]}
    assert "order" not in known.get("size", {})


# What is asked

AGE = {"quasi": "age", "k": 5, "other": "drop"}
NO_WHOLE_NUMBERS = (10.5, Decimal("NaN"), float("inf"), True)
OF_FILES = ({"output": "o.csv"}, {"trace": "t.jsonl"}, {"replace": True})


@pytest.mark.parametrize(
    ("words", "stated"),
    [
        ({}, "needs a policy, or 'quasi' and 'k'"),
        ({"k": 5}, "no quasi-identifier"),
        ({"quasi": "age"}, "no k; say how many"),
        ({"quasi": "age", "k": 5, "l": 2}, "l and t are about sensitive columns"),
        ({"quasi": "age", "k": 5}, "no role is given to .*; name each as quasi"),
        ({"quasi": "agee", "k": 5, "other": "drop"}, "not in the frame; did you mean 'age' for"),
        ({"quasi": ["age", "agee"], "k": 5, "other": "drop"}, "did you mean 'age'|'agee'"),
        ({"quasi": "age", "plain": "age", "k": 5}, "column 'age': is named twice"),
        ({"quasi": {"age": {"role": "plain"}}, "k": 5}, "leave 'role' out"),
        ({"quasi": {"age": 5}, "k": 5}, "column 'age': its settings are a dict"),
        ({"quasi": {"age": {"domian": [0, 9]}}, "k": 5}, "is not a known key"),
        ({"quasi": "age", "k": 5, "other": "kept"}, "other"),
        *((AGE | {"k": k}, "'k' must be a whole number") for k in NO_WHOLE_NUMBERS),
        *((AGE | words, "^output, trace, replace: are of linked tables") for words in OF_FILES),
    ],
)
def test_words_that_make_no_policy(sample_table, words, stated):
    with pytest.raises(InputError, match=stated):
        shoal.publish(sample_table, **words)


def test_everything_that_is_wrong_is_reported_at_once(sample_table):
    with pytest.raises(InputError) as stated:
        shoal.publish(sample_table, plain=["age", "age"], l=3)
    assert len(stated.value.findings) == 3


def test_a_policy_and_words_are_one_too_many(sample_table, sample_policy):
    with pytest.raises(InputError, match="a policy or columns, not both"):
        shoal.publish(sample_table, sample_policy, quasi="age")
    shoal.publish(sample_table, sample_policy, subject=None, plain=())  # nothing is asked by these


def test_a_sensitive_column_without_a_promise_earns_a_warning(sample_table):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        release = shoal.publish(sample_table, quasi=["age", "sex"], k=5, **SENSITIVE)
    codes = [warning.code for warning in release.warnings]
    said = [one for one in said if isinstance(one.message, shoal.ReleaseWarning)]
    assert SENSITIVE_UNPROMISED in codes
    assert [(one.message.code, one.filename) for one in said] == [(c, __file__) for c in codes]
    promised = shoal.publish(sample_table, quasi=["age", "sex"], k=5, l=2, **SENSITIVE)
    assert SENSITIVE_UNPROMISED not in [warning.code for warning in promised.warnings]


# The policy as a file


def test_a_saved_policy_gives_the_same_release(sample_table, tmp_path):
    release = shoal.publish(sample_table, quasi=["age", "sex", "zip"], k=5, l=2, **SENSITIVE)
    for name in ("policy.yaml", "policy.yml", "policy.json"):
        release.policy.save(tmp_path / name)
        again = shoal.publish(sample_table, tmp_path / name)
        assert again.data.equals(release.data)
        assert again.certificate["policy"]["sha256"] == release.certificate["policy"]["sha256"]


def test_a_saved_policy_finds_its_files_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "hierarchies").mkdir()
    (tmp_path / "hierarchies" / "sex.csv").write_text("f;*\nm;*\n")
    (tmp_path / "other" / "place").mkdir(parents=True)
    content = content_of({"sex": {"role": "quasi", "hierarchy": "hierarchies/sex.csv"}}, 2)
    policy = shoal.Policy.from_dict(content, base=tmp_path)
    moved = tmp_path / "other" / "place" / "policy.yaml"
    policy.save(moved)
    assert attributes_of(shoal.Policy.load(moved))["sex"]["hierarchy"] == (
        "../../hierarchies/sex.csv"
    )
    frame = pl.DataFrame({"sex": ["f", "m", "f", "m"]})
    assert shoal.publish(frame, moved).data.equals(shoal.publish(frame, policy).data)
    monkeypatch.chdir(tmp_path / "other")
    shoal.Policy.load("place/policy.yaml").save("again.yaml")
    assert shoal.publish(frame, "again.yaml").certificate.holds


def test_a_policy_file_is_not_replaced_unless_that_is_said(sample_policy, tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("mine")
    policy = shoal.Policy.from_dict(sample_policy)
    with pytest.raises(InputError, match="exists; name another file, or say overwrite=True"):
        policy.save(path)
    assert path.read_text() == "mine"
    policy.save(path, overwrite=True)
    assert shoal.Policy.load(path).model == policy.model
    with pytest.raises(InputError, match=r"ends in \.yaml"):
        policy.save(tmp_path / "policy.toml")
    assert [each.name for each in tmp_path.iterdir()] == ["policy.yaml"]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        *((shoal.publish, word) for word in ("quasi", "sensitive", "plain", "drop", "subject")),
        *((shoal.audit, word) for word in ("quasi", "sensitive", "subject")),
        (shoal.compare, "drop"),
        (shoal.profile, "quasi"),
    ],
)
def test_a_name_that_is_a_number_is_refused_in_the_words_of_its_call(call, word):
    words = {"quasi": ["age"], "k": 3, word: 0}
    verb = call.__name__
    with pytest.raises(InputError, match=rf"^{verb}: column 0 is not named .* df\.columns\.map"):
        call(pd.DataFrame({0: [1, 2, 3], "age": [4, 5, 6]}), **words)


def test_a_dropped_column_may_hold_anything_wherever_a_policy_is_given():
    ages = {"age": [n % 5 for n in range(40)], "ill": list("ab") * 20}
    stays = [datetime.timedelta(days=n) for n in range(40)]
    frame, others = (pl.DataFrame({**ages, "stay": stays}) for _ in range(2))
    release = shoal.publish(frame, quasi="age", sensitive="ill", k=3, other="drop", l=2)
    words = {"original": frame, "attacks": "inference"}
    assert shoal.attack(release, control=others, **words)["attacks"]["inference"]
    sklearn = pytest.importorskip("shoal.sklearn")
    shown = sklearn.Anonymizer(release.policy).fit(frame).transform(others)
    assert shown.columns == ["age", "ill"]


def test_a_number_that_often_stands_for_no_value_is_warned_of_as_a_proposal_asks():
    frame = pl.DataFrame({"age": ["-9"] * 5 + [str(20 + n % 40) for n in range(195)]})
    (column,) = [one for one in shoal.propose_policy(frame).columns if one.name == "age"]
    assert column.settings["ask"]["values"] == {"-9": 5}
    for ages in (frame, frame.cast(pl.Int64)):
        with pytest.warns(shoal.ReleaseWarning, match="'age': a usual sign .* in 5 records"):
            shoal.publish(ages, quasi="age", k=5)


def test_an_ordered_category_of_arrow_keeps_its_order():
    stages = [("I", "II", "III")[n % 3] for n in range(60)]
    frame = pl.DataFrame({"stage": stages}, schema={"stage": pl.Enum(["III", "I", "II"])})
    for table in (frame.to_arrow(), pa.Table.from_pandas(frame.to_pandas())):
        policy = shoal.Policy.from_columns(table, quasi="stage", k=5)
        assert policy.model.attributes["stage"].order == ["III", "I", "II"]
    parts = [
        pl.DataFrame({"stage": ["a"]}, schema={"stage": pl.Enum(order)}).to_arrow()
        for order in ("ab", "ba")
    ]
    differing = shoal.Policy.from_columns(pa.concat_tables(parts), quasi="stage", k=5)
    assert differing.model.attributes["stage"].order is None


def test_an_infinite_number_is_no_text():
    frame = pl.DataFrame({"a": [1.0, float("inf")] * 10})
    with pytest.raises(
        InputError, match=r"^attribute 'a': 10 records with infinity, which is not a number"
    ):
        shoal.publish(frame, quasi={"a": {"domain": [0, 9]}}, k=2)


def test_a_misspelt_keyword_and_a_proposal_are_shown_the_way_out(sample_table):
    for wrong, says in (
        ({"sensitve": "disease"}, "'sensitve'; did you mean 'sensitive'"),
        ({"explian": True}, "'explian'; did you mean 'explain'"),
        ({"weight": "w"}, "'weight'; a sample needs a policy with its roles"),
    ):
        with pytest.raises(TypeError, match=says):
            shoal.publish(sample_table, quasi="age", k=5, **wrong)
    proposal = shoal.propose_policy(sample_table)
    with pytest.raises(InputError, match=r"of a proposal give '\.policy'"):
        shoal.publish(sample_table, proposal)
    with pytest.raises(InputError, match="open question"):
        shoal.publish(sample_table, proposal.policy)


def test_what_needs_a_method_is_refused_until_one_is_named(sample_table, tmp_path):
    words = {"quasi": ["age", "sex"], "other": "drop", "k": 5}
    plan = tmp_path / "plan.json"
    with pytest.raises(InputError, match=r"^plan: is for .* such as method='full-domain'"):
        shoal.publish(sample_table, plan=plan, **words)
    with pytest.raises(InputError, match=r"^explain: is for methods of global recoding"):
        shoal.publish(sample_table, explain=True, **words)

    shoal.publish(sample_table, method="full-domain", plan=plan, explain=True, **words)
    assert plan.exists()


def test_without_a_label_the_only_sensitive_category_is_predicted(sample_table):
    def wrong(*sensitive, **words):
        asked = {"quasi": "age", "sensitive": sensitive, "other": "drop", "k": 5}
        release = shoal.publish(sample_table, **asked, **words)
        return release.certificate["utility"]["classification"]

    assert wrong("disease") == wrong("disease", label="disease") > 0
    assert wrong("charge") is None
    assert wrong("disease", "education") is None
    assert "only sensitive category" in MEASURES["classification"]


def test_a_usual_sign_for_no_value_that_is_published_earns_a_warning():
    frame = pl.DataFrame({"job": ["?", "cook"] * 4, "left": ["NA", "x"] * 4, "age": [1, 2] * 4})
    words = {"sensitive": "job", "drop": "left", "k": 2}
    policy = shoal.Policy.from_columns(frame, quasi="age", **words)
    for given in ({"quasi": "age", **words}, {"policy": policy}):
        with pytest.warns(shoal.ReleaseWarning) as caught:
            shoal.publish(frame, **given)
        (sign,) = [one.message for one in caught if one.message.code == "sign-of-no-value"]
        assert sign.column == "job"
        assert "stands in 4 records" in sign.text
        assert "?" not in sign.text
    with pytest.warns(shoal.ReleaseWarning) as caught:
        shoal.publish(frame, policy, missing_values=["?"])
    assert not [one for one in caught if one.message.code == "sign-of-no-value"]


def test_a_publication_prints_its_verdict_and_no_table(sample_table):
    shown = repr(shoal.publish(sample_table, quasi="age", other="drop", k=5))
    assert "k-anonymity: asked 5, measured" in shown
    assert shown.startswith("Publication: 600 rows, 1 column\n")
    assert len(shown.splitlines()) < 10


# Settings of columns that are shown


@pytest.mark.parametrize("role", ["sensitive", "plain"])
def test_settings_of_shown_columns_are_kept(days, role):
    table = days.with_columns(pay=pl.Series([f"1.{i:03},50" for i in range(40)]))
    words = {"quasi": "age", role: {"pay": {"type": "number"}, "sex": None}, "other": "drop"}
    release = shoal.publish(table, **words, k=4)
    attributes = attributes_of(release.policy)
    assert attributes["pay"] == {"role": role, "type": "number"}
    assert attributes["sex"] == {"role": role}
    numbers = release.numbers("mid")["pay"]
    assert sorted(numbers) == [1000.5 + i for i in range(40)]


def test_numbers_that_no_float_tells_apart_are_codes_or_refused():
    """As numbers they were one value: t = 0 was measured, and two of forty were no diversity."""
    n = 400
    accounts = [2**60 + (i * i) % 40 for i in range(n)]
    frame = pl.DataFrame({"age": [i % 60 for i in range(n)], "account": accounts})
    words = {"quasi": ["age"], "k": 5, "l": 2, "t": 0.4}
    release = shoal.publish(frame, sensitive="account", **words)
    promises = {one["model"]: one["measured"] for one in release.certificate["promises"]}
    small = frame.with_columns(account=(pl.col("account") - 2**60).cast(pl.String))
    expected = shoal.publish(small, sensitive="account", **words).certificate["promises"]
    assert promises == {one["model"]: one["measured"] for one in expected}
    assert promises["t-closeness"] > 0
    said = "'account': .*of more digits than can be told apart .*shorten them, or leave out"
    with pytest.raises(InputError, match=said):
        shoal.publish(frame, sensitive={"account": {"type": "number"}}, **words)
    as_numbers = content_of({"age": "quasi", "account": {"role": "sensitive", "type": "number"}}, 5)
    with pytest.raises(InputError, match=said):  # nor are they measured
        shoal.audit(release.data, as_numbers)


def test_settings_go_before_what_numbers_of_a_sensitive_column_say(days):
    pay = {"pay": {"distance": "equal"}}
    release = shoal.publish(days, quasi="age", sensitive=pay, other="drop", k=4, t=0.95)
    expected = {"role": "sensitive", "type": "number", "distance": "equal"}
    assert attributes_of(release.policy)["pay"] == expected


@pytest.mark.parametrize("role", ["quasi", "sensitive", "plain", "drop"])
@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"type": "banana", "nonsense": 1}, "nonsense"),
        ("number", "its settings are a dict"),
        ({"role": "plain"}, "says its role"),
    ],
)
def test_settings_that_can_be_none_are_refused(days, role, own, says):
    words = {"quasi": {"age": {}}, "other": "drop", "k": 4}
    words[role] = {**words.get(role, {}), "pay": own}
    with pytest.raises(InputError, match=says):
        shoal.publish(days, **words)


def test_advice_on_numbers_as_text_under_closeness_is_followed_by_words(days):
    table = pl.concat([days] * 4).with_columns(pay=pl.Series([str(100 + i) for i in range(40)] * 4))
    words = {"quasi": "age", "other": "drop", "k": 4, "t": 0.9}
    codes = [one.code for one in shoal.publish(table, sensitive="pay", **words).warnings]
    assert "read-as-text" in codes
    typed = shoal.publish(table, sensitive={"pay": {"type": "number"}}, **words)
    assert "read-as-text" not in [one.code for one in typed.warnings]
