"""Special uniques: the smallest sets of columns that single a person out, and scores by them."""

from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import naive_survey as naive
import shoal as shoal_package
from sample_policies import content_of
from shoal.advise.risk import row_keys
from shoal.advise.special_uniques import special_uniques
from shoal.samples import survey


def found(rows, people=None):
    codes = np.array(rows, dtype=np.int32)
    columns = {name: codes[:, j] for j, name in enumerate("abcde"[: codes.shape[1]])}
    persons = None if people is None else np.array(people, dtype=np.int32)
    return special_uniques(row_keys(columns, len(rows)), persons)


def minimal_sets(rows, people, most):
    """By record, the sets of columns that only its person has and of which no part will do."""
    columns = range(len(rows[0]))
    sets = []
    for row, person in zip(rows, people, strict=True):
        own = []
        for size in range(1, most + 1):
            for chosen in combinations(columns, size):
                if any(set(part) <= set(chosen) for part in own):
                    continue
                others = {
                    other
                    for record, other in zip(rows, people, strict=True)
                    if all(record[j] == row[j] for j in chosen)
                }
                if others == {person}:
                    own.append(chosen)
        sets.append(own)
    return sets


ROWS = st.integers(1, 5).flatmap(
    lambda d: st.lists(
        st.tuples(*[st.integers(0, 2)] * d, st.integers(0, 3)), min_size=1, max_size=12
    )
)


@given(ROWS)
def test_minimal_sets_and_scores_are_those_of_looking_at_every_set(drawn):
    rows = [row[:-1] for row in drawn]
    people = np.unique([row[-1] for row in drawn], return_inverse=True)[1].tolist()
    d, most = len(rows[0]), min(4, len(rows[0]))
    sets = minimal_sets(rows, people, most)
    factor = {
        size: int(np.prod([max(d - i, 1) for i in range(size, most + 1)]))
        for size in range(1, most + 1)
    }
    special = found(rows, people)
    for size in factor:
        assert special.sizes[size] == sum(len(one) == size for own in sets for one in own)
    scores = [sum(factor[len(one)] for one in own) for own in sets]
    for person in set(people):
        best = max(s for s, other in zip(scores, people, strict=True) if other == person)
        assert special.scores[person] == best


def test_a_column_that_is_in_every_minimal_set_has_all_of_the_score():
    special = found([[0, 0], [1, 0], [2, 0], [2, 0]])
    assert special.columns == {"a": 1.0, "b": 0.0}
    assert special.sizes == {1: 2, 2: 0}


def test_profile_says_who_is_special_and_how_likely_their_weights_let_them_be_named(shoal, folder):
    frame = pl.DataFrame({"age": [1, 2, 3, 3], "sex": [*"fmff"], "w": [10.0, 50.0, 9.0, 9.0]})
    frame.write_csv("in.csv")
    policy = (
        "{version: 1, attributes: {age: {role: quasi}, sex: {role: quasi}, w: {role: weight}},"
        " promises: [{model: k-anonymity, k: 2}]}"
    )
    Path("policy.yaml").write_text(policy)
    done = shoal("profile", "in.csv", "-p", "policy.yaml", status=0)
    text = done.out + done.err
    assert "up to 2 columns single out 2 records" in text
    assert "2 alone in the sample" in text


def test_risk_in_python_states_what_was_found():
    frame = pl.DataFrame({"age": [1, 2, 3, 3], "w": [10.0, 50.0, 9.0, 9.0]})
    asked = content_of({"age": "quasi", "w": "weight"})
    stated = shoal_package.risk(frame, asked).to_dict()
    assert stated["special"]["sizes"] == {"1": 2}
    assert stated["alone_by_weight"]["max"] == pytest.approx(0.2558428, abs=1e-7)
    assert "special" not in shoal_package.risk(frame, asked, special=False).to_dict()


def test_risk_is_the_certificates_with_that_of_every_record_in_order(shoal, tmp_path):
    frame, content = survey.generate(300, 3), yaml.safe_load(survey.POLICY)
    twice = pl.concat([frame, frame.head(9)])  # nine people come again
    found = shoal_package.risk(twice, content)
    keys = list(frame.select(found.quasi).iter_rows())
    weights, homes = frame["weight"].to_list(), frame["household"].to_list()
    own, carried = naive.risks(keys, weights, homes)
    stated = found.individual_risk
    assert stated == found.to_dict()["individual_risk"]
    assert stated["own"]["mean"] == pytest.approx(np.mean(own), rel=1e-10)
    assert stated["household"]["mean"] == pytest.approx(np.mean(carried), rel=1e-10)
    alone = [r for r, key in zip(own, keys, strict=True) if keys.count(key) == 1]
    assert sorted(found.alone_by_weight) == pytest.approx(sorted(alone), rel=1e-10)
    assert found.records["risk"] == pytest.approx([*own, *own[:9]], rel=1e-10)
    assert found.records["household_risk"] == pytest.approx([*carried, *carried[:9]], rel=1e-10)
    alike = [keys.count(key) for key in keys]
    assert found.records["alike"].tolist() == [*alike, *alike[:9]]
    stand_for = [sum(w for w, k in zip(weights, keys, strict=True) if k == key) for key in keys]
    assert found.records["stand_for"] == pytest.approx([*stand_for, *stand_for[:9]])

    twice.write_csv(tmp_path / "in.csv")
    policy, records = tmp_path / "p.yaml", tmp_path / "records.csv"
    policy.write_text(survey.POLICY)
    done = shoal("profile", tmp_path / "in.csv", "-p", policy, "--records", records, status=0)
    expected = f"with the household {np.mean(carried):.3g} {max(carried):.3g} {np.sum(carried):.1f}"
    assert expected in " ".join(done.out.split())
    assert pl.read_csv(records)["score"].to_list() == found.records["score"].tolist()
    assert records.stat().st_mode & 0o777 == 0o600
    again = shoal("profile", tmp_path / "in.csv", "-p", policy, "--records", records, status=2)
    assert again.err == f"shoal: output '{records}': is there already; name a new file\n"
    assert shoal("profile", tmp_path / "in.csv", "--records", "other.csv").status == 2


def test_weights_that_are_none_are_refused_all_at_once_where_they_are_measured():
    frame = pl.DataFrame({"age": [1, 2, 3, 3], "w": ["10", "0", "-9", ""]})
    asked = content_of({"age": "quasi", "w": "weight"})
    with pytest.raises(shoal_package.InputError) as refused:
        shoal_package.risk(frame, asked)
    said = "\n".join(refused.value.said)
    assert "1 record with a weight of 0" in said
    assert "1 record with a weight below 0" in said
    assert "1 record without a weight" in said
    assert shoal_package.risk(frame, asked, special=False).lone == 2
