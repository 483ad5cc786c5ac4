"""A hierarchy as its editor shows it: nodes in order with their rows, a page of them at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

Node = dict[str, Any]
PER_PAGE = 200
MOST_PARTS = 40  # of a bar that shows what readers see
MOST_NAMES = 4  # groups of a step that are named


def tree_of(
    rows: np.ndarray, counts: dict[str, int], find: str = "", page: int = 1
) -> dict[str, Any]:
    """The nodes of a hierarchy, depth first. rows: (leaves, steps + 1), value first, root last.

    find: only nodes whose label holds this, and what is above them. Every node has a number, which
    pages and searches leave as it is.
    """
    nodes = _nodes(rows, counts)
    shown = [node for node in nodes if find.casefold() in str(node["label"]).casefold()]
    pages = max(1, -(-len(shown) // PER_PAGE))
    page = min(max(page, 1), pages)
    first = (page - 1) * PER_PAGE
    return {
        "nodes": _with_those_above(nodes, shown[first : first + PER_PAGE]),
        "groups": [n["label"] for n in nodes if not n["is_leaf"]][:PER_PAGE],
        "found": len(shown),
        "page": page,
        "pages": pages,
        "steps": rows.shape[1] - 1,
        "levels": [_level(rows, step, counts) for step in range(rows.shape[1])],
    }


def _nodes(rows: np.ndarray, counts: dict[str, int]) -> list[Node]:
    nodes: list[Node] = []
    places: dict[tuple[str, ...], Node] = {}
    for path in sorted(tuple(dict.fromkeys(reversed(row))) for row in rows.tolist()):
        for depth in range(len(path)):
            own = path[: depth + 1]
            if own not in places:
                places[own] = {
                    "number": len(nodes),
                    "above": places[own[:-1]]["number"] if depth else None,
                    "label": own[-1],
                    "depth": depth,
                    "rows": 0,
                    "is_leaf": depth == len(path) - 1,
                }
                nodes.append(places[own])
            places[own]["rows"] += counts.get(path[-1], 0)
    return nodes


def _with_those_above(nodes: list[Node], shown: list[Node]) -> list[Node]:
    """The nodes, each behind all that it belongs to."""
    wanted = set()
    for node in shown:
        number: int | None = node["number"]
        while number is not None and number not in wanted:
            wanted.add(number)
            number = nodes[number]["above"]
    return [nodes[number] for number in sorted(wanted)]


def _level(rows: np.ndarray, step: int, counts: dict[str, int]) -> dict[str, Any]:
    """What readers see at a step: how many groups, the names of a few, their rows side by side."""
    sizes: dict[str, int] = {}
    for value, label in zip(rows[:, 0].tolist(), rows[:, step].tolist(), strict=True):
        sizes[label] = sizes.get(label, 0) + counts.get(value, 0)
    parts = list(sizes.values())
    return {
        "count": len(sizes),
        "names": list(sizes) if len(sizes) <= MOST_NAMES else [],
        "parts": [*parts[: MOST_PARTS - 1], sum(parts[MOST_PARTS - 1 :])],
    }
