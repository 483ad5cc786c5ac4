"""Generated tables and policies for properties."""

import polars as pl
from hypothesis import strategies as st

from sample_policies import content_of

TREE = {"tree": {"north": ["a", "b", {"far": ["c", "d"]}], "south": ["e", "f"]}}
LEAVES = ["a", "b", "c", "d", "e", "f"]
GRADES = ["low", "mid", "a, b", "high"]  # one label holds the text that parts an interval


def _numbers():
    return st.one_of(
        st.integers(-5, 30).map(str),
        st.decimals(-2, 9, places=2).map(str),
        st.sampled_from(["07", "1.50", "1.5", "-0"]),
    )


KINDS = {
    "number": ({"type": "number", "domain": [-10, 40]}, _numbers()),
    "open number": ({"type": "number"}, _numbers()),
    "mean": ({"type": "number", "domain": [-10, 40], "render": "mean"}, _numbers()),
    "mean and range": ({"type": "number", "render": "both"}, _numbers()),
    "ordinal": ({"type": "ordinal", "order": GRADES}, st.sampled_from(GRADES)),
    "flat": ({}, st.sampled_from(["x", "y", "z, w", 'q"'])),
    "tree": ({"hierarchy": TREE}, st.sampled_from(LEAVES)),
    "prefix": ({"hierarchy": {"prefix": 3}}, st.text("12", min_size=3, max_size=3)),
}


@st.composite
def policies_with_tables(draw):
    """A policy as plain dicts, and a frame of text that fits it; missing values, repeated people
    and all.
    """
    records = draw(st.integers(2, 40))
    missing = draw(st.sampled_from(["value", "suppress"]))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    attributes, columns = {}, {}
    for j, kind in enumerate(kinds):
        settings, values = KINDS[kind]
        attributes[f"q{j}"] = {"role": "quasi", **settings}
        cells = st.one_of(values, st.just("")) if draw(st.booleans()) else values
        columns[f"q{j}"] = draw(st.lists(cells, min_size=records, max_size=records))
        if not any(columns[f"q{j}"]):
            columns[f"q{j}"][0] = draw(values)
    if draw(st.booleans()):
        attributes["who"] = {"role": "subject"}
        columns["who"] = draw(
            st.lists(st.integers(0, records).map(str), min_size=records, max_size=records)
        )
    attributes["ill"] = {"role": "sensitive"}
    columns["ill"] = draw(st.lists(st.sampled_from("uvw"), min_size=records, max_size=records))
    attributes["pay"] = {"role": "sensitive", "type": "number"}
    columns["pay"] = draw(st.lists(st.integers(0, 9).map(str), min_size=records, max_size=records))
    content = content_of(
        attributes,
        draw(st.integers(2, 5)),
        *draw(_more_promises()),
        missing=missing,
        render={"order": draw(st.sampled_from(["input", "content", "shuffled"]))},
        seed=draw(st.integers(0, 3)),
    )
    return content, pl.DataFrame(columns)


@st.composite
def _more_promises(draw):
    return draw(
        st.lists(
            st.sampled_from(
                [
                    {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "distinct"},
                    {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "entropy"},
                    {
                        "model": "l-diversity",
                        "attribute": "ill",
                        "l": 2,
                        "kind": "recursive",
                        "c": 3,
                    },
                    {"model": "t-closeness", "attributes": ["ill", "pay"], "t": 0.35},
                    {"model": "t-closeness", "attributes": ["ill", "pay"], "t": 0.6, "joint": True},
                    {"model": "beta-likeness", "attributes": ["ill"], "beta": 1.5},
                    {"model": "delta-disclosure", "attributes": ["ill"], "delta": 1.1},
                    {"model": "k-l-diversity", "attributes": ["ill"], "k": 2, "l": 2},
                    {"model": "alpha-k-anonymity", "attribute": "ill", "alpha": 0.7, "k": 2},
                    {"model": "p-sensitive-k-anonymity", "attributes": ["ill"], "p": 2, "k": 2},
                ]
            ),
            max_size=2,
            unique_by=lambda p: p["model"],
        )
    )


def without_means(content):
    """The same policy for methods of global recoding: means belong to classes, not to values."""
    attributes = {
        name: {k: v for k, v in a.items() if k != "render"}
        for name, a in content["attributes"].items()
    }
    return content | {"attributes": attributes}


__all__ = ["GRADES", "LEAVES", "policies_with_tables", "without_means"]
