"""Every format does what its record claims, and refuses in one line what it does not claim."""

import gzip
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sample_policies import PATIENTS
from shoal.cli.main import status_of
from shoal.connectors import coded_files, feeds, files
from shoal.connectors.dialect import AS_FOUND, Reading
from shoal.connectors.feeds import feed_of
from shoal.connectors.formats import FORMATS, SUFFIXES, begun_as, named
from shoal.connectors.location import Location
from shoal.data.room import Room
from shoal.data.table import as_text
from shoal.errors import InputError
from shoal.samples import patients

ROWS = pl.DataFrame(
    {
        "name": ["Ana", "B, C", 'the "D"', "Émile", None, "two\nlines"] * 1000,
        "age": list(range(6000)),
        "day": [f"2024-01-{1 + i % 28:02}" for i in range(6000)],
    }
)


def _write_orc(frame, path):
    pytest.importorskip("pyarrow.orc").write_table(frame.to_arrow(), path)


MAKERS = {".orc": _write_orc}
"""What writes a table for the formats that Shoal only reads."""


def written(suffix: str, frame: pl.DataFrame = ROWS) -> str:
    """A file of this suffix, compressed or not."""
    path = f"in{suffix}"
    MAKERS.get(suffix, files.write_table)(frame, path)
    return path


def texts(frame: pl.DataFrame) -> list[tuple[str | None, ...]]:
    return [tuple(cell or None for cell in row) for row in pl.DataFrame(map(as_text, frame)).rows()]


@pytest.fixture(autouse=True)
def in_folder(folder):
    return folder


