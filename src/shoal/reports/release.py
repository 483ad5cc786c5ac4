"""Report: what a release promises, keeps and costs, on one page that can be handed on.

The page needs nothing but itself: charts are drawn into it, and it loads no font, script or image.
It says nothing of any single person beyond what is published: figures come from the certificate and
the release, and what is shown of the original keeps the rule of `distributions`. The policy is
shown as its author wrote it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from shoal.auditor.verdict import CertifiedRelease
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import PromiseReport, unit
from shoal.data.language import gettext, ngettext
from shoal.data.release import PublishedColumn
from shoal.data.schema import Attribute, Kind, Role, Shown
from shoal.policy import registry
from shoal.policy.loading import as_yaml
from shoal.policy.policy import Policy
from shoal.reports import attacks, charts, distributions, pages
from shoal.reports.in_short import in_short
from shoal.reports.limits import hidden_from, limits, who_pays
from shoal.reports.pages import Content, Heading, Measured
from shoal.reports.text import MEASURES, alone_if_known, downstream_sentences, explanation_sentences


def write_report(
    found: CertifiedRelease, policy: Policy, path: Path, heading: Heading | None = None
) -> None:
    """The report of a published or audited file, written whole or not at all.

    Without its original there is no before to compare with.
    """
    pages.write_page(render(pages.measured_of(found, policy), heading), path)


def render(measured: Measured, heading: Heading | None = None) -> str:
    """Render the page. Deterministic."""
    return pages.render_template("report.html.j2", _content(measured, heading or Heading()))


def _content(measured: Measured, heading: Heading) -> Content:
    certificate, schema = measured.certificate, measured.schema
    sizes, losses = distributions.sizes_chart(measured), distributions.losses_of(measured)
    drawn = distributions.drawn_of(losses)
    faults = certificate.get("faults", {})
    downstream, explanation = certificate.get("downstream"), certificate.get("explanation")
    hidden, counted = gettext("{name} of {count} {people}"), unit(certificate)
    return {
        "heading": heading,
        "not_stated": pages.listed(
            [words for key, words in ASKED.items() if not getattr(heading, key)]
        ),
        "certificate": certificate,
        "schema": schema,
        "unit": unit(certificate),
        "lines": in_short(certificate),
        "promises": [_promise(promise) for promise in certificate["promises"]],
        "faults": faults if "uncovered" in faults else None,
        "quasi": [a.name for a in schema.quasi],
        "open_columns": pages.listed([*alone_if_known(certificate)]),
        "who_pays": who_pays(measured.release),
        "hidden_from": [
            hidden.format(name=name, count=pages.number_text(n), people=gettext(counted.of(n)))
            for name, n in hidden_from(measured.release).items()
        ],
        "sizes": sizes,
        "risks": charts.risks_chart(certificate),
        "attackers": attackers(certificate),
        **attacks.attack_section(certificate),
        "losses": charts.losses_chart(drawn),
        "attributes": [
            _attribute(measured, a, c, losses)
            for a, c in zip(schema.quasi, measured.release.columns, strict=True)
        ],
        "utility": [_measure(name, score) for name, score in certificate["utility"].items()],
        "downstream": downstream and list(downstream_sentences(downstream)),
        **before_and_after(
            distributions.distributions_of(measured, drawn),
            len(losses),
            distributions.least_shown(measured),
            schema.render.suppressed,
        ),
        "columns": {a.name: _fate(a, measured) for a in schema.attributes},
        "suppressions": _suppressions(measured),
        "explanation": explanation and list(explanation_sentences(explanation)),
        "limits": list(limits(measured)),
        "command": _command(measured),
        "policy": as_yaml(measured.policy.model.model_dump(mode="json", exclude_unset=True)),
        "method": _method(certificate),
    }


ASKED = {
    "owner": gettext("who releases this"),
    "recipient": gettext("to whom"),
    "purpose": gettext("for what purpose"),
}
"""What the first box of a report says is not stated."""


# Promises and risk


def _promise(promise: PromiseReport) -> Content:
    model: Any = registry.models()[promise["model"]]
    return {
        **named_promise(promise),
        "groups": _groups(promise),
        "bound": gettext("at least") if model.higher_is_better else gettext("at most"),
        "definition": model.definition,
        "source": model.source,
    }


def named_promise(promise: PromiseReport) -> Content:
    """A promise with its title and settings, as every page names it, of whatever model."""
    known = ("model", "attributes", "asked", "measured", "holds", "classes", "risk")
    over = ", ".join(promise["attributes"])
    about = gettext(" of {attributes}", attributes=over) if over else ""
    settings = [_setting(key, value) for key, value in promise.items() if key not in known]
    return {**promise, "title": f"{promise['model']}{about}", "settings": settings}


def _setting(key: str, value: Any) -> str:
    """A parameter of a promise, or what else was measured of it, in words."""
    if key == "kind":
        return pages.number_text(value)
    if key == "households":
        return gettext("with the household") if value else gettext("each person")
    if key == "measured_with_missing":
        return gettext("a missing value counts as one more value")
    if key == "measured_without_missing":
        return gettext(
            "{measured} if a missing value is not counted", measured=pages.number_text(value)
        )
    if key == "expected":
        return gettext(
            "{people} people expected to be re-identified", people=pages.number_text(value)
        )
    if key == "above":
        return gettext("{share} of people above the bound", share=pages.percent_text(value))
    return f"{key.replace('_', ' ')}: {pages.number_text(value)}"


def _groups(promise: PromiseReport) -> str:
    """How people are alike in the columns of one promise, where these are not all."""
    classes, risk = promise.get("classes"), promise.get("risk")
    if not promise["attributes"] or not risk or not classes or not classes["count"]:
        return ""
    return ngettext(
        "On these columns: {count:,} class of {least} to {largest}; risk at most {highest}, on"
        " average {mean}.",
        "On these columns: {count:,} classes of {least} to {largest}; risk at most {highest}, on"
        " average {mean}.",
        classes["count"],
        least=pages.number_text(classes["min"]),
        largest=pages.number_text(classes["max"]),
        highest=pages.percent_text(risk["max"]),
        mean=pages.percent_text(risk["mean"]),
    )


RISKS = ("prosecutor_max", "prosecutor_mean", "journalist_max", "marketer")


def attackers(
    certificate: Mapping[str, Any],
) -> list[tuple[str, str, list[tuple[str, float | None]]]]:
    """Each attacker, what they know and look for, and the chance; None before a publication."""
    risk = certificate.get("risk") or dict.fromkeys(RISKS)
    knows_one = gettext(
        "Knows that a certain person is in the release, and all that others could know of them."
    )
    knows_nobody = gettext(
        "Wants to identify anybody at all, and does not know who is in the release."
    )
    knows_all = gettext(
        "Has a list of everybody with all that others could know of them, and links as many as"
        " possible."
    )
    picks = gettext("The chance to pick that person out of the people of a class.")
    links = gettext(
        "The expected share of people in the release whom such a list identifies correctly."
    )
    rests_on = gettext(
        "Assumed to do as well as the prosecutor: no table of the whole population was"
        " compared, so this is an upper bound."
    )
    around = certificate.get("attacks", {}).get("population") or {}
    if around.get("journalist_max") is not None:
        rests_on = gettext("Compared with the population as the policy describes it ({source}).")
        rests_on = rests_on.format(source=around["source"])
    highest, mean = gettext("at most"), gettext("on average")
    of_one = [(highest, risk["prosecutor_max"]), (mean, risk["prosecutor_mean"])]
    expected = [(gettext("expected"), risk["marketer"])]
    rows = [
        (gettext("Prosecutor"), f"{knows_one} {picks}", of_one),
        (gettext("Journalist"), f"{knows_nobody} {rests_on}", [(highest, risk["journalist_max"])]),
        (gettext("Marketer"), f"{knows_all} {links} {rests_on}", expected),
    ]
    if (weighed := certificate.get("individual_risk")) is not None:
        named = gettext(
            "The chance that such a list of the population identifies a person, estimated by the"
            " weights of the sample."
        )
        shares = [(highest, weighed["own"]["max"]), (mean, weighed["own"]["mean"])]
        rows.append((gettext("Individual risk"), named, shares))
    return rows


# What it cost


LESS = gettext("Lower is better.")
MEANINGS = MEASURES | {
    **{
        name: f"{MEASURES[name]} {LESS}"
        for name in ("discernibility", "classification", "squared_error")
    },
    "squared_error_normalised": gettext(
        "squared_error per record, each attribute divided by its standard deviation."
    ),
    "information_loss_percent": gettext(
        "squared_error in percent of what is lost when the whole table is one class."
    ),
    "query_error": gettext(
        "Mean error of counts of people in two ranges with one of three sensitive values,"
        " each relative to the true count, of random queries. Lower is better."
    ),
}
SHARES = ("gcp", "generalized_loss")


def _measure(name: str, score: float | None) -> tuple[str, str, str]:
    """The name of a measure, its value, and what it means."""
    stated = getattr(registry.metrics().get(name), "__doc__", None) or ""
    text = pages.percent_text(score) if name in SHARES else pages.number_text(score)
    text = gettext("does not apply") if score is None else text
    return name.replace("_", " "), text, MEANINGS.get(name) or stated.strip().split("\n")[0]


def _attribute(
    measured: Measured,
    attribute: Attribute,
    column: PublishedColumn,
    losses: Mapping[str, float | None],
) -> Content:
    """One quasi-identifier in the table of losses."""
    shown, records = measured.release.cell_counts[column.name], max(measured.release.records, 1)
    mark = np.isneginf(column.lo)
    return {
        "name": attribute.name,
        "loss": losses[attribute.name],
        "exact": float(shown[column.widths == 0].sum() / records),
        "hidden": float((shown[mark].sum() + measured.release.suppressed) / records),
        "cells": int((shown > 0).sum()),
    }


# Before and after


def before_and_after(
    found: Iterable[distributions.Distribution], of_all: int, least: int, mark: str
) -> Content:
    """A report's part about distributions. of_all: of how many columns. mark: what hides a cell."""
    comparisons = [_comparison(one) for one in found]
    return {
        "comparisons": comparisons,
        "undrawn": of_all - len(comparisons),
        "quasi_columns": of_all,
        "is_compared": any(one["both"] for one in comparisons),
        "least": least,
        "mark": mark,
    }


