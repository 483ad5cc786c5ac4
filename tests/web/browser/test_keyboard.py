"""Without a mouse: from an empty project to a release; without script; trees by keys."""

from shoal.samples import patients
from shoal.web.app import opening_page
from web.browsing import Keys, come_in, tab_of
from web.visitor import Visitor, number_of, served
from web.walk import ANSWERS, accepting

MOST_PRESSES = 200  # past whatever the dossier's profile asks


def to_promises(keys: Keys, server, has_script: bool) -> str:
    """From the first screen to the promises; the policy that comes of it."""
    tab = keys.tab
    number = {name: n for n, name in enumerate(COLUMNS, 1)}
    keys.use("#table-form [name=path]", "Space")
    keys.use("#table-form button.main")
    tab.wait_for_selector("#person-form [name=person]:checked")  # it counts, and shows it itself
    tab.wait_for_selector("body:not([data-waits])", state="attached")
    keys.use("#person-form button.main")
    tab.wait_for_selector(".box.good")
    keys.use("[id^=confirm] button", most=60)
    tab.wait_for_selector("[id^=confirm]", state="detached")
    keys.go(f"#role-{number['ward']}")
    keys.press("h")  # Harmless
    if not has_script:
        keys.use(f"#role-set-{number['ward']}")
    tab.wait_for_selector("#policy >> text=ward: {role: plain")
    if has_script:
        keys.press("Alt+3")
    else:
        keys.use("main > a.skip", most=60)
    tab.wait_for_selector("h1:text('made coarser')")
    keys.use("main > a.skip")
    tab.wait_for_selector("h1:text('What do you promise?')")
    keys.go("#k")
    keys.press("Control+A")
    keys.type("4")
    keys.press("Enter")
    tab.wait_for_selector("#policy >> text=k: 4")
    tab.wait_for_selector("#policy >> text=l-diversity")  # as proposed
    assert tab.inner_text("h1") == "What do you promise?"  # and no conflict with oneself
    return server.project.policy_text


def to_release(keys: Keys) -> None:
    """From the promises to a release that is signed off."""
    tab = keys.tab
    keys.use("#make")
    tab.wait_for_selector("#verdict >> text=Every promise holds")
    keys.use("main > a.skip")
    keys.use("#attack-form button")
    tab.wait_for_selector("#gate tr:has-text('Attacks tried') .ok")
    for name in ("who", "purpose", "controls"):
        keys.go(f"#answers [name={name}]")
        keys.type(ANSWERS[name])
    keys.go("#answers [name=kind]")
    keys.press("b")  # By contract
    keys.go("#answers [name=review_by]")
    keys.type("01012031")
    keys.use("#answers [value=none]", "Space")
    for field in tab.query_selector_all("#answers [name^=why]"):
        keys.go(f"[name={field.get_attribute('name')}]")
        keys.type("needed for the purpose")
    for number, label in enumerate(tab.query_selector_all("#accept label"), ord("a")):
        keys.go(f"[name={label.query_selector('textarea').get_attribute('name')}]")
        keys.type(accepting(label.inner_text().strip(), number))
    keys.use("#answers button.main")
    tab.wait_for_selector("#gate tr:has-text('A reason for every column') .ok")
    keys.go("#sign-form [name=name]")
    keys.type("Ada Byron")
    keys.go("#sign-form [name=decision]")
    keys.press("a")  # Accept
    keys.use("#sign-form button")
    tab.wait_for_selector("#release-form button:focus")  # what the signature has opened
    keys.press("Enter")
    tab.wait_for_selector("text=Released: releases/")


COLUMNS = patients.generate(2, seed=3).columns


def test_keys_alone_lead_from_an_empty_project_to_a_signed_release(browser, tmp_path):
    patients.generate(120, seed=3).write_csv(tmp_path / "patients.csv")
    policies = []
    for has_script in (True, False):
        with served(tmp_path / f"ward-{has_script}", tmp_path) as server:
            context = browser.new_context(java_script_enabled=has_script)
            if has_script:
                tab = come_in(context, server, has_script)
            else:  # somebody presses the button of the page that lets them in
                path = tmp_path / "open.html"
                path.write_text(opening_page(server))
                tab = tab_of(context)
                tab.goto(path.as_uri())
                tab.keyboard.press("Tab")
                tab.keyboard.press("Enter")
                tab.wait_for_url("**/open")
            keys = Keys(tab)
            policies.append(to_promises(keys, server, has_script))
            if has_script:
                to_release(keys)
                assert keys.presses < MOST_PRESSES
                assert [*(server.project.folder / "releases").iterdir()]
            context.close()
    assert policies[0] == policies[1]


def test_a_tree_is_walked_and_found_by_keys_and_grouped_by_mouse(context, tmp_path):
    patients.generate(120, seed=3).write_csv(tmp_path / "patients.csv")
    groups = {"none": "low", "primary": "low", "secondary": "low", "vocational": "low"}
    groups |= dict.fromkeys(("bachelor", "master", "doctorate"), "high")
    table = "".join(f"{value};{group};*\n" for value, group in groups.items())
    (tmp_path / "schooling.csv").write_text(table)
    with served(tmp_path / "ward", tmp_path) as server:
        visitor = Visitor(server)
        visitor.post("/table", path="patients.csv")
        place = f"/hierarchies/{number_of(server, 'education')}"
        visitor.post(place, do="use", file="schooling.csv", base=server.project.policy_sha)
        tab = come_in(context, server)
        tab.goto(server.door.origin + place)

        def after(*keys):
            for key in keys:
                tab.keyboard.press(key)
            return tab.evaluate("document.activeElement.querySelector('.label')?.textContent")

        tab.focus("#node-0")
        assert after("ArrowDown", "ArrowDown") == "bachelor"
        assert after("ArrowLeft") == "high"
        assert after("ArrowLeft", "ArrowDown") == "low"  # what is folded is passed over
        assert after("ArrowUp", "ArrowRight", "ArrowRight") == "bachelor"
        assert after("End") == "vocational"
        assert after("Home", "d", "o") == "doctorate"
        assert after(" ") == "doctorate"
        assert tab.is_checked("tr:has(.label:text-is('doctorate')) [name=of]")
        assert after("g") is None
        assert tab.evaluate("document.activeElement.id") == "group-to"
        tab.focus("#node-0")
        assert after("l") == "low"
        tab.keyboard.press("F2")
        tab.wait_for_selector("#rename-to:focus")
        tab.keyboard.type("lower")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("[data-tree] tr:focus")  # and not at the top again
        tab.focus("tr:has(.label:text-is('lower'))")
        tab.keyboard.press("m")
        tab.wait_for_selector("#move-to:focus")
        tab.keyboard.press("Escape")
        tab.goto(server.door.origin + place)

        def row(label):
            return tab.locator(f"tr:has(.label:text-is('{label}'))")

        row("doctorate").drag_to(row("lower"))  # by mouse: onto a group
        tab.wait_for_function(IS_IN, arg=["doctorate", "lower"])
        row("none").drag_to(row("primary"))  # onto another value: both wait for a name
        tab.wait_for_selector("#group-to:focus")
        assert row("none").locator("[name=of]").is_checked()
        assert row("primary").locator("[name=of]").is_checked()


IS_IN = """([value, group]) => {
  const label = row => row.querySelector(".label")?.textContent;
  let row = [...document.querySelectorAll("[data-tree] tr")].find(one => label(one) === value);
  while (!row.hasAttribute("aria-expanded")) row = row.previousElementSibling;
  return label(row) === group;
}"""
