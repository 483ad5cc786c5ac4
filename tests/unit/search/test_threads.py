"""Any number of threads gives the same classes, release and certificate."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.cli.main import status_of
from shoal.data import cores
from shoal.data.certificate_shape import shape_findings
from shoal.data.partition import Matrix
from shoal.errors import InputError
from shoal.search import large_tables
from shoal.search.kernels import rounded_cut
from shoal.search.segments import costs_of
from shoal.tables.methods import rounded_partition
from shoal.tables.methods.rounded_partition import EXACT_ROWS, RoundedPartition

RECORDS = 2_999
ROLES = {
    "age": {"role": "quasi", "type": "number"},
    "zip": {"role": "quasi", "hierarchy": {"prefix": 3}},
    "job": {"role": "quasi", "order": "frequency"},
    "disease": "sensitive",
}
METHOD = {"name": "rounded-partition", "refine": "none"}
POLICY = content_of(ROLES, 7, missing="suppress", method=METHOD)
OWN = ("seconds", "scale", "date")


@pytest.fixture
def always_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are cut like large ones."""
    monkeypatch.setattr(rounded_cut, "LISTED", 0)


@pytest.fixture
def small_tables_are_large(always_in_place: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "LARGE", 1)
    monkeypatch.setattr(large_tables, "GRAIN", 100)
    monkeypatch.setattr(rounded_partition, "SORTED_RECORDS", 0)


@pytest.fixture
def people(small_tables_are_large: None) -> pl.DataFrame:
    """Ties everywhere, two texts of one number, and some ages that are missing."""
    rng = np.random.default_rng(8)
    ages = np.where(rng.random(RECORDS) < 0.02, "", rng.integers(5, 40, RECORDS).astype(str))
    ages = np.where((ages == "7") & (rng.random(RECORDS) < 0.5), "07", ages)
    return pl.DataFrame(
        {
            "age": ages,
            "zip": rng.choice(["101", "102", "110", "200", "201"], RECORDS),
            "job": rng.choice(["clerk", "nurse", "smith"], RECORDS, p=[0.7, 0.2, 0.1]),
            "disease": rng.choice(["flu", "none", "gout"], RECORDS),
        }
    )


def _but_for_its_own(certificate: Any) -> dict[str, Any]:
    return {key: value for key, value in dict(certificate).items() if key not in OWN}


def test_the_command_writes_the_same_bytes_and_certificate(
    people: pl.DataFrame, folder: Path
) -> None:
    people.write_csv("people.csv")
    Path("policy.json").write_text(json.dumps(POLICY))
    with_policy, found = ["-p", "policy.json", "-q"], []
    for threads in (1, 2, 3, 8):
        out, audited = f"out{threads}.csv", f"audit{threads}.json"
        publish = ["publish", "people.csv", "-o", out, "--replace", "--threads", str(threads)]
        assert status_of([*publish, *with_policy]) == 0
        audit = ["audit", out, "--original", "people.csv", "-o", audited]
        with cores.using(threads):
            assert status_of([*audit, *with_policy]) == 0
        stated = json.loads(Path(f"{out}.certificate.json").read_text())
        assert stated["scale"] == {"threads": threads}
        assert shape_findings(stated, False) == []
        measured = json.loads(Path(audited).read_text())
        found.append((Path(out).read_bytes(), *map(_but_for_its_own, (stated, measured))))
    assert all(one == found[0] for one in found)


def test_python_gives_the_same_frame_and_certificate(people: pl.DataFrame) -> None:
    one, three, untold = (shoal.publish(people, POLICY, threads=n) for n in (1, 3, None))
    assert one.data.equals(three.data)
    assert _but_for_its_own(one.certificate) == _but_for_its_own(three.certificate)
    assert three.certificate["scale"] == {"threads": 3}
    assert untold.certificate["scale"] == {"threads": cores.available()}  # the process's


