"""How the page writes YAML: one line for each column and promise, so that changes are lines."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import yaml

from shoal.errors import InputError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
BY_LINE = ("attributes", "promises", "sign_off")
WIDE = 10**9


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def written(content: Mapping[str, Any]) -> str:
    """The content of a policy or of a context, as the page writes it."""
    lines: list[str] = []
    for key, value in content.items():
        if key in BY_LINE and isinstance(value, dict) and value:
            lines.append(f"{key}:")
            lines += [f"  {_flow(name)}: {_flow(part)}" for name, part in value.items()]
        elif key in BY_LINE and isinstance(value, list) and value:
            lines.append(f"{key}:")
            lines += [f"- {_flow(part)}" for part in value]
        else:
            lines.append(f"{_flow(key)}: {_flow(value)}")
    return "\n".join([*lines, ""])


def read(text: str, what: str = "policy.yaml") -> dict[str, Any]:
    """What a text of YAML holds, by PyYAML's safe loader; raises InputError.

    The same text gives the same object: whoever changes it changes a copy.
    """
    content, line = _parsed(text)
    if line:
        raise InputError(f"{what}: line {line} can't be understood; fix the syntax")
    if not isinstance(content, dict):
        raise InputError(f"{what}: is not a mapping of keys to values")
    return content


@lru_cache(maxsize=64)
def _parsed(text: str) -> tuple[Any, int]:
    """The content, and the line that can't be understood; 0 where there is none."""
    try:
        content = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as wrong:
        mark = getattr(wrong, "problem_mark", None)
        return None, 1 if mark is None else mark.line + 1
    return {} if content is None else content, 0


def has_comments(text: str) -> bool:
    """Whether writing it anew would lose what somebody has written for people."""
    return any(token in text for token in ("\n#", " #")) or text.startswith("#")


def is_ours(text: str) -> bool:
    """Whether the page would write it as it is."""
    try:
        return written(read(text)) == text
    except InputError:
        return False


def changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    """The lines of `after` with those that are gone: (' ', '+' or '-', line)."""
    old, new = before.splitlines(), after.splitlines()
    found: list[tuple[str, str]] = []
    # not ndiff, which compares the letters of all lines with those of all others
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, lo, hi, start, end in matcher.get_opcodes():
        if kind == "equal":
            found += [(" ", line) for line in new[start:end]]
        else:
            found += [("-", line) for line in old[lo:hi]] + [("+", line) for line in new[start:end]]
    return found


def touched_lines(before: str, after: str) -> set[int]:
    """Lines of `before` that are not the same in `after`; an insertion touches its neighbours."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    touched: set[int] = set()
    for kind, lo, hi, _, _ in matcher.get_opcodes():
        if kind == "insert":
            touched |= {lo}
        elif kind != "equal":
            touched |= set(range(lo, hi))
    return touched


def _flow(content: object) -> str:
    text = yaml.dump(
        content,
        Dumper=_OneLine,
        default_flow_style=True,
        sort_keys=False,
        width=WIDE,
        allow_unicode=True,
    )
    return text.removesuffix("\n").removesuffix("\n...").strip(" \n")


class _OneLine(yaml.SafeDumper):
    """No anchors, and line ends as escapes."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_OneLine.add_representer(str, _text)
