"""How many published rows have no row of the original of their own, by trying to pass rows on."""

from functools import cache

from fuzz.cells import Policy, Table, covers, number


def unmatched(policy: Policy, released: Table, original: Table) -> int:
    """Of all published rows, those that the largest matching leaves over (Kuhn 1955)."""
    judged = cache(lambda name, cell, value: covers(cell, value, policy[name], policy))
    quasi = [a.name for a in policy.with_role("quasi")]
    others = [a.name for a in policy.with_role("sensitive", "plain")]

    def parts(table: Table, names: list[str]) -> list[tuple[str, ...]]:
        columns = [table.column(name) for name in names]
        return list(zip(*columns, strict=True)) if names else [()] * len(table.rows)

    known = list(zip(parts(original, quasi), parts(original, others), strict=True))
    fitting = []
    for cells, besides in zip(parts(released, quasi), parts(released, others), strict=True):
        is_starred = all(cell == policy.mark for cell in cells)
        fitting.append(
            [
                row
                for row, (values, beside) in enumerate(known)
                if all(
                    one == other
                    or (is_starred and one == policy.mark)
                    or _is_equal_number(policy[name].kind, one, other)
                    for name, one, other in zip(others, besides, beside, strict=True)
                )
                and all(map(judged, quasi, cells, values))
            ]
        )
    taker: dict[int, int] = {}

    def finds(place: int, tried: set[int]) -> bool:
        for row in fitting[place]:
            if row not in tried:
                tried.add(row)
                if row not in taker or finds(taker[row], tried):
                    taker[row] = place
                    return True
        return False

    return sum(not finds(place, set()) for place in range(len(fitting)))


def _is_equal_number(kind: str, one: str, other: str) -> bool:
    return kind == "number" and number(one) is not None and number(one) == number(other)
