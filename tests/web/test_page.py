"""The way through the page without a browser: from a table to a draft."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import time

from shoal.cli.main import status_of
from shoal.samples import patients
from shoal.web.looks import Looks
from shoal.web.measured_points import comparison_key, rows_now, store
from web.visitor import Visitor, served


def file_sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def column(visitor, name):
    return str(visitor.server.project.about["columns"].index(name) + 1)


def draft(visitor) -> str:
    """Makes a draft and waits for it; its folder's name."""
    visitor.get("/promises")
    visitor.send("draft-form")
    visitor.until("/result", "Every promise holds")
    return visitor.server.project.runs[0].name


def test_from_a_table_to_a_draft_whose_command_gives_the_same_bytes(opened, monkeypatch, tables):
    project = opened.server.project
    assert "people in 300 rows" in opened.get("/columns").words
    opened.edit("k", k="4")
    opened.edit("promise", column=column(opened, "disease"), model="l-diversity")
    name = draft(opened)
    page = opened.get("/result")
    assert "groups of at least" in page.words
    run = project.run(name)
    assert {"policy.yaml", "data.csv", "certificate.json", "report.html", "events.jsonl"} <= {
        path.name for path in run.folder.iterdir()
    }
    command = page.text.partition('id="command"')[2].partition(">")[2].partition("<")[0]
    monkeypatch.chdir(project.folder)
    assert status_of([*shlex.split(command)[1:], "-q"]) == 0
    assert file_sha(project.folder / "draft.csv") == file_sha(run.folder / "data.csv")
    stated = json.loads((run.folder / "certificate.json").read_text())
    assert stated["output"]["sha256"] == file_sha(run.folder / "data.csv")
    assert stated["subjects"] == len(set(patients.generate(300, seed=3)["patient"]))
    # what an attacker would see of a row
    view = opened.post("/attacker", run=name, which="most-exposed")
    assert "people who look the same" in view.words
    assert "The best guess is" in view.words
    assert view.path == "/attacker"
    # a form that is sent again, as by Back and a double click, makes no second draft
    opened.get("/promises")
    parser_once = opened.last
    opened.send("draft-form")
    opened.last = parser_once
    opened.send("draft-form")
    opened.until("/result", "Draft 2")
    assert len(project.runs) == 2
    page = opened.until("/result", "Every promise holds")
    assert "The tenth of the rows that pays most loses" in page.words
    page = opened.get(f"/result/{project.runs[0].name}?with={name}")
    assert "Draft 1 beside draft 2" in page.words
    assert "The same was asked." in page.words
    # an edit makes the draft stale, and the page says how
    opened.edit("k", k="5")
    assert "Made with an older policy: 1 change." in opened.get("/result").words
    # so does a table that was touched
    path = tables / "patients.csv"
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    assert "The table has changed since it was opened" in opened.get("/result").words
    report = opened.get(f"/runs/{name}/report")
    assert report.headers["content-security-policy"].startswith("sandbox;")


def test_what_no_release_keeps_is_said_with_the_nearest_that_one_would(opened):
    opened.edit("k", k="299")
    opened.get("/promises")
    opened.send("draft-form")
    page = opened.until("/result", "Nothing was made")
    people = len(set(patients.generate(300, seed=3)["patient"]))
    assert f"Ask for k = {people} instead" in page.words
    run = opened.server.project.runs[0]
    assert {path.name for path in run.folder.iterdir()} <= {
        "policy.yaml",
        "run.json",
        "events.jsonl",
    }


def test_a_job_that_is_stopped_leaves_nothing_and_the_next_one_runs(opened):
    project = opened.server.project
    for turn in range(20 if os.environ.get("SHOAL_LONG") == "1" else 4):
        opened.get("/promises")
        page = opened.send("draft-form")
        assert "Being made" in page.words or "holds" in page.words
        job = opened.server.jobs.last("draft")
        while not job.is_over and len({e.get("stage") for e in job.events}) < turn:
            time.sleep(0.01)  # each time a stage later
        jobs = opened.server.jobs.open
        began = time.monotonic()
        if jobs:
            opened.post(f"/jobs/{jobs[0].id}/cancel")
            assert time.monotonic() - began < 3
            assert not [run for run in project.runs if run.state != "done"]
    assert opened.server.jobs.last("draft").state in ("stopped", "done")
    opened.get("/promises")
    opened.send("draft-form")
    opened.until("/result", "Every promise holds")


