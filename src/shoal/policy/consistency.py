"""What no single field of a policy shows: roles, promises and methods that don't fit each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.connectors.dialect import codec_of
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.interchange import ReadOptions
from shoal.policy.model import AttributePolicy, PolicyModel
from shoal.policy.parameters import build, suggestion
from shoal.policy.two_tables import renders_two_tables, two_table_findings

# what `accept` may limit, and the attack that measures it
MEASURES = {
    "ends_gain": "singling-out",
    "alone": "singling-out",
    "linkage": "linkability",
    "inference_gain": "inference",
    "certain": "inference",
    "lifted": "skewness",
    "implied": "minimality",
    "excluded": "minimality",
    "alone_after": "intersection",
    "certain_after": "intersection",
    "journalist": "population",
    "marketer": "population",
    "membership": "membership",
    "homogeneous": "homogeneity",
}
BY_ATTRIBUTE = (
    "alone",
    "inference_gain",
    "certain",
    "lifted",
    "excluded",
    "certain_after",
    "homogeneous",
)


def contradictions(model: PolicyModel) -> list[str]:
    """Every contradiction of a policy whose fields are each sound."""
    findings = _role_findings(model)
    if model.label is not None and model.label not in model.attributes:
        findings.append(
            "policy: 'label' names no attribute of the policy"
            f"{_or_near(model.label, model.attributes)}"
        )
    means = attributes_with_means(model)
    if means and recodes_globally(model):
        assert model.method is not None
        findings.append(
            f"method '{model.method['name']}': recodes values, not classes: {quoted(means)}"
            " can't show means; leave out 'render', or choose another method"
        )
    for promise in model.promises:
        findings += _promise_findings(promise, model)
    if renders_two_tables(model):
        findings += two_table_findings(model)
    return findings + _interval_findings(model) + _acceptance_findings(model)


def open_questions(attributes: Mapping[str, AttributePolicy]) -> list[str]:
    """A finding for each attribute that still asks something."""
    return [
        f"attribute '{name}': has an open question (ask); answer it and delete the key"
        for name, attribute in attributes.items()
        if attribute.ask is not None
    ]


def _interval_findings(model: PolicyModel) -> list[str]:
    """Intervals whose ends could not be told apart."""
    text, mark = model.render.intervals, model.read.decimal
    if mark == "." or text[text.index("{lo}") + 4 : text.index("{hi}")] != mark:
        return []
    way_out = text.replace("{lo}" + mark, "{lo} - ")
    return [
        f"render: '{text}' can't be parted where numbers have a decimal comma; write '{way_out}'"
    ]


SERVED: dict[str, tuple[set[str], set[str]]] = {
    # a stream is read piece by piece, and a ledger's releases are compared with each other
    "stream": ({"encoding"}, set()),
    "republish": (set(ReadOptions.model_fields), set()),
}
"""By verb, the keys of 'read' and 'write' that it serves; others serve all."""


def unserved_options(model: PolicyModel, verb: str) -> list[str]:
    """Keys of 'read' and 'write' that a verb can't follow."""
    if verb not in SERVED:
        return []
    findings = [
        f"attribute '{name}': 'round' is for 'publish'; leave it out for '{verb}'"
        for name, attribute in model.attributes.items()
        if attribute.round is not None
    ]
    if model.accept:
        findings.append(
            f"accept: attacks are judged by 'publish', and by audits of a table; leave it out"
            f" for '{verb}'"
        )
    for block, options, served in zip(
        ("read", "write"), (model.read, model.write), SERVED[verb], strict=True
    ):
        unserved = sorted(options.model_fields_set - served)
        if unserved:
            findings.append(
                f"policy, {block}: '{verb}' can't follow {quoted(unserved)}; leave them out, or"
                " use 'publish'"
            )
    if verb == "stream" and model.read.encoding is not None:
        codec = codec_of(model.read.encoding)
        if codec not in ("utf-8", "utf-8-sig"):
            findings.append("policy, read.encoding: streams are UTF-8; convert the source")
    return findings


