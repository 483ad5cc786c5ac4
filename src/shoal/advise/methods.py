"""Methods and promises: what there is, as the docs show it, and what a comparison takes of it."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from shoal.data.option import Parameter, build, method_as_written, parameters_of
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.consistency import attributes_with_means
from shoal.policy.from_columns import require_no_data
from shoal.policy.linked import DEFAULT_METHOD as DEFAULT_OF_LINKED
from shoal.policy.linked import usual_method
from shoal.policy.model import PolicyModel
from shoal.policy.policy import DEFAULT_METHOD, DEFAULT_OVER_HIERARCHIES, Policy
from shoal.protocols import NamedMethod


def methods(every: bool = False) -> list[Mapping[str, Any]]:
    """The methods to choose from, each with its verb, paper, parameters and promises it can keep.

    every: the papers' comparators, too, where they are installed.
    """
    promises = sorted(registry.models())
    return [
        {
            "name": method.name,
            "verb": method.verb,
            "paper": method.paper,
            "promises": promises,
            "parameters": [_parameter(p) for p in method.parameters],
        }
        for method in registry.methods().values()
        if every or not method.is_comparator
    ]


def describe_promises() -> list[Mapping[str, Any]]:
    """Every promise with its exact definition, source and parameters."""
    return [
        {
            "model": name,
            "definition": model.definition,
            "source": model.source,
            "monotone": model.monotone,
            "parameters": [_parameter(p) for p in parameters_of(model)],
        }
        for name, model in registry.models().items()
    ]


def _parameter(parameter: Parameter) -> Mapping[str, Any]:
    described = dataclasses.asdict(parameter)
    return described | {
        "kind": parameter.kind.__name__,
        "choices": list(parameter.choices or ()) or None,
    }


# What a comparison is asked: methods with their parameters, and values of k.
#
# Where no method is named, a few that suit the policy, so that choosing takes four runs and not
# twenty.


DEFAULT_KS = (5, 10, 25, 50)
MOST_PROPOSED = 4
EVERY = "all"
CLOSENESS = "tcloseness:aim=spans:scale=range"
MEANS = "mdav"  # microaggregation keeps records near the mean that they show
OF_SAMPLES = ("full-domain", "suppress-cells")  # recoding and suppression, as in sdcMicro
OTHERS = ("mondrian:cut=nearest", MEANS)


def label_of(policy: Policy) -> str:
    """The policy's method with its parameters, in the form that `methods` reads."""
    return label(policy.method_name, policy.method_settings)


def label(method: str, settings: Mapping[str, Any]) -> str:
    """A method with these parameters, in the form that `methods` reads."""
    return ":".join([method, *(f"{name}={value}" for name, value in settings.items())])


# Methods


def verb_of(model: PolicyModel) -> str:
    """What methods have to serve: `publish`, or with linked tables `publish FOLDER`."""
    return "publish FOLDER" if model.is_linked else "publish"


def proposed_methods(policy: Policy) -> list[Policy]:
    """The policy with each of about four methods that suit it, its own first.

    policy: with the method that it names, or else the one that publish would choose.
    """
    if policy.model.is_linked:
        others = {DEFAULT_OF_LINKED, usual_method(policy.model)} - {policy.method_name}
        return [policy, *(policy.with_method(name, {}) for name in sorted(others))]
    asks_closeness = any(promise["model"] == "t-closeness" for promise in policy.model.promises)
    wanted = [
        *(OF_SAMPLES if policy.least_k == 1 else []),
        *([CLOSENESS] if asks_closeness else []),
        *([MEANS] if attributes_with_means(policy.model) else []),
        DEFAULT_METHOD,
        DEFAULT_OVER_HIERARCHIES,
        *OTHERS,
    ]
    found = {_identity(policy): policy}
    for other in (policy.changed({"method": text}) for text in wanted):
        if len(found) < MOST_PROPOSED:
            found.setdefault(_identity(other), other)
    return list(found.values())


Asked = str | Mapping[str, Any] | NamedMethod
"""A method as `name:parameter=value`, as a mapping of its `name` and parameters, or as an object.
"""


