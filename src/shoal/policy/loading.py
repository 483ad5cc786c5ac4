"""Reading a policy file; every finding in plain words."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from shoal.data.regular_files import require_regular
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.model import PolicyModel
from shoal.policy.parameters import parameters_of, suggestion


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a policy file, with every promise and method that is known here."""
    schema = PolicyModel.model_json_schema()
    schema["title"] = "Shoal policy"
    schema["properties"]["promises"]["items"] = {
        "oneOf": [_described(name, "model", model) for name, model in registry.models().items()]
    }
    described = [_described(m.name, "name", m.implementation) for m in registry.methods().values()]
    schema["properties"]["method"] = {
        "anyOf": [{"oneOf": described}, {"type": "null"}],
        "default": None,
    }
    return schema


_JSON_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", tuple: "array"}


def _described(name: str, key: str, implementation: type) -> dict[str, Any]:
    """One promise or method as a JSON Schema object."""
    parameters = parameters_of(implementation)
    properties: dict[str, Any] = {key: {"const": name}}
    for p in parameters:
        properties[p.name] = {"type": _JSON_TYPES.get(p.kind, "string"), "description": p.help}
        if p.choices is not None:
            properties[p.name]["enum"] = list(p.choices)
        if p.low is not None:
            properties[p.name]["minimum"] = p.low
        if p.high is not None:
            properties[p.name]["maximum"] = p.high
    required = [key, *(p.name for p in parameters if p.required)]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise InputError("policy: names a key a second time; name it once")
    return dict(pairs)


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key that is given twice is an error, not the last one's gain."""


def _mapping(
    loader: yaml.SafeLoader, node: yaml.MappingNode, deep: bool = False
) -> dict[Hashable, Any]:
    loader.flatten_mapping(node)
    seen: dict[Hashable, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise InputError(
                f"policy: line {key_node.start_mark.line + 1} has a list or mapping for a key; use"
                " text"
            )
        if key in seen:
            raise InputError(
                f"policy: line {key_node.start_mark.line + 1} names a key a second time; name it"
                " once"
            )
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _read(path: Path) -> dict[str, Any]:
    require_regular(path, "policy")
    try:
        text = path.read_text("utf-8-sig")
    except OSError as failed:
        raise InputError(
            f"policy '{path}': can't be read ({failed.strerror}); check its name"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"policy '{path}': is not UTF-8; convert it") from None
    try:
        if path.suffix == ".toml":
            content = tomllib.loads(text)
        elif path.suffix == ".json":
            content = json.loads(text, object_pairs_hook=_unique)
        else:
            content = yaml.load(text, Loader=_UniqueKeys)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as wrong:
        raise InputError(
            f"policy '{path}': {_where(wrong)} can't be understood; fix the syntax"
        ) from None
    if not isinstance(content, dict):
        raise InputError(f"policy '{path}': holds no policy; 'shoal policy init DATA' proposes one")
    return content


def _where(wrong: Exception) -> str:
    mark = getattr(wrong, "problem_mark", None)
    line = mark.line + 1 if mark is not None else getattr(wrong, "lineno", None)
    return f"line {line}" if line else "the file"


def _finding(
    error: Any,
    model: type[BaseModel],
    what: str = "policy",
    keys: str = "'shoal policy schema' lists its keys",
) -> str:
    """One finding of the checker (model) in our words: where, what, and what to do about it.

    what: the thing checked. keys: how to list its keys.
    """
    where = ".".join(str(part) for part in error["loc"]) or what
    kind, message = error["type"], error["msg"]
    if kind == "extra_forbidden":
        hint = suggestion(str(error["loc"][-1]), _keys_at(model, error["loc"][:-1]))
        message = f"is not a known key; {hint}{keys}"
    elif kind == "missing":
        message = f"is missing; {keys}"
    elif kind == "string_type":
        message = "must be text; put words like yes, no, on and off in quotes"
    elif kind == "model_type":
        message = "must be a mapping of keys to values"
    else:
        message = message.removeprefix("Value error, ").removeprefix("Input ")
    return f"{what}, {where}: {message}"


def _keys_at(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """The keys that a part of a policy may have. path: through keys and numbers of a list."""
    for part in path:
        field = model.model_fields.get(str(part))
        kinds = [] if field is None else [field.annotation, *get_args(field.annotation)]
        model = next(
            (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)),
            model,
        )
    return list(model.model_fields)
