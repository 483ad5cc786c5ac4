"""A page of a project, and somebody who looks at it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from shoal.samples import patients

if find_spec("starlette") and find_spec("uvicorn"):
    from web.visitor import Visitor, served
else:  # where the extra `web` is not installed
    collect_ignore_glob = ["test_*.py"]


def _tables(folder: Path) -> Path:
    patients.generate(300, seed=3).write_csv(folder / "patients.csv")
    return folder


def _opened(visitor: Visitor) -> Visitor:
    assert visitor.post("/table", path="patients.csv").status == 200
    columns = visitor.server.project.about["columns"]
    visitor.edit("person", person=str(columns.index("patient") + 1))
    visitor.edit("role", column=str(columns.index("charge") + 1), role="sensitive")
    return visitor


@pytest.fixture
def tables(tmp_path) -> Path:
    """A start folder with a table of invented patients."""
    return _tables(tmp_path)


@pytest.fixture
def server(tables):
    """The page of an empty project."""
    with served(tables / "project", tables) as found:
        yield found


@pytest.fixture
def visitor(server) -> Visitor:
    return Visitor(server)


@pytest.fixture
def opened(visitor) -> Visitor:
    """Somebody who has opened the table and said who is one person."""
    return _opened(visitor)


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    """One project for tests that leave it as it is: its table is open, its questions answered."""
    tables = _tables(tmp_path_factory.mktemp("web"))
    with served(tables / "project", tables) as found:
        _opened(Visitor(found))
        yield found


@pytest.fixture
def guest(shared_server) -> Visitor:
    """Somebody new at the shared project."""
    return Visitor(shared_server)
