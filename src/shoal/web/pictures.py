"""Geometry of the page's drawings: numbers for the templates, which write SVG without any style."""

import math
from collections.abc import Sequence

from shoal.data.language import gettext
from shoal.web.policy_text import Context

MOST_FISH = 30
MOST_K = 50
K_TICKS = (2, 3, 5, 7, 10, 15, 20, 30, 50)
CUSTOMS = {
    3: gettext("least used"),
    5: gettext("common in statistics"),
    11: gettext("medicines agencies"),
    20: gettext("open data, strict"),
}


def bars(heights: Sequence[float]) -> list[dict[str, float]]:
    """Bars side by side, the highest as high as the picture."""
    if not heights:
        return []
    width, height = 82.0, 24.0
    step, most = width / len(heights), max(heights) or 1
    gap = 1.0 if len(heights) < 30 else 0.0
    tall = [max(height * value / most, 0.8 if value else 0) for value in heights]
    wide = round(max(step - gap, 0.5), 2)
    return [
        {"x": round(place * step, 2), "w": wide, "h": round(h, 2), "y": round(height - h, 2)}
        for place, h in enumerate(tall)
    ]


def school(count: int, width: float, height: float = 76) -> list[dict[str, float]]:
    """Where fish swim, in three loose rows; the same for the same number."""
    shown = min(count, MOST_FISH)
    per_row = max(math.ceil(shown / 3), 3)
    size = min(1.0, 9 / per_row)
    step = width / (per_row + 0.6)
    places = []
    for fish in range(shown):
        column, row = divmod(fish, 3)
        wobble = ((fish * 37) % 11 - 5) / 5
        places.append(
            {
                "x": round(14 + (column + (0.08, 0.55, 0.28)[row]) * step + 8 * wobble, 1),
                "y": round((0.16, 0.5, 0.86)[row] * height + 5 * wobble, 1),
                "s": round(size, 2),
            }
        )
    return places


def log_place(value: float, least: float, most: float, width: float) -> float:
    """Where a number stands on a logarithmic axis."""
    share = (math.log(value) - math.log(least)) / (math.log(most) - math.log(least))
    return round(width * min(max(share, 0), 1), 1)


def loss_curve(points: Sequence[tuple[int, float]], k: int) -> Context:
    """Measured losses by k: dots, the line between them, and the axis."""
    width, height = 600, 90
    top = 0.4
    while points and max(loss for _, loss in points) > top:
        top += 0.2

    def across(at: int) -> float:
        return log_place(at, 2, MOST_K, width)

    def down(loss: float) -> float:
        return round(height * (1 - loss / top), 1)

    dots = [
        {"k": at, "x": across(at), "y": down(loss), "loss": loss, "is_chosen": at == k}
        for at, loss in sorted(points)
    ]
    lost = gettext("{share} % lost")
    return {
        "dots": dots,
        "path": " ".join(f"{dot['x']},{dot['y']}" for dot in dots),
        "lines": [
            {"y": down(share), "text": lost.format(share=round(100 * share))}
            for share in (0.0, top / 2, top)
        ],
        "ticks": [{"k": at, "x": across(at), "is_chosen": at == k} for at in K_TICKS],
        "customs": [{"x": across(at), "text": text} for at, text in CUSTOMS.items()],
        "k": {"x": across(k)},
        "width": width,
        "height": height,
    }


def frontier(rows: Sequence[Context], k: int, chosen: Context | None) -> Context:
    """Loss by k for every method: lines, points to choose, and the part that keeps the promise."""
    width, height = 360.0, 250.0
    top = max(0.2, *(row["loss"] for row in rows)) * 1.08
    labels = list(dict.fromkeys(row["label"] for row in rows))
    lines = []
    for number, label in enumerate(labels):
        points = [
            {
                "k": row["k"],
                "loss": row["loss"],
                "x": log_place(row["k"], 2.8, 52, width),
                "y": round(height * (1 - row["loss"] / top), 1),
                "is_broken": row["holds"] is False,
                "is_chosen": row is chosen,
            }
            for row in sorted((r for r in rows if r["label"] == label), key=lambda r: r["k"])
        ]
        path = " ".join(f"{p['x']},{p['y']}" for p in points if not p["is_broken"])
        lines.append({"label": label, "points": points, "path": path, "look": number % 4})
    return {
        "lines": lines,
        "width": width,
        "height": height,
        "kept_from": log_place(max(k, 2.8), 2.8, 52, width),
        "k": k,
        "ticks": [{"x": log_place(at, 2.8, 52, width), "k": at} for at in K_TICKS if 3 <= at <= 50],
        "grid": [
            {"y": round(height * (1 - share / top), 1), "text": f"{round(100 * share)} %"}
            for share in (0.0, 0.2, 0.4, 0.6, 0.8)
            if share <= top
        ],
    }
