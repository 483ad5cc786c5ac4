"""Past memory: the bytes and the certificate of any other run, or a refusal by name."""

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal as library
from sample_policies import content_of
from shoal.auditor import in_parts
from shoal.auditor.audit import audit_file
from shoal.auditor.verify import verify
from shoal.connectors import coded_files
from shoal.connectors.location import FRAME
from shoal.data import cores, room
from shoal.errors import InfeasibleError, InputError
from shoal.policy.binding import past_memory
from shoal.policy.policy import Policy
from shoal.tables.publish import publish_file
from shoal.tables.request import PublishRequest
from small_memory import make_every_table_too_large
from thorough import long_but, long_where

LIMITS = (20_000, 200_000, 10_000_000)
UNLIKE = ("seconds", "scale", "date")
HIERARCHY = {"bins": {"width": 5, "start": 0, "factor": 2, "levels": 4}}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is too large for memory, and everything is done in many small parts."""
    make_every_table_too_large(monkeypatch)


def rows(count: int = 400) -> pl.DataFrame:
    """People with ties everywhere, numbers written in two ways, and breaks inside of cells."""
    rng = np.random.default_rng(5)
    ages = rng.integers(5, 60, count)
    odd = rng.random(count) < 0.1
    texts = [f"{a:02d}" if two else str(a) for a, two in zip(ages, odd, strict=True)]
    ills = ["flu", "angina", 'a "b",\nc', "mumps"]
    return pl.DataFrame(
        {
            "age": texts,
            "sex": rng.choice(["f", "m"], count),
            "zip": [f"1{n:04d}" for n in rng.integers(0, 60, count) * 7],
            "ill": rng.choice(ills, count, p=[0.4, 0.3, 0.2, 0.1]),
            "cost": rng.integers(0, 50, count).astype(str),
            "ward": [None if lacks else "north" for lacks in rng.random(count) < 0.2],
            "person": [f"p{n}" for n in rng.integers(0, count * 2 // 3, count)],
        }
    )


K3 = {"model": "k-anonymity", "k": 3}
ROUNDED = {"name": "rounded-partition", "refine": "none"}
ROLES: dict[str, Any] = {
    "age": {"role": "quasi", "domain": [0, 100]},
    "sex": "quasi",
    "zip": {"role": "quasi", "hierarchy": {"prefix": 5}},
    "ill": "sensitive",
    "cost": "plain",
    "ward": "plain",
    "person": "drop",
}


def policy(method: Any = None, roles: Any = None, **more: Any) -> Policy:
    words = {"method": method or ROUNDED} | more
    return Policy.from_dict(content_of(ROLES | (roles or {}), 3, **words))


TREE = {"age": {"role": "quasi", "hierarchy": HIERARCHY}}
METHODS = {
    "rounded": policy(),
    "paper": policy({"name": "rounded-partition", "preset": "paper"}),
    "input": policy(render={"order": "input"}),
    "two k": policy(promises=[K3, K3 | {"k": 4, "attributes": ["age", "sex"]}]),
    "mondrian": policy({"name": "mondrian"}),
    "children": policy({"name": "mondrian", "trees": "children", "cut": "nearest"}),
    "datafly": policy({"name": "datafly"}, TREE),
    "full-domain": policy({"name": "full-domain"}, TREE, label="ill"),
    "tds": policy({"name": "tds"}, TREE, label="ill"),
}


def certified(certificate: Any) -> dict[str, Any]:
    content = json.loads(certificate.to_json())
    return {key: value for key, value in content.items() if key not in UNLIKE}


def published(table: Path, asked: Policy, out: Path, limit: int | None = None) -> tuple[bytes, Any]:
    request = PublishRequest(trace=f"{out}.trace", replace=True)
    with room.using(limit):
        certificate = publish_file(str(table), asked, str(out), request).certificate
    assert ("memory" in certificate["scale"]) == (limit is not None)
    return out.read_bytes(), certified(certificate)


def audited(out: Path, asked: Policy, table: Path) -> list[Any]:
    """The certificates of an audit beside the original, and of one of the file alone."""
    beside = audit_file(str(out), asked, str(table), trace_path=f"{out}.trace").certificate
    assert (beside["scale"].get("parts", 1) > 1) == (room.limit() is not None)
    return [certified(beside), certified(audit_file(str(out), asked).certificate)]


def verified(out: Path, asked: Policy, table: Path) -> list[Any]:
    return [verify(out), verify(out, policy=asked, original=table, trace=f"{out}.trace")]


def alike_within(limits: Iterable[int], found: Callable[[], Any]) -> Any:
    """What is found, which is the same where every table is too large for memory."""
    whole = found()
    with pytest.MonkeyPatch.context() as patch:
        make_every_table_too_large(patch)
        for limit in limits:
            with room.using(limit):
                assert found() == whole
    return whole


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    rows().write_csv(path, line_terminator="\r\n")
    path.write_bytes(path.read_bytes()[:-2])  # without the last break
    return path


@pytest.mark.parametrize(
    "name", long_where(lambda name: name not in ("rounded", "mondrian"), METHODS)
)
def test_any_limit_gives_the_same_bytes_and_the_same_certificate(name, table, tmp_path, request):
    limits = LIMITS if name == "rounded" else LIMITS[1:2]
    if name in ("full-domain", "tds", "datafly"):  # which search rows that several records share
        pl.concat([rows()] * 4).write_csv(table)
        limits = LIMITS[2:]
    asked = METHODS[name]
    whole = published(table, asked, tmp_path / "out.csv")
    request.getfixturevalue("tiny")
    for limit in limits:
        for threads in (1, 3):
            with cores.using(threads):
                assert published(table, asked, tmp_path / "out.csv", limit) == whole


OUT_OF = [("in.csv.gz", "out.tsv"), ("in.parquet", "out.csv.gz"), ("in.csv.gz", "out.parquet")]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "out"), OUT_OF)
def test_other_formats_in_and_out(kind, out, tmp_path, request):
    source = tmp_path / kind
    frame = rows().with_columns(pl.col("cost").cast(pl.Int64) - 3)
    if kind == "in.parquet":
        frame.write_parquet(source)
    else:
        source.write_bytes(gzip.compress(frame.write_csv().encode()))
    whole = published(source, METHODS["rounded"], tmp_path / out)
    request.getfixturevalue("tiny")
    assert published(source, METHODS["rounded"], tmp_path / out, LIMITS[1]) == whole


@pytest.mark.parametrize("few", [1, 2, 3, 30])
def test_records_without_a_value_are_suppressed_alike(few, table, tmp_path):
    """With fewer than k of them, their sensitive values are hidden, too."""
    lacks = pl.int_range(pl.len()) % (400 // few) == 7
    rows().with_columns(age=pl.when(~lacks).then("age")).write_csv(table)
    asked = policy(missing="suppress")
    for out in (tmp_path / "out.csv", tmp_path / "out.parquet"):
        alike_within(LIMITS[1:2], lambda out=out: published(table, asked, out, room.limit()))


@pytest.mark.parametrize("count", [3, 5, 6])
def test_tables_of_one_class_and_of_two(count, table, tmp_path):
    rows(count).write_csv(table)
    asked, out = METHODS["rounded"], tmp_path / "out.csv"
    alike_within(LIMITS[:1], lambda: published(table, asked, out, room.limit()))


def test_too_few_people_are_refused_alike(tiny, tmp_path, table):
    rows(2).write_csv(table)
    with pytest.raises(InfeasibleError, match="k = 3 asked, 2 subjects"):
        published(table, METHODS["rounded"], tmp_path / "out.csv", LIMITS[1])
    assert [*tmp_path.iterdir()] == [table]


# Audits

AUDITED = [
    K3,
    {"model": "k-anonymity", "k": 5, "attributes": ["age", "sex"]},
    {"model": "t-closeness", "attributes": ["ill", "cost"], "t": 0.3},
    {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "entropy"},
    {"model": "beta-likeness", "attributes": ["ill"], "beta": 2},
    {"model": "delta-disclosure", "attributes": ["ill"], "delta": 3},
    {"model": "p-sensitive-k-anonymity", "attributes": ["ill"], "k": 3, "p": 2},
    {"model": "subject-share", "share": 0.5},
    {"model": "average-risk", "threshold": 0.2},
    {"model": "population-uniqueness", "threshold": 0.2, "fraction": 0.1},
]


def audited_policy(person: str) -> Policy:
    roles = {"person": person, "cost": {"role": "sensitive", "domain": [0, 1000]}}
    return policy(roles=roles, promises=AUDITED, label="ill")


@pytest.mark.parametrize("person", long_but("subject", ["drop", "subject"]))
@pytest.mark.parametrize(
    "planted",
    [{}, {(17, "age"): "99", (203, "ill"): "measles", (31, "sex"): "*"}],
    ids=["honest", "a cell that does not cover the truth, a changed value, a record alone"],
)
def test_an_audit_within_a_limit_finds_what_any_audit_finds(person, planted, table, tmp_path):
    out = tmp_path / "out.csv"
    published(table, METHODS["rounded"], out)
    plant(out, planted)
    asked = audited_policy(person)
    whole = alike_within(LIMITS[:2], lambda: audited(out, asked, table))
    assert any(whole[0]["faults"].values()) == bool(planted)


def plant(out: Path, cells: dict[tuple[int, str], str]) -> None:
    frame = pl.read_csv(out, infer_schema=False)
    for place, cell in cells.items():
        frame[place] = cell
    frame.write_csv(out)


@pytest.mark.parametrize("shown", ["mean", "both"])
def test_means_are_compared_with_all_values_within_a_limit(shown, table, tmp_path):
    asked = policy(roles={"age": {"role": "quasi", "domain": [0, 100], "render": shown}})
    out = tmp_path / "out.csv"
    published(table, asked, out)
    plant(out, {(0, "age"): "99"})
    assert alike_within(LIMITS[1:2], lambda: audited(out, asked, table))[0]["faults"]["uncovered"]


def test_people_whom_several_columns_name_are_counted_within_a_limit(table, tmp_path):
    floor = (pl.int_range(pl.len()) % 3).cast(pl.String)
    frame = rows().with_columns(floor=floor, storey=floor + " ")
    frame.write_csv(table)
    roles = {"person": "identifier", "storey": "identifier", "floor": "drop"}
    asked, out = policy(roles=roles, subject=["person", "storey"]), tmp_path / "out.csv"
    _, stated = published(table, asked, out)
    found = alike_within(LIMITS[:2], lambda: audited(out, asked, table))[0]
    assert found["subjects"] == stated["subjects"] == frame.select("person", "floor").n_unique()
    assert found["classes"] == stated["classes"]


def test_verify_within_a_limit_checks_what_it_always_checks(table, tmp_path):
    out, asked = tmp_path / "out.csv", METHODS["rounded"]
    published(table, asked, out)
    whole = alike_within(LIMITS[1:2], lambda: verified(out, asked, table))
    assert all(check.ok is not False for checks in whole for check in checks)
    out.write_bytes(out.read_bytes().replace(b",north", b",south", 1))
    whole = alike_within(LIMITS[1:2], lambda: verified(out, asked, table))
    assert [check.name for check in whole[1] if check.ok is False]


def test_what_the_input_s_order_gives_away_is_found_within_a_limit_and_by_every_audit(
    table, tmp_path
):
    rows().sort(pl.col("cost").cast(pl.Int64)).write_csv(table)
    asked, out = METHODS["input"], tmp_path / "out.csv"
    people = policy(roles={"person": "subject"}, render={"order": "input"})

    def order_kept(certificate: Any) -> list[str]:
        return [one["text"] for one in certificate["warnings"] if one["code"] == "order-kept"]

    stated = order_kept(
        alike_within(LIMITS[1:2], lambda: published(table, asked, out, room.limit()))[1]
    )
    found = alike_within(
        LIMITS[1:2], lambda: [order_kept(audited(out, one, table)[0]) for one in (asked, people)]
    )
    assert found[0] == stated != found[1]
    assert len(found[0]) == len(found[1]) == 1
    (checked,) = [one for one in verified(out, asked, table)[1] if one.name == "measured again"]
    assert checked.ok


def test_what_joins_rows_or_households_is_found_within_a_limit_as_without(
    table, tmp_path, monkeypatch
):
    monkeypatch.setenv("SHOAL_PSEUDONYM_KEY", "a secret of this test")
    person = pl.col("person").str.slice(1).cast(pl.Int64)
    of_people = {"home": pl.format("h{}", person // 3), "weight": 1 + person % 7}
    rows().with_columns(**of_people, ward=pl.format("w{}", person % 200)).write_csv(table)
    roles = {
        "person": "subject",
        "cost": "drop",
        "home": {"role": "household", "pseudonym": "keyed"},
        "weight": "weight",
    }
    asked, out = policy(roles=roles), tmp_path / "out.csv"
    published(table, asked, out)
    whole = alike_within(LIMITS[:1], lambda: audited(out, asked, table))
    codes = [{warning["code"] for warning in one["warnings"]} for one in whole]
    assert codes[0] >= {"rows-linked", "household-joined"}
    assert "household-joined" in codes[1]
    assert whole[0]["individual_risk"]["household"]["mean"] > 0
    checks = alike_within(LIMITS[:1], lambda: verified(out, asked, table))
    assert all(check.ok is not False for check in checks[1])
    make_every_table_too_large(monkeypatch)
    monkeypatch.setattr(in_parts, "JOINED_BYTES", 300)
    too_little = pytest.raises(InputError, match="too little for this table; allow 1 MB or more")
    with room.using(LIMITS[0]), too_little:
        audit_file(str(out), asked)


def test_a_sample_published_within_a_limit_is_measured_and_verified_as_without(table, tmp_path):
    rows().with_columns(weight=2.5 + pl.int_range(pl.len()) % 9).write_csv(table)
    asked, out = policy(roles={"weight": "weight", "person": "household"}), tmp_path / "out.csv"
    whole = alike_within(LIMITS[1:2], lambda: published(table, asked, out, room.limit()))
    assert whole[1]["individual_risk"]["household"]["mean"] > 0
    checks = alike_within(LIMITS[1:2], lambda: verified(out, asked, table))
    assert all(check.ok is not False for check in checks[1])
    with pytest.raises(InputError, match="too little for this table; allow 1 MB or more"):
        alike_within(LIMITS[:1], lambda: published(table, asked, out, room.limit()))


# Refusals

DIVERSE = {"model": "l-diversity", "attribute": "ill", "l": 2}
MEANS = {"role": "quasi", "domain": [0, 100], "render": "mean"}
REFUSED = {
    "refine: full moves": policy({"name": "rounded-partition", "refine": "full"}),
    "refine: auto moves": policy({"name": "rounded-partition"}),
    "method 'mdav' holds all records": policy({"name": "mdav"}),
    "ties stable sort": policy({"name": "rounded-partition", "ties": "stable"}),
    "promise 'l-diversity' is asked of every cut": policy(promises=[K3, DIVERSE]),
    "formulas escape looks": policy(write={"formulas": "escape"}),
    "'age': means are taken": policy(roles={"age": MEANS}),
    "people who have several records": policy(roles={"person": "subject"}),
    "different rows": policy({"name": "datafly"}),
}
OF_THE_DATA = ("people who have several records", "different rows", "refine: auto moves")


@pytest.mark.parametrize("why", REFUSED)
def test_what_needs_the_whole_table_is_refused_by_name(why, tiny, table, tmp_path, monkeypatch):
    """Before anything is read, where the policy says it."""
    if why not in OF_THE_DATA:
        monkeypatch.setattr(coded_files, "read_coded", lambda *_: pytest.fail("it was read"))
    with pytest.raises(InputError, match=f"memory: .*{why}") as refused:
        published(table, REFUSED[why], tmp_path / "out.csv", LIMITS[1])
    assert [*tmp_path.iterdir()] == [table]
    if why not in OF_THE_DATA:
        refused.match(r"whole table in memory; .* or allow [0-9]+ MB or more$")


def test_a_limit_that_is_too_small_is_refused_with_the_figure(monkeypatch, table, tmp_path):
    monkeypatch.setattr(past_memory, "HELD_BYTES", 1e9)
    for limit, said in (("200", "300"), ("350", "701")):
        with pytest.raises(InputError, match=f"memory: {limit} MB is too little .* {said} MB or"):
            published(table, METHODS["rounded"], tmp_path / "out.csv", int(limit) * 10**6)
        monkeypatch.setattr(past_memory, "RECORD_BYTES", 10**6)


@pytest.mark.parametrize(
    ("limit", "needed", "said"),
    [
        (1000, 3e8, "1.0 kB is too little for this table; allow 300 MB or more"),
        (600_000, 3e8, "600 kB is too little for this table; allow 300 MB or more"),
        (1_500_000_000, 1.6001e9, "1.5 GB is too little for this table; allow 1601 MB or more"),
    ],
)
def test_a_limit_is_said_in_its_own_unit_and_what_is_asked_is_enough(limit, needed, said):
    with pytest.raises(InputError, match=f"^memory: {said}$"):
        past_memory.require_memory(limit, needed)


def test_a_column_of_too_many_texts_is_refused_by_name(tiny, table, tmp_path):
    rows(2_000).with_columns(ward=pl.int_range(pl.len()).cast(pl.String)).write_csv(table)
    with pytest.raises(InputError, match=r"memory: column 'ward' has \d+ different texts"):
        published(table, METHODS["rounded"], tmp_path / "out.csv", LIMITS[0])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            rows().with_columns(
                age=pl.when(pl.int_range(400).is_in([3, 250])).then(pl.lit("x")).otherwise("age")
            ),
            "rows 4, 251",
        ),
        (rows().drop("ill"), ""),
    ],
    ids=["cells", "rows"],
)
def test_what_is_wrong_is_reported_with_the_numbers_of_the_whole_file(content, said, table):
    ragged = "" if said else "1,f\n"
    table.write_text(content.write_csv() + ragged)

    def refused() -> str:
        with pytest.raises(InputError) as found:
            publish_file(str(table), METHODS["rounded"], "out.csv")
        return str(found.value)

    assert said in alike_within(LIMITS[1:2], refused)


def test_a_full_disk_leaves_nothing(tiny, table, tmp_path, monkeypatch):
    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InputError, match="TMPDIR"):
        published(table, METHODS["rounded"], tmp_path / "out.csv", 3_000)
    assert [*tmp_path.iterdir()] == [table]


KILLED = """
import sys, time
from shoal.policy.binding import past_memory
from shoal.data import room
from shoal.tables.publish import publish_file
from shoal.tables.request import PublishRequest
from shoal.policy.policy import Policy
past_memory.BASE = past_memory.RECORD_BYTES = 0
past_memory.HELD_BYTES = 1e9
def stop(stage):
    if sys.argv[1] in stage:
        print("here", flush=True)
        time.sleep(60)
