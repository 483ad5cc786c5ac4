"""Releases and private steps as they follow each other, read and never written."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from shoal.connectors.ledger.layout import (
    CERTIFICATE,
    MARK,
    PRIVATE_SCHEMA,
    Layout,
    LedgerStep,
    json_text,
    read_json,
    sha256_of,
    sha256_of_names,
    sha256_of_state,
    sha256_of_text,
)
from shoal.errors import LedgerError

_STEP_FORM = TypeAdapter(LedgerStep)
_FORMER_NAMES = {"passing": "transient_files"}
"""Fields of steps that were written before they were renamed."""


@dataclass
class Chain(Layout):
    """The releases of a ledger, and the private steps that led to them."""

    def certificate(self, release: int) -> dict[str, Any]:
        """The certificate of a release; raises LedgerError where it can't be read."""
        content = read_json(self.folder(release) / CERTIFICATE)
        if content is None:
            raise LedgerError(
                f"release {release:04d}: its certificate is missing or damaged; restore it from a"
                " copy"
            )
        return content

    def step(self, number: int) -> LedgerStep:
        """A step of the private part; raises LedgerError where it can't be read."""
        step = self._read_step(number)
        if step is None or step.number != number:
            raise LedgerError(
                f"private step {number:06d}: is missing or damaged; restore it from a copy"
            )
        return step

    def _read_step(self, number: int) -> LedgerStep | None:
        """A step that is byte for byte as it was written; else None."""
        path = self.state_file(number)
        content = read_json(path)
        if content is None or sha256_of(path) != sha256_of_text(json_text(content)):
            return None
        if content.pop("schema", None) != PRIVATE_SCHEMA:
            return None
        if content.pop("sha256", None) != sha256_of_state(content):
            return None
        content = {_FORMER_NAMES.get(name, name): value for name, value in content.items()}
        if set(content) != {part.name for part in fields(LedgerStep)}:
            return None
        try:
            return _STEP_FORM.validate_json(json.dumps(content), strict=True)
        except ValidationError:
            return None

    def last_step(self) -> LedgerStep:
        """The last step that was committed; an empty one where none was."""
        for number in reversed(self.steps()):
            if self.is_committed(number):
                return self.step(number)
        return LedgerStep(head=sha256_of(self.genesis), inputs=sha256_of_names(()))

    def is_committed(self, number: int) -> bool:
        """Whether a step counts: marked, its increment noted, or its release is there."""
        if (self.step_folder(number) / MARK).exists():
            return True
        step = self.step(number)
        is_noted = self.note(step.input).exists()
        return step.release is None or is_noted or self.folder(step.release).is_dir()

    def step_of(self, release: int) -> Path:
        """The folder of the private step that led to a release; LedgerError if it is lost."""
        for number in reversed(self.steps()):
            if self.state_file(number).is_file() and self.step(number).release == release:
                return self.step_folder(number)
        raise LedgerError(
            f"release {release:04d}: its private step is missing; restore the private part"
        )
