"""A release with all that its readers may have."""

import shutil
from pathlib import Path

import pytest

from certified_cases import publish


@pytest.fixture(scope="session")
def certified(tmp_path_factory) -> Path:
    """A folder with a table, its policy, a release, its certificate and its trace; to be read."""
    return publish(tmp_path_factory.mktemp("certified"))


@pytest.fixture
def copied(certified, tmp_path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(certified, tmp_path / "copy"))
