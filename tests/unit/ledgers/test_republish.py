"""Republish: what an increment becomes, what waits, and what is refused."""

import json
import re
from itertools import count
from pathlib import Path

import polars as pl
import pytest

from republish_cases import POLICY, append, grown, policy, wearers
from sample_policies import content_of
from shoal.attacks.run.attack import audit_ledger
from shoal.auditor.ledger.release_view import export_table
from shoal.cli.main import status_of
from shoal.connectors import files
from shoal.errors import ANOTHER_LEDGER, TWICE, InputError, PromiseError
from shoal.policy.policy import Policy
from shoal.reports.history import write_history_report
from shoal.samples import wearables


def test_no_subject_is_named_in_the_published_or_the_private_part(tmp_path):
    append(tmp_path / "L", wearers(30, 1, prefix="PERSON"))
    append(tmp_path / "L", wearers(2, 2, prefix="WAITING"))
    files = [p for p in (*tmp_path.glob("L/**/*"), *tmp_path.glob("L.private/**/*")) if p.is_file()]
    assert len(files) > 8
    for path in files:
        content = path.read_bytes()
        assert b"PERSON" not in content, path
        assert b"WAITING" not in content, path


def test_a_ledger_whose_first_records_wait_has_no_release_to_verify(tmp_path, shoal):
    append(tmp_path / "L", wearers(3, 1))
    assert shoal("ledger", "verify", tmp_path / "L", status=0).err.split(";")[0] == "no release yet"


def test_rows_left_out_are_said_of_an_increment_that_only_waits_too(tmp_path):
    empty = pl.DataFrame({name: [None] for name in wearers(1, 1).columns})
    waits = append(tmp_path / "L", pl.concat([wearers(2, 1), empty], how="vertical_relaxed"))
    assert (waits.release, waits.waiting) == (None, 2)
    assert [remark.code for remark in waits.remarks] == ["empty-rows"]


def test_fewer_than_k_wait_and_are_published_with_the_next(tmp_path):
    ledger = tmp_path / "L"
    waiting = append(ledger, wearers(3, 1))
    assert (waiting.release, waiting.waiting) == (None, 3)
    done = append(ledger, wearers(3, 2))
    assert (done.release, done.waiting) == (1, 0)
    assert done.certificate["records"]["out"] == 6
    assert append(ledger, wearers(2, 3)).waiting == 2
    assert append(ledger, wearers(1, 4)).waiting == 3
    assert append(ledger, wearers(1, 5)).certificate["records"]["out"] == 4
    assert audit_ledger(ledger).holds


def test_whoever_waits_may_come_again_before_being_published_and_it_is_said(tmp_path):
    ledger = tmp_path / "L"
    assert append(ledger, wearers(3, 1)).returning == 0
    again = wearers(3, 1).with_columns(pl.lit("run").alias("activity"))
    waits = append(ledger, again)
    said = "still three people, with two records each"
    assert (waits.release, waits.waiting, waits.returning) == (None, 6, 3), said
    sitting = wearers(2, 1).with_columns(activity=pl.lit("sit"))
    done = append(ledger, pl.concat([wearers(1, 2), sitting]))
    assert done.certificate["records"]["out"] == 9
    assert done.certificate["subjects"] == 4
    assert done.returning == done.certificate["ledger"]["returning_people"] == 2
    assert append(ledger, wearers(30, 5)).certificate["ledger"]["returning_people"] == 0
    found = audit_ledger(ledger)
    assert [release["returning_people"] for release in found.report()["releases"]] == [2, 0]
    write_history_report(found, tmp_path / "r.html")
    assert "Release 0001: 2 people waited, returned" in (tmp_path / "r.html").read_text()


def test_the_command_says_who_returned(tmp_path, shoal):
    (tmp_path / "p.json").write_text(json.dumps(POLICY))
    again = wearers(1, 1).with_columns(activity=pl.lit("run"))
    for number, frame in enumerate((wearers(2, 1), again)):
        frame.write_csv(tmp_path / f"{number}.csv")
        words = (tmp_path / f"{number}.csv", "-p", tmp_path / "p.json", "--ledger", tmp_path / "L")
        stated = shoal("republish", *words, status=0)
    said = "1 person who waited returned: each now has several records, and counts once"
    assert said in stated.err


