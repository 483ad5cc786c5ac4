"""What a user can set, said once, checked and coerced: what a command is asked, and the fields of
the frozen dataclasses of methods, promises and hierarchies.

A request is a frozen dataclass of what a verb is asked. A field whose value is an `option` is an
option of the command, which the command line makes from it; a field that is a request itself stands
for all of its fields. In Python they are keywords.
"""

import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from itertools import islice
from numbers import Real
from typing import Any, ClassVar, TypeVar, dataclass_transform

from shoal.errors import InputError


@dataclass(frozen=True)
class Option:
    """form: as the manual shows it, such as `-o, --output FILE`, or `SOURCE` for an argument. help:
    what it does. default: `...` where it must be given. low, high: the bounds of a number. choices:
    all that it takes. within: the module whose `using` holds for the whole command. needs: options
    of which one must be given with it, as far as the command has any. why: what is said where none
    is. takes_no: options that do not go with it, as far as the command has them.
    """

    form: str
    help: str
    default: Any = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    within: str | None = None
    needs: tuple[str, ...] = ()
    why: str = ""
    takes_no: tuple[str, ...] = ()

    @property
    def is_file(self) -> bool:
        """Whether it names a file."""
        return self.form.endswith(" FILE")

    @property
    def flag(self) -> str:
        """What it is called in a message, such as `--output`."""
        return next((word for word in self.form.split() if word.startswith("--")), self.form)


def option(form: str, help: str, default: Any = None, **more: Any) -> Any:
    """An `Option` in the place of what it will hold: a field's, or a parameter's of a command."""
    return Option(form, help, default, **more)


@dataclass_transform(frozen_default=True)
class Request:
    """What a verb is asked; each class below it is made a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls, kw_only: bool = False) -> None:
        """Gives every option's field the default that the option has."""
        for name, asked in list(vars(cls).items()):
            if isinstance(asked, Option):
                default = MISSING if asked.default is ... else asked.default
                bounds = {"low": asked.low, "high": asked.high, "choices": asked.choices or None}
                said = {name: bound for name, bound in bounds.items() if bound is not None}
                setattr(cls, name, field(default=default, metadata={"option": asked, **said}))
        dataclass(frozen=True, kw_only=kw_only)(cls)

    @classmethod
    def options(cls) -> dict[str, Option]:
        """The options that are its own fields, by name."""
        return {one.name: one.metadata["option"] for one in fields(cls) if "option" in one.metadata}

    @property
    def options_given(self) -> dict[str, Option]:
        """The options that were asked beside their defaults, by name."""
        found: dict[str, Option] = {}
        for one in fields(self):
            value, asked = getattr(self, one.name), one.metadata.get("option")
            if isinstance(value, Request):
                found |= value.options_given
            elif isinstance(asked, Option) and value not in (asked.default, None, []):
                found[one.name] = asked
        return found


def parameter(
    help: str,
    *,
    default: Any = MISSING,
    low: float | None = None,
    high: float | None = None,
    above: bool | None = None,
    choices: tuple[Any, ...] | None = None,
) -> Any:
    """A field that may be set; without a default it must be. above: `low` itself is too low."""
    bounds = {"low": low, "high": high, "above": above, "choices": choices}
    said = {name: bound for name, bound in bounds.items() if bound is not None}
    return field(default=default, metadata={"help": help, **said})


CallableT = TypeVar("CallableT", bound=Callable[..., object])


# Parameters and keywords: what was declared, checked and coerced.


MOST = 2**31 - 1
"""What numbers of parameters without a bound of their own may be: it fits into any integer."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a method or promise, as the command line and the docs show it."""

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[Any, ...] | None = None
    low: float | None = None
    high: float | None = None
    required: bool = False