def _comparison(found: distributions.Distribution) -> Content:
    """One chart, the figures behind it, and what it can't show."""
    before, after = found.percent
    return {
        "name": found.name,
        "chart": distributions.distribution_chart(found),
        "rows": [
            (label, None if before is None or np.isnan(before[i]) else before[i] / 100, share / 100)
            for i, (label, share) in enumerate(zip(found.labels, after, strict=False))
        ],
        "hidden": found.hidden,
        "both": before is not None,
    }


# Columns and suppression

FATES = {
    Role.IDENTIFIER: gettext("names people directly: removed"),
    Role.SUBJECT: gettext("tells who a record belongs to: counted, then removed"),
    Role.QUASI: gettext("quasi-identifier: generalized"),
    Role.SENSITIVE: gettext("sensitive: published as it is"),
    Role.PLAIN: gettext("published as it is"),
    Role.TIME: gettext("arrival: removed"),
    Role.WEIGHT: gettext("how many people a record stands for: removed"),
    Role.HOUSEHOLD: gettext("who lives together: removed"),
    Role.DROP: "removed",
}


FATES_APART = {
    Role.QUASI: gettext("quasi-identifier: published as it is, with the number of a group"),
    Role.SENSITIVE: gettext("sensitive: in a second table, counted by group"),
}
NUMBERS = {
    Shown.RANGE: gettext("to intervals"),
    Shown.MEAN: gettext("to the means of classes"),
    Shown.BOTH: gettext("to means and intervals"),
    Shown.MEDIAN: gettext("to the medians of classes"),
    Shown.MODE: gettext("to the most frequent values of classes"),
}


