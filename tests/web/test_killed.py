"""Whatever is killed: a sentence, nothing half-written, and the next thing works."""

from __future__ import annotations

import errno
import os
import re
import signal
import time

import pytest

from shoal.errors import InputError
from shoal.web import app
from shoal.web.child import said
from shoal.web.work import Job, Jobs
from web.visitor import Visitor, served

WRITTEN = re.compile(
    r"(project|policy|release)\.yaml|history(/\d{4}\.yaml|/by-hand-\w+\.yaml)?"
    r"|hierarchies(/[\w-]+\.csv)?|runs(/\d{4}(/(policy\.yaml|run\.json|events\.jsonl|data\.csv"
    r"|certificate\.json|report\.html|shown\.json))?)?|\.ui(/(lock|open\.html|seen\.json"
    r"|compared\.json))?"
)


RELEASED = re.compile(
    r"releases(/[\d-]+(/(data\.csv(\.certificate\.json)?|report\.html|policy\.yaml"
    r"|dossier\.(html|json)))?)?|runs/\d{4}/(signed|attacks|prices)\.json"
)


def until(claim, seconds=30):
    ends = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_a_job_whose_end_can_not_be_written_is_over_and_the_next_one_runs():
    def ended(job):
        raise InputError("no room")

    job = Job("1", "draft", {})
    Jobs(ended)._over(job, "done")
    assert job.is_over
    assert (job.state, job.result["message"]) == ("failed", "no room")
    assert job.events == [{"id": 1, "state": "failed"}]


def test_of_a_bug_only_its_kind_is_said(guest, monkeypatch):
    assert "canary" not in str(said(ValueError("canary")))

    async def broken(*_):
        raise ValueError("canary")

    monkeypatch.setattr(app, "open_screen", broken)
    answer = guest.get("/open")
    assert (answer.status, "ValueError" in answer.text) == (500, True)
    assert "canary" not in answer.text


def test_a_killed_desk_is_said_and_the_next_look_works(opened):
    os.kill(opened.server.desk.pid, signal.SIGKILL)
    answers = [opened.post("/rows", first="0").status for _ in range(2)]
    assert answers[-1] == 200


def test_a_killed_job_leaves_no_data_and_the_next_one_writes_only_where_it_may(opened, tables):
    project, before = opened.server.project, {path.name for path in tables.iterdir()}
    opened.edit("k", k="4")
    opened.get("/promises")
    opened.send("draft-form")
    job = opened.server.jobs.last("draft")
    until(lambda: job.process is not None)
    os.kill(job.process.pid, signal.SIGKILL)
    page = opened.until("/result", "It stopped before the end")
    assert "ended from outside" in page.words
    assert not list(project.folder.rglob("data.csv"))
    opened.send("draft-form")
    opened.until("/result", "Every promise holds")
    written = [path.relative_to(project.folder).as_posix() for path in project.folder.rglob("*")]
    assert [name for name in written if not WRITTEN.fullmatch(name)] == []
    assert {path.name for path in tables.iterdir()} == before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_refuses_is_said_and_nothing_is_changed(opened, monkeypatch, number):
    project = opened.server.project
    before = {p: p.read_bytes() for p in project.folder.rglob("*") if p.is_file()}

    def refused(*given):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("shoal.web.folder.os.fsync", refused)
    answer = opened.edit("k", k="7")
    monkeypatch.undo()
    assert answer.status == 422
    assert "make room, or make the folder writable; nothing was changed" in answer.words
    assert {p: p.read_bytes() for p in project.folder.rglob("*") if p.is_file()} == before
    assert opened.edit("k", k="7").status == 200


def test_a_killed_server_leaves_an_interrupted_draft_without_data(tables):
    with served(tables / "project", tables) as server:
        Visitor(server).post("/table", path="patients.csv")
        run = server.project.new_run()
        (run.folder / "data.csv").write_text("half a rel")  # then somebody pulls the plug
    with served(tables / "project", tables) as server:
        assert not list(server.project.folder.rglob("data.csv"))
        page = Visitor(server).get("/result")
        assert "Interrupted: nothing was made." in page.words
        assert "Run again" in page.words
        assert server.project.table == tables / "patients.csv"
