"""Fixtures for every test: the invented sample, and the real data sets where they are at hand."""

import functools
import os
from pathlib import Path

# before Polars is imported: threads would cost small tables far more time than they save
os.environ.setdefault("POLARS_MAX_THREADS", "1")

import polars as pl
import pytest
import typer.main
import yaml
from hypothesis import HealthCheck, settings

import adult_cases
from sample_policies import PATIENTS
from shoal.cli.main import status_of
from shoal.samples import patients
from thorough import LONG
from warm_interpreters import WarmInterpreters

# How long an example takes says nothing: machines are shared, and kernels compile on their first
# call. Every run draws new examples, except the one that decides whether a change lands: that must
# not fail for what the change did not touch. `make mutants` runs the tests thousands of times: it
# asks for few examples, always the same.
SAME_EXAMPLES = os.environ.get("SHOAL_SAME_EXAMPLES") == "1"
EXAMPLES = int(os.environ.get("SHOAL_EXAMPLES", settings.default.max_examples))
settings.register_profile(
    "shoal",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=SAME_EXAMPLES,
    max_examples=EXAMPLES,
)
settings.load_profile("shoal")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A property that asks for a number of examples of its own asks for that percentage of them.

    Tests that wait for other processes come first in the shares of two workers, so that these wait
    while others calculate.
    """
    shares = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    services, web = ([item for item in items if room in item.path.parents] for room in WAITING)
    others = [item for item in items if not {*WAITING} & {*item.path.parents}]
    second = max(0, len(items) // shares - len(services))
    items[:] = [*services, *others[:second], *web, *others[second:]]
    asked = "_hypothesis_internal_use_settings"
    for test in {getattr(item, "obj", None) for item in items}:
        many = getattr(getattr(test, asked, None), "max_examples", 0)
        if many > EXAMPLES and not LONG:
            fewer = max(EXAMPLES, many * EXAMPLES // 100)
            setattr(test, asked, settings(getattr(test, asked), max_examples=fewer))


ROOT = Path(__file__).resolve().parent.parent
WAITING = ROOT / "tests" / "services", ROOT / "tests" / "web"
DATA = Path(os.environ.get("SHOAL_DATA") or ROOT.parent / "shared" / "data")


@pytest.fixture(autouse=True, scope="session")
def _our_own_bugs_show_their_trace():
    os.environ["SHOAL_DEBUG"] = "1"


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real data sets; the test is skipped where they are absent."""
    if not DATA.is_dir():
        pytest.skip(f"no real data sets: set SHOAL_DATA (looked in {DATA})")
    return DATA


@pytest.fixture(scope="session")
def adult(data_folder) -> pl.DataFrame:
    """Adult's 30,162 complete training records, as text."""
    lines = (data_folder / "adult" / "adult.data").read_text().splitlines()
    rows = [line.split(", ") for line in lines if line and "?" not in line]
    return pl.DataFrame(rows, schema=adult_cases.COLUMNS, orient="row")


@pytest.fixture
def sample_table() -> pl.DataFrame:
    return patients.generate(600, seed=3)


@pytest.fixture
def sample_policy() -> dict:
    return yaml.safe_load(PATIENTS)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder, the shell standing in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def workplace(tmp_path, sample_table, monkeypatch) -> Path:
    """A folder with patients.csv and policy.yaml, and the shell standing in it."""
    sample_table.write_csv(tmp_path / "patients.csv")
    (tmp_path / "policy.yaml").write_text(PATIENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def _party_interpreters():
    interpreters = WarmInterpreters("warm_parties")
    yield interpreters
    interpreters.close()


@pytest.fixture(scope="module")
def forked_parties(_party_interpreters):
    """The parties of this process's fusions are forked from an interpreter that has imported all
    that they need, where others would import it anew: a fourth of the CPU.
    """
    with pytest.MonkeyPatch.context() as patch:
        _party_interpreters.replace(patch)
        yield


@pytest.fixture(autouse=True, scope="session")
def _commands_are_built_once():
    """Typer builds all commands anew for every call, which takes longer than most of them run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True, scope="session")
def _commands_are_forked():
    """`python -m shoal` as a process of its own is forked from an interpreter that is warm."""
    interpreters = WarmInterpreters()
    with pytest.MonkeyPatch.context() as patch:
        interpreters.replace(patch)
        yield
    interpreters.close()


@pytest.fixture
def shoal(capfd):
    """Runs one command in this process: `shoal("publish", ...)` gives its exit status and what it
    printed; `status` is the one that it has to end with.
    """

    class Result:
        def __init__(self, status: int, out: str, err: str) -> None:
            self.status, self.out, self.err = status, out, err

    def run(*arguments: str, status: int | None = None) -> Result:
        found = status_of([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        assert status in (None, found), captured.err
        return Result(found, captured.out, captured.err)

    return run
