"""One table in the Parquet files of a folder, also where folders hold values in their names."""

import hashlib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.connectors import files, parquet_parts
from shoal.connectors.outputs import check_not_read
from shoal.errors import InputError


def _write(folder: Path, name: str, **columns: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(columns).write_parquet(path)
    return path


def _read(folder: Path) -> pl.DataFrame:
    return files.read(str(folder)).frame


def test_folders_that_hold_values_become_columns_of_text(tmp_path: Path) -> None:
    _write(tmp_path, "year=2024/ward=A%2FB/part-0.parquet", age=[1, 2])
    _write(tmp_path, "year=2023/ward=07/part-0.parquet", age=[3])
    _write(tmp_path, f"year={parquet_parts.NO_VALUE}/ward=/part-0.parquet", age=[4])
    frame = _read(tmp_path)
    assert frame.columns == ["age", "year", "ward"]
    assert frame.rows() == [
        (3, "2023", "07"),
        (1, "2024", "A/B"),
        (2, "2024", "A/B"),
        (4, None, ""),
    ]
    assert frame.schema["year"] == pl.String


def test_what_an_engine_keeps_beside_a_table_is_no_part_of_it(tmp_path: Path) -> None:
    _write(tmp_path, "year=1/a.parquet", age=[1])
    _write(tmp_path, "_temporary/a.parquet", age=[9])
    _write(tmp_path, "year=1/.a.parquet", age=[9])
    _write(tmp_path, "_temporary/year=1/a.parquet", age=[9])
    (tmp_path / "year=1" / "_SUCCESS").touch()
    assert _read(tmp_path).rows() == [(1, "1")]


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        ("_delta_log/0.json", "Delta Lake"),
        (".hoodie/hoodie.properties", "Hudi"),
        ("metadata/v1.metadata.json", "Iceberg"),
        ("metadata/v1.metadata.json.gz", "Iceberg"),
        ("_versions/1.manifest", "Lance"),
    ],
)
@pytest.mark.parametrize("named", ["", "*.parquet", "old.parquet", "data", "year=1"])
def test_a_table_of_several_versions_is_refused(
    tmp_path: Path, log: str, kind: str, named: str
) -> None:
    for name in ("old.parquet", "data/new.parquet", "year=1/a.parquet"):
        _write(tmp_path, name, age=[1, 2])
    (tmp_path / log).parent.mkdir()
    (tmp_path / log).touch()
    with pytest.raises(InputError, match=f"is of a table of {kind}.*export its present state"):
        _read(tmp_path / named)


@pytest.mark.parametrize("other", ["b.PARQUET", "b.pq", "old/b.parquet", "year=1/x/b.parquet"])
def test_a_file_that_would_not_be_read_is_not_passed_over(tmp_path: Path, other: str) -> None:
    _write(tmp_path, "year=1/a.parquet", age=[1])
    _write(tmp_path, other, age=[2])
    with pytest.raises(InputError, match="holds Parquet files that would not be read"):
        _read(tmp_path)


def test_a_folder_named_metadata_alone_is_no_table_of_versions(tmp_path: Path) -> None:
    _write(tmp_path, "a.parquet", age=[1])
    (tmp_path / "metadata").mkdir()
    assert _read(tmp_path).height == 1


def test_the_hash_is_that_of_the_lines_of_sha256sum(tmp_path: Path) -> None:
    parts = [_write(tmp_path, f"year={year}/a.parquet", age=[year]) for year in (1, 2)]
    lines = "".join(
        f"{hashlib.sha256(part.read_bytes()).hexdigest()}  {part.relative_to(tmp_path)}\n"
        for part in parts
    )
    assert files.read(str(tmp_path)).sha256 == hashlib.sha256(lines.encode()).hexdigest()
    (tmp_path / "year=2").rename(tmp_path / "year=3")  # other records: the year is one's value
    assert files.table_sha256(str(tmp_path)) != hashlib.sha256(lines.encode()).hexdigest()


def test_every_file_that_differs_is_named(tmp_path: Path) -> None:
    _write(tmp_path, "a.parquet", age=[1])
    _write(tmp_path, "b.parquet", age=["1"])
    _write(tmp_path, "c.parquet", age=[1])
    _write(tmp_path, "d.parquet", ages=[1])
    with pytest.raises(InputError) as refused:
        _read(tmp_path)
    shown = [refused.value.args[0], *refused.value.findings]
    assert [str(line).split(":")[0] for line in shown] == ["file 'b.parquet'", "file 'd.parquet'"]


def test_files_parted_by_other_columns_are_refused(tmp_path: Path) -> None:
    _write(tmp_path, "year=1/a.parquet", age=[1])
    _write(tmp_path, "b.parquet", age=[1])
    _write(tmp_path, "month=1/c.parquet", age=[1])
    with pytest.raises(InputError, match="other columns than") as refused:
        _read(tmp_path)
    assert "=1" not in "".join(map(str, [refused.value.args[0], *refused.value.findings]))


def test_a_column_named_by_file_and_folder_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, "age=1/a.parquet", age=[1])
    with pytest.raises(InputError, match="also in the names of its folders"):
        _read(tmp_path)
    _write(tmp_path / "twice", "x=1/x=2/a.parquet", age=[1])
    with pytest.raises(InputError, match="named by two folders"):
        _read(tmp_path / "twice")


def test_a_folder_of_empty_folders_holds_no_file(tmp_path: Path) -> None:
    (tmp_path / "year=2024").mkdir()
    with pytest.raises(InputError, match="holds no"):
        _read(tmp_path)


def test_a_folder_of_tables_of_another_format_says_what_links_them(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n1\n")
    for read in (_read, shoal.profile):
        with pytest.raises(InputError, match=r"name one of its tables; .* 'shoal policy"):
            read(tmp_path)


@pytest.mark.parametrize("inside", ["out.parquet", "year=1/out.parquet", "year=1/x=2/out.parquet"])
def test_nothing_is_written_where_the_table_is_read(tmp_path: Path, inside: str) -> None:
    _write(tmp_path / "parts", "year=1/x=2/a.parquet", age=[1])
    with pytest.raises(InputError, match="the folder that is read"):
        check_not_read(str(tmp_path / "parts" / inside), str(tmp_path / "parts"), [])
    check_not_read(str(tmp_path / "out.parquet"), str(tmp_path / "parts"), [])
