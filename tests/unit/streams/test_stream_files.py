"""`shoal stream` on files: sinks, bad records, checkpoints, what is refused."""

import json
import re
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock
from zlib import crc32

import numpy as np
import polars as pl
import pytest
import yaml

import shoal
from sample_policies import PURCHASES, content_of
from shoal.auditor.verify import verify
from shoal.cli.main import status_of
from shoal.errors import ANOTHER_STREAM
from shoal.samples import purchases
from shoal.streams.checkpoint import FORMAT
from shoal.streams.run import Run
from shoal.streams.stream_status import StatusWriter, stream_status
from stream_cases import policy_of, stop_at, stream_of
from thorough import long_but

STREAM = "stream p.csv -p policy.yaml -q".split()
AUDIT = "audit out.csv -p policy.yaml --original p.csv --trace t.jsonl --json -q".split()
LYING = [word.replace("t.jsonl", "lie.jsonl") for word in AUDIT]

CURE = (
    "give it those that the first line names, and quote cells that hold a separator; a new column"
    " needs a new stream (whoever is in both may be singled out)"
)


def open_shop(folder):
    purchases.generate(3000, 1).write_csv(folder / "p.csv")
    (folder / "policy.yaml").write_text(PURCHASES.replace("delta: 1000", "delta: 500"))
    return folder


@pytest.fixture
def shop(folder):
    """A folder with p.csv and policy.yaml, and the shell standing in it."""
    return open_shop(folder)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The shop's stream, published once with a trace."""
    folder = open_shop(tmp_path_factory.mktemp("published"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert status_of([*STREAM, "-o", "out.csv", "--trace", "t.jsonl"]) == 0
    return folder


@pytest.fixture
def traced(published, folder):
    """A copy of it, to be changed, and the shell standing in it."""
    shutil.copytree(published, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr("shoal.connectors.feeds.PIECE", 20_000)
    monkeypatch.setattr("shoal.connectors.feeds.SLICE", 333)


@contextmanager
def changed_lines(name="p.csv"):
    """The lines of the table, as bytes, to be changed in place."""
    lines = Path(name).read_bytes().splitlines()
    yield lines
    Path(name).write_bytes(b"\n".join(lines) + b"\n")


def reworded(line, cell):
    """The line with another last cell."""
    return b",".join([*line.split(b",")[:-1], cell])


def letters(output="out.csv"):
    lines = Path(f"{output}.dead-letters.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_stream_writes_rows_certificate_and_trace(traced):
    out, trace = pl.read_csv("out.csv"), pl.read_ndjson("t.jsonl")
    certificate = json.loads((traced / "out.csv.certificate.json").read_text())
    assert out.columns == ["age", "income", "city", "channel", "category", "amount"]
    assert sorted(trace["seq"]) == sorted(trace["row"]) == list(range(3000))
    assert certificate["records"]["in"] == certificate["records"]["out"] == len(out) == 3000
    assert certificate["promises"][0]["measured"] >= 10
    assert certificate["stream"]["delay"]["max"] <= 499
    assert not (traced / "out.csv.dead-letters.jsonl").exists()


def test_the_audit_of_a_stream_with_its_trace_finds_no_fault(traced, shoal):
    faults = json.loads(shoal(*AUDIT, status=0).out)["faults"]
    assert len(faults) == 17
    assert not any(faults.values())


def test_a_stream_beside_its_trace_is_verified_by_rows(traced, shoal):
    """The trace was said to need the original, which was given."""
    given = ("-p", "policy.yaml", "--original", "p.csv", "--trace", "t.jsonl")
    found = shoal("verify", "out.csv", *given, status=0)
    assert "to count people, run 'shoal audit RELEASED -p POLICY --original" in found.out


def test_the_audit_of_a_stream_with_a_reference_takes_domains_from_it(shop, shoal):
    policy = yaml.safe_load((shop / "policy.yaml").read_text())
    for name in ("age", "income"):
        del policy["attributes"][name]["domain"]
    (shop / "policy.yaml").write_text(yaml.safe_dump(policy))
    wide = pl.read_csv("p.csv", infer_schema=False)[:300]
    wide = wide.with_columns(age=pl.int_range(pl.len()), income=pl.int_range(pl.len()) * 10_000)
    wide.select(reversed(wide.columns)).write_csv("wide.csv")
    traced = ("-o", "out.csv", "--trace", "t.jsonl")
    (shop / "wide.yaml").write_text(yaml.safe_dump(policy | {"reference": "wide.csv"}))
    assert shoal(*STREAM, *traced, "-p", "wide.yaml").status == 0
    found = shoal(*AUDIT, status=0)
    assert not {"stale", "missed"} & set(json.loads(found.out)["faults"])
    assert "name that table in the policy (reference)" in found.err
    found = shoal(*AUDIT, "-p", "wide.yaml", status=0)
    faults = json.loads(found.out)["faults"]
    assert len(faults) == 17
    assert not any(faults.values())


def test_suppressed_records_are_no_class_to_the_audit(shop, shoal):
    """A few people whom no cluster can hold in the end are starred, sensitive cells included."""
    frame = pl.read_csv("p.csv", infer_schema=False)
    pl.concat(
        [frame[:500], frame[500:502].with_columns(age=pl.lit("95"), income=pl.lit("200000"))]
    ).write_csv("p.csv")
    stated = ("--set", "delta=500", "--set", "strict_release=true")
    assert shoal(*STREAM, "-o", "out.csv", "--trace", "t.jsonl", *stated).status == 0
    kinds = pl.read_ndjson("t.jsonl")["kind"]
    found = shoal(*AUDIT)
    certificate = json.loads(found.out)
    assert certificate["records"]["suppressed"] == (kinds == "suppress").sum() > 0
    assert not any(certificate["faults"].values())
    assert found.status == 0


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda t: t.with_columns(pl.col("seq").reverse()), "uncovered"),
        (lambda t: t.with_columns(pl.col("class").fill_null(0) * 0), "loose"),
        (lambda t: t.with_columns(emitted=pl.col("emitted") + 500), "late"),
        (lambda t: t.with_columns(kind=pl.lit("reuse")), "reused_before_made"),
        (lambda t: t.with_columns(release="seq"), "weak_first"),
        (lambda t: t.with_columns(**{"class": "seq"}), "weak_new"),
        (lambda t: t.with_columns(kind=pl.lit("suppress")), "not_starred"),
        (lambda t: t.with_columns(emitted=pl.col("emitted") + 1500), "overheld"),
        (lambda t: t.with_columns(release=-pl.col("release")), "out_of_order"),
    ],
)
def test_the_audit_notices_a_trace_that_is_not_honest(traced, shoal, change, fault):
    change(pl.read_ndjson("t.jsonl")).write_ndjson("lie.jsonl")
    assert json.loads(shoal(*LYING, status=1).out)["faults"][fault] > 0


@pytest.mark.parametrize("people", [pl.lit("C1"), pl.col("seq")])
def test_a_trace_that_names_other_people_than_the_source_is_refused(traced, shoal, people):
    pl.read_ndjson("t.jsonl").with_columns(subject=people).write_ndjson("lie.jsonl")
    found = shoal(*LYING, status=2)
    assert found.err.startswith("shoal: trace: its people are not those of the source;")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seq", 0.5),
        ("subject", None),
        ("class", True),
        ("kind", None),
        ("row", "0"),
        ("emitted", 0.5),
    ],
)
def test_a_trace_of_other_kinds_of_values_is_reported_in_a_line(traced, shoal, name, value):
    first, *rest = (traced / "t.jsonl").read_text().splitlines()
    changed = json.dumps(json.loads(first) | {name: value})
    (traced / "t.jsonl").write_text("\n".join([changed, *rest]))
    assert shoal(*AUDIT, status=2).err.startswith("shoal: trace 't.jsonl': ")


