"""A stream on the page: right as soon as it is silent or broken, and left as it is."""

import json
import os
import time
from pathlib import Path

import pytest

from shoal.cli.main import status_of
from web.browser.test_projects import Started
from web.browsing import come_in, tab_of
from web.visitor import served

HOURS = float(os.environ.get("SHOAL_HOURS", "0"))
MOST_MORE = 8 << 20  # bytes that server or page may grow by, however long they stay open


@pytest.fixture
def stream(folder) -> Path:
    """The checkpoint of a stream that has ended."""
    sample = "sample purchases -n 1500 --seed 7 -o buys.csv -q"
    assert status_of(sample.split()) == 0
    command = ["stream", "buys.csv", "-p", "buys.policy.yaml", "-o", "out.csv", "-q"]
    assert status_of([*command, "--checkpoint", "state", "--set", "delta=300"]) == 0
    return folder / "state"


def watched(tab, origin: str) -> None:
    """Leads to the stream by the form that asks which to watch."""
    tab.goto(f"{origin}/watch")
    tab.check("[name=kind][value=stream]")
    tab.fill("[name=path]", "state")
    tab.click("#watch-form button")
    tab.wait_for_selector("text=Every release so far keeps every promise")


def test_a_silent_and_a_broken_stream_show_by_themselves_and_stay_as_they_are(
    context, stream, tmp_path
):
    before = {path: path.stat().st_mtime_ns for path in [*stream.rglob("*"), tmp_path / "out.csv"]}
    status = stream / "status.json"
    with served(tmp_path / "ward", tmp_path) as server:
        tab = come_in(context, server)
        watched(tab, server.door.origin)
        assert "1,500" in tab.inner_text(".tiles")
        assert "shoal stream-status ../state" in tab.inner_text("#command")
        assert {path: path.stat().st_mtime_ns for path in before} == before
        found = json.loads(status.read_text())
        killed = found | {"state": "running", "alive": time.time() - 600, "usual_gap": 2.0}
        status.write_text(json.dumps(killed))
        # within five seconds, by itself
        tab.wait_for_selector("text=no sign of life of its process for 6")
        kept = len(server.desk._known)
        found["verdict"]["holds"] = False
        status.write_text(json.dumps(found | {"state": "broken"}))
        tab.reload()
        assert "A release broke a promise" in tab.inner_text("#verdict")
        assert "Broken promise" in tab.inner_text("main")
        status.unlink()
        tab.reload()
        assert "has no status.json" in tab.inner_text("main")
        assert len(server.desk._known) == kept  # no row was asked for


@pytest.mark.skipif("SHOAL_HOURS" not in os.environ, reason="make soak-page HOURS=24")
def test_a_page_that_stays_open_keeps_nothing(context, stream, tmp_path):
    started = Started(tmp_path / "ward")
    try:
        tab = tab_of(context)
        tab.goto(started.opening.as_uri())
        tab.wait_for_selector("h1")
        watched(tab, tab.url.rpartition("/")[0])
        client, sizes = context.new_cdp_session(tab), []
        ends = time.monotonic() + HOURS * 3600
        while time.monotonic() < ends or len(sizes) < 3:
            found = json.loads((stream / "status.json").read_text())
            found |= {"state": "running", "at": time.time()}
            (stream / "status.json").write_text(json.dumps(found))
            tab.wait_for_timeout(20_000)  # four looks, which the page takes by itself
            assert "Every release so far keeps every promise" in tab.inner_text("#verdict")
            sizes.append(sizes_of(client, started.process.pid))
        warm, last = sizes[len(sizes) // 3], sizes[-1]
        assert last["server"] - warm["server"] < MOST_MORE, sizes
        assert last["page"] - warm["page"] < MOST_MORE, sizes
        assert last["nodes"] <= 2 * warm["nodes"], sizes
    finally:
        started.kill()


def sizes_of(client, pid: int) -> dict[str, int]:
    """Bytes that the server and the page hold, and nodes of the page."""
    client.send("HeapProfiler.collectGarbage")
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    resident = next(line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return {
        "server": int(resident) << 10,
        "page": int(client.send("Runtime.getHeapUsage")["usedSize"]),
        "nodes": int(client.send("Memory.getDOMCounters")["nodes"]),
    }
