"""Which attacks are asked for, what is given for them, and how much they may find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from shoal.data.certificate_shape import AcceptedReport
from shoal.data.option import build, suggestion
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy import consistency, registry
from shoal.policy.policy import Policy
from shoal.protocols import Attack

if TYPE_CHECKING:
    from shoal.attacks.intersection import Earlier
    from shoal.data.attack_scene import AttackScene, Findings


Asked = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
"""Attacks as Python asks for them: a text as the command line takes it, one with its parameters, or
several.
"""

ALL = "all"
LACKING = {
    "alignment": (
        "nobody knows whose record is whose; give the trace, which a publication that was stored or"
        " copied has no more"
    ),
    "earlier": "needs another release of the same people; give it (--others; others=)",
    "population": (
        "needs the population; describe it under 'population' in the policy, or name the weights"
    ),
}
MOST_FOLDS = 5  # a fifth of the people is set aside for each
NEEDS_CONTROL = ("inference", "membership")  # tried on people who are set aside or given


@dataclass(frozen=True)
class AttackRequest:
    """What is asked.

    attacks: names, each with parameters if need be (`inference:tolerance=0.1`), or dicts; `all`
    means every one that has what it needs. control: people who are not in the release. external: a
    list of people. earlier: other releases of the same people. folds: how
    many times other people are set aside for the control. files: all that was read for it.
    """

    attacks: tuple[str | Mapping[str, Any], ...] = ()
    control: Table | None = None
    external: Table | None = None
    earlier: tuple[Earlier, ...] = ()
    folds: int = 1
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.folds not in range(1, MOST_FOLDS + 1):
            raise InputError(
                f"folds: {self.folds!r} sets of other people can't be set aside; give 1 to"
                f" {MOST_FOLDS}"
            )
        if self.folds > 1 and self.control is not None:
            raise InputError(
                "folds: nobody is set aside where other people are given as the control; leave out"
                " one of the two"
            )

    @property
    def is_all(self) -> bool:
        return ALL in self.attacks

    def built(self) -> list[Attack]:
        """The attacks with their parameters, in the order of their numbers; raises InputError."""
        if not self.attacks:
            return []
        known = registry.attacks()
        findings: list[str] = []
        given: dict[str, Attack] = {}
        for asked in self.attacks:
            name, parameters = _parsed(asked)
            if name in known and (parameters or name not in given):
                given[name] = build(known[name], f"attack '{name}'", parameters)
            elif name not in known and name != ALL:
                hint = suggestion(name, known)
                findings.append(
                    f"attack '{name}': unknown; {hint}choose 'all' or some of {', '.join(known)}"
                )
        InputError.raise_for(findings)
        if self.is_all:
            given = {name: build(known[name], f"attack '{name}'", {}) for name in known} | given
        return [given[name] for name in known if name in given]


def _parsed(asked: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the parameters of an attack as it is asked for."""
    if isinstance(asked, Mapping):
        name = asked.get("name")
        if not isinstance(name, str):
            raise InputError("attack: has no name; write for instance {'name': 'inference'}")
        return name, {key: value for key, value in asked.items() if key != "name"}
    name, *settings = asked.strip().split(":")
    wrong = [setting for setting in settings if "=" not in setting]
    if wrong:
        raise InputError(
            f"attack '{name}': a parameter is not NAME=VALUE; write for instance"
            " inference:tolerance=0.1"
        )
    return name, dict(setting.split("=", 1) for setting in settings)


NO_ATTACK = AttackRequest()


def asked_attacks(asked: Asked) -> tuple[str | Mapping[str, Any], ...]:
    """The attacks that are asked for, each by itself; raises InputError for anything else."""
    if isinstance(asked, str):
        return attack_names([asked])
    if isinstance(asked, Mapping):
        return (asked,)
    several = tuple(asked) if isinstance(asked, Iterable) else (None,)
    if not all(isinstance(each, (str, Mapping)) for each in several):
        raise InputError(
            "attack: is not the name of an attack, nor a mapping with one; give 'all', a name such"
            " as 'inference', or a list of them"
        )
    return several


def attack_names(texts: Sequence[str]) -> tuple[str, ...]:
    """The attacks of a list parted by commas, as a command line gives it; raises InputError.

    A text without a name of an attack belongs to the parameter before it.
    """
    known = {*registry.attacks(), ALL}
    found: list[str] = []
    for part in ",".join(texts).split(","):
        is_more = found and ":" in found[-1] and part.split(":")[0].strip() not in known
        if is_more:
            found[-1] += f",{part}"
        elif part.strip():
            found.append(part.strip())
    return tuple(found)


