"""Small files that unfold to much are refused before memory is taken for it."""

import gzip
import json
import os
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cli.main import status_of
from shoal.connectors import feeds, files, typed, workbooks
from shoal.connectors.delimited import check_names
from shoal.connectors.dialect import Reading
from shoal.connectors.typed import plain
from shoal.data import regular_files
from shoal.data.regular_files import FREE, RATIO, most_unpacked, unpacked
from shoal.errors import InputError, library_errors_as
from shoal.policy.loading import read_mapping
from shoal.web import policy_text
from thorough import long_where

BOMB = "x0: &x0 [a, b]\n" + "".join(
    f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


@given(st.lists(st.binary(max_size=3000), min_size=1, max_size=6), st.integers(0, 9), st.booleans())
def test_members_are_unpacked_as_gzip_unpacks_them(parts, padding, is_cut):
    content = b"".join(gzip.compress(part) + bytes(padding) for part in parts)
    assert unpacked(content, "file") == gzip.decompress(content) == b"".join(parts)
    if is_cut and not padding:
        with pytest.raises(InputError, match="damaged"):
            unpacked(content[:-1], "file")


def test_what_follows_a_member_must_be_another_one():
    with pytest.raises(InputError, match="damaged"):
        unpacked(gzip.compress(b"a") + b"more", "file")


def test_time_grows_with_the_members_and_not_with_their_square():
    """Each of them copied all that came behind it."""
    took = []
    for members in (5_000, 80_000):
        content = gzip.compress(b"") * members
        began = time.thread_time()
        unpacked(content, "file")
        took.append(time.thread_time() - began)
    assert took[1] < 100 * took[0]


def test_a_small_file_that_unpacks_to_much_is_refused_before_memory_is_taken():
    content = gzip.compress(bytes(2 * FREE), 9)
    tracemalloc.start()
    with pytest.raises(InputError, match=r"read={'unpacked': '16GB'}"):
        unpacked(content, "file 'a.csv.gz'")
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < FREE / 4


def test_a_file_may_unpack_to_so_many_times_its_size_or_to_what_its_reader_says():
    assert most_unpacked(10) == FREE
    assert most_unpacked(FREE) == min(FREE * RATIO, regular_files.MOST)
    assert most_unpacked(10, 5 * regular_files.MOST) == 5 * regular_files.MOST


@pytest.mark.parametrize("suffix", [".csv.gz", ".jsonl.gz"])
def test_a_table_is_read_where_its_reader_allows_what_it_unpacks_to(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"t{suffix}"
    head, row = (b"a\n", b"1\n") if suffix == ".csv.gz" else (b"", b'{"a": "1"}\n')
    path.write_bytes(gzip.compress(head + row * 9999))
    monkeypatch.setattr(regular_files, "FREE", 1000)
    with pytest.raises(InputError, match="unpacks to more than"):
        files.read(str(path))
    assert files.read(str(path), reading=Reading(unpacked=1 << 20)).frame.height == 9999


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_a_value_that_is_written_once_for_many_rows_is_refused_by_what_its_file_says(
    tmp_path, monkeypatch, name
):
    path = tmp_path / name
    monkeypatch.setattr(regular_files, "FREE", 1 << 20)
    cells = pa.table({"a": pa.nulls(3 * 10**6, pa.int8()).fill_null(0)})
    if name == "t.parquet":
        pq.write_table(cells, path, compression="zstd")
    else:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(path, cells.schema, options=options) as file:
            file.write_table(cells)
    assert path.stat().st_size < 20_000
    for command in (["profile"], ["policy", "init"]):
        assert status_of([*command, str(path), "-q"]) == 2
    with pytest.raises(InputError, match=r"unpacks to more than [12]\.?\d* MB"):
        files.read(str(path))
    assert files.read(str(path), reading=Reading(unpacked=1 << 30)).frame.height == 3 * 10**6


LONG_TEXT = "x" * (1 << 16)
LONG_TEXTS = {
    "text.parquet": pl.String,
    "category.parquet": pl.Categorical,
    "category.arrow": pl.Categorical,
    "enum.arrow": pl.Enum([LONG_TEXT]),
}


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_a_long_text_that_is_written_once_for_many_rows_is_counted_for_each(tmp_path, name):
    path = tmp_path / name
    frame = pl.DataFrame({"age": [30] * 3000, "d": [LONG_TEXT] * 3000})
    frame = frame.cast({"d": LONG_TEXTS[name]})
    if name == "category.arrow":
        frame.write_ipc(path)
    else:
        write = frame.write_parquet if path.suffix == ".parquet" else frame.write_ipc
        write(path, compression="zstd")
    for reading in (Reading(), Reading(dropped=frozenset({"d"}))):
        with pytest.raises(InputError, match="unpacks to more than"):
            files.read(str(path), reading=reading)
    with pytest.raises(InputError, match="unpack to more than"):
        feeds.feed_of(str(path)).read()


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_lists_that_nobody_needs_are_not_read(tmp_path, monkeypatch, name):
    path = tmp_path / name
    table = pl.DataFrame({"age": [1, 2], "l": [[1] * 9, [2]]})
    table.write_parquet(path) if name == "t.parquet" else table.write_ipc(path)
    seen = []
    monkeypatch.setattr(typed, "plain", lambda frame, *_: seen.append(frame) or plain(frame, *_))
    found = files.read(str(path), reading=Reading(dropped=frozenset({"l"}))).frame
    assert found.rows() == [(1, None), (2, None)]
    assert [frame.schema["l"] for frame in seen if frame.height] == [pl.String]


@pytest.mark.parametrize("memory", [[], ["--memory", "400MB"]])
@pytest.mark.parametrize("name", ["out.csv.gz", "out.parquet"])
def test_a_release_whose_rows_repeat_more_than_a_strangers_may_is_read_back(
    tmp_path, monkeypatch, capfd, name, memory
):
    people = pl.DataFrame({"age": range(20_000)}, schema={"age": pl.Int64})
    people.sample(fraction=1, shuffle=True, seed=1).write_csv(tmp_path / "in.csv")
    (tmp_path / "p.yaml").write_text(
        "version: 1\nattributes: {age: {role: quasi, type: number}}\n"
        "promises: [{model: k-anonymity, k: 5000}]\nmethod: {name: rounded-partition}\n"
    )
    monkeypatch.setattr(regular_files, "FREE", 1 << 10)
    monkeypatch.setattr(regular_files, "RATIO", 2)
    monkeypatch.chdir(tmp_path)
    publish = ["publish", "in.csv", "-p", "p.yaml", "-o", name, "-q", *memory]
    assert status_of(publish) == 0, capfd.readouterr().err
    verify = ["verify", name, "-p", "p.yaml", *memory]
    assert status_of(verify) == 2
    assert "--read unpacked=16GB" in capfd.readouterr().err
    assert status_of([*verify, "--read", "unpacked=16GB"]) == 0


def test_a_folder_is_judged_by_all_of_its_files(tmp_path, monkeypatch):
    for number in range(3):
        pl.DataFrame({"a": [0] * 300}).write_parquet(tmp_path / f"{number}.parquet")
    monkeypatch.setattr(regular_files, "RATIO", 0)
    monkeypatch.setattr(regular_files, "FREE", 1000)
    assert files.read(str(tmp_path / "1.parquet")).frame.height == 300
    with pytest.raises(InputError, match=r"folder .* unpacks to more than"):
        files.read(str(tmp_path))


def require_refused_where_it_lies(path, text: str, said: str) -> None:
    """Both from a file, and from the text of a page."""
    path.write_text(text)
    for read, source in ((read_mapping, path), (policy_text.read, text)):
        with pytest.raises(InputError, match=said):
            read(source)


@pytest.mark.parametrize("text", [BOMB, "a: &a [*a]\n", "a: &a {b: *a}\n", BOMB + "b: {<<: *x9}\n"])
def test_aliases_that_unfold_to_too_many_parts_or_to_themselves_are_refused(tmp_path, text):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"line \d+ can't be understood: (an )?alias"):
        read_mapping(path)


@pytest.mark.parametrize("begin", ["[", "{a: ", "- ", "? ", "- ? "])
def test_lists_too_deep_for_any_parser_are_refused_where_they_lie(tmp_path, begin):
    deep = f"version: 1\nx:\n  {begin * 300_000}\n"
    require_refused_where_it_lies(tmp_path / "p.yaml", deep, "line 3 can't be understood")


LONG = "a" * 300_000
BASE_60 = ":1" * 100_000


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("p.toml", f'a = "{LONG}"', LONG),
        ("p.yaml", f"a: {LONG}", LONG),
        ("p.json", f'{{"a": "{LONG}"}}', LONG),
        ("p.yaml", f"a: 1{BASE_60}", f"1{BASE_60}"),
        ("p.yaml", f"a: 1{BASE_60}.5", f"1{BASE_60}.5"),
        ("p.yaml", f"a: !!int 1{BASE_60}", f"1{BASE_60}"),
        ("p.yaml", f"a: !!float 1{BASE_60}", f"1{BASE_60}"),
        ("p.yaml", f"a: !!int {{=: 1{BASE_60}}}", f"1{BASE_60}"),
    ],
    ids=range(8),
)
def test_long_texts_and_numbers_of_base_60_are_text_and_take_no_time(tmp_path, name, text, kept):
    path = tmp_path / name
    path.write_text(text)
    begun = time.monotonic()
    assert read_mapping(path) == {"a": kept}
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("tag", ["int", "bool", "float", "timestamp", "map", "seq", "set", "omap"])
@pytest.mark.parametrize("value", ["''", "x", "[1]", "9999-99-99", "0x_"])
def test_a_value_that_is_not_of_its_tag_is_refused_with_its_line(tmp_path, tag, value):
    path, text = tmp_path / "p.yaml", f"version: 1\nlabel: !!{tag} {value}\n"
    if (tag, value) in (("map", "''"), ("seq", "[1]")):
        path.write_text(text)
        assert read_mapping(path)["label"] == ({} if tag == "map" else [1])
    else:
        require_refused_where_it_lies(path, text, "line 2 can't be understood")


