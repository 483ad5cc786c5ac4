"""A certificate at a glance, for a notebook: whether it holds, each promise, size and loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.data import notebook
from shoal.data.fault_words import fault_sentences
from shoal.data.people import unit
from shoal.data.warnings import ReleaseWarning


def certificate_html(
    certificate: Mapping[str, Any], holds: bool, warnings: Iterable[ReleaseWarning]
) -> str:
    """The verdict, the promises, the main figures and the warnings; everything escaped."""
    promises = [_promise(promise) for promise in certificate.get("promises") or []]
    return notebook.section(
        notebook.sentence(
            "Every promise holds." if holds else "Does not hold.",
            strong=True,
        ),
        notebook.table(("promise", "of", "asked", "measured", "holds"), promises),
        notebook.table(("figure", "measured"), _figures(certificate)),
        *(notebook.sentence(f"{fault}.") for fault in fault_sentences(certificate)),
        *(notebook.sentence(f"{warning.text}.") for warning in warnings),
    )


def _promise(promise: Mapping[str, Any]) -> tuple[object, ...]:
    holds = "yes" if promise["holds"] else "NO"
    of = ", ".join(promise["attributes"]) or "all quasi-identifiers"
    return promise["model"], of, promise["asked"], _short(promise["measured"]), holds


def _figures(certificate: Mapping[str, Any]) -> list[tuple[str, str]]:
    records, classes = certificate.get("records") or {}, certificate.get("classes") or {}
    loss = (certificate.get("utility") or {}).get("gcp")
    risk = (certificate.get("risk") or {}).get("prosecutor_mean")
    many = unit(certificate).many
    return [
        (
            "records",
            f"{_short(records.get('out'))}, {_short(records.get('suppressed'))} suppressed",
        ),
        (
            f"groups of {many} who look alike" if many == "people" else f"groups of {many} alike",
            f"{_short(classes.get('count'))}, of {_short(classes.get('min'))} to"
            f" {_short(classes.get('max'))}",
        ),
        ("information loss (gcp)", _percent(loss)),
        ("mean risk to be picked out", _percent(risk)),
    ]


def _short(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.2f} %"
