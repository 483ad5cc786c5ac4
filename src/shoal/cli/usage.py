"""Messages about a command that was typed wrongly, in our words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from shoal.cli.verbs import GROUPS, VERBS


def usage_sentence(usage: Any, arguments: Sequence[str]) -> str:
    """What is wrong with the arguments, and where the help of that command is."""
    said = (
        _without_its_group(usage)
        or _unknown_option(usage)
        or _missing_arguments(usage)
        or _in_our_words(usage.format_message())
    )
    return f"{said}; see '{_command_of(usage) or _command_in(arguments)} --help'"


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
        for group in GROUPS
        if unknown[1] in getattr(context.command.commands[group], "commands", ())
    ]
    return f"{unknown[0]}; did you mean {' or '.join(within)}" if within else None


def _unknown_option(usage: Any) -> str | None:
    """An unknown option and those most like it, nearest first; None of any other mistake."""
    alike = getattr(usage, "possibilities", None)
    if alike is None:
        return None
    # a hidden option is one that only says where else to look
    hidden = {
        name
        for parameter in usage.ctx.command.params
        if getattr(parameter, "hidden", False)
        for name in parameter.opts
    }
    known = " or ".join(name for name in alike if name not in hidden)
    return f"{usage.message}; did you mean {known}" if known else str(usage.message)


def _missing_arguments(usage: Any) -> str | None:
    """The arguments that are missing, each with what it is; None of any other mistake."""
    if not usage.format_message().startswith("Missing argument"):
        return None
    parameters = usage.ctx.command.params
    # they are filled from the left, so that those behind a missing one are missing, too
    missing = [
        f"{parameter.get_error_hint()} ({_in_a_sentence(parameter.help)})"
        for parameter in parameters[parameters.index(usage.param) :]
        if parameter.param_type_name == "argument" and parameter.required
    ]
    return f"Missing argument{'s' if len(missing) > 1 else ''} {' and '.join(missing)}"


def _in_a_sentence(text: str) -> str:
    return text[:1].lower() + text[1:].removesuffix(".")


def _command_of(usage: Any) -> str | None:
    """The command that was used wrongly: 'shoal publish', or 'shoal' alone; None if unknown."""
    context, names = getattr(usage, "ctx", None), []
    if context is None:
        return None
    while context.parent is not None:
        names.append(context.info_name)
        context = context.parent
    return " ".join(["shoal", *reversed(names)])


def _command_in(arguments: Sequence[str]) -> str:
    """The command that arguments begin with: an option without its value tells none."""
    names = list(takewhile(lambda argument: not argument.startswith("-"), arguments))
    depth = 2 if names[:1] and names[0] in GROUPS else 1
    return " ".join(["shoal", *names[:depth]]) if names[:1] and names[0] in VERBS else "shoal"