def test_a_few_aliases_are_followed(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("a: &a {b: 1}\nc: *a\nd: {<<: *a, e: 2}\n")
    assert read_mapping(path) == {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}


def workbook(path, part: str, end: str, more: str = "") -> None:
    """Writes a workbook of one row, with more before the first such end in one of its parts."""
    files.write(pl.DataFrame({"age": ["1"], "ill": ["x"]}), path, ".xlsx")
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    name = f"xl/{part}.xml"
    parts[name] = parts[name].replace(end.encode(), (more + end).encode(), 1)
    with zipfile.ZipFile(path, "w") as book:
        for name, content in parts.items():
            book.writestr(name, content)


@pytest.mark.parametrize("place", ["XFD1048576", "ZZ100000", *long_where(bool, ["A1048576"])])
def test_a_cell_far_from_the_others_is_counted_before_a_range_is_made(tmp_path, place):
    path = tmp_path / "t.xlsx"
    far = f'<row r="{place.lstrip("XFDZA")}"><c r="{place}"><v>1</v></c></row>'
    workbook(path, "worksheets/sheet1", "</sheetData>", far)
    if place.startswith("A"):  # one column, all of whose rows are few enough
        assert files.read_as(path, ".xlsx").frame.height == 2
        return
    with pytest.raises(InputError, match="stands far from the others"):
        files.read_as(path, ".xlsx")


@pytest.mark.parametrize(
    ("part", "end", "more", "said"),
    [
        ("worksheets/sheet1", "</row>", '<c s="0"/>', "reaches over 13 cells, of which 2 have a"),
        ("styles", "</cellXfs>", "<xf/>", "describes more than 60 styles"),
    ],
)
def test_blank_cells_and_styles_are_counted_no_further_than_needed(
    tmp_path, monkeypatch, part, end, more, said
):
    monkeypatch.setattr(regular_files, "FREE_CELLS", 10)
    monkeypatch.setattr(workbooks, "MOST_STYLES", 60)
    path = tmp_path / "t.xlsx"
    workbook(path, part, end)
    assert files.read_as(path, ".xlsx").frame.height == 1
    workbook(path, part, end, more * 80)
    with pytest.raises(InputError, match=said):
        files.read_as(path, ".xlsx")


def test_a_panic_of_a_library_is_an_error_of_the_input_and_others_pass():
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})
    with pytest.raises(InputError, match="is damaged"), library_errors_as("is damaged"):
        raise panic("a cell")
    with pytest.raises(KeyboardInterrupt), library_errors_as("is damaged"):
        raise KeyboardInterrupt


