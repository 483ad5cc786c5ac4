"""Random policies and tables: odd names, missing texts, repeated people, rare rows, all kinds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from random import Random

from fuzz.cells import Table

ODD = ["a b", "x,y", 'q"uote', "p'q", " lead", "trail ", "=sum", "semi;colon", "naïve🙂", "a\tb"]
NAMES = ["age", "zip", "sex", "Größe", "pay-grade", "年齢", "UPPER", "_", "lo", "hi", "1st", *ODD]
TREE = {"north": ["a", "b", {"far": ["c", "d"]}], "south": ["e", "f"]}
WIDE_TREE = {"any": {"r1": ["a", "b"], "r2": ["c", "d"], "r3": ["e", "f"]}}
GRADES = ["low", "mid", "a, b", "high"]  # one label holds the text that parts an interval
HIERARCHY = "".join(f"{v};{g};*\n" for v, g in zip("abcdef", "ppqqrr", strict=True))
FLAT = ["x", "y", "z, w", 'q"', "[1, 2]", " x", "NA?", "=1+1", "né", "12"]
KINDS = "number decimal open mean both ordinal flat tree wide table prefix bins dates order".split()
STREAM_KINDS = "number decimal ordinal tree wide table order".split()
SENSITIVE_KINDS = "flat flat ordinal number decimal tree wide table alphabetical".split()
MARKS = ("*", "*", "*", "∅", "NN", "gone")
INTERVALS = ("[{lo}, {hi}]", "[{lo}, {hi}]", "{lo}..{hi}", "<{lo} to {hi}>", "{lo}-{hi}")


@dataclass(frozen=True)
class Case:
    """One run. parts: of streams and ledgers, how many records come at a time."""

    kind: str
    policy: dict
    table: Table
    files: dict[str, str] = field(default_factory=dict)
    parts: tuple[int, ...] = ()

    def with_promises(self, promises: list[dict]) -> Case:
        return replace(self, policy={**self.policy, "promises": promises})


def declared(kind: str) -> dict:
    """The keys of an attribute of this kind but its role."""
    return {
        "number": {"type": "number", "domain": [-10, 40]},
        "decimal": {"type": "number", "domain": [-2, 9]},
        "open": {"type": "number"},
        "mean": {"type": "number", "domain": [-10, 40], "render": "mean"},
        "both": {"type": "number", "domain": [-10, 40], "render": "both"},
        "ordinal": {"type": "ordinal", "order": GRADES},
        "flat": {},
        "tree": {"hierarchy": {"tree": TREE}},
        "wide": {"hierarchy": {"tree": WIDE_TREE}},
        "table": {"hierarchy": "h.csv"},
        "prefix": {"hierarchy": {"prefix": 3}},
        "bins": {"hierarchy": {"bins": [-10, 0, 10, 20, 41]}},
        "dates": {"hierarchy": {"dates": ["month", "year"]}},
        "order": {"hierarchy": {"order": list("abcdef")}},
        "alphabetical": {"type": "ordinal", "order": "alphabetical"},
    }[kind]


def value(kind: str, random: Random) -> str:
    """A value of an attribute of this kind."""
    if kind in ("number", "open", "mean", "both"):
        odd = random.random() < 0.05
        return random.choice(["07", "1.50", "1.5", "-0", "+3", "1e1"]) if odd else _whole(random)
    if kind == "decimal":
        return f"{random.randint(-200, 900) / 100:.{random.choice([1, 2, 2])}f}"
    if kind == "ordinal":
        return random.choice(GRADES)
    if kind in ("flat", "alphabetical"):
        return random.choice(FLAT[: random.randint(2, len(FLAT))])
    if kind == "prefix":
        return "".join(random.choices("12", k=random.choice([3, 3, 3, 2, 4])))
    if kind == "bins":
        return _whole(random)
    if kind == "dates":
        return (date(2013, 1, 1) + timedelta(random.randint(0, 900))).isoformat()
    return random.choice("abcdef")


def _whole(random: Random) -> str:
    return str(random.randint(-5, 30))


def column(kind: str, records: int, random: Random) -> list[str]:
    """Values of a column: spread evenly, over few, or nearly all the same."""
    pool = [value(kind, random) for _ in range(random.choice([1, 2, 3, 6, 30]))]
    if random.random() < 0.2:
        return [pool[0] if random.random() < 0.9 else value(kind, random) for _ in range(records)]
    return [random.choice(pool) for _ in range(records)]


def with_gaps(cells: list[str], texts: list[str], random: Random) -> list[str]:
    share = random.choice([0.03, 0.2, 0.5])
    return [random.choice(texts) if random.random() < share else cell for cell in cells]


@dataclass
class Columns:
    """Columns drawn so far, and what the policy says of them."""

    random: Random
    records: int
    missing: list[str]
    attributes: dict[str, dict] = field(default_factory=dict)
    cells: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, role: str, kind: str) -> None:
        cells = column(kind, self.records, self.random)
        if self.random.random() < 0.3:
            gaps = with_gaps(cells, self.missing, self.random)
            cells = gaps if any(c not in self.missing for c in gaps) else cells
        self.attributes[name] = {"role": role, **declared(kind)}
        self.cells[name] = cells

    def add_people(self, share: float) -> None:
        """Repeated people, or everybody once; sometimes with blanks around the number."""
        people = max(2, int(self.records * share))
        who = [f"p{self.random.randrange(people)}" for _ in range(self.records)]
        if share >= 1:
            who = [f"p{i}" for i in range(self.records)]
        self.attributes["person"] = {"role": "subject"}
        self.cells["person"] = who

    def table(self) -> Table:
        order = self.random.sample(list(self.cells), len(self.cells))
        rows = [list(row) for row in zip(*(self.cells[n] for n in order), strict=True)]
        return Table(order, rows)

    def policy(self, promises: list[dict], method: dict) -> dict:
        random = self.random
        return {
            "version": 1,
            "attributes": self.attributes,
            "promises": promises,
            "method": method,
            "missing": random.choice(["value", "value", "suppress"]),
            "missing_values": self.missing,
            "seed": random.randrange(4),
        }


def promises(sensitive: dict[str, str], random: Random, shares: bool = True) -> list[dict]:
    """k-anonymity nearly always, and up to three others. shares: also those beside the table."""
    found = [{"model": "k-anonymity", "k": random.randint(2, 5)}]
    for _ in range(random.choice([0, 0, 1, 1, 2, 3])):
        found.append(_promise(sensitive, random, shares))
    found = [p for i, p in enumerate(found) if p["model"] not in {q["model"] for q in found[:i]}]
    return found[1:] if len(found) > 1 and random.random() < 0.1 else found


def _promise(sensitive: dict[str, str], random: Random, shares: bool) -> dict:
    plain = [
        {"model": "subject-share", "share": random.choice([0.5, 0.7])},
        {"model": "average-risk", "threshold": random.choice([0.2, 0.4])},
        {"model": "sample-uniqueness", "threshold": random.choice([0, 0.1])},
    ]
    if not sensitive:
        return random.choice(plain[: 3 if shares else 1])
    one = random.choice(list(sensitive))
    some = random.sample(list(sensitive), random.randint(1, len(sensitive)))
    k, l = random.randint(2, 4), random.choice([2, 2, 3])
    diversity = {"model": "l-diversity", "attribute": one, "l": l}
    counted = [
        diversity | {"kind": "distinct"},
        diversity | {"kind": "entropy"},
        diversity | {"kind": "recursive", "c": random.choice([1, 2.5, 4])},
        {"model": "p-sensitive-k-anonymity", "attributes": some, "p": l, "k": k},
        {"model": "k-l-diversity", "attributes": some, "k": k, "l": l},
        {"model": "alpha-k-anonymity", "attribute": one, "alpha": 0.7, "k": k},
    ]
    compared = [
        {"model": "t-closeness", "attributes": some, "t": random.choice([0.15, 0.3, 0.5])},
        {"model": "t-closeness", "attributes": some, "t": random.choice([0.1, 0.4])},
        {"model": "beta-likeness", "attributes": some, "beta": random.choice([0.5, 1.5, 4])},
        {"model": "beta-likeness", "attributes": some, "beta": 2, "kind": "basic"},
        {"model": "delta-disclosure", "attributes": some, "delta": random.choice([0.7, 1.5])},
    ]
    return random.choice([*counted, *(compared if shares else []), *plain[: 3 if shares else 1]])


def missing_texts(random: Random) -> list[str]:
    return random.choice([[""], ["", "－"], ["", "N/A "], ["", "refused", "unknown"]])


def draw_columns(random: Random, records: int, kinds: list[str]) -> tuple[Columns, dict[str, str]]:
    """Quasi-identifiers, sensitive and other columns; and the kinds of the sensitive ones."""
    columns = Columns(random, records, missing_texts(random))
    names = random.sample(NAMES, len(NAMES))
    for _ in range(random.choice([1, 2, 2, 3, 4])):
        columns.add(names.pop(), "quasi", random.choice(kinds))
    sensitive = {}
    for _ in range(random.choice([0, 1, 1, 1, 2])):
        name, kind = names.pop(), random.choice(SENSITIVE_KINDS)
        columns.add(name, "sensitive", kind)
        sensitive[name] = kind
    if random.random() < 0.6:
        columns.add_people(random.choice([1.0, 0.7, 0.4]))
    if random.random() < 0.3:
        columns.add(names.pop(), random.choice(["identifier", "drop"]), "flat")
    columns.attributes["row id"] = {"role": "plain"}
    columns.cells["row id"] = [f"r{i}" for i in range(records)]
    return columns, sensitive
