"""The folder of a project: what is written, the history of edits, and the way back."""

import os
import stat
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sample_policies import content_of
from shoal.errors import InputError
from shoal.web import sign_off
from shoal.web.policy_text import (
    has_comments,
    is_ours,
    patched,
    read,
    reverse_patch,
    sha256,
    touched_lines,
    written,
)
from shoal.web.project import POLICY, Busy, Project, Stale

POLICIES = [content_of({"age": {"role": role}}, k) for k in range(2, 14) for role in ("quasi",)]


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path / "ward", tmp_path)


def test_twelve_edits_are_undone_one_by_one_and_each_hash_returns(project):
    hashes = []
    for policy in POLICIES:
        hashes.append(project.policy_sha)
        project.edit_policy("k", policy, project.policy_sha)
    for expected in reversed(hashes):
        assert project.undo()
        assert project.policy_sha == expected
    assert not project.undo()
    assert len(project.history.entries()) == 24


def test_undo_is_a_new_entry_and_leads_on_after_a_new_edit(project):
    for policy in POLICIES[:3]:
        project.edit_policy("k", policy, None)
    third = project.policy_sha
    project.undo()
    second = project.policy_sha
    project.edit_policy("k", POLICIES[5], None)
    project.undo()
    assert project.policy_sha == second
    assert third not in {sha256(written(p)) for p in POLICIES[:2]}
    project.undo(to=1)
    assert project.policy_text == written(POLICIES[0])


def test_an_edit_of_another_text_than_there_is_is_stale(project):
    project.edit_policy("k", POLICIES[0], None)
    old = project.policy_sha
    project.edit_policy("k", POLICIES[1], old)
    with pytest.raises(Stale):
        project.edit_policy("k", POLICIES[2], old)
    assert project.policy_text == written(POLICIES[1])
    assert project.text_at(old) == written(POLICIES[0])


def test_comments_of_a_policy_by_hand_are_kept_before_the_first_edit(project):
    text = "# ours\n" + yaml.safe_dump(POLICIES[0])
    (project.folder / POLICY).write_text(text)
    project.edit_policy("k", POLICIES[1], None)
    kept = list(project.history.folder.glob("by-hand-*.yaml"))
    assert [path.read_text() for path in kept] == [text]
    project.undo()
    assert project.policy_text == text


def test_what_is_changed_by_hand_is_an_entry_of_its_own(project):
    project.edit_policy("k", POLICIES[0], None)
    (project.folder / POLICY).write_text(written(POLICIES[3]))
    assert project.notice_hand_edits()
    assert project.history.entries()[-1].sentence == "policy.yaml: edited by hand"
    project.undo()
    assert project.policy_text == written(POLICIES[0])


def test_everything_is_for_its_owner_alone(project):
    project.edit_policy("k", POLICIES[0], None)
    project.lock()
    for path in [project.folder, *project.folder.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    project.unlock()


def test_a_second_server_is_told_where_the_first_is(project):
    project.lock()
    project.say_where({"origin": "http://127.1.2.3:4"})
    with pytest.raises(Busy, match=r"127\.1\.2\.3"):
        Project(project.folder, project.start).lock()
    project.unlock()
    Project(project.folder, project.start).lock()


def test_a_lock_that_a_server_waits_for_is_the_one_that_the_next_takes(project):
    project.lock()
    path = project.folder / ".ui" / "lock"
    with path.open() as waiting:  # as a second server has it open while the first one ends
        project.unlock()
        assert path.read_text() == ""  # and no secret stays
        assert os.fstat(waiting.fileno()).st_ino == path.stat().st_ino


def test_hierarchies_are_read_as_they_were_when_somebody_asked(project):
    policy = {"attributes": {"zip": {"role": "quasi", "hierarchy": "hierarchies/zip.csv"}}}
    project.edit("zip", {"hierarchies/zip.csv": "1;*\n", POLICY: written(policy)}, None)
    taken = sign_off.take_aside(project, "1")
    project.edit("zip", {"hierarchies/zip.csv": "2;*\n"}, None)
    base = Path(sign_off.base_of(project, policy, taken))
    assert (base / "hierarchies" / "zip.csv").read_text() == "1;*\n"
    by_hand = {**policy, "reference": "whole.csv"}  # leads from the project, and so do the others
    assert sign_off.base_of(project, by_hand, taken) == str(project.folder)
    project.sweep()
    assert not taken.exists()


def test_a_draft_without_a_certificate_is_interrupted_and_its_data_goes(project):
    run = project.new_run()
    for name in ("data.csv", "policy.yaml", "report.html"):
        (run.folder / name).write_text("x")
    project.sweep()
    assert project.run(run.name).state == "interrupted"
    assert {path.name for path in run.folder.iterdir()} == {"policy.yaml"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_said_in_a_sentence(project):
    project.folder.chmod(0o500)
    with pytest.raises(InputError, match="writable"):
        project.edit_policy("k", POLICIES[0], None)


def test_a_disk_without_room_is_said_in_a_sentence_and_changes_nothing(project, monkeypatch):
    project.edit_policy("k", POLICIES[0], None)
    before = project.policy_text

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        project.edit_policy("k", POLICIES[1], None)
    assert project.policy_text == before
    assert not list(project.folder.rglob("*.draft"))


def test_a_damaged_entry_is_noticed_before_anything_is_undone(project):
    project.edit_policy("k", POLICIES[0], None)
    project.edit_policy("k", POLICIES[1], None)
    entry = project.history.folder / "0002.yaml"
    entry.write_text(entry.read_text().replace("k: 2", "k: 9"))
    with pytest.raises(InputError, match="was changed"):
        project.undo()
    assert project.policy_text == written(POLICIES[1])


def test_an_entry_that_is_gone_is_noticed_though_the_last_change_returned_to_it(project):
    for policy in POLICIES[:3]:
        project.edit_policy("k", policy, None)
    project.undo(to=1)
    (project.history.folder / "0001.yaml").unlink()
    assert project.history.position() == 1
    with pytest.raises(InputError, match="a file of it is gone"):
        project.history.way_back({}, 0)


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "", "x: 1\r\n", "ü\n"]), max_size=8).map(
    "".join
)


@pytest.mark.long
@given(LINES, LINES)
def test_a_reverse_patch_leads_back(before, after):
    change = {"before": sha256(before), "back": reverse_patch(before, after)}
    assert patched(after, change) == before


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
))  # fmt: skip
def test_what_is_written_reads_as_the_same(value):
    content = {"version": 1, "attributes": {"a": {"role": "quasi", "order": value}}, "x": value}
    assert read(written(content)) == content


def test_lines_are_told_apart_by_where_they_stand():
    policy = written(POLICIES[0])
    other = written({**POLICIES[0], "seed": 7})
    k = written(POLICIES[1])
    assert touched_lines(policy, k) & touched_lines(policy, k)
    assert not touched_lines(policy, k) & touched_lines(policy, other)


def test_comments_are_seen_and_our_own_text_has_none():
    assert has_comments("a: 1 # why\n")
    assert not has_comments(written(POLICIES[0]))
    assert is_ours(written(POLICIES[0]))
    assert not is_ours("version:   1\n")
