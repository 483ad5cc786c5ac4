"""What the CRP paper says, and how each claim is judged: at every point of its curves.

Static I, Static II and K-PPRP are what the paper compares CRP with. Two claims are about increments
of other sizes and wider domains, which the paper mentions (sections 3.2, 4.3) and never measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from shoal_papers.reproduce.claims import Judge, lies_above, lies_below
from shoal_papers.reproduce.paper import Claim, ClaimFinding, Verdict, View

X, SIZES_X = "increments", "size"
STATIC_1, STATIC_2, K_PPRP, CRP = "Static I", "Static II", "K-PPRP", "CRP"
GROWING = (STATIC_1, STATIC_2, K_PPRP, CRP)
NEAR = 0.25
"""Curves within a quarter of each other are close together; the paper says 'not much apart'."""


def by_size(method: str, domain: int = 1) -> str:
    """The curve of a method over the size of the increments."""
    return f"{method} by size, domain x {domain}"


def growing(judge: Judge) -> Judge:
    """The judge, shown the curves over increments alone."""
    return lambda view: judge(
        View({c: rows for c, rows in view.curves.items() if c in GROWING}, view.instead)
    )


def _judged(
    curves: Mapping[str, dict[int, float]], holds: Callable[[str, int], bool], unit: str
) -> ClaimFinding:
    """A verdict over all points of these curves, and their first and last values."""
    points = [(curve, at) for curve, values in curves.items() for at in values]
    kept = sum(holds(curve, at) for curve, at in points)
    numbers = "; ".join(
        f"{curve} {_span(list(values.values()))} {unit}" for curve, values in curves.items()
    )
    return ClaimFinding(
        Verdict.of(kept, len(points)), f"at {kept} of {len(points)} points; {numbers}"
    )


def _span(values: list[float]) -> str:
    return f"{_number(values[0])} to {_number(values[-1])}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def only_leaks(curve: str) -> Judge:
    """The curve leaks after every increment and no other ever does."""

    def judge(view: View) -> ClaimFinding:
        curves = {name: view.points(name, "leaks", X) for name in view.curves}
        return _judged(
            curves, lambda name, at: (curves[name][at] > 0) == (name == curve), "records"
        )

    return judge


def stays_flat(*flat: str) -> Judge:
    """The largest time of these curves is at most twice the least."""

    def judge(view: View) -> ClaimFinding:
        times = {name: list(view.points(name, "seconds", X).values()) for name in flat}
        kept = sum(max(values) <= 2 * min(values) for values in times.values())
        numbers = "; ".join(
            f"{name} {1000 * min(v):.3g} to {1000 * max(v):.3g} ms" for name, v in times.items()
        )
        return ClaimFinding(Verdict.of(kept, len(flat)), numbers)

    return judge


def grows(*names: str) -> Judge:
    """The time of these curves ends at more than 1.5 times where it starts, and no step falls
    by more than the spread of the repeats.
    """

    def judge(view: View) -> ClaimFinding:
        kept, words = 0, []
        for name in names:
            middle = list(view.points(name, "seconds", X).values())
            least = list(view.points(name, "seconds_least", X).values())
            most = list(view.points(name, "seconds_most", X).values())
            falls = sum(most[i + 1] < least[i] for i in range(len(middle) - 1))
            kept += not falls and middle[-1] > 1.5 * middle[0]
            words.append(
                f"{name} {1000 * middle[0]:.3g} to {1000 * middle[-1]:.3g} ms"
                + (f", falls at {falls} of {len(middle) - 1} steps" if falls else "")
            )
        return ClaimFinding(Verdict.of(kept, len(names)), "; ".join(words))

    return judge


def lie_close(*close: str) -> Judge:
    """After every increment the largest of these curves has at most a quarter more operations than
    the least.
    """

    def judge(view: View) -> ClaimFinding:
        curves = {name: view.points(name, "operations", X) for name in close}
        places = list(next(iter(curves.values())))
        kept = sum(
            max(curves[name][at] for name in close)
            <= (1 + NEAR) * min(curves[name][at] for name in close)
            for at in places
        )
        numbers = "; ".join(
            f"{name} {_span(list(values.values()))}" for name, values in curves.items()
        )
        return ClaimFinding(
            Verdict.of(kept, len(places)), f"at {kept} of {len(places)} increments; {numbers}"
        )

    return judge


def is_fewer(curve: str, y: str, *than: str) -> Judge:
    """One curve lies below others after every increment."""

    def judge(view: View) -> ClaimFinding:
        own = view.points(curve, y, X)
        others = {name: view.points(name, y, X) for name in than}
        kept = sum(own[at] < points[at] for points in others.values() for at in own)
        asked = len(own) * len(others)
        numbers = "; ".join(
            f"{name} {_span(list(points.values()))}"
            for name, points in ({curve: own} | others).items()
        )
        return ClaimFinding(Verdict.of(kept, asked), f"at {kept} of {asked} points; {numbers}")

    return judge


def moves_with_size(curve: str, y: str, sign: int) -> Judge:
    """No step of the curve goes against the sign, and it ends on its side of where it starts."""

    def judge(view: View) -> ClaimFinding:
        return _moves(view.points(curve, y, SIZES_X), sign)

    return judge


def gains_with_size(curve: str, than: str) -> Judge:
    """What the curve saves of the loss of the other rises with the size of the increments."""

    def judge(view: View) -> ClaimFinding:
        own, other = view.points(curve, "gcp", SIZES_X), view.points(than, "gcp", SIZES_X)
        return _moves({at: 1 - own[at] / other[at] for at in own}, 1)

    return judge


def _moves(points: Mapping[int, float], sign: int) -> ClaimFinding:
    steps = list(pairwise(points))
    values = list(points.values())
    against = [(a, b) for a, b in steps if sign * points[b] < sign * points[a]]
    moved = sign * values[-1] > sign * values[0]
    numbers = ", ".join(f"{_number(value)} at {at:,}" for at, value in points.items())
    for a, b in against:
        numbers += f"; {'falls' if sign > 0 else 'rises'} from {a:,} to {b:,}"
    kept = len(steps) - len(against) if moved or against else 0
    return ClaimFinding(Verdict.of(kept, len(steps)), numbers)


def loses_more_when_wide(y: str) -> Judge:
    """CRP loses more on the domain twice as wide, at every size."""

    def judge(view: View) -> ClaimFinding:
        once, twice = (view.points(by_size(CRP, domain), y, SIZES_X) for domain in (1, 2))
        kept = sum(twice[at] > once[at] for at in once)
        numbers = ", ".join(
            f"{_number(once[at])} and {_number(twice[at])} at {at:,}" for at in once
        )
        return ClaimFinding(Verdict.of(kept, len(once)), f"at {kept} of {len(once)}; {numbers}")

    return judge


CLAIMS = (
    Claim(
        "1 only Static II leaks",
        "Static II leaks after every increment, the other three never",
        growing(only_leaks(STATIC_2)),
    ),
    Claim(
        "2 Static I least",
        "Static I needs the fewest generalization operations",
        growing(lies_below(STATIC_1, "operations", X)),
    ),
    Claim(
        "2 Static II most (by sense)",
        "not the paper's words: Static II, which coarsens the whole table anew, needs the most",
        growing(lies_above(STATIC_2, "operations", X)),
    ),
    Claim(
        "2 three close together",
        "Static II, K-PPRP and CRP lie close together",
        lie_close(STATIC_2, K_PPRP, CRP),
    ),
    Claim(
        "2 K-PPRP below CRP",
        "K-PPRP needs slightly fewer operations than CRP",
        is_fewer(K_PPRP, "operations", CRP),
    ),
    Claim(
        "3 Static I fastest",
        "Static I takes the least time",
        growing(lies_below(STATIC_1, "seconds", X)),
    ),
    Claim(
        "3 CRP and Static I flat",
        "the time of CRP and Static I stays about the same",
        stays_flat(CRP, STATIC_1),
    ),
    Claim(
        "3 Static II and K-PPRP grow",
        "Static II and K-PPRP take longer with every increment",
        grows(STATIC_2, K_PPRP),
    ),
    Claim(
        "3 CRP faster than both",
        "CRP takes less time than Static II and K-PPRP",
        is_fewer(CRP, "seconds", STATIC_2, K_PPRP),
    ),
    Claim(
        "loss: CRP below Static I",
        "clustering an increment loses less than anonymising it simply (Static I)",
        is_fewer(CRP, "gcp", STATIC_1),
    ),
    Claim(
        "loss: K-PPRP below Static I",
        "K-PPRP loses less than Static I (section 2)",
        is_fewer(K_PPRP, "gcp", STATIC_1),
    ),
    Claim(
        "3.2 small increments",
        "CRP loses more where increments are small",
        moves_with_size(by_size(CRP), "gcp", -1),
    ),
    Claim(
        "3.2 wide domains",
        "CRP loses more where domains are wide: as a share of the domain",
        loses_more_when_wide("gcp"),
    ),
    Claim(
        "3.2 wide domains, in units",
        "the same, in the attributes' own units",
        loses_more_when_wide("gcp_in_units"),
    ),
    Claim(
        "4.3(3) gain by clustering",
        "what clustering saves of Static I's loss is small where increments are small",
        gains_with_size(by_size(CRP), by_size(STATIC_1)),
    ),
    Claim(
        "4.3(1) alike: intervals",
        "in large data classes grow too alike: more of CRP's classes have intervals of width 0",
        moves_with_size(by_size(CRP), "no_width", 1),
    ),
    Claim(
        "4.3(1) alike: values",
        "the same: more of CRP's classes have one sensitive value (the activity)",
        moves_with_size(by_size(CRP), "one_activity", 1),
    ),
)
