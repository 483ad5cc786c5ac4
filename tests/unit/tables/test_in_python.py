"""What Python adds to files and commands: words, results that show, save and hand on themselves."""

import copy
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from html import escape
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
import yaml
from matplotlib.figure import Figure

import shoal
from sample_policies import content_of
from shoal.connectors.frames import ordered_categories
from shoal.errors import InputError
from shoal.reports.attacks import MOST_RANKED, TOO_FEW, ranked, worst_first
from thorough import every

TREE = {"female": "any", "male": "any", "diverse": "any"}
LEVELS = pl.DataFrame({"value": [*TREE], "top": ["any"] * 3})
ASKED = {"quasi": ["sex"], "other": "drop", "k": 5}
OUTPUTS = "o.csv o.tsv.gz o.parquet o.arrow o.jsonl o.xlsx o/ sqlite:///o.db?table=t".split()


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return shoal.sample("patients", n=400, seed=7)


@pytest.fixture(scope="module")
def release(people) -> shoal.Publication:
    words = {"sensitive": "disease", "subject": "patient", "plain": "ward", "other": "drop"}
    quasi = {"age": {"round": 5}, "sex": {}, "zip": {}}
    return shoal.publish(people, quasi=quasi, k=10, l=2, **words)


# Words


def test_k_method_and_seed_stand_beside_a_policy_or_columns(people, release):
    again = shoal.publish(people, release.policy, k=20, method="mondrian", seed=3).certificate
    assert again["promises"][0]["asked"] == 20
    assert (again["method"]["name"], again["seed"]) == ("mondrian", 3)
    method = {"name": "mondrian", "cut": "nearest"}
    words = {"quasi": ["age", "sex"], "other": "drop", "k": 5}
    made = shoal.publish(people, method=method, **words).certificate["method"]
    assert made["parameters"]["cut"] == "nearest"
    policy = shoal.Policy.from_columns(people, method=method, **words)
    assert policy.method_settings == {"cut": "nearest"}
    with pytest.raises(InputError, match="did you mean 'mondrian'"):
        policy.with_method("mondrain")


@pytest.mark.parametrize(
    "tree", [TREE, LEVELS, LEVELS.to_pandas(), shoal.Hierarchy.from_paths(LEVELS.rows())]
)
def test_a_hierarchy_is_a_dict_of_parents_a_frame_or_an_object(people, tree, tmp_path):
    settings = {"sex": {"hierarchy": tree}}
    done = shoal.publish(people, quasi=settings, other="drop", k=200, method="full-domain")
    assert done.data["sex"].unique().to_list() == ["any"]
    done.policy.save(tmp_path / "p.yaml")
    assert shoal.Policy.load(tmp_path / "p.yaml").model == done.policy.model


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ({"a": "b", "b": "a"}, "attribute 'sex': its hierarchy goes in a circle"),
        ({"female": "a", "a": "b", "b": "a"}, "attribute 'sex': its hierarchy goes in a circle"),
        ([("x", "*", None), ("a", "x", "*")], "'sex': .* both a value and a group"),
        ([("a", "x", "*"), ("x", "*", None)], "'sex': .* both a value and a group"),
    ],
)
def test_a_hierarchy_that_is_no_tree_is_refused(people, tree, says):
    made = tree if isinstance(tree, dict) else pl.DataFrame(tree, schema=[*"012"], orient="row")
    with pytest.raises(InputError, match=says):
        shoal.publish(people, quasi={"sex": {"hierarchy": made}}, other="drop", k=5)


def test_l_diversity_of_several_attributes_is_one_promise_each(people, release):
    content = release.policy.model.model_dump(exclude_unset=True)
    promise = {"model": "l-diversity", "attributes": ["disease", "ward"], "l": 2}
    content["attributes"]["ward"] = {"role": "sensitive"}
    policy = shoal.Policy.from_dict(content | {"promises": [content["promises"][0], promise]})
    found = shoal.publish(people, policy).certificate["promises"]
    assert [one["attributes"] for one in found[1:]] == [["disease"], ["ward"]]


@pytest.mark.parametrize("levels", [["patient"], ["patient", "age"]])
def test_an_index_that_may_number_people_is_not_left_out_in_silence(people, levels):
    frame = pl.concat([people, people]).to_pandas()
    for use in (shoal.propose_policy, lambda one: shoal.publish(one, **ASKED)):
        with pytest.raises(InputError, match=r"index 'patient' is left out.*reset_index\(\)"):
            use(frame.set_index(levels))
    once = frame.drop_duplicates("patient").set_index("patient")
    for safe in (frame.set_index("patient", drop=False), once):
        assert shoal.publish(safe, **ASKED).certificate.holds