def _acceptance_findings(model: PolicyModel) -> list[str]:
    """What `accept` names that no attack measures."""
    findings = []
    for name, limit in model.accept.items():
        if name not in MEASURES:
            hint = suggestion(name, MEASURES)
            findings.append(
                f"accept '{name}': not a measure of an attack; {hint}choose some of"
                f" {', '.join(MEASURES)}"
            )
        elif isinstance(limit, dict) and name not in BY_ATTRIBUTE:
            findings.append(f"accept '{name}': is one number for the release, not by attribute")
        else:
            findings += _limit_findings(name, limit, model)
    return findings


def _limit_findings(name: str, limit: float | dict[str, float], model: PolicyModel) -> list[str]:
    by_attribute = limit if isinstance(limit, dict) else {}
    roles = ("sensitive", "plain") if name == "alone" else ("sensitive",)
    findings = []
    for attribute in by_attribute:
        declared = model.attributes.get(attribute)
        if declared is None:
            hint = _or_near(attribute, model.attributes)
            findings.append(f"accept '{name}': attribute '{attribute}' is not in the policy{hint}")
        elif declared.role not in roles:
            findings.append(
                f"accept '{name}': attribute '{attribute}' must have the role"
                f" {' or '.join(repr(role) for role in roles)}"
            )
    limits = [*by_attribute.values()] or ([] if isinstance(limit, dict) else [limit])
    if not limits or not all(0 <= number <= 1 for number in limits):
        findings.append(f"accept '{name}': give a share from 0 to 1")
    return findings


def _role_findings(model: PolicyModel) -> list[str]:
    roles = [attribute.role for attribute in model.attributes.values()]
    findings = []
    if roles.count("subject") > 1:
        findings.append("policy: more than one subject; exactly one column names the person")
    if roles.count("operation") > 1:
        findings.append(
            "policy: more than one operation; one column says what an increment does with its"
            " records"
        )
    if "quasi" not in roles:
        findings.append("policy: no quasi-identifier; give at least one attribute the role 'quasi'")
    return findings


def _promise_findings(promise: dict[str, Any], model: PolicyModel) -> list[str]:
    try:
        built = build_promise(promise)
    except InputError as unfit:
        return [str(unfit.args[0]), *unfit.findings]
    role = "quasi" if promise["model"] == "k-anonymity" else "sensitive"
    findings = []
    for name in built.attributes:
        if name not in model.attributes:
            hint = _or_near(name, model.attributes)
            findings.append(
                f"promise '{promise['model']}': attribute '{name}' is not in the policy{hint}"
            )
        elif model.attributes[name].role != role:
            findings.append(
                f"promise '{promise['model']}': attribute '{name}' must have the role '{role}'"
            )
    return findings


def build_promise(promise: dict[str, Any]) -> Any:
    """The promise as a measuring instrument; raises InputError where no model serves it."""
    model = promise["model"]
    kind = registry.model(model)
    if kind is None:
        known = registry.models()
        hint = suggestion(model, known)
        raise InputError(
            f"promise '{model}': unknown model; {hint}choose one of {', '.join(known)}"
        )
    parameters = {name: value for name, value in promise.items() if name != "model"}
    return build(kind, f"promise '{model}'", parameters)


def recodes_globally(model: PolicyModel) -> bool:
    """Whether it names a method that generalizes every value the same way in all records."""
    return model.method is not None and registry.recodes_globally(model.method["name"])


def attributes_with_means(model: PolicyModel) -> list[str]:
    """The attributes of which classes publish a mean."""
    return [name for name, a in model.attributes.items() if a.render != "range"]


def quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _or_near(name: str, known: Iterable[str]) -> str:
    """The question whether another name was meant, to follow a finding."""
    return f"; {hint.rstrip()}" if (hint := suggestion(name, known)) else ""
