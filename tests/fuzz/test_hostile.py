"""A slice of `make fuzz HOSTILE=20000`."""

import shlex
from collections.abc import Iterator
from typing import Any

import typer

from fuzz.hostile import COMMANDS, run_cases
from fuzz.test_slice import SEED
from shoal.cli.main import app
from thorough import examples

CASES = examples(15, 250)


def test_whatever_is_read_or_asked_ends_with_a_documented_status_and_nothing_half_written():
    found = list(run_cases(SEED, 0, CASES))
    assert [case for case in found if case[2]] == []
    assert len(found) == CASES


def test_every_command_of_the_program_is_among_the_cases():
    drawn = [shlex.split(command) for command in COMMANDS]
    program = list(_leaves(typer.main.get_command(app)))
    assert len(program) > 20
    missing = [leaf for leaf in program if leaf not in (words[: len(leaf)] for words in drawn)]
    assert missing == []


def _leaves(command: Any, *above: str) -> Iterator[list[str]]:
    """The words of each command that is no group."""
    if not hasattr(command, "commands"):
        yield list(above)
    for name, below in getattr(command, "commands", {}).items():
        yield from _leaves(below, *above, name)
