"""What each control of the page does to the policy: plain dicts in, plain dicts and a sentence out.

Nothing is decided here that a policy file could not say; whether it is sound is `check`'s to say.
"""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shoal.data.language import gettext
from shoal.errors import InputError
from shoal.policy.proposal.roles import MEAN_NOTHING, asks_who, question_in_words
from shoal.tables.request import PublishOptions
from shoal.web.policy_text import Context, read
from shoal.web.several import LINK, flat, folded, with_known, with_parent

Form = Mapping[str, list[str]]


ROLES = {
    "identifier": (gettext("Names a person"), gettext("names a person")),
    "subject": (gettext("The person"), gettext("the person")),
    "quasi": (gettext("Others could know"), gettext("others could know it")),
    "sensitive": (gettext("Private"), gettext("private")),
    "plain": (gettext("Harmless, as it is"), gettext("harmless")),
    "drop": (gettext("Leave out"), gettext("left out")),
}
"""A role as the page shows it: on a button, and in a sentence."""
TITLES = {role: title for role, (title, _) in ROLES.items()}
WORDS = {role: words for role, (_, words) in ROLES.items()}
VALUED = ("type", "domain", "order", "hierarchy", "weight")
KEPT = {"quasi": (*VALUED, "render", "round"), "sensitive": VALUED, "plain": VALUED, "drop": VALUED}
"""What a column keeps by its new role; one that is left out may come back."""
ROWS = "rows"
APART = "-"
"""What stands between the numbers of columns that name the person together."""


def one(form: Form, name: str) -> str:
    """The last value of a field."""
    return (form.get(name) or [""])[-1].strip()


def options_of(form: Form) -> dict[str, str]:
    """What a form asks of a draft, by option; raises InputError for a file, which no form names."""
    known = PublishOptions.options()
    asked = {name: one(form, name) for name in known if one(form, name)}
    InputError.raise_for(
        f"{name}: the page says where its files go; leave it out"
        for name in asked
        if known[name].is_file
    )
    return asked


def lines_of(form: Form, name: str) -> list[str]:
    """The lines of a field that are not blank."""
    return [line.strip() for line in one(form, name).splitlines() if line.strip()]


def whole(text: str, least: int = 0) -> int | None:
    """The whole number from `least` on, of at most nine digits, that a text is; None of others."""
    is_one = text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if is_one and int(text) >= least else None


def column_of(form: Form, columns: Sequence[str], field: str = "column") -> str:
    """The column of a number, from 1; raises InputError."""
    number = whole(one(form, field), 1)
    if number is None or number > len(columns):
        raise InputError(f"{field}: there is no such column; load the page again")
    return columns[number - 1]