def test_huge_numbers_of_classes_need_no_room(traced, shoal):
    pl.read_ndjson("t.jsonl").with_columns(pl.col("class") + 10**15).write_ndjson("t.jsonl")
    assert shoal(*AUDIT).status == 0


@pytest.mark.parametrize("missing_values", [[""], ["n/a", ""], ["n/a"]])
def test_an_audit_agrees_with_a_stream_of_people_whose_every_value_is_the_mark(
    folder, shoal, missing_values
):
    policy_of("fads", delta=60).save("policy.yaml")
    asked = yaml.safe_load(Path("policy.yaml").read_text()) | {"missing_values": missing_values}
    Path("policy.yaml").write_text(yaml.safe_dump(asked))
    lacking = pl.int_range(pl.len()) % 5 == 0
    quasi = pl.when(lacking).then(pl.lit("*")).otherwise(pl.col("age", "pay", "town"))
    stream_of(400).with_columns(quasi.name.keep()).write_csv("p.csv")
    assert shoal(*STREAM, "-o", "out.csv", "--trace", "t.jsonl").status == 0
    assert shoal(*AUDIT).status == 0


@pytest.mark.parametrize(
    ("made_with", "claimed", "fault"),
    [
        ("", "tau: 0.05", "stale"),  # clusters were used again that lose too much
        ("tau: 0.0", "tau: 1.0", "missed"),  # more clusters should have been at hand
        ("render: {order: input}", "", "unshuffled"),
        (
            "promises: [{model: k-anonymity, k: 300}]",
            "promises: [{model: k-anonymity, k: 2}]",
            "needless",
        ),
    ],
)
def test_the_audit_notices_a_stream_that_was_not_made_by_the_rule(
    shop, shoal, made_with, claimed, fault
):
    def write(name, setting):
        policy = yaml.safe_load((shop / "policy.yaml").read_text())
        policy["promises"] = [{"model": "k-anonymity", "k": 10}]
        changed = yaml.safe_load(setting) or {}
        policy["method"] |= {n: changed.pop(n) for n in ("tau", "c0") if n in changed}
        (shop / name).write_text(yaml.safe_dump(policy | changed))

    write("made.yaml", made_with)
    write("claimed.yaml", claimed)
    assert shoal(*STREAM, "-o", "out.csv", "--trace", "t.jsonl", "-p", "made.yaml").status == 0
    assert not any(json.loads(shoal(*AUDIT, "-p", "made.yaml").out)["faults"].values())
    assert json.loads(shoal(*AUDIT, "-p", "claimed.yaml").out)["faults"][fault] > 0


@pytest.mark.parametrize(
    "suffix", long_but(".parquet", ".csv .csv.gz .tsv .jsonl .jsonl.gz .parquet .arrow".split())
)
@pytest.mark.parametrize(
    "checkpoint", [pytest.param((), marks=pytest.mark.long), ("--checkpoint", "ck")]
)
def test_every_format_of_sink_holds_the_same_rows(shop, shoal, small_pieces, suffix, checkpoint):
    assert shoal(*STREAM, "-o", "plain.csv").status == 0
    assert shoal(*STREAM, "-o", f"out{suffix}", *checkpoint).status == 0
    plain = pl.read_csv("plain.csv", infer_schema=False)
    from shoal.connectors import files

    found = files.read(f"out{suffix}").frame
    assert found.with_columns(pl.all().cast(pl.String)).equals(plain)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("checkpoint", [(), ("--checkpoint", "ck")])
def test_what_leaves_at_the_end_joins_the_rows_of_the_last_record(shop, shoal, suffix, checkpoint):
    """Both are of one step where the last line has no end, and Parquet can't be appended to."""
    (shop / "p.csv").write_bytes((shop / "p.csv").read_bytes().rstrip(b"\n"))
    assert shoal(*STREAM, "-o", "plain.csv").status == 0
    assert shoal(*STREAM, "-o", f"out{suffix}", *checkpoint).status == 0
    found = pl.read_parquet("out.parquet") if suffix == ".parquet" else pl.read_ipc("out.arrow")
    assert found.equals(pl.read_csv("plain.csv", infer_schema=False))


def test_quotes_line_breaks_and_empty_cells_pass_through_in_any_pieces(shop, shoal, monkeypatch):
    frame = pl.read_csv("p.csv", infer_schema=False)
    odd = pl.Series("amount", ['a "quoted" word', "two\nlines", "", None, "a, b", "ü"]).gather(
        [i % 6 for i in range(3000)]
    )
    frame.with_columns(odd).write_csv("p.csv")
    shoal(*STREAM, "-o", "whole.csv")
    monkeypatch.setattr("shoal.connectors.feeds.PIECE", 777)
    shoal(*STREAM, "-o", "pieces.csv")
    assert (shop / "whole.csv").read_bytes() == (shop / "pieces.csv").read_bytes()
    found = pl.read_csv("whole.csv", infer_schema=False)["amount"]
    assert sorted(found.fill_null("")) == sorted(odd.fill_null(""))


@pytest.fixture
def bad_lines(shop):
    with changed_lines() as lines:
        cells = lines[11].split(b",")
        lines[11] = b",".join([*cells[:2], b"not a number", *cells[3:]])
        lines[21] = lines[21] + b",one too many"
        lines[31] = b",".join([b"", *lines[31].split(b",")[1:]])
        lines[41] = re.sub(b",(shop|web|app|phone),", b",elsewhere,", lines[41])
        lines[51] = lines[51][:-3] + b"\xff\xfe1"
        lines[61] = reworded(lines[61], b"a\0b")


