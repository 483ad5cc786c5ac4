"""Where a fresh steward stumbled between the draft and the release."""

import re

import polars as pl
import pytest

from shoal.web.sign_off import context_of
from shoal.web.work import Job
from web.test_page import draft
from web.test_release_screen import answered, released
from web.visitor import Visitor, number_of


def part_of(page, id_: str) -> str:
    """The fold that holds an element, from its own tag to the end of the page."""
    before, _, after = page.text.partition(f'id="{id_}"')
    return "<details" + before.rpartition("<details")[2] + after


def test_a_result_says_what_each_column_keeps_and_counts_all_that_is_not_in_the_release(opened):
    stated = opened.server.project.run(draft(opened, k="4")).certificate
    said = opened.get("/result").words
    gone = [c["name"] for c in stated["columns"] if c["technique"] == "removed"]
    assert {c["role"] for c in stated["columns"]} >= {"identifier", "subject"}
    assert f"besides {len(gone)} columns that are not in the release" in said
    assert "rows show the exact value" in said
    assert "% of the whole span between least and greatest" in said
    assert re.search(r"an average range covers [\d.]+ % of the rows", said)


@pytest.mark.long
def test_what_goes_out_as_it_is_stands_beside_the_button_and_answers_reach_the_report(opened):
    opened.give("charge", "plain")
    first = draft(opened, k="4")
    answered(opened)
    page = opened.get("/release")
    assert part_of(page, "attacks").startswith('<details class="card" open>')  # to be seen first
    opened.send("sign-form", name="Ada", decision="accept")
    page = opened.get("/release")
    at_button = page.text.partition('id="goes-out"')[2].partition("<button")[0]
    said = re.sub("<[^>]+>|\\s+", " ", at_button)
    found = r"&#39;charge&#39; is not protected: if it is known too, \d+ of \d+ people are alone"
    assert re.search(found, said)
    assert "Accepted by Ada: “charge: " in said
    # another draft: the words are there, and say for which draft they were written
    draft(opened)
    page = opened.get("/release")
    assert f"Written for draft {int(first)}: is it still true?" in page.words
    opened.send("attack-form")
    opened.until("/release", "✓ Attacks tried")
    opened.send("answers", purpose="Planning wards")  # after the report was drawn
    place = released(opened)
    report = (place / "report.html").read_text("utf-8")
    assert "Purpose: Planning wards" in report
    # the box says what is for whom, and the list of steps that all is done
    box = opened.last.text.partition('id="released"')[2].partition("</section>")[0]
    sent, kept = box.split("These stay with you")
    assert "data.csv<" in sent
    assert "dossier.json<" in kept
    assert "dossier.json<" not in sent
    assert part_of(opened.last, "release-form").startswith('<details class="card" id="leaves">')
    assert "Release draft 2 released (done)" in opened.last.words
    assert opened.get("/help").text.count('id="next-month"') == 1


@pytest.mark.long
def test_an_answer_that_cannot_be_read_is_named_and_keeps_no_other_from_being_saved(opened):
    draft(opened)
    page = opened.get("/release")
    gate = page.text.partition('id="gate"')[2].partition("</table>")[0]
    for place in re.findall(r'href="#(\w+)"', gate):  # no link leads nowhere
        assert f'id="{place}"' in page.text
    for typed, share in (("1 in 10", 0.1), ("10 %", 0.1), ("0,2", 0.2), ("1/4", 0.25)):
        opened.send("answers", **{"threshold.max": typed})
        assert context_of(opened.server.project)["threshold"]["max"] == share
    assert "Saved" in opened.last.text.partition('id="answers-saved"')[2].partition("<")[0]
    answer = opened.send("answers", purpose="Planning", **{"threshold.max": "much"})
    assert answer.status == 422
    assert "accepted risk: greatest risk: write a share such as 0.1" in answer.words
    kept = context_of(opened.server.project)
    assert (kept["purpose"], kept["threshold"]["max"]) == ("Planning", 0.25)


@pytest.mark.long
def test_promises_name_what_the_gate_will_ask_about_in_its_words(opened):
    opened.give("name", "plain")
    said = "not protected: it is published as it is, and names people or says how"
    assert said in opened.until("/promises", "But 1 grave finding stays open.").words
    draft(opened)
    before = opened.get("/promises").words  # by now with what the draft's file shows
    opened.get("/release")
    opened.send("attack-form")
    gate = opened.until("/release", "Try again").text.partition('id="accept"')[2]
    asked = [Visitor.words_of(text) for text in re.findall("<span>([^<]+)</span>", gate)]
    assert sum(text in before for text in asked) >= 2
    assert any(said in text for text in asked)
    assert "name leaves as it is in your table" in gate


def test_what_to_do_for_a_private_number_that_is_published_as_it_is_stands_once(visitor, tables):
    sums = [f"{1000 + 7 * i}.5" for i in range(120)]
    rows = pl.DataFrame({"id": range(120), "sex": ["f", "m"] * 60, "amount": sums})
    rows.write_csv(tables / "sums.csv")
    visitor.post("/table", path="sums.csv")
    visitor.edit("person", person="1")
    visitor.give("amount", "sensitive")
    way_out = "leave the column out, or make it one that others could know, to publish ranges"
    page = visitor.until("/columns", way_out)
    row = Visitor.words_of(page.text.partition('id="column-3"')[2])
    assert "Publish these ranges, and drop the promise at least 2 different" in row
    assert "left out? could others know" in row or "could others" not in row
    assert row.count(way_out) == 1
    assert "Published exactly" not in row
    assert "Ranges make it" not in row


@pytest.mark.long
def test_a_grave_finding_stays_while_it_is_counted_again(opened, monkeypatch):
    opened.give("name", "plain")
    opened.until("/promises", "names people or says")

    async def counting(name, **asked):
        return None

    monkeypatch.setattr(opened.server, "policy_look", counting)
    opened.edit("k", k="7")
    said = opened.get("/promises").words
    assert "names people or says" in said
    assert "This is being counted again" in said


def test_what_was_saved_lists_what_was_filled_in_and_the_dossier_what_an_answer_lacks(opened):
    draft(opened)
    opened.get("/release")
    page = opened.send("answers", purpose="Planning wards", who="Health services")
    saved = opened.server.project.history.entries()[-1].sentence
    assert saved == "release: recipient: who, purpose, ratings of columns"
    assert re.search(r"Recipient : lacks ", page.words)


def test_the_row_of_a_number_that_is_not_rounded_says_so(opened):
    said = "Published exactly: a private number can't be rounded here."
    page = opened.until("/columns", said)
    charge = number_of(opened.server, "charge")
    assert said in page.text.partition(f'id="column-{charge}"')[2].partition("</tr>")[0]
    assert page.text.count(said) == 1


@pytest.mark.long
def test_a_draft_is_shown_while_it_is_attacked(opened, monkeypatch):
    running = Job("a", "attack", {"run": draft(opened)}, state="running")
    monkeypatch.setitem(opened.server.jobs._all, "a", running)
    words = opened.get("/result").words
    assert "Every promise holds" in words
    assert "Being made" not in words