def build(implementation: type, label: str, given: Mapping[str, Any]) -> Any:
    """The dataclass with these parameters; InputError with every unknown or unfit one."""
    known = {p.name: p for p in parameters_of(implementation)}
    findings = [
        f"{label}: unknown parameter '{name}'; {suggestion(name, known)}it takes"
        f" {', '.join(known) or 'none'}"
        for name in given
        if name not in known
    ]
    findings += [
        f"{label}: parameter '{p.name}' is missing"
        for p in known.values()
        if p.required and p.name not in given
    ]
    values = {}
    for name, value in given.items():
        if name not in known:
            continue
        try:
            values[name] = coerce_parameter(known[name], value)
        except ValueError as unfit:
            findings.append(f"{label}: parameter '{name}' {unfit}")
    InputError.raise_for(findings)
    return implementation(**values)


def values_of(built: Any) -> dict[str, Any]:
    """Every parameter of what was built with its value, in the order of the fields."""
    return {p.name: getattr(built, p.name) for p in parameters_of(built.__class__)}


def method_as_written(text: str, beside: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The name and parameters of a method written as `name:parameter=value:...`.

    beside: parameters that are given apart. Raises InputError for what is not written like that,
    and for a parameter that is set twice.
    """
    name, *settings = (part.strip() for part in text.split(":"))
    pairs = [[part.strip() for part in setting.split("=", 1)] for setting in settings]
    InputError.raise_for(
        f"method '{text}': '{'='.join(pair)}' is not PARAM=VALUE; write for instance"
        " mondrian:cut=nearest"
        for pair in pairs
        if len(pair) < 2 or not pair[0]
    )
    own = dict(pairs)
    if len(own) < len(pairs) or own.keys() & beside.keys():
        raise InputError(f"method '{text}': sets a parameter twice; set it once")
    return name, own | dict(beside)


def takes(parameters: Iterable[Parameter], given: Mapping[str, Any]) -> bool:
    """Whether all that is given can be set."""
    known = {p.name: p for p in parameters}
    try:
        for name, value in given.items():
            coerce_parameter(known[name], value)
    except (KeyError, ValueError):
        return False
    return True


MOST_COMPARED, LONGEST_COMPARED = 1_000, 200
"""Known names that a misspelt one is compared with, and letters of each."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """The known name nearest to a misspelt one, as a question; nothing where none is near."""
    return f"did you mean '{near}'? " if (near := nearest(name, known)) else ""


def require_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Raises InputError for an argument that is none of the texts known; shows no other value."""
    choose = f"choose one of {', '.join(known)}"
    if not isinstance(value, str):
        raise InputError(f"{name}: is of type {type(value).__name__}; {choose}")
    if value not in known:
        raise InputError(f"{name} '{value}': is unknown; {suggestion(value, known)}{choose}")


def require_whole(name: str, value: Any, least: int) -> None:
    """Raises InputError for an argument that is not a whole number, or is too small."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or value != value // 1 or value < least:
        raise InputError(f"{name}: is not a whole number of {least} or more; give one")


def require_flag(name: str, value: object) -> None:
    """Raises InputError for an argument that is neither True nor False."""
    if not isinstance(value, bool):
        raise InputError(
            f"{name}: is of type {type(value).__name__}; say True or False, and other arguments by"
            " their names"
        )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to a misspelt one, in whatever case; None where none is near, or those
    that are known are too many to be compared with as many others, or any is too long.
    """
    known = list(islice(known, MOST_COMPARED + 1))
    if len(known) > MOST_COMPARED:
        return None
    folded = name.casefold()
    alike = [other for other in known if other.casefold() == folded]
    if not alike and len(name) <= LONGEST_COMPARED:
        alike = get_close_matches(name, [one for one in known if len(one) <= LONGEST_COMPARED], n=1)
    return next(iter(alike), None)


def coerce_parameter(parameter: Parameter, value: Any) -> Any:
    """The value in the parameter's type and range; text is read as that type. Raises ValueError."""
    kind = parameter.kind
    if kind is bool:
        value = _as_bool(value)
    elif kind in (int, float):
        value = _as_number(kind, value)
    elif kind is str and not isinstance(value, str):
        raise ValueError("must be text")
    elif kind is tuple:
        value = value.split(",") if isinstance(value, str) else value
        if not isinstance(value, Collection) or isinstance(value, Mapping):
            raise ValueError("must be a list")
        if not all(isinstance(one, str | Real) for one in value):
            raise ValueError("must be a list of plain values")
        value = tuple(value)
    if parameter.choices is not None and value not in parameter.choices:
        raise ValueError(
            f"must be one of {', '.join(str(c) for c in parameter.choices if c != '')}"
        )
    if parameter.low is not None and not value >= parameter.low:
        raise ValueError(f"must be at least {parameter.low:g}")
    if parameter.high is not None and not value <= parameter.high:
        raise ValueError(f"must be at most {parameter.high:.10g}")
    return value


_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def _as_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in (*_TRUE, *_FALSE):
        return value.lower() in _TRUE
    raise ValueError("must be true or false")


def _as_number(kind: type, value: Any) -> Any:
    unfit = ValueError(f"must be a {'whole ' if kind is int else ''}number")
    if isinstance(value, bool) or not isinstance(value, Real | Decimal | str):
        raise unfit
    try:
        number = kind(value)
    except (ValueError, OverflowError):
        raise unfit from None
    if kind is int and not isinstance(value, str) and number != value:
        raise unfit
    return number


@cache
def parameters_of(implementation: Any) -> tuple[Parameter, ...]:
    """The parameters of a method or promise, in the order of its fields."""
    hints = typing.get_type_hints(implementation)
    found = []
    for one in fields(implementation):
        default = one.default
        if one.default_factory is not MISSING:
            default = one.default_factory()
        required = default is MISSING
        kind = hints[one.name]
        options = [option for option in typing.get_args(kind) if option is not type(None)]
        if type(None) in typing.get_args(kind) and options:
            kind = options[0]
        found.append(
            Parameter(
                one.name,
                typing.get_origin(kind) or kind,
                None if required else default,
                one.metadata.get("help", ""),
                one.metadata.get("choices"),
                one.metadata.get("low"),
                one.metadata.get("high", MOST if kind in (int, float) else None),
                required,
            )
        )
    return tuple(found)


# Options of a request, as commands and Python have them.


def check_together(what: str, options: Mapping[str, Option], given: Mapping[str, Any]) -> None:
    """Raises InputError for options that do not go together."""
    asked = {name: one for name, one in options.items() if given[name] not in (one.default, [])}
    for one in asked.values():
        beside = [asked[name].flag for name in one.takes_no if name in asked]
        if beside:
            raise takes_no(f"{what} {one.flag}", beside)
    for one in asked.values():
        needed = [name for name in one.needs if name in options]
        if needed and not any(name in asked for name in needed):
            if one.why:
                raise InputError(one.why)
            lone = [other.flag for other in asked.values() if other.needs == one.needs]
            raise takes_no(f"{what} without {options[needed[0]].flag}", lone)


def takes_no(what: str, beside: Sequence[str]) -> InputError:
    """That options are not for what is asked of a verb. what: the verb, and an option of it."""
    verb, _, asked = what.partition(" ")
    place = asked if asked.startswith("without ") else f"with {asked}"
    return InputError(f"{verb}: {' and '.join(beside)} cannot be used {place}")


def with_keywords(
    words: type, request: type[Request] | None = None
) -> Callable[[CallableT], CallableT]:
    """Spells out the `**keywords` of a function for whoever asks for help on it or completes them.

    words: the typed dict of the keywords. request: has the defaults of those that are its options,
    and what each does, which the docstring ends with.
    """

    def spelled_out(function: CallableT) -> CallableT:
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for name, kind in words.__annotations__.items():
            default, known = getattr(request, name, None), getattr(kind, "__forward_arg__", kind)
            one = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            parameters.append(one.replace(annotation=known))
        function.__dict__["__signature__"] = signature.replace(parameters=parameters)
        if request is not None and function.__doc__:
            said = [f"{name}: {one.help}" for name, one in request.options().items()]
            function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__), "", *said])
        return function

    return spelled_out