@pytest.mark.parametrize("number", [str, int])
def test_an_index_without_a_name_may_number_people_too(people, number):
    rows = pl.concat([people, people]).to_pandas().drop(columns="patient")
    for safe in (rows, rows.set_axis([*range(len(people))] * 2)):
        assert shoal.publish(safe, **ASKED).certificate.holds
    of_people = [number(i // 2) for i in range(len(rows))]
    with pytest.raises(InputError, match=r"its index is left out.*reset_index\(drop=True\)"):
        shoal.publish(rows.set_axis(of_people), **ASKED)


def test_one_increment_needs_no_list():
    frame = shoal.sample("wearables", n=200, seed=1)
    policy = shoal.Policy.from_columns(
        frame, quasi=["age"], subject="wearer", sensitive="weight", k=3, other="drop"
    )
    assert shoal.rehearse(frame, policy) == shoal.rehearse([frame], policy)


@pytest.mark.parametrize("progress", [True, False])
@pytest.mark.parametrize(
    ("verb", "stage"), [(shoal.publish, "reading the table\n"), (shoal.risk, "")]
)
def test_progress_may_be_true(people, release, capsys, verb, stage, progress):
    verb(people, release.policy, progress=progress)
    said = capsys.readouterr()
    assert (f"progress: {stage}" in said.err) == progress
    assert not said.out


def test_an_attack_on_a_publication_takes_its_policy_method_and_trace(people, release):
    found = shoal.attack(release, original=people, attacks=["homogeneity"])
    assert found["attacks"]["homogeneity"]
    with pytest.raises(InputError, match="attack: needs the original"):
        shoal.attack(release)


@pytest.mark.parametrize("asked", [{"t": 0.3}, {"method": {"refine": "exchange"}}])
def test_an_attack_publishes_again_by_the_default_method_with_all_its_parameters(people, asked):
    words = {"quasi": ["age", "sex", "zip"], "sensitive": "disease", "k": 5, "other": "drop"}
    release = shoal.publish(people, **words, **asked)
    made = release.certificate["method"]
    named = {"name": made["name"], **made["parameters"]}
    alike = shoal.publish(people, **words, **asked | {"method": named})
    words = {"original": people, "attacks": ["inference", "singling-out"]}
    found, expected = (shoal.attack(one, **words)["attacks"] for one in (release, alike))
    for attack in words["attacks"]:
        assert found[attack] == expected[attack]


def test_folds_beside_a_control_are_refused_as_they_would_do_nothing(people, release):
    control = shoal.sample("patients", n=50, seed=8)
    with pytest.raises(InputError, match="folds: nobody is set aside where other people are given"):
        shoal.attack(release, original=people, attacks="inference", control=control, folds=5)


def too_few(attacks, name, **control):
    """A certificate whose attack of this name found too little to tell."""
    few = {"share": 0.25, "of": 84, "ci": [-0.05, 0.5], "how": "newcombe"}
    number = {"share": 0.3, "of": 84, "ci": [0.2, 0.4], "how": "wilson"}
    found = dict(attacks) | {"control": dict(attacks["control"]) | control}
    if name == "singling-out":
        found[name] = dict(found[name]) | {"isolate": number, "gain": few}
    else:
        one = dict(found[name]["disease"]) | {"gain": few}
        attacker = {"member": number, "control": number, "gain": few}
        found[name] = {"disease": one | {"attackers": {"cover": attacker}}}
    return found


@pytest.mark.parametrize(
    ("name", "control", "advice"),
    [
        ("singling-out", {"kind": "republished", "folds": 1}, "This release allows no more tries"),
        ("singling-out", {"kind": "given", "folds": 0}, "This release allows no more tries"),
        ("inference", {"kind": "republished", "folds": 1}, "folds=5 or control="),
        ("inference", {"kind": "republished", "folds": 5}, "give more who are not in the release"),
        ("inference", {"kind": "given", "folds": 0}, "give more who are not in the release"),
    ],
)
def test_advice_to_try_an_attack_again_is_what_can_help_it(tried, name, control, advice):
    certificate = tried.extended(attacks=too_few(tried["attacks"], name, **control))
    (finding,) = [one for one in ranked(certificate) if (one.word, one.attack) == (TOO_FEW, name)]
    assert advice in finding.remedy


@pytest.fixture(scope="module")
def tried(people, release):
    return shoal.attack(release, original=people, attacks=["singling-out", "inference"])


def test_the_number_of_tries_stands_in_print_and_in_a_notebook(tried):
    certificate = tried.extended(attacks=too_few(tried["attacks"], "singling-out"))
    for shown in (repr(certificate), certificate._repr_html_()):
        assert "30 % of 84 tries: " in shown


def test_an_attack_says_whether_rows_were_matched(people, release, tried):
    assert "Published rows were matched with the original" in repr(tried)
    bare = shoal.attack(release.data, release.policy, people, "homogeneity")
    assert "since no trace was given" in repr(bare)
    assert "since no trace was given" in bare._repr_html_()


# Results


def test_a_saved_trace_serves_an_attack_and_an_audit_after_a_restart(people, release, tmp_path):
    path, trace = tmp_path / "o.csv", tmp_path / "o.trace.jsonl"
    release.save(path, trace=trace)
    audited = shoal.audit(path, release.policy, original=people, trace=trace)
    assert audited["faults"] == {"uncovered": 0, "changed": 0}
    asked = {"original": people, "attacks": "homogeneity"}
    again = shoal.attack(path, release.policy, trace=trace, **asked)
    now = shoal.attack(release, **asked)
    assert again["attacks"]["homogeneity"] == now["attacks"]["homogeneity"]
    assert trace.stat().st_mode & 0o077 == 0


def test_a_trace_that_is_not_there_or_is_in_the_way_leaves_no_file(release, tmp_path):
    path, trace = tmp_path / "o.csv", tmp_path / "o.trace.jsonl"
    with pytest.raises(InputError, match="trace: a publication that was stored or copied has none"):
        copy.copy(release).save(path, trace=trace)
    trace.write_text("")
    with pytest.raises(InputError, match="already"):
        release.save(path, trace=trace)
    with pytest.raises(InputError, match="is also the release"):
        release.save(path, trace=path)
    assert [one.name for one in tmp_path.iterdir()] == [trace.name]


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_saved_release_is_the_one_that_its_certificate_names(release, name, folder):
    certificate = release.save(name)
    assert certificate["output"]["sha256"]
    assert all(check.ok is not False for check in shoal.verify(name, policy=release.policy))
    read = shoal.read_release(name)
    assert read.data["age"].to_list() == release.data["age"].to_list()
    with pytest.raises(InputError, match="already"):
        release.save(name)
    release.save(name, overwrite=True)


@pytest.mark.parametrize("later", [lambda changed: changed, copy.copy])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_release_is_not_saved_once_its_data_were_changed(people, kind, later, tmp_path):
    frame = people.to_pandas() if kind == "pandas" else people
    done = shoal.publish(frame, quasi=["age"], other="drop", k=5)
    copy.copy(done).save(tmp_path / "unchanged.csv")
    changed = done.data.loc if kind == "pandas" else done.data
    changed[0, "age"] = "33"
    with pytest.raises(InputError, match="publication: its data were changed"):
        later(done).save(tmp_path / "changed.csv")
    assert not (tmp_path / "changed.csv").exists()


def test_numbers_in_place_of_intervals(release):
    middles = release.numbers("mid")["age"]
    ends = release.numbers("interval")["age"].struct.unnest()
    assert middles.to_list() == ((ends["lo"] + ends["hi"]) / 2).to_list()
    with pytest.raises(InputError, match="choose one of published, interval, mid"):
        release.numbers("middle")


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ("published", {"plain": ["visits", "cost", "code"]}),
        ("mid", {"other": "plain"}),
        ("interval", {"other": "plain"}),
    ],
)
def test_plain_numbers_of_a_frame_come_back_as_numbers_and_texts_as_texts(tmp_path, numbers, words):
    rows = pl.int_range(60, eager=True)
    frame = pl.DataFrame({"age": rows, "visits": rows % 7, "cost": rows / 4})
    frame = frame.with_columns(code=pl.lit("79098"))
    release = shoal.publish(frame, quasi="age", k=5, **words)
    release.save(tmp_path / "o.csv")
    data = shoal.read_release(tmp_path / "o.csv", numbers=numbers).data
    assert [data[name].dtype for name in frame.columns[1:]] == [pl.Int64, pl.Float64, pl.String]
    assert data["visits"].sort().equals(frame["visits"].sort())
    release.save(tmp_path / "o.xlsx")
    assert shoal.read_release(tmp_path / "o.xlsx").data["cost"].sort().equals(frame["cost"].sort())
    stated = {column["name"]: column["type"] for column in release.certificate["columns"]}
    assert stated == {"age": "number", "visits": "number", "cost": "number", "code": None}


