"""Loads a party's modules and compiled loops: imported once, by the server that all parties of the
tests are forked from.

No Polars is at work here: its threads would not outlive a fork.
"""

from __future__ import annotations

import numpy as np

from shoal.algorithms.fusion.party_tds import Party, PartyTds
from shoal.algorithms.steps.specialization import IndexedRequirement, Taxonomy

_taxonomies = Taxonomy(4, {(0, 3): np.array([0, 2])}), Taxonomy(4, is_number=True)
_codes = np.array([0, 1, 2, 3] * 2, dtype=np.uint8)
_winner, _follower = (
    Party(
        PartyTds(), _taxonomies, own, _codes.astype(np.int64) % 2, [IndexedRequirement((0, 1), 2)]
    )
    for own in ({0: _codes}, {1: _codes})
)
_winner.bid()
_follower.apply(_winner.specialize(1))
