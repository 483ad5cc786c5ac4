"""What a policy may ask where quasi-identifiers are shown as they are, in a table of their own."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from shoal.data.two_tables import COUNT, GROUP, OWN_METHODS
from shoal.policy import registry
from shoal.policy.model import PolicyModel

BY_GROUP = ("alpha-k-anonymity", "l-diversity", "t-closeness")
NEEDED = (
    "promise alpha-k-anonymity of the sensitive attribute, such as {{model: alpha-k-anonymity,"
    " attribute: {name}, alpha: {alpha}, k: {l}}}"
)


def renders_two_tables(model: PolicyModel) -> bool:
    """Whether the policy names a method that publishes two tables; imports no method for it."""
    name = None if model.method is None else model.method["name"]
    if name is None or registry.is_known_method(name, "publish"):
        return name in OWN_METHODS
    if registry.verb_of(name) != "publish":
        return False
    return registry.method(name, "publish").renders_two_tables


def two_table_findings(model: PolicyModel) -> list[str]:
    """All that such a method can't do, each with its reason."""
    assert model.method is not None
    of = f"method '{model.method['name']}'"
    return [f"{of}: {finding}" for finding in _findings(model)]


def _findings(model: PolicyModel) -> Iterator[str]:
    sensitive = [name for name, a in model.attributes.items() if a.role == "sensitive"]
    if len(sensitive) != 1:
        yield (
            f"hides one sensitive attribute, the policy names {len(sensitive)}; give the others the"
            " role 'drop', or those that an attacker could know 'quasi'"
        )
    yield from _attribute_findings(model)
    yield from _promise_findings(model, sensitive[0] if sensitive else "NAME")
    if model.missing == "suppress":
        yield "shows quasi-identifiers as they are, so no record is suppressed; leave out 'missing'"
    if model.label is not None:
        yield "no row shows what could be predicted; leave out 'label'"
    if model.accept:
        yield "attacks are tried on boxes, and it shows none; leave out 'accept'"
    if model.write.numbers:
        yield "shows no intervals that have ends; leave out 'write: numbers'"
    if "order" in model.render.model_fields_set and model.render.order == "input":
        yield (
            "the order of rows could reveal what a table joined by group hides; leave out"
            " 'order: input'"
        )


def _attribute_findings(model: PolicyModel) -> Iterator[str]:
    for name, declared in model.attributes.items():
        if declared.role == "plain" or (declared.role == "identifier" and declared.pseudonym):
            what = "plain" if declared.role == "plain" else "a pseudonym"
            yield (
                f"attribute '{name}': is {what}, and would stand beside quasi-identifiers that are"
                " not changed; give it the role 'quasi' or 'drop'"
            )
        if declared.render != "range" or declared.round is not None:
            yield (
                f"attribute '{name}': is shown as it is; leave out 'render' and 'round', which are"
                " of classes"
            )
        if name in (GROUP, COUNT) and declared.role in ("quasi", "sensitive"):
            yield f"attribute '{name}': the release has a column of its own of that name; rename it"
    if model.other == "plain":
        yield "'other: plain' would publish columns beside unchanged ones; say 'other: drop'"


def _promise_findings(model: PolicyModel, name: str) -> Iterator[str]:
    l = _asked_l(model)
    needed = NEEDED.format(name=name, alpha=-(-(10**6) // l) / 10**6, l=l)
    is_diverse = False
    for promise in model.promises:
        kind = promise["model"]
        if kind == "k-anonymity":
            yield (
                "shows quasi-identifiers as they are, so nobody is one of k who look alike; leave"
                f" out k-anonymity, and {needed}"
            )
        elif kind not in BY_GROUP or promise.get("kind", "distinct") != "distinct":
            yield f"can't be asked for '{kind}' of this kind; {needed}"
        elif kind == "alpha-k-anonymity":
            is_diverse = True
            if _fraction(promise.get("alpha")) < Fraction(1, l):
                yield f"alpha is below 1 / l = 1 / {l}; raise l, or alpha"
            if _whole(promise.get("k")) > l:
                yield f"k is above l = {l}, and groups may have l people; raise l"
        elif kind == "l-diversity":
            is_diverse = True
            if _whole(promise.get("l")) > l:
                yield f"l-diversity asks more than l = {l} values; raise the method's l"
    if not is_diverse and all(promise["model"] in BY_GROUP for promise in model.promises):
        yield needed


def _asked_l(model: PolicyModel) -> int:
    """The method's l; its own findings say what is wrong with it."""
    assert model.method is not None
    return max(_whole(model.method.get("l", 2)), 2)


def _whole(value: Any) -> int:
    """The number, if it is one: others are found by whoever takes it."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def _fraction(value: Any) -> Fraction:
    try:
        return Fraction(str(value))
    except (TypeError, ValueError, ZeroDivisionError):
        return Fraction(1)