SAID_OF_A_PANIC = b"""
thread 'async-executor-0' (4711) panicked at crates/polars-parquet/src/bridge.rs:289:34:
called `Result::unwrap()` on an `Err` value: a cell
stack backtrace:
   0: <unknown>
"""


def test_what_is_said_of_a_panic_is_kept_from_standard_error_and_all_else_is_not(capfd):
    said = [b"before\n", SAID_OF_A_PANIC, b"shoal: between\n", SAID_OF_A_PANIC * 2]
    with library_errors_as("is damaged"):
        writer = threading.Thread(target=os.write, args=(2, said[0]))
        writer.start()
        writer.join()
        with library_errors_as("is damaged"):
            for part in said[1:]:
                os.write(2, part)
        os.write(2, b"progress: 1\n")
    os.write(2, b"behind\n")
    assert capfd.readouterr().err == "before\nshoal: between\nprogress: 1\nbehind\n"


def test_readers_on_many_threads_leave_standard_error_as_it_was(capfd):
    def read(number):
        with library_errors_as("is damaged"):
            os.write(2, b"shoal: %d\n" % number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(read, range(200)))
    os.write(2, b"shoal: 200\n")
    said = capfd.readouterr().err.splitlines()
    assert sorted(said) == sorted(f"shoal: {n}" for n in range(201))
    assert said[-1] == "shoal: 200"