of_all = pytest.mark.parametrize("kind", FORMATS)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_rows_are_read_as_the_same_table(suffix):
    source = files.read(written(suffix))
    assert source.frame.columns == ROWS.columns
    assert texts(source.frame) == texts(ROWS)
    assert source.sha256 == files.file_sha256(f"in{suffix}")
    assert (source.dialect is not None) == named(suffix).is_delimited
    assert (source.frame["age"].dtype == pl.Int64) == named(suffix).is_typed


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_stream_reads_the_same_rows_in_any_pieces_or_refuses(suffix, monkeypatch):
    monkeypatch.setattr(feeds, "PIECE", 777)
    monkeypatch.setattr(feeds, "SLICE", 500)
    path = written(suffix)
    if not named(suffix).is_streamed:
        with pytest.raises(InputError, match="a stream reads one file piece by piece"):
            feed_of(path)
        return
    feed, frames = feed_of(path), []
    while not (piece := feed.read()).at_end:
        frames.append(piece.frame)
    frames.append(piece.frame)
    assert len(frames) > 2
    assert texts(pl.concat(frame for frame in frames if frame.height)) == texts(ROWS)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_past_memory_the_same_rows_are_read_or_refused(suffix):
    path = written(suffix)
    if not named(suffix).fits_past_memory:
        with pytest.raises(InputError, match=f"files of the format {named(suffix)[1:]} are read"):
            coded_files.read_coded(path, None, AS_FOUND, Room(1 << 24))
        return
    source = coded_files.read_coded(path, None, AS_FOUND, Room(1 << 24))
    table = source.table
    cells = [table.cells(name).gather(table.column(name).codes) for name in table.names]
    assert texts(pl.DataFrame(cells)) == texts(ROWS)
    assert source.sha256 == files.file_sha256(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_text_is_read_and_written_compressed(suffix):
    kind = named(suffix)
    assert f"{kind}.gz" in SUFFIXES or not kind.is_text
    head = Path(written(suffix)).read_bytes()[:2]
    assert (head == b"\x1f\x8b") == suffix.endswith(".gz")


@of_all
def test_each_is_published_or_refused_before_any_work(kind, in_folder, capsys):
    files.write_table(patients.generate(200, seed=7), "t.csv")
    (in_folder / "p.yaml").write_text(PATIENTS)
    for verb in ("publish",) if kind.is_written else ("publish", "stream"):
        status = status_of([verb, "t.csv", "-p", "p.yaml", "-o", f"out{kind}", "-q"])
        said = capsys.readouterr().err
        assert status == (0 if kind.is_written else 2), said
        assert kind.is_written == (in_folder / f"out{kind}").exists()
        assert kind.is_written or f"'out{kind}': {kind.label} is read, and not written" in said
    if kind.is_written:
        assert status_of(["audit", f"out{kind}", "-p", "p.yaml", "--original", "t.csv", "-q"]) == 0


@of_all
def test_each_is_published_as_delimited_text_is(kind, in_folder):
    frame = patients.generate(200, seed=7)
    (in_folder / "p.yaml").write_text(PATIENTS)
    outputs = []
    for path in (written(".csv", frame), written(kind, frame)):
        for memory in ((), ("--memory", "1GB")):
            asked = ["publish", path, "-p", "p.yaml", "-o", "out.csv", "-q", "--replace", *memory]
            assert status_of(asked) == 0
            outputs.append((in_folder / "out.csv").read_bytes())
    assert len({*outputs}) == 1


@of_all
def test_what_is_named_as_another_format_is_said(kind, in_folder):
    """Where its files have a beginning of their own."""
    start = Path(written(kind)).read_bytes()
    if not kind.magic:
        assert begun_as(start) is None
        return
    for suffix in (".csv", ".arrow" if kind != ".arrow" else ".parquet"):
        (in_folder / f"odd{suffix}").write_bytes(start)
        with pytest.raises(InputError, match=f"holds {kind.label}.* ends in|name it {kind}"):
            files.read(f"odd{suffix}")


@of_all
@pytest.mark.parametrize("share", [0, 0.5])
def test_half_a_file_and_an_empty_one_are_refused_in_one_line(kind, in_folder, share):
    content = Path(written(kind)).read_bytes()
    (in_folder / f"cut{kind}").write_bytes(content[: int(len(content) * share)])
    if share and kind.is_text:  # half a text may be a text
        return
    with pytest.raises(InputError, match="cut") as refused:
        files.read(f"cut{kind}")
    assert len(refused.value.said) == 1


@of_all
def test_a_file_of_other_bytes_shows_none_of_them(kind, in_folder):
    (in_folder / f"odd{kind}").write_bytes(kind.magic + b"\0\xffSECRET" * 99)
    with pytest.raises(InputError) as refused:
        files.read(f"odd{kind}")
    assert "SECRET" not in str(refused.value)


@of_all
def test_each_has_a_label_and_a_media_type(kind):
    assert kind.label
    assert "/" in kind.media_type


@pytest.mark.parametrize("verb", ["publish", "stream", "audit", "profile"])
def test_an_unknown_suffix_is_refused_with_all_formats_in_every_verb(verb, in_folder, shoal):
    (in_folder / "in.xyz").write_text("a,b\n1,2\n")
    (in_folder / "p.yaml").write_text(PATIENTS)
    rest = [] if verb == "profile" else ["-p", "p.yaml"]
    rest += ["-o", "out.csv"] if verb in ("publish", "stream") else []
    said = shoal(verb, "in.xyz", *rest, status=2).err
    written = [suffix for suffix in SUFFIXES if suffix != ".orc"]
    text = f"unknown format; use one of {', '.join(written)}, or to read only .orc"
    assert f"file 'in.xyz': {text}" in said
    with pytest.raises(InputError, match="unknown format"):
        _ = Location("out.xyz").kind_to_write


def test_a_name_in_capitals_and_packed_text_are_known():
    assert Location("A.ORC").kind == ".orc"
    Path("a.CSV.gz").write_bytes(gzip.compress(b"a\n1\n"))
    assert files.read("a.CSV.gz").frame["a"].to_list() == ["1"]


def test_orc_repeats_no_more_than_may_be_unpacked():
    written(".orc", pl.DataFrame({"long": ["x" * 4000] * 20_000}))
    with pytest.raises(InputError, match="unpacks to more than 60 MB"):
        files.read("in.orc", reading=Reading(unpacked=60_000_000))


def test_two_columns_of_one_name_in_orc_are_said():
    pa, orc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.orc")
    orc.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), "twice.orc")
    with pytest.raises(InputError, match="two columns have one name"):
        files.read("twice.orc")


