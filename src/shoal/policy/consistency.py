"""What no single field of a policy shows: roles, promises and methods that don't fit each other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from shoal.connectors.dialect import codec_of
from shoal.data import person_names, recoding
from shoal.data.option import build, suggestion
from shoal.data.regular_files import Json
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy import linked, registry
from shoal.policy.model import (
    AttributePolicy,
    MissingQuestion,
    PersonQuestion,
    PolicyModel,
    ReadOptions,
    subject_findings,
)

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
BY_ATTRIBUTE = "alone inference_gain certain lifted excluded certain_after homogeneous".split()


def contradictions(model: PolicyModel) -> Iterator[str]:
    """Every contradiction of a policy whose fields are each sound."""
    yield from _role_findings(model)
    if model.label is not None and model.label not in model.attributes:
        yield (
            "policy: 'label' names no attribute of the policy"
            f"{_or_near(model.label, model.attributes)}"
        )
    means = attributes_with_means(model)
    if means and recodes_globally(model):
        assert model.method is not None
        yield (
            f"method '{model.method['name']}': recodes values, not classes: {quoted(means)}"
            " can't show means, medians or modes; leave out 'render', or choose another method"
        )
    known = model.attributes_of_all
    for promise in model.promises:
        yield from _promise_findings(promise, model, known)
    if renders_two_tables(model):
        assert model.method is not None
        yield from (f"method '{model.method['name']}': {one}" for one in two_table_findings(model))
    yield from _interval_findings(model)
    yield from _acceptance_findings(model)
    yield from linked.linked_findings(model)


def open_questions(attributes: Mapping[str, AttributePolicy]) -> list[str]:
    """A finding for each attribute that still asks something."""
    return [
        f"attribute '{name}': {_open_question(attribute.ask)}"
        for name, attribute in attributes.items()
        if attribute.ask is not None
    ]


def _open_question(ask: str | PersonQuestion | MissingQuestion) -> str:
    if isinstance(ask, MissingQuestion):
        return (
            "has an open question (ask): do the texts under 'values' mean no value? delete the"
            " question, and where they mean one, take them out of 'missing_values'"
        )
    if isinstance(ask, str):
        return "has an open question (ask); answer it and delete the key"
    listed = [one if isinstance(one, str) else " + ".join(one) for one in ask.candidates]
    return (
        f"has an open question (ask): who is one person, by {', '.join(listed)}, or every record?"
        " give the role 'subject' to the column that numbers people, list several that do together"
        " under 'subject', or do neither, and delete the question"
    )


def _interval_findings(model: PolicyModel) -> Iterator[str]:
    """Intervals whose ends could not be told apart."""
    text, mark = model.render.intervals, model.read.decimal
    if mark != "." and text[text.index("{lo}") + 4 : text.index("{hi}")] == mark:
        way_out = text.replace("{lo}" + mark, "{lo} - ")
        yield (
            f"render: '{text}' can't be parted where numbers have a decimal comma; write"
            f" '{way_out}'"
        )


OF_STREAMS = {"read": {"record_lines", "partitioner"}, "write": {"roll"}}
"""Keys that say how a stream reads records and parts its rows."""

NOT_HASHED = {**OF_STREAMS, "read": {"unpacked", *OF_STREAMS["read"]}}
"""Keys that no hash of a policy has: a bound on what is unpacked changes no record, either."""

SERVED: dict[str, dict[str, set[str]]] = {
    # a stream is read piece by piece, and a ledger's releases are compared with each other
    "stream": {"read": {"encoding", *OF_STREAMS["read"]}, "write": OF_STREAMS["write"]},
    "republish": {"read": set(ReadOptions.model_fields) - OF_STREAMS["read"], "write": set()},
}
"""By verb, the keys of 'read' and 'write' that it serves; others serve all but `OF_STREAMS`."""


def unserved_options(model: PolicyModel, verb: str) -> Iterator[str]:
    """Keys of 'read' and 'write' that a verb can't follow."""
    if verb in SERVED:
        yield from _of_publish(model, verb)
    for block, of_streams in OF_STREAMS.items():
        options = getattr(model, block)
        known = type(options).model_fields
        served = SERVED[verb][block] if verb in SERVED else known.keys() - of_streams
        asked = {n for n in options.model_fields_set if getattr(options, n) != known[n].default}
        if unserved := sorted(asked - served):
            other = "stream" if of_streams.issuperset(unserved) else "publish"
            yield (
                f"policy, {block}: '{verb}' can't follow {quoted(unserved)}; leave"
                f" {'them' if unserved[1:] else 'it'} out, or use '{other}'"
            )
    if verb == "stream" and model.read.encoding is not None:
        codec = codec_of(model.read.encoding)
        if codec not in ("utf-8", "utf-8-sig"):
            yield "policy, read.encoding: streams are UTF-8; convert the source"


