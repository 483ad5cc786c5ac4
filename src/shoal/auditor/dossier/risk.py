"""How easily people could be found: before anything was done, and in the release."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.auditor.stream_trace import read_source
from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.data.person_names import names_of
from shoal.data.schema import REMOVED, Fields
from shoal.data.table import as_text
from shoal.errors import InputError
from shoal.policy.binding.files import PolicyTables


@dataclass(frozen=True)
class Roles:
    """What the columns of a release are for. known: whether anything tells it. as_they_are: those
    published so, sensitive or plain. of_stream: whether a stream published it.
    """

    known: bool
    published: tuple[str, ...] = ()
    quasi: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    as_they_are: tuple[str, ...] = ()
    of_stream: bool = False

    @classmethod
    def of(cls, certificate: Certificate, tables: PolicyTables | None) -> "Roles":
        """From the policy, and from a certificate that lists its columns."""
        columns = certificate.get("columns")
        if not isinstance(columns, list) or not all(isinstance(c, Mapping) for c in columns):
            if tables is None:
                return cls(False)
            columns = []
        roles: dict[str, tuple[str, bool]] = {
            str(c.get("name")): (str(c.get("role")), c.get("technique") != "removed")
            for c in columns
        }
        declared = {} if tables is None else tables.model.attributes
        people = [] if tables is None else tables.model.subject_columns
        roles |= {
            name: ("subject" if name in people else a.role, True) for name, a in declared.items()
        }
        kept = {name: role for name, (role, is_kept) in roles.items() if is_kept}
        return cls(
            True,
            tuple(name for name, role in kept.items() if role not in REMOVED),
            tuple(name for name, (role, _) in roles.items() if role == "quasi"),
            tuple(name for name, (role, _) in roles.items() if role == "subject"),
            tuple(name for name, role in kept.items() if role in ("sensitive", "plain")),
            certificate.get("verb") == "stream",
        )


def initial_risk(
    original: str, roles: Roles, own: PolicyTables | None = None, fields: Fields | None = None
) -> dict[str, float]:
    """The risk in the original table, by all quasi-identifiers as they stand there.

    alone: share of people whom nobody else looks like. mean, max: chance to find a person.
    own: the tables of the policy, which says how the original is written, if it is given. fields:
    what it says of a stream's records, of which those that can't be read were set aside.
    """
    if not roles.quasi:
        raise InputError(
            "dossier: the certificate doesn't name the quasi-identifiers, so the risk of the"
            " original can't be measured; give the policy with -p"
        )
    if roles.of_stream and Path(original).is_file():
        frame = read_source(original, fields or Fields()).frame
    elif own is not None:
        frame = own.read_original(original).frame
    else:
        frame = files.read(original, roles.quasi).frame
    InputError.raise_for(
        f"original '{original}': lacks the column '{name}'"
        for name in roles.quasi
        if name not in frame.columns
    )
    keys = [as_text(frame[name]).alias(f"q{j}") for j, name in enumerate(roles.quasi)]
    if roles.subject and {*roles.subject} <= {*frame.columns}:
        names = [names_of(frame[n]).alias(f"p{j}") for j, n in enumerate(roles.subject)]
    else:
        names = [pl.Series("person", range(frame.height))]
    people = pl.DataFrame([*keys, *names]).unique()
    sizes = people.group_by([key.name for key in keys]).len()["len"]
    total = people.height
    return {
        "alone": int((sizes == 1).sum()) / total,
        "mean": len(sizes) / total,
        "max": 1 / int(sizes.min() or 1),  # type: ignore[arg-type]
    }


def residual_risk(certificate: Certificate) -> dict[str, float | None]:
    """The risk in the release, as its certificate states it."""
    stated = certificate.get("risk")
    risk = stated if isinstance(stated, Mapping) else {}
    together = certificate.get("together")
    hidden = together if isinstance(together, Mapping) else {}
    return {
        "alone": _number(hidden.get("alone"), hidden.get("people")),
        "mean": _number(risk.get("prosecutor_mean")),
        "max": _number(risk.get("prosecutor_max")),
    }


def _number(value: Any, whole: Any = 1) -> float | None:
    both = all(isinstance(n, int | float) and not isinstance(n, bool) for n in (value, whole))
    return float(value / whole) if both and whole else None
