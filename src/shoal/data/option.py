"""What a user can set, said once: what a command is asked, and the fields of the frozen dataclasses
of methods, promises and hierarchies.

A request is a frozen dataclass of what a verb is asked. A field whose value is an `option` is an
option of the command, which the command line makes from it; a field that is a request itself stands
for all of its fields.
"""

from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, dataclass_transform


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