def test_bad_records_are_set_aside_by_place_and_reason_without_their_cells(
    shop, bad_lines, shoal, small_pieces
):
    found = shoal(
        *STREAM, "-o", "out.csv", "--trace", "t.jsonl", "--dead-letters", "bad.jsonl", status=0
    )
    stated = [json.loads(line) for line in (shop / "bad.jsonl").read_text().splitlines()]
    assert [(b["record"], b["reason"]) for b in stated] == [
        (10, "attribute 'age': no number"),
        (20, f"has 9 cells, not 8; {CURE}"),
        (30, "has no subject"),
        (40, "attribute 'channel': missing from its hierarchy"),
        (50, "is not UTF-8"),
        (60, "attribute 'amount': holds a null character, which no table can"),
    ]
    certificate = json.loads((shop / "out.csv.certificate.json").read_text())
    assert certificate["records"]["rejected"] == 6
    assert certificate["records"]["out"] == 2994
    assert {10, 20, 30, 40, 50, 60}.isdisjoint(pl.read_ndjson("t.jsonl")["seq"])
    assert "not a number" not in found.err + (shop / "bad.jsonl").read_text()


@pytest.mark.parametrize("piece", [997, 20_000, 8 << 20])
def test_a_quote_that_was_left_open_costs_one_record(shop, shoal, monkeypatch, piece):
    """Whether a later quote closes it, or none does until the end."""
    monkeypatch.setattr("shoal.connectors.feeds.PIECE", piece)
    with changed_lines() as lines:
        parts = lines[11].split(b",")
        lines[11] = b",".join([*parts[:3], b'"' + parts[3], *parts[4:]])
        lines[21] = reworded(lines[21], b'"two\nlines"')  # closes nothing but itself
        lines[2901] = lines[2901].replace(b",", b',"', 1)
    assert shoal(*STREAM, "-o", "out.csv", "--trace", "t.jsonl").status == 0
    assert letters() == [{"record": at, "reason": "a quote is left open"} for at in (10, 2900)]
    assert sorted(pl.read_ndjson("t.jsonl")["seq"]) == [
        i for i in range(3000) if i not in (10, 2900)
    ]
    assert "two\nlines" in set(pl.read_csv("out.csv", infer_schema=False)["amount"])
    shoal(*AUDIT, status=0)


def test_a_record_of_more_lines_than_asked_is_a_quote_left_open(shop, shoal):
    with changed_lines() as lines:
        lines[5] = reworded(lines[5], b'"1\n2\n3"')
    assert shoal(*STREAM, "-o", "a.csv", "--read", "record_lines=3").status == 0
    assert not (shop / "a.csv.dead-letters.jsonl").exists()
    assert shoal(*STREAM, "-o", "b.csv", "--read", "record_lines=2").status == 0
    assert [one["reason"] for one in letters("b.csv")] == [
        "a quote is left open",
        *[f"has 1 cells, not 8; {CURE}"] * 2,
    ]


def test_the_audit_reads_the_source_as_its_stream_did(shop, shoal):
    with changed_lines() as lines:
        lines[5] = reworded(lines[5], b'"' + b"1\n" * 150 + b'"')
    traced = ("-o", "out.csv", "--trace", "t.jsonl")
    assert shoal(*STREAM, *traced, "--read", "record_lines=200").status == 0
    audit = ("audit", "out.csv", "-p", "policy.yaml", "--original", "p.csv", "-q")
    assert shoal(*audit, "--trace", "t.jsonl", "--read", "record_lines=200").status == 0
    assert "record_lines" in shoal(*audit, "--trace", "t.jsonl").err
    publish = ("publish", "p.csv", "-p", "policy.yaml", "-o", "other.csv", "--method", "mondrian")
    found = shoal(*publish, "--read", "record_lines=200")
    assert "'publish' can't follow 'record_lines'; leave it out, or use 'stream'" in found.err


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_line_without_end_is_passed_over_and_not_held(shop, shoal, monkeypatch, suffix):
    if suffix == ".jsonl":
        pl.read_csv("p.csv", infer_schema=False).write_ndjson("p.jsonl")
    with changed_lines(f"p{suffix}") as lines:
        lines.insert(100 + (suffix == ".csv"), b"x" * 300_000)
    monkeypatch.setattr("shoal.connectors.feeds.PIECE", 20_000)
    monkeypatch.setattr("shoal.connectors.feeds.LONGEST", 1 << 16)
    run = ("stream", f"p{suffix}", "-p", "policy.yaml", "-q", "-o", "out.csv", "--checkpoint", "ck")
    assert shoal(*run).status == 0
    assert letters() == [{"record": 100, "reason": "is a line longer than 0 MB"}]
    assert json.loads((shop / "out.csv.certificate.json").read_text())["records"]["out"] == 3000


def test_on_bad_stop_ends_the_stream_and_writes_nothing(shop, bad_lines, shoal):
    found = shoal(*STREAM, "-o", "out.csv", "--dead-letters", "stop", status=2)
    assert "record 10 (the first is 0): attribute 'age': no number" in found.err
    assert not (shop / "out.csv").exists()
    assert shoal(*STREAM, "-o", "out.csv", "--dead-letters", "./stop").status == 0
    assert len((shop / "stop").read_text().splitlines()) == 6


def test_more_bad_records_than_are_listed_are_counted(shop, shoal):
    with changed_lines() as lines:
        lines[1:26] = [line + b",one too many" for line in lines[1:26]]
    done = shoal(*STREAM, "-o", "out.csv", "--dead-letters", "stop", "-q", "--json")
    rows, stated = json.loads(done.out)["error"]["rows"], done.err.splitlines()
    assert rows == [[row] for row in range(1, 21)] + [[*range(21, 26)]]
    assert stated[0].startswith("shoal: record 0 (the first is 0): ")
    assert len(stated) == 21
    assert stated[-1] == "shoal: 5 more records do not fit"