def test_a_library_is_called_where_standard_error_is_closed():
    script = (
        "import os; os.close(2); from shoal.errors import library_errors_as\n"
        "with library_errors_as('is damaged'): print('read')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "read\n")


def test_json_lines_that_lie_too_deep_are_refused_before_polars_takes_minutes(tmp_path):
    path = tmp_path / "t.jsonl"
    shallow = f'{{"a": "{"[" * 99}", "b": {"[" * 31}{"]" * 31}}}'
    path.write_text(f"{shallow}\n" * 9)
    assert files.read(str(path), reading=Reading(dropped=frozenset("b"))).frame.height == 9
    path.write_text(f'{shallow}\n{{"b": [1, {"[" * 999}{"]" * 999}]}}\n{shallow}')
    with pytest.raises(InputError, match="line 2 is not a JSON object like the others"):
        files.read(str(path))


def test_a_line_of_very_many_names_is_read_in_one_pass(tmp_path):
    names = [f"c{n % 30_000}" for n in range(60_000)]
    assert len(check_names(names[:30_000], "t.csv")) == 30_000
    with pytest.raises(InputError, match="columns 1 and 30001 have the same name"):
        check_names(names, "t.csv")


def test_a_name_that_all_columns_share_is_said_in_a_short_line():
    with pytest.raises(InputError, match="20 and 4980 more have the same name") as refused:
        check_names(["a"] * 5_000, "t.csv")
    assert len(str(refused.value)) < 300


def test_json_lines_of_ever_new_keys_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "t.jsonl"
    one = "{" + ", ".join(f'"k{n}": 1' for n in range(5000)) + "}"
    for lines in ((f'{{"k{n}": "v"}}' for n in range(30_000)), ['{"k0": 1}'] * 20_000 + [one]):
        path.write_text("\n".join(lines))
        with pytest.raises(InputError, match="unpacks to more than"):
            files.read(str(path))
    path.write_text("\n".join(f'{{"a": "{n}", "b": "x\\":"}}' for n in range(30_000)))
    assert files.read(str(path)).frame.width == 2


def test_keys_of_every_line_count_towards_the_table(tmp_path):
    # the longest lines have no key of their own, and every key stands in one line alone
    path = tmp_path / "t.jsonl"
    long = json.dumps({"a": "d" * 200})
    keys = iter(range(100_000, 200_000))
    own = (json.dumps({f"{next(keys):x}": 1 for _ in range(10)}) for _ in range(2000))
    path.write_text("\n".join(f"{line}\n{long}" for line in own))
    with pytest.raises(InputError, match="unpacks to more than"):
        files.read(str(path))


def test_keys_that_all_lines_share_are_counted_once(tmp_path, monkeypatch):
    monkeypatch.setattr(typed, "PIECE", 100)
    path = tmp_path / "t.jsonl"
    spelled = ['{"a":1,"b":"x\\"y\\":z"}', '{"a" : 2, "b" :"\\\\"}'] * 5000
    path.write_text("\n".join(spelled))
    content = path.read_bytes()
    typed.require_keys_shared(content, "file", 40_000)  # 2 bytes for each of 20,000 cells
    with pytest.raises(InputError, match="unpacks to more than"):
        typed.require_keys_shared(content, "file", 39_999)
    assert files.read(str(path)).frame.shape == (10_000, 2)
