"""What is said of a command that was typed wrongly, in our words."""

from __future__ import annotations

import re
from typing import Any


def usage_sentence(usage: Any) -> str:
    """What is wrong, and where the help of that command is."""
    said = _without_its_group(usage) or _in_our_words(usage.format_message())
    return f"{said}; see '{_command_of(usage)} --help'"


def _in_our_words(usage: str) -> str:
    """What is wrong with the command line: the option, what it is not, and one that would do."""
    unfit = re.fullmatch("Invalid value for (.+?): (?:Input )?(.+)", usage)
    if unfit is None:
        return usage.rstrip(".?").replace(". Did you mean", "; did you mean")
    option, reason = unfit[1].split(" / ")[-1].strip("'"), unfit[2]
    if "valid integer" in reason:
        reason = f"is not a whole number; write for instance {option} 10"
    elif "valid number" in reason:
        reason = f"is not a number; write for instance {option} 1.5"
    return f"{option}: {reason}"


def _without_its_group(usage: Any) -> str | None:
    """What is wrong where the command of a group was typed without the group; else None."""
    unknown = re.match("No such command '(.+?)'", usage.format_message())
    context = getattr(usage, "ctx", None)
    if unknown is None or context is None or context.parent is not None:
        return None
    within = [
        f"'shoal {group} {unknown[1]}'"
        for group, command in context.command.commands.items()
        if unknown[1] in getattr(command, "commands", ())
    ]
    return f"{unknown[0]}; did you mean {' or '.join(within)}" if within else None


def _command_of(usage: Any) -> str:
    """The command that was used wrongly: 'shoal publish', or 'shoal' alone."""
    context, names = getattr(usage, "ctx", None), []
    while context is not None and context.parent is not None:
        names.append(context.info_name)
        context = context.parent
    return " ".join(["shoal", *reversed(names)])