def test_a_checkpoint_of_another_policy_is_refused(shop, shoal, monkeypatch):
    run = (*STREAM, "-o", "out.csv", "--checkpoint", "ck")
    assert shoal(*run).status == 0
    named = (shop / "policy.yaml").read_text() + "reference: p.csv\n"
    (shop / "named.yaml").write_text(named)
    traced = "other outputs (without --trace)"
    for more, differing in (
        (("--set", "delta=700"), "another policy (method)"),
        (("--read", "record_lines=7"), "another --read record_lines"),
        (("--k", "20", "--trace", "t.jsonl"), f"another policy (promises), {traced}"),
        (("--trace", "t.jsonl"), traced),
        (("-p", "named.yaml"), "another policy (reference), other hierarchies, another reference"),
    ):
        found = shoal(*run, *more, status=2)
        assert f"was made under {differing}; resume with what it was begun with" in found.err
    stated = shoal(*run, "-o", "other.csv").err
    assert f"since the stream wrote it as '{shop / 'out.csv'}', or the checkpoint" in stated
    assert "whoever is in both may be singled out" in stated
    assert shoal(*run).status == 0  # finished: the certificate is written again, nothing else
    for version, status in (("0.1.9", 0), ("0.2.0", 2)):
        monkeypatch.setattr("shoal.streams.publishing.VERSION", version)
        assert shoal(*run).status == status
    assert "was made under another version of Shoal; resume" in shoal(*run).err
    head, _, rest = (shop / "ck" / "CURRENT").read_bytes().partition(b"\n")[2].partition(b"\n")
    head = head.replace(FORMAT.encode(), b"shoal.checkpoint/3")
    (shop / "ck" / "CURRENT").write_bytes(b"%d\n%s\n%s" % (crc32(head), head, rest))
    assert "checkpoint: was written by another version of Shoal" in shoal(*run).err


def test_a_checkpoint_refuses_another_source_and_a_changed_sink(shop, shoal):
    run = (*STREAM, "-o", "out.csv", "--checkpoint", "ck")
    shoal(*run)
    rows = (shop / "out.csv").read_bytes()
    for changed in (rows[:-100], rows[:-100] + rows[-100:].upper()):
        (shop / "out.csv").write_bytes(changed)
        assert "output 'out.csv': was moved, shortened or changed since" in shoal(*run).err
    (shop / "out.csv").unlink()
    assert "output 'out.csv': was moved, shortened or changed since" in shoal(*run).err
    (shop / "out.csv").write_bytes(rows)
    (shop / "p.csv").write_bytes((shop / "p.csv").read_bytes()[:-50])
    assert "is not the one that the checkpoint was made with" in shoal(*run).err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-o - --checkpoint ck", "standard output can't be resumed"),
        ("-o out.csv --follow", "needs --checkpoint"),
        ("-o p.csv", "is also read"),
        ("-o out.csv --trace out.csv", "named twice"),
        ("-o out.csv --trace out.csv.certificate.json", "certificate or the list of bad records"),
        ("-o out.csv --trace out.csv.certificate.json.sig", "certificate or the list of bad"),
        ("-o out.csv --trace out.csv.dead-letters.jsonl", "the list of bad records"),
        ("-o out.csv --trace .out.csv.lock", "give each a file of its own"),
        ("-o out.csv --on-bad stop", "write '--dead-letters stop'"),
        ("-o out.csv --deadline inf", "is not a number of seconds"),
        ("-o out.csv --method mondrian", "serves 'shoal publish'"),
        ("-o out.csv --method crp", "serves 'shoal republish' only; choose one of"),
        ("-o out/", "a folder gets file after file; give --checkpoint"),
        ("-o out.csv --write roll=day", "--write roll: is for files of a folder, without"),
        ("-o out/ --checkpoint ck --write roll=week", "must be a size, such as 16GB, or 'day'"),
        ("-o outs --checkpoint ck", "name a file, such as 'outs.csv', or a folder: 'outs/'"),
        ("-o out.csv/ --checkpoint ck", "is a folder; name it without a file's suffix"),
        ("-o out/ --checkpoint out/ck", "one lies in another; give each a folder of its own"),
        ("-o out/ --checkpoint ck --trace out/t", "lies in the stream, which holds nothing else"),
        ("-o full/ --checkpoint ck", "output 'full': exists, but the checkpoint is new"),
    ],
)
def test_what_can_t_be_is_said_before_any_work(shop, shoal, words, said):
    Path("full").mkdir()
    Path("full/mine.txt").touch()
    assert said in shoal(*STREAM, *words.split(), status=2).err
    assert {path.name for path in shop.iterdir()} == {"full", "p.csv", "policy.yaml"}


def test_a_policy_that_follows_the_data_needs_a_reference(shop, shoal):
    policy = (shop / "policy.yaml").read_text().replace(", domain: [16, 95]", "")
    (shop / "policy.yaml").write_text(policy)
    found = shoal(*STREAM, "-o", "out.csv", status=2)
    assert "attribute 'age': a stream must know its least and greatest value" in found.err
    pl.read_csv("p.csv").rename({"age": "years", "city": "town"}).write_csv("other.csv")
    (shop / "other.yaml").write_text(policy + "reference: other.csv\n")
    found = shoal(*STREAM, "-o", "out.csv", "-p", "other.yaml", status=2)
    assert "reference: has other columns than the stream: it lacks 'age', 'city'" in found.err
    assert "and it also has 'years', 'town'; give" in found.err
    (shop / "named.yaml").write_text(policy + "reference: p.csv\n")
    assert shoal(*STREAM, "-o", "out.csv", "-p", "named.yaml").status == 0


def test_the_report_shows_the_stream_over_time_and_needs_nothing_else(shop, shoal, small_pieces):
    assert shoal(*STREAM, "-o", "out.csv", "--report", "r.html").status == 0
    page = (shop / "r.html").read_text()
    assert "A stream of 3,000 records" in page
    assert page.count("<svg") == 4
    assert "Every promise holds" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_the_report_of_nothing_published_says_so(shop, shoal):
    shoal(
        *STREAM, *"-o out.csv --set leftovers=drop --k 400 --set delta=400 --report r.html".split()
    )
    assert "A stream of 3,000 records" in (shop / "r.html").read_text()


def close_to(shop, attribute, t):
    """The policy with t-closeness in place of l-diversity; every record its own person."""
    asked = f"{{model: t-closeness, attributes: [{attribute}], t: {t}}}"
    text = (shop / "policy.yaml").read_text()
    for old, new in (
        ("k: 10", "k: 5"),
        ("customer: {role: subject}", "customer: {role: drop}"),
        ("{model: l-diversity, attribute: category, l: 3, kind: distinct}", asked),
        ("amount:   {role: plain}", "amount:   {role: sensitive, type: number}"),
    ):
        text = text.replace(old, new)
    (shop / "policy.yaml").write_text(text)