def test_signatures_refuse_who_waits_and_comes_again(tmp_path):
    """One record to a person: what waits is changed by an update, not by a second record."""
    asked = policy("m-invariance", roles={"beat": "drop"}, m=2)
    append(tmp_path / "L", wearers(3, 1), asked)
    again = pl.concat([wearers(1, 1), wearers(30, 2)])
    with pytest.raises(InputError, match=r"several, including those that wait: 2 \(row 1\)") as no:
        append(tmp_path / "L", again, asked)
    assert str(no.value).endswith("so leave further ones out")
    assert append(tmp_path / "L", again[1:], asked).release == 1


@pytest.mark.parametrize("frames", [[wearers(1, 1)], [wearers(1, 2), wearers(1, 2)]])
def test_who_waits_or_comes_twice_is_sent_as_an_update_where_that_can_be(tmp_path, frames):
    several = pl.concat(frames)
    asked = policy("m-invariance", roles={"beat": "drop", "change": "operation"}, m=2)
    inserted = pl.lit("insert").alias("change")
    append(tmp_path / "L", wearers(3, 1).with_columns(inserted), asked)
    with pytest.raises(InputError, match=r"leave further ones out, or send .* as an 'update'"):
        append(tmp_path / "L", several.with_columns(inserted), asked)
    update = several[:1].with_columns(change=pl.lit("update"), who=pl.lit("1-0"))
    assert append(tmp_path / "L", update, asked).waiting == 3


@pytest.fixture
def next_release(tmp_path, shoal):
    """Appends new people to one ledger by the command line; the method of their release."""

    seeds = count(1)

    def append_by(content, *options, does="insert"):
        (tmp_path / "p.json").write_text(json.dumps(content))
        wearers(60, next(seeds)).with_columns(change=pl.lit(does)).write_csv(tmp_path / "i.csv")
        named = ("republish", tmp_path / "i.csv", "-p", tmp_path / "p.json", "-q", *options)
        done = shoal(*named, "--ledger", tmp_path / "L", "--json")
        return json.loads(done.out)["method"] if done.status == 0 else done.err

    return append_by


DROPPED = POLICY["attributes"] | {"beat": {"role": "drop"}}
OPERATED = POLICY | {"attributes": DROPPED | {"change": {"role": "operation"}}}


def test_a_ledger_keeps_the_method_of_its_last_release_and_its_parameters(next_release):
    """One run without --method went on by `crp`, and nobody could be deleted any more."""
    dropped = POLICY | {"attributes": DROPPED | {"change": {"role": "drop"}}}
    begun = next_release(dropped, "--method", "m-invariance", "--set", "m=3")
    assert begun == {"name": "m-invariance", "parameters": {"m": 3, "refine": "none"}}
    assert next_release(dropped) == begun
    refused = next_release(dropped | {"method": {"name": "crp"}})
    assert "its last release is by 'm-invariance', and the policy names 'crp'; keep" in refused
    assert next_release(dropped, "--method", "crp")["name"] == "crp", "named on the command line"
    assert next_release(dropped)["name"] == "crp"


def test_a_column_of_operations_means_m_invariance(next_release):
    """A ledger that began by `crp` could never delete what its policy says may be deleted."""
    assert next_release(OPERATED)["name"] == "m-invariance"


def test_no_option_ends_deletions_in_a_ledger(next_release, shoal, tmp_path):
    assert next_release(OPERATED)["name"] == "m-invariance"
    crp = OPERATED | {"method": {"name": "crp"}}
    for asked in ((crp,), (OPERATED, "--method", "crp"), (OPERATED, "--method", "static-2")):
        refused = next_release(*asked)
        assert "nobody could be deleted or updated any more; keep 'm-invariance'" in refused
        assert "--method crp" not in refused
    asked = ("republish", tmp_path / "i.csv", "-p", tmp_path / "p.json", "--ledger", tmp_path / "L")
    assert re.search(r"crp +refused", shoal(*asked, "--what-if", "-q", status=0).out)


def test_a_ledger_that_never_took_deletions_names_another_as_the_way_out(next_release):
    crp = OPERATED | {"method": {"name": "crp"}}
    assert next_release(crp)["name"] == "crp"
    refused = next_release(crp, does="delete")
    assert f"{ANOTHER_LEDGER} by m-invariance for people who leave or change" in refused


def test_a_ledger_without_operations_says_how_people_may_leave(next_release):
    """It said to use the ledger's own policy, which knows no deletions."""
    plain = POLICY | {"attributes": DROPPED | {"change": {"role": "drop"}}}
    assert next_release(plain)["name"] == "crp"
    said = next_release(OPERATED)
    assert "without the operation column 'change'" in said
    assert f"or begin another ledger by m-invariance: {TWICE}" in said


