"""The page `shoal ui`, as a browser finds it: first page, looks beside work, cancel, memory."""

from __future__ import annotations

import http.client
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import polars as pl
import processes
from measure import Asked, Figure, Result, settings

from shoal.samples import patients

TITLE = "The page"
CLAIM = (
    "Seconds of clock that `shoal ui` takes over a table of a million invented patients: from the"
    " command to the first page; for every screen while the columns are counted and while a draft"
    " is made (95 % of looks take no longer); to end a draft; and over a table of 300 columns."
)
ROWS, SEED, COLUMNS = 1_000_000, 7, 300
SCREENS = ("/open", "/columns", "/hierarchies", "/promises", "/compare", "/result")
LOOKING = 20.0
PATIENCE = 120.0
HIDDEN = r'type="hidden" name="([^"]+)"\s+value="([^"]*)"'


def measure(asked: Asked) -> Result:
    rows, runs = asked.rows or ROWS, []
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as place:
        folder = Path(place)
        table = patients.generate(rows, SEED)
        table.write_csv(folder / "patients.csv")
        some = {f"c{i}": table["age"].head(1000) for i in range(COLUMNS)}
        pl.DataFrame(some).write_csv(folder / "wide.csv")
        for run in range(asked.repeats):
            asked.say(f"ui: run {run + 1} of {asked.repeats}")
            runs.append(_run(folder, f"project-{run}", table.columns))
    first, counting, drafting, cancelled, wide, memory = zip(*runs, strict=True)
    return Result(
        "ui",
        TITLE,
        CLAIM,
        settings(asked, rows=rows, seed=SEED, threads="as a user gets them"),
        [
            Figure("from the command to the first page", "s", first, 1.5),
            Figure("a look while columns are counted, 95 %", "s", counting, 0.3),
            Figure("a look while a draft is made, 95 %", "s", drafting, 0.3),
            Figure("a draft cancelled", "s", cancelled, 3.0),
            Figure(f"columns of a table of {COLUMNS}", "s", wide, 2.0),
            Figure("memory of the server, resident", "MB", memory, 120.0),
        ],
        notes=["Clock, so other work on the machine is in it."],
    )


def _run(folder: Path, name: str, columns: list[str]) -> tuple[float, ...]:
    """What one project finds, in the order of the figures."""
    with _opened(folder, name) as (page, first):
        page.post("/table", path="patients.csv")
        patient, charge = (str(columns.index(column) + 1) for column in ("patient", "charge"))
        page.post("/policy", edit="person", person=patient)
        page.post("/policy", edit="role", column=charge, role="sensitive")
        ends = time.monotonic() + LOOKING
        counting = page.looks(lambda: time.monotonic() > ends)
        page.post("/jobs", form="draft-form", on="/promises")
        drafting = page.looks(lambda: not page.jobs())
        page.post("/jobs", form="draft-form", on="/promises")
        time.sleep(1.0)
        cancelled, memory = page.cancelled(), page.memory()
        page.post("/table", path="wide.csv")
        begun = time.perf_counter()
        page.get("/columns")
        return first, counting, drafting, cancelled, time.perf_counter() - begun, memory


@contextmanager
def _opened(folder: Path, name: str) -> Iterator[tuple[Page, float]]:
    """The page of a new project, let in, and the seconds to its first screen."""
    begun = time.perf_counter()
    command = [*processes.SHOAL, "ui", str(folder / name), "--tables", str(folder), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        link = folder / name / ".ui" / "open.html"
        _until(lambda: link.exists() and "</html>" in link.read_text())
        text = link.read_text()
        action, token = (
            _found(pattern, text) for pattern in (r'action="([^"]+)', r'token" value="([^"]+)')
        )
        page = Page(urlsplit(action).netloc, server.pid)
        page.enter(token)
        page.get("/")
        yield page, time.perf_counter() - begun
    finally:
        server.terminate()
        server.wait()


@dataclass
class Page:
    """What a browser asks of the server at an address."""

    address: str
    pid: int
    cookie: str = ""
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def enter(self, token: str) -> None:
        self._ask("POST", "/enter", {"token": token})
        self.cookie = self.headers["set-cookie"].partition(";")[0]

    def get(self, path: str) -> None:
        status = self._ask("GET", path)
        while status == 303:
            status = self._ask("GET", self.headers["location"])
        if status != 200:
            raise SystemExit(f"{path}: status {status}")

    def post(self, path: str, /, on: str = "/columns", form: str = "", **fields: str) -> None:
        """Sends a form, with the keys and, by its id, the hidden fields of the page it is on."""
        self.get(on if path != "/table" else "/open")
        own = self.text.partition(f'id="{form}"')[2].partition("</form>")[0] if form else ""
        hidden = dict(re.findall(HIDDEN, own or self.text))
        kept = hidden if own else {k: v for k, v in hidden.items() if k in ("key", "base", "back")}
        status = self._ask("POST", path, kept | fields)
        if status != 303:
            raise SystemExit(f"{path}: status {status}")

    def looks(self, is_over: Callable[[], bool]) -> float:
        """What 95 % of looks at all screens take at most, in seconds."""
        took = []
        while not is_over():
            for screen in SCREENS:
                begun = time.perf_counter()
                self.get(screen)
                took.append(time.perf_counter() - begun)
        return statistics.quantiles(took or [0.0, 0.0], n=20)[-1]

    def jobs(self) -> list[str]:
        """The ids of the jobs that are not over."""
        self.get("/result")
        return re.findall(r'action="/jobs/([^/"]+)/cancel"', self.text)

    def cancelled(self) -> float:
        """Seconds until a running job is gone."""
        running = self.jobs()
        begun = time.perf_counter()
        for job in running:
            self.post(f"/jobs/{job}/cancel", on="/result")
        _until(lambda: not self.jobs())
        return time.perf_counter() - begun

    def memory(self) -> float:
        """Megabytes of the server's process, its helpers apart."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(_found(r"VmRSS:\s+(\d+)", status)) / 1e3

    def _ask(self, method: str, path: str, form: dict[str, str] | None = None) -> int:
        sent = {"Cookie": self.cookie} if self.cookie else {}
        if method == "POST":
            sent |= {"Origin": f"http://{self.address}", "Sec-Fetch-Site": "same-origin"}
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        body = None if form is None else urlencode(form)
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.text = answer.read().decode()
        connection.close()
        return answer.status


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"the page lacks {pattern}")
    return match[1]


def _until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > ends:
            raise SystemExit("the page did not get there")
        time.sleep(0.01)