def edited(kind: str, form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    """The policy after one edit, and what was done, in a sentence; raises InputError."""
    if kind not in EDITS:
        raise InputError("edit: there is none of this name; load the page again")
    content, said = EDITS[kind](form, flat(copy.deepcopy(policy)), columns)
    after = folded(content)
    for name, table in (after.get("tables") or {}).items():
        if table.get("rows") != content["tables"][name].get("rows"):
            said += gettext("; all rows of {name} are known then", name=name)
    return after, said


# Columns


def _role(form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    """A column's role; of numbers that others could know, the step of their ranges, too."""
    name, role = column_of(form, columns), one(form, "role")
    content = with_role(policy, name, role)
    settings = content["attributes"][name]
    said = f"{name}: {_change(policy, name, form)}"
    if role == "quasi" and one(form, "round") and not {"hierarchy", "order"} & {*settings}:
        settings |= {"type": "number", "round": _figure(one(form, "round"), "round")}
        said += gettext(", in ranges rounded to {step}", step=settings["round"])
    if len(content["promises"]) > len(policy.get("promises") or []):
        said += f"; {said_of(content['promises'][-1])}"
    return content, said


def _change(policy: Context, name: str, form: Form) -> str:
    own = policy.get("attributes", {}).get(name, {})
    before, after, ask = own.get("role"), one(form, "role"), own.get("ask")
    if before == after:
        if isinstance(ask, Mapping) and not asks_who(ask):
            return gettext("{texts} means no value", texts=", ".join(ask["values"]))
        return gettext("{after}, as proposed", after=WORDS.get(after, after))
    return f"{WORDS.get(str(before), gettext('not named'))} → {WORDS.get(after, after)}"


def _roles(form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    role, chosen = one(form, "role"), form.get("column", [])
    if not chosen:
        raise InputError("columns: none is marked; mark those that are to be set")
    names = [column_of({"column": [number]}, columns) for number in chosen]
    for name in names:
        policy = with_role(policy, name, role)
    return policy, gettext("{names} columns: {role}", names=len(names), role=WORDS.get(role, role))


def with_role(policy: Context, name: str, role: str) -> Context:
    """The policy with another role for a column, its question answered with yes, and a promise
    where it is private and has none; raises InputError.
    """
    if role not in ROLES:
        raise InputError("role: choose one of the list")
    attributes = dict(policy.get("attributes") or {})
    settings = dict(attributes.get(name) or {})
    ask, none = settings.get("ask"), policy.get("missing_values") or [""]
    if isinstance(ask, Mapping) and "values" in ask:
        policy = {**policy, "missing_values": list(dict.fromkeys([*none, *ask["values"]]))}
    kept = {key: settings[key] for key in KEPT.get(role, ()) if key in settings}
    if role == "identifier" and "pseudonym" in settings:
        kept["pseudonym"] = settings["pseudonym"]
    if role == "subject":
        policy = _named_by(policy, [])
        attributes = policy["attributes"]
    attributes[name] = {"role": role, **kept}
    policy = _without_stale_promises({**policy, "attributes": attributes})
    if role == "sensitive" and not promises_about(policy, name):
        policy["promises"].append(NEW_PROMISES["l-diversity"](name))
    return policy


def promises_about(policy: Mapping[str, Any], name: str) -> list[str]:
    """What is promised of a private column, in words."""
    promises = (p for p in policy.get("promises") or () if p.get("model") != "k-anonymity")
    return [said_of(p) for p in promises if name in about(p)]


def about(promise: Mapping[str, Any]) -> list[str]:
    """The columns that a promise is about."""
    return [promise["attribute"]] if promise.get("attribute") else promise.get("attributes") or []


def question_of(ask: Any) -> str | None:
    """A column's open question, with the page's word for the role that it names."""
    asked = question_in_words(ask)
    if asked is None:
        return None
    asked = asked.replace("give it the role", gettext("choose"))
    return re.sub(r"'(quasi|sensitive|drop)'", lambda role: f"“{TITLES[role[1]]}”", asked)


def _without_stale_promises(policy: Context) -> Context:
    """Promises about columns that are not private any more go."""
    roles = {name: own.get("role") for name, own in policy["attributes"].items()}
    kept = []
    for promise in policy.get("promises") or []:
        promise = dict(promise)
        if promise.get("attribute") and roles.get(promise["attribute"]) != "sensitive":
            continue
        if promise.get("model") != "k-anonymity" and promise.get("attributes"):
            promise["attributes"] = [
                name for name in promise["attributes"] if roles.get(name) == "sensitive"
            ]
            if not promise["attributes"]:
                continue
        kept.append(promise)
    return {**policy, "promises": kept}


def _person(form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    """Who is one person: a column, several together, or every row."""
    chosen = one(form, "person")
    numbers = [] if chosen == ROWS else chosen.split(APART)
    names = [column_of({"person": [number]}, columns, "person") for number in numbers]
    said = gettext("{names}: the person", names=" + ".join(names))
    if policy.get("tables"):
        if names != subject_of(folded(policy)):
            raise InputError("person: rows of other tables point to one column; choose that")
        policy["attributes"][names[0]].pop("ask", None)
        return policy, said
    if len(names) == 1:
        return with_role(policy, names[0], "subject"), said
    said = said if names else gettext("every row is its own person")
    return _without_stale_promises(_named_by(policy, names)), said


def _named_by(policy: Context, names: Sequence[str]) -> Context:
    """The policy, its people named by several columns together; by none where there are none."""
    attributes = {
        name: {"role": "identifier"}
        if own.get("role") == "subject" or (name in names and own.get("role") != "identifier")
        else {key: value for key, value in own.items() if key != "ask" or not asks_who(value)}
        for name, own in (policy.get("attributes") or {}).items()
    }
    others = {key: value for key, value in policy.items() if key != "subject"}
    return others | {"attributes": attributes} | ({"subject": [*names]} if names else {})


def subject_of(policy: Mapping[str, Any]) -> list[str]:
    """The columns that name the person: one, several together, or none."""
    attributes = policy.get("attributes") or {}
    alone = [name for name, own in attributes.items() if own.get("role") == "subject"]
    return list(policy.get("subject") or alone)


def _value(form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    """What may have meant no value is one: the column is compared as it is written."""
    name = column_of(form, columns)
    ask = policy["attributes"][name].get("ask")
    if not isinstance(ask, Mapping) or asks_who(ask):
        raise InputError("question: it is answered already; load the page again")
    known = policy.get("missing_values") or [""]
    policy["missing_values"] = [text for text in known if text not in ask["values"]]
    policy["attributes"][name] = {"role": policy["attributes"][name]["role"]}
    return policy, gettext("{name}: they are values", name=name)


def with_missing(policy: Context, texts: Sequence[str], before: Sequence[str]) -> Context:
    """The policy with these texts for no value, and the questions whether they are answered.

    before: those that were shown when these were named; the others among them are values.
    """
    known = [text for text in policy.get("missing_values") or [""] if text not in before]
    attributes = {name: _answered(own, texts) for name, own in policy["attributes"].items()}
    missing = list(dict.fromkeys(["", *known, *texts]))
    return {**policy, "attributes": attributes, "missing_values": missing}


def _answered(settings: Context, texts: Sequence[str]) -> Context:
    ask = settings.get("ask")
    if not isinstance(ask, Mapping) or asks_who(ask) or not {*ask["values"]} <= {*texts}:
        return settings
    asked = MEAN_NOTHING.format(sum(ask["values"].values()))
    others = str(ask.get("text", "")).removeprefix(asked).removeprefix("; ")
    kept = {key: value for key, value in settings.items() if key != "ask"}
    return kept | ({"ask": others} if others else {})


# Links between several tables


def _parent(form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    """Whose the rows of a table are."""
    parts = one(form, "link").split(LINK)
    if len(parts) != 4 or parts[0] not in (policy.get("tables") or {}):
        raise InputError("link: choose one of the list")
    return with_parent(policy, *parts)


# Hierarchies


def _how(form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    """How a column is made coarser: ranges, an order, a maker or a file."""
    name, how = column_of(form, columns), one(form, "how")
    if how not in HOWS:
        raise InputError("hierarchy: choose one of the list")
    settings = policy["attributes"][name]
    others = ("type", "domain", "order", "hierarchy", "render")
    for key in others if how == "ranges" else (*others, "round"):
        settings.pop(key, None)
    settings |= HOWS[how](form)
    said = {"none": gettext("only whole or *"), "file": gettext("hierarchy from a file")}
    return policy, f"{name}: {said.get(how, how)}"


def _number(form: Form) -> Context:
    low, high = one(form, "low"), one(form, "high")
    if not low and not high:
        return {"type": "number"}
    return {"type": "number", "domain": [_figure(low, "least"), _figure(high, "greatest")]}


def _bins(form: Form) -> Context:
    made: Context = {"width": _figure(one(form, "width"), "width")}
    if one(form, "start"):
        made["start"] = _figure(one(form, "start"), "start")
    if one(form, "levels"):
        made["levels"] = _whole(one(form, "levels"), "levels", 1)
    return {"hierarchy": {"bins": made}}


HOWS: dict[str, Callable[[Form], Context]] = {
    "none": lambda form: {},
    "ranges": _number,
    "order": lambda form: {"type": "ordinal", "order": lines_of(form, "order")},
    "prefix": lambda form: {"hierarchy": {"prefix": _whole(one(form, "length"), "length", 1)}},
    "dates": lambda form: {"hierarchy": {"dates": ["month", "year"]}},
    "bins": _bins,
    "file": lambda form: {"hierarchy": one(form, "file")},
}


# Promises


def _k(form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    k = _whole(one(form, "k"), "k", 2)
    promises = policy["promises"] = policy.get("promises") or []
    before = next((p.get("k") for p in promises if p.get("model") == "k-anonymity"), None)
    for promise in promises:
        if "k" in promise and not promise.get("population"):
            promise["k"] = k
    if before is None:
        promises.insert(0, {"model": "k-anonymity", "k": k})
    return policy, f"k: {before} → {k}" if before else f"k: {k}"


def _promise(form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    """A promise about a private column: set, or added."""
    promises = policy["promises"] = policy.get("promises") or []
    if one(form, "index"):
        promise = promises[_index_of(form, promises)]
        for key in ("l", "t", "p", "beta", "delta", "alpha", "threshold", "share"):
            if one(form, key):
                promise[key] = _figure(one(form, key), key)
        return policy, said_of(promise)
    name, model = column_of(form, columns), one(form, "model")
    if model not in NEW_PROMISES:
        raise InputError("promise: choose one of the list")
    promises.append(NEW_PROMISES[model](name))
    return policy, said_of(promises[-1])


def _index_of(form: Form, promises: Sequence[Context]) -> int:
    """The place of the promise that a form is about; raises InputError."""
    index = _whole(one(form, "index"), "promise", 0)
    if index >= len(promises):
        raise InputError("promise: there is none of this number; load the page again")
    return index


SETTINGS = {
    "l": gettext("at least this many different ones in every class"),
    "t": gettext("no class farther than this from the whole table (t-closeness)"),
    "beta": gettext("no value more frequent in a class than beta allows (β-likeness)"),
    "p": gettext("at least this many different ones in every class"),
    "delta": gettext("no value rarer or more frequent than delta allows (δ-disclosure)"),
    "alpha": gettext("no value has more than this share of a class"),
    "share": gettext("no more than this share of a class has the same one in any row"),
}


COUNT_VALUES = ("l", "p", "alpha")
"""The thresholds of promises to which "no value" is one more value."""

NEW_PROMISES: dict[str, Callable[[str], Context]] = {
    "l-diversity": lambda name: {"model": "l-diversity", "l": 2, "attribute": name},
    "entropy": lambda name: {
        "model": "l-diversity", "l": 2, "attribute": name, "kind": "entropy"
    },
    "t-closeness": lambda name: {"model": "t-closeness", "t": 0.3, "attributes": [name]},
    "beta-likeness": lambda name: {"model": "beta-likeness", "beta": 2.0, "attributes": [name]},
    "holder-share": lambda name: {"model": "holder-share", "share": 0.5, "attribute": name},
}  # fmt: skip


def _unpromise(form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    promises = policy.get("promises") or []
    gone = promises.pop(_index_of(form, promises))
    if not promises:
        raise InputError("promises: a policy has at least one; change it instead")
    return policy, gettext("no longer: {gone}", gone=said_of(gone))


def said_of(promise: Context) -> str:
    """A promise in a few plain words."""
    about = promise.get("attribute") or ", ".join(promise.get("attributes") or [])
    model = promise.get("model")
    if model == "k-anonymity":
        return f"k: {promise.get('k')}"
    if model == "l-diversity" and promise.get("kind", "distinct") == "distinct":
        return gettext("{about}: at least {value} different", about=about, value=promise.get("l"))
    if model == "l-diversity":
        return gettext(
            "{about}: at least {value} ({kind})",
            about=about,
            value=promise.get("l"),
            kind=promise.get("kind"),
        )
    if model == "t-closeness":
        return gettext(
            "{about}: at most {value} from the whole table", about=about, value=promise.get("t")
        )
    rest = ", ".join(f"{k} {v}" for k, v in promise.items() if k not in ("model", "attribute"))
    return f"{about}: {model} {rest}" if about else f"{model} {rest}"


# Method, and the whole text


def _method(form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    """A method as `compare` names it (name:parameter=value), and its k."""
    label = one(form, "method")
    name, *settings = label.split(":")
    pairs = (setting.partition("=") for setting in settings)
    method = {"name": name, **{key: _typed(value) for key, _, value in pairs}}
    said = gettext("method: {label}", label=label)
    policy.pop("method", None)
    seed = {"seed": policy.pop("seed")} if "seed" in policy else {}
    policy |= {"method": method} | seed
    if one(form, "k"):
        before = copy.deepcopy(policy.get("promises"))
        policy, about_k = _k(form, policy, columns)
        said += "" if policy["promises"] == before else f", {about_k}"
    return policy, said


def _typed(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"True": True, "False": False}.get(text, text)


def _text(form: Form, policy: Context, columns: Sequence[str]) -> tuple[Context, str]:
    return read("\n".join(one(form, "text").splitlines()) + "\n"), gettext("edited as text")


EDITS: dict[str, Callable[[Form, Context, Sequence[str]], tuple[Context, str]]] = {
    "role": _role,
    "roles": _roles,
    "person": _person,
    "value": _value,
    "parent": _parent,
    "known": lambda form, policy, _: with_known(policy, one(form, "table"), one(form, "known")),
    "how": _how,
    "k": _k,
    "promise": _promise,
    "unpromise": _unpromise,
    "method": _method,
    "text": _text,
}


def _whole(text: str, what: str, least: int) -> int:
    if (number := whole(text, least)) is None:
        raise InputError(f"{what}: must be a whole number of {least} or more")
    return number


def _figure(text: str, what: str) -> int | float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{what}: is not a number; write for instance 5 or 0.5") from None
    if value != value or abs(value) == float("inf"):
        raise InputError(f"{what}: is not a number; write for instance 5 or 0.5")
    return int(value) if value == int(value) and "." not in text else value