with room.using(8_000):
    publish_file("in.csv", Policy.of("policy.json"), "out.csv", PublishRequest(progress=stop))
"""


def write_policy(folder: Path) -> str:
    content = METHODS["rounded"].model.model_dump_json(exclude_unset=True)
    (folder / "policy.json").write_text(content)
    return str(folder / "policy.json")


@pytest.mark.parametrize(
    "stage", long_but("finding classes", ["finding classes", "measuring range by range"])
)
def test_a_killed_run_leaves_nothing_to_read(stage, table, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    write_policy(tmp_path)
    running = subprocess.Popen(
        [sys.executable, "-c", KILLED, stage],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == b"here\n"
    assert "(deleted)" in Path(f"/proc/{running.pid}/maps").read_text()  # it lies on disk
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdout.close()
    assert [*place.iterdir()] == []
    assert not [*tmp_path.glob("out.csv*")]


# Commands


def test_sizes_and_what_is_none():
    sizes = {"700MB": 700_000_000, "2GiB": 2 << 30, "1.5 gb": 1_500_000_000, "64": 64}
    assert {size: room.bytes_of(size) for size in sizes} == sizes
    for wrong in ("", "many", "-1GB", "1XB", "5%"):
        with pytest.raises(InputError, match="is not a size"):
            room.bytes_of(wrong)


def test_the_verbs_take_the_option(table, tmp_path, shoal):
    asked, out = write_policy(tmp_path), str(tmp_path / "out.csv")
    more = ("-p", asked, "--memory", "2GB", "--quiet")
    assert shoal("publish", table, "-o", out, *more).status == 0
    assert shoal("audit", out, "--original", table, *more).status == 0
    assert shoal("verify", out, *more).status == 0
    assert shoal("audit", out, "-p", asked, "--memory", "lots").status == 2
    refused = shoal("verify", out, "--memory", "200MB")
    assert refused.status == 2, "it was ignored"
    assert "200 MB is too little for this table; allow 300 MB" in refused.err


def test_a_release_past_memory_is_summed_up_and_what_reads_whole_tables_is_refused(
    tiny, table, tmp_path, shoal
):
    out, more = str(tmp_path / "out.csv"), ("-p", write_policy(tmp_path), "--memory", "200KB")

    def refused(*command: str) -> bool:
        done = shoal(*command, *more)
        return done.status == 2 and "needs the whole table in memory" in done.err

    for given in (("--report", "r.html"), ("--attack", "linkability")):
        assert refused("publish", table, "-o", out, *given)
    assert not Path(out).exists()
    done = shoal("publish", table, "-o", out, *more, status=0)
    assert f"wrote {out} and {out}.certificate.json\n" in done.err
    assert shoal("audit", out, "--original", table, *more).status == 0
    assert shoal("verify", out, *more).status == 0
    for verb, *given in (("audit", "--report", "r.html"), ("attack",), ("audit", "--downstream")):
        assert refused(verb, out, "--original", table, *given)


# From file to file in Python

ASKED = METHODS["rounded"]


def test_a_limit_changes_neither_the_release_nor_what_is_measured(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, small = tmp_path / "out.csv", tmp_path / "small.csv"
    whole = library.publish_file(table, ASKED, out, threads=1)
    audited = certified(library.audit_file(out, ASKED, table))
    checks = library.verify(out, policy=ASKED, original=table)
    make_every_table_too_large(monkeypatch)
    within = library.publish_file(table, ASKED, small, memory=LIMITS[1])
    assert small.read_bytes() == out.read_bytes()
    assert certified(within) == certified(whole)
    assert within["scale"]["memory"] == LIMITS[1]
    limited = library.audit_file(out, ASKED, table, memory=LIMITS[1])
    assert audited.pop("faults") == {"unmatched": 0}  # which is not judged within a limit
    assert certified(limited) == audited
    assert limited["scale"]["parts"] > 1
    assert library.verify(out, policy=ASKED, original=table, memory=f"{LIMITS[1]}") == checks
    assert room.limit() is None


def test_every_option_of_the_command_is_there_for_files(table: Path, tmp_path: Path) -> None:
    plan, trace = tmp_path / "plan.json", tmp_path / "t.jsonl"
    asked = {"plan": plan, "explain": True, "trace": trace}
    certificate = library.publish_file(table, METHODS["datafly"], tmp_path / "out.csv", **asked)
    assert "explanation" in certificate
    assert plan.exists()
    assert library.audit_file(tmp_path / "out.csv", METHODS["datafly"], table, trace=trace).holds
    with pytest.raises(TypeError, match="'memry'; did you mean 'memory'"):
        library.publish_file(table, ASKED, tmp_path / "out.csv", memry="1GB")


def test_warnings_are_python_warnings_too(table: Path, tmp_path: Path) -> None:
    with pytest.warns(library.ReleaseWarning) as shown:
        certificate = library.publish_file(table, ASKED, tmp_path / "out.csv", threads=1)
    assert [str(one.message) for one in shown] == [str(one) for one in certificate.warnings]
    assert {one.filename for one in shown} == {__file__}


def test_what_no_size_no_engine_and_no_file_is_called_is_refused(
    table: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="is not a size"):
        library.audit_file(table, ASKED, memory="much")
    with pytest.raises(InputError, match="engine 'flink': is not known"):
        library.publish_file(table, ASKED, tmp_path / "out.csv", engine="flink")
    with pytest.raises(InputError, match="is not made of Parquet files"):
        library.audit_file(table, ASKED, engine="spark")
    with pytest.raises(InputError, match="null character"):
        library.publish_file(table, ASKED, FRAME)


def test_a_file_that_somebody_wrote_meanwhile_stays(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"

    def appear(*_: object) -> None:
        if len(list(tmp_path.iterdir())) > 1:  # a draft was begun
            out.write_text("years of work")

    with pytest.raises(InputError, match="replace"):
        library.publish_file(table, ASKED, out, progress=appear)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]
    assert out.read_text() == "years of work"