@pytest.mark.usefixtures("small_tables_are_large")
def test_a_fault_in_a_thread_is_the_caller_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong in one of many tasks ends the run, and is not lost with its thread."""

    def broken(*given: Any) -> int:
        raise MemoryError

    monkeypatch.setattr(rounded_cut, "halve", broken)
    columns = np.zeros((2, 1_000), dtype=np.int32)
    rules = RoundedPartition()._rules()
    with cores.using(2), pytest.raises(MemoryError):
        large_tables.cut_by_threads(columns, 10, rules, 512, np.zeros((1, 3)))


PRICED = (int(rounded_cut.SAME), True, True, rounded_cut.TIES_LEXICOGRAPHIC)
BY_RULE = (int(rounded_cut.SAME), False, False, rounded_cut.TIES_BY_ROW)


def _columns(records: int, values: list[int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns with the record's number last, and what their spans cost."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, v, records) for v in values]).astype(np.int32)
    costs = costs_of(Matrix.from_columns(codes, [float(v) for v in values]))
    numbers = np.arange(records, dtype=np.int32)
    return np.vstack([codes.T, numbers]), costs


@pytest.mark.usefixtures("always_in_place")
@given(
    records=st.integers(60, 6_000),
    values=st.lists(st.sampled_from([1, 2, 7, 74, 5_000]), min_size=1, max_size=4),
    k=st.sampled_from([1, 2, 10, 29, 700]),
    priced=st.booleans(),
    threads=st.sampled_from([2, 3, 8]),
    grain=st.sampled_from([20, 511, 1_500]),
)
def test_any_number_of_threads_gives_the_same_classes(
    records: int, values: list[int], k: int, priced: bool, threads: int, grain: int
) -> None:
    rules, sample = (PRICED, EXACT_ROWS) if priced else (BY_RULE, 0)
    alone, costs = _columns(records, values, seed=records)
    together = alone.copy()
    expected = rounded_cut.cut(alone, np.array([0, records]), k, rules, sample, costs)
    with cores.using(threads), patch.object(large_tables, "GRAIN", grain):
        starts = large_tables.cut_by_threads(together, k, rules, sample, costs)
    assert np.array_equal(starts, expected)
    assert np.array_equal(together, alone)
    assert len(starts) - 1 == max(records // k, 1)  # theorem 1


@pytest.mark.parametrize("size", [512, 513, 3_000, 50_000, 50_001])
def test_a_part_cut_alone_is_the_same_part_of_the_whole(size: int) -> None:
    """A cut depends on the records of its node, in the order of their numbers, and on no others."""
    records, k = 60_000, 10
    whole, costs = _columns(records, [74, 9, 300], seed=1)
    low = rounded_cut.halve(whole, 0, records, k, PRICED, EXACT_ROWS, costs)
    begin, end = low, min(low + size, records)  # any run of records may be a node
    alone, how = np.ascontiguousarray(whole[:, begin:end]), (k, PRICED, EXACT_ROWS, costs, False)
    alone_starts = rounded_cut.cut(alone, np.array([0, end - begin]), *how)
    starts = rounded_cut.cut(whole, np.array([begin, end]), *how)
    assert np.array_equal(starts, alone_starts + begin)
    assert np.array_equal(whole[:, begin:end], alone)


def test_a_node_is_not_cut_by_lists_because_it_is_small_but_because_the_table_is() -> None:
    records, k = 20_000, 10
    by_lists, costs = _columns(records, [74, 9, 300], seed=2)
    in_place = by_lists.copy()
    node = np.array([0, records])
    rounded_cut.cut(by_lists, node, k, PRICED, EXACT_ROWS, costs)
    rounded_cut.cut(in_place, node, k, PRICED, EXACT_ROWS, costs, False)
    assert not np.array_equal(by_lists, in_place)  # or nobody would have to be told


@pytest.mark.parametrize("asked", [0, 100_000, "2", True, 1.5])
def test_what_is_no_number_of_threads_is_refused(asked) -> None:
    with pytest.raises(InputError, match="threads: "), cores.using(asked):
        pass


def test_threads_are_those_asked_for_and_else_the_cores() -> None:
    assert cores.threads() == cores.available() >= 1
    with cores.using(3):
        assert cores.threads() == 3
        assert cores.side_by_side(lambda n: n * n, range(5), cores.LARGE) == [0, 1, 4, 9, 16]
    assert cores.threads() == cores.available()
    for threads in (1, 2):  # one hashes before it parses, and two beside
        with cores.using(threads), cores.beside(sum, [1, 2]) as total:
            assert total() == 3
