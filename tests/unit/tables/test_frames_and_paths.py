"""A frame works wherever a table's path does; where only a path does, it is refused by its type."""

from contextlib import chdir

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.errors import InputError

SECRET = "Xanthippe"


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A folder with a table, a policy, a release and its trace, and the same as frames."""
    folder = tmp_path_factory.mktemp("mixed")
    frame = pd.DataFrame(
        {"age": [str(20 + i % 40) for i in range(120)], "ill": ["x", "y", SECRET] * 40}
    )
    policy = shoal.Policy.from_columns(frame, quasi="age", sensitive="ill", k=3, method="mondrian")
    policy.save(folder / "p.yaml")
    frame.to_csv(folder / "o.csv", index=False)
    shoal.publish_file(folder / "o.csv", policy, folder / "r.csv", trace=folder / "t.jsonl")
    return folder, frame, policy, pd.read_csv(folder / "r.csv", dtype=str)


def attacked(certificate):
    return {**certificate["attacks"], "seconds": None}


def test_attacks_and_audits_take_frames_and_paths_in_any_mix(case):
    folder, frame, policy, released = case
    with chdir(folder):
        one = shoal.attack(released, policy, frame, control=frame, trace="t.jsonl")
        assert one["attacks"]["control"]["kind"] == "given"
        given = (("r.csv", frame, "o.csv"), (released, "o.csv", frame), ("r.csv", "o.csv", "o.csv"))
        for shown, original, control in given:
            found = shoal.attack(shown, "p.yaml", original, control=control, trace="t.jsonl")
            assert attacked(found) == attacked(one)
            audited = shoal.audit(shown, policy, original, trace="t.jsonl")
            assert audited["faults"] == {"uncovered": 0, "changed": 0}
        alone = shoal.attack("r.csv", policy.with_method(None), frame, trace="t.jsonl")
        assert alone["attacks"]["control"]["kind"] == "republished"


CALLS = {
    "plan": lambda frame, policy: shoal.publish(frame, policy, plan=frame),
    "quasi": lambda frame, policy: shoal.publish(frame, quasi=frame.ill, other="drop", k=5),
    "sensitive": lambda frame, policy: shoal.publish(frame, quasi="age", sensitive=frame, k=5),
    "method": lambda frame, policy: shoal.publish(frame, quasi="age", k=5, method=object()),
    "ks": lambda frame, policy: shoal.compare(frame, policy, ks=frame.ill),
    "methods": lambda frame, policy: shoal.compare(frame, policy, methods=[frame]),
    "records": lambda frame, policy: shoal.estimate(frame, 3),
    "path": lambda frame, policy: shoal.publish(frame, policy).save(frame),
    "report": lambda frame, policy: shoal.publish(frame, policy).report(frame),
    "policy": lambda frame, policy: shoal.Policy.load(frame),
    "Policy.save": lambda frame, policy: policy.save(frame),
    "attack policy": lambda frame, policy: shoal.attack(frame, frame, frame),
    "control": lambda frame, policy: shoal.attack(frame, policy, frame, control="no.csv"),
    "control is nothing": lambda frame, policy: shoal.attack(frame, policy, frame, control=7),
    "trace": lambda frame, policy: shoal.attack(frame, policy, frame, trace=frame),
    "trace is a number": lambda frame, policy: shoal.audit(frame, policy, frame, trace=7),
    "trace of halves": lambda frame, policy: shoal.audit(frame, policy, frame, trace=[0.0, 0.5]),
    "hidden": lambda frame, policy: shoal.risk(frame, policy).hidden("a"),
    "below": lambda frame, policy: shoal.risk(frame, policy).below(None),
    "most classes": lambda frame, policy: shoal.risk(frame, policy).most_classes(2.5),
    "no classes": lambda frame, policy: shoal.risk(frame, policy).most_classes(0),
    "share": lambda frame, policy: shoal.risk(frame, policy).share([1]),
    "folder": lambda frame, policy: shoal.match_hierarchies(frame, frame),
    "no folder": lambda frame, policy: shoal.match_hierarchies(frame, None),
    "k of lists": lambda frame, policy: shoal.compare(frame, policy, ks=[[5]]),
    "a broken k": lambda frame, policy: shoal.compare(frame, policy, ks=2.5),
    "number of methods": lambda frame, policy: shoal.compare(frame, policy, methods=3),
    "methods in one": lambda frame, policy: policy.with_method(np.array(["mdav", "tds"])),
    "name of a sample": lambda frame, policy: shoal.sample(["patients"]),
    "flag of a sample": lambda frame, policy: shoal.sample("patients", True),
    "paths": lambda frame, policy: shoal.Hierarchy.from_paths(7),
    "others": lambda frame, policy: shoal.audit(frame, policy, others=frame),
    "others, release": lambda frame, policy: shoal.audit(
        frame, policy, frame, others=[{"release": 7, "original": frame}]
    ),
    "certificate": lambda frame, policy: shoal.Certificate.load(frame),
    "its certificate": lambda frame, policy: shoal.read_release("o.csv", frame),
    "verify, policy": lambda frame, policy: shoal.verify("r.csv", policy=frame),
    "verify, certificate": lambda frame, policy: shoal.verify("r.csv", frame),
    "dossier, context": lambda frame, policy: shoal.dossier("r.csv", context=frame),
    "verify_ledger": lambda frame, policy: shoal.verify_ledger(frame),
    "ledger_table": lambda frame, policy: shoal.ledger_table(frame),
    "republish": lambda frame, policy: shoal.republish(frame, policy, frame),
    "republish, output": lambda frame, policy: shoal.republish(frame, policy, "l", output=frame),
    "republish path": lambda frame, policy: shoal.republish("o.csv", policy, "l"),
    "what_if": lambda frame, policy: shoal.what_if(frame, policy, frame),
    "stream": lambda frame, policy: shoal.stream(frame),
    "fuse": lambda frame, policy: shoal.fuse(frame),
    "publish": lambda frame, policy: shoal.publish("o.csv", policy),
    "views": lambda frame, policy: shoal.attacker_view(7, policy, frame),
    "compare": lambda frame, policy: shoal.compare(7, policy),
}


@pytest.mark.parametrize("what", CALLS)
def test_what_is_no_table_or_no_path_is_refused_without_a_value(case, what):
    folder, frame, policy, _ = case
    with chdir(folder), pytest.raises(InputError) as refused:
        CALLS[what](frame, policy)
    assert SECRET not in str(refused.value)
    assert len(str(refused.value)) < 300
    if what == "control is nothing":
        assert str(refused.value).startswith("control")
