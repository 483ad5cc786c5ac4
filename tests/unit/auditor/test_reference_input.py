"""t-closeness and beta-likeness against all records of the input, the suppressed ones, too."""

from functools import partial

import numpy as np
import polars as pl
import pytest

import shoal as library
from certified_cases import publish, run
from sample_policies import content_of
from shoal.data.classes import Classes, SensitiveColumn
from shoal.errors import InputError
from shoal.policy.policy import Policy
from shoal.privacy.beta_likeness import BetaLikeness
from shoal.privacy.t_closeness import TCloseness

# one class of u, v; six records of w are in no class
LABELS = np.array([0, 0, -1, -1, -1, -1, -1, -1], dtype=np.int32)
VALUES = np.array([0, 1, 2, 2, 2, 2, 2, 2], dtype=np.int32)
CLASSES = Classes(LABELS, 1, None, {"s": SensitiveColumn("s", VALUES, 3, labels=("u", "v", "w"))})


@pytest.mark.parametrize(
    ("promise", "of_input"),
    [
        (TCloseness, 0.75),  # half u, half v, beside 1/8 u, 1/8 v and 6/8 w: 3/4 have to move
        (partial(BetaLikeness, kind="basic"), 3.0),  # u is 4 times as frequent as in the input
    ],
)
def test_a_class_is_compared_with_the_kept_records_or_with_all(promise, of_input):
    assert promise("s", of_input).measure(CLASSES).tolist() == [0.0]
    asked = promise("s", of_input, reference="input")
    assert asked.measure(CLASSES).tolist() == [of_input]
    assert asked.holds(CLASSES).all()
    assert not promise("s", of_input - 0.1, reference="input").holds(CLASSES).any()


def policy(reference, **more):
    tree = {"Any": {"North": ["a", "b"], "South": ["c", "d"]}}
    promise = {"model": "t-closeness", "attributes": ["ill"], "t": 0.45} | reference
    columns = {"town": {"role": "quasi", "hierarchy": {"tree": tree}}, "ill": "sensitive"}
    return content_of(columns, 2, promise) | {"method": METHOD} | more


ROWS = pl.DataFrame({"town": list("aabbccdd") * 2, "ill": list("xyxyzzzz") + list("xyxyzzxz")})


METHOD = {"name": "full-domain", "suppression": 0.6}


@pytest.mark.parametrize("reference", [{}, {"reference": "input"}])
def test_a_search_is_proven_only_where_what_is_kept_changes_nothing(reference):
    done = library.publish(ROWS, policy(reference))
    said = done.certificate["method"]["search_statistics"]
    assert said["every_node"]
    if reference:
        assert said["proven"]
    asked = done.certificate["promises"][1]
    assert asked["holds"]
    assert asked.get("reference") == reference.get("reference")


def test_withheld_records_count_and_the_audit_needs_the_original_for_them(tmp_path, capsys):
    """With town a..d shown, classes of c and d are too far; they are suppressed and withheld."""
    method = METHOD | {"maximum": ["town:0"]}
    asked = policy({"reference": "input"}, method=method, render={"order": "input"})
    publish(tmp_path, ROWS, asked)
    assert "*" in pl.read_csv(tmp_path / "out.csv")["ill"].to_list()
    for verb, without in (("audit", 2), ("verify", 0)):
        command = f"{verb} out.csv -p policy.yaml"
        assert run(tmp_path, f"{command} --original in.csv") == 0
        capsys.readouterr()
        assert run(tmp_path, command) == without
        said = capsys.readouterr()
        assert "give the original" in said.out + said.err


def test_it_is_refused_where_records_are_missing_or_come_one_after_another():
    some = ROWS.with_columns(town=pl.Series([None, *ROWS["town"].to_list()[1:]]))
    with pytest.raises(InputError, match="missing: 'suppress'"):
        library.publish(some, policy({"reference": "input"}, missing="suppress"))
    with pytest.raises(InputError, match="single tables"):
        Policy.from_dict(policy({"reference": "input"}, method={"name": "crp"})).build_method(
            "republish"
        )