def write_texts_to_orc(texts, path):
    """A table of ORC whose texts are these bytes, whatever characters they stand for."""
    pa, orc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.orc")
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    buffers = pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(texts))
    cells = pa.StringArray.from_buffers(len(texts), *buffers)
    orc.write_table(pa.table({"age": range(len(texts)), "city": cells}), path)


@pytest.mark.parametrize("command", ["policy init in.orc -o q.yaml", "publish in.orc -p p.yaml"])
def test_orc_whose_texts_are_not_utf_8_is_refused_in_one_line(command, in_folder, capfd):
    write_texts_to_orc([b"Z\xfcrich", b"Bern"] * 20, "in.orc")
    (in_folder / "p.yaml").write_text(PATIENTS)
    assert status_of([*command.split(), *(["-o", "out.csv"] if "publish" in command else [])]) == 2
    said = capfd.readouterr().err
    assert said == "shoal: file 'in.orc': is not a complete orc file; write it again\n"


def test_orc_with_moments_that_nanoseconds_do_not_hold_is_refused(in_folder):
    pa, orc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.orc")
    never = pa.array([datetime(9999, 12, 31)], pa.timestamp("us"))
    orc.write_table(pa.table({"age": [30], "until": never}), "far.orc")
    with pytest.raises(InputError, match=r"'far.orc': holds moments before 1677 or after 2262"):
        files.read("far.orc")


PIECES = st.sampled_from([b"Z\xfcrich", b"\xc3", b"\xed\xa0\x80"]) | st.text(max_size=5).map(
    str.encode
)


@given(texts=st.lists(st.binary(max_size=5) | PIECES, min_size=1, max_size=9))
def test_orc_is_read_where_its_texts_are_utf_8_and_else_refused(tmp_path_factory, texts):
    path = str(tmp_path_factory.getbasetemp() / "texts.orc")
    write_texts_to_orc(texts, path)
    try:
        meant = [text.decode() for text in texts]
        assume("\0" not in "".join(meant))
    except UnicodeDecodeError:
        with pytest.raises(InputError, match="is not a complete orc file"):
            files.read(path)
    else:
        assert files.read(path).frame["city"].to_list() == meant


MUCH = 1_000_000
"""Bytes that the columns of a small file of ORC unpack to, and more."""
FLAT = ("text", "one text", "bytes", "struct")


