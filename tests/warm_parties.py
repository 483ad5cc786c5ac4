"""Loads a party's modules and compiled loops: imported once, by each server that parties of the
tests are forked from.

No Polars is at work here: its threads would not outlive a fork.
"""

import gc
import logging
import sys

import cryptography.hazmat.primitives.serialization
import cryptography.x509  # noqa: F401
import grpc  # noqa: F401
import numpy as np

import shoal.cli.fuse
import shoal.cli.main
import shoal.cli.publish
import shoal.fusion.party  # noqa: F401
from shoal.data.schema import IndexedRequirement, Taxonomy
from shoal.fusion.ground import Ground
from shoal.fusion.methods.party_tds import PartyTds
from shoal.policy import registry

_taxonomies = Taxonomy(4, {(0, 3): np.array([0, 2])}), Taxonomy(4, is_number=True)
_codes = np.array([0, 1, 2, 3] * 2, dtype=np.uint8)
_winner, _follower = (
    PartyTds().party(
        Ground(
            _taxonomies,
            _codes.astype(np.int64) % 2,
            [IndexedRequirement((0, 1), 2)],
            weights=(1.0, 1.0),
            owners=(0, 1),
        ),
        own,
    )
    for own in ({0: _codes}, {1: _codes})
)
_winner.bid()
_follower.apply(_winner.specialize(1))

for _known in (registry.methods, registry.models, registry.metrics, registry.makers):
    _known()

_given, sys.argv = sys.argv, ["shoal"]  # MPyC reads the command line
import mpyc.runtime  # noqa: E402, F401  for the secure maximum, which each party forks

sys.argv = _given
logging.root.handlers.clear()  # MPyC's own, which a party has not
logging.root.setLevel(logging.WARNING)

gc.collect()
gc.freeze()  # what no process collects, none copies
