"""The pictures of `shoal ui` in the documentation, from the bundled sample: `make pictures`.

Each is a screen in Chromium, 1280 or 390 pixels wide, light or dark. The page is that of 1,000
invented patients, so that no picture shows anybody. The README shows the top of their report.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
SHOWN = ("columns", "compare", "result")  # in docs/ui.md
SCREENS = (*SHOWN, "open", "hierarchies", "promises", "release", "help")
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=IMAGES)
    parser.add_argument("--all", action="store_true", help="every screen, both themes and widths")
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    from shoal.samples import patients
    from web.browsing import BROWSER, FLAGS, come_in
    from web.visitor import Visitor, served

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        start = Path(folder)
        patients.generate(1000, 7).write_csv(start / "patients.csv")
        with served(start / "ward-study", start) as server:
            prepared(Visitor(server))
            browser = driver.chromium.launch(executable_path=BROWSER, args=FLAGS)
            report_pictured(browser, start, asked.out / "report.png")
            for scheme in ("light", "dark") if asked.all else ("light",):
                for width in (1280, 390) if asked.all else (1280,):
                    context = browser.new_context(
                        viewport={"width": width, "height": 1090}, color_scheme=scheme
                    )
                    tab = come_in(context, server)
                    tab.set_default_timeout(300_000)
                    for screen in SCREENS if asked.all else SHOWN:
                        shown(tab, server, screen)
                        name = f"ui-{screen}-{scheme}{'' if width == 1280 else '-narrow'}.png"
                        tab.screenshot(path=asked.out / name, full_page=asked.all)
                        compressed(asked.out / name)
            browser.close()


def report_pictured(browser, folder: Path, path: Path) -> None:
    """The report of the commands at the top of the README, down to its list of contents."""
    from shoal.cli.main import status_of
    from shoal.samples import write_sample

    table, released, report = (folder / name for name in ("all.csv", "published.csv", "all.html"))
    write_sample("patients", 1000, 7, str(table))
    words = f"-p {folder / 'all.policy.yaml'} -o {released} --report {report} -q"
    assert status_of(["publish", str(table), *words.split()]) == 0
    tab = browser.new_page(viewport={"width": 1100, "height": 800}, color_scheme="light")
    tab.goto(report.as_uri())
    contents = tab.query_selector("nav").bounding_box()
    high = contents["y"] + contents["height"] + 12
    tab.screenshot(path=path, clip={"x": 0, "y": 0, "width": 1100, "height": high})
    tab.close()
    compressed(path)


def prepared(visitor) -> None:
    """The answers of the bundled policy, and a draft."""
    visitor.post("/table", path="patients.csv")
    names = visitor.server.project.about["columns"]
    visitor.edit("person", person=str(names.index("patient") + 1))
    visitor.edit("role", column=str(names.index("charge") + 1), role="sensitive")
    visitor.edit("role", column=str(names.index("ward") + 1), role="plain")
    visitor.get("/promises")
    visitor.send("draft-form")
    visitor.until("/result", "Every promise holds", 300)
    visitor.get("/compare")
    visitor.send("compare-form")
    visitor.until("/compare", "Measure what is missing", 300)


def shown(tab, server, screen: str) -> None:
    tab.goto(f"{server.door.origin}/{screen}")
    tab.wait_for_selector("main h1")
    tab.wait_for_selector("body:not([data-waits])", state="attached")
    if screen == "result":
        tab.click("#attacker-most-exposed button")
        tab.wait_for_selector("text=The best guess is")
        tab.evaluate("scrollTo(0, 0)")


def compressed(path: Path) -> None:
    """256 colours suffice for a page, and take a third of the room."""
    from PIL import Image  # Matplotlib brings it

    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(200, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    main()
