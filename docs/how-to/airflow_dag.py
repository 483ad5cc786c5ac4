"""A DAG for Airflow: publishes each day's new records, and hands on what was verified."""

from __future__ import annotations

import os
import subprocess
from datetime import datetime

from airflow.decorators import dag, task
from airflow.exceptions import AirflowFailException

FOLDER = os.environ.get("RELEASES", ".")
REFUSED = (1, 2, 3)  # a broken promise, bad input, infeasible: another try would find the same


def shoal(*arguments: str) -> None:
    """Runs a command; messages name attributes and counts, never a value, so they may be logged."""
    done = subprocess.run(["shoal", *arguments], cwd=FOLDER, capture_output=True, text=True)
    print(done.stderr)
    if done.returncode in REFUSED:
        raise AirflowFailException(done.stderr)
    done.check_returncode()  # anything else may go away, so Airflow tries again


# one run at a time: a ledger has one writer
@dag(schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1)
def release_wearers():
    @task(retries=3)
    def republish(day: str) -> str:
        increment = f"increments/{day}.csv"
        shoal("republish", increment, "-p", "policy.yaml", "--ledger", "ledger", "--quiet")
        return "ledger"

    @task
    def verify(ledger: str) -> str:
        shoal("ledger", "verify", ledger)
        return ledger

    @task
    def export(ledger: str) -> None:
        shoal("ledger", "export", ledger, "-o", "published.csv", "--replace", "--quiet")

    export(verify(republish("{{ ds }}")))


release_wearers()