def asked_of(policy: Policy, request: AttackRequest) -> AttackRequest:
    """The attacks that are asked for, also by the policy's thresholds and population."""
    needed = [consistency.MEASURES[measure] for measure in policy.model.accept]
    needed += ["population"] if policy.model.population is not None else []
    request = replace(request, attacks=(*request.attacks, *dict.fromkeys(needed)))
    if request.attacks:
        policy.refuse_two_tables("attack")
    request.built()  # what is asked is judged before a table is read
    return request


def lacking(attack: Attack, scene: AttackScene) -> str | None:
    """Why an attack can't be run here; None where it can."""
    if scene.no_people is not None and attack.uses_people:
        return scene.no_people
    has = {
        "alignment": scene.is_aligned,
        "earlier": bool(scene.earlier) or scene.not_aligned > 0,
        "population": scene.surroundings is not None,
    }
    absent = [need for need in attack.needs if not has.get(need, False)]
    return LACKING.get(absent[0], f"needs {absent[0]}") if absent else None


# What a policy accepts that attacks find, judged on the upper end of each interval.


# the key of each measure of one number below its attack
SINGLE = {
    "ends_gain": "gain",
    "linkage": "success",
    "implied": "implied",
    "journalist": "journalist_max",
    "marketer": "marketer",
    "membership": "advantage",
}
WHOLE = ("alone",)  # one number stands for the greatest of all columns
BY_ATTRIBUTE = {
    "inference_gain": "gain",
    "certain": "certain",
    "lifted": "lifted",
    "homogeneous": "people",
}

Accepted: TypeAlias = Mapping[str, float | dict[str, float]]
"""The most of each measure that a policy accepts, of each attribute where it is by attribute."""


def judged(accept: Accepted, found: Findings) -> list[AcceptedReport]:
    """Every threshold of the policy against what was found; what was not measured breaks it."""
    rows = []
    for measure, limit in accept.items():
        numbers = dict(_numbers(measure, found))
        named = (None,) if measure in WHOLE else numbers
        limits = limit if isinstance(limit, Mapping) else dict.fromkeys(named, limit)
        rows += [_row(measure, a, most, numbers.get(a)) for a, most in limits.items()]
    return rows


def unmeasured(accept: Accepted) -> list[AcceptedReport]:
    """The thresholds where no attack could be tried; whether they hold stays open."""
    rows = []
    for measure, limit in accept.items():
        limits = limit if isinstance(limit, Mapping) else {None: limit}
        rows += [_row(measure, a, most, None) | {"holds": None} for a, most in limits.items()]
    return rows


def _row(measure: str, attribute: str | None, at_most: float, number: Any) -> AcceptedReport:
    measured, upper = _ends(number)
    return {
        "measure": measure,
        "attribute": attribute,
        "at_most": at_most,
        "measured": measured,
        "upper": upper,
        "holds": upper is not None and upper <= at_most,
    }


def _ends(number: Any) -> tuple[float | None, float | None]:
    """The number, and the upper end of its interval where it has one."""
    if isinstance(number, Mapping):
        ends = number["ci"]
        return number["share"], number["share"] if ends is None else ends[1]
    return number, number


def _numbers(measure: str, found: Findings) -> Iterator[tuple[str | None, Any]]:
    """What was measured, by attribute; None for one number of the whole release."""
    attack = found.get(consistency.MEASURES[measure]) or {}
    if measure in SINGLE:
        yield None, _at(attack, SINGLE[measure])
    elif measure == "alone":  # every column, and None for the greatest of them
        columns = attack.get("alone", {})
        yield from columns.items()
        yield None, max(columns.values(), key=lambda found: found["share"] or 0.0, default=None)
    elif measure in ("alone_after", "certain_after"):
        yield from _after(measure.removesuffix("_after"), attack)
    elif measure == "excluded":
        replay = attack.get("replay") or {}
        yield from [(a, _at(row, "excluded")) for a, row in replay.items()] or [(None, None)]
    else:
        yield from [(a, _at(row, BY_ATTRIBUTE[measure])) for a, row in attack.items()]


def _after(measure: str, attack: Findings) -> Iterator[tuple[str | None, Any]]:
    """What two releases give away together: by rows where these link, else by both classes."""
    joint = attack.get("linked") or {}
    if measure == "alone":
        yield None, joint.get("alone")
        return
    applies = attack.get(attack.get("applies") or "linked") or {}
    rows = applies.get("attributes", {})
    yield from [(a, row.get("certain")) for a, row in rows.items()] or [(None, None)]


def _at(found: Any, key: str) -> Any:
    return found.get(key) if isinstance(found, Mapping) else None
