"""Servers that several modules share, since they take seconds to start."""

import shutil
from pathlib import Path

import pytest

from kafka_broker import broker_in, why_not
from postgres_server import USER, Server, server


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test-services` runs what starts servers and processes, or kills them."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """The address of a Kafka broker."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with broker_in(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture(scope="module")
def running():
    """A PostgreSQL server."""
    with server() as started:
        yield started


@pytest.fixture
def pg(running: Server) -> Server:
    """The server, with an empty schema."""
    running.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    running.run(f"GRANT ALL ON SCHEMA public TO {USER}")
    return running


@pytest.fixture
def said(fused, tmp_path) -> Path:
    """A copy of the transcript of a module's fusion, whose folder comes first."""
    return shutil.copytree(fused[0] / "said", tmp_path / "said")