def test_two_tabs_merge_other_lines_and_are_asked_about_the_same(opened):
    project = opened.server.project
    base = project.policy_sha
    opened.edit("k", k="7")
    other = opened.edit("role", base=base, column=column(opened, "ward"), role="plain")
    assert other.status == 409
    opened.last = other
    assert opened.send("merge").status == 200
    assert project.policy["attributes"]["ward"] == {"role": "plain"}
    assert project.policy["promises"][0]["k"] == 7
    again = opened.edit("k", base=base, k="7")  # sent twice: it is so already
    assert again.status == 200
    same = opened.edit("k", base=base, k="9")
    assert same.status == 409
    assert "Apply mine" not in same.words
    assert project.policy["promises"][0]["k"] == 7


def test_a_wrong_edit_is_said_and_nothing_is_saved(opened):
    before = opened.server.project.policy_text
    opened.get("/text")
    answer = opened.send("text-form", text=before.replace("quasi", "quazi"))
    assert answer.status == 422
    assert "role" in answer.words
    assert opened.server.project.policy_text == before


def test_suppressed_rows_are_shown_and_shuffled_ones_beside_nobody(tmp_path):
    (tmp_path / "t.csv").write_text("age,sex\n1,f\n2,m\n3,f\n")
    (tmp_path / "d.csv").write_text("age,sex\n1,f\n*,*\n3,*\n")
    attributes = {"age": {"role": "quasi"}, "sex": {"role": "quasi"}}
    asked = {"table": str(tmp_path / "t.csv"), "draft": str(tmp_path / "d.csv"), "rows": [0]}
    looks, policy = Looks(), {"version": 1, "attributes": attributes}
    found = looks.look_show_draft(**asked, policy=policy, is_starred=True)
    assert (found["rows"], found["before"], found["after"]) == ([1], [["2", "m"]], [["*", "*"]])
    found = looks.look_show_draft(**asked, policy={**policy, "render": {"order": "shuffled"}})
    assert found["rows"] == []


def test_a_table_too_large_is_set_up_on_a_sample_and_the_gate_takes_none(visitor, tables):
    path, looks = tables / "patients.csv", Looks()
    answer = looks.answer("open", {"table": str(path), "read": {}})
    assert answer["rows"] == answer["rows_in_all"] == 300
    server = visitor.server
    # as if half of the free memory were less than this table takes
    server.too_large = {"path": str(path), "read": {}, "every": 10, "free": 1000}
    assert "Set up on 1 row in 10" in visitor.get("/open").words
    visitor.send("sampled")
    assert "sample: 30 of 300 rows" in visitor.get("/open").words
    visitor.edit("person", person="2")
    refused = visitor.post("/jobs", kind="draft", once="1", base=server.project.policy_sha)
    assert refused.status == 422
    assert "shoal publish ../patients.csv -p policy.yaml" in refused.words
    assert server.project.runs == []
    assert visitor.post("/jobs", kind="compare", once="2").status == 422
    # the whole again, once it fits
    visitor.post("/table", path="patients.csv")
    assert server.sample_of == 0


def test_more_than_half_of_the_free_memory_is_too_large(tables, monkeypatch):
    from shoal.web import looks

    table = {"table": str(tables / "patients.csv"), "read": {}}
    monkeypatch.setattr(looks, "free_memory", lambda: 2 * int(looks.memory_of(table["table"])) + 9)
    assert "too_large" not in Looks().answer("open", dict(table))
    monkeypatch.setattr(looks, "free_memory", lambda: 100_000)
    assert Looks().answer("open", dict(table))["too_large"] == {"free": 100_000, "every": 10}
    assert "too_large" not in Looks().answer("open", {**table, "every": 10})


def test_a_planted_broken_promise_is_withheld(opened):
    run = opened.server.project.new_run()
    about = {"state": "refused", "kind": "PromiseError", "message": "k-anonymity: measured 3"}
    (run.folder / "run.json").write_text(json.dumps(about))
    page = opened.get("/result")
    assert "Withheld: a promise was measured and does not hold." in page.words
    assert "There is no draft yet" in opened.get("/release").words