@pytest.mark.parametrize("method", long_but("fads", ["fads", "castle"]))
def test_t_closeness_is_kept_to_a_declared_reference(shop, shoal, method):
    """In every class, though the stream drifts away from the reference."""
    close_to(shop, "category", 0.2)
    more = f"-o out.csv --method {method} --set delta=500 --trace t.jsonl --json"
    run = (*STREAM, *more.split())
    assert "a stream has none; name a table to compare with" in shoal(*run).err
    purchases.generate(2000, 9).write_csv("reference.csv")
    named = (shop / "policy.yaml").read_text() + "reference: reference.csv\n"
    (shop / "named.yaml").write_text(named)
    found = shoal(*run, "-p", "named.yaml", status=0)
    (closeness,) = [p for p in json.loads(found.out)["promises"] if p["model"] == "t-closeness"]
    assert closeness["holds"]
    assert 0 < closeness["measured"] <= 0.2
    audit = ("audit", "out.csv", "-p", "policy.yaml", "--original", "p.csv", "--trace", "t.jsonl")
    assert "measured to the published file itself" in shoal(*audit).err
    stated = shoal(*audit, "-p", "named.yaml", "--json")
    assert closeness in json.loads(stated.out)["promises"]
    faults = json.loads(stated.out)["faults"]
    # the policy's method is fads
    assert not any(count for name, count in faults.items() if name != "late")


@pytest.mark.parametrize("subject", ["subject", "drop"])
def test_joint_closeness_is_kept_to_the_reference_that_the_policy_names(shop, shoal, subject):
    close_to(shop, "category, channel", "0.4, joint: true")
    policy = yaml.safe_load((shop / "policy.yaml").read_text())
    policy["attributes"] |= {"customer": {"role": subject}, "channel": {"role": "sensitive"}}
    (shop / "policy.yaml").write_text(yaml.safe_dump(policy | {"reference": "reference.csv"}))
    (shop / "reference.csv").write_bytes((shop / "p.csv").read_bytes())
    run = (*STREAM, "-o", "out.csv", "--trace", "t.jsonl", "--json")
    found = shoal(*run, status=0)
    (closeness,) = [p for p in json.loads(found.out)["promises"] if p["model"] == "t-closeness"]
    assert closeness["joint"]
    assert closeness["to"] == "reference"
    assert 0 < closeness["measured"] <= 0.4
    assert closeness in json.loads(shoal(*AUDIT).out)["promises"]
    if subject == "drop":  # without people to count, the published file tells all
        alone = shoal("audit", "out.csv", "-p", "policy.yaml", "--json", "-q")
        assert closeness in json.loads(alone.out)["promises"]
    shown = pl.read_csv("p.csv", infer_schema=False)
    lacking = shown.filter(
        (pl.col("category") != shown["category"][0]) | (pl.col("channel") != shown["channel"][0])
    )
    lacking.write_csv("reference.csv")
    assert shoal(*STREAM, "-o", "lacking.csv").status == 0
    said = "attributes 'category', 'channel': values that the reference does not show together"
    assert said in {one["reason"] for one in letters("lacking.csv")}


def test_a_reference_is_refused_where_there_is_no_stream(shop, shoal):
    (shop / "policy.yaml").write_text((shop / "policy.yaml").read_text() + "reference: p.csv\n")
    found = shoal(
        "publish", "p.csv", "-p", "policy.yaml", "-o", "out.csv", "--method", "mondrian", status=2
    )
    assert "'reference' is what a stream is compared with" in found.err


def test_a_value_that_the_reference_does_not_show_is_set_aside(shop, shoal):
    close_to(shop, "amount", 1.0)
    records = pl.read_csv("p.csv", infer_schema=False)
    records.filter(pl.col("amount") != records["amount"][-1]).write_csv("reference.csv")
    policy = (shop / "policy.yaml").read_text() + "reference: reference.csv\n"
    (shop / "policy.yaml").write_text(policy)
    assert shoal(*STREAM, "-o", "out.csv").status == 0
    stated = (shop / "out.csv.dead-letters.jsonl").read_text()
    assert "attribute 'amount': a value that the reference does not show" in stated


def test_the_certificate_by_release_agrees_with_the_whole_on_what_it_tells(shop, shoal):
    whole = json.loads(shoal(*STREAM, "-o", "a.csv", "--json").out)
    by_release = json.loads(shoal(*STREAM, "-o", "b.csv", "--json", "--measure", "release").out)
    assert by_release["classes"]["min"] <= whole["classes"]["min"]
    assert by_release["utility"]["gcp"] == pytest.approx(whole["utility"]["gcp"], abs=1e-9)
    assert by_release["output"] == whole["output"]
    assert by_release["records"] == whole["records"]
    for released in ("a.csv", "b.csv"):
        checks = {check.name: check.ok for check in verify(released, policy="policy.yaml")}
        assert False not in checks.values()
        assert [checks[name] for name in ("policy", "columns", "rows")] == [True] * 3


def test_python_gives_the_rows_of_the_command(shop):
    assert status_of([*STREAM, "-o", "out.csv"]) == 0
    frame = pl.read_csv("p.csv", infer_schema=False)
    stream, rows = shoal.stream("policy.yaml"), []
    for at in range(0, 3000, 700):
        rows.append(stream.push(frame[at : at + 700]))
        state, stream = stream.snapshot(), shoal.stream("policy.yaml")
        stream.restore(state)
    rows.append(stream.flush())
    released = pl.concat([r for r in rows if r.height]).write_csv().encode()
    assert released == (shop / "out.csv").read_bytes()


def test_python_takes_none_of_a_batch_with_a_bad_record(shop):
    stream = shoal.stream("policy.yaml", method="fads", delta=200)
    frame = pl.read_csv("p.csv", infer_schema=False)
    said = r"record 2 \(the first is 0\): attribute 'city': missing from its"
    third = pl.int_range(pl.len()) == 2
    with pytest.raises(shoal.InputError, match=said):
        stream.push(frame.with_columns(city=pl.when(third).then(pl.lit("X")).otherwise("city")))
    assert stream.waiting == 0
    assert stream.push(frame[:100]).height == 0
    assert stream.waiting == 100


def test_python_takes_a_batch_without_records_as_a_quiet_moment(shop):
    frame = pl.read_csv("p.csv", infer_schema=False)
    stream, plain = shoal.stream("policy.yaml", delta=200), shoal.stream("policy.yaml", delta=200)
    batches = (frame[:0], frame[:500], frame[:0], frame[500:900])
    rows = [*(stream.push(batch) for batch in batches), stream.flush()]
    assert [r.columns for r in rows] == [rows[-1].columns] * 5
    assert pl.concat(rows).equals(pl.concat([plain.push(frame[:900]), plain.flush()]))


def test_python_refuses_a_snapshot_of_another_policy(shop):
    stream = shoal.stream("policy.yaml", delta=200)
    stream.push(pl.read_csv("p.csv", infer_schema=False)[:100])
    with pytest.raises(shoal.CheckpointError, match="another policy"):
        shoal.stream("policy.yaml", delta=300).restore(stream.snapshot())


