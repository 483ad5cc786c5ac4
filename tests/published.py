"""Generators of small published tables: repeated subjects, ties, empty classes, suppressed
records.
"""

import numpy as np
from hypothesis import strategies as st

from peer_cases import hierarchy_of
from shoal.data.classes import Classes, SensitiveColumn

DISTANCES = ("equal", "ordered", "hierarchical")


hierarchies = st.recursive(
    st.just(0), lambda child: st.lists(child, min_size=2, max_size=3), max_leaves=6
).map(hierarchy_of)


@st.composite
def sensitive_columns(draw, records, name="s", distance=None):
    """One sensitive attribute of `records` records, over few values, so that there are ties."""
    kind = draw(st.sampled_from(DISTANCES)) if distance is None else distance
    tree = draw(hierarchies) if kind == "hierarchical" else None
    places = draw(st.integers(1, 5)) if tree is None else tree.leaves
    codes = draw(st.lists(st.integers(0, places - 1), min_size=records, max_size=records))
    labels = tuple(f"value {place}" for place in range(places))
    return SensitiveColumn(name, np.array(codes, dtype=np.int32), places, kind, tree, labels)


@st.composite
def classes(draw, names=("s",), shared_people=True, max_records=14, distance=None):
    """Classes with sensitive attributes; `shared_people` lets a subject be in several classes."""
    records, count = draw(st.integers(0, max_records)), draw(st.integers(1, 4))
    labels = np.array(
        draw(st.lists(st.integers(-1, count - 1), min_size=records, max_size=records)),
        dtype=np.int32,
    )
    subjects = None
    if draw(st.booleans()):
        subjects = np.array(
            draw(st.lists(st.integers(0, 5), min_size=records, max_size=records)), dtype=np.int32
        )
        if not shared_people:
            subjects = (subjects + 6 * (labels + 1)).astype(np.int32)
    sensitive = {name: draw(sensitive_columns(records, name, distance)) for name in names}
    return Classes(labels, count, subjects, sensitive)


def of_column(codes, classes=None, subjects=None, **column) -> Classes:
    """Classes, else a single one, of records with these codes of the sensitive attribute `s`."""
    codes = np.array(codes, dtype=np.int32)
    labels = np.zeros(len(codes), np.int32) if classes is None else np.array(classes, np.int32)
    people = None if subjects is None else np.array(subjects, dtype=np.int32)
    sensitive = SensitiveColumn("s", codes, int(codes.max()) + 1, **column)
    return Classes(labels, int(labels.max()) + 1, people, {"s": sensitive})


def relabelled(drawn: Classes, labels, count: int) -> Classes:
    """The same records in other classes."""
    return Classes(np.asarray(labels, np.int32), count, drawn.subjects, drawn.sensitive)


def in_one_class(drawn: Classes, chosen=None) -> Classes:
    """The chosen records, else all that are in a class, in a single one."""
    chosen = drawn.labels >= 0 if chosen is None else chosen
    return relabelled(drawn, np.where(chosen, 0, -1), 1)


def plain(drawn: Classes, name="s"):
    """Labels, subjects and values as lists, for the plain-Python truth."""
    subjects = None if drawn.subjects is None else drawn.subjects.tolist()
    return drawn.labels.tolist(), subjects, drawn.sensitive[name].codes.tolist()
