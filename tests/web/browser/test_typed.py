"""What somebody has typed outlives every answer that takes the page's place."""

from web.browsing import come_in, tab_of
from web.walk import settled


def test_answers_are_saved_before_attacks_are_tried_and_a_name_half_typed_stays(gate, opened):
    gate.fill("[name=who]", "Health services")
    gate.select_option("[name=kind]", "restricted")
    gate.fill("#sign-form [name=comment]", "seen")
    gate.click("#attack-form button")
    gate.click("#sign-form [name=name]")
    gate.keyboard.type("Ada")
    gate.keyboard.press("ArrowLeft")
    gate.wait_for_selector("#gate tr:has-text('Attacks tried') .ok")
    gate.keyboard.type("d")
    assert gate.input_value("#sign-form [name=name]") == "Adda"
    assert gate.input_value("#sign-form [name=comment]") == "seen"
    assert gate.input_value("[name=who]") == "Health services"
    context = (opened.server.project.folder / "release.yaml").read_text()
    assert "Health services" in context
    assert "restricted" in context


def test_a_refusal_stands_above_the_fields_and_changes_none(gate):
    gate.check("#answers [value=some]")
    gate.fill("[name=purpose]", "Waiting times")
    gate.click("#answers button.main")
    gate.wait_for_selector("#error:focus >> text=none is named")
    assert gate.input_value("[name=purpose]") == "Waiting times"
    assert gate.is_checked("#answers [value=some]")
    gate.check("#answers [value=none]")
    gate.click("#answers button.main")
    gate.wait_for_selector("#gate tr:has-text('Other releases of these people') .ok")
    assert not gate.query_selector("#error")


def test_a_control_that_saves_by_itself_goes_back_where_it_is_refused(gate, opened):
    gate.goto(f"{opened.server.door.origin}/promises")
    settled(gate)
    gate.evaluate("document.getElementById('k').removeAttribute('min')")
    gate.fill("#k", "1")
    gate.press("#k", "Tab")
    gate.wait_for_selector("#error >> text=must be a whole number")
    assert gate.input_value("#k") == "4"


def test_a_number_that_is_typed_before_the_script_is_there_is_saved(context, opened):
    held = []
    come_in(context, opened.server)
    context.route("**/shoal.js", lambda route: held.append(route))
    tab = tab_of(context)
    tab.goto(f"{opened.server.door.origin}/promises", wait_until="commit")
    tab.fill("#k", "4")
    tab.press("#k", "Tab")
    assert not tab.query_selector("#policy >> text=k: 4")
    held[0].continue_()
    tab.wait_for_selector("#policy >> text=k: 4")


def test_answers_are_saved_when_a_link_leaves_the_gate(gate, opened):
    gate.fill("[name=purpose]", "Waiting times")
    gate.click(".steps a[href='/promises']")
    gate.wait_for_url("**/promises")
    assert "Waiting times" in (opened.server.project.folder / "release.yaml").read_text()


def test_a_wheel_over_a_number_moves_the_page_and_not_the_number(context, opened):
    tab = come_in(context, opened.server)
    tab.set_viewport_size({"width": 1280, "height": 500})
    tab.goto(f"{opened.server.door.origin}/promises")
    settled(tab)
    before = tab.input_value("#k")
    tab.click("#k")
    for _ in range(3):
        tab.mouse.wheel(0, 100)
        tab.wait_for_timeout(100)
    assert tab.input_value("#k") == before
    tab.wait_for_function("scrollY > 0")