def test_a_label_that_is_dropped_is_named(people):
    says = "^publish: the label, 'education', is dropped; name it in plain=, too$"
    with pytest.raises(InputError, match=says):
        shoal.publish(people, **ASKED, label="education")
    for words in (ASKED, ASKED | {"other": "plain"}):
        with pytest.raises(InputError, match=r"^publish: column 'educatoin' is not .* 'educ"):
            shoal.publish(people, **words, label="educatoin")
    release = shoal.publish(people, **ASKED | {"other": "plain"}, label="education")
    assert release.certificate["utility"]["classification"] is not None


def test_a_release_that_shows_nothing_of_anybody_has_a_grave_finding(people):
    release = shoal.publish(people, **ASKED | {"k": 400})
    assert set(release.data["sex"]) == {"*"}
    (found,) = [one for one in release.warnings if one.code == "all-suppressed"]
    assert found.severity == "grave"
    assert f"Grave: {found.text}" in repr(release)
    shown = shoal.publish(people, **ASKED)
    assert "all-suppressed" not in [one.code for one in shown.warnings]


def test_sensitive_codes_are_numbers_to_readers_and_equally_far_apart_to_t_closeness(tmp_path):
    rows = pl.int_range(60, eager=True)
    frame = pl.DataFrame({"age": rows, "ward": rows // 12})  # as texts, or as amounts
    measured = []
    for ward in (pl.col("ward"), pl.col("ward").cast(pl.String), pl.col("ward") * 1000 + rows):
        words = {"quasi": "age", "sensitive": "ward", "k": 5, "t": 0.9, "method": "mondrian"}
        release = shoal.publish(frame.with_columns(ward=ward), **words, label="ward")
        assert release.certificate["utility"]["classification"] is not None
        measured.append(release.certificate["promises"][1]["measured"])
        release.save(tmp_path / "o.csv", overwrite=True)
        dtype = shoal.read_release(tmp_path / "o.csv").data["ward"].dtype
        assert dtype.is_integer() or measured[1:] == measured[:1]
    assert measured[0] == measured[1] == 0.8 != measured[2]


def test_every_result_is_short_in_a_console_and_a_table_in_a_notebook(people, release, tmp_path):
    compared = shoal.compare(people, release.policy, methods=["mondrian"], ks=[5])
    price = shoal.marginal(people, release.policy, release=release)
    view = shoal.attacker_view(release, release.policy, people, "most-exposed")
    results = [
        release, release.policy, release.certificate, compared, shoal.propose_policy(people),
        shoal.profile(people), shoal.risk(people, release.policy), price, view,
        shoal.attacker_views(release, release.policy, people),
        shoal.lattice_walk(people, release.policy.with_method("full-domain")),
        shoal.stream(shoal.Policy.from_columns(people, quasi="age", k=5, other="drop")),
    ]  # fmt: skip
    for result in results:
        assert len(repr(result)) < 400, type(result)
        assert "influenza" not in repr(result)
        assert "<table>" in result._repr_html_(), type(result)
    assert isinstance(compared.plot(), Figure)
    assert price.columns[0].name in price._repr_html_()
    assert f"{100 * price.columns[0].loss:.1f} %" in price._repr_html_()
    (learnt, *_), shown = view.learnt, view._repr_html_()
    assert "<td>disease</td>" in shown
    assert f"<td>{learnt.best.share:.6g}</td>" in shown
    for value in (*view.known.values(), learnt.truth, *map(str, learnt.values)):
        assert f"<td>{value}</td>" not in shown
    assert learnt.truth not in repr(view.learnt)
    release.save(tmp_path / "o.csv")
    assert repr(shoal.read_release(tmp_path / "o.csv")) == "<ReleaseFrame rows=400, columns=5>"
    assert all(len(repr(check)) < 200 for check in shoal.verify(tmp_path / "o.csv"))


def test_promises_have_the_same_digits_in_text_and_notebook(release):
    certificate = release.certificate
    promise = certificate["promises"][1] | {"asked": 0.3, "measured": 0.299975}
    assert "<td>0.299975</td>" in certificate.extended(promises=[promise])._repr_html_()


def test_what_attacks_found_is_shown_worst_first_in_console_and_notebook(people, release):
    found = shoal.attack(release, original=people, attacks=["homogeneity", "inference"])
    tried = shoal.publish(people, release.policy, attack=["homogeneity", "inference"])
    for result, certificate in ((found, found), (tried, tried.certificate)):
        rows = worst_first(certificate)
        assert {row.attack for row in rows} == {"homogeneity", "inference"}
        shown = [f"{row.word} ({row.attack}): {row.says}" for row in rows]
        places = [repr(result).index(f"\n{line}") for line in shown]
        assert places == sorted(places)
        assert all(escape(line) in result._repr_html_() for line in shown)
        assert "“Much” is more than 10 % of people;" in repr(result)
    every = shoal.attack(release, original=people, attacks="all")
    assert all(row.attack for row in worst_first(every))
    hidden = len(worst_first(every)) - MOST_RANKED
    assert hidden > 0
    assert f"{hidden} more, less grave: print certificate.found" in repr(every)
    assert every.worst_found[:MOST_RANKED] == every.found[:MOST_RANKED]
    listed = every.found[MOST_RANKED : len(worst_first(every))]
    assert len(listed) == hidden
    assert not any(line in repr(every) for line in listed)


# scikit-learn


@pytest.fixture(scope="module")
def sklearn():
    return pytest.importorskip("shoal.sklearn")


def in_input_order(release) -> pd.DataFrame:
    return release.data.iloc[release.trace.argsort()].reset_index(drop=True)


@pytest.mark.long
@pytest.mark.parametrize(("starred", "shows"), [(2, False), (30, True)])
def test_the_transformer_shows_of_people_without_a_value_what_a_release_shows(
    sklearn, starred, shows
):
    n = range(200)
    columns = {"name": [f"n{i}" for i in n], "sex": ["F", "M"] * 100}
    columns["zip"] = [None] * starred + [f"1000{i % 4}" for i in n[starred:]]
    frame = pd.DataFrame(columns | {"disease": [f"d{i % 7}" for i in n]})
    roles = {
        "name": {"role": "identifier", "pseudonym": "keyed"},
        "sex": "quasi",
        "zip": {"role": "quasi", "hierarchy": {"prefix": 5}},
        "disease": "sensitive",
    }
    diverse = {"model": "l-diversity", "attribute": "disease", "l": 3}
    policy = content_of(roles, 5, diverse, missing="suppress")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOAL_PSEUDONYM_KEY", "sixteen characters")
        anonymizer = sklearn.Anonymizer(policy).fit(frame)
        shown = anonymizer.transform(frame)
        wanted = shoal.publish(frame, anonymizer.policy_)
    assert shown.equals(in_input_order(wanted))
    assert (shown["disease"][:starred] != "*").all() == shows


def test_the_transformer_shows_rows_without_any_value(sklearn):
    """A release leaves them out; here a row comes out for each that goes in."""
    frame = pd.DataFrame({"work": ["a", "b"] * 50 + [None] * 3, "land": ["x"] * 60 + [None] * 43})
    anonymizer = sklearn.Anonymizer(quasi=["work", "land"], k=5)
    shown = anonymizer.fit(frame.head(100)).transform(frame)
    assert len(shown) == len(frame)
    assert anonymizer.fit(frame).transform(frame).head(100).equals(shown.head(100))


def test_the_transformer_finds_levels_and_applies_them(sklearn, people):
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = people.to_pandas()[["name", "patient", "age", "sex", "zip"]]
    frame.index = pd.RangeIndex(1000, 1000 + len(frame))
    quasi = {"age": {"hierarchy": {"bins": {"width": 5, "levels": 4}}}, "sex": {}, "zip": {}}
    words = {"quasi": quasi, "subject": "patient", "drop": "name"}
    anonymizer = sklearn.Anonymizer(k=5, **words)
    shown = anonymizer.fit_transform(frame)
    assert list(shown.columns) == list(anonymizer.get_feature_names_out()) == list(quasi)
    assert shown.index.equals(frame.index)
    assert anonymizer.certificate_.holds
    assert anonymizer.levels_.keys() == set(quasi)
    assert shoal.audit(shown, quasi=list(quasi), k=5).holds
    wanted = shoal.publish(frame, anonymizer.policy_)
    assert shown.reset_index(drop=True).equals(in_input_order(wanted))

    later = frame.head(3).assign(sex=["female", "male", "unheard of"])
    assert anonymizer.transform(later)["sex"].to_list()[2] in ("*", shown["sex"].iloc[0])
    assert anonymizer.transform(frame[[*quasi]]).equals(shown)
    ill = people["disease"] == "influenza"
    model = make_pipeline(
        clone(anonymizer), OneHotEncoder(handle_unknown="ignore"), LogisticRegression()
    )
    assert len(model.fit(frame[:300], ill[:300]).predict(frame[300:])) == 100
    with pytest.raises(InputError, match="'zip': in the policy, not in the data"):
        anonymizer.transform(frame.drop(columns="zip"))
    policy = sklearn.Anonymizer(wanted.policy, k=7).fit(frame)
    assert policy.certificate_["promises"][0]["asked"] == 7


def test_the_transformer_takes_the_words_of_publish_and_refuses_what_it_can_not_keep(
    sklearn, people
):
    known = people.select("age", "sex", "education")
    words = {"quasi": {"age": {"hierarchy": {"bins": {"width": 10, "levels": 3}}}, "sex": {}}}
    least = {"name": "full-domain", "minimum": ["age:1"]}
    made = sklearn.Anonymizer(**words, other="drop", k=5, method=least, seed=3).fit(known)
    assert made.levels_["age"] >= 1
    assert made.certificate_["seed"] == 3
    assert made.certificate_["method"]["parameters"]["minimum"] == ["age:1"]
    policy = shoal.Policy.from_columns(known, **words, other="drop", k=5)
    again = sklearn.Anonymizer(policy.with_method(least.pop("name"), least), seed=3).fit(known)
    assert again.levels_ == made.levels_
    for method, says in (
        ("mondrian", "'mondrian': does not recode .* name 'full-domain'"),
        ({"name": "full-domain", "suppression": 0.05, "rounds": 1}, "leave out 'rounds'"),
    ):
        with pytest.raises(InputError, match=says):
            sklearn.Anonymizer(policy, method=method).fit(known)


def test_the_transformer_suppresses_up_to_a_share_and_shows_no_combination_of_its_own(
    sklearn, people
):
    frame = people.select("age", pl.col("sex").alias("index"), "education").to_pandas()
    bins = {"hierarchy": {"bins": {"width": 5, "levels": 4}}}
    words = {"quasi": {"age": bins, "index": {}, "education": {}}, "other": "drop", "k": 10}
    whole = sklearn.Anonymizer(**words).fit(frame)
    some = sklearn.Anonymizer(**words, suppression=0.2).fit(frame)
    assert some.levels_["education"] < whole.levels_["education"]
    wanted = shoal.publish(frame, some.policy_)
    shown = some.transform(frame)
    assert shown.equals(in_input_order(wanted))
    starred = (shown == "*").all(axis=1)
    assert 0 < starred.mean() <= 0.2
    assert shown[~starred].value_counts().min() >= 10
    # whoever is the only one of a kind among other people shows nothing that fit has not published
    crossed = frame.assign(index=frame["index"].sample(frac=1, random_state=1).to_numpy())
    published = set(shown.itertuples(index=False, name=None))
    assert set(some.transform(crossed).itertuples(index=False, name=None)) <= published
    settings = {"name": "full-domain", "suppression": 0.2}
    by_method = sklearn.Anonymizer(**words, method=settings).fit(frame)
    assert by_method.levels_ == some.levels_


def test_the_transformer_shows_a_value_that_fit_lacked_as_the_group_that_covers_it(sklearn):
    days = [f"2024-0{month}-0{day}" for month in (1, 3) for day in range(1, 5)]
    known = pl.DataFrame({"day": days, "code": ["A1", "B2", "B3", "A4", "A5", "B6", "B7", "A8"]})
    rules = {"day": {"dates": ["month", "year"]}, "code": {"prefix": 2}}
    quasi = {name: {"hierarchy": rule} for name, rule in rules.items()}
    fitted = sklearn.Anonymizer(quasi=quasi, k=2, suppression=0).fit(known)
    days = ["2024-01-31", "2024-02-01", "2024-03-02"]
    shown = fitted.transform(pl.DataFrame({"day": days, "code": ["A9", "B1", "C3"]}))
    assert shown["day"].to_list() == ["2024-01", "*", "2024-03"]
    assert shown["code"].to_list() == ["A*", "B*", "*"]


@pytest.mark.parametrize("text", ["{}", "{},5"])
@pytest.mark.parametrize("bins", [[0, 20, 40, 60, 100], {"width": 20, "start": 20}])
def test_a_number_beyond_its_bins_is_suppressed_and_one_beyond_its_domain_refused(
    sklearn, bins, text
):
    def frame(*ages):
        return pl.DataFrame({"age": [text.format(age) for age in ages], "ill": ["a"] * len(ages)})

    words = {"k": 3, "other": "drop", "read": {"decimal": ","}}
    rule = {"type": "number", "hierarchy": {"bins": bins}}
    known = frame(*range(20, 60), *[25, 26, 45, 46] * 3)
    fitted = sklearn.Anonymizer(quasi={"age": rule}, **words, suppression=0.9).fit(known)
    shown = fitted.transform(frame(-5, 130, 25, 46, 26, 45))["age"].to_list()
    assert [cell == "*" for cell in shown] == [True, True, False, False, False, False]
    stated = sklearn.Anonymizer(quasi={"age": {**rule, "domain": [0, 120]}}, **words).fit(known)
    for age in (-5, 1000):
        with pytest.raises(InputError, match=r"'age': 1 record .*outside"):
            stated.transform(frame(age, 25))


def test_the_transformer_refuses_a_column_that_is_written_otherwise(sklearn):
    days = [f"2024-0{1 + n % 2}-0{1 + n % 3}" for n in range(60)]
    known = pl.DataFrame({"zip": ["01340", "01341"] * 30, "sex": ["F", "M"] * 30, "day": days})
    fitted = sklearn.Anonymizer(quasi=["zip", "sex", "day"], k=5).fit(known)
    for name, cells in (("zip", [1340, 1341]), ("sex", ["f", "m"])):
        written = known.with_columns(pl.Series(name, cells * 30))
        with pytest.raises(InputError, match=rf"'{name}': 60 of 60 .* write them as in the data"):
            fitted.transform(written)
    for name, cells in (("sex", ["f", "f", "M"]), ("day", ["2031-07-07", "2031-07-08", days[0]])):
        with pytest.warns(UserWarning, match=f"'{name}': 40 of 60 values become"):
            fitted.transform(known.with_columns(pl.Series(name, cells * 20)))
    with pytest.raises(shoal.ShoalError, match=r"Anonymizer: .*'K'; did you mean 'k'"):
        sklearn.Anonymizer(K=10)


def test_truth_values_are_such_again_unless_some_are_suppressed():
    frame = pl.DataFrame({"rich": [True, False, None] * 20, "sex": ["true"] * 60})
    for rich in (frame["rich"], pl.Series([True] * 59 + [False])):
        release = shoal.publish(frame.with_columns(rich=rich), quasi="rich", plain="sex", k=5)
        shown = release.numbers()
        assert shown["sex"].to_list() == ["true"] * 60
        shows_all = "*" not in release.data["rich"]
        assert shows_all == bool(rich.null_count()) == (shown["rich"].dtype == pl.Boolean)
        assert not shows_all or shown["rich"].sort().equals(rich.sort())


def test_the_transformer_warns_of_a_column_that_is_the_same_for_everybody(sklearn, people):
    with pytest.warns(UserWarning, match="column 'age' is the same for everybody.*'bins'"):
        sklearn.Anonymizer(quasi=["age", "sex"], other="drop", k=5).fit(people)


def test_the_transformer_names_the_ways_out_that_apply_to_whoever_called_it(sklearn, people):
    ages = {"hierarchy": {"bins": {"width": 5, "levels": 2}}}
    anonymizer = sklearn.Anonymizer(quasi={"age": ages, "sex": {}}, other="drop", k=70)
    with pytest.warns(UserWarning, match="column 'age' is the same for everybody") as warned:
        anonymizer.fit_transform(people.to_pandas())  # by way of scikit-learn
    (said,) = [str(one.message) for one in warned if "column 'age'" in str(one.message)]
    assert said.endswith("found; let more records become '*' (suppression=), or leave it out")
    assert {one.filename for one in warned} == {__file__}


@pytest.mark.parametrize("quasi", [{"age": {}}, {"age": {"hierarchy": {"bins": {"width": 5}}}}])
def test_the_transformer_gives_numbers_at_every_level_if_asked(sklearn, quasi):
    frame = pd.DataFrame({"age": [*range(20, 30)] * 6, "sex": ["F", "M"] * 30})
    for k, ages in ((3, [20.0, 21.0]), (9, [22.0, 22.0] if "hierarchy" in quasi["age"] else None)):
        words = {"quasi": quasi | {"sex": {}}, "k": k}
        shown = sklearn.Anonymizer(**words, numbers="mid").fit_transform(frame)
        assert shown["age"].dtype == float
        assert ages is None or shown["age"][:2].to_list() == pytest.approx(ages, abs=0.5)
        assert not pd.api.types.is_numeric_dtype(shown["sex"])
    with pytest.raises(InputError, match="numbers 'middle': is unknown"):
        sklearn.Anonymizer(**words, numbers="middle").fit(frame)


@pytest.mark.parametrize("fitted", [int, float])
@pytest.mark.parametrize("frame_of", [pd.DataFrame, pl.DataFrame])
def test_the_transformer_knows_numbers_of_another_type(sklearn, fitted, frame_of):
    ages = {"hierarchy": {"bins": {"width": 5}}}
    whole = [*range(20, 30)] * 6
    made = sklearn.Anonymizer(quasi={"age": ages, "sex": {}}, k=3, suppression=0.1)

    def frame(kind, *more):
        return frame_of(
            {"age": [*map(kind, whole), *more], "sex": ["F", "M"] * 30 + ["F"] * len(more)}
        )

    expected = made.fit_transform(frame(fitted))["age"].to_list()
    assert "*" not in expected
    assert [made.transform(frame(kind))["age"].to_list() for kind in (int, float)] == [expected] * 2
    assert made.transform(frame(float, None))["age"].to_list()[:-1] == expected


# Labels of a hierarchy that are spans of numbers


SPANS = "".join(f"{age};{age // 20 * 20}-{age // 20 * 20 + 19};*\n" for age in range(20, 60))


def published_by(labels, folder, settings):
    path = folder / "age.csv"
    path.write_text(labels)
    ages = pd.DataFrame({"age": [20] * 5 + [21, 22, 23, 20, 21, 41, 44, 48, 51, 55]})
    return shoal.publish(ages, quasi={"age": {"hierarchy": path, **settings}}, k=5)


@pytest.mark.parametrize("settings", [{}, {"type": "number"}], ids=["text", "number"])
def test_labels_that_are_spans_are_read_as_numbers(tmp_path, settings):
    release = published_by(SPANS, tmp_path, settings)
    release.save(tmp_path / "released.csv")
    read = shoal.read_release(tmp_path / "released.csv", numbers="mid", to="pandas").data
    cells = [cell.partition("-") for cell in release.data["age"]]
    middles = [(int(low) + int(high or low)) / 2 for low, _, high in cells]
    assert 49.5 in middles
    assert list(release.numbers("mid")["age"]) == list(read["age"]) == middles
    assert {"lo": 40.0, "hi": 59.0} in list(release.numbers("interval")["age"])


def test_half_open_spans_with_brackets_turned_outwards_are_read_as_numbers(tmp_path):
    spans = re.sub(r"(\d+)-(\d+)", r'"[\1, \2["', SPANS)
    assert published_by(spans, tmp_path, {}).numbers("mid")["age"].dtype == float


@pytest.mark.parametrize("k", [3, 15], ids=["exact", "spans"])
def test_ordered_categories_of_numbers_are_read_as_numbers(tmp_path, k):
    grades = pd.Series(
        [1, 2, 3] * 9 + [4] * 9, dtype=pd.CategoricalDtype([1, 2, 3, 4], ordered=True)
    )
    release = shoal.publish(pd.DataFrame({"grade": grades}), quasi=["grade"], k=k)
    release.save(tmp_path / "released.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = shoal.read_release(tmp_path / "released.csv", numbers="mid").data["grade"]
        middles = release.numbers("mid")["grade"]
    cells = [re.findall(r"\d+", cell) for cell in release.data["grade"]]
    assert list(read) == list(middles) == [(int(c[0]) + int(c[-1])) / 2 for c in cells]
    assert any(len(cell) > 1 for cell in cells) == (k == 15)


@pytest.mark.parametrize("kind", ["to_pandas", "clone", "to_arrow"])
def test_categories_keep_their_order_where_values_are_unchanged(kind):
    size = pl.Series("size", ["big", "mid"] * 12, dtype=pl.Enum(["small", "mid", "big"]))
    whole = pl.DataFrame({"size": size, "shown": size, "grade": size, "age": range(24)})
    frame = getattr(whole, kind)()
    proposed = yaml.safe_load(shoal.propose_policy(frame).text)["attributes"]["grade"]
    assert proposed == {"role": "quasi", "order": ["small", "mid", "big"]}
    release = shoal.publish(frame, quasi=["grade", "age"], sensitive="size", plain="shown", k=6)
    assert type(release.data) is type(frame)
    shown = {"size": ["mid", "big"], "shown": ["mid", "big"]}  # nobody is small
    for how in ("mid", "published"):
        assert ordered_categories(release.numbers(how)) == shown
    assert ordered_categories(release.data) == shown
    assert not release.is_changed


BANDS = ["20-39", "40-59", "60-79", "80-99"]
CUT = pd.cut(pd.Series(range(20, 100)), [0, 39, 59, 79, 100], labels=BANDS)
BRACKETS = pd.cut(pd.Series(range(20, 100)), [19, 39, 59, 79, 99])
ORDERED = {
    "cut": (CUT, {}, (20, 39)),
    "order": (CUT.astype(str), {"order": BANDS}, (20, 39)),
    "brackets": (BRACKETS, {}, (19, 39)),
}


@pytest.mark.parametrize("k", [20, 40], ids=["exact", "spans"])
@pytest.mark.parametrize(("bands", "settings", "first"), ORDERED.values(), ids=ORDERED)
def test_ordered_labels_that_are_spans_are_read_as_numbers(tmp_path, bands, settings, first, k):
    frame = pd.DataFrame({"age": bands})
    release = shoal.publish(frame, quasi={"age": settings}, k=k)
    release.save(tmp_path / "released.csv")
    read = shoal.read_release(tmp_path / "released.csv", numbers="interval").data["age"]
    low, high = first[0], first[1] + (20 if k == 40 else 0)
    assert read[0] == next(iter(release.numbers("interval")["age"])) == {"lo": low, "hi": high}
    read = shoal.read_release(tmp_path / "released.csv", numbers="mid").data["age"]
    assert read[0] == next(iter(release.numbers("mid")["age"])) == (low + high) / 2


RANKS = pd.DataFrame(
    {"rank": pd.Series([1, 2, 3, 4] * 9, dtype=pd.CategoricalDtype([4, 3, 2, 1], ordered=True))}
)
FLAGS = pd.DataFrame({"flag": [0, 1] * 6})
UNORDERED = pd.DataFrame({"age": CUT.astype(str)})
NAMED = pd.DataFrame({"age": CUT.cat.rename_categories(["young", *BANDS[1:]])})
STAYS_TEXT = {
    "a falling order": (
        lambda folder: shoal.publish(RANKS, quasi=["rank"], k=15),
        "column 'rank': its numbers .* 'type: number'",
    ),
    "a policy without a type": (
        lambda folder: shoal.publish(FLAGS, content_of({"flag": "quasi"}, 3)),
        "'flag': its numbers .* 'type: number'",
    ),
    "no order": (
        lambda folder: shoal.publish(UNORDERED, quasi=["age"], k=20),
        "'age': .*without an order",
    ),
    "some labels": (
        lambda folder: shoal.publish(NAMED, quasi=["age"], k=20),
        "'age': .*only some of its labels",
    ),
    "some labels of a hierarchy": (
        lambda folder: published_by(SPANS.replace("40-59", "middle-aged"), folder, {}),
        "'age': only some of its labels .* whose labels are all",
    ),
}


@pytest.mark.parametrize(("published", "why"), STAYS_TEXT.values(), ids=STAYS_TEXT)
def test_what_stays_text_is_named_with_a_way_out_to_who_asked_for_numbers(tmp_path, published, why):
    release = published(tmp_path)
    with pytest.warns(UserWarning, match=why) as caught:
        numbers = release.numbers("mid")
    assert caught[0].filename == __file__
    assert [*numbers.iloc[:, 0]] == [*release.data.iloc[:, 0]]


def test_numbers_of_a_frame_are_numbers_however_few_they_are():
    release = shoal.publish(FLAGS, quasi=["flag"], k=3)
    assert release.numbers("mid")["flag"].dtype == float
    texts = shoal.publish(FLAGS.astype(str), quasi=["flag"], k=3)
    assert texts.certificate["columns"][0]["type"] == "category"


@pytest.mark.parametrize("k", [10.0, Decimal(10), np.float32(10), Fraction(10)])
def test_a_whole_number_of_any_type_is_taken(people, k, tmp_path):
    words = {"sensitive": "disease", "other": "drop", "t": Decimal("0.9")}
    release = shoal.publish(people, quasi=["age"], k=k, **words)
    assert [promise["asked"] for promise in release.certificate["promises"]] == [10, 0.9]
    release.policy.save(tmp_path / "p.yaml")
    assert shoal.Policy.load(tmp_path / "p.yaml").required_k == 10


def test_a_cross_validation_says_each_warning_of_the_transformer_once(recwarn):
    sklearn = pytest.importorskip("shoal.sklearn")
    from sklearn.dummy import DummyClassifier
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline

    people = pd.DataFrame({"sex": list("mf") * 60, "name": [f"n{row % 70}" for row in range(120)]})
    model = make_pipeline(
        sklearn.Anonymizer(quasi=["sex"], plain=["name"], k=50), DummyClassifier()
    )
    cross_val_score(model, people, [0, 1] * 60, cv=4)
    said = [re.sub(r"\d+", "", str(one.message)) for one in recwarn]
    assert {"'name' is not protected" in one for one in said} == {True, False}
    assert len(said) == len({*said})
    cross_val_score(model, people, [0, 1] * 60, cv=4)
    assert len(recwarn) == 2 * len(said)


HEIGHTS = pl.int_range(150, 190, eager=True), pl.Series([150.5, 189.25] * 20)
SAID = {}, {"missing_values": "-99.0", "read": {"decimal": ","}}


@pytest.mark.parametrize(
    ("shown", "said", "height"),
    every(3, product(["range", "both", "mean", "median"], SAID, HEIGHTS)),
)
def test_a_number_that_stands_for_no_value_is_read_as_none(tmp_path, height, shown, said):
    heights = pl.concat([pl.repeat(-99, 20, dtype=height.dtype, eager=True), height])
    frame = pl.DataFrame({"height": heights, "weight": heights, "sex": ["f", "m"] * 30})
    quasi = {"height": {"type": "number", "render": shown}, "sex": {}}
    words = {"quasi": quasi, "k": 5, "plain": "weight", "missing_values": "-99"} | said
    release = shoal.publish(frame, **words)
    assert "sign-of-no-value" not in [one.code for one in release.warnings]
    paths = [tmp_path / f"o{ending}" for ending in (".csv", ".parquet", ".xlsx", ".jsonl")]
    for path in paths:
        release.save(path)
    for how in ("mid", "mean", "interval") if shown in ("range", "both") else ("mid", "mean"):
        read = [shoal.read_release(path, numbers=how).data for path in paths]
        for data in (release.numbers(how), *read):
            numbers = data["height"].struct.field("lo") if how == "interval" else data["height"]
            assert numbers.null_count() == data["weight"].null_count() == 20
            assert data["weight"].mean() == height.mean()
            assert numbers.drop_nulls().min() >= height.min()
    for path in paths:
        checks = shoal.verify(path, policy=release.policy)
        assert all(check.ok is not False for check in checks)


def test_a_sign_of_no_value_is_stated_only_where_it_looks_like_a_number(tmp_path):
    ages = ["-9", "-9,5"] * 5 + [*map(str, range(20, 70))]
    frame = pl.DataFrame({"age": ages, "sex": ["f"] * 60})
    words = {"quasi": {"age": {"type": "number"}, "sex": {}}, "k": 5, "read": {"decimal": ","}}
    release = shoal.publish(frame, missing_values=["?", "-9", "-9,5"], **words)
    stated = release.save(tmp_path / "o.csv")["output"]["dialect"]
    assert stated["missing"] == ["-9", "-9,5", "-9.0"]
    assert shoal.read_release(tmp_path / "o.csv", numbers="mid").data["age"].null_count() == 10
    values = frame.filter(~pl.col("age").str.starts_with("-"))
    release = shoal.publish(values, missing_values=["?", "none"], **words)
    assert "missing" not in release.save(tmp_path / "values.csv")["output"]["dialect"]


def test_a_sign_of_no_value_that_a_certificate_does_not_state_is_warned_of(tmp_path):
    frame = pl.DataFrame({"age": [-99] * 20 + list(range(20, 120)), "sex": ["f", "m"] * 60})
    release = shoal.publish(frame, quasi=["age", "sex"], k=5, missing_values=[-99])
    stated = release.save(tmp_path / "o.csv")
    output = dict(stated["output"])
    output["dialect"] = {k: v for k, v in output["dialect"].items() if k != "missing"}
    earlier = stated.extended(output=output)
    with pytest.warns(UserWarning, match="'age': a usual sign .* in 20 cells") as caught:
        shoal.read_release(tmp_path / "o.csv", earlier, numbers="mid")
    assert [one.filename for one in caught] == [__file__]
    forged = {**output, "dialect": {**output["dialect"], "missing": ["20"]}}
    for number, (said, holds) in enumerate(((output, True), (forged, False))):
        path = tmp_path / f"{number}.json"
        path.write_text(stated.extended(output=said).to_json())
        checks = shoal.verify(tmp_path / "o.csv", path, release.policy)
        assert all(check.ok is not False for check in checks) is holds


def test_signs_for_no_value_stand_in_data_as_published_and_are_null_in_numbers(tmp_path):
    frame = pd.DataFrame({"age": [*range(20, 40)] * 2, "pay": [-9, *range(1, 40)]})
    words = {"quasi": "age", "plain": "pay", "k": 4, "missing_values": -9}
    release = shoal.publish(frame, **words)
    assert (release.data["pay"] == -9).sum() == 1
    release.save(tmp_path / "released.csv")
    for how in ("published", "mid", "interval"):
        numbers = release.numbers(how)
        read = shoal.read_release(tmp_path / "released.csv", numbers=how, to="pandas").data
        pd.testing.assert_frame_equal(numbers, read, check_dtype=False)
        assert numbers["pay"].isna().sum() == 1
    assert list(release.numbers("published")["age"]) == list(release.data["age"])


@pytest.mark.parametrize("verb", ["publish", "publish by a policy", "republish", "from_columns"])
def test_a_name_in_place_of_a_frame_is_said_before_what_else_is_missing(people, tmp_path, verb):
    path = tmp_path / "people.csv"
    people.write_csv(path)
    words = {"quasi": ["age"], "other": "drop", "k": 5}
    policy = shoal.Policy.from_columns(people, **words)
    calls = {
        "publish": lambda: shoal.publish(str(path)),
        "publish by a policy": lambda: shoal.publish(path, policy),
        "republish": lambda: shoal.republish(path, policy, tmp_path / "ledger"),
        "from_columns": lambda: shoal.Policy.from_columns(path, **words),
    }
    with pytest.raises(InputError) as refused:
        calls[verb]()
    way_out = "or publish it by shoal.publish_file(table, policy, output)"
    said = "frame: is a name, not a table; read the file into a frame"
    assert str(refused.value).startswith(said)
    assert str(refused.value).endswith(way_out) == verb.startswith("publish")


NONE = {"missing_values": -9}


def test_signs_for_no_value_are_taken_beside_a_policy_by_every_verb_that_reads(people, tmp_path):
    ages = [-9, *people["age"].to_list()[1:]]
    frame = people.with_columns(pl.Series("age", ages))
    words = {"quasi": ["age", "sex"], "other": "drop", "k": 5}
    policy = shoal.Policy.from_columns(people, **words)
    with pytest.raises(InputError, match="1 record"):
        shoal.publish(frame, policy)
    release = shoal.publish(frame, policy, **NONE)
    assert release.certificate.holds
    assert release.policy.model.missing_values == ["", "-9", "-9.0"]
    assert set(release.data["age"]) == set(shoal.publish(frame, **words, **NONE).data["age"])
    assert shoal.compare(frame, policy, ks=[5], methods=["mondrian"], **NONE).releases[0].holds
    known = {"original": frame, "trace": release.trace, "read": NONE}
    assert shoal.audit(release.data, policy, **known).holds
    assert shoal.attack(release.data, policy, attacks="homogeneity", **known)["attacks"]
    assert not shoal.check(policy, frame, read=NONE)
    assert shoal.risk(frame, policy, read=NONE).people == 400
    assert shoal.profile(frame, policy=policy, read=NONE).tried.classes
    frame.write_csv(tmp_path / "in.csv")
    files = [tmp_path / "in.csv", policy, tmp_path / "out.csv"]
    assert shoal.publish_file(*files, read=NONE).holds
    with pytest.raises(TypeError, match=r"or as read=\{'missing_values': \[...\]\}"):
        shoal.publish_file(*files, **NONE)
    with pytest.raises(InputError, match=r"known key; .*beside a policy also missing_values$"):
        shoal.profile(frame, read=NONE)


@pytest.mark.parametrize(("names", "columns"), [(["x"], "column 'x' is"), (["x", "y"], "columns ")])
def test_what_is_listed_agrees_with_how_many_are_listed(people, names, columns):
    words = {"quasi": ["age"], "other": "drop", "k": 5}
    with pytest.raises(InputError, match=f"{columns}.* not in the frame"):
        shoal.publish(people, **words, plain=names)
    mean = {"role": "quasi", "type": "number", "domain": [0, 9], "render": "mean"}
    policy = shoal.Policy.from_dict(content_of(dict.fromkeys(names, mean)))
    with pytest.raises(InputError, match=f"^attribute{'s' if names[1:] else ''} 'x'"):
        policy.build_method("stream")


def test_a_release_that_is_read_for_pandas_has_the_types_of_its_data(tmp_path):
    cells = {"age": [*range(6)], "pay": [2**60 + 1, None, 7] * 2, "paid": [True, None, False] * 2}
    frame = pd.DataFrame(cells).astype({"pay": "Int64", "paid": "boolean"})
    release = shoal.publish(frame, quasi="age", plain=["pay", "paid"], k=3)
    assert [*map(str, release.data.dtypes[1:])] == ["Int64", "boolean"]
    release.save(tmp_path / "released.parquet")
    read = shoal.read_release(tmp_path / "released.parquet", to="pandas").data
    pd.testing.assert_frame_equal(read, release.numbers("published"))


def test_a_column_that_is_the_index_is_named_as_such(people):
    frame = people.unique("patient").to_pandas().set_index("patient")
    with pytest.raises(InputError, match=r"^frame: 'patient' is its index, .* by reset_index\(\)$"):
        shoal.publish(frame, quasi=["age"], subject="patient", other="drop", k=5)
    words = {"quasi": ["age"], "subject": "patient", "other": "drop", "k": 5}
    assert shoal.publish(frame.reset_index(), **words).certificate.holds


def test_what_an_audit_and_an_attack_can_t_use_is_refused(people, release):
    with pytest.raises(InputError, match=r"^trace: can only be checked against the original; give"):
        shoal.audit(release.data, release.policy, trace=release.trace)
    with pytest.raises(InputError, match=r"^folds: '3' sets of other people"):
        shoal.attack(release, original=people, folds="3")
    with pytest.raises(InputError, match=r"^columns: no name is in the policy; give the pol"):
        shoal.publish(people.select("name"), release.policy)


def test_a_caller_without_a_module_is_warned_and_gets_its_release():
    """As a server's or a notebook's own runner executes what somebody typed."""
    frame = pl.DataFrame({"age": [20, 30] * 10, "ill": ["flu", "hiv"] * 10})
    names = {"shoal": shoal, "frame": frame}
    with pytest.warns(UserWarning, match="no promise covers 'ill'"):
        exec("found = shoal.publish(frame, quasi='age', sensitive='ill', k=5)", names)
    assert names["found"].certificate.holds
