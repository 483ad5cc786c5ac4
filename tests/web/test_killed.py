"""Whatever is killed: a sentence, nothing half-written, and the next thing works."""

import pytest

from shoal.errors import InputError
from shoal.web import screens
from shoal.web.work import Job, Jobs, said

pytestmark = pytest.mark.long


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

    def broken(*_, **__):
        raise ValueError("canary")

    monkeypatch.setattr(screens.policy_text, "within", broken)
    answer = guest.get("/open")
    assert (answer.status, "ValueError" in answer.text) == (500, True)
    assert "canary" not in answer.text