def test_columns_that_a_ledger_does_not_know_are_left_out_of_the_increment(tmp_path):
    """Whatever policy was given to take them up, it was refused as another than the ledger's."""
    append(tmp_path / "L", wearers(60, 1))
    frame = wearers(60, 2)
    wider = frame.with_columns(device=pl.lit("x"))
    said = "column 'device': in the data, not in the policy; leave it out of the increment, as the"
    with pytest.raises(InputError, match=f"{said} ledger keeps its policy"):
        append(tmp_path / "L", wider)
    lacking = frame.columns[-1]
    said = f"column '{lacking}': in the policy, not in the data; .*add it or correct the name, as"
    with pytest.raises(InputError, match=said):
        append(tmp_path / "L", frame.drop(lacking))
    append(tmp_path / "L", wider.drop("device"))
    with pytest.raises(InputError, match="or say 'other: plain'"):  # nothing is kept as yet
        append(tmp_path / "M", wider)


@pytest.mark.parametrize("method", ["crp", "k-pprp", "m-invariance", "static-2", "sticky"])
def test_columns_that_are_dropped_come_and_go(tmp_path, method):
    """Whoever waited in other columns kept every later increment out, with exit status 70."""
    asked = Policy.from_dict(POLICY | {"attributes": DROPPED, "other": "drop"})
    asked = asked.with_method(method, {})
    more = {"more": pl.lit("x")}
    assert append(tmp_path / "L", wearers(2, 1).with_columns(less=1), asked).waiting == 2
    frames = [wearers(40, 2).with_columns(**more), wearers(40, 3), wearers(40, 4)]
    for release, frame in enumerate(frames, 1):
        assert append(tmp_path / "L", frame, asked, allow_leaks=True).release == release
    export_table(tmp_path / "L", str(tmp_path / "t.csv"))
    assert pl.read_csv(tmp_path / "t.csv").columns == [*wearers(1, 1).columns[1:5]]


@pytest.mark.parametrize("first", [2, 40])
def test_columns_that_are_published_unnamed_are_the_same_in_every_increment(tmp_path, first):
    """Whether the first records wait or are published; an export lost what it could not show."""
    asked = Policy.from_dict(POLICY | {"other": "plain"})
    append(tmp_path / "L", wearers(first, 1).with_columns(ward=pl.lit("x")), asked)
    for name, frame in (
        ("ward", wearers(40, 2)),
        ("more", wearers(40, 2).with_columns(ward=1, more=2)),
    ):
        with pytest.raises(InputError, match=f"^column '{name}': is published by 'other: plain'"):
            append(tmp_path / "L", frame, asked)
    turned = wearers(40, 2).with_columns(ward=pl.lit("y")).select("ward", pl.all().exclude("ward"))
    assert append(tmp_path / "L", turned, asked).waiting == 0


def test_an_earlier_ledger_of_several_sets_of_columns_is_exported_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.ledgers.increment.Terms.check_plain_columns", lambda *_: None)
    asked = Policy.from_dict(POLICY | {"other": "plain"})
    for number, name in enumerate(("one", "two")):
        append(tmp_path / "L", wearers(20, number).with_columns(pl.lit("x").alias(name)), asked)
    export_table(tmp_path / "L", str(tmp_path / "t.csv"))
    shown = pl.read_csv(tmp_path / "t.csv").select("one", "two")
    assert shown.null_count().rows() == [(20, 20)]


def test_who_is_deleted_needs_no_values_and_raises_no_alarm(next_release, tmp_path, shoal):
    next_release(OPERATED)
    given = pl.read_csv(tmp_path / "i.csv", infer_schema=False)
    emptied = pl.all().exclude("who", "change").replace_strict({}, default=None)
    gone = given.head(1).with_columns(emptied, change=pl.lit("delete"))
    gone.write_csv(tmp_path / "gone.csv")
    done = shoal(
        *("republish", tmp_path / "gone.csv", "-p", tmp_path / "p.json", "--ledger", tmp_path / "L")
    )
    assert done.status == 0, done.err
    assert "no value" not in done.out + done.err


