"""Who is one person: what the question takes of columns that are not encoded, over a floor.

python one_person.py ROWS REPEATS     measures in a process of its own and prints JSON
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import polars as pl

TITLE = "Who is one person"
CLAIM = (
    "CPU seconds to find out which column numbers the people of an invented table of a million"
    " records and 40 columns (10 categories, 10 numbers, 5 dates, 6 identifiers, 9 others), all of"
    " them text that was not encoded before, and the same over counting the distinct texts of every"
    " column with Polars, turn by turn."
)
ROWS = 1_000_000
SEED = 7
MOST_SECONDS = 3.0
MOST_TIMES = 2.0


def measure(asked: Any) -> Any:
    import processes
    from measure import ONE_THREAD, Figure, Result, ratios, settings

    rows = asked.rows or ROWS
    asked.say(f"who is one person: asking about {rows:,} records")
    runs = processes.script("one_person.py", rows, asked.repeats, env=ONE_THREAD).said
    times = ratios(runs["question"], runs["floor"])
    figures = [
        Figure("who is one person", "CPU s", tuple(runs["question"]), MOST_SECONDS),
        Figure("distinct texts of every column", "CPU s", tuple(runs["floor"])),
        Figure("who is one person over distinct texts", "times", times, MOST_TIMES),
    ]
    return Result("one_person", TITLE, CLAIM, settings(asked, rows=rows, seed=SEED), figures)


def invented(rows: int) -> pl.DataFrame:
    """The table, as it is read from a file."""
    rng = np.random.default_rng(SEED)
    people = max(rows // 4, 1)
    who = rng.integers(0, people, rows)

    def of_person(most: int) -> np.ndarray:
        return rng.integers(0, most, people)[who]

    made: dict[str, np.ndarray] = {}
    for place, most in enumerate((2, 3, 5, 8, 12, 20, 50, 120, 400, 1500)):
        made[f"category_{place}"] = np.char.add("kind ", rng.integers(0, most, rows).astype(str))
        made[f"measure_{place}"] = rng.integers(0, 10 * most**2, rows)
        if place % 2:
            made[f"measure_{place}"] = rng.normal(most, 1, rows).round(3)
    for place in range(5):
        moments = rng.integers(1, 9_000, rows) * (1 if place < 3 else 86_399)
        begun = np.datetime64("2000-01-01", "D" if place < 3 else "s")
        made[f"date_{place}"] = (begun + moments).astype(str)
    made["patient_id"] = np.char.add("P", np.char.zfill(who.astype(str), 8))
    made["case_no"] = 10**7 + np.arange(rows) // 2
    made["card"] = rng.permutation(10**9 + np.arange(rows))
    made["email"] = np.char.add((who // 2).astype(str), "@mail.example")
    made["row"] = np.arange(rows)
    made["hash"] = rng.integers(2**60, 2**62, rows)
    made["sex"], made["birth_year"] = of_person(2), 1930 + of_person(80)
    made["city"], made["postcode"] = of_person(3_000), 1_000 + of_person(9_000)
    made["ward"], made["code"] = rng.integers(0, 8, rows), rng.integers(0, 30_000, rows)
    made["note"] = np.char.add("free text about ", rng.integers(0, rows, rows).astype(str))
    made["device"] = np.char.add("dev-", rng.integers(0, 20_000, rows).astype(str))
    made["flag"] = rng.choice(["yes", "no", ""], rows)
    return pl.DataFrame(made).with_columns(pl.all().cast(pl.String))


def main(rows: int, repeats: int) -> dict[str, list[float]]:
    from shoal.data.person.decision import who_is_a_person
    from shoal.data.table import Table

    frame = invented(rows)
    seconds: dict[str, list[float]] = {"question": [], "floor": []}
    for _ in range(repeats):
        begun = time.process_time()
        found = who_is_a_person(Table(frame))
        asked = time.process_time()
        for column in frame:
            column.n_unique()
        seconds["question"].append(asked - begun)
        seconds["floor"].append(time.process_time() - asked)
    if found.candidates[0].columns != ("patient_id",):
        raise SystemExit("another column than the patients' is taken for the people")
    return seconds


if __name__ == "__main__":
    print(json.dumps(main(*(int(argument) for argument in sys.argv[1:]))))
