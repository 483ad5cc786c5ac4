"""A page of a project, and somebody who looks at it."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from shoal.samples import patients

if find_spec("starlette") and find_spec("uvicorn"):
    from web.visitor import Visitor, number_of, served
else:  # where the extra `web` is not installed
    collect_ignore_glob = ["test_*.py", "browser/*"]


def _opened(visitor: Visitor) -> Visitor:
    assert visitor.post("/table", path="patients.csv").status == 200
    visitor.edit("person", person=str(number_of(visitor.server, "patient")))
    visitor.give("charge", "sensitive")
    return visitor


@pytest.fixture(scope="session")
def template(tmp_path_factory) -> Path:
    """A start folder with a table of invented patients, and a project in which it is open."""
    tables = tmp_path_factory.mktemp("template")
    patients.generate(300, seed=3).write_csv(tables / "patients.csv")
    with served(tables / "project", tables) as found:
        _opened(Visitor(found))
    return tables


@pytest.fixture
def tables(template, tmp_path) -> Path:
    """A start folder with the table."""
    shutil.copy2(template / "patients.csv", tmp_path)
    return tmp_path


@pytest.fixture
def server(tables):
    """The page of an empty project."""
    with served(tables / "project", tables) as found:
        yield found


@pytest.fixture
def visitor(server) -> Visitor:
    return Visitor(server)


@pytest.fixture
def opened(template, tables) -> Iterator[Visitor]:
    """Somebody who has opened the table and said who is one person."""
    shutil.copytree(template / "project", tables / "project")
    with served(tables / "project", tables) as found:
        yield Visitor(found)


@pytest.fixture(scope="module")
def shared_server(template, tmp_path_factory):
    """One project for tests that leave it as it is: its table is open, its questions answered."""
    tables = tmp_path_factory.mktemp("web")
    shutil.copytree(template, tables, dirs_exist_ok=True)
    with served(tables / "project", tables) as found:
        yield found


@pytest.fixture
def guest(shared_server) -> Visitor:
    """Somebody new at the shared project."""
    return Visitor(shared_server)
