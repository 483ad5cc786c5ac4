"""Everybody hides among k, whatever may be known: a plain attacker tries all published cells."""

import tempfile
from math import inf
from pathlib import Path

import polars as pl
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from naive_linked import Attacker, Row
from sample_policies import content_of
from shoal.errors import InfeasibleError, InputError

TREE = {"a": ["a1", "a2"], "b": ["b1", "b2"]}
ABOVE = {leaf: node for node, leaves in TREE.items() for leaf in leaves}
K = 3

values = st.sampled_from([*ABOVE])
sets = st.sets(values, max_size=2).map(sorted)
visits = st.tuples(values, sets, st.lists(values, max_size=3))
people = st.tuples(sets, st.lists(visits, min_size=1, max_size=3))
worlds = st.lists(people, min_size=2 * K, max_size=2 * K + 2)


KNOWN = ["all", "count", "none", None]  # the last is a number of rows


@st.composite
def policies(draw):
    """A policy with what is known of each table drawn freely, unless it is refused."""
    m = draw(st.integers(1, 2))
    of = {name: draw(st.sampled_from(KNOWN)) or m for name in ("wards", "visits", "codes", "drugs")}
    value = {"role": "quasi", "hierarchy": {"tree": TREE}}
    one_set = {**value, "type": "set", "separator": ";"}

    def own(name):
        return value if of[name] not in ("count", "none") else {"role": "sensitive"}

    tables = {
        "visits": {
            "parent": {"people": "patient"},
            "key": "visit",
            "rows": {"known": of["visits"]},
            "attributes": {"kind": own("visits"), "codes": one_set | {"known": of["codes"]}},
        },
        "drugs": {
            "parent": {"visits": "visit"},
            "rows": {"known": of["drugs"]},
            "attributes": {"drug": own("drugs")},
        },
    }
    people = {"patient": "subject", "wards": one_set | {"known": of["wards"]}}
    return content_of(people, K, tables=tables, assume=["counts-unknown"])


def is_sound(content) -> bool:
    try:
        shoal.Policy.from_dict(content)
    except InputError:
        return False
    return True


def frames_of(world):
    everything = [(i, *visit) for i, (_, own) in enumerate(world) for visit in own]
    drugs = [(str(v), drug) for v, (*_, own) in enumerate(everything) for drug in own]
    shown = [(str(v), f"p{i}", kind, ";".join(c)) for v, (i, kind, c, _) in enumerate(everything)]
    who = [(f"p{i}", ";".join(wards)) for i, (wards, _) in enumerate(world)]
    columns = {
        "people": (who, ["patient", "wards"]),
        "visits": (shown, ["visit", "patient", "kind", "codes"]),
        "drugs": (drugs, ["visit", "drug"]),
    }
    return {
        name: pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row")
        for name, (rows, names) in columns.items()
    }


QUALIFIED = {"codes": "visits.codes"}


def elements(cell: str | None) -> list[Row]:
    """The elements of a set; none of one that is withheld."""
    return [Row((one,)) for one in (cell or "").split(";") if one and cell != "*"]


def rows_of(frames) -> list[Row]:
    """Everybody with all of their rows, of the original or of a release."""

    def counts(row, names):
        return {name: span(row.get(f"{QUALIFIED.get(name, name)}.rows")) for name in names}

    drugs, visits = {}, {}
    for one in frames["drugs"].to_dicts():
        drugs.setdefault(one["visit"], []).append(Row((one["drug"],)))
    for one in frames["visits"].to_dicts():
        below = {"codes": elements(one["codes"]), "drugs": drugs.get(one["visit"], [])}
        row = Row((one["kind"],), below, counts(one, below))
        visits.setdefault(one["patient"], []).append(row)
    found = []
    for one in frames["people"].to_dicts():
        below = {"wards": elements(one["wards"]), "visits": visits.get(one["patient"], [])}
        found.append(Row((), below, counts(one, below)))
    return found


def span(cell: str | None) -> tuple[float, float]:
    if cell is None or cell == "*":
        return 0, inf
    ends = [int(end) for end in cell.strip("[]").split(", ")]
    return ends[0], ends[-1]


def covers(cell: str, value: str) -> bool:
    return cell in (value, ABOVE[value], "*")


@settings(max_examples=40)
@given(worlds, policies().filter(is_sound))
def test_whatever_is_known_of_each_table_everybody_hides_among_k(world, content):
    frames = frames_of(world)
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = shoal.publish(frames, content, output=Path(folder) / "out")
        except InfeasibleError:
            assume(False)
    known = {"wards": content["attributes"]["wards"]["known"]}
    for name, table in content["tables"].items():
        known[name] = table["rows"]["known"]
    known["codes"] = content["tables"]["visits"]["attributes"]["codes"]["known"]
    attacker, published = Attacker(known, covers), rows_of(done.data)
    assert min(attacker.candidates(published, own) for own in rows_of(frames)) >= K
