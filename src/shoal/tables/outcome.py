"""What a publish found: the certificate, the release, and the draft that it was made of."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.data.certificate import Certificate
from shoal.data.release import Release, held_release
from shoal.tables.draft import RecodedDraft


@dataclass(frozen=True)
class Outcome:
    """A published table: its certificate, and what a report needs to be drawn from it."""

    certificate: Certificate
    held: Release | None
    made: RecodedDraft | None

    @property
    def release(self) -> Release:
        """The release; raises InputError where it was too large to be held."""
        return held_release(self.held)

    @property
    def draft(self) -> RecodedDraft:
        """What was published; raises InputError where it was too large to be held."""
        held_release(self.held)
        assert self.made is not None
        return self.made
