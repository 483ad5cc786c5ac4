"""Apache Spark as the scheduler of tasks: it starts them, and starts lost ones again.

No row passes through the JVM. A job is `spark.range(tasks).mapInArrow(...)`; what Spark sees of it
is the name of a file and a number for each task, and the name of another file as its result.
"""

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from shoal.errors import InputError

UNKNOWN_CORES = 16
"""Taken where a session does not say how many tasks run at once."""

SILENT = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
"""What a session of our own is given unless Spark's settings say otherwise."""


@dataclass(frozen=True)
class SparkWorkers:
    """The executors of a session. is_ours: whether it was started here, and is stopped here."""

    session: SparkSession
    is_ours: bool = False

    @classmethod
    def started(cls) -> "SparkWorkers":
        """Those of the session that is there, or a new one; raises InputError where none starts."""
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        try:
            active = SparkSession.getActiveSession()
            if active is not None:
                return cls(active)
            is_ours = SparkContext._active_spark_context is None  # else another thread's
            builder = SparkSession.builder.appName("shoal")
            for key, value in SILENT.items():
                builder = builder.config(key, value)
            with _without_advice():
                return cls(builder.getOrCreate(), is_ours)
        except (PySparkException, OSError) as failed:
            raise InputError(
                "engine 'spark': no session could be started"
                f" ({type(failed).__name__}); it needs Java 17, and Spark's settings"
            ) from None

    def close(self) -> None:
        """Stops what was started."""
        if self.is_ours:
            self.session.stop()

    @property
    def cores(self) -> int:
        """Tasks that may run at once."""
        try:
            return int(self.session.sparkContext.defaultParallelism)
        except PySparkException:  # Spark Connect does not report it
            return UNKNOWN_CORES

    def run(self, job: str, count: int) -> Sequence[str]:
        """As in `room.Workers`."""
        tasks = self.session.range(0, count, 1, numPartitions=count)
        try:
            with _without_advice():
                rows = tasks.mapInArrow(_running(job), "number long, name string").collect()
        except Exception as failed:
            raise InputError(
                "engine 'spark': a task failed as often as Spark's settings allow"
                f" ({type(failed).__name__}); nothing of it was published. Spark's log says where"
            ) from None
        return [row.name for row in sorted(rows, key=lambda row: row.number)]


@contextmanager
def _without_advice() -> Iterator[None]:
    """Keeps back what PySpark says of versions of pandas, of which nothing is used here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _running(job: str) -> Any:
    """What an executor does with the numbers of its tasks."""

    def run(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        from shoal.data.room import run_task

        for batch in batches:
            numbers = batch.column(0).to_pylist()
            names = [run_task(job, number) for number in numbers]
            columns = [pyarrow.array(numbers, pyarrow.int64()), pyarrow.array(names)]
            yield pyarrow.RecordBatch.from_arrays(columns, names=["number", "name"])

    return run
