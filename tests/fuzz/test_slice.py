"""A slice of `make fuzz`: every registered method, on a few cases each."""

import os
import secrets

import pytest

from fuzz.runs import draw_case, load, run_case, save
from fuzz.tables import methods
from shoal.data.recoding import OWN_METHODS
from thorough import every, examples

SAME = os.environ.get("SHOAL_SAME_EXAMPLES") == "1"
SEED = "ci" if SAME else secrets.token_hex(4)
KINDS = {"tables": "publish", "streams": "stream", "ledgers": "republish"}
SLICES = [(kind, name) for kind, verb in KINDS.items() for name in methods(verb)]
SLICES += [("fresh", name) for name in every(4, methods("publish"))]
SLICES += [("pairs", name) for name in sorted(OWN_METHODS)]
SLICES += [("worlds", name) for name in methods("publish FOLDER")]


@pytest.mark.parametrize(("kind", "method"), SLICES, ids=str)
def test_publish_audits_verify_and_the_checker_agree(kind, method):
    for number in range(examples(1, 3)):
        seed = f"{SEED} {number}"
        outcome = run_case(draw_case(kind, seed, method), seed)
        assert outcome.problems == [], f"seed {seed!r}"


def test_a_failing_case_is_saved_small_and_fails_again(tmp_path, monkeypatch):
    """With a release that is said to break a promise whatever it holds."""
    import fuzz.tables as tables
    from fuzz.judge import Verdict

    real = tables.judge

    def unjust(*arguments) -> Verdict:
        found = real(*arguments)
        return Verdict(found.unfit, found.promises, frozenset({0}), frozenset())

    monkeypatch.setattr(tables, "judge", unjust)
    case = next(
        drawn
        for drawn in (draw_case("tables", f"s {n}", "mondrian") for n in range(20))
        if run_case(drawn, "s").status == "published" and len(drawn.table.rows) > 9
    )
    problem = "checker: release breaks a promise"
    folder = save(case, "s", problem, "", tmp_path)
    again, seed = load(tmp_path / folder)
    assert len(again.table.rows) < 9
    assert problem in [kind for kind, _ in run_case(again, seed).problems]
