"""B-CASTLE beside CASTLE: what its default keeps, and what else `alpha` does.

python b_castle.py engine K ALPHA TREES REPEATS ROWS   both methods in turn, in one process
"""

from __future__ import annotations

import json
import sys
from typing import Any

TITLE = "B-CASTLE beside CASTLE"
CLAIM = (
    "Adult, its 30,162 complete records in file order, one record to a person, six numbers and four"
    " hierarchies, delta 10,000. Both methods run in turn in one process, a seed each turn, after"
    " one run of each that compiles. Time: CPU seconds of castle over those of b-castle, turn by"
    " turn. All that the abstract says is that b-castle is faster, so that its default, `alpha`"
    " 2k, has to be; with other values it need not be."
)
DELTA = 10_000
# k, alpha (0: the default, 2k), how many hierarchies, whether it has to be faster
ASKED = (
    (100, 0, 4, True),
    (50, 0, 4, True),
    (10, 0, 4, True),
    (100, 0, 0, True),
    (100, 400, 4, False),
    (100, 800, 4, False),
    (100, 5000, 4, False),
)


def measure(asked: Any) -> Any:
    import processes
    from measure import ONE_THREAD, Figure, Result, load, settings

    figures = []
    for k, alpha, trees, is_default in ASKED:
        name = f"k = {k}, alpha {alpha or '2k'}" + ("" if trees else ", six numbers alone")
        asked.say(f"b_castle: {name}")
        call = ("engine", k, alpha, trees, asked.repeats, asked.rows or 0)
        found = processes.script("b_castle.py", *call, env=ONE_THREAD).said
        target = 1.0 if is_default and not asked.rows else None
        figures += [
            Figure(
                f"castle's time over b-castle's, {name}", "x", found["ratio"], target, "at least"
            ),
            Figure(f"loss of b-castle, {name}", "of 1", found["b-castle"]),
            Figure(f"loss of castle, {name}", "of 1", found["castle"]),
        ]
    told = settings(asked, rows=asked.rows or 30_162, seeds=asked.repeats)
    return Result("b_castle", TITLE, CLAIM, told, figures, notes=[load()])


def engine(k: int, alpha: int, trees: int, repeats: int, rows: int) -> dict[str, Any]:
    """Ratios of CPU time turn by turn, and both losses. rows: 0 for all."""
    import streams

    space, values = streams._space(streams.policy(k, "castle", streams.TREES[:trees]))
    values = values[: rows or None]
    own = {"delta": DELTA} | ({"alpha": alpha} if alpha else {})
    settings = {"castle": {"delta": DELTA}, "b-castle": own}
    for method, parameters in settings.items():
        streams._run(space, values[:4000], method, parameters | {"delta": 1000}, 5)
    found: dict[str, list[float]] = {"castle": [], "b-castle": [], "ratio": []}
    for seed in range(1, repeats + 1):
        seconds = {}
        for method, parameters in settings.items():
            seconds[method], loss = streams._run(space, values, method, parameters, k, seed)
            found[method].append(loss)
        found["ratio"].append(seconds["castle"] / seconds["b-castle"])
    return found


if __name__ == "__main__":
    print(json.dumps(engine(*map(int, sys.argv[2:]))))
