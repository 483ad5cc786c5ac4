"""What pages unpack to is found without unpacking them, in whatever bytes a file has."""

import struct
import subprocess
import sys
import time
from contextlib import suppress

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.connectors import feeds, files
from shoal.connectors.page_sizes import unpacked_parts
from shoal.data import regular_files
from shoal.data.regular_files import FREE
from shoal.errors import InputError
from thorough import long_but

FRAME = pl.DataFrame(
    {
        "age": range(3000),
        "area": [f"[{n // 100}, x)" for n in range(3000)],
        "pay": [None, 1.5] * 1500,
        "list": [[1, 2]] * 3000,
        "struct": [{"x": 1, "y": "b"}] * 3000,
    }
)


def write_polars(path, compression):
    if path.suffix == ".parquet":
        FRAME.write_parquet(path, compression=compression, row_group_size=1000)
    else:
        frame = FRAME.with_columns(kind=pl.col("area").cast(pl.Categorical))
        frame.write_ipc(path, compression=compression)


def write_pyarrow(path, compression, **options):
    table = FRAME.to_arrow()
    if path.suffix == ".parquet":
        options = {"data_page_size": 1000, "row_group_size": 1000, **options}
        pq.write_table(table, path, compression=compression, **options)
        return
    table = table.append_column("kind", table["area"].cast(pa.string()).dictionary_encode())
    packed = pa.ipc.IpcWriteOptions(compression=compression, **options)
    with pa.ipc.new_file(path, table.schema, options=packed) as file:
        file.write_table(table, max_chunksize=1000)


PARQUET = {
    **{f"polars-{c}": (write_polars, c, {}) for c in ("zstd", "snappy", "gzip", "uncompressed")},
    **{
        f"pyarrow-{c}-{version}-{dictionary}": (
            write_pyarrow,
            c,
            {"data_page_version": version, "use_dictionary": dictionary},
        )
        for c in ("zstd", "snappy", "gzip", "none")
        for version in ("1.0", "2.0")
        for dictionary in (True, False)
    },
}
ARROW = {
    **{f"polars-{c}": (write_polars, c, {}) for c in ("zstd", "lz4")},
    **{
        f"pyarrow-{c}-{legacy}": (write_pyarrow, c, {"use_legacy_format": legacy})
        for c in ("zstd", "lz4")
        for legacy in (True, False)
    },
}


def parts_of(path):
    return list(unpacked_parts(path, path.suffix, "is damaged"))


@pytest.mark.parametrize("name", PARQUET)
def test_pages_of_parquet_unpack_to_what_the_footer_says_of_them_all(tmp_path, name):
    path = tmp_path / "t.parquet"
    write, compression, options = PARQUET[name]
    write(path, compression, **options)
    footer = pq.read_metadata(path)
    parts = parts_of(path)
    assert [records for records, _ in parts] == [1000] * 3
    for group, (_, unpacked) in enumerate(parts):
        columns = [footer.row_group(group).column(n) for n in range(footer.num_columns)]
        said = sum(column.total_uncompressed_size for column in columns)  # with pages' headers
        assert said * 0.8 < unpacked < said


@pytest.mark.parametrize("name", ARROW)
def test_buffers_of_arrow_unpack_to_those_of_the_file_without_compression(tmp_path, name):
    path, plain = tmp_path / "t.arrow", tmp_path / "plain.arrow"
    write, compression, options = ARROW[name]
    write(path, compression, **options)
    write(plain, "uncompressed" if write is write_polars else None, **options)
    assert [records for records, _ in parts_of(path)] == [records for records, _ in parts_of(plain)]
    assert {unpacked for _, unpacked in parts_of(plain)} == {0}
    unpacked = sum(unpacked for _, unpacked in parts_of(path))
    assert plain.stat().st_size * 0.9 < unpacked < plain.stat().st_size


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("frame", [pl.DataFrame(), pl.DataFrame({"a": []}), FRAME.clear()])
def test_tables_without_records_or_columns_unpack_to_nothing(tmp_path, suffix, frame):
    path = tmp_path / f"t{suffix}"
    frame.write_parquet(path) if suffix == ".parquet" else frame.write_ipc(path)
    assert sum(map(sum, parts_of(path))) == 0


