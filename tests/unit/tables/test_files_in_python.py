"""Publish, audit and verify from file to file in Python, within a limit or by an engine."""

from pathlib import Path

import pytest

import shoal
from shoal.data import room
from shoal.errors import InputError
from small_memory import make_every_table_too_large
from unit.tables.test_past_memory import LIMITS, METHODS, certified, rows

ASKED = METHODS["rounded"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows().write_csv(tmp_path / "in.csv")
    return tmp_path / "in.csv"


def test_a_limit_changes_neither_the_release_nor_what_is_measured(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, small = tmp_path / "out.csv", tmp_path / "small.csv"
    whole = shoal.publish_file(table, ASKED, out, threads=1)
    audited = certified(shoal.audit_file(out, ASKED, table))
    checks = shoal.verify(out, policy=ASKED, original=table)
    make_every_table_too_large(monkeypatch)
    within = shoal.publish_file(table, ASKED, small, memory=LIMITS[1])
    assert small.read_bytes() == out.read_bytes()
    assert certified(within) == certified(whole)
    assert within["scale"]["memory"] == LIMITS[1]
    limited = shoal.audit_file(out, ASKED, table, memory=LIMITS[1])
    assert audited.pop("faults") == {"unmatched": 0}  # which is not judged within a limit
    assert certified(limited) == audited
    assert limited["scale"]["parts"] > 1
    assert shoal.verify(out, policy=ASKED, original=table, memory=f"{LIMITS[1]}") == checks
    assert room.limit() is None


def test_every_option_of_the_command_is_there_for_files(table: Path, tmp_path: Path) -> None:
    plan, trace = tmp_path / "plan.json", tmp_path / "t.jsonl"
    asked = {"plan": plan, "explain": True, "trace": trace}
    certificate = shoal.publish_file(table, METHODS["datafly"], tmp_path / "out.csv", **asked)
    assert "explanation" in certificate
    assert plan.exists()
    assert shoal.audit_file(tmp_path / "out.csv", METHODS["datafly"], table, trace=trace).holds
    with pytest.raises(TypeError, match="'memry'; did you mean 'memory'"):
        shoal.publish_file(table, ASKED, tmp_path / "out.csv", memry="1GB")


def test_warnings_are_python_warnings_too(table: Path, tmp_path: Path) -> None:
    with pytest.warns(shoal.ReleaseWarning) as shown:
        certificate = shoal.publish_file(table, ASKED, tmp_path / "out.csv", threads=1)
    assert [str(one.message) for one in shown] == [str(one) for one in certificate.warnings]
    assert {one.filename for one in shown} == {__file__}


def test_a_file_that_somebody_wrote_meanwhile_stays(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"

    def appear(*_: object) -> None:
        if len(list(tmp_path.iterdir())) > 1:  # a draft was begun
            out.write_text("years of work")

    with pytest.raises(InputError, match="replace"):
        shoal.publish_file(table, ASKED, out, progress=appear)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]
    assert out.read_text() == "years of work"