def _fate(attribute: Attribute, measured: Measured) -> str:
    """What happened to a column."""
    policy = measured.policy
    if policy.is_in_two_tables and attribute.role in FATES_APART:
        return FATES_APART[attribute.role]
    fate = FATES[attribute.role]
    if attribute.pseudonym is not None:
        fate = gettext("replaced by a keyed pseudonym")
    if attribute.role is Role.QUASI:
        fate += f" {_how(attribute, policy.model.attributes[attribute.name].hierarchy)}"
    return fate


def _how(attribute: Attribute, declared: str | Mapping[str, Any] | None) -> str:
    """What the cells of a quasi-identifier are generalized to."""
    if attribute.shown is Shown.MODE:
        return NUMBERS[Shown.MODE]
    if declared is not None:
        made = ""
        if not isinstance(declared, str):
            made = gettext(", made by {maker}", maker=next(iter(declared)))
        return gettext("to the nodes of a hierarchy{made}", made=made)
    return {
        Kind.NUMBER: NUMBERS[attribute.shown],
        Kind.ORDINAL: gettext("to spans of its order"),
        Kind.CATEGORY: gettext("by hiding values entirely (*), where that is needed"),
    }[attribute.kind]


def _suppressions(measured: Measured) -> list[tuple[int, str]]:
    """How many records are suppressed for each reason."""
    explained = {
        "missing quasi-identifier": gettext(
            "lack a quasi-identifier, and the policy says 'missing: suppress'"
        ),
        "suppressed by the method": gettext(
            "were in a class that broke a promise; the method may suppress that many"
        ),
        "not covered by the plan": gettext("have a value that the plan does not cover"),
    }
    reasons = measured.reasons
    rest = measured.certificate["records"]["suppressed"] - sum(reasons.values())
    rows = [(count, explained.get(why, why)) for why, count in reasons.items()]
    if rest > 0:
        rows.append((rest, gettext("show the suppression mark in every quasi-identifier")))
    return rows


# How to repeat it


def _method(certificate: Certificate) -> list[tuple[str, str]]:
    method = certificate["method"]
    if method is None:
        return []
    # certificates of before 0.3 call it the method's account
    statistics = method.get("search_statistics", method.get("account", {}))
    return [
        *(
            (name, pages.number_text(value) if value != "" else gettext("not set"))
            for name, value in method["parameters"].items()
        ),
        *(
            (gettext("found: {name}", name=name), pages.number_text(value))
            for name, value in statistics.items()
            if not isinstance(value, (dict, list))
        ),
        *(
            (gettext("level of {name}", name=name), pages.number_text(level))
            for name, level in statistics.get("levels", {}).items()
        ),
    ]


def _command(measured: Measured) -> str:
    certificate = measured.certificate
    if certificate["verb"] == "audit":
        original = " --original ORIGINAL" if measured.truth is not None else ""
        return f"shoal audit RELEASED -p policy.yaml{original}"
    verb, seed = certificate["verb"], certificate["seed"]
    # of one table the policy names the method with its settings, or else what Shoal takes
    method = "" if verb == "publish" else f" --method {certificate['method']['name']}"
    return f"shoal {verb} INPUT -p policy.yaml -o OUTPUT{method} --seed {seed}"