def test_a_cluster_that_the_end_forgets_may_still_be_used_before_it(shop, shoal):
    purchases.generate(600, 7).head(299).write_csv("short.csv")
    asked = "stream short.csv -p policy.yaml -q --k 3 --set delta=60 -o out.csv".split()
    assert shoal(*asked).status == 0


@pytest.mark.parametrize("checkpoint", [(), ("--checkpoint", "ck")])
def test_a_stream_without_records_names_its_columns(shop, shoal, checkpoint):
    (shop / "p.csv").write_text((shop / "p.csv").read_text().splitlines()[0] + "\n")
    assert shoal(*STREAM, "-o", "out.csv", *checkpoint).status == 0
    assert (shop / "out.csv").read_text() == "age,income,city,channel,category,amount\n"


def lacking(state, start):
    return {name: value for name, value in state.items() if not name.startswith(start)}


@pytest.mark.parametrize(
    "change",
    [
        dict,
        lambda state: [],
        lambda state: lacking(state, "policy"),
        lambda state: state | {"place": "x"},
        lambda state: state | {"tally": 5},
        lambda state: state | {"tally": state["tally"] | {"read": "many"}},
        lambda state: state | {"step": None},
        lambda state: state | {"lengths": {"nothing": 3}},
        lambda state: lacking(state, "core/known"),
        lambda state: lacking(state, "core/publisher"),
    ],
)
def test_a_checkpoint_that_can_not_be_understood_is_damaged(shop, shoal, change):
    from shoal.streams import checkpoint

    assert shoal(*STREAM, "-o", "out.csv", "--checkpoint", "ck").status == 0
    current = shop / "ck" / "CURRENT"
    state = change(checkpoint.unpacked(current.read_bytes()))
    empty = b'{"format": "shoal.checkpoint/2", "entries": []}'
    current.write_bytes(checkpoint.packed(state) if state else b"%d\n%s\n" % (crc32(empty), empty))
    found = shoal(*STREAM, "-o", "out.csv", "--checkpoint", "ck")
    if change is dict:  # as it was
        assert found.status == 0
    else:
        assert found.status not in (0, 70)
        assert "checkpoint 'ck'" in found.err


def test_a_checkpoint_whose_snapshot_is_a_folder_is_damaged(shop, shoal):
    (shop / "ck" / "CURRENT").mkdir(parents=True)
    found = shoal(*STREAM, "-o", "out.csv", "--checkpoint", "ck")
    assert found.status not in (0, 70)
    assert "is damaged" in found.err


@pytest.mark.parametrize("sink", ["out.csv", "out.parquet"])
def test_without_a_checkpoint_nothing_is_written_where_the_whole_breaks_a_promise(
    shop, shoal, monkeypatch, sink
):
    """No stream is known to come to this: each release was measured, and the whole is."""
    from shoal.streams import certify

    def broken(*stated):
        found = measured(*stated)
        promises = [p | {"holds": False} for p in found.certificate["promises"]]
        return replace(found, certificate=found.certificate.extended(promises=promises))

    measured = certify.measure
    monkeypatch.setattr(certify, "measure", broken)
    before = sorted(path.name for path in shop.iterdir())
    assert "withheld" in shoal(*STREAM, "-o", sink, status=1).err
    assert sorted(path.name for path in shop.iterdir()) == before


def test_records_behind_the_end_of_a_stream_are_not_passed_over_in_silence(shop, shoal):
    run = (*STREAM, "-o", "out.csv", "--checkpoint", "ck")
    assert shoal(*run).status == 0
    before = (shop / "out.csv").read_bytes()
    text = (shop / "p.csv").read_text()
    (shop / "p.csv").write_text(text + text.splitlines()[-1] + "\n")
    found = shoal(*run, status=2)
    assert "has ended, and the source has grown since" in found.err
    assert ANOTHER_STREAM in found.err
    assert (shop / "out.csv").read_bytes() == before
    assert "with --follow when it begins" in shoal(*run, "--follow", status=2).err
    assert stream_status("ck")["state"] == "ended", "the refused run changed nothing"


@pytest.mark.parametrize("checkpoint", [(), ("--checkpoint", "state")])
def test_a_checkpoint_and_a_trace_are_their_owners_alone(shop, shoal, checkpoint):
    """Even where somebody else had made them."""
    (shop / "state").mkdir(mode=0o755)
    (shop / "t.jsonl").touch(mode=0o644)
    assert shoal(*STREAM, "-o", "out.csv", "--trace", "t.jsonl", *checkpoint).status == 0
    kept = (path for path in (shop / "state").iterdir() if path.name != "dead-letters")
    private = [shop / "t.jsonl", *kept]
    assert len(private) >= 4 or not checkpoint
    assert all(path.stat().st_mode & 0o077 == 0 for path in private)
    assert (shop / "out.csv").stat().st_mode & 0o044 == 0o044


def test_nothing_can_be_pushed_behind_the_end(shop):
    """Nor in another process that takes the ended stream up."""
    stream, records = shoal.stream("policy.yaml"), pl.read_csv("p.csv", infer_schema=False)
    stream.push(records[:600])
    stream.flush()
    later = shoal.stream("policy.yaml")
    later.restore(stream.snapshot())
    for ended in (stream, later):
        with pytest.raises(shoal.InputError, match="has ended with flush"):
            ended.push(records[600:])


def test_nobody_is_counted_twice_because_an_id_became_a_decimal(shop):
    """1 in one batch and 1.0 in the next would be two people of a class."""
    records = pl.read_csv("p.csv", infer_schema=False).with_columns(customer=pl.int_range(pl.len()))
    stream = shoal.stream("policy.yaml")
    stream.push(records[:5])
    with pytest.raises(shoal.InputError, match="'customer': names people by decimals"):
        stream.push(records[:5].cast({"customer": pl.Float64}))


def test_a_batch_of_many_bad_records_is_reported_in_few_lines(shop):
    records = pl.read_csv("p.csv", infer_schema=False).with_columns(age=pl.lit("old"))
    with pytest.raises(shoal.InputError) as found:
        shoal.stream("policy.yaml").push(records)
    assert len(found.value.findings) == 20
    assert found.value.findings[-1] == "2980 more records do not fit"