def _of_publish(model: PolicyModel, verb: str) -> Iterator[str]:
    """What is asked that only a publish of a table can do."""
    for name, attribute in model.attributes.items():
        if attribute.round is not None:
            yield f"attribute '{name}': 'round' is for 'publish'; leave it out for '{verb}'"
    if model.accept:
        yield (
            f"accept: attacks are judged by 'publish', and by audits of a table; leave it out"
            f" for '{verb}'"
        )
    if model.require_together:
        yield f"require_together: is judged by 'publish' and 'audit'; leave it out for '{verb}'"


def _acceptance_findings(model: PolicyModel) -> Iterator[str]:
    """What `accept` names that no attack measures."""
    for name, limit in model.accept.items():
        if name not in MEASURES:
            hint = suggestion(name, MEASURES)
            yield (
                f"accept '{name}': not a measure of an attack; {hint}choose some of"
                f" {', '.join(MEASURES)}"
            )
        elif isinstance(limit, dict) and name not in BY_ATTRIBUTE:
            yield f"accept '{name}': is one number for the release, not by attribute"
        else:
            yield from _limit_findings(name, limit, model)


def _limit_findings(
    name: str, limit: float | dict[str, float], model: PolicyModel
) -> Iterator[str]:
    by_attribute = limit if isinstance(limit, dict) else {}
    roles = ("sensitive", "plain") if name == "alone" else ("sensitive",)
    for attribute in by_attribute:
        declared = model.attributes.get(attribute)
        if declared is None:
            hint = _or_near(attribute, model.attributes)
            yield f"accept '{name}': attribute '{attribute}' is not in the policy{hint}"
        elif declared.role not in roles:
            yield (
                f"accept '{name}': attribute '{attribute}' must have the role"
                f" {' or '.join(repr(role) for role in roles)}"
            )
    limits = [*by_attribute.values()] or ([] if isinstance(limit, dict) else [limit])
    if not limits or not all(0 <= number <= 1 for number in limits):
        yield f"accept '{name}': give a share from 0 to 1"


def _role_findings(model: PolicyModel) -> Iterator[str]:
    roles = [attribute.role for attribute in model.attributes.values()]
    of_all = {attribute.role for attribute in model.attributes_of_all.values()}
    yield from subject_findings(model)
    if roles.count("subject") > 1:
        yield "policy: more than one subject; exactly one column names the person"
    weights = [name for name, attribute in model.attributes.items() if attribute.is_weight]
    if weights[1:]:
        yield f"policy: {quoted(weights)} are weights; one column tells whom records stand for"
    if roles.count("household") > 1:
        yield "policy: more than one household; one column tells who lives together"
    if "household" in roles and not weights:
        yield "policy: a household, but no weight; give the column of weights the role 'weight'"
    if roles.count("operation") > 1:
        yield (
            "policy: more than one operation; one column says what an increment does with its"
            " records"
        )
    if "quasi" not in of_all:
        yield "policy: no quasi-identifier; give at least one attribute the role 'quasi'"


def _promise_findings(
    promise: Json, model: PolicyModel, known: Mapping[str, AttributePolicy]
) -> Iterator[str]:
    try:
        built = build_promise(promise)
    except InputError as unfit:
        yield from unfit.said
        return
    yield from _sample_findings(built, model)
    role = "quasi" if promise["model"] == "k-anonymity" else "sensitive"
    for name in built.attributes:
        if name not in known:
            hint = _or_near(name, known)
            yield f"promise '{promise['model']}': attribute '{name}' is not in the policy{hint}"
        elif known[name].role != role:
            yield f"promise '{promise['model']}': attribute '{name}' must have the role '{role}'"


def _sample_findings(promise: Any, model: PolicyModel) -> Iterator[str]:
    """Which columns a promise about a sample needs that the policy does not name."""
    needed = {"weight": promise.of_sample, "household": getattr(promise, "households", False)}
    if not any(needed.values()):
        return
    named = {"weight" if a.is_weight else a.role for a in model.attributes.values()}
    for role, is_needed in needed.items():
        if is_needed and role not in named:
            yield f"promise '{promise.model}': no column has the role '{role}'; give it to one"


def build_promise(promise: Json) -> Any:
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


