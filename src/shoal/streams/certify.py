"""The certificate of a stream: what was measured on the whole, or release by release."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.description import column_roles, described, provenance, repeated_rows
from shoal.auditor.measure import measure
from shoal.auditor.verdict import require_kept, withheld_few
from shoal.connectors import files
from shoal.connectors.outputs import describe_file
from shoal.data.certificate import Certificate
from shoal.data.people import UNITS, UNKNOWN, people_key
from shoal.data.progress import Progress
from shoal.data.schema import Render
from shoal.data.table import Table
from shoal.data.warnings import MOSTLY_ASIDE, ReleaseWarning
from shoal.policy.policy import Policy
from shoal.streams.core import StreamCore
from shoal.streams.gate import Gate
from shoal.streams.options import StreamOptions
from shoal.streams.progress import StreamCounters
from shoal.version import VERSION

VERB = "stream"


def whole_stream(
    core: StreamCore, published: Path | str, form: str, people: Path | None, progress: Progress
) -> tuple[dict[str, Any], str]:
    """What an audit of the whole published file finds, people counted; with the file's hash.

    form: the suffix that names the file's format. people: the file of who is behind each row.
    """
    progress("reading what was published")
    written = files.read_as(published, form, core.policy.audited_columns)
    table = Table(written.frame)
    released = written.frame
    if people is not None and core.schema.subject is not None:
        behind = pl.Series(core.schema.subject.name, np.fromfile(people, dtype=np.int64))
        released = released.with_columns(behind.cast(pl.String))
    certificate, _, figures = measure(
        Table(released), core.schema, core.policy, None, progress, core.measures
    )
    certificate = certificate.extended(verb=VERB)
    certificate = described(certificate, table, figures, core.schema, core.policy, None)
    return {**certificate, "measured": "whole"}, written.sha256


def release_by_release(core: StreamCore, gate: Gate) -> dict[str, Any]:
    """What was measured before each release left: every class when it first appeared."""
    policy = core.policy
    promises = [
        {
            "model": model.model,
            "attributes": list(model.attributes),
            **model.settings,
            "asked": model.asked,
            "measured": gate.least if model.model == "k-anonymity" else None,
            "holds": True,
            **({"classes": None, "risk": None} if model.model == "k-anonymity" else {}),
        }
        for model in policy.build_promises()
    ]
    withheld = gate.suppressed if gate.suppressed < gate.rows else 0
    few = withheld_few(withheld, UNITS[UNKNOWN], policy.build_promises(), gate.schema)
    return {
        "records": {"suppressed": gate.suppressed, "withheld": withheld},
        "people": people_key(policy.subject, is_counted=True),
        "counted": "subjects",
        "subjects": None,
        "classes": {"count": None, "min": gate.least, "mean": None, "max": None},
        "promises": promises,
        "together": None,  # classes are measured when they appear, not what they grow to
        "warnings": [warning.report() for warning in (*few, *repeated_rows(core.schema))],
        "utility": {"gcp": gate.loss / gate.rows if gate.rows else None},
        "risk": {"prosecutor_max": 1 / gate.least if gate.least else None},
        "measured": "release by release",
        **provenance(VERB, policy),
        "columns": column_roles([a.name for a in core.schema.published], core.schema, policy),
    }


def output_of(
    options: StreamOptions, published: Path, digest: str | None, render: Render
) -> dict[str, Any]:
    """The certificate's `output`: the file; of a topic or standard output its hash."""
    if not options.to_file and not options.to_table:
        return {"sha256": digest}
    return describe_file(published, options.sink, digest, render)


def stream_certificate(
    measured: dict[str, Any],
    policy: Policy,
    counters: StreamCounters,
    waiting: int,
    read_and_written: dict[str, Any],
    started: float,
) -> Certificate:
    """What was measured, and what the stream did.

    read_and_written: the parts `input` and `output`. started: the process time when the run
    began.
    """
    kinds, aside = counters.kinds, counters.mostly_aside
    warnings = list(measured["warnings"])
    if aside:
        text = f"{aside}: the source may have changed, see which records and why"
        warnings.insert(0, ReleaseWarning(MOSTLY_ASIDE, text).report())
    method = {"name": policy.method_name, "parameters": policy.parameters_for("stream")}
    content = {
        **measured,
        "warnings": warnings,
        "shoal": VERSION,
        "verb": VERB,
        "method": method,
        "seed": policy.model.seed,
        "records": {
            "in": counters.read,
            "out": counters.published,
            "suppressed": measured["records"]["suppressed"],
            "withheld": measured["records"]["withheld"],
            "held": kinds["hold"],
            "dropped": kinds["drop"],
            "rejected": counters.bad,
            "waiting": waiting,
        },
        "stream": {
            "closed": counters.closed,
            "releases": counters.releases,
            "clusters": counters.clusters,
            "new": kinds["new"],
            "reused": kinds["reuse"],
            "delay": {"mean": counters.mean_delay, "max": counters.longest},
        },
        "faults": {"uncovered": 0},  # a release with any was withheld
        **read_and_written,
        "seconds": {"total": time.process_time() - started, "method": None},
    }
    return Certificate(content)


def require_whole_kept(certificate: Certificate) -> None:
    """Raises PromiseError with every promise that the whole of a stream breaks.

    Only the end tells that no record shows anything: any later one could have.
    """
    records = certificate["records"]
    only_stars = records["out"] == records["suppressed"]
    why = ", since every record is suppressed: ask for less, or let more records wait"
    require_kept(certificate, "nothing was written" + (why if only_stars else ""))
