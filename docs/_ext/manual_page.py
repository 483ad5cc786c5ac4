"""The manual page, share/man/man1/shoal.1, written from the command line's own help.

`make man` runs this file; the tests compare the page with what it writes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import typer
import typer.main

from shoal.cli.main import VERBS, app

PAGE = Path(__file__).resolve().parents[2] / "share" / "man" / "man1" / "shoal.1"

OPENING = """\
.\\" Written by docs/_ext/manual_page.py; renew it with "make man".
.TH SHOAL 1 "" Shoal "User Commands"
.SH NAME
shoal \\- publish personal data with k\\-anonymity and more, and audit every release
.SH SYNOPSIS
.B shoal
.I COMMAND
[\\fIOPTIONS\\fP] [\\fIARGUMENTS\\fP]
.SH DESCRIPTION
"""

CLOSING = """\
.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
A promise does not hold, or a ledger is damaged. A release in the making is withheld.
.TP
.B 2
The data, the policy or the command line cannot be used.
.TP
.B 3
No release can keep the promises.
.TP
.B 4
A service, another party or an optional extra is missing.
.TP
.B 70
An internal error.
.TP
.B 130
Interrupted.
.SH ENVIRONMENT
.TP
.B SHOAL_DEBUG
Set to 1 to see the trace of an internal error. A trace can hold values of the data.
.TP
.B NUMBA_CACHE_DIR
The folder that keeps compiled code between runs.
"""


def manual_page() -> str:
    """The whole page; the same help gives the same bytes, whatever the width of the terminal."""
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="shoal")
    lines = [*_paragraphs(root.help), ".SH OPTIONS", *_options(root, context), ".SH COMMANDS"]
    for command, inside in _commands(root, context):
        synopsis = " ".join([inside.command_path, *command.collect_usage_pieces(inside)])
        lines += [f".SS {_roff(synopsis)}", *_paragraphs(command.help), *_options(command, inside)]
    return OPENING + "\n".join(lines) + "\n" + CLOSING


def _commands(group, context: typer.Context) -> Iterator[tuple]:
    """Every command with its context, in the help's order; groups give way to their members.

    Those that other packages bring are not Shoal's to describe.
    """
    for name in group.list_commands(context):
        if context.parent is None and name not in VERBS:
            continue
        command = group.get_command(context, name)
        inside = typer.Context(command, info_name=name, parent=context)
        if hasattr(command, "list_commands"):
            yield from _commands(command, inside)
        else:
            yield command, inside


def _options(command, context: typer.Context) -> Iterator[str]:
    """A tagged paragraph for every argument and option except --help, which every command has."""
    for parameter in command.get_params(context):
        record = None if parameter.hidden else parameter.get_help_record(context)
        if record and "--help" not in parameter.opts:
            yield from (".TP", f"\\fB{_roff(record[0])}\\fP", *_paragraphs(record[1] or "No help."))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", inspect.cleandoc(text or ""))):
        if number:
            yield ".PP"
        yield re.sub(r"`([^`]+)`", r"\\fB\1\\fP", _roff(" ".join(paragraph.split())))


def _roff(text: str) -> str:
    """The text as roff shows it: its own signs escaped, no line taken for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(manual_page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
