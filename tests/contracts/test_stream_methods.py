"""The same battery for every stream method from the registry."""

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.data.row_order import published_order
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.testing import check_stream_method
from stream_cases import ADVERSARIAL, broken_rules, policy_of, run, stream_of, streams
from thorough import comparators_long, every, examples, long_where

METHODS = sorted(m.name for m in registry.methods().values() if m.verb == "stream")
COMPARATORS = {m.name for m in registry.methods().values() if m.is_comparator}
DISTINCT = {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "distinct"}
ENTROPY = {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "entropy"}
PROMISES = {"k": (), "distinct": (DISTINCT,), "entropy": (ENTROPY,)}


def variants(method):
    """The method with each choice of each of its parameters, but for what breaks k on purpose."""
    yield {}
    for parameter in registry.methods()[method].parameters:
        for choice in parameter.choices or ((True, False) if parameter.kind is bool else ()):
            literal = (parameter.name, choice) in (("preset", "paper"), ("strict", False))
            if choice != parameter.default and not literal:
                yield {parameter.name: choice}
        if parameter.name == "tick":
            yield {"tick": 3}


def has_hulls(method):
    """Whether clusters publish what their own records span."""
    return method != "sky"


VARIANTS = [(method, variant) for method in METHODS for variant in variants(method)]


def cases(by_default, otherwise):
    """A method and one case in several of the adversarial streams, each time others; long are those
    of a choice, and of a comparator all but the first.
    """
    names, found, quick = sorted(ADVERSARIAL), [], []
    for place, (method, variant) in enumerate(VARIANTS):
        for at in range(otherwise if variant else by_default):
            found.append((method, variant, names[(place + at * 3) % len(names)]))
            if not variant and (at == 0 or method not in COMPARATORS):
                quick.append(found[-1])
    return long_where(lambda case: case not in quick, found)


@pytest.mark.parametrize(
    ("method", "variant"),
    long_where(lambda v: v[0] in COMPARATORS or v[1] != {}, VARIANTS),
    ids=str,
)
def test_battery(method, variant):
    implementation = registry.methods()[method].implementation
    for delta in (20,) if variant else (20, 100):
        check_stream_method(implementation(delta=delta, **variant))


@pytest.mark.parametrize(("method", "variant", "case"), cases(len(ADVERSARIAL), 2), ids=str)
def test_adversarial_streams_break_no_rule(method, variant, case):
    sizes = (70, 20), (60, variant.get("tick", 1) + 2), (19, 20), (21, 20), (2, 20), (0, 20)
    for n, delta in every(2, sizes, first=sorted(ADVERSARIAL).index(case)):
        frame = ADVERSARIAL[case](n)
        found = run(policy_of(method, delta=delta, **variant), frame, chunk=17)
        is_together, hulls = "tick" in variant, has_hulls(method)
        assert broken_rules(found, frame, k=3, together=is_together, hulls=hulls) == []


@pytest.mark.parametrize("method", comparators_long(METHODS))
@pytest.mark.parametrize("promises", sorted(PROMISES))
@settings(max_examples=examples(3, 12), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    frame=streams(),
    delta=st.sampled_from([3, 10, 25]),
    chunk=st.integers(1, 30),
    seed=st.integers(0, 3),
)
def test_any_chunks_and_restarts_give_the_same_stream(method, promises, frame, delta, chunk, seed):
    policy = policy_of(method, more=PROMISES[promises], delta=delta, seed=seed)
    whole = run(policy, frame)
    least, hulls = 1 if promises == "k" else 2, has_hulls(method)
    assert broken_rules(whole, frame, k=3, l=least, hulls=hulls) == []
    assert run(policy, frame, chunk).bytes == whole.bytes
    assert run(policy, frame, chunk, restart=True).bytes == whole.bytes


@pytest.mark.parametrize("method", METHODS)
def test_records_with_missing_cells_are_suppressed_where_the_policy_says_so(method):
    frame = stream_of(60, missing=0.3)
    found = run(policy_of(method, missing="suppress", delta=20), frame)
    lacking = {i for i, r in enumerate(frame.to_dicts()) if None in (r["age"], r["pay"], r["town"])}
    suppressed = {t["seq"] for t in found.trace if t["kind"] == "suppress"}
    assert lacking <= suppressed
    assert broken_rules(found, frame, k=3, hulls=has_hulls(method)) == []


