"""How a stream is doing, in words."""

from __future__ import annotations

from datetime import UTC, datetime

from shoal.streams.stream_status import StreamStatus


def status_lines(status: StreamStatus) -> list[str]:
    """The verdict, counts and figures, then what to look at."""
    verdict, records = status["verdict"], status["records"]
    kept = "every release so far keeps every promise"
    verdict_text = kept if status.holds else "a release broke a promise"
    wait, recent = status["wait"], status["recent"]
    allowed = "" if wait["allowed"] is None else f", {wait['allowed']:,} allowed"
    lines = [
        f"{status['state']}, last commit {_time(status['at'])}",
        f"{verdict_text}: {verdict['releases']:,} releases",
        f"{records['came']:,} records came, {records['published']:,} published,"
        f" {records['waiting']:,} waiting, {records['suppressed']:,} suppressed,"
        f" {records['set_aside']:,} set aside",
        f"loss {_percent(recent['loss'])} lately, {_percent(status['loss'])} since the start",
        f"longest wait {wait['longest']:,} records{allowed}",
        f"joined an earlier group: {_percent(status['reuse'])}",
    ]
    for alarm in status.alarms:
        since = "" if alarm.since is None else f", {_time(alarm.since)}"
        lines.append(f"look at this: {alarm.kind}{since}: {alarm.text}")
    return lines


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.1f} %"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
