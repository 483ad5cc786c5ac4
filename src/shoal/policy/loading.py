"""Reading a policy file; every finding in plain words."""

import json
import os
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from shoal.connectors import files, formats
from shoal.connectors.dialect import Reading
from shoal.data import notebook, regular_files, room
from shoal.data.option import parameters_of, suggestion
from shoal.data.regular_files import Json, RepeatedKey
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.checked import checked
from shoal.policy.model import PolicyModel, ReadOptions, WriteOptions

# A policy as a file that reads as the same policy, and as a table for a notebook.


SUFFIXES = (".yaml", ".yml", ".json")


def as_yaml(content: Json) -> str:
    """The keys of a policy as YAML."""
    return yaml.safe_dump(
        content, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )


def one_line(content: object) -> str:
    """Content as YAML on one line, without anchors; line ends and other signs that no one sees are
    escapes.
    """
    text = yaml.dump(
        content,
        Dumper=_OneLine,
        default_flow_style=True,
        sort_keys=False,
        width=2**31 - 1,
        allow_unicode=True,
    )
    line = text.removesuffix("\n").removesuffix("\n...").strip(" \n")
    # they stand in double quotes, where YAML has escapes
    return "".join(sign if sign.isprintable() else f"\\U{ord(sign):08x}" for sign in line)