TWICE = "none;low;*\nnone;low;*\nprimary;low;*\nsecondary;low;*\nvocational;low;*\n"
BROKEN = {
    "twice": TWICE + "bachelor;high;*\nmaster;high;*\ndoctorate;high;*\n",
    "two-parents": "none;low;*\nnone;high;*\n" + TWICE.partition("low;*\nnone;low;*\n")[2],
}


def test_a_table_with_two_parents_is_said_and_blocked_and_the_source_stays(opened, tables):
    (tables / "trees").mkdir()
    for name, text in BROKEN.items():
        (tables / "trees" / f"{name}.csv").write_text(text)
    number = column(opened, "education")
    page = opened.get(f"/hierarchies/{number}?f=trees")
    found = page.text.partition("Found in it")[2].partition("</table>")[0]
    assert found.count("sound") == 1  # a line that stands twice says the same twice
    before = opened.server.project.policy_text
    use = {"do": "use", "base": opened.server.project.policy_sha}
    refused = opened.post(f"/hierarchies/{number}", file="trees/two-parents.csv", **use)
    assert refused.status == 422
    assert opened.server.project.policy_text == before
    for name, text in BROKEN.items():
        assert (tables / "trees" / f"{name}.csv").read_text() == text


CANARY = "Kanarienvogel"


def test_no_cell_leaves_the_screen_it_was_asked_for(tmp_path, capfd):
    frame = patients.generate(120, seed=5)
    cells = {name: f"{CANARY}-{i}" for i, name in enumerate(frame.columns)}
    lines = frame.write_csv().splitlines()
    lines[7] = ",".join(
        cells[name] if name not in ("age", "charge") else "77" for name in frame.columns
    )
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with served(tmp_path / "project", tmp_path) as server:
        visitor = Visitor(server)
        visitor.post("/table", path="t.csv")
        visitor.edit("person", person="2")
        visitor.edit("role", column="8", role="sensitive")
        visitor.edit("k", k="3")
        draft(visitor)
        for path in ("/open", "/columns", "/promises", "/history", "/help", "/text"):
            answer = visitor.get(path)
            assert CANARY not in answer.text, path
            assert CANARY not in str(answer.headers)
        shown = visitor.post("/rows", first="0")
        assert CANARY in shown.text
        assert shown.path == "/rows"
        run = server.project.runs[0]
        for path in server.project.folder.rglob("*"):
            if path.is_file() and path.name not in ("data.csv",):
                text = path.read_text("utf-8", "replace")
                assert CANARY not in text or path.name in ("report.html", "shown.json"), path
        assert CANARY not in (run.folder / "certificate.json").read_text()
        assert CANARY not in (run.folder / "events.jsonl").read_text()
    assert CANARY not in "".join(capfd.readouterr())


ODD = ["<script>alert(1)</script>", "=cmd()", "a\u202eb", "x\x07y"]