def test_a_cluster_that_shows_nothing_shows_no_sensitive_value(folder, shoal):
    """Its root is the mark: readers can't tell its rows from suppressed ones, of few perhaps."""
    rng = np.random.default_rng(5)
    town = rng.choice(["a", "b", "c"], 300, p=[0.45, 0.45, 0.1])
    ill = rng.choice(["u", "v", "w"], 300)
    pl.DataFrame({"town": town, "ill": ill}).write_csv("p.csv")
    tree = {"tree": {"*": ["a", "b", "c"]}}
    policy = content_of(
        {"town": {"role": "quasi", "hierarchy": tree}, "ill": {"role": "sensitive"}},
        5,
        {"model": "l-diversity", "attribute": "ill", "l": 2},
        method={"name": "castle", "delta": 20},
    )
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    assert shoal(*STREAM, "-o", "out.csv", "--trace", "t.jsonl").status == 0
    out = pl.read_csv("out.csv", infer_schema=False)
    kinds = pl.read_ndjson("t.jsonl").sort("row")["kind"]
    starred = out["town"] == "*"
    assert 0 < starred.sum() < len(out)
    assert (starred & (kinds == "new")).any()
    assert ((out["ill"] == "*") == starred).all()
    records = json.loads((folder / "out.csv.certificate.json").read_text())["records"]
    assert records["suppressed"] == records["withheld"] == starred.sum()
    stated = ("audit", "out.csv", "-p", "policy.yaml", "-q", "--json")
    assert shoal(*stated).status == 0
    found = shoal(*stated, "--original", "p.csv", "--trace", "t.jsonl")
    assert not any(json.loads(found.out)["faults"].values())
    # one value shown, and all of them are a class again
    at = int(starred.arg_max())
    shown = pl.Series([*out["ill"][:at], "u", *out["ill"][at + 1 :]])
    out.with_columns(ill=shown).write_csv("out.csv")
    assert json.loads(shoal(*stated).out)["records"]["withheld"] == 0


def test_a_stream_whose_folder_was_moved_goes_on_and_no_copy_does(
    tmp_path, monkeypatch, shoal, small_pieces
):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    monkeypatch.chdir(open_shop(here))
    assert shoal(*STREAM, "-o", "whole.csv").status == 0
    whole = Path("whole.csv").read_bytes()
    run = (*STREAM, "-o", "out.csv", "--checkpoint", "state", "--trace", "t.jsonl")
    with monkeypatch.context() as stopping:
        stop_at(stopping, 4)
        assert shoal(*run).status == 130
    shutil.copytree(here, there)
    monkeypatch.chdir(there)
    said = shoal(*run)
    assert (said.status, "which is still there" in said.err) == (2, True)
    assert "Where two copies go on, whoever is in both may be singled" in said.err
    shutil.rmtree(here)
    shoal(*run, status=0)
    assert Path("out.csv").read_bytes() == whole


def test_a_stream_resumes_with_other_drop_as_its_dead_letters_say(folder, monkeypatch, shoal):
    monkeypatch.setattr("shoal.streams.run.time.sleep", Mock(side_effect=KeyboardInterrupt))
    lines = [json.dumps(one) for one in PEOPLE]
    lines[100:150] = [line[:-1] + ', "email": "canary"}' for line in lines[100:150]]
    Path("in.jsonl").write_text("".join(f"{line}\n" for line in lines))
    Path("p.json").write_text(json.dumps(DRIFT | {"other": None}))
    stopped = shoal(*DRIFTING, "--follow", status=130)
    assert "50 bad records were set aside; out.csv.dead-letters.jsonl says which" in stopped.err
    assert "has ended:" not in stopped.err
    aside = letters()
    assert [one["record"] for one in aside] == [*range(100, 150)]
    assert all("add 'other: drop' to the policy" in one["reason"] for one in aside)
    Path("p.json").write_text(json.dumps(DRIFT | {"other": "plain"}))
    assert "another policy (other); resume" in shoal(*DRIFTING).err
    Path("p.json").write_text(json.dumps(DRIFT))
    with Path("in.jsonl").open("a") as file:  # what was set aside comes again
        file.write("".join(f"{line}\n" for line in lines[100:150]))
    shoal(*DRIFTING, status=0)
    records = json.loads(Path("out.csv.certificate.json").read_text())["records"]
    assert (records["in"], records["out"], records["rejected"]) == (250, 200, 50)
    assert shoal("verify", "out.csv", "-p", "p.json", "-q").status == 0


@pytest.mark.parametrize("other", [None, "drop"])
def test_a_stream_that_has_ended_sends_what_it_set_aside_to_a_new_one(folder, shoal, other):
    lines = [json.dumps(one) for one in PEOPLE]
    lines[50:] = [line[:-1] + ', "email": "canary"}' for line in lines[50:]]
    Path("in.jsonl").write_text("\n".join(lines))
    Path("p.json").write_text(json.dumps(DRIFT | {"other": None}))
    assert shoal(*DRIFTING).status == 1
    assert "has not ended resumes with it" in letters()[0]["reason"]
    Path("p.json").write_text(json.dumps(DRIFT | {"other": other}))
    again = shoal(*DRIFTING, "-q", status=1)
    assert f"This stream has ended: for those not appended since, {ANOTHER_STREAM}" in again.err
    aside = "\n".join(lines[one["record"]] for one in letters())
    Path("aside.jsonl").write_text(aside)
    Path("p.json").write_text(json.dumps(DRIFT))
    assert shoal("stream", "aside.jsonl", *DRIFTING[2:5], "b.csv", "--checkpoint", "b").status == 0


# Keys of JSON lines that come and go: the policy says which are columns, not the first record

PEOPLE = [
    {"id": f"P{i}", "age": 18 + i % 60, "sex": "MF"[i % 2], "d": "abc"[i % 3]} for i in range(200)
]
DRIFT = content_of(
    {
        "id": "subject",
        "age": {"role": "quasi", "type": "number", "domain": [0, 120]},
        "sex": {"role": "quasi", "order": ["F", "M"]},
        "d": "sensitive",
    },
    5,
    other="drop",
)
DRIFTING = "stream in.jsonl -p p.json -o out.csv --checkpoint state".split()


def without(key):
    return lambda record: {name: cell for name, cell in record.items() if name != key}