@pytest.mark.parametrize("method", METHODS)
def test_an_attribute_of_thousands_of_values_is_published_as_its_lowest_nodes(method):
    """3,000 towns in 60 regions: a cell is the town, its region or everything."""
    policy = policy_of(method, delta=50)
    regions = {f"r{r}": [f"t{t}" for t in range(50 * r, 50 * r + 50)] for r in range(60)}
    content = policy.model.model_dump(exclude_unset=True)
    content["attributes"]["town"] = {"role": "quasi", "hierarchy": {"tree": regions}}
    towns = [f"t{(i * 7919) % 3000}" for i in range(200)]
    frame = stream_of(200, people=200).with_columns(town=pl.Series(towns))
    found = run(Policy.from_dict(content), frame, chunk=33)
    for stated in found.trace:
        town, cell = towns[stated["seq"]], found.rows[stated["row"]]["town"]
        assert cell in (town, f"r{int(town[1:]) // 50}", "*")


@pytest.mark.parametrize("method", METHODS)
def test_a_buffer_that_could_never_hold_k_people_is_refused(method):
    with pytest.raises(InputError, match="delta = 5 is less than k = 6"):
        run(policy_of(method, k=6, delta=5), stream_of(10))


@pytest.mark.parametrize(("method", "variant", "case"), cases(3, 1), ids=str)
def test_a_delay_that_runs_out_releases_records_by_the_same_rules(method, variant, case):
    """At instants that have nothing to do with records, and of records that are gone already."""
    frame, ticks = ADVERSARIAL[case](60), "tick" in variant
    policy = policy_of(method, delta=40, **variant)
    found = run(policy, frame, chunk=7, expired=(3, 5, 5, 4, 20, 41, 55, 59))
    assert broken_rules(found, frame, k=3, together=ticks, hulls=has_hulls(method)) == []
    again = run(policy, frame, chunk=7, expired=(3, 5, 5, 4, 20, 41, 55, 59), restart=True)
    assert again.bytes == found.bytes
    if variant.get("leftovers") != "hold":
        # 5 was due when 20 had come
        assert all(t["emitted"] <= 20 for t in found.trace if t["arrival"] <= 5)


TICKING = [m for m in METHODS if "tick" in {p.name for p in registry.methods()[m].parameters}]


@pytest.mark.parametrize(
    ("method", "_", "case"), [case for case in cases(4, 0) if case.values[0] in TICKING], ids=str
)
def test_with_ticks_records_leave_on_ticks_together_and_none_later_than_without(method, _, case):
    """Every 7 records one release of all that is decided, and one at the end of the stream."""
    frame = ADVERSARIAL[case](100)
    policy = policy_of(method, delta=20, tick=7)
    found = run(policy, frame)
    assert run(policy, frame, chunk=9, restart=True).bytes == found.bytes
    emitted_at = {t["release"]: t["emitted"] for t in found.trace}
    assert all(t["emitted"] == emitted_at[t["release"]] for t in found.trace)
    assert len(set(emitted_at.values())) == len(emitted_at)
    assert all(emitted % 7 == 6 or emitted == 99 for emitted in emitted_at.values())
    longest = 20 if "castle" in method else 19
    assert max(t["emitted"] - t["arrival"] for t in found.trace) <= longest


@pytest.mark.parametrize("method", TICKING)
def test_a_tick_that_leaves_no_time_for_k_people_is_refused(method):
    with pytest.raises(InputError, match="delta = 9 and tick = 5 leave 5 records, less than k = 6"):
        run(policy_of(method, k=6, delta=9, tick=5), stream_of(10))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_either_publishes_whole_buffers_or_has_ticks(method):
    """A record that leaves alone tells when it came: each method has a guard."""
    found = run(
        policy_of(method, delta=40, **({"tick": 10} if method in TICKING else {})),
        stream_of(400, people=400),
    )
    assert len({t["release"] for t in found.trace}) <= 41


@pytest.mark.parametrize("method", comparators_long(METHODS))
def test_the_order_within_a_release_tells_nothing_of_arrival(method):
    """Rows of a release stand in the order of what they show, whenever their records came."""
    asked = policy_of(method, delta=100, subject=False)
    found = run(asked, stream_of(500, people=500))
    releases = {}
    for stated in found.trace:
        if stated["row"] is not None:
            releases.setdefault(stated["release"], []).append(stated["row"])
    assert releases
    for places in releases.values():
        shown = pl.DataFrame([found.rows[place] for place in sorted(places)])
        order = published_order(shown, asked.quasi, asked.render)
        assert shown[order].equals(shown)


@pytest.mark.parametrize("method", METHODS)
def test_snapped_intervals_end_on_the_public_grid_and_cover_the_truth(method):
    """With snap=10 ages end on tens, pays on whole numbers, unless all agree on a value."""
    frame = stream_of(120, people=120)
    found = run(policy_of(method, delta=40, snap=10), frame)
    spans = {"age": 10, "pay": 1}
    ends = [
        (float(end), step)
        for row in found.rows
        for name, step in spans.items()
        if row[name].startswith("[")
        for end in row[name][1:-1].split(", ")
    ]
    assert ends
    assert all(end % step == 0 for end, step in ends)
    assert set(broken_rules(found, frame, k=3)) <= {"a cluster publishes other than its hull"}
