"""What attacks cost: all nine on Adult, with and without the one that learns, and on a million
records.
"""

from __future__ import annotations

import processes
from attack_call import FRACTION, OTHER_K, SEED, K
from measure import ONE_THREAD, Asked, Figure, Result, settings

TITLE = "Attacks"
CLAIM = (
    "All nine attacks on a release by `rounded-partition` (8 ordered quasi-identifiers, income"
    f" and relationship sensitive, k = {K}), beside another release at k = {OTHER_K} and for a"
    f" table that is {FRACTION} of its population. CPU seconds of the attacks, those of publishing"
    " without some people, for the control, apart; peak memory of the whole process, which also"
    " reads and publishes the table twice. One thread."
)
LARGE = 1_000_000
MOST_SECONDS, MOST_LEARNED, MOST_LARGE, MOST_MEMORY = 5.0, 20.0, 60.0, 2_000.0


def measure(asked: Asked) -> Result:
    rows = asked.rows or LARGE
    found = Result(
        "attack_cost", TITLE, CLAIM, settings(asked, rows=[30_162, rows], k=K, seed=SEED, threads=1)
    )
    adult = f"{asked.rows:,} records" if asked.rows else "Adult"
    found.figures += _sized(asked, adult, (asked.rows or 0, 0), MOST_SECONDS)
    if _has_learning():
        found.figures += _sized(
            asked, f"{adult}, `learned` too", (asked.rows or 0, 1), MOST_LEARNED
        )
    large = _sized(asked, f"{rows:,} records", (rows, 0), MOST_LARGE, MOST_MEMORY)
    found.figures += large
    return found


def _has_learning() -> bool:
    try:
        import sklearn  # noqa: F401
    except ImportError:
        return False
    return True


def _sized(
    asked: Asked,
    label: str,
    arguments: tuple[int, int],
    seconds: float,
    memory: float | None = None,
) -> list[Figure]:
    used = []
    for turn in range(asked.repeats):
        asked.say(f"attack_cost: {label}, turn {turn + 1} of {asked.repeats}")
        used.append(processes.script("attack_call.py", *arguments, env=ONE_THREAD))
    said = [run.said for run in used]
    own = tuple(each["total"] - each["republish"] for each in said)
    return [
        Figure(f"{label}: all attacks", "CPU s", own, seconds),
        Figure(
            f"{label}: publishing for the control", "CPU s", tuple(s["republish"] for s in said)
        ),
        Figure(f"{label}: peak memory", "MB", tuple(run.peak / 1e6 for run in used), memory),
    ]
