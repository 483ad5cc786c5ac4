"""The recipes for pipelines do what they say, with small stand-ins for the orchestrators."""

import importlib.util
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import polars as pl
import pytest
import yaml
from pages import blocks, stand_in

from shoal.cli.main import status_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipelines.md"
FILES = {block.argument: block.text for block in blocks(PAGE) if block.mark == "file"}


@pytest.fixture
def released(folder, monkeypatch) -> Path:
    """A 10-anonymous table, and the shell standing beside it."""
    path = f"{Path(sys.executable).parent}"
    monkeypatch.setenv("PATH", path, prepend=":")
    sample = "sample patients -n 300 --seed 7 -o patients.csv -q"
    publish = "publish patients.csv -p patients.policy.yaml -o released.csv --method mondrian -q"
    for command in (sample, publish):
        assert status_of(shlex.split(command)) == 0
    return folder / "released.csv"


def without_one_record(released: Path) -> None:
    """One person of the first class less: its class has 9 if it had 10."""
    frame = pl.read_csv(released, infer_schema=False)
    keys = ["age", "sex", "zip", "education"]
    smallest = frame.group_by(keys, maintain_order=True).len().sort("len", maintain_order=True)
    members = frame.join(smallest.head(1).select(keys), on=keys, how="semi", maintain_order="left")
    rest = frame.join(smallest.head(1).select(keys), on=keys, how="anti", maintain_order="left")
    pl.concat([rest, members.head(5)]).write_csv(released)


def run(command: str) -> int:
    return subprocess.run(["bash", "-c", command], capture_output=True).returncode


@pytest.mark.long
def test_the_step_of_continuous_integration_fails_where_the_audit_does(released):
    steps = yaml.safe_load(FILES[".github/workflows/release.yml"])["jobs"]["release"]["steps"]
    (command,) = [step["run"] for step in steps if "audit" in step.get("run", "")]
    assert run(command) == 0
    assert Path("audit.json").stat().st_size > 0
    without_one_record(released)
    assert run(command) == 1


@pytest.mark.long
def test_the_hook_takes_several_files_and_stops_at_a_bad_one(released):
    (hook,) = yaml.safe_load(FILES[".pre-commit-config.yaml"])["repos"][0]["hooks"]
    good = released.parent / "released 2.csv"
    good.write_bytes(released.read_bytes())
    command, files = shlex.split(hook["entry"]), [str(good), str(released)]
    assert subprocess.run([*command, *files], capture_output=True).returncode == 0
    without_one_record(released)
    assert subprocess.run([*command, *reversed(files)], capture_output=True).returncode == 1


def executed(name: str) -> dict:
    names: dict = {"__name__": "recipe"}
    exec(compile(FILES[name], name, "exec"), names)
    return names


@pytest.mark.skipif(importlib.util.find_spec("dagster") is not None, reason="stand-in")
def test_the_asset_check_passes_and_fails(released, monkeypatch):
    stand_in(
        monkeypatch,
        "dagster",
        asset_check=lambda **given: lambda check: check,
        AssetCheckResult=SimpleNamespace,
    )
    check = executed("checks.py")["is_10_anonymous"]
    assert check().passed is True
    assert check().metadata["smallest group"] >= 10
    without_one_record(released)
    assert check().passed is False


@pytest.mark.skipif(importlib.util.find_spec("airflow") is not None, reason="stand-in")
def test_the_task_raises_where_a_promise_is_broken(released, monkeypatch):
    class Failed(Exception):
        pass

    stand_in(monkeypatch, "airflow")
    stand_in(
        monkeypatch,
        "airflow.decorators",
        dag=lambda **given: lambda body: body,
        task=lambda body: body,
    )
    stand_in(monkeypatch, "airflow.exceptions", AirflowFailException=Failed)
    executed("dags/release.py")
    without_one_record(released)
    with pytest.raises(Failed, match=r"released.csv: the smallest group is \d, 10 asked"):
        executed("dags/release.py")


def test_the_generic_test_selects_what_does_not_hold(released):
    query = FILES["tests/generic/every_promise_holds.sql"].splitlines()[1]
    audited = executed("models/patients_audit.py")["model"]

    class Project:
        def config(self, **given: object) -> None:
            assert given == {"materialized": "table"}  # an index's package may be another's

        def ref(self, name: str) -> SimpleNamespace:
            frame = pd.read_csv(released, dtype=str)
            return SimpleNamespace(df=lambda: frame)

    def failing() -> int:
        table = pl.from_pandas(audited(Project(), None))
        context = pl.SQLContext(audit=table)
        return context.execute(query.replace("{{ model }}", "audit"), eager=True).height

    assert failing() == 0
    without_one_record(released)
    assert failing() == 1