PEAK = """
import resource, sys
from shoal.connectors import feeds, files
from shoal.errors import InputError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for read in (files.read, lambda path: feeds.feed_of(path).read()):
    try:
        read(sys.argv[1])
    except InputError as error:
        assert "to more than 67 MB" in str(error)
    else:
        raise SystemExit("was read")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("suffix", long_but(".arrow", [".parquet", ".arrow"]))
def test_long_texts_in_compressed_pages_are_refused_before_memory_is_taken(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    text = pl.Series(["x" * (100 << 20)])
    frame = pl.DataFrame({"age": [30, 31], "note": pl.concat([text, text])})
    if suffix == ".parquet":
        pq.write_table(frame.to_arrow(), path, compression="zstd", use_dictionary=False)
    else:
        frame.write_ipc(path, compression="zstd")
    assert path.stat().st_size < 40_000
    done = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * 1024 < FREE


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_repeated_cells_that_are_short_are_read_however_far_they_unpack(
    tmp_path, suffix, monkeypatch
):
    monkeypatch.setattr(regular_files, "FREE", FREE // 10)
    path, rows = tmp_path / f"t{suffix}", 300_000
    cells = {"mean": 7.5, "age": "[30, 40)", "area": "x" * 32}
    frame = pl.DataFrame({name: [cell] * rows for name, cell in cells.items()})
    if suffix == ".parquet":
        pq.write_table(frame.to_arrow(), path, compression="zstd", use_dictionary=False)
    else:
        frame.write_ipc(path, compression="zstd")
    unpacked = sum(unpacked for _, unpacked in parts_of(path))
    assert unpacked > max(20 * path.stat().st_size, regular_files.FREE)
    assert files.read(str(path)).frame.height == rows
    assert feeds.feed_of(str(path)).read().frame.height


WHOLE = [(name, ".parquet") for name in PARQUET] + [(name, ".arrow") for name in ARROW]


@pytest.fixture(scope="module", params=WHOLE, ids="".join)
def whole(request, tmp_path_factory):
    """A whole file, and the path of its damaged copies."""
    name, suffix = request.param
    path = tmp_path_factory.mktemp("whole") / f"t{suffix}"
    write, compression, options = (PARQUET if suffix == ".parquet" else ARROW)[name]
    write(path, compression, **options)
    return path.read_bytes(), path


def require_an_end(path, content):
    """Asserts that these bytes are walked or refused, and soon."""
    path.write_bytes(content)
    begun = time.process_time()
    with suppress(InputError):
        assert all(records >= 0 and unpacked >= 0 for records, unpacked in parts_of(path))
    assert time.process_time() - begun < 5


@given(data=st.data())
def test_damaged_files_are_walked_or_refused(whole, data):
    content, path = bytearray(whole[0]), whole[1]
    end = len(content)
    near_the_end = st.integers(max(end - 2000, 0), end - 1)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, end - 1) | near_the_end)
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    first, last = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    require_an_end(path, bytes(content[first : end - last]))


@given(content=st.binary(max_size=300), is_arrow=st.booleans(), shift=st.integers(-4, 4))
def test_random_footers_are_walked_or_refused(tmp_path_factory, content, is_arrow, shift):
    path = tmp_path_factory.getbasetemp() / ("t.arrow" if is_arrow else "t.parquet")
    length = struct.pack("<I", max(len(content) + shift, 0))
    require_an_end(path, content + length + (b"ARROW1" if is_arrow else b"PAR1"))
    require_an_end(path, content)


def varint(number):
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes(found) + bytes([number])


def signed(number):
    return varint(number << 1 if number >= 0 else -number * 2 - 1)


def footer(first, size, chunks=1, records=1, in_all=None):
    """A footer of one row group, all of whose column chunks stand at one place."""
    in_all = records if in_all is None else in_all
    column = b"\x3c\x76" + signed(size) + b"\x26" + signed(first) + b"\0\0"
    columns = b"\x19\xfc" + varint(chunks) + column * chunks
    group = columns + b"\x26" + signed(records) + b"\0"
    return b"\x36" + signed(in_all) + b"\x19\x1c" + group + b"\0"


def page(unpacked, packed):
    return b"\x25" + signed(unpacked) + b"\x15" + signed(packed) + b"\0"


def parquet(footer, pages=b""):
    return b"PAR1" + pages + footer + struct.pack("<I", len(footer)) + b"PAR1"


EMPTY = page(0, 0)
AGAIN = b"\x05" + signed(2) + signed(1 << 30)  # a page's unpacked size


def in_one_page(more):
    """A file whose page has these fields, too."""
    header = page(0, 0)[:-1] + more + b"\0"
    return parquet(footer(4, len(header)), header)


HOSTILE = {
    "nothing": b"",
    "encrypted": parquet(footer(4, 0))[:-4] + b"PARE",
    "footer beyond the file": footer(4, 0) + struct.pack("<I", 1 << 31) + b"PAR1",
    "endless number": parquet(b"\x16" + b"\xff" * 1_000_000),
    "deep nesting": parquet(b"\x1c" * 1_000_000),
    "deep lists": parquet(b"\x19" + b"\x19" * 1_000_000),
    "huge list": parquet(b"\x49\xfc" + varint(1 << 63) + b"\0" * 1_000_000),
    "huge text": parquet(b"\x18" + varint((1 << 70) - 1)),
    "chunk beyond the file": parquet(footer(1 << 62, 1)),
    "chunk before the file": parquet(footer(-5, len(EMPTY)), EMPTY),
    "chunk of a negative size": parquet(footer(4, -1), EMPTY),
    "chunk that goes on beyond the file": parquet(footer(4, 1 << 40), EMPTY),
    "chunks at one place": parquet(footer(4, 500_000, 10_000), EMPTY * 100_000),
    "page that unpacks to less than nothing": parquet(footer(4, len(page(-1, 0))), page(-1, 0)),
    "page that goes back": parquet(footer(4, len(page(0, -5))), page(0, -5)),
    "page beyond its chunk": parquet(footer(4, len(page(0, 9))), page(0, 9) + bytes(9)),
    "page without sizes": parquet(footer(4, 9), bytes(9)),
    "fewer records than none": parquet(footer(4, 0, records=-1)),
    "records that do not add up": parquet(footer(4, 0, records=9, in_all=1)),
    "text for a number": parquet(b"\x38\0" + footer(4, 0)[2:]),
    # Polars reads a text's length as the number that should be there, and the text as fields
    "size in a text": in_one_page(b"\x18" + varint(len(AGAIN)) + AGAIN),
    "size in a text of a struct": in_one_page(b"\x2c\x18" + varint(len(AGAIN)) + AGAIN + b"\0"),
    "size twice": in_one_page(AGAIN),
    "size of a number beyond all fields": in_one_page(
        b"\x05" + signed((1 << 16) + 2) + signed(1 << 30)
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_footers_and_pages_are_refused_soon(tmp_path, name):
    path = tmp_path / "t.parquet"
    require_an_end(path, HOSTILE[name])
    with pytest.raises(InputError, match="is damaged"):
        parts_of(path)


def test_pages_are_added_up(tmp_path):
    path = tmp_path / "t.parquet"
    pages = page(1 << 30, 3) + bytes(3) + page(7, 0)
    path.write_bytes(parquet(footer(4, len(pages)), pages))
    assert parts_of(path) == [(1, (1 << 30) + 7)]
    path.write_bytes(in_one_page(b""))
    assert parts_of(path) == [(1, 0)]


def test_blocks_of_arrow_at_one_place_are_refused_soon(tmp_path):
    path = tmp_path / "t.arrow"
    message = bytes(1_000_000)
    count = 20_000
    # the root's offset, its fields' places, then the root: where its fields stand, and its field 3
    footer = struct.pack("<I6HiI", 16, 12, 8, 0, 0, 0, 4, 12, 4)
    footer += struct.pack("<I", count) + struct.pack("<qi4xq", 0, len(message), 0) * count
    require_an_end(path, message + footer + struct.pack("<I", len(footer)) + b"ARROW1")
    with pytest.raises(InputError, match="is damaged"):
        parts_of(path)
