"""A file of keys and values as a model, and what its checker found wrong in plain words."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from shoal.data.option import suggestion
from shoal.errors import InputError

POLICY_KEYS = "'shoal policy check --schema' lists its keys"
Place = tuple[str | int, ...]
ModelT = TypeVar("ModelT", bound=BaseModel)


def checked(
    model: type[ModelT],
    content: Any,
    what: str = "policy",
    keys: str = POLICY_KEYS,
    context: Any = None,
) -> ModelT:
    """The content as a model; raises InputError with every finding, as `findings_in` says them.

    context: what the model's own checks are given.
    """
    try:
        return model.model_validate(content, context=context)
    except ValidationError as invalid:
        for error in invalid.errors():
            if isinstance(own := error.get("ctx", {}).get("error"), InputError):
                raise own from None  # such as a plug-in that can't be loaded
        raise InputError.from_findings(findings_in(invalid, content, model, what, keys)) from None


def findings_in(
    invalid: ValidationError, content: Any, model: type[BaseModel], what: str, keys: str
) -> list[str]:
    """Every finding of the checker (model) in our words: where, what, and what to do about it.

    content: what was checked. what: its name. keys: how to list its keys.
    """
    texts: dict[Place, list[str]] = {}
    errors = [(place_of(error, content), error) for error in invalid.errors()]
    around = {place[:end] for place, _ in errors for end in range(len(place))}
    for place, error in errors:
        if place in around and error["type"] in _WRONG_TYPE:
            continue  # one of several types that will do, but not the one that is meant
        texts.setdefault(place, []).append(_text(error, place, model, keys))
    return [
        f"{what}{', ' if place else ''}{'.'.join(map(str, place))}: {_either(found)}"
        for place, found in texts.items()
    ]


def place_of(error: Any, content: Any) -> Place:
    """The keys that lead to a finding, without the names of the types that were tried there."""
    place: list[str | int] = []
    *_, last = error["loc"] or (None,)
    for part in error["loc"]:
        if _has(content, part):
            content = content[part]
        elif not (part == last and error["type"] == "missing"):
            continue
        place.append(part)
    return tuple(place)


def _has(content: Any, part: str | int) -> bool:
    """Whether a mapping has such a key, or a list such an index."""
    if isinstance(content, Mapping):
        return part in content
    return isinstance(content, list | tuple) and isinstance(part, int) and part < len(content)


def _text(error: Any, place: Place, model: type[BaseModel], keys: str) -> str:
    kind, message = error["type"], str(error["msg"])
    if kind in ("extra_forbidden", "invalid_key"):
        hint = suggestion(str(place[-1]), _keys_at(model, place[:-1]))
        return f"is not a known key; {hint}{keys}"
    if kind == "missing":
        return f"is missing; {keys}"
    if kind == "literal_error":
        options = re.findall("'([^']*)'", error["ctx"]["expected"])
        hint = suggestion(str(error["input"]), options).rstrip()
        return f"must be {error['ctx']['expected']}{'; ' if hint else ''}{hint}"
    if kind in _PLAINER:
        return _PLAINER[kind].format(**error.get("ctx", {}))
    return message.removeprefix("Value error, ").removeprefix("Input ")


def _either(texts: list[str]) -> str:
    """Findings about one place: one of several types, or sentences of their own."""
    distinct = list(dict.fromkeys(texts))
    if len(distinct) < 2 or not all(text.startswith("must be ") for text in distinct):
        return "; ".join(distinct)
    parts = [text.removeprefix("must be ").partition("; ") for text in distinct]
    hints = [hint for _, _, hint in parts if hint]
    return "; ".join(["must be " + " or ".join(kind for kind, _, _ in parts), *hints])


_PLAINER = {
    "string_too_short": "is empty; write a text, or delete the key",
    "less_than": "must be below {lt:g}",
    "too_short": "is empty; name at least one",
    "too_long": "has more than {max_length} entries",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "less_than_equal": "must be at most {le:g}",
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text; put words like yes, no, on and off in quotes",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "date_type": "must be a date, written like 2031-12-31",
    "date_parsing": "must be a date, written like 2031-12-31",
    "date_from_datetime_parsing": "must be a date, written like 2031-12-31",
    "date_from_datetime_inexact": "must be a date, written like 2031-12-31",
}
"""The checker's words for a value of the wrong type or size, in ours."""

_WRONG_TYPE = {kind for kind in _PLAINER if kind.endswith(("_type", "_parsing"))}


def _keys_at(model: type[BaseModel], path: Place) -> list[str]:
    """The keys that a part of a policy may have. path: through keys and numbers of a list."""
    for part in path:
        field = model.model_fields.get(str(part))
        kinds = [] if field is None else [field.annotation, *get_args(field.annotation)]
        model = next(
            (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)),
            model,
        )
    return list(model.model_fields)