def much_of(kind):
    """A column that takes few bytes of a file, and `MUCH` where it is read."""
    pa = pytest.importorskip("pyarrow")
    long = ["x" * (MUCH // 25)] * 60
    ints = pa.array([[0] * MUCH] + [[]] * 59, pa.list_(pa.int8()))
    return {
        "text": pa.array(long),
        "one text": pa.array(["x" * 2 * MUCH] + [""] * 59),
        "bytes": pa.array([text.encode() for text in long]),
        "struct": pa.StructArray.from_arrays([pa.array(range(60)), pa.array(long)], ["n", "x"]),
        "list": ints,
        "lists in lists": pa.array([[[0] * MUCH]] + [[]] * 59, pa.list_(pa.list_(pa.int8()))),
        "map": pa.array(
            [[("a", "x" * 1000)] * 2000] + [[]] * 59, pa.map_(pa.string(), pa.string())
        ),
        "list in struct": pa.StructArray.from_arrays([ints], ["x"]),
    }[kind]


NESTED = ("list", "lists in lists", "map", "list in struct")


@pytest.mark.parametrize("kind", FLAT + NESTED)
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("compression", ["uncompressed", "zstd"])
def test_orc_is_judged_before_it_is_unpacked(monkeypatch, kind, place, compression):
    pa, orc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.orc")
    columns = [("age", pa.array(range(60))), ("sex", pa.array(["f", "m"] * 30))]
    columns.insert(place, ("x", much_of(kind)))
    orc.write_table(pa.table(dict(columns)), "in.orc", compression=compression)
    needless = Reading(kept=frozenset({"age", "sex"}), unpacked=MUCH)
    if kind in NESTED:
        source = files.read("in.orc", reading=needless)
        assert source.unread == ("x",)
        assert source.frame.columns == [name for name, _ in columns]
        assert source.frame["age"].to_list() == list(range(60))
        assert source.frame["x"].to_list() == [None] * 60
    monkeypatch.setattr("pyarrow.dataset.dataset", None)
    says = "unpacks to more than 1 MB" if kind in ("text", "one text") else "column 'x' holds"
    with pytest.raises(InputError, match=says):
        files.read("in.orc", reading=Reading(unpacked=MUCH))
    if kind in FLAT:
        with pytest.raises(InputError, match="unpacks to more than 1 MB"):
            files.read("in.orc", reading=needless)


@pytest.mark.parametrize("kept", [{"age"}, {"sex"}, {"age", "sex"}, set(), {"none"}])
def test_orc_without_any_other_column_has_its_records(kept):
    pa, orc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.orc")
    columns = {"x": pa.array([[1]] * 9000), "": pa.array([[]] * 9000, pa.list_(pa.int8()))}
    orc.write_table(pa.table(columns), "in.orc")
    source = files.read("in.orc", reading=Reading(kept=frozenset(kept)))
    assert (source.frame.shape, source.unread) == ((9000, 2), ("x", "column_1"))


@pytest.mark.parametrize("length", [0, 1, 32, 33, 200])
def test_short_texts_of_orc_are_not_counted(length):
    frame = pl.DataFrame({"a": ["x" * length] * 4000, "b": [b"x" * length] * 4000})
    path, own = written(".orc", frame), 2 * 2 * 4000
    own += 2 * 4000 * max(length - 32, 0)
    kept = frozenset({"a"})
    assert files.read(path, reading=Reading(kept=kept, unpacked=20 * own)).frame.height == 4000
    with pytest.raises(InputError, match="unpacks to more than"):
        files.read(path, reading=Reading(kept=kept, unpacked=own - 1))


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "zstd", "lz4"])
@pytest.mark.parametrize("length", [1, 100_000, 2_000_000])
def test_the_end_of_orc_is_judged_before_it_is_unpacked(monkeypatch, compression, length):
    """It holds the first and the last of all texts."""
    pa, orc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.orc")
    table = pa.table({"a": ["x" * length]})
    orc.write_table(table, "in.orc", compression=compression, compression_block_size=1 << 16)
    reading = Reading(unpacked=8 * length + (1 << 18))
    assert files.read("in.orc", reading=reading).frame.height == 1
    monkeypatch.setattr("pyarrow.orc.ORCFile", None)
    with pytest.raises(InputError, match="unpacks to more than"):
        files.read("in.orc", reading=Reading(unpacked=2 * length))


@given(data=st.data())
def test_the_end_of_orc_may_hold_any_bytes(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "end.orc"
    if not path.exists():
        write_texts_to_orc([b"a", b"b"] * 20, str(path))
    content = bytearray(path.read_bytes())
    end = data.draw(st.integers(1, 60))
    content[-end:] = data.draw(st.binary(max_size=60))
    odd = path.with_name("odd.orc")
    odd.write_bytes(content)
    with pytest.raises(InputError, match=r"complete orc file|unpacks to more"):
        files.read(str(odd))
