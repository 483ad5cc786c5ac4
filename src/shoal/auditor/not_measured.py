"""What no check has compared, said plainly: a reader takes it on the word of whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.auditor.checks import Check, Path, Stated, listed
from shoal.policy import registry

NAME = "not measured again"
ABOUT = ("shoal", "build", "date", "verb", "method", "seed", "seconds", "scale")
"""Keys about how the release was made, which no file shows."""
OF_OTHER_CHECKS = ("schema", "policy", "input")


def not_measured(stated: Stated, has_policy: bool, has_original: bool) -> Check:
    """The keys that were not compared with anything, and what would let them be."""
    left = [path for path in stated.not_compared() if path[0] not in OF_OTHER_CHECKS]
    figures = [*_names((path for path in left if path[0] not in ABOUT), stated)]
    about = list(dict.fromkeys(str(path[0]) for path in left if path[0] in ABOUT))
    method = stated.at("method", "name")
    if method is not None and not registry.is_known_method(method, stated.verb):
        about = [f"{key} (not one of Shoal's)" if key == "method" else key for key in about]
    parts = []
    if figures:
        remedy = _remedy(stated, has_policy, has_original)
        parts.append(f"{', '.join(figures)}{remedy}")
    if about:
        parts.append(f"{', '.join(about)} (what only its author knows)")
    return Check(NAME, None, "; ".join(parts) if parts else "nothing")


def _remedy(stated: Stated, has_policy: bool, has_original: bool) -> str:
    lacking = [] if has_policy else ["the policy"]
    is_matched = stated.verb not in ("stream", "republish", "fuse")
    lacking += [] if has_original or not is_matched else ["the original"]
    return f" (needs {' and '.join(lacking)})" if lacking else ""


def _names(paths: Iterable[Path], stated: Stated) -> Iterator[str]:
    """Each part once; with its keys, where others of it were compared: `classes (min, max)`."""
    keys: dict[str, dict[str, None]] = {}
    for path in paths:
        words = [str(key) for key in path if isinstance(key, str)]
        keys.setdefault(words[0], {})["".join(words[1:2])] = None
    compared = {path[0] for path in stated.compared}
    for part, below in keys.items():
        some = [key for key in below if key]
        yield f"{part} ({listed(some)})" if some and part in compared else part