def test_a_last_release_whose_method_was_changed_by_hand_is_damage(next_release, tmp_path):
    next_release(OPERATED)
    path = tmp_path / "L" / "0001" / "certificate.json"
    for method in (7, {"name": 7}, {"name": "crp", "parameters": 7}, {"name": "none"}):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"method": method}))
        assert next_release(OPERATED).startswith("shoal: ")


def test_an_empty_increment_changes_nothing(tmp_path):
    ledger = grown(tmp_path / "L", releases=1)
    done = append(ledger, wearers(0, 2).cast(pl.String))
    assert (done.release, done.waiting) == (None, 0)
    kept = {path.name for path in ledger.with_name("L.private").iterdir()}
    assert kept == {"000001", "inputs", "key", "lock"}


def test_people_of_earlier_releases_are_refused_and_counted(tmp_path):
    ledger = grown(tmp_path / "L", releases=2)
    mixed = pl.concat([wearers(20, 5), wearers(30, 1).head(3)])
    with pytest.raises(PromiseError, match=r"in earlier releases: 3 \(rows 21, 22, 23\)"):
        append(ledger, mixed)
    assert audit_ledger(ledger).holds
    assert len(audit_ledger(ledger).releases) == 2


def test_leaks_that_are_allowed_and_absent_are_not_claimed(tmp_path):
    done = append(tmp_path / "L", wearers(40, 1), policy("static-2"), allow_leaks=True)
    assert done.certificate["history"] == {"holds": True, "allowed": False, "findings": []}


def test_the_table_as_of_a_release_is_what_was_published_until_then(tmp_path):
    ledger = grown(tmp_path / "L", releases=3, n=20)
    for release in (1, 2, 3):
        out = tmp_path / "t.csv"
        assert export_table(ledger, str(out), release) == (20 * release, release)
        parts = [pl.read_csv(ledger / f"{r:04d}" / "data.csv") for r in range(1, release + 1)]
        assert pl.read_csv(out).equals(pl.concat(parts))


def test_a_whole_table_takes_the_place_of_what_was_before_it(tmp_path):
    ledger = grown(tmp_path / "L", 2, 20, policy("static-2"), allow_leaks=True)
    append(ledger, wearers(20, 3))  # an increment behind it
    assert export_table(ledger, str(tmp_path / "t.csv"))[0] == 60
    assert export_table(ledger, str(tmp_path / "t.csv"), 2)[0] == 40


def test_a_ledger_keeps_its_policy(tmp_path):
    ledger = grown(tmp_path / "L", releases=1)
    age = POLICY["attributes"]["age"] | {"domain": [0, 90]}
    for other in (policy(k=3), policy(roles={"age": age}), policy(roles={"beat": "drop"})):
        with pytest.raises(InputError, match="was begun under a policy that differs in"):
            append(ledger, wearers(30, 2), other)
    assert len(audit_ledger(ledger).releases) == 1


@pytest.mark.parametrize("word", ["delete", "Update"])
def test_a_dropped_column_that_says_who_leaves_or_changes_is_refused(tmp_path, word):
    """Without it, who asked to be deleted would be published."""
    asked = Policy.from_dict({**POLICY, "other": "drop"})
    ledger = grown(tmp_path / "L", releases=1, asked=asked)
    came = wearers(30, 2).with_columns(change=pl.Series(["insert"] * 29 + [word]))
    with pytest.raises(
        InputError, match="'change': asks for updates or deletions in 1 of 30 records"
    ):
        append(ledger, came, asked)
    assert len(audit_ledger(ledger).releases) == 1


def test_numbers_need_a_domain_that_stays(tmp_path):
    asked = policy(roles={"age": {"role": "quasi", "type": "number"}})
    with pytest.raises(InputError, match="'age': a series of releases needs one fixed domain"):
        append(tmp_path / "L", wearers(30, 1), asked)
    assert not (tmp_path / "L").exists()


def test_a_lower_k_asked_of_the_audit_is_its_own(tmp_path):
    ledger = grown(tmp_path / "L", releases=1)
    assert audit_ledger(ledger, k=3).holds
    assert not audit_ledger(ledger, k=9).holds


def test_people_are_counted_who_have_several_records(tmp_path):
    one, two = wearers(20, 1), wearers(20, 1).with_columns(pl.lit("run").alias("activity"))
    append(tmp_path / "L", pl.concat([one, two]))
    found = audit_ledger(tmp_path / "L").releases[0].certificate
    assert (found["records"]["out"], found["subjects"]) == (40, 20)
    assert found["promises"][0]["measured"] >= 4


