"""The pictures of the tutorial of `shoal ui`: every step of it, done in Chromium (`make pictures`).

The table is the bundled sample, written as an Excel file, so that no picture shows anybody. Each
picture is of what the step is about, not of the whole window.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
SHOWN = {  # of each step, what the picture shows, and at most how high it is
    "open": ("body", 520),
    "person": ("main", 440),
    "columns": ("main", 860),
    "hierarchies": ("main", 600),
    "promises": ("main", 900),
    "result": ("main", 960),
    "gate": ("main", 800),
    "released": ("main", 560),
}
AT_HOME = """folder => {
  for (const code of document.querySelectorAll("code"))
    code.textContent = code.textContent.replace(folder, "/home/ada");
  for (const field of document.querySelectorAll("[placeholder]"))
    field.placeholder = field.placeholder.replace(folder, "/home/ada");
}"""
"""Shows the folder as a reader's, not the temporary one that the pictures are taken in."""
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src"), str(Path(__file__).parent)]


def main(out: Path = IMAGES) -> None:
    from page_pictures import compressed
    from playwright.sync_api import sync_playwright

    from shoal.samples import write_sample
    from web.browsing import BROWSER, FLAGS, come_in
    from web.visitor import served
    from web.walk import walk

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        start = Path(folder) / "study"
        start.mkdir()
        write_sample("patients", 1000, 7, str(start / "patients.xlsx"))
        browser = driver.chromium.launch(executable_path=BROWSER, args=FLAGS)
        with served(start / "ward-study", start) as server:
            size = {"width": 1240, "height": 1000}
            tab = come_in(browser.new_context(viewport=size, color_scheme="light"), server)
            tab.set_default_timeout(300_000)
            tab.goto(f"{server.door.origin}/open")
            for number, step in enumerate(walk(tab, server, "patients.xlsx", "10"), 1):
                if step in SHOWN:
                    path = out / f"ui-step-{number}-{step}.png"
                    tab.evaluate(AT_HOME, folder)
                    taken(tab, path, *SHOWN[step])
                    compressed(path)
        browser.close()


def taken(tab, path: Path, part: str, high: int) -> None:
    tab.evaluate("scrollTo(0, 0)")
    box = tab.query_selector(part).bounding_box()
    clip = {**box, "height": min(box["height"], high)}
    tab.screenshot(path=path, full_page=True, clip=clip)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