def named_as(what: str, names: Sequence[str]) -> str:
    """One or several of what is named so, such as columns."""
    return f"{what}{'s' if names[1:] else ''} {quoted(names)}"


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _or_near(name: str, known: Iterable[str]) -> str:
    """The question whether another name was meant, to follow a finding."""
    return f"; {hint.rstrip()}" if (hint := suggestion(name, known)) else ""


# What a policy may ask where quasi-identifiers are shown as they are, in a table of their own.


BY_GROUP = ("alpha-k-anonymity", "l-diversity", "t-closeness")
NEEDED = (
    "promise alpha-k-anonymity of the sensitive attribute, such as {{model: alpha-k-anonymity,"
    " attribute: {name}, alpha: {alpha}, k: {l}}}"
)


def renders_two_tables(model: PolicyModel) -> bool:
    """Whether the policy names a method that publishes two tables; imports no method for it."""
    name = None if model.method is None else model.method["name"]
    if name is None or registry.is_known_method(name, "publish"):
        return name in recoding.OWN_METHODS
    if registry.verb_of(name) != "publish":
        return False
    return registry.method(name, "publish").renders_two_tables


def two_table_findings(model: PolicyModel) -> Iterator[str]:
    """All that such a method can't do, each with its reason."""
    sensitive = [name for name, a in model.attributes.items() if a.role == "sensitive"]
    if len(sensitive) != 1:
        yield (
            f"hides one sensitive attribute, the policy names {len(sensitive)}; give the others the"
            " role 'drop', or those that an attacker could know 'quasi'"
        )
    yield from _attribute_findings(model)
    yield from _two_table_promise_findings(model, sensitive[0] if sensitive else "NAME")
    if model.missing == "suppress":
        yield "shows quasi-identifiers as they are, so no record is suppressed; leave out 'missing'"
    if model.label is not None:
        yield "no row shows what could be predicted; leave out 'label'"
    if model.accept:
        yield "attacks are tried on boxes, and it shows none; leave out 'accept'"
    if model.write.numbers:
        yield "shows no intervals that have ends; leave out 'write: numbers'"
    if model.render.order == "input":
        yield (
            "the order of rows could reveal what a table joined by group hides; leave out"
            " 'order: input'"
        )


def _attribute_findings(model: PolicyModel) -> Iterator[str]:
    for name, declared in model.attributes.items():
        if declared.role == "plain" or declared.pseudonym:
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
        if name in (recoding.GROUP, recoding.COUNT) and declared.role in ("quasi", "sensitive"):
            yield f"attribute '{name}': the release has a column of its own of that name; rename it"
    if model.other == "plain":
        yield "'other: plain' would publish columns beside unchanged ones; say 'other: drop'"


def _two_table_promise_findings(model: PolicyModel, name: str) -> Iterator[str]:
    assert model.method is not None
    l = max(_whole(model.method.get("l", 2)), 2)  # its own findings say what is wrong with it
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


def require_one_record_each(table: Table, model: PolicyModel, what: str) -> None:
    """Raises InputError where a table, each record of which counts, names somebody twice, or in
    part, or not in all records.
    """
    columns = model.subject_columns
    lacking = [name for name in columns if name not in table.names]
    if lacking == columns:
        return
    if lacking:
        raise InputError(
            f"{what}: has no {named_as('column', lacking)}, which name{'' if lacking[1:] else 's'}"
            f" people together with others; add {'them' if lacking[1:] else 'it'}"
        )
    names = person_names.names_of(table.frame[model.person or columns[0]])
    named = names.filter(~names.is_in(person_names.names_of_nobody(model.no_names)))
    findings = []
    if further := len(named) - named.n_unique():
        findings.append(
            f"{what}: further records of people who have one already: {further}; give it one"
            " record of each"
        )
    if unnamed := len(names) - len(named):
        findings.append(
            f"{what}: records that name nobody: {unnamed}; name their people, or leave them out"
        )
    InputError.raise_for(findings)


_OF_TEXT = {
    "--read": ("encoding", "delimiter", "sheet", "header", "unpacked"),
    "--write": ("encoding", "delimiter", "formulas"),
}
"""What an audit without a policy can follow: how text is written, not what it means."""


def require_ways_of_text(read: Mapping[str, Any], write: Mapping[str, Any]) -> None:
    """Raises InputError for what cells mean, where columns alone are known."""
    InputError.raise_for(
        f"{option} {key}: says what cells mean, and without a policy they are compared as text;"
        " leave it out, or give --policy"
        for option, keys in (("--read", read), ("--write", write))
        for key in keys
        if key not in _OF_TEXT[option]
    )