def test_without_the_private_part_rows_are_counted_and_boxes_compared(tmp_path):
    ledger = grown(tmp_path / "L", 2, 40, policy("static-2"), allow_leaks=True)
    ledger.with_name("L.private").rename(tmp_path / "elsewhere")
    found = audit_ledger(ledger)
    assert not found.knows_people
    assert [f.check for f in found.releases[1].findings] == ["boxes"]
    assert not found.holds


def test_the_command_says_that_records_wait_and_a_quiet_one_warnings_alone(folder, shoal):
    Path("p.json").write_text(json.dumps(POLICY))
    wearers(30, 1).write_csv("a.csv")
    wearers(2, 2).write_csv("b.csv")
    assert shoal("republish", "a.csv", "-p", "p.json", "--ledger", "L").status == 0
    waits = shoal("republish", "b.csv", "-p", "p.json", "--ledger", "L", status=0)
    assert waits.err == (
        "shoal: no new release: 2 records wait for the next increment\n"
        "shoal: reason: promise 'k-anonymity': k = 4 asked, 2 subjects in the table\n"
    )
    wearers(1, 3).write_csv("c.csv")
    as_json = shoal("republish", "c.csv", "-p", "p.json", "--ledger", "L", "--json", "-q").out
    assert json.loads(as_json).items() >= {"release": None, "waiting": 3, "repeated": False}.items()
    more = shoal("republish", "a.csv", "-p", "p.json", "--ledger", "L", "-q", status=0)
    assert all("one person's" in line for line in more.err.splitlines())  # nothing but warnings
    assert shoal("audit", "--ledger", "L", "-p", "p.json").status == 2


def test_what_fails_behind_an_append_says_that_the_release_is_out(folder, shoal, monkeypatch):
    Path("p.json").write_text(json.dumps(POLICY))
    wearers(30, 1).write_csv("a.csv")

    def full(found, path):
        raise InputError("report 'r.html': writing failed (No space left on device)")

    monkeypatch.setattr("shoal.reports.history.write_history_report", full)
    order = ("republish", "a.csv", "-p", "p.json", "--ledger", "L", "--report", "r.html", "-q")
    assert shoal(*order).status == 2
    assert shoal(*order).err == (
        "shoal: release 0001 is published; report 'r.html': writing failed (No space left on"
        " device)\n"
    )
    assert Path("L/0001").is_dir()


def test_the_report_of_a_history_says_what_was_found_and_names_nobody(tmp_path, shoal):
    ledger = grown(tmp_path / "L", 2, 40, policy("static-2"), allow_leaks=True)
    page = tmp_path / "history.html"
    assert shoal("audit", "--ledger", ledger, "--report", page, "-q").status == 1
    text = page.read_text()
    assert "The history does not hold" in text
    assert "specificity" in text
    assert text.count("<svg") == 3
    assert "http" not in text.replace("http://www.w3.org", "")
    for cell in pl.read_csv(ledger / "0002" / "data.csv", infer_schema=False)["age"].unique():
        assert f">{cell}<" not in text or cell.isdigit()


@pytest.mark.long
def test_what_if_shows_every_method_and_publishes_nothing(folder, shoal):
    Path("p.json").write_text(json.dumps(POLICY))
    wearers(40, 1).write_csv("a.csv")
    wearers(40, 2).write_csv("b.csv")
    asked = ("republish", "a.csv", "-p", "p.json", "--ledger", "L", "--what-if", "--json")
    first = {row["method"]: row for row in json.loads(shoal(*asked).out)}
    assert not list(folder.glob("L*")), "nothing is begun by asking"
    published = {name for name, row in first.items() if row["outcome"] == "published"}
    assert published == {"crp", "static-1", "static-2", "k-pprp", "sticky"}
    assert first["m-invariance"]["outcome"] == "refused"
    assert any("plain column" in stated for stated in first["m-invariance"]["told"])
    shoal("republish", "a.csv", "-p", "p.json", "--ledger", "L", "--method", "static-2", "-q")
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    shown = shoal("republish", "b.csv", "-p", "p.json", "--ledger", "L", "--what-if")
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    assert re.search(r"^static-2 +withheld", shown.out, re.MULTILINE)
    assert re.search(r"^crp +published +40 +10", shown.out, re.MULTILINE)
    assert "specificity" in shown.out


def test_a_release_that_is_withheld_first_begins_no_ledger(tmp_path):
    with pytest.raises(InputError):
        append(tmp_path / "L", wearers(40, 1), policy("m-invariance"))
    assert not list(tmp_path.glob("L*")), "nor a private part"


