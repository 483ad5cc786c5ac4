"""CASTLE under promises beyond k."""

import polars as pl

import shoal
from sample_policies import content_of


def test_a_cluster_is_asked_about_those_whom_a_cap_keeps_in_it():
    """Once the places of records that left are taken again, their order is not that of arrival."""
    shown = (
        "2 50 e 2,1 0 a 0,0 0 f 2,2 100 d 1,2 0 c 0,0 50 c 0,1 100 c 0,0 100 a 0,2 100 e 0,2 0 e"
        " 1,2 0 a 1"
    )
    shown += ",1 0 a 1,2 0 a 0"
    tree = {"tree": {"north": ["a", "b", {"far": ["c", "d"]}], "south": ["e", "f"]}}
    policy = content_of(
        {
            "who": {"role": "subject"},
            "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
            "town": {"role": "quasi", "hierarchy": tree},
            "ill": {"role": "sensitive"},
        },
        2,
        {"model": "t-closeness", "attributes": ["ill"], "t": 0.5},
        {"model": "subject-share", "share": 0.5},
        method={"name": "castle", "delta": 10, "snap": 1, "keep": 0},
        seed=951,
    )
    names = ["who", "age", "town", "ill"]
    values = ["0"] * 14 + ["1"] * 11 + ["2"] * 2
    reference = pl.DataFrame(
        [(f"r{i}", "0", "a", value) for i, value in enumerate(values)], schema=names, orient="row"
    )
    stream = shoal.stream(policy, reference=reference)
    for record in shown.split(","):  # one by one, so that every release is measured by itself
        stream.push(pl.DataFrame([record.split()], schema=names, orient="row"))
    stream.flush()
