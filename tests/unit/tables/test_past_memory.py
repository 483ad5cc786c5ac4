"""Past memory: the bytes and the certificate of any other run, or a refusal by name."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from shoal.auditor import in_parts
from shoal.auditor.audit import audit_file
from shoal.auditor.verify import verify
from shoal.cli.main import status_of
from shoal.connectors import coded_files
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


def rows(count: int = 400, seed: int = 5) -> pl.DataFrame:
    """People with ties everywhere, numbers written in two ways, and breaks inside of cells."""
    rng = np.random.default_rng(seed)
    ages = rng.integers(5, 60, count)
    odd = rng.random(count) < 0.1
    texts = [f"{a:02d}" if two else str(a) for a, two in zip(ages, odd, strict=True)]
    return pl.DataFrame(
        {
            "age": texts,
            "sex": rng.choice(["f", "m"], count),
            "zip": [f"1{n:04d}" for n in rng.integers(0, 60, count) * 7],
            "ill": rng.choice(
                ["flu", "angina", 'a "b",\nc', "mumps"], count, p=[0.4, 0.3, 0.2, 0.1]
            ),
            "cost": rng.integers(0, 50, count).astype(str),
            "ward": [None if lacks else "north" for lacks in rng.random(count) < 0.2],
            "person": [f"p{n}" for n in rng.integers(0, count * 2 // 3, count)],
        }
    )


def policy(method: dict[str, Any], **more: Any) -> Policy:
    content = {
        "version": 1,
        "attributes": {
            "age": {"role": "quasi", "domain": [0, 100]},
            "sex": {"role": "quasi"},
            "zip": {"role": "quasi", "hierarchy": {"prefix": 5}},
            "ill": {"role": "sensitive"},
            "cost": {"role": "plain"},
            "ward": {"role": "plain"},
            "person": {"role": "drop"},
        },
        "promises": [{"model": "k-anonymity", "k": 3}],
        "method": method,
        **more,
    }
    return Policy.from_dict(content)


def with_tree(asked: Policy) -> Policy:
    content = json.loads(asked.model.model_dump_json(exclude_unset=True))
    content["attributes"]["age"] = {"role": "quasi", "hierarchy": HIERARCHY}
    return Policy.from_dict(content)


ROUNDED = {"name": "rounded-partition", "refine": "none"}
METHODS = {
    "rounded": policy(ROUNDED),
    "paper": policy({"name": "rounded-partition", "preset": "paper"}),
    "input": policy(ROUNDED, render={"order": "input"}),
    "two k": policy(
        ROUNDED,
        promises=[
            {"model": "k-anonymity", "k": 3},
            {"model": "k-anonymity", "k": 4, "attributes": ["age", "sex"]},
        ],
    ),
    "mondrian": policy({"name": "mondrian"}),
    "children": policy({"name": "mondrian", "trees": "children", "cut": "nearest"}),
    "datafly": with_tree(policy({"name": "datafly"})),
    "full-domain": with_tree(policy({"name": "full-domain"}, label="ill")),
    "tds": with_tree(policy({"name": "tds"}, label="ill")),
}


def _changed(more: dict[str, Any] | None = None, **attributes: dict[str, Any]) -> Policy:
    content = json.loads(policy(ROUNDED).model.model_dump_json(exclude_unset=True))
    content["attributes"] |= attributes
    return Policy.from_dict(content | (more or {}))


def certified(certificate: Any) -> dict[str, Any]:
    content = json.loads(certificate.to_json())
    return {key: value for key, value in content.items() if key not in UNLIKE}


def published(table: Path, asked: Policy, out: Path, limit: int | None = None) -> tuple[bytes, Any]:
    with room.using(limit):
        certificate = publish_file(
            str(table), asked, str(out), PublishRequest(trace=f"{out}.trace", replace=True)
        ).certificate
    assert ("memory" in certificate["scale"]) == (limit is not None)
    return out.read_bytes(), certified(certificate)


def audits(out: Path, asked: Policy, table: Path) -> list[Any]:
    """The certificates of an audit beside the original, and of one of the file alone."""
    known = ((str(table), f"{out}.trace"), (None, None))
    found = [audit_file(str(out), asked, one, trace_path=trace) for one, trace in known]
    return [one.certificate for one in found]


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


def test_what_the_input_s_order_gives_away_is_found_within_a_limit_and_by_every_audit(
    table, tmp_path, request
):
    rows().sort(pl.col("cost").cast(pl.Int64)).write_csv(table)
    asked, out = METHODS["input"], tmp_path / "out.csv"
    _, whole = published(table, asked, out)

    def order_kept(content: Any) -> list[str]:
        return [one["text"] for one in content["warnings"] if one["code"] == "order-kept"]

    def audited(asked: Policy) -> list[str]:
        return order_kept(audit_file(str(out), asked, str(table)).certificate)

    of_people = _changed({"render": {"order": "input"}}, person={"role": "subject"})
    found = {"rows": order_kept(whole), "people": audited(of_people)}
    assert found["rows"] == audited(asked) != found["people"]
    assert len(found["rows"]) == len(found["people"]) == 1
    request.getfixturevalue("tiny")
    assert order_kept(published(table, asked, out, LIMITS[1])[1]) == found["rows"]
    with room.using(LIMITS[1]):
        assert {"rows": audited(asked), "people": audited(of_people)} == found
    checks = {check.name: check for check in verify(str(out), policy=asked, original=str(table))}
    assert checks["measured again"].ok


@pytest.mark.long
@pytest.mark.parametrize("out", ["out.csv.gz", "out.tsv", "out.parquet"])
@pytest.mark.parametrize("kind", ["in.csv.gz", "in.parquet"])
def test_other_formats_in_and_out(kind, out, table, tmp_path, request):
    source = tmp_path / kind
    frame = rows().with_columns(pl.col("cost").cast(pl.Int64) - 3)
    if kind == "in.parquet":
        frame.write_parquet(source)
    else:
        import gzip

        source.write_bytes(gzip.compress(frame.write_csv().encode()))
    whole = published(source, METHODS["rounded"], tmp_path / out)
    request.getfixturevalue("tiny")
    assert published(source, METHODS["rounded"], tmp_path / out, LIMITS[1]) == whole


@pytest.mark.parametrize("few", [1, 2, 3, 30])
def test_records_without_a_value_are_suppressed_alike(few, tmp_path, request):
    """With fewer than k of them, their sensitive values are hidden, too."""
    frame = rows().with_columns(
        age=pl.when(pl.int_range(pl.len()) % (400 // few) == 7).then(None).otherwise(pl.col("age"))
    )
    source = tmp_path / "in.csv"
    frame.write_csv(source)
    asked = policy(ROUNDED, missing="suppress")
    for out in ("out.csv", "out.parquet"):
        whole = published(source, asked, tmp_path / out)
        with pytest.MonkeyPatch.context() as patch:
            make_every_table_too_large(patch)
            assert published(source, asked, tmp_path / out, LIMITS[1]) == whole


@pytest.mark.parametrize("count", [3, 5, 6])
def test_tables_of_one_class_and_of_two(count, tmp_path, request):
    source = tmp_path / "in.csv"
    rows(count).write_csv(source)
    whole = published(source, METHODS["rounded"], tmp_path / "out.csv")
    request.getfixturevalue("tiny")
    assert published(source, METHODS["rounded"], tmp_path / "out.csv", LIMITS[0]) == whole


def test_too_few_people_are_refused_alike(tiny, tmp_path, table):
    rows(2).write_csv(table)
    with pytest.raises(InfeasibleError, match="k = 3 asked, 2 subjects"):
        published(table, METHODS["rounded"], tmp_path / "out.csv", LIMITS[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]


AUDITED = [
    {"model": "k-anonymity", "k": 3},
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
    cost = {"role": "sensitive", "domain": [0, 1000]}
    return _changed({"promises": AUDITED, "label": "ill"}, person={"role": person}, cost=cost)


@pytest.mark.parametrize("person", long_but("subject", ["drop", "subject"]))
@pytest.mark.parametrize("faulty", [False, True], ids=["honest", "planted"])
def test_an_audit_within_a_limit_finds_what_any_audit_finds(
    person, faulty, table, tmp_path, request
):
    out = tmp_path / "out.csv"
    published(table, METHODS["rounded"], out)
    if faulty:  # one cell that does not cover the truth, one changed value, one record alone
        frame = pl.read_csv(out, infer_schema=False)
        age, ill, sex = (frame[name].to_list() for name in ("age", "ill", "sex"))
        age[17], ill[203], sex[31] = "99", "measles", "*"
        frame.with_columns(age=pl.Series(age), ill=pl.Series(ill), sex=pl.Series(sex)).write_csv(
            out
        )
    asked = audited_policy(person)
    whole = [certified(one) for one in audits(out, asked, table)]
    assert bool(sum(whole[0]["faults"].values())) == faulty
    request.getfixturevalue("tiny")
    for limit in LIMITS[:2]:
        with room.using(limit):
            found = audits(out, asked, table)
        assert [certified(one) for one in found] == whole
        assert found[0]["scale"]["parts"] > 1


@pytest.mark.parametrize("shown", ["mean", "both"])
def test_means_are_compared_with_all_values_within_a_limit(shown, table, tmp_path, request):
    asked = _changed(age={"role": "quasi", "domain": [0, 100], "render": shown})
    out = tmp_path / "out.csv"
    published(table, asked, out)
    frame = pl.read_csv(out, infer_schema=False)
    frame[0, "age"] = "99"
    frame.write_csv(out)
    whole = [certified(one) for one in audits(out, asked, table)]
    assert whole[0]["faults"]["uncovered"]
    request.getfixturevalue("tiny")
    with room.using(LIMITS[1]):
        found = audits(out, asked, table)
    assert found[0]["scale"]["parts"] > 1
    assert [certified(one) for one in found] == whole


def test_people_whom_several_columns_name_are_counted_within_a_limit(tmp_path, request):
    frame = rows().with_columns(floor=(pl.int_range(pl.len()) % 3).cast(pl.String))
    frame = frame.with_columns(storey=pl.col("floor") + " ")
    frame.write_csv(tmp_path / "in.csv")
    identifier = {"role": "identifier"}
    named = {"subject": ["person", "storey"], "promises": AUDITED[:1]}
    asked = _changed(named, person=identifier, storey=identifier, floor={"role": "drop"})
    source, out, trace = (str(tmp_path / name) for name in ("in.csv", "out.csv", "t.jsonl"))
    released = publish_file(source, asked, out, PublishRequest(trace=trace))
    people = frame.select("person", "floor").n_unique()
    assert released.certificate["subjects"] == people
    request.getfixturevalue("tiny")
    for limit in LIMITS[:2]:
        with room.using(limit):
            found = audit_file(out, asked, source, trace_path=trace)
        assert found.certificate["subjects"] == people
        assert found.certificate["classes"] == released.certificate["classes"]
        assert found.certificate["scale"]["parts"] > 1


def test_verify_within_a_limit_checks_what_it_always_checks(table, tmp_path, request):
    out, asked = tmp_path / "out.csv", METHODS["rounded"]
    published(table, asked, out)
    known = {"policy": asked, "original": table, "trace": f"{out}.trace"}
    whole = verify(out, **known)
    alone = verify(out)
    assert all(check.ok is not False for check in whole)
    request.getfixturevalue("tiny")
    with room.using(LIMITS[1]):
        assert verify(out, **known) == whole
        assert verify(out) == alone
        out.write_bytes(out.read_bytes().replace(b",north", b",south", 1))
        assert [c.name for c in verify(out, **known) if c.ok is False]


def test_what_joins_rows_or_households_is_found_within_a_limit_as_without(
    tmp_path, request, monkeypatch
):
    monkeypatch.setenv("SHOAL_PSEUDONYM_KEY", "a secret of this test")
    person = [int(name[1:]) for name in rows()["person"]]
    of_people = {"home": [f"h{n // 3}" for n in person], "weight": [1 + n % 7 for n in person]}
    rows().with_columns(
        **{name: pl.Series(cells) for name, cells in of_people.items()},
        ward=pl.Series([f"w{n % 200}" for n in person]),
    ).write_csv(tmp_path / "in.csv")
    asked = _changed(
        person={"role": "subject"},
        cost={"role": "drop"},
        home={"role": "household", "pseudonym": "keyed"},
        weight={"role": "weight"},
    )
    source, out, trace = (str(tmp_path / name) for name in ("in.csv", "out.csv", "t.jsonl"))
    publish_file(source, asked, out, PublishRequest(trace=trace))
    known = {"policy": asked, "original": source, "trace": trace}
    whole = [audit_file(out, asked, source, trace_path=trace), audit_file(out, asked)]
    codes = [{warning.code for warning in one.certificate.warnings} for one in whole]
    assert codes[0] >= {"rows-linked", "household-joined"}
    assert "household-joined" in codes[1]
    assert whole[0].certificate["individual_risk"]["household"]["mean"] > 0
    checks = verify(out, **known)
    assert all(check.ok is not False for check in checks)
    request.getfixturevalue("tiny")
    with room.using(LIMITS[0]):
        found = [audit_file(out, asked, source, trace_path=trace), audit_file(out, asked)]
        assert verify(out, **known) == checks
    assert [certified(one.certificate) for one in found] == [
        certified(o.certificate) for o in whole
    ]
    assert found[0].certificate["scale"]["parts"] > 1
    monkeypatch.setattr(in_parts, "JOINED_BYTES", 300)
    too_little = pytest.raises(InputError, match="too little for this table; allow 1 MB or more")
    with room.using(LIMITS[0]), too_little:
        audit_file(out, asked)


def test_a_sample_published_within_a_limit_is_measured_and_verified_as_without(
    table, tmp_path, request
):
    rows().with_columns(weight=2.5 + pl.int_range(pl.len()) % 9).write_csv(table)
    asked = _changed(weight={"role": "weight"}, person={"role": "household"})
    out = tmp_path / "out.csv"
    whole = published(table, asked, out)
    assert whole[1]["individual_risk"]["household"]["mean"] > 0
    known = {"policy": asked, "original": table, "trace": f"{out}.trace"}
    checks = verify(out, **known)
    assert all(check.ok is not False for check in checks)
    request.getfixturevalue("tiny")
    assert published(table, asked, out, LIMITS[1]) == whole
    assert verify(out, **known) == checks
    with room.using(LIMITS[1]):
        assert verify(out, **known) == checks
    with pytest.raises(InputError, match="too little for this table; allow 1 MB or more"):
        published(table, asked, out, LIMITS[0])


REFUSED = {
    "refine: full moves": policy({"name": "rounded-partition", "refine": "full"}),
    "refine: auto moves": policy({"name": "rounded-partition"}),
    "method 'mdav' holds all records": policy({"name": "mdav"}),
    "ties stable sort": policy({"name": "rounded-partition", "ties": "stable"}),
    "promise 'l-diversity' is asked of every cut": policy(
        ROUNDED,
        promises=[
            {"model": "k-anonymity", "k": 3},
            {"model": "l-diversity", "attribute": "ill", "l": 2},
        ],
    ),
    "formulas escape looks": policy(ROUNDED, write={"formulas": "escape"}),
    "'age': means are taken": _changed(age={"role": "quasi", "domain": [0, 100], "render": "mean"}),
    "people who have several records": _changed(person={"role": "subject"}),
    "different rows": policy({"name": "datafly"}),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_needs_the_whole_table_is_refused_by_name(why, tiny, table, tmp_path):
    with pytest.raises(InputError, match=f"memory: .*{why}"):
        published(table, REFUSED[why], tmp_path / "out.csv", LIMITS[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]


OF_THE_DATA = ("people who have several records", "different rows", "refine: auto moves")


@pytest.mark.parametrize("why", [why for why in REFUSED if why not in OF_THE_DATA])
def test_what_the_policy_says_is_refused_before_anything_is_read(
    why, tiny, table, tmp_path, monkeypatch
):
    monkeypatch.setattr(coded_files, "read_coded", lambda *_: pytest.fail("it was read"))
    with pytest.raises(InputError, match=r"whole table in memory; .* or allow [0-9]+ MB or more$"):
        published(table, REFUSED[why], tmp_path / "out.csv", LIMITS[1])


def test_a_limit_that_is_too_small_is_refused_with_the_figure(monkeypatch, table, tmp_path):
    monkeypatch.setattr(past_memory, "HELD_BYTES", 1e9)
    with pytest.raises(InputError, match=r"memory: 200 MB is too little .* allow 300 MB or more"):
        published(table, METHODS["rounded"], tmp_path / "out.csv", 200_000_000)
    monkeypatch.setattr(past_memory, "RECORD_BYTES", 10**6)
    with pytest.raises(InputError, match=r"memory: 350 MB is too little .* allow 701 MB or more"):
        published(table, METHODS["rounded"], tmp_path / "out.csv", 350_000_000)


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


def test_a_column_of_too_many_texts_is_refused_by_name(tiny, tmp_path):
    frame = rows(2_000).with_columns(ward=pl.int_range(pl.len()).cast(pl.String))
    frame.write_csv(tmp_path / "in.csv")
    with pytest.raises(InputError, match=r"memory: column 'ward' has \d+ different texts"):
        published(tmp_path / "in.csv", METHODS["rounded"], tmp_path / "out.csv", LIMITS[0])


def test_cells_and_rows_that_are_wrong_are_reported_with_the_numbers_of_the_whole_file(
    tmp_path, request
):
    source, told = tmp_path / "in.csv", []
    ages = ["x" if i in (3, 250) else str(i % 50) for i in range(400)]
    for content in (
        rows().with_columns(age=pl.Series(ages)).write_csv(),
        rows().drop("ill").write_csv() + "1,f\n",
    ):
        source.write_text(content)
        for limit in (None, LIMITS[1]):
            if limit is not None:
                request.getfixturevalue("tiny")
            with pytest.raises(InputError) as refused, room.using(limit):
                publish_file(str(source), METHODS["rounded"], str(tmp_path / "out.csv"))
            told.append(str(refused.value))
    assert told[0] == told[1]
    assert "rows 4, 251" in told[0]
    assert told[2] == told[3]


def test_a_full_disk_leaves_nothing(tiny, table, tmp_path, monkeypatch):
    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InputError, match="TMPDIR"):
        published(table, METHODS["rounded"], tmp_path / "out.csv", 3_000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]


@pytest.mark.parametrize(
    "stage", long_but("finding classes", ["finding classes", "measuring range by range"])
)
def test_a_killed_run_leaves_nothing_to_read(stage, table, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "policy.yaml").write_text(
        yaml.safe_dump(json.loads(METHODS["rounded"].model.model_dump_json(exclude_unset=True)))
    )
    code = (
        "import sys, time\n"
        "from shoal.policy.binding import past_memory\n"
        "from shoal.data import room\n"
        "from shoal.tables.publish import publish_file\n"
        "from shoal.tables.request import PublishRequest\n"
        "from shoal.policy.policy import Policy\n"
        "past_memory.BASE = past_memory.RECORD_BYTES = 0; past_memory.HELD_BYTES = 1e9\n"
        "def stop(stage):\n"
        "    if sys.argv[1] in stage:\n"
        "        print('here', flush=True); time.sleep(60)\n"
        "with room.using(8_000):\n"
        "    request = PublishRequest(progress=stop)\n"
        "    publish_file('in.csv', Policy.of('policy.yaml'), 'out.csv', request)\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code, stage],
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
    assert list(place.iterdir()) == []
    assert not (tmp_path / "out.csv").exists()
    assert not (tmp_path / "out.csv.certificate.json").exists()


def test_ranges_hold_whole_classes_in_the_order_of_their_records():
    rng = np.random.default_rng(3)
    shown = [rng.integers(0, 4, 1_000).astype(np.uint8) for _ in range(2)]
    number = np.arange(1_000)
    found = in_parts.Ranges(shown, 1_000, room.Room(40_000))
    met: dict[tuple[int, int], int] = {}
    seen = []
    ranges = found.split({"first": shown[0], "second": shown[1]}, {"number": number})
    for part, (columns, own) in enumerate(ranges):
        records = own["number"]
        assert (np.diff(records) > 0).all()
        assert np.array_equal(columns["first"], shown[0][records])
        for pair in set(zip(*(column.tolist() for column in columns.values()), strict=True)):
            assert met.setdefault(pair, part) == part
        seen += records.tolist()
    assert part + 1 == found.count > 1
    assert sorted(seen) == number.tolist()


@pytest.mark.parametrize(
    ("size", "count"),
    [("700MB", 700_000_000), ("2GiB", 2 << 30), ("1.5 gb", 1_500_000_000), ("64", 64)],
)
def test_sizes(size, count):
    assert room.bytes_of(size) == count


@pytest.mark.parametrize("size", ["", "many", "-1GB", "1XB", "5%"])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(InputError, match="is not a size"):
        room.bytes_of(size)


def test_the_verbs_take_the_option(table, tmp_path, capsys):
    content = json.loads(METHODS["rounded"].model.model_dump_json(exclude_unset=True))
    asked = tmp_path / "policy.yaml"
    asked.write_text(yaml.safe_dump(content))
    out = tmp_path / "out.csv"
    more = ["-p", str(asked), "--memory", "2GB", "--quiet"]
    assert status_of(["publish", str(table), "-o", str(out), *more]) == 0
    assert status_of(["audit", str(out), "--original", str(table), *more]) == 0
    assert status_of(["verify", str(out), *more]) == 0
    assert status_of(["audit", str(out), "-p", str(asked), "--memory", "lots"]) == 2
    capsys.readouterr()
    assert status_of(["verify", str(out), "--memory", "200MB"]) == 2, "it was ignored"
    assert "200 MB is too little for this table; allow 300 MB" in capsys.readouterr().err


def test_a_release_past_memory_is_summed_up(tiny, table, tmp_path, capsys):
    asked, out = tmp_path / "policy.json", str(tmp_path / "out.csv")
    asked.write_text(METHODS["rounded"].model.model_dump_json(exclude_unset=True))
    more = ["-p", str(asked), "--memory", "200KB"]
    assert status_of(["publish", str(table), "-o", out, *more]) == 0
    assert f"wrote {out} and {out}.certificate.json\n" in capsys.readouterr().err
    assert status_of(["audit", out, "--original", str(table), *more]) == 0
    assert status_of(["verify", out, *more]) == 0


def test_what_reads_a_whole_table_is_refused_before_anything_is_written(
    tiny, table, tmp_path, capsys
):
    content = json.loads(METHODS["rounded"].model.model_dump_json(exclude_unset=True))
    asked = tmp_path / "policy.yaml"
    asked.write_text(yaml.safe_dump(content))
    out, more = tmp_path / "out.csv", ["-p", str(asked), "--memory", "200KB", "--quiet"]
    for given in (["--report", "r.html"], ["--attack", "linkability"]):
        assert status_of(["publish", str(table), "-o", str(out), *more, *given]) == 2
        assert "needs the whole table in memory" in capsys.readouterr().err
    assert not out.exists()
    assert status_of(["publish", str(table), "-o", str(out), *more]) == 0
    for verb, *given in (["audit", "--report", "r.html"], ["attack"], ["audit", "--downstream"]):
        assert status_of([verb, str(out), "--original", str(table), *more, *given]) == 2
        assert "needs the whole table in memory" in capsys.readouterr().err
