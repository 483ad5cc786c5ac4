"""Methods are warmed up in two processes where something has to be compiled."""

import io
import pickle
import subprocess
import sys
from types import SimpleNamespace

import pytest
from numba.core import event

from shoal.advise import compare
from shoal.advise.compare import Trial, warm_up
from shoal.advise.methods import label_of, with_methods
from shoal.data import cores
from shoal.policy.policy import Policy


@pytest.fixture
def trial(sample_table, sample_policy) -> Trial:
    policy = Policy.of(sample_policy)
    ground = compare._Ground.of(sample_table, policy)
    methods = with_methods(ground.bound.problem.policy, ["mondrian", "top-down-greedy", "mdav"])
    return Trial(*ground.first(40), tuple(map(ground.bound.asked.again, methods)))


@pytest.fixture
def ran(monkeypatch) -> list[str]:
    """The methods that were run, in their order; the second compiles something."""
    methods: list[str] = []

    def run(trial, problem):
        methods.append(label_of(problem.policy))
        if len(methods) == 2:
            with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
                pass

    monkeypatch.setattr(Trial, "run", run)
    return methods


@pytest.fixture
def helpers(monkeypatch) -> list[SimpleNamespace]:
    """The processes that were started, each with what became of it."""
    started: list[SimpleNamespace] = []

    def start(content):
        became: list[str] = []
        started.append(
            SimpleNamespace(
                trial=pickle.loads(content),
                became=became,
                kill=lambda: became.append("killed"),
                wait=lambda: became.append("waited for"),
            )
        )
        return started[-1]

    monkeypatch.setattr(compare, "_start", start)
    return started


def test_a_helper_is_started_once_and_ends_with_the_warming_up(trial, ran, helpers):
    with cores.using(2):
        warm_up(trial, lambda stage: None)
    assert ran == ["mondrian", "top-down-greedy", "mdav"]
    (helper,) = helpers
    assert helper.became == ["killed", "waited for"]
    assert [label_of(problem.policy) for problem in helper.trial.problems] == ran


def test_nobody_helps_on_one_core_or_with_the_last_method(trial, ran, helpers):
    with cores.using(1):
        warm_up(trial, lambda stage: None)
    ran.clear()
    with cores.using(2):
        warm_up(Trial(trial.matrix, trial.whole_table, trial.problems[:2]), lambda stage: None)
    assert helpers == []


def test_the_helper_begins_with_the_last_method(trial, ran, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pickle.dumps(trial))))
    compare.main()
    assert ran == ["mdav", "top-down-greedy", "mondrian"]


def test_a_helper_runs_the_methods_and_ends(trial):
    helper: subprocess.Popen[bytes] = compare._start(pickle.dumps(trial))
    assert helper.wait(60) == 0
