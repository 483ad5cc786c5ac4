"""The ledger: an append-only chain of releases, and beside it what only their owner may see.

    DIR/ledger.json, policy.json, hierarchies/       what every release is measured against
    DIR/0001/data.csv, certificate.json, ...         a release; its certificate holds the hash of
                                                     the one before
    DIR.private/key                                  the key of the subject tokens
    DIR.private/000001/state.json, rows.parquet, ... a step: what an accepted increment left to
                                                     remember
    DIR.private/table.json                           the table in a database that takes the
                                                     releases, too, if there is one
    DIR.private/inputs/HASH                          the step that an increment of this hash led to

Promise: releases 1..N are whole and follow each other, whatever instant a process is killed at. A
release is published by one rename. Its private step takes its place before that, and is noted and
marked afterwards. So a step without release, note and mark was never committed, and a note or mark
without its release means that the release was taken away.

An append lists both folders, and reads the end of the chain and every list of people that it looks
people up in: it hashes 16 bytes for everybody who was ever published, and costs the same otherwise,
however long the ledger is. `verify` checks every byte.

    layout.py    where everything lies, the chain as it is read, and small files
    verify.py    what is damaged, missing, added or out of order
    commit.py    the ledger: lock, draft, commit
    private.py   what the private part remembers of people
"""

from shoal.connectors.ledger.commit import Ledger as Ledger
from shoal.connectors.ledger.layout import CERTIFICATE as CERTIFICATE
from shoal.connectors.ledger.layout import COUNTERFEITS as COUNTERFEITS
from shoal.connectors.ledger.layout import DATA as DATA
from shoal.connectors.ledger.layout import GENESIS as GENESIS
from shoal.connectors.ledger.layout import HIERARCHIES as HIERARCHIES
from shoal.connectors.ledger.layout import POLICY as POLICY
from shoal.connectors.ledger.layout import RUN as RUN
from shoal.connectors.ledger.layout import PolicyFiles as PolicyFiles
from shoal.connectors.ledger.layout import ReleaseDraft as ReleaseDraft
from shoal.connectors.ledger.layout import TableNote as TableNote
from shoal.connectors.ledger.layout import sha256_of as sha256_of