@dataclass(frozen=True)
class Unsuited:
    """A method, with the parameters that were asked for, that can't keep what a policy promises."""

    method: str
    settings: Mapping[str, Any]
    reason: str


def with_methods(policy: Policy, methods: Sequence[Asked]) -> tuple[list[Policy], list[Unsuited]]:
    """The policy with each of the methods, and those that can't keep what it promises; raises
    InputError with every finding about the others.
    """
    if isinstance(methods, str) or not isinstance(methods, Collection) or not len(methods):
        raise InputError(
            "methods: must be a list of methods; name at least one, 'shoal methods' lists them"
        )
    beside = [asked for asked in methods if not (isinstance(asked, str) and asked == EVERY)]
    if len(beside) < len(methods):
        own = {one if isinstance(one, str) else getattr(one, "name", None) for one in beside}
        # two tables keep no k, and lose nothing that is compared here
        methods = beside + [
            name
            for name, method in registry.methods().items()
            if method.verb == verb_of(policy.model)
            and not (method.renders_two_tables or method.is_comparator or name in own)
        ]
    policies: dict[Any, Policy] = {}
    unsuited: list[Unsuited] = []
    findings: list[str] = []
    for asked in methods:
        try:
            chosen = policy.changed({"method": asked})
        except InputError as unfit:
            if (named := _known(asked, verb_of(policy.model))) is None:
                findings += unfit.said
            else:
                unsuited.append(Unsuited(*named, "; ".join(unfit.said)))
            continue
        try:
            identity = _identity(chosen)
        except InputError as unfit:
            findings += unfit.said
            continue
        if identity in policies:
            findings.append(f"methods: '{label_of(chosen)}' is asked for twice; name it once")
        policies[identity] = chosen
    InputError.raise_for(findings)
    return list(policies.values()), unsuited


def _known(asked: Asked, verb: str) -> tuple[str, Mapping[str, Any]] | None:
    """The name and parameters of a method that serves a verb and takes them; None of others."""
    if not isinstance(asked, str | Mapping):
        return None
    with suppress(InputError):
        own = {"name": asked} if isinstance(asked, str) else dict(asked)
        name, settings = method_as_written(str(own.pop("name", "")), own)
        method = registry.methods().get(name)
        if method is not None and method.verb == verb:
            build(method.implementation, f"method '{name}'", settings)
            return name, settings
    return None


def _identity(policy: Policy) -> tuple[str, Any]:
    """The method with all its parameters, so that two ways to write it are one."""
    return policy.method_name, policy.build_method(verb_of(policy.model))


# Values of k


HIDES_NOBODY = "nobody hides in a class of fewer"
NO_K = "1, no k, is for a policy that bounds the risk of a sample and promises no k"


def checked_ks(ks: int | Sequence[int] | None, own: int | None, least: int = 2) -> list[int]:
    """The ks, ascending; raises InputError with everything that is wrong with them.

    None: some usual ones, and the policy's own. least: 1 where a policy without k may be compared
    as it is; then that is all that None stands for.
    """
    if ks is None and least == 1:
        return [1]
    if ks is None:
        return sorted({*DEFAULT_KS, *([own] if own is not None and own >= 2 else [])})
    require_no_data("ks", ks)
    ks = list(ks) if isinstance(ks, Iterable) and not isinstance(ks, str) else [ks]
    whole = [k for k in ks if isinstance(k, Integral)]
    findings = [] if len(ks) else ["ks: the list is empty; name at least one, for instance 5,10,50"]
    findings += [
        f"ks: {k!r} is not a whole number of {least} or more; {NO_K if k == 1 else HIDES_NOBODY}"
        for k in ks
        if isinstance(k, bool) or not isinstance(k, Integral) or k < least
    ]
    findings += [
        f"ks: {k} is asked for twice; name it once"
        for k in dict.fromkeys(whole)
        if whole.count(k) > 1
    ]
    InputError.raise_for(findings)
    return sorted(int(k) for k in ks)
