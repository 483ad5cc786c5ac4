"""A comparison that is watched point by point, stopped, and continued."""

import json
from dataclasses import replace

import pytest

import shoal
from sample_policies import content_of
from shoal.cli.main import status_of

FRAME = shoal.sample("patients", 120, 3)
POLICY = content_of(
    {"age": {"role": "quasi", "type": "number", "domain": [0, 100]}, "sex": "quasi"},
    3,
    other="drop",
)
METHODS, KS = ["mondrian", "mondrian:cut=nearest"], [3, 6, 500]


class Enough(Exception):
    """Somebody has seen enough."""


def figures(comparison: shoal.Comparison) -> list:
    return [dict(replace(row, seconds=None).as_dict().items()) for row in comparison.rows]


def test_rows_come_as_they_are_measured_and_are_those_of_the_result():
    seen: list = []
    result = shoal.compare(FRAME, POLICY, METHODS, KS, on_row=seen.append)
    assert [(row.k, row.label) for row in seen] == [(k, m) for k in KS for m in METHODS]
    assert sorted(map(id, seen)) == sorted(map(id, result.rows))


def test_stopped_and_continued_is_the_same_as_never_stopped():
    seen: list = []

    def until_three(row: object) -> None:
        seen.append(row)
        if len(seen) == 3:
            raise Enough

    with pytest.raises(Enough):
        shoal.compare(FRAME, POLICY, METHODS, KS, on_row=until_three)
    rest = shoal.compare(FRAME, POLICY, METHODS, KS, skip={(row.label, row.k) for row in seen})
    assert len(rest.rows) == 3
    whole = shoal.compare(FRAME, POLICY, METHODS, KS)
    continued = rest.joined(replace(rest, rows=tuple(seen)))
    assert figures(continued) == figures(whole)
    assert continued.recommendation == whole.recommendation


def test_nothing_is_left_where_all_is_skipped():
    result = shoal.compare(FRAME, POLICY, ["mondrian"], [3], skip=[("mondrian", 3)])
    assert result.rows == ()
    assert result.recommendation is None


def test_the_command_skips_and_says_what_is_no_point(tmp_path, capsys):
    table, policy = tmp_path / "t.csv", tmp_path / "p.json"
    FRAME.write_csv(table)
    policy.write_text(json.dumps(POLICY))
    asked = ["compare", str(table), "-p", str(policy), "--methods", ",".join(METHODS), "-q"]
    asked += ["--ks", "3,6", "--json"]
    assert status_of([*asked, "--skip", "3:mondrian:cut=nearest", "--skip", "6:mondrian"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["k"], row["label"]) for row in rows] == [(3, METHODS[0]), (6, METHODS[1])]
    assert status_of([*asked, "--skip", "mondrian", "--skip", "x:y"]) == 2
    assert capsys.readouterr().err.count("is not a point") == 2
