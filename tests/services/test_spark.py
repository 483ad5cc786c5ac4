"""Tables by real Spark workers: the bytes of one process, whatever becomes of tasks and drivers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from shoal.connectors import engines
from shoal.connectors.engines import Engine
from shoal.errors import InputError
from shoal.jobs.audit.audit import audit_file
from shoal.jobs.audit.verify import verify
from shoal.jobs.publish.publish import publish_file
from unit.test_past_memory import METHODS, certified, rows
from unit.test_spread import contents, folder

pytestmark = pytest.mark.services
pyspark = pytest.importorskip(
    "pyspark", reason="Spark is not installed: 'make spark' fetches it (needs Java 17)"
)
spark = pytest.importorskip("shoal.connectors.spark")
usual = spark._running
RECORDS, MOST = 200_000, 20_000


@pytest.fixture(scope="session")
def workers() -> Iterator[Any]:
    """Two executors' cores, which start a lost task again."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17, which is not installed")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]").appName("tests")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    for key, value in {**spark.SILENT, "spark.driver.bindAddress": "127.0.0.1"}.items():
        builder = builder.config(key, value)
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    yield spark.SparkWorkers(session)
    session.stop()


@pytest.fixture
def by_spark(workers: Any) -> Callable[[], Engine]:
    return lambda: Engine("spark", lambda ending: workers, MOST)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People in files of random sizes, one of them empty."""
    few = rows(RECORDS // 40).with_columns(pl.col("age").str.strip_chars_start("0"))
    return folder(tmp_path_factory.mktemp("spark") / "in", pl.concat([few] * 40), files=6)


@pytest.mark.parametrize("name", ["rounded", "full-domain"])
def test_spark_publishes_what_one_process_does_while_tasks_are_lost(
    name: str, table: Path, tmp_path: Path, by_spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = METHODS[name]
    one = publish_file(str(table), asked, f"{tmp_path}/one/").certificate
    if name == "rounded":
        jobs = count()
        monkeypatch.setattr(
            spark, "_running", lambda job: losing(job) if next(jobs) % 5 == 0 else usual(job)
        )
    with engines.using(by_spark()):
        many = publish_file(str(table), asked, f"{tmp_path}/many/").certificate
    assert certified(one) == certified(many)
    assert contents(tmp_path / "one") == contents(tmp_path / "many")
    assert {path.name for path in tmp_path.iterdir()} == {"one", "many"}
    if name == "rounded":
        with engines.using(by_spark()):
            audited = audit_file(f"{tmp_path}/many", asked, str(table)).certificate
        assert audited["promises"] == one["promises"]
        assert audited["utility"] == one["utility"]
        assert all(check.ok is not False for check in verify(f"{tmp_path}/many", policy=asked))


def losing(job: str) -> Any:
    """As in `connectors.spark`, but at first what the first task found is lost with its process."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow
        from pyspark import TaskContext

        from shoal.data.shared_room import run_task

        for batch in batches:
            numbers = batch.column(0).to_pylist()
            names = [run_task(job, number) for number in numbers]
            if 0 in numbers and TaskContext.get().attemptNumber() == 0:
                os._exit(9)
            found = [pyarrow.array(numbers, pyarrow.int64()), pyarrow.array(names)]
            yield pyarrow.RecordBatch.from_arrays(found, names=["number", "name"])

    return run


def test_a_task_that_always_fails_ends_the_run_in_one_line(
    table: Path, tmp_path: Path, by_spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(job: str) -> Any:
        def run(batches: Iterable[Any]) -> Iterator[Any]:
            raise ValueError("mumps")
            yield

        return run

    monkeypatch.setattr(spark, "_running", failing)
    told = pytest.raises(InputError, match="engine 'spark': a task failed")
    with told as refused, engines.using(by_spark()):
        publish_file(str(table), METHODS["rounded"], f"{tmp_path}/out/")
    assert "mumps" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_a_killed_command_leaves_nothing_that_is_listed_and_the_next_sweeps(
    table: Path, tmp_path: Path
) -> None:
    content = METHODS["rounded"].model.model_dump_json(exclude_unset=True)
    (tmp_path / "policy.json").write_text(content)
    command = ["publish", str(table), "-p", "policy.json", "-o", "out/", "--engine", "spark"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    running = subprocess.Popen(
        [sys.executable, "-m", "shoal", *command, "-q"],
        cwd=tmp_path,
        env=environment,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 240
        while not any(path.name.startswith(".out.") for path in tmp_path.iterdir()):
            assert running.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    left = {path.name for path in tmp_path.iterdir()} - {"policy.json"}
    assert left
    assert all(name.startswith(".out.") for name in left)
    done = subprocess.run(
        [sys.executable, "-m", "shoal", "sweep", "out"], cwd=tmp_path, check=True, env=environment
    )
    assert done.returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"policy.json"}


@pytest.mark.skipif(os.environ.get("SHOAL_LONG") != "1", reason="two more sessions: SHOAL_LONG=1")
def test_the_how_to_does_what_its_page_says(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "docs" / "how-to" / "spark.sh"
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, call in (("shoal", "-m shoal "), ("python3", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call}"$@"\n')
        (programs / name).chmod(0o755)
    paths = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": paths, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        ["sh", str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "asked 10, measured" in done.stderr
    assert (tmp_path / "published" / "_shoal.json").exists()
