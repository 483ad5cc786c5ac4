"""Joint audits in plain Python, person by person: the slow truth of `privacy/beside`.

A release is a dict: person -> the set of their classes. What a class holds - people, or the values
that it shows - is a dict as well: class -> set.
"""


def members(releases):
    """Who is in each class, (number of the release, class)."""
    held = {}
    for number, release in enumerate(releases):
        for person, classes in release.items():
            for label in classes:
                held.setdefault((number, label), set()).add(person)
    return held


def classes_of(releases, person):
    return [
        (number, label)
        for number, release in enumerate(releases)
        for label in release.get(person, ())
    ]


def candidates(releases, person, held=None):
    """C(p): everybody who is in all classes of this person."""
    held = members(releases) if held is None else held
    remaining = None
    for label in classes_of(releases, person):
        own = held.get(label, set())
        remaining = set(own) if remaining is None else remaining & own
    return remaining or set()


def several(releases):
    """Everybody who is in two releases or more."""
    everybody = {person for release in releases for person in release}
    return {p for p in everybody if sum(bool(release.get(p)) for release in releases) > 1}


def fits(cell, value):
    """Whether a published cell covers a value; None, which nobody knows, fits the mark alone."""
    if cell == "*" or value is None:
        return cell == "*"
    if cell.startswith("["):
        low, high = cell[1:-1].split(", ")
        return float(low) <= float(value) <= float(high)
    return cell == str(value)


def like(releases, known, person):
    """C'(p): everybody of whom what is known fits all cells of all classes of this person.

    releases: for each, the columns that its cells stand in, and person -> the cells of each of
    their classes. known: person -> column -> true value, from any original.
    """
    shown = [(columns, cells) for columns, rows in releases for cells in rows.get(person, ())]
    return {
        other
        for other, own in known.items()
        if all(
            fits(cell, own.get(column))
            for columns, cells in shown
            for column, cell in zip(columns, cells, strict=True)
        )
    }
