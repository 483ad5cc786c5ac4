"""A quick run of the paper that a module of tests is about."""

from pathlib import Path

import pytest

from shoal_papers.reproduce import reproduce_paper


@pytest.fixture(scope="module")
def quick(tmp_path_factory, request) -> Path:
    """The folder of a finished quick run."""
    name = request.module.__name__.rpartition("test_reproduce_")[2].replace("_", "-")
    out = tmp_path_factory.mktemp("quick")
    reproduce_paper(name, out, quick=True, progress=lambda stage: None)
    return out / name
