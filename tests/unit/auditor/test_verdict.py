"""What a verdict says helps."""

from __future__ import annotations

import pytest

from shoal.auditor.verdict import remedy


@pytest.mark.parametrize(
    ("measure", "model", "helps"),
    [
        ("certain", "l-diversity", "ask for a larger l"),
        ("inference_gain", "t-closeness", "raise k, or ask for a smaller t"),
        ("lifted", "beta-likeness", "ask for a smaller beta"),
        ("certain", "t-closeness", "promise l-diversity"),
    ],
)
def test_no_promise_that_stands_is_advised_again(measure, model, helps):
    stated = {"promises": [{"model": model, "attributes": ["disease"]}], "columns": []}
    assert remedy(stated, measure, "disease") == helps
    assert "promise" in remedy(stated, measure, "another")
