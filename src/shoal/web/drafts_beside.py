"""One draft beside another: what was asked differently, and what came of it."""

from __future__ import annotations

from typing import Any

from shoal.web import folder as files
from shoal.web.policy_text import changed_lines
from shoal.web.project import Run

Context = dict[str, Any]


def beside(run: Run, other: Run) -> Context:
    """Figures of both drafts in rows, the losses of their columns, and the policies' changed lines.

    In each row: what it is, the other draft's, this draft's.
    """
    own, theirs = run.certificate, other.certificate
    losses, earlier = _losses(own), _losses(theirs)
    names = list(dict.fromkeys([*losses, *earlier]))
    rows = [(text, _text(figure(theirs)), _text(figure(own))) for text, figure in FIGURES]
    rows += [(f"{n}, lost", _percent(earlier.get(n)), _percent(losses.get(n))) for n in names]
    texts = (files.text_of(one.folder / "policy.yaml") or "" for one in (other, run))
    return {
        "other": other,
        "rows": [{"text": t, "other": o, "own": s, "differs": o != s} for t, o, s in rows],
        "lines": [(mark, line) for mark, line in changed_lines(*texts) if mark != " "],
        "is_other_table": run.about.get("table_sha") != other.about.get("table_sha"),
    }


def _losses(stated: Context) -> dict[str, float | None]:
    columns = stated.get("columns") or ()
    return {c["name"]: c.get("loss") for c in columns if c["role"] == "quasi"}


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _text(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _largest_risk(stated: Context) -> str:
    risk = (stated.get("risk") or {}).get("prosecutor_max")
    return f"1 in {1 / risk:.0f}" if risk else "–"


def _measured(stated: Context) -> str:
    found = [
        f"{' '.join([p['model'], *p['attributes']])} {p['measured']:.4g}"
        for p in stated["promises"]
        if isinstance(p["measured"], (int, float))
    ]
    return ", ".join(found)


FIGURES = (
    ("Method", lambda c: (c.get("method") or {}).get("name")),
    ("Promises, as measured", _measured),
    ("Detail lost", lambda c: _percent((c.get("utility") or {}).get("gcp"))),
    ("Named at most", _largest_risk),
    ("Groups", lambda c: c["classes"]["count"]),
    ("Smallest group", lambda c: c["classes"]["min"]),
    ("Rows suppressed", lambda c: c["records"]["suppressed"]),
)
