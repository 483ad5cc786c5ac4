"""The hash of what made a paper's rows sees what code does, not how it is written."""

import ast

import pytest

from shoal_papers.reproduce import papers, source
from shoal_papers.reproduce.source import essence, source_hash

WRITTEN = '''
"""A module."""
from dataclasses import dataclass, field
from shoal.search.kernels import cuts

@dataclass
class Method:
    """A method."""
    paper: str = "somebody, somewhere"
    size: int = field(default=2, metadata={"help": "how many", "low": 1})

    def partition(self, n: int) -> int:
        """What it does."""
        progress("at work")
        if n < self.size:
            raise ValueError(f"{n} are too few")
        return n // self.size  # rounded down
'''


@pytest.mark.parametrize(
    ("here", "other"),
    [
        ("A module.", "One module."),
        ("somebody, somewhere", "somebody else"),
        ("how many", "how large"),
        ("at work", "working"),
        ("n: int) -> int", "n)"),
        ("are too few", "do not suffice"),
        ("rounded down", "the lower one"),
        ("        return", "\n        return"),
        ("from shoal.search.kernels import", "from shoal.tables.kernels import"),
    ],
)
def test_words_leave_the_hash_as_it_is(here, other):
    assert here in WRITTEN
    assert essence(ast.parse(WRITTEN)) == essence(ast.parse(WRITTEN.replace(here, other)))


@pytest.mark.parametrize(
    ("here", "other"),
    [
        ("default=2", "default=3"),
        ('"low": 1', '"low": 2'),
        ("n < self.size", "n <= self.size"),
        ("ValueError", "TypeError"),
        ("n // self.size", "n / self.size"),
    ],
)
def test_what_code_does_changes_the_hash(here, other):
    assert here in WRITTEN
    assert essence(ast.parse(WRITTEN)) != essence(ast.parse(WRITTEN.replace(here, other)))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a method, which imports a kernel, which imports another one."""
    files = {
        "search/method": "from shoal.search.kernels import first\nfrom shoal.data import room",
        "search/kernels/first": "from shoal.search.kernels.second import loop",
        "search/kernels/second": "def loop(): return 1",
        "search/kernels/third": "def loop(): return 1",
        "data/room": "size = 1",
    }
    for name, text in files.items():
        (tmp_path / name).with_suffix(".py").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).with_suffix(".py").write_text(text)
    monkeypatch.setattr(source, "PACKAGES", {"shoal": tmp_path, "shoal_papers": tmp_path})

    def hash_with(name: str, text: str) -> str:
        (tmp_path / name).with_suffix(".py").write_text(text)
        source._read.cache_clear()
        return source_hash(["shoal.search.method"])

    return hash_with


@pytest.mark.parametrize(
    ("changed", "counts"),
    [("search/kernels/second", True), ("search/kernels/third", False), ("data/room", False)],
)
def test_kernels_count_however_far_away_they_are_imported(package, changed, counts):
    before = package("search/kernels/third", "def loop(): return 1")
    assert (package(changed, "def loop(): return 2") != before) == counts


def test_a_module_that_is_gone_is_missed(package):
    with pytest.raises(ModuleNotFoundError):
        source_hash(["shoal.search.gone"])


def test_every_paper_hashes_the_files_of_its_methods():
    for paper in papers().values():
        assert any(name.startswith(source.FOLLOWED) for name in paper.code)
        assert any(name.endswith("_bench") for name in paper.code)
        assert len(source_hash(paper.code)) == 16
