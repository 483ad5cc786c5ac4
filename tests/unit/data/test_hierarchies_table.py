"""Hierarchy tables: what is read, what is refused, and that writing loses nothing."""

import gzip
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.paths import diagnose
from shoal.data.hierarchies.table import (
    SEPARATORS,
    _plain_cells,
    _quoted_cells,
    read_hierarchy,
    read_paths,
    write_hierarchy,
)
from shoal.errors import InputError
from unit.cli.test_hierarchies import trees

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).parents[3].parent / "shared" / "data")
FOLDERS = (
    "adult/hierarchies_arx",
    "adult/hierarchies_anjana",
    "adult/taxonomy_tds",
    "cup/hierarchies",
)
TABLES = sorted(
    path for folder in FOLDERS for path in (DATA / folder).glob("*.csv*") if path.stem != "edges"
)
needs_data = pytest.mark.skipif(
    not TABLES, reason="no real hierarchies: set SHOAL_DATA to the data folder"
)


def table(tmp_path: Path, text: str, name: str = "h.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


LIKE_NUMBERS = "1;[0, 2[;[0, 4[;*\n2;[2, 4[;[0, 4[;*\n5;[4, 6[;[4, 8[;*\n"
UNTIDY = "\ufeff\r\n a ; x;* \r\n\r\nb;x ; *\r\n  \r\nc;*;*"


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        *(("a;x;*\nb;x;*\nc;y;*\n".replace(";", sign), "a b c * x") for sign in ";,\t|"),
        (LIKE_NUMBERS, "1 2 5 * [0,4["),
        (UNTIDY, "a b c * x"),
        ("a;Any\nb;Any\n", "a b Any"),
    ],
)
def test_separators_are_detected_and_blanks_left_out(tmp_path, text, labels):
    hierarchy = read_hierarchy(table(tmp_path, text))
    assert [label.replace(", ", ",") for label in hierarchy.labels] == labels.split()


@pytest.mark.parametrize("blank", ["", " "])
def test_quoted_labels_keep_their_separators(tmp_path, blank):
    quoted = f'1,{blank}"[0, 2[",*\n2,{blank}"[0, 2[",*\n3,"say ""hi""",*\n4,x,*\n'
    hierarchy = read_hierarchy(table(tmp_path, quoted))
    assert hierarchy.labels == ("1", "2", "3", "4", "*", "[0, 2[")
    assert hierarchy.node_of_label('say "hi"') == 2


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"\xff\xfe;*\n", "h.csv", ""),
        (b"a;*\n", "h.csv.gz", ""),
        (gzip.compress(b"a;*\nb;*\n", mtime=0)[:-9], "h.csv.gz", ""),
        (gzip.compress(b"a;*\nb;*\n" * 99, mtime=0)[:20] + b"\x00" * 40, "h.csv.gz", ""),
        (b'a;"' + b"x" * 200_000 + b'";*\n', "h.csv", ""),
        (b"", "h.csv", ""),
        (b"\n\n", "h.csv", ""),
        (b"a\nb\n", "h.csv", ""),
        (b"a;x;*\nb;x;*\nc;*\n", "h.csv", "1 row has 2, 2 rows have 3"),
        (b"a;x;*\na;x;*\nb;x;*\na;y;*\nc;y;*\n", "h.csv", "lists 1 value more than once"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, content, name, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match="attribute 'job'") as refused:
        read_hierarchy(tmp_path / name, "job")
    assert said in str(refused.value)


def test_a_missing_table_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_hierarchy(tmp_path / "nowhere.csv", "job")


labels_in_tables = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4).filter(
    lambda t: t == t.strip()
)


@given(trees(), st.data())
def test_a_written_table_reads_back_as_the_same_hierarchy(tmp_path_factory, rows, data):
    names = sorted({label for row in rows for label in row})
    renamed = data.draw(
        st.lists(labels_in_tables, min_size=len(names), max_size=len(names), unique=True)
    )
    new = dict(zip(names, renamed, strict=True))
    hierarchy = Hierarchy.from_paths([[new[label] for label in row] for row in rows])
    assume(hierarchy.height > 0)  # one column has no separator to go by
    path = tmp_path_factory.mktemp("tables") / data.draw(st.sampled_from(["h.csv", "h.csv.gz"]))
    write_hierarchy(hierarchy, path, data.draw(st.sampled_from([";", ",", "\t", "|"])))
    assert [*path.parent.iterdir()] == [path]
    assert read_hierarchy(path) == hierarchy


@pytest.mark.parametrize("odd", ["a\rb", "\ufeffa", "a\nb", 'a"b', "a;b,c|d\te", "'a'"])
def test_odd_labels_survive_writing(tmp_path, odd):
    hierarchy = Hierarchy.from_paths([[odd, "*"], ["z", "*"]])
    for separator in SEPARATORS:
        write_hierarchy(hierarchy, tmp_path / "h.csv", separator)
        assert read_hierarchy(tmp_path / "h.csv") == hierarchy


@given(st.text(st.sampled_from("ab *;,\t|\r\n"), max_size=60))
def test_plain_text_is_split_as_csv_would(text):
    cells, lengths = _plain_cells(text)
    expected, expected_lengths = _quoted_cells(text)
    assert cells.str.strip_chars().to_list() == expected.str.strip_chars().to_list()
    assert lengths.tolist() == expected_lengths.tolist()


@needs_data
@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_real_tables_have_no_fault_survive_writing_and_their_levels_are_their_columns(
    tmp_path, path
):
    paths = read_paths(path)
    assert diagnose(paths) == []
    hierarchy = read_hierarchy(path)
    write_hierarchy(hierarchy, tmp_path / "h.csv")
    assert read_hierarchy(tmp_path / "h.csv") == hierarchy
    row_of = {paths.labels[code]: row for row, code in enumerate(paths.leaf_codes)}
    rows = [row_of[leaf] for leaf in hierarchy.labels[: hierarchy.leaves]]
    assert hierarchy.height == paths.codes.shape[1] - 1
    for level in range(hierarchy.height + 1):
        assert list(hierarchy.labels_at(level)) == [
            paths.labels[code] for code in paths.codes[rows, level]
        ]


@needs_data
def test_a_hundred_thousand_leaves_load_in_a_moment():
    path = DATA / "cup/hierarchies/ZIP.csv.gz"
    read_hierarchy(path)
    start = time.process_time()
    hierarchy = read_hierarchy(path)
    spent = time.process_time() - start
    assert hierarchy.leaves == 100_000
    assert len(hierarchy.labels) == 111_111
    assert np.array_equal(np.unique(hierarchy.levels), np.arange(6))
    assert spent < 0.5


def test_identical_rows_are_taken_once(tmp_path):
    once = read_hierarchy(table(tmp_path, "a;x;*\nb;x;*\nc;y;*\n"))
    twice = read_hierarchy(table(tmp_path, "a;x;*\nb;x;*\na;x;*\nc;y;*\n a ; x;*\n"))
    assert twice == once
    assert (once.repeated, twice.repeated) == (0, 2)
