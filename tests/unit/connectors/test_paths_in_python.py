"""What is no path is refused by its type where a path is wanted: a frame's text holds cells."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.errors import InputError

CELL = "secret-cell"
COLUMNS = {"age": list(range(200)), "disease": [CELL] * 200}
POLICY = content_of({"age": {"role": "quasi"}, "disease": {"role": "sensitive"}}, 2)
CALLS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "verify": ("path", shoal.verify),
    "verify original": ("original", lambda frame: shoal.verify(__file__, original=frame)),
    "read_release": ("path", shoal.read_release),
    "publish_file": ("table", lambda frame: shoal.publish_file(frame, POLICY, "out.csv")),
    "publish_file output": ("output", lambda frame: shoal.publish_file("in.csv", POLICY, frame)),
    "audit_file": ("released", lambda frame: shoal.audit_file(frame, POLICY)),
    "audit_file original": ("original", lambda frame: shoal.audit_file("o.csv", POLICY, frame)),
    "dossier": ("released", lambda frame: shoal.dossier(frame, context={})),
    "dossier original": (
        "original",
        lambda frame: shoal.dossier("o.csv", context={}, original=frame),
    ),
    "stream_file": ("source", lambda frame: shoal.stream_file(frame, POLICY, "out.csv")),
    "stream_file output": ("output", lambda frame: shoal.stream_file("in.csv", POLICY, frame)),
    "stream_status": ("checkpoint", shoal.stream_status),
    "audit_ledger": ("ledger", shoal.audit_ledger),
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("call", CALLS)
def test_a_frame_where_a_path_is_wanted_is_named_by_its_type(call, make):
    what, asked = CALLS[call]
    with pytest.raises(InputError) as refused:
        asked(make(COLUMNS))
    way_out = "; 'shoal.audit' compares a release with a frame" if call == "verify original" else ""
    assert str(refused.value) == f"{what}: a path is needed, this is of type DataFrame{way_out}"


def of_policy(**changed: Any) -> object:
    return shoal.publish_file("in.csv", POLICY | changed, "out.csv")


NAMED: dict[str, Callable[[Any], object]] = {
    **{call: asked for call, (_, asked) in CALLS.items()},
    "policy": lambda name: shoal.publish_file("in.csv", name, "out.csv"),
    "hierarchy": lambda name: of_policy(attributes={"a": {"role": "quasi", "hierarchy": name}}),
    "reference": lambda name: of_policy(reference=name),
    "population": lambda name: of_policy(population={"table": name}),
    "hierarchies": lambda name: shoal.propose_policy(pl.DataFrame(COLUMNS), hierarchies=name),
}


@pytest.mark.parametrize("name", ["x" * 300, "d/" * 3000, "a\0b"], ids=len)
@pytest.mark.parametrize("call", NAMED)
def test_a_name_that_no_file_can_have_is_refused_wherever_one_is_named(folder, call, name):
    with pytest.raises(InputError, match="a name of more than 255 bytes"):
        NAMED[call](name)
