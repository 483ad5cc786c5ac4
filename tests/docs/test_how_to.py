"""The files of the how-tos do what their pages say, with small stand-ins for what runs them."""

import importlib.util
import re
import runpy
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from pages import blocks, stand_in

from shoal.cli.main import status_of

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"


@pytest.fixture
def folder(tmp_path, monkeypatch, capfd) -> Path:
    """An empty folder to stand in; `shoal` runs in this process, which saves its start."""
    monkeypatch.chdir(tmp_path)

    def run(command, cwd, capture_output, text):
        assert (command[0], cwd) == ("shoal", ".")
        capfd.readouterr()
        status = status_of(command[1:])
        said = capfd.readouterr()
        return subprocess.CompletedProcess(command, status, said.out, said.err)

    monkeypatch.setattr(subprocess, "run", run)
    return tmp_path


class Failed(Exception):
    def __init__(self, description: str, allow_retries: bool = False) -> None:
        super().__init__(description)
        self.allow_retries = allow_retries


# Airflow


@pytest.fixture
def day(monkeypatch):
    """Runs the DAG as Airflow would for a day: every task in its order."""

    def of(ds: str) -> None:
        def task(body=None, retries=0):
            if body is None:
                return task
            return lambda given: body(given.replace("{{ ds }}", ds))

        def dag(schedule, start_date, catchup, max_active_runs):
            assert (catchup, max_active_runs) == (False, 1)
            return lambda body: body

        stand_in(monkeypatch, "airflow")
        stand_in(monkeypatch, "airflow.decorators", dag=dag, task=task)
        stand_in(monkeypatch, "airflow.exceptions", AirflowFailException=Failed)
        runpy.run_path(str(HOW_TO / "airflow_dag.py"))

    return of


@pytest.mark.skipif(importlib.util.find_spec("airflow") is not None, reason="stand-in")
def test_each_day_is_one_release_and_a_retry_none(folder, day):
    (folder / "increments").mkdir()
    for number in (1, 2):
        increment = f"increments/2026-01-0{number}.csv"
        asked = f"sample wearables -n 300 --seed {number} -o {increment} -q"
        assert status_of(shlex.split(asked)) == 0
    policies = sorted((folder / "increments").glob("*.policy.yaml"))
    policies[0].rename(folder / "policy.yaml")
    day("2026-01-01")
    first = (folder / "published.csv").read_bytes()
    day("2026-01-02")
    both = (folder / "published.csv").read_bytes()
    assert len(both) > len(first)
    day("2026-01-02")
    assert (folder / "published.csv").read_bytes() == both
    assert len([path for path in (folder / "ledger").iterdir() if path.is_dir()]) == 2


@pytest.mark.skipif(importlib.util.find_spec("airflow") is not None, reason="stand-in")
def test_a_day_without_a_file_fails_without_a_retry(folder, day):
    with pytest.raises(Failed, match="policy"):
        day("2026-01-01")


# Dagster


@pytest.fixture
def assets(folder, monkeypatch) -> dict:
    assert status_of(shlex.split("sample patients -n 300 --seed 7 -o patients.csv -q")) == 0
    stand_in(
        monkeypatch,
        "dagster",
        asset=lambda body: body,
        asset_check=lambda asset, blocking: lambda body: body,
        AssetCheckResult=SimpleNamespace,
        MaterializeResult=SimpleNamespace,
        Definitions=SimpleNamespace,
        Failure=Failed,
    )
    return runpy.run_path(str(HOW_TO / "dagster_assets.py"))


@pytest.mark.skipif(importlib.util.find_spec("dagster") is not None, reason="stand-in")
def test_the_asset_is_the_certified_file_and_no_other(assets, folder):
    made = assets["released_patients"]().metadata
    assert (made["records"], made["k-anonymity"] >= 10) == (300, True)
    check = assets["is_what_was_certified"]
    assert check().passed is True
    released = folder / "released.csv"
    released.write_text("".join(released.read_text().splitlines(keepends=True)[:-1]))
    assert check().passed is False


@pytest.mark.skipif(importlib.util.find_spec("dagster") is not None, reason="stand-in")
def test_an_asset_that_can_t_be_made_fails_without_a_retry_and_leaves_none(assets, folder):
    policy = folder / "patients.policy.yaml"
    policy.write_text(policy.read_text().replace("k: 10", "k: 1000"))
    with pytest.raises(Failed) as failed:
        assets["released_patients"]()
    assert failed.value.allow_retries is False
    assert not (folder / "released.csv").exists()


# Container


def test_what_the_container_is_asked_for_runs_in_order(folder):
    text = "\n".join(block.text for block in blocks(HOW_TO / "container.md"))
    asked = re.findall(r"^(?:docker run .*?|   ) shoal (.+)$", text, re.MULTILINE)
    verbs = ["sample", "publish", "verify", "sample", "stream"]
    assert [command.split()[0] for command in asked] == verbs
    for command in asked:
        assert status_of(shlex.split(command.replace(" --follow", ""))) == 0


def test_every_file_of_a_how_to_is_shown_on_its_page():
    shown = set()
    for page in HOW_TO.glob("*.md"):
        shown |= set(re.findall(r"```\{literalinclude\} (\S+)", page.read_text()))
    assert shown == {path.name for path in HOW_TO.iterdir() if path.suffix != ".md"}
