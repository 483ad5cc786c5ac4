"""A checker of linked tables on the standard library alone: people with visits, drugs and tags.

It reads the published files as text, puts every person's rows together, and counts by trying all.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from itertools import combinations, permutations
from pathlib import Path

NOTHING = "*"


@dataclass
class Person:
    """What is published of one person, keys aside and days counted from the person's own.

    rows: by table, each row's cells beside dates, its offset or None, and its sensitive value; of a
    drug its visit's cells and its own, and which visit it hangs from. diseases: by visit.
    """

    cells: tuple
    hull: tuple[int, int] | None
    rows: dict[str, list[tuple[tuple, int | None, str]]] = field(default_factory=dict)
    diseases: dict[str, str] = field(default_factory=dict)


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shared_keys(folder: Path) -> set[str]:
    """The keys that stand for a person and for a visit as well."""
    people = {person["patient"] for person in rows_of(folder, "people")}
    return people & {visit["visit"] for visit in rows_of(folder, "visits")}


def day(text: str) -> int:
    return date.fromisoformat(text).toordinal()


def moved_back(cell: str, anchor: str) -> tuple[str, int | None]:
    """A day or a span of days as distances from a day; the number where it is one."""
    ends = cell.strip("[]").split(", ")
    if not anchor or not all(end[:1].isdigit() for end in ends):
        return cell, None
    days = [day(end) - day(anchor) for end in ends]
    return str(days), days[0] if len(days) == 1 else None


def read(folder: Path, is_exact: bool, counts_drugs: bool) -> list[Person]:
    """Everybody in a release. counts_drugs: whether how many a visit has is known."""
    drugs: dict[str, list[str]] = {}
    for drug in rows_of(folder, "drugs"):
        drugs.setdefault(drug["visit"], []).append(drug["drug"])
    found: dict[str, Person] = {}
    for one in rows_of(folder, "people"):
        anchor, hull = one.get("anchor.day", ""), one.get("anchor.hull", "")
        ends = [day(end) for end in hull.strip("[]").split(", ")] if anchor[:1].isdigit() else []
        tags = [((tag,), None, "") for tag in one["tags"].split(";") if tag]
        hidden = ("patient", "tags", "anchor.day", "blood")
        cells = tuple(cell for name, cell in one.items() if name not in hidden)
        person = Person(cells, (ends[0], ends[-1]) if ends else None)
        person.rows["people"] = [((), None, one["blood"])]
        person.rows["tags"] = tags
        person.rows["visits"] = []
        person.rows["drugs"] = []
        person.rows["days"] = [(anchor,)] if anchor else []
        found[one["patient"]] = person
    for visit in rows_of(folder, "visits"):
        person = found[visit["patient"]]
        (anchor,) = person.rows["days"][0] if person.rows["days"] else ("",)
        text, offset = moved_back(visit.get("day", ""), anchor)
        hanging = len(drugs.get(visit["visit"], ())) if counts_drugs else None
        cells = (visit["kind"], visit["cost"], visit.get("drugs.rows"), hanging)
        cells += () if is_exact else (text,)
        person.rows["visits"].append((cells, offset if is_exact else None, visit["disease"]))
        person.diseases[visit["visit"]] = visit["disease"]
        for drug in drugs.get(visit["visit"], ()):
            person.rows["drugs"].append(((*cells, drug), None, visit["visit"]))
    return list(found.values())


def numbered(rows: tuple[tuple, ...]) -> tuple[tuple, ...]:
    """Known rows, the visits that they hang from numbered as they first appear."""
    seen: dict = {}
    return tuple((name, cells, seen.setdefault(visit, len(seen))) for name, cells, visit in rows)


class Judged:
    """What attackers find. known: by table, `all` or a number."""

    def __init__(self, people: list[Person], known: dict[str, str | int], counted: bool) -> None:
        self.people, self.known = people, known
        self.m = next((m for m in known.values() if isinstance(m, int)), 0)
        self.labels = [self._label(person, counted) for person in people]

    def _label(self, person: Person, counted: bool) -> tuple:
        whole = [
            sorted(cells for cells, _, _ in person.rows[name])
            for name, known in self.known.items()
            if known == "all"
        ]
        number = len(person.rows["visits"]) if counted else None
        return (person.cells, repr(whole), number)

    def items(self, person: Person) -> list[tuple]:
        """The rows of which some may be known: of a drug, from which visit it hangs as well."""
        return [
            (name, repr(cells), about if name == "drugs" else None)
            for name, known in self.known.items()
            if isinstance(known, int)
            for cells, _, about in person.rows[name]
        ]

    def known_sets(self, most: int) -> Iterator[tuple[tuple, list[int]]]:
        """Everything that may be known of somebody, and the people who fit it."""
        held = [
            {
                min(map(numbered, permutations(chosen)))
                for size in range(most + 1)
                for chosen in combinations(self.items(person), size)
            }
            for person in self.people
        ]
        for label in set(self.labels):
            members = [i for i, one in enumerate(self.labels) if one == label]
            for chosen in set().union(*(held[i] for i in members)):
                yield chosen, [i for i in members if chosen in held[i]]

    def above(self, drug: tuple[str, str], chosen: tuple, person: Person) -> list[str]:
        """The diseases of the visits that a known drug of a person may hang from."""
        visits = {
            visit
            for rows in combinations(self.items(person), len(chosen))
            if min(map(numbered, permutations(rows))) == chosen
            for name, cells, visit in rows
            if (name, cells) == drug
        }
        return [person.diseases[visit] for visit in visits]

    def fewest(self) -> int:
        return min(len(fits) for _, fits in self.known_sets(self.m))

    def values(self) -> Iterator[tuple[str, list[list[str]]]]:
        """By table, the sensitive values that each row may have, person by person, for whoever
        knows two rows at most, as lists of a person's values.
        """
        for chosen, fits in self.known_sets(min(self.m, 2)):
            for name in ("people", "visits"):
                cells = {repr(c) for i in fits for c, _, _ in self.people[i].rows[name]}
                if isinstance(self.known.get(name), int):
                    cells = {shown for table, shown, _ in chosen if table == name}
                if name == "visits" and self.known["visits"] == "all":
                    for drug in {(table, shown) for table, shown, _ in chosen if table == "drugs"}:
                        yield name, [self.above(drug, chosen, self.people[i]) for i in fits]
                for shown in cells:
                    yield (
                        name,
                        [
                            [v for c, _, v in self.people[i].rows[name] if repr(c) == shown]
                            for i in fits
                        ],
                    )

    def least_distinct(self, table: str) -> int | None:
        found = [
            len({value for own in lists for value in own})
            for name, lists in self.values()
            if name == table and any(lists)
        ]
        return min(found, default=None)

    def greatest_share(self, table: str) -> float:
        shares = [0.0]
        for _, fits in self.known_sets(min(self.m, 2)):
            own = [{v for _, _, v in self.people[i].rows[table]} for i in fits]
            holders = Counter(value for values in own for value in values)
            shares += [count / len(fits) for count in holders.values()]
        return max(shares)

    def least_by_dates(self, dates: list[list[int]]) -> int | None:
        """By how many times the likeliest person whom a date fits is less than certain.

        dates: all of each person, as published people stand.
        """
        found = []
        for label in set(self.labels):
            members = [i for i, one in enumerate(self.labels) if one == label]
            hull = self.people[members[0]].hull
            kinds = {repr(c) for i in members for c, _, _ in self.people[i].rows["visits"]}
            for known in {d for i in members for d in dates[i]}:
                for kind in kinds:
                    fits = [
                        sum(
                            repr(c) == kind and o is not None and hull[0] <= known - o <= hull[1]
                            for c, o, _ in self.people[i].rows["visits"]
                        )
                        for i in members
                    ]
                    if sum(fits):
                        found.append(sum(fits) // max(fits))
        return min(found, default=None)
