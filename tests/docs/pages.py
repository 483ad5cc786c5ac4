"""What the tests of the docs read in a Markdown page: code blocks with their marks, links and
headings.

A mark is a comment right above a block and says how the block is run:

    <!-- docs-test: skip: why it can't run here -->
    <!-- docs-test: exit 1 -->               the block's last command ends with this status
    <!-- docs-test: file policy.yaml -->     the block is the content of this file
    <!-- docs-test: fragment -->             a piece of a file, shown for its form only
    <!-- docs-test: needs adult.data -->     stands alone: the reader has this file from here on
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

MARK = re.compile(r"^<!-- docs-test: (\w+):? ?(.*?) ?-->$")
FENCE = re.compile(r"^(\s*)(`{3,}|:{3,})\s*(\S*)\s*(.*)$")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A code block, or a mark that stands alone (`language` is then "mark")."""

    line: int
    language: str
    text: str
    mark: str = ""
    argument: str = ""


def blocks(page: Path) -> Iterator[Block]:
    """The code blocks of a page in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    mark, i = ("", ""), 0
    while i < len(lines):
        marked, fence = MARK.match(lines[i]), FENCE.match(lines[i])
        if marked:
            mark = (marked[1], marked[2])
            if mark[0] == "needs":
                yield Block(i + 1, "mark", "", *mark)
                mark = ("", "")
        elif fence:
            end = next(j for j in range(i + 1, len(lines)) if lines[j].strip() == fence[2])
            inside = [line.removeprefix(fence[1]) for line in lines[i + 1 : end]]
            yield Block(i + 1, fence[3], "\n".join(inside) + "\n", *mark)
            mark, i = ("", ""), end
        elif lines[i].strip():
            mark = ("", "")
        i += 1


def prose(page: Path) -> str:
    """The page without its code blocks."""
    kept, until = [], None
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = FENCE.match(line)
        if until is not None:
            until = None if line.strip() == until else until
        elif fence:
            until = fence[2]
        else:
            kept.append(line)
    return "\n".join(kept)


def links(page: Path) -> list[str]:
    """The targets of all links of a page, as written."""
    return LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page make, as GitHub and MyST name them."""
    headings = re.findall(r"^#{1,6} +(.+)$", prose(page), flags=re.MULTILINE)
    return {
        re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower())) for heading in headings
    }


@dataclass(frozen=True)
class Command:
    """One command of a console block, and the lines shown below it."""

    text: str
    shown: tuple[str, ...]


def commands(block: Block) -> list[Command]:
    """The commands of a `console` block (lines that begin with `$ `) or of a `bash` block (every
    line).
    """
    if block.language == "bash":
        joined = block.text.replace("\\\n", " ")
        return [
            Command(line, ())
            for line in joined.splitlines()
            if line.strip() and not line.startswith("#")
        ]
    found: list[tuple[str, list[str]]] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and line.strip():
            found[-1][1].append(line)
    return [Command(text, tuple(shown)) for text, shown in found]


def stand_in(monkeypatch, name: str, **content: object) -> None:
    """A module with this content in the place of one that is not installed."""
    module = ModuleType(name)
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, name, module)
