"""Reconstructed stream methods beside the loss of the throw-away prototypes that they follow.

python stream_trees.py engine METHOD SETTINGS K DELTA ROWS   one method, in its own process
"""

from __future__ import annotations

import json
import sys
from typing import Any

TITLE = "Streams of Adult, reconstructed methods"
CLAIM = (
    "Six numbers of Adult, its 30,162 complete records in file order, one record to a person, three"
    " seeds. The methods are reconstructions from abstracts; the target is the loss of a throw-away"
    " prototype of the same reading and a tenth more. FADS as printed stands beside them. Records"
    " a CPU second of the method alone."
)
SEEDS = (1, 2, 3)
# method, parameters, k, delta, the prototype's loss
ASKED: tuple[tuple[str, dict[str, Any], int, int, float | None], ...] = tuple(
    (method, parameters, k, delta, loss)
    for method, parameters, losses in (
        ("sky", {}, (0.274, 0.139, 0.378)),
        ("sky", {"cut": "median"}, (0.459, 0.165, 0.670)),
        ("swaf", {}, (0.300, 0.084, 0.519)),
        ("swaf", {"split": "density"}, (0.322, 0.095, 0.545)),
        ("zhou", {}, (None, None, None)),
        ("fads", {"neighbour": "knn"}, (None, None, None)),
    )
    for (k, delta), loss in zip(((100, 10_000), (10, 10_000), (100, 1000)), losses, strict=True)
)


def measure(asked: Any) -> Any:
    import processes
    from measure import ONE_THREAD, Figure, Result, settings

    figures = []
    for method, parameters, k, delta, loss in ASKED:
        asked.say(f"stream_trees: {method} {parameters} k = {k}, delta = {delta}")
        call = ("engine", method, json.dumps(parameters), k, delta, asked.rows or 0)
        found = processes.script("stream_trees.py", *call, env=ONE_THREAD).said
        name = f"{method}, k = {k}, delta = {delta:,}" + "".join(
            f", {key} = {value}" for key, value in parameters.items()
        )
        target = None if loss is None or asked.rows else round(1.1 * loss, 3)
        figures += [
            Figure(f"loss, {name}", "of 1", tuple(found["loss"]), target),
            Figure(f"speed, {name}", "records a CPU s", tuple(found["speed"])),
        ]
    told = settings(asked, rows=asked.rows or 30_162, seeds=len(SEEDS))
    return Result("stream_trees", TITLE, CLAIM, told, figures)


def engine(method: str, parameters: str, k: int, delta: int, rows: int) -> dict[str, Any]:
    """Losses and records a CPU second, a run for each seed. rows: 0 for all."""
    import streams

    told = {**json.loads(parameters), "delta": delta}
    space, values = streams._space(streams.policy(k, method, (), **told))
    streams._run(space, values[: 2 * delta // 10], method, {**told, "delta": delta // 10}, 5)
    values = values[: rows or None]
    runs = [streams._run(space, values, method, told, k, seed) for seed in SEEDS]
    return {
        "loss": [loss for _, loss in runs],
        "speed": [len(values) / seconds for seconds, _ in runs],
    }


if __name__ == "__main__":
    what, method, parameters, *numbers = sys.argv[1:]
    print(json.dumps(engine(method, parameters, *map(int, numbers))))
