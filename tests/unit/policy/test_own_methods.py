"""A method that a program has made itself is given as an object, without a package."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.extend import Partition, Partitioner
from shoal.policy import registry

EXAMPLES = Path(__file__).parents[3] / "docs/shoal-examples/src"
WORDS = {"quasi": ["age", "sex"], "subject": "patient", "other": "drop", "k": 5}


@dataclass(frozen=True)
class Runs(Partitioner):
    """Classes of `times` k records in the order of the first quasi-identifier."""

    name: ClassVar[str] = "runs"
    paper: ClassVar[str] = "none"
    times: int = field(default=1, metadata={"low": 1})

    def partition(self, matrix, promises, rng):
        size = promises.k * self.times
        labels = np.empty(matrix.records, dtype=np.int32)
        order = np.argsort(matrix.codes[:, 0], kind="stable")
        labels[order] = np.minimum(np.arange(matrix.records) // size, matrix.records // size - 1)
        return Partition.of(labels)


def forget() -> None:
    registry.methods.cache_clear()
    registry._made_here.clear()


@pytest.fixture(autouse=True)
def forgotten():
    yield
    forget()


@pytest.fixture
def people() -> pl.DataFrame:
    return shoal.sample("patients", n=200, seed=7)


def test_it_publishes_with_its_own_parameters_beside_words_and_beside_a_policy(people):
    release = shoal.publish(people, **WORDS, method=Runs(times=4))
    assert release.certificate.holds
    assert release.certificate["method"] == {"name": "runs", "parameters": {"times": 4}}
    again = shoal.publish(people, release.policy, method=Runs())
    assert again.certificate["method"]["parameters"] == {"times": 1}
    assert release.certificate["classes"]["min"] > again.certificate["classes"]["min"] >= 5
    changed = shoal.publish(people, **WORDS, method=Changed())  # as of a cell that runs again
    assert changed.certificate["classes"]["count"] == 1


def test_it_is_compared_with_others_and_its_release_attacked(people):
    compared = shoal.compare(people, **WORDS, ks=[5], methods=["mondrian", Runs(), Runs(times=2)])
    assert compared.to_frame()["method"].to_list() == ["mondrian", "runs", "runs"]
    release = shoal.publish(people, **WORDS, method=Runs())
    control = shoal.sample("patients", n=100, seed=8).with_columns(
        pl.col("patient").str.replace("P", "C")
    )
    shoal.attack(release, original=people, control=control, attacks=["linkability"])


@dataclass(frozen=True)
class Changed(Runs):
    def partition(self, matrix, promises, rng):
        return Partition.of(np.zeros(matrix.records, dtype=np.int32))


def test_the_examples_of_the_documentation_need_no_package(people, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    from shoal_examples.in_a_row import InARow
    from shoal_examples.one_group import OneGroup

    assert shoal.publish(people, **WORDS, method=InARow()).certificate.holds
    policy = shoal.Policy.from_columns(people, **WORDS)
    stream = shoal.stream(policy, method=OneGroup(delta=50), reference=people)
    assert len(pl.concat([stream.push(people), stream.flush()])) == 200


class Plain:
    name, paper, verb = "plain", "none", "publish"


@dataclass(frozen=True)
class Lacking(Partitioner):
    name: ClassVar[str] = "lacking"


@dataclass(frozen=True)
class Taken(Runs):
    name: ClassVar[str] = "mondrian"


@pytest.mark.parametrize(
    ("method", "shown"),
    [
        (Runs, "such as MyMethod(); this is a class"),
        (7, "such as MyMethod(); this is of type int"),
        (Plain(), "method of class 'Plain': is not a dataclass; see 'Extending'"),
        (Lacking(), "class 'Lacking': lacks paper, partition of Partitioner; see 'Extending'"),
        (Taken(), "takes the name 'mondrian', which belongs to Shoal itself"),
        (Runs(times=0), "method 'runs': parameter 'times' must be at least 1"),
        ("mondrian:cut", "method 'mondrian:cut': 'cut' is not PARAM=VALUE"),
        ({"name": "mondrian:cut=nearest", "cut": "median"}, "sets a parameter twice"),
        ("mondrain:cut=nearest", "method 'mondrain': is unknown; did you mean 'mondrian'"),
    ],
)
def test_what_is_no_method_is_refused_and_says_what_is_missing(people, method, shown):
    with pytest.raises(shoal.InputError) as refused:
        shoal.publish(people, **WORDS, method=method)
    assert shown in str(refused.value)


ANSWERS = {
    "text": lambda labels: "no partition",
    "short": lambda labels: Partition.of(labels[1:]),
    "fractions": lambda labels: Partition(labels + 0.5, 1),
    "beyond": lambda labels: Partition(labels, 0),
    "nobody": lambda labels: Partition.of(labels - 1),
}


@dataclass(frozen=True)
class Answers(Runs):
    """Answers with whatever it is asked to."""

    answer: str = ""

    def partition(self, matrix, promises, rng):
        return ANSWERS[self.answer](np.zeros(matrix.records, dtype=np.int32))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("text", "method 'runs': gave str, not a Partition; correct its class"),
        ("short", "gave labels of type int32 and shape (199,), not a whole number for each of 200"),
        ("fractions", "gave labels of type float64"),
        ("beyond", "gave labels beyond -1 to -1; make its Partition by Partition.of"),
        ("error", "method 'runs': failed (KeyError) in line LINE of test_own_methods.py; correct"),
    ],
)
def test_its_error_names_its_kind_and_line_in_publish_and_compare(people, answer, said):
    line = Answers.partition.__code__.co_firstlineno + 1
    said = said.replace("LINE", str(line))
    with pytest.raises(shoal.InputError) as failed:
        shoal.publish(people, **WORDS, method=Answers(answer=answer))
    assert said in str(failed.value)
    assert failed.value.__cause__ is not None
    compared = shoal.compare(people, **WORDS, ks=[5], methods=[Answers(answer=answer)])
    assert said in compared.rows[0].reason


@pytest.mark.parametrize("words", [{}, {"sensitive": "disease", "l": 2}])
def test_to_withhold_everybody_is_a_grave_finding(people, words):
    release = shoal.publish(people, **WORDS, **words, method=Answers(answer="nobody"))
    assert release.certificate["records"]["suppressed"] == 200
    assert "all-suppressed" in [one.code for one in release.certificate.grave]


def test_elsewhere_its_policy_says_how_it_is_found_and_its_release_is_verified(people, tmp_path):
    release = shoal.publish(people, **WORDS, method=Runs())
    release.save(tmp_path / "out.csv")
    release.policy.save(tmp_path / "policy.yaml")
    forget()
    checks = shoal.verify(tmp_path / "out.csv", policy=tmp_path / "policy.yaml")
    assert all(check.ok is not False for check in checks)
    assert shoal.audit(release.data, shoal.Policy.load(tmp_path / "policy.yaml"), original=people)
    with pytest.raises(shoal.InputError, match="if it is your own, install its package, or give"):
        shoal.publish(people, tmp_path / "policy.yaml")


@pytest.mark.parametrize("written", ["mondrian:cut=nearest", {"name": "mondrian:cut=nearest"}])
def test_a_method_is_written_as_compare_recommends_it(people, written):
    words = WORDS | {"method": written}
    release = shoal.publish(people, **words)
    compared = shoal.compare(people, **words, ks=[5], methods=["mondrian:cut=nearest"])
    assert release.certificate["method"]["parameters"]["cut"] == "nearest"
    assert compared.recommendation.method == compared.own == "mondrian:cut=nearest"
    again = shoal.publish(people, release.policy, method=compared.recommendation.method)
    assert again.data.equals(release.data)


def test_a_name_with_parameters_in_a_policy_is_refused_by_its_own_name(people):
    content = shoal.Policy.from_columns(people, **WORDS).model.model_dump(exclude_unset=True)
    content["method"] = {"name": "mondrian:cut=nearest"}
    with pytest.raises(shoal.InputError, match="did you mean 'mondrian'"):
        shoal.publish(people, content)