class _OneLine(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_OneLine.add_representer(str, _text)


def save(model: PolicyModel, base: Path, path: Path, overwrite: bool) -> None:
    """Writes a policy whole or not at all; its paths lead from the new place to the same files.

    base: the folder that its paths are relative to now.
    Raises InputError where a file of this name exists, unless it may be overwritten.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"policy '{path}': is YAML or JSON; give it a name that ends in .yaml")
    if path.exists() and not overwrite:
        raise InputError(f"policy '{path}': exists; name another file, or say overwrite=True")
    content = model.model_dump(mode="json", exclude_unset=True)
    for holder, key in tables_named_in(content):
        if not Path(holder[key]).is_absolute():
            holder[key] = Path(os.path.relpath(base / holder[key], path.parent)).as_posix()
    if path.suffix.lower() == ".json":
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    else:
        text = as_yaml(content)
    files.write_text(path, text)


def tables_named_in(content: Json) -> Iterator[tuple[Json, str]]:
    """Where a policy, sound or not, names tables: the mapping that holds the name, and its key."""
    around = content.get("population")
    holders = [(content, "reference"), (around, "table"), (around, "frequencies")]
    for table in (content, *(content.get("tables") or {}).values()):
        holders += [(one, "hierarchy") for one in (table.get("attributes") or {}).values()]
    holders += [(promise, "population") for promise in content.get("promises") or ()]
    for holder, key in holders:
        if isinstance(holder, dict) and isinstance(holder.get(key), str) and holder[key]:
            yield holder, key


def method_text(model: PolicyModel) -> str:
    """The method that a policy names."""
    return "method open" if model.method is None else str(model.method["name"])


def as_html(model: PolicyModel) -> str:
    """Every column's role and how it is treated, every promise and the method; no value of any
    column.
    """
    columns = [
        (name, a.role, a.kind.value if a.role in ("quasi", "sensitive") else "", _how(a.hierarchy))
        for name, a in model.attributes.items()
    ]
    others = [] if model.other is None else [("all others", model.other, "", "")]
    promises = [
        (
            promise["model"],
            ", ".join(f"{key}: {value}" for key, value in promise.items() if key != "model"),
        )
        for promise in model.promises
    ]
    return notebook.section(
        notebook.table(("column", "role", "type", "hierarchy"), [*columns, *others]),
        notebook.table(("promise", "asked"), promises),
        notebook.sentence(f"{method_text(model)}."),
    )


def _how(hierarchy: str | Json | None) -> str:
    """Where a hierarchy comes from; its labels are not shown."""
    if hierarchy is None:
        return ""
    return "from a file" if isinstance(hierarchy, str) else f"made by {next(iter(hierarchy))}"


def json_schema() -> Json:
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


def _described(name: str, key: str, implementation: type) -> Json:
    """One promise or method as a JSON Schema object."""
    parameters = parameters_of(implementation)
    properties: Json = {key: {"const": name}}
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


class _Malformed(ValueError):
    """Content that a parser would let pass."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


def read_options(content: object) -> ReadOptions:
    """The block `read` of a policy that is still to be written; raises InputError for another."""
    if not isinstance(content, Mapping | None):
        raise InputError(
            f"read: is of type {type(content).__name__}; give a dict, such as {{'decimal': ','}},"
            f" of {', '.join(ReadOptions.model_fields)}"
        )
    known = f"{keys_of(ReadOptions)}; beside a policy also missing_values"
    return checked(ReadOptions, dict(content or {}), "read", known)


_SAFE = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEEPEST = 100
"""Lists and mappings of a file of settings that lie in each other."""
MOST_COPIES = 100_000
"""Parts of a YAML file that its aliases may add to those that are written."""
LONGEST = 1_000_000
"""Signs of a number or word in YAML: PyYAML takes a minute or more for tens of millions."""
_WORD = re.compile(r"[^\s,\[\]{}]+")


class SafeLoader(_SAFE):  # type: ignore[misc, valid-type]
    """PyYAML's, in C if it is there, of content that neither aliases nor tags make hard to read.

    What has colons, such as 12:30, is text: PyYAML's numbers of base 60 take time by their square.
    Numbers that begin with 0, such as 010, are refused: to YAML that is 8.
    """

    def __init__(self, text: str) -> None:
        """text: the document; raises ComposerError where a word in it is too long to be parsed."""
        if any(word.end() - word.start() > LONGEST for word in _WORD.finditer(text)):
            problem = f"a number or word has more than {LONGEST:,} signs"
            raise yaml.composer.ComposerError(None, None, problem)
        _require_shallow(text)
        super().__init__(text)

    def get_single_node(self) -> Any:
        """The document as nodes; raises ComposerError where aliases add more than `MOST_COPIES` to
        them.

        Before aliases are followed, every node is held once: so each is counted once, with all that
        it unfolds to.
        """
        document = super().get_single_node()
        sizes: dict[int, int] = {}
        begun: set[int] = set()
        waiting = [] if document is None else [document]
        while waiting:
            node = waiting[-1]
            parts = _parts(node)
            if id(node) not in begun:
                begun.add(id(node))
                if any(id(part) in begun and id(part) not in sizes for part in parts):
                    raise _refused("an alias holds itself", node)
                waiting += [part for part in parts if id(part) not in sizes]
                continue
            waiting.pop()
            sizes[id(node)] = 1 + sum(sizes[id(part)] for part in parts)
            if sizes[id(node)] > MOST_COPIES + len(begun):
                raise _refused(f"aliases unfold to more than {MOST_COPIES} parts", node)
        return document

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """What a node holds; raises ConstructorError where that is not of its type."""
        is_number = node.tag.endswith((":int", ":float"))
        if is_number and ":" in str(node.value):
            node.tag = yaml.resolver.BaseResolver.DEFAULT_SCALAR_TAG
        elif is_number and re.match(r"[-+]?0[\d_]", str(node.value)):
            problem = "a number begins with 0 (quote it to keep the 0, else leave it out)"
            raise _refused(problem, node)
        try:
            return super().construct_object(node, deep)
        except (LookupError, AttributeError, TypeError, ValueError):
            raise yaml.constructor.ConstructorError(
                None, None, "a value is not of its type", node.start_mark
            ) from None


def _require_shallow(text: str) -> None:
    """Raises ComposerError for what lies so deep that PyYAML's parts in C would end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_SAFE):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _refused("lists lie too deep in each other", event)


def _parts(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _refused(problem: str, node: Any) -> yaml.composer.ComposerError:
    return yaml.composer.ComposerError(None, None, problem, node.start_mark)


class _UniqueKeys(SafeLoader):
    """YAML in which a key that is given twice is an error, not the last one's gain."""


def _mapping(
    loader: yaml.SafeLoader, node: yaml.MappingNode, deep: bool = False
) -> dict[Hashable, Any]:
    loader.flatten_mapping(node)
    seen: dict[Hashable, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            problem = "a list or mapping stands for a key"
            raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        if key in seen:
            problem = RepeatedKey.problem
            raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_mapping(path: str | Path, what: str = "policy") -> Json:
    """What a YAML, JSON or TOML file holds; raises InputError with the line that is at fault."""
    path = Path(regular_files.path_text(path, what))
    regular_files.require_regular(path, what)
    try:
        with regular_files.readable(f"{what} '{path}'"):
            text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{what} '{path}': is not UTF-8; convert it{_or_table(path)}") from None
    try:
        if path.suffix == ".toml":
            import tomllib  # which the other forms do not need

            if _LONG_KEY.search(text):
                raise _Malformed("a key has more than 100 parts")
            content = tomllib.loads(text)
        elif path.suffix == ".json":
            content = json.loads(text, object_pairs_hook=regular_files.distinct_keys)
        else:
            content = yaml.load(text, Loader=_UniqueKeys)
        if _is_beyond_reason(content):
            raise _Malformed("a number has more than 300 digits, or lists lie too deep")
        if "\\" in text and not is_text(content):
            raise _Malformed("half a character, such as \\ud800, stands alone")
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as wrong:
        raise InputError(f"{what} '{path}': {_syntax_error(wrong)}; fix the syntax") from None
    if not isinstance(content, dict):
        raise InputError(
            f"{what} '{path}': is not a mapping of keys to values; {_EXAMPLES[what]}"
            f"{_or_table(path)}"
        )
    return content


_LONG_KEY = re.compile(r"(?<![\w\"'-])(?:[\w\"'-]+[ \t]*\.[ \t]*){100}")


def _is_beyond_reason(content: object, depth: int = 0) -> bool:
    """Whether a number has too many digits, or lists and mappings lie too deep in each other."""
    if isinstance(content, int):
        return content.bit_length() > 1_000
    if isinstance(content, Mapping):
        content = [*content, *content.values()]
    if not isinstance(content, list):
        return False
    return depth > DEEPEST or any(_is_beyond_reason(part, depth + 1) for part in content)


def is_text(content: object) -> bool:
    """Whether all texts in it can be written as UTF-8, as halves of characters can't."""
    if isinstance(content, Mapping):
        return all(is_text(part) for pair in content.items() for part in pair)
    if isinstance(content, list):
        return all(map(is_text, content))
    try:
        return not isinstance(content, str) or bool(content.encode() or True)
    except UnicodeEncodeError:
        return False


def _or_table(path: Path) -> str:
    """The question whether a table was named in the place of a file of settings."""
    is_table = path.name.lower().endswith(formats.SUFFIXES)
    return "; it has the name of a table: are the two files swapped?" if is_table else ""


_EXAMPLES = {
    "policy": "'shoal policy init DATA' proposes a policy",
    "agreement": "compare with the agreement that 'shoal sample bank' writes",
    "context": "'shoal dossier --template' prints one",
    "others": "write for instance releases: [{release: FILE, policy: FILE, original: FILE}]",
}


def _syntax_error(wrong: Exception) -> str:
    """The line at which the text stops making sense, and why, as far as the parser knows."""
    mark = getattr(wrong, "problem_mark", None)
    line = mark.line + 1 if mark is not None else getattr(wrong, "lineno", None)
    place = "the file" if line is None else f"line {line}"
    problem = getattr(wrong, "problem", None)
    why = f": {problem}" if problem else ""
    begun = getattr(wrong, "context_mark", None)
    if line is not None and begun is not None and begun.line + 1 < line:
        why += f" (in what begins on line {begun.line + 1})"
    return f"{place} can't be understood{why}"


# How the blocks `read` and `write` are asked for and read.


def reading_of(read: ReadOptions) -> Reading:
    """What is said about the input."""
    unpacked = None if read.unpacked is None else room.bytes_of(read.unpacked)
    return Reading(
        *(read.encoding, read.delimiter, read.sheet, read.line_of(), read.decimal, read.dates),
        unpacked=unpacked,
    )


def reading_of_release(read: ReadOptions, write: WriteOptions) -> Reading:
    """What is said about a release: one that Shoal writes has one sheet and no title."""
    encoding, delimiter = write.encoding or read.encoding, write.delimiter or read.delimiter
    return replace(reading_of(read), encoding=encoding, delimiter=delimiter, sheet=None, header=1)


def reading_beside(read: ReadOptions) -> Reading:
    """What is said about tables that belong to the input: they may also be UTF-8."""
    return Reading(
        read.encoding, read.delimiter, decimal=read.decimal, dates=read.dates, is_beside=True
    )


def keys_and_values(option: str, settings: list[str]) -> tuple[Json, list[str]]:
    """KEY=VALUE texts of an option as a mapping, and a finding for each that is none or unknown."""
    findings = [
        f"{option} '{text}': is not KEY=VALUE; write for instance {_WRITTEN[option]}"
        for text in settings
        if "=" not in text
    ]
    pairs = [text.partition("=") for text in settings if "=" in text]
    values: Json = {key.strip(): value for key, _, value in pairs}
    times = Counter(key.strip() for key, _, _ in pairs)
    findings += [
        f"{option} {key}=...: is given {count} times; give it once, several values with commas"
        for key, count in times.items()
        if count > 1
    ]
    known = _KNOWN[option].model_fields
    findings += [
        f"{option} {key}=...: is not a known key; {suggestion(key, known)}{keys_of(_KNOWN[option])}"
        for key in values
        if key not in known
    ]
    if "numbers" in values:
        values["numbers"] = [part.strip() for part in values["numbers"].split(",")]
    return values, findings


def keys_of(block: type[BaseModel]) -> str:
    """What keys there are, as a way out."""
    return f"choose one of {', '.join(block.model_fields)}"


_KNOWN: dict[str, type[BaseModel]] = {"--read": ReadOptions, "--write": WriteOptions}
_WRITTEN = {"--read": "--read encoding=cp1252", "--write": "--write delimiter=;"}