def test_s8_a_cell_and_a_name_are_text(tmp_path):
    names = ["age", "sex", "zip", "town", "job", "size", "<i>a", "=b", "c\u202ed", "e\x07f"]
    lines = [",".join(f'"{name}"' for name in names)]
    lines += [",".join([str(i % 7)] * 6 + [f'"{cell}"' for cell in ODD]) for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with served(tmp_path / "project", tmp_path) as server:
        visitor = Visitor(server)
        answer = visitor.post("/table", path="t.csv")
        assert answer.status == 200, answer.words
        for answer in (visitor.get("/columns"), visitor.post("/rows", first="0")):
            assert answer.status == 200
            assert "&lt;i&gt;a" in answer.text
            assert not any(mark in answer.text for mark in ("<script>alert", "\u202e", "\x07"))


def test_300_columns_are_shown_within_two_seconds(tmp_path):
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(1)
    frame = pl.DataFrame({f"c{i}": rng.integers(0, 3 + i % 9, 1000) for i in range(300)})
    frame.write_csv(tmp_path / "wide.csv")
    with served(tmp_path / "project", tmp_path) as server:
        visitor = Visitor(server)
        visitor.post("/table", path="wide.csv")
        began = time.monotonic()
        page = visitor.get("/columns")
        assert time.monotonic() - began < 2
        assert "page 1 of 6" in page.words
        assert "c299" in visitor.get("/columns?q=c299").words


def test_a_gap_is_shown_mended_in_a_copy_and_the_source_stays(opened, tables):
    project = opened.server.project
    (tables / "trees").mkdir()
    labels = ["none", "primary", "secondary", "bachelor", "master", "doctorate"]
    source = "".join(f"{v};{'low' if i < 2 else 'high'};*\n" for i, v in enumerate(labels))
    (tables / "trees" / "schooling.csv").write_text(source)
    number = column(opened, "education")
    page = opened.get(f"/hierarchies/{number}?f=trees")
    assert "schooling.csv" in page.words
    opened.send("use-1")
    page = opened.until(f"/hierarchies/{number}", "1 value has no place in education")
    assert "vocational" in page.words
    assert "1 gap" in page.words
    opened.get(f"/hierarchies/{number}")
    opened.send("put-1", under="high")
    page = opened.until(f"/hierarchies/{number}", "5 of 5 fit")
    assert (tables / "trees" / "schooling.csv").read_text() == source
    mended = (project.folder / "hierarchies" / "education.csv").read_text()
    assert "vocational;high;*" in mended
    assert project.policy["attributes"]["education"]["hierarchy"] == "hierarchies/education.csv"
    node = re.search(r"at=(\d+)#node-\1\" data-key", page.text)[1]  # the first group: high
    opened.get(f"/hierarchies/{number}?at={node}")
    opened.send("rename-form", to="upper")
    assert "upper" in (project.folder / "hierarchies" / "education.csv").read_text()
    opened.post("/undo", base=project.policy_sha)
    assert (project.folder / "hierarchies" / "education.csv").read_text() == mended
    # what is looked for is in no address, and stands with what is above it
    opened.get(f"/hierarchies/{number}")
    page = opened.post(f"/hierarchies/{number}", do="find", find="voc")
    found = page.text.partition("data-tree>")[2].partition("</table>")[0]
    assert page.path == f"/hierarchies/{number}"
    assert re.findall(r'label">([^<]+)', found) == ["*", "high", "vocational"]
    opened.post(f"/hierarchies/{number}", do="rare", least="40", to="few", base=project.policy_sha)
    assert "few" in (project.folder / "hierarchies" / "education.csv").read_text()


def test_a_comparison_stops_keeps_what_is_there_and_goes_on(opened):
    opened.edit("k", k="4")
    opened.get("/compare")
    opened.send("compare-form")
    page = opened.until("/compare", "The same as a table", 300)
    if opened.server.jobs.open:
        opened.post(f"/jobs/{opened.server.jobs.open[0].id}/cancel")
    kept = len(rows_now(opened.server))
    assert kept >= 1
    opened.get("/compare")
    opened.send("compare-form")
    page = opened.until("/compare", "Go on, or look", 300)
    assert len(rows_now(opened.server)) > kept or kept > 30
    row = next(r for r in rows_now(opened.server) if r["holds"] and r["k"] == 5)
    page = opened.get(f"/compare?m={row['label']}&k=5")
    assert f"{row['label']}, k = 5" in page.words
    opened.send("use")
    policy = opened.server.project.policy
    assert policy["method"]["name"] == row["label"].partition(":")[0]
    assert policy["promises"][0]["k"] == 5


ROW = {"label": "mondrian", "k": 4, "holds": True, "reason": "", "classes": 60, "least_class": 4}


def test_the_levels_of_a_same_for_all_recoding_are_walked(opened):
    server = opened.server
    opened.edit("k", k="4")
    draft(opened)
    store(server, comparison_key(server), [{**ROW, "suppressed": 0, "loss": 0.2, "promises": []}])
    before = server.project.policy_text
    opened.get("/compare")
    opened.send("try-global")  # a draft, never an edit
    opened.until("/result", "Tried with method: full-domain", 300)
    assert server.project.policy_text == before
    page = opened.until("/compare", "Around the best same-for-all recoding Steps of", 300)
    there = re.search(r"/compare\?at=[\d.]+", page.text)[0]
    page = opened.until(there, "Around another same-for-all recoding Steps of")
    assert "Back to the best" in page.words
    opened.until("/compare?at=99.99.99.99.99", "Around the best")  # there are no such levels
