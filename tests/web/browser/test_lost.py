"""What somebody has typed is neither lost nor refused for the sake of another answer."""

import pytest

from shoal.web.sign_off import context_of
from web.browsing import come_in
from web.visitor import number_of


def test_answers_are_asked_about_kept_and_refused_one_by_one(gate, opened):
    asked = []
    gate.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    # a link opens the fold that it leads to
    gate.click("#lacking a[href='#asked'] >> nth=0")
    assert gate.is_visible("[name=profile]")
    # what is open as in the row above, at once; what is answered stays
    gate.fill("[name=why-1]", "needed")
    gate.select_option("[name=replicable-1]", "low")
    gate.select_option("[name=replicable-2]", "high")
    gate.check("[name=same-2]")
    assert gate.input_value("[name=why-2]") == "needed"
    assert gate.input_value("[name=replicable-2]") == "high"
    assert "fill what is open as for" in gate.inner_text(".same >> nth=0")
    gate.check("[name=same-3]")
    gate.select_option("[name=replicable-1]", "medium")
    assert gate.input_value("[name=replicable-3]") == "high"
    # a share that can't be read is said at its field, and all else is saved
    gate.click("#further summary")
    field = gate.locator("[name='threshold.max']")
    field.fill("much")
    gate.fill("[name=purpose]", "Planning")
    gate.click("#answers button.main")
    gate.wait_for_selector("#answers-saved")
    assert field.input_value() == "much"
    assert field.evaluate("field => field === document.activeElement")
    kept = context_of(opened.server.project)
    assert kept["purpose"] == "Planning"
    assert "threshold" not in kept
    assert [one["replicable"] for one in kept["attributes"].values()][:3] == [
        "medium",
        "high",
        "high",
    ]
    assert not asked
    # what is not saved is asked about before the page is left; what is saved is not
    with gate.expect_event("dialog"):
        gate.click(".steps a[href='/columns']")
    assert asked == ["beforeunload"]
    field.fill("1 in 10")
    gate.click(".steps a[href='/columns']")
    gate.wait_for_url("**/columns")
    assert asked == ["beforeunload"]
    assert context_of(opened.server.project)["threshold"]["max"] == 0.1


def test_who_stays_where_a_page_was_about_to_be_left_goes_on_with_what_was_saved(gate, opened):
    gate.on("dialog", lambda dialog: dialog.dismiss())
    gate.fill("[name=purpose]", "Planning")
    gate.click("#lacking a[href='#asked'] >> nth=0")
    gate.fill("[name='threshold.max']", "much")  # can't be saved: the browser asks
    gate.fill("#sign-form [name=name]", "Ada")
    gate.fill("#sign-form [name=comment]", "seen")
    gate.click(".steps a[href='/columns']")
    gate.wait_for_selector("#answers-saved")
    gate.fill("[name=who]", "Health services")
    gate.fill("[name='threshold.max']", "0.1")
    gate.click("#answers button.main")
    gate.wait_for_selector("#policy >> text=Health services")
    assert not gate.query_selector("#error")
    # a sign-off that was begun is there again, and signs nothing
    gate.click(".steps a[href='/columns']")
    gate.wait_for_url("**/columns")
    gate.goto(f"{opened.server.door.origin}/release")
    assert gate.input_value("#sign-form [name=name]") == "Ada"
    assert gate.input_value("#sign-form [name=comment]") == "seen"
    assert not gate.query_selector("#sign .ok")
    assert "sign_off" not in context_of(opened.server.project)


def test_the_focus_stays_with_a_column_that_is_left_out(context, opened):
    number = number_of(opened.server, "patient")
    opened.give("patient", "plain")
    tab = come_in(context, opened.server)
    tab.goto(f"{opened.server.door.origin}/columns")
    tab.click(f"#leave-{number} button", timeout=15000)
    tab.wait_for_selector(f"#role-{number}:focus", timeout=15000)


def test_who_comes_into_a_field_while_an_answer_arrives_stays_there(gate):
    gate.fill("#sign-form [name=name]", "Ada Byron")
    gate.select_option("#sign-form [name=decision]", "accept")
    gate.evaluate(
        """() => {
            const answer = window.fetch;
            window.fetch = async (...asked) => {
                await new Promise(done => setTimeout(done, 1000));
                return answer(...asked);
            };
        }"""
    )
    gate.click("#sign-form button")
    gate.focus("[name=purpose]")
    gate.wait_for_selector("#gate tr:has-text('Signed off') .ok")
    assert gate.evaluate("document.activeElement.name") == "purpose"


def test_what_is_typed_is_not_called_saved_and_a_stray_key_undoes_nothing(gate, opened):
    before, asked = opened.server.project.policy_text, []
    gate.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    gate.click("#lacking a:has-text('Legal basis')")
    gate.wait_for_selector("#answers [name^=legal]:focus")  # who is led there types there
    gate.keyboard.type("full duty")
    for place in ("#saved", "#answers-saved"):
        if gate.locator(place).count():
            assert gate.inner_text(place) == "Not saved yet"
    assert asked == []
    gate.evaluate("document.activeElement.blur()")
    gate.keyboard.press("u")
    assert [message.partition(" ")[0] for message in asked] == ["Undo"]
    assert opened.server.project.policy_text == before
    gate.fill("#answers [name^=legal]", "")
    assert gate.inner_text("#saved").startswith("Saved")


@pytest.mark.parametrize("width", [380, 1280, 1920])
def test_no_label_of_the_gate_is_squeezed(gate, width):
    gate.set_viewport_size({"width": width, "height": 900})
    gate.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    heights = "labels => labels.map(label => label.offsetHeight)"
    assert max(gate.eval_on_selector_all(".ratings small", heights)) < 28  # one line
    assert max(gate.eval_on_selector_all("#gate td:nth-child(2)", heights)) < 65  # two
    # the point of a list stands beside the first line of a link
    align = "link => getComputedStyle(link).verticalAlign"
    assert gate.eval_on_selector("#lacking a", align) == "top"
    named = "all => all.filter(one => one.checkVisibility()).map(one => one.textContent.trim())"
    assert all(gate.eval_on_selector_all("button", named))  # what is hidden is not seen
