"""Work spread over many processes: the files and the certificate of one, whatever becomes of tasks.

Here tasks run in this process, in any order, and each attempt but the last is lost.
`tests/services/test_spark.py` has them run by Spark.
"""

import gc
import os
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.auditor import in_parts
from shoal.auditor.audit import audit_file
from shoal.connectors import engines, release_drafts
from shoal.connectors.engines import Engine
from shoal.connectors.location import MANIFEST
from shoal.data import room as arrays
from shoal.data.room import SharedRoom, run_task
from shoal.errors import InputError, MissingExtraError
from shoal.search.kernels import rounded_cut
from shoal.tables.publish import publish_file
from thorough import long_but
from unit.tables.test_past_memory import METHODS, REFUSED, audited_policy, certified, rows


@dataclass
class Careless:
    """Runs every task twice, in any order, and loses what was found first."""

    cores: int = 2
    runs: int = 0

    def run(self, job: str, count: int) -> Sequence[str]:
        order = np.random.default_rng(count).permutation(count).tolist()
        for number in order:
            run_task(job, number)
        self.runs += count
        found = {number: run_task(job, number) for number in reversed(order)}
        return [found[number] for number in range(count)]


def folder(path: Path, frame: pl.DataFrame, files: int = 5, seed: int = 3) -> Path:
    """The frame as Parquet files of random sizes, one of them empty."""
    path.mkdir()
    ends = np.sort(np.random.default_rng(seed).integers(0, frame.height, files - 2)).tolist()
    for number, (first, end) in enumerate(
        zip([0, *ends, ends[-1]], [*ends, ends[-1], frame.height], strict=True)
    ):
        frame[first:end].write_parquet(path / f"{number}.parquet")
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few records are a large table."""
    monkeypatch.setattr(rounded_cut, "LISTED", 0)
    monkeypatch.setattr(release_drafts, "RECORDS", 700)
    monkeypatch.setattr(arrays, "LARGE", 500)
    monkeypatch.setattr(in_parts, "RECORD_BYTES", 400_000)


def spread(most: int = 600) -> Engine:
    return Engine("spark", lambda ending: Careless(), most)


def table_for(name: str, path: Path) -> Path:
    searched = name in ("full-domain", "tds", "datafly")  # which wants records that agree
    frame = pl.concat([rows(600)] * 4) if searched else rows(2500)
    if searched:  # numbers of no more digits than they need: Parquet would keep no others
        frame = frame.with_columns(pl.col("age").str.strip_chars_start("0"))
    return folder(path, frame)


def contents(path: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in path.iterdir() if one.name != MANIFEST}


@pytest.mark.parametrize("name", long_but("rounded", METHODS))
@pytest.mark.usefixtures("small")
def test_a_folder_is_published_as_by_one_process(tmp_path: Path, name: str) -> None:
    table, asked = table_for(name, tmp_path / "in"), METHODS[name]
    one = publish_file(str(table), asked, f"{tmp_path}/one/").certificate
    with engines.using(spread()):
        many = publish_file(str(table), asked, f"{tmp_path}/many/").certificate
    assert certified(one) == certified(many)
    assert contents(tmp_path / "one") == contents(tmp_path / "many")
    assert {path.name for path in tmp_path.iterdir()} == {"in", "one", "many"}
    assert many["scale"]["tasks"] > 12
    assert many["scale"]["parts"] > 1


@pytest.mark.parametrize("person", long_but("subject", ["drop", "subject"]))
@pytest.mark.parametrize("faulty", [False, True], ids=["honest", "planted"])
@pytest.mark.usefixtures("small")
def test_an_audit_finds_what_one_process_finds(person: str, faulty: bool, tmp_path: Path) -> None:
    table = table_for("rounded", tmp_path / "in")
    publish_file(str(table), METHODS["mondrian"], f"{tmp_path}/out/")
    frame = pl.read_parquet(tmp_path / "out" / "*.parquet")
    if faulty:
        age, ill = frame["age"].to_list(), frame["ill"].to_list()
        age[17], ill[1203] = "99", "measles"
        frame = frame.with_columns(age=pl.Series(age), ill=pl.Series(ill))
    folder(tmp_path / "parts", frame, seed=9)  # audited as what it is: files without a manifest
    released, asked = f"{tmp_path}/parts/*.parquet", audited_policy(person)
    for original in (str(table), None):
        one = certified(audit_file(released, asked, original).certificate)
        if original is not None:  # tasks match no rows
            assert bool(one.pop("faults")["unmatched"]) == faulty
        with engines.using(spread()):
            many = audit_file(released, asked, original).certificate
        assert one == certified(many)
    assert many["scale"]["tasks"] > 5


REFUSED_ALSO = {
    "is one file, and tasks write one each": ("in", "out.parquet", METHODS["rounded"]),
    "is not made of Parquet files": ("in.csv", "out/", METHODS["rounded"]),
    "a table of a database is written": ("in", "sqlite:///x.db?table=t", METHODS["rounded"]),
} | {why: ("in", "out/", asked) for why, asked in REFUSED.items()}


@pytest.mark.parametrize("why", REFUSED_ALSO)
@pytest.mark.usefixtures("small")
def test_what_tasks_cannot_do_is_refused_by_name(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder(Path("in"), rows(400))
    rows(10).write_csv("in.csv")
    source, output, asked = REFUSED_ALSO[why]
    with pytest.raises(InputError, match=why) as refused, engines.using(spread()):
        publish_file(source, asked, output)
    assert "memory=" not in str(refused.value)
    assert {path.name for path in Path().iterdir()} == {"in", "in.csv"}


def test_files_that_differ_are_named_as_by_one_process(tmp_path: Path) -> None:
    table = folder(tmp_path / "in", rows())
    rows(5).drop("ill").write_parquet(table / "9.parquet")
    shown = []
    for engine in (None, spread()):
        with pytest.raises(InputError) as refused, engines.using(engine):
            publish_file(str(table), METHODS["rounded"], f"{tmp_path}/out/")
        shown.append(str(refused.value))
    assert shown[0] == shown[1]


def test_an_unknown_engine_and_one_that_is_not_installed_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="engine 'flink': is not known"), engines.using("flink"):
        pass
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "shoal.connectors.spark", None)
    table = folder(tmp_path / "in", rows())
    with (
        pytest.raises(MissingExtraError, match=r"pip install .\.\[spark\]"),
        engines.using("spark"),
    ):
        publish_file(str(table), METHODS["rounded"], f"{tmp_path}/out/")


def _failing(cell: str) -> None:
    raise ValueError(f"could not read {cell}")


def test_a_failed_task_says_its_kind_and_no_cell(tmp_path: Path) -> None:
    room = SharedRoom(10**9, tmp_path, Careless())
    cell = "mumps"
    with pytest.raises(RuntimeError) as failed:
        room.each(_failing, [cell])
    assert "ValueError" in str(failed.value)
    assert cell not in "".join(traceback.format_exception(failed.value))
    assert not list(tmp_path.iterdir())


def test_a_task_changes_nothing_that_others_see_and_no_file_outlives_its_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "LARGE", 100)
    room = SharedRoom(10**9, tmp_path, Careless())
    numbers = room.array((4, 50), np.int32)
    numbers[:] = np.arange(200).reshape(4, 50)
    assert len(list(tmp_path.iterdir())) == 1
    part = numbers[1:, ::3]
    twice, same = room.each(_seen, [part])[0]
    assert np.array_equal(twice, 2 * part)
    assert np.array_equal(same, part)
    assert np.array_equal(numbers.ravel(), np.arange(200))
    with pytest.raises(ValueError, match="read-only"):
        twice[0] = 1
    lost = 3  # two arrays of the attempt that was lost, and the file that names them
    assert len(list(tmp_path.iterdir())) == 1 + 2 + lost
    del numbers, part, twice, same
    gc.collect()
    assert len(list(tmp_path.iterdir())) == lost


def _seen(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    before = part.copy()
    part *= 2
    return part, before


@pytest.mark.parametrize(
    "stage", long_but("finding classes", ["finding classes", "reading the release back"])
)
def test_what_a_killed_driver_left_is_hidden_private_and_swept(stage: str, tmp_path: Path) -> None:
    folder(tmp_path / "in", rows())
    code = (
        "import os, signal, sys\n"
        "from unit.connectors.test_spread import METHODS, spread\n"
        "from shoal.tables.request import PublishRequest\n"
        "from unit.connectors.test_spread import engines, publish_file\n"
        "def stop(stage):\n"
        "    if sys.argv[1] in stage: os.kill(os.getpid(), signal.SIGKILL)\n"
        "with engines.using(spread()):\n"
        "    publish_file('in', METHODS['mondrian'], 'out/', PublishRequest(progress=stop))\n"
    )
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    killed = subprocess.run(
        [sys.executable, "-c", code, stage],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    left = {path for path in tmp_path.iterdir() if path.name != "in"}
    assert left
    for path in left:
        assert re.fullmatch(r"\.out\.[0-9a-f]{16}\.part", path.name)
        assert path.stat().st_mode & 0o777 == 0o700
    with engines.using(spread()):
        publish_file(f"{tmp_path}/in", METHODS["mondrian"], f"{tmp_path}/out/")
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}
