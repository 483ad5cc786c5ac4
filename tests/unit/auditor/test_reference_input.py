"""t-closeness and beta-likeness against all records of the input, the suppressed ones, too."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import yaml
from typer.testing import CliRunner

import shoal as library
from shoal.cli.main import app
from shoal.data.classes import Classes, SensitiveColumn
from shoal.errors import InputError
from shoal.policy.policy import Policy
from shoal.privacy.beta_likeness import BetaLikeness
from shoal.privacy.t_closeness import TCloseness

# one class of u, v; six records of w are in no class
LABELS = np.array([0, 0, -1, -1, -1, -1, -1, -1], dtype=np.int32)
VALUES = np.array([0, 1, 2, 2, 2, 2, 2, 2], dtype=np.int32)
CLASSES = Classes(LABELS, 1, None, {"s": SensitiveColumn("s", VALUES, 3, labels=("u", "v", "w"))})


def test_t_compares_with_the_kept_records_or_with_all():
    """Half u, half v, beside 1/8 u, 1/8 v and 6/8 w: three quarters have to move."""
    assert TCloseness("s", 0.1).measure(CLASSES).tolist() == [0.0]
    assert TCloseness("s", 0.1, reference="input").measure(CLASSES).tolist() == [0.75]
    assert TCloseness("s", 0.75, reference="input").holds(CLASSES).all()


def test_beta_compares_with_the_kept_records_or_with_all():
    """u is four times as frequent in the class as in the input: a gain of 3."""
    assert BetaLikeness("s", 3, "basic").measure(CLASSES).tolist() == [0.0]
    asked = BetaLikeness("s", 3, "basic", reference="input")
    assert asked.measure(CLASSES).tolist() == [3.0]
    assert asked.holds(CLASSES).all()
    assert not BetaLikeness("s", 2.9, "basic", reference="input").holds(CLASSES).any()


def test_what_is_not_asked_is_not_stated():
    assert "reference" not in TCloseness("s", 0.1).report(CLASSES)
    assert TCloseness("s", 0.1, reference="input").report(CLASSES)["reference"] == "input"
    assert "reference" not in BetaLikeness("s", 1).settings


def policy(reference, **more):
    tree = {"Any": {"North": ["a", "b"], "South": ["c", "d"]}}
    promise = {"model": "t-closeness", "attributes": ["ill"], "t": 0.45} | reference
    return {
        "version": 1,
        "attributes": {
            "town": {"role": "quasi", "hierarchy": {"tree": tree}},
            "ill": {"role": "sensitive"},
        },
        "promises": [{"model": "k-anonymity", "k": 2}, promise],
        "method": {"name": "full-domain", "suppression": 0.6},
        **more,
    }


ROWS = pl.DataFrame({"town": list("aabbccdd") * 2, "ill": list("xyxyzzzz") + list("xyxyzzxz")})


def published(tmp_path, content):
    ROWS.write_csv(tmp_path / "rows.csv")
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(content))
    names = ("rows.csv", "policy.yaml", "out.csv")
    rows, rules, out = (str(tmp_path / name) for name in names)
    done = CliRunner().invoke(app, ["publish", rows, "-p", rules, "-o", out])
    return done, rows, rules, out


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


def test_withheld_records_count_and_the_audit_needs_the_original_for_them(tmp_path):
    """With town a..d shown, classes of c and d are too far; they are suppressed and withheld."""
    content = policy({"reference": "input"})
    content["method"] |= {"maximum": ["town:0"]}
    content["render"] = {"order": "input"}
    done, rows, rules, out = published(tmp_path, content)
    assert done.exit_code == 0, done.output
    audit = ["audit", out, "-p", rules]
    with_it = CliRunner().invoke(app, [*audit, "--original", rows])
    assert with_it.exit_code == 0, with_it.output
    assert "*" in pl.read_csv(out)["ill"].to_list()
    alone = CliRunner().invoke(app, audit)
    assert isinstance(alone.exception, InputError)
    assert "give the original" in str(alone.exception)
    verified = CliRunner().invoke(app, ["verify", out, "--policy", rules, "--original", rows])
    assert verified.exit_code == 0, verified.output
    unsure = CliRunner().invoke(app, ["verify", out, "--policy", rules])
    assert "give the original" in unsure.output


def test_it_is_refused_where_records_are_missing_or_come_one_after_another():
    some = ROWS.with_columns(town=pl.Series([None, *ROWS["town"].to_list()[1:]]))
    with pytest.raises(InputError, match="missing: 'suppress'"):
        library.publish(some, policy({"reference": "input"}, missing="suppress"))
    with pytest.raises(InputError, match="single tables"):
        Policy.from_dict(policy({"reference": "input"}, method={"name": "crp"})).build_method(
            "republish"
        )