@pytest.mark.parametrize(
    ("changed", "at", "other", "aside", "status"),
    [
        (lambda record: record | {"note": "x"}, range(50, 200), "drop", 0, 0),
        (lambda record: record | {"note": "x"}, range(50, 200), "plain", 150, 1),
        (lambda record: record | {"note": "x"}, range(50, 100), "plain", 50, 0),
        (lambda record: record | {"tags": ["a", "b"]}, range(200), "drop", 0, 0),
        (without("age"), [0], "drop", 1, 0),
        (without("age"), [0], "plain", 1, 0),
        (without("d"), range(120, 200), "drop", 80, 0),
        (without("age"), range(200), "drop", 200, 1),
    ],
)
def test_keys_that_come_and_go(folder, shoal, changed, at, other, aside, status):
    lines = [changed(one) if i in {*at} else one for i, one in enumerate(PEOPLE)]
    text = "\n".join(map(json.dumps, lines))
    Path("in.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode())
    Path("p.json").write_text(json.dumps(DRIFT | {"other": other}))
    done = shoal(*DRIFTING, status=status)
    records = json.loads(Path("out.csv.certificate.json").read_text())["records"]
    assert (records["in"], records["rejected"]) == (200, aside)
    look = shoal("stream-status", "state", status=status)
    said = f"{aside} of the last 200 records were set aside"
    said_of_status = f"the source may have changed: {said} and are listed in 'out.csv.dead-letters"
    assert look.out.startswith(said_of_status) == bool(status)
    assert done.err.startswith(f"shoal: {said}") == bool(status)
    if not aside:  # a table of the same lines is read alike
        assert shoal("publish", "in.jsonl", "-p", "p.json", "-o", "whole.csv", "-q").status == 0


@pytest.mark.parametrize("begin", [0, 7])
@pytest.mark.parametrize("of", [lambda name: name, lambda name: {"code": name}])
def test_a_dropped_field_that_may_number_people_is_named(folder, shoal, begin, of):
    """However it is written, also where the first records lack it."""
    attributes = {name: one for name, one in DRIFT["attributes"].items() if name != "id"}
    Path("p.json").write_text(json.dumps(DRIFT | {"attributes": attributes}))
    numbered = [one | {"patient": of(f"P{i // 5:04}")} for i, one in enumerate(PEOPLE)]
    lines = [*map(without("patient"), numbered[:begin]), *numbered[begin:]]
    lines[20]["note"] = "\ud800"
    Path("in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = shoal(*DRIFTING, status=0)
    assert "column 'patient'" in done.err
    assert "0004" not in done.err
    assert "patient" not in Path("out.csv").read_text()


@pytest.mark.parametrize(("n", "where"), [(1999, ""), (3000, "first 2,000 records: ")])
def test_a_finding_about_the_first_records_says_that_it_counts_these_alone(shop, shoal, n, where):
    signs = pl.when(pl.int_range(n) % 10 == 0).then(pl.lit("?")).otherwise("amount")
    pl.read_csv("p.csv", infer_schema=False)[:n].with_columns(amount=signs).write_csv("p.csv")
    done = shoal(*STREAM, "-o", "out.csv", status=0)
    said = f"{where}attribute 'amount': a usual sign for no value stands in 200 records, and is"
    assert f"shoal: {said}" in done.err
    assert said in Path("out.csv.certificate.json").read_text()
    checked = shoal("verify", "out.csv", "-p", "policy.yaml", "--original", "p.csv")
    assert "findings" not in checked.err + checked.out


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("more", [(), ("--checkpoint", "ck")])
def test_a_new_stream_replaces_no_file(shop, shoal, name, more):
    (shop / name).write_text("mine")
    refused = shoal(*STREAM, "-o", name, *more, status=2)
    assert f"output '{name}': " in refused.err
    assert ("A new file begins anew" if more else "name a new file") in refused.err
    assert (shop / name).read_text() == "mine"


def test_a_folder_may_get_a_file_a_day_and_verifies_at_any_time(
    shop, shoal, small_pieces, monkeypatch
):
    """Each commit is on another day, as it seems, than the part before it."""
    monkeypatch.setattr("shoal.streams.run._day", lambda seconds=None: int(seconds is None))
    run = (*STREAM, "-o", "out/", "--checkpoint", "ck", "--write", "roll=day")
    real = StatusWriter.commit
    seen = []

    def look(status, step, counters):
        real(status, step, counters)
        if Path("out/_shoal.json").exists():
            seen.append([check.ok for check in verify("out", policy="policy.yaml")])

    with monkeypatch.context() as watched:
        watched.setattr(StatusWriter, "commit", look)
        assert shoal(*run).status == 0
    assert len(seen) > 3
    assert not any(False in checks for checks in seen)
    manifest = json.loads(Path("out/_shoal.json").read_text())
    assert sum(entry["records"] for entry in manifest["output"]["files"]) == 3000
    assert shoal(*run).status == 0, "it has ended: the manifest is written again"
    assert shoal("audit", "out", "-p", "policy.yaml", "-q").status == 0
    next(Path("out").glob("*.parquet")).unlink()
    said = "put them back, and copy files to other places rather than move them"
    assert f"{said}; or {ANOTHER_STREAM}" in shoal(*run).err


@pytest.mark.parametrize("sink", ["out.csv", "out/", "sqlite:///s.db?table=rows"])
@pytest.mark.parametrize("moment", ["_take_up", "_put_committed"])
def test_a_stream_that_is_stopped_while_it_resumes_resumes_again(
    shop, shoal, small_pieces, monkeypatch, sink, moment
):
    run = (*STREAM, "-o", sink, "--checkpoint", "ck")
    with monkeypatch.context() as watched:
        stop_at(watched, 4)
        assert shoal(*run).status == 130
    with monkeypatch.context() as watched:
        watched.setattr(Run, moment, Mock(side_effect=KeyboardInterrupt))
        assert shoal(*run).status == 130
    assert shoal(*run).status == 0
    assert stream_status("ck")["records"]["published"] == 3000


def test_a_folder_gets_all_published_rows_when_its_stream_is_stopped(
    shop, shoal, small_pieces, monkeypatch
):
    run = (*STREAM, "-o", "out/", "--checkpoint", "ck")
    commit = StatusWriter.commit
    unfiled = []

    def stopped(status, step, counters):
        commit(status, step, counters)
        unfiled.append((status.unfiled, counters.published))
        if step == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as watched:
        watched.setattr(StatusWriter, "commit", stopped)
        assert shoal(*run, "--metrics", "s.prom").status == 130
    assert 0 < unfiled[-1][0] == unfiled[-1][1]
    assert 'shoal_stream_unfiled_records{run="s"} 0' in Path("s.prom").read_text()
    manifest = json.loads(Path("out/_shoal.json").read_text())
    (entry,) = manifest["output"]["files"]
    assert entry["records"] == unfiled[-1][0] == manifest["records"]["out"]
    status = stream_status("ck")
    assert (status["state"], status["records"]["unfiled"]) == ("stopped", 0)
    assert not [*Path("ck/rows").iterdir()]
    assert shoal("verify", "out", "-p", "policy.yaml", "-q").status == 0
    assert shoal(*run).status == 0
    manifest = json.loads(Path("out/_shoal.json").read_text())
    assert sum(entry["records"] for entry in manifest["output"]["files"]) == 3000
    assert shoal("audit", "out", "-p", "policy.yaml", "-q").status == 0
