"""What every method of fusion promises, whoever wrote it: found in the registry, one battery."""

from collections import Counter

import numpy as np
import pytest

from fusion_cases import TREES, Case, shown, values_by_group
from shoal.data.schema import IndexedRequirement, Taxonomy
from shoal.errors import PartyError
from shoal.policy import registry

METHODS = [method for method in registry.methods().values() if method.verb == "fuse"]
K = 4


@pytest.fixture(params=METHODS, ids=lambda method: method.name)
def rule(request):
    return request.param.implementation()


def table() -> Case:
    rng = np.random.default_rng(11)
    trees = (Taxonomy(12, is_number=True), *(Taxonomy.of_tree(tree) for tree in TREES))
    codes = tuple(rng.integers(0, tree.cells, 90) for tree in trees)
    classes = (codes[0] + codes[1] + rng.integers(0, 4, 90) > 10).astype(np.int64)
    return Case(("a", "b", "c"), codes, trees, classes, (IndexedRequirement((0, 1, 2), K),))


def run(rule, owners, **more):
    """The parties and their batches."""
    together = table().in_turns if rule.takes_turns else table().together
    return together(rule, owners, **more)


def test_any_spread_of_columns_publishes_the_same(rule):
    ways = [[[0, 1, 2]], [[0], [1, 2]], [[2], [0], [1]], [[1], [0, 2], []]]
    results = [shown(party, 3) for owners in ways for party in run(rule, owners)[0]]
    if "literal" not in rule.name:  # which says that its table depends on the owners
        assert all(result == results[0] for result in results)
    for result in results:
        assert min(Counter(result).values()) >= K


def test_what_is_published_covers_the_truth(rule):
    rows = shown(run(rule, [[0], [1, 2]])[0][0], 3)
    for cells, codes in zip(rows, zip(*table().codes, strict=True), strict=True):
        assert all(lo <= code <= hi for (lo, hi), code in zip(cells, codes, strict=True))


def test_sensitive_values_and_atoms_are_kept(rule):
    atoms = np.arange(90) % 3
    for owners in ([[0, 1, 2]], [[0], [1, 2]]):
        parties, _ = run(rule, owners, diverse=[(table().classes, 2)], atoms=atoms)
        cells = shown(parties[-1], 3)
        assert min(values_by_group(cells, table().classes)) >= 2
        for cell in set(cells):
            rows = [i for i, other in enumerate(cells) if other == cell]
            assert np.bincount(atoms[rows])[np.unique(atoms[rows])].min() >= K


def test_every_group_has_the_values_that_a_judge_asks(rule):
    values = np.arange(90) // 30
    for owners in ([[0, 1, 2], []], [[0], [1, 2]]):
        parties, batches = run(rule, owners, veto=(1, values, 2))
        assert batches
        assert min(values_by_group(shown(parties[0], 3), values)) >= 2


def test_a_batch_fits_what_others_take_and_a_shorter_or_longer_one_is_refused(rule):
    owners = [[0], [1, 2], []]
    _, batches = run(rule, owners)
    assert batches
    cells = [{j: table().taxonomies[j].cells for j in own} for own in owners]
    follower = rule.party(table().ground(owners), {})
    for number, (owner, batch) in enumerate(batches):
        assert len(batch) <= rule.most_batch(90, cells[owner])
        assert number < rule.most_batches(90, 90)
        rule.check_batch(batch, cells[owner])
        for odd in {*(batch[:cut] for cut in (0, 1, 3, 4, 11, -1)), batch + b"\0"} - {batch}:
            torn = rule.party(table().ground(owners), {})
            for _, earlier in batches[:number]:
                torn.apply(earlier)
            with pytest.raises(PartyError):
                torn.apply(odd)
        follower.apply(batch)


def test_a_party_is_warmed_up_without_harm_to_others(rule):
    rule.party(table().ground([[0, 1, 2]]), dict(enumerate(table().codes))).warm_up()
    assert shown(run(rule, [[0, 1, 2]])[0][0], 3)