def test_a_folder_of_the_private_parts_name_keeps_what_is_in_it(tmp_path):
    (tmp_path / "L.private").mkdir()
    (tmp_path / "L.private" / "mine.txt").write_text("mine")
    with pytest.raises(InputError):
        append(tmp_path / "L", wearers(40, 1), policy("m-invariance"))
    assert [path.name for path in (tmp_path / "L.private").iterdir()] == ["mine.txt"]


def test_an_increment_that_comes_again_repeats_no_warning(tmp_path, capsys):
    wearers = tmp_path / "w.csv"
    assert status_of(["sample", "wearables", "-n", "100", "-o", str(wearers), "-q"]) == 0
    wearables.generate(100, 0, in_steps=False).write_csv(wearers)
    command = ["republish", wearers, "-p", tmp_path / "w.policy.yaml", "--ledger", tmp_path / "led"]
    command = [str(part) for part in command]
    assert status_of(command) == 0
    assert "one person's" in capsys.readouterr().err
    assert status_of(command) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if "one person's" in line] == []


@pytest.mark.parametrize("method", ["crp", "sticky"])
def test_a_code_that_a_ledger_does_not_know_may_be_left_out_or_begin_another(method, tmp_path):
    def asked(*sexes: str) -> Policy:
        tree = {"role": "quasi", "hierarchy": {"tree": {"any": [*sexes]}}}
        attributes = POLICY["attributes"] | {"sex": tree, "beat": "drop"}
        return Policy.from_dict(content_of(attributes, 4)).with_method(method)

    append(tmp_path / "L", wearers(30, 1), asked("f", "m"))
    later = wearers(30, 2).with_columns(sex=pl.Series(["d", *"fm" * 14, "f"]))
    keeps = r"\(row \d+\).* The ledger keeps its policy: leave such records out, or begin another"
    with pytest.raises(InputError, match=keeps):
        append(tmp_path / "L", later, asked("f", "m"))
    assert append(tmp_path / "L", later[1:], asked("f", "m")).release == 2
    append(tmp_path / "other", wearers(30, 1), asked("f", "m", "d"))
    assert append(tmp_path / "other", later, asked("f", "m", "d")).release == 2


BODIES = {
    "age": {"role": "quasi", "type": "number", "domain": [10, 100]},
    "weight": {"role": "quasi", "type": "number", "domain": [30, 200]},
}


@pytest.mark.long
def test_165_thousand_rows_of_four_people_are_four_people(tmp_path, data_folder):
    """PUC-Rio: each body has tens of thousands of rows; by rows, k = 13,161 would hold."""
    roles = BODIES | {"user": "subject", "class": "sensitive"}
    frame = files.read(str(data_folder / "wearables" / "puc_rio_har.csv.gz")).frame
    five, four = (Policy.from_dict(content_of(roles, k, other="drop")) for k in (5, 4))
    waits = append(tmp_path / "five", frame, five)
    assert (waits.release, waits.waiting) == (None, 165_633)
    assert "k = 5 asked, 4 subjects" in waits.reasons[0]
    done = append(tmp_path / "four", frame, four)
    assert done.certificate["classes"]["count"] == 1, "four people make one class of four"
    assert done.certificate["promises"][0]["measured"] == 4


@pytest.mark.long
@pytest.mark.parametrize("method", ["crp", "static-1", "k-pprp"])
def test_watches_in_two_increments(tmp_path, data_folder, method):
    """Watch and Fitbit: 6,264 minutes of 49 bodies, each taken for a person, as none is named."""
    minutes = files.read(str(data_folder / "wearables" / "watch_fitbit.csv.gz")).frame
    body = pl.concat_str("age", "gender", "height", "weight", separator="/").alias("body")
    frame = minutes.select("age", "weight", "activity", body)
    people = sorted(frame["body"].unique())
    assert (frame.height, len(people)) == (6264, 49)
    roles = BODIES | {"body": "subject", "activity": "sensitive"}
    asked = Policy.from_dict(content_of(roles, 5)).with_method(method, {})
    for part in (people[:27], people[27:]):
        assert append(tmp_path / "L", frame.filter(pl.col("body").is_in(part)), asked).release
    found = audit_ledger(tmp_path / "L")
    assert found.holds
    assert min(r.certificate["promises"][0]["measured"] for r in found.releases) >= 5
