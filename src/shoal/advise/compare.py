"""Compare: which method, which k, at what loss. Measured as by publish; nothing is published.

read > bind > encode, once; then for every k and every method: partition > repair > recode > audit
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Unpack, cast

import numpy as np

from shoal.advise.comparison import TRIED, Comparison, Row
from shoal.advise.methods import (
    Asked,
    checked_ks,
    label_of,
    proposed_methods,
    verb_of,
    with_methods,
)
from shoal.attacks.run.attack import attacked
from shoal.attacks.run.people import AttackedRelease
from shoal.attacks.run.request import AttackRequest
from shoal.auditor.measure import measure
from shoal.auditor.verdict import open_question_warnings
from shoal.connectors.frames import Frame
from shoal.connectors.linked_tables import LinkedSource, LinkedSources
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes
from shoal.data.linked import PEOPLE
from shoal.data.numba_kernels import always
from shoal.data.option import with_keywords
from shoal.data.partition import Cut, Matrix, Partition
from shoal.data.progress import Progress, no_progress, tell, watched
from shoal.data.table import Table
from shoal.data.warnings import warn
from shoal.errors import InfeasibleError, InputError
from shoal.linked.publish import measured_draft
from shoal.policy.binding.files import Source
from shoal.policy.binding.linked import bound_linked, read_linked
from shoal.policy.binding.table import BoundTable, bound_table
from shoal.policy.from_columns import Columns
from shoal.policy.linked import usual_method
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.problem import LinkedProblem, Problem
from shoal.recoding.recode import find_classes, recode
from shoal.tables.attack import republisher
from shoal.tables.publish import policy_of_call

WARM_UP = 300  # records
FEW_RECORDS = 1_000  # up to here plain Python costs a method less than a second, compiling several


@with_keywords(Columns)
def compare(
    frame: "Source | LinkedSource",
    policy: PolicyLike | None = None,
    methods: Sequence[Asked] | None = None,
    ks: Sequence[int] | None = None,
    *,
    attack: bool = False,
    on_row: Callable[[Row], object] | None = None,
    skip: Collection[tuple[str, int]] = (),
    progress: Progress | bool = False,
    **columns: Unpack[Columns],
) -> Comparison:
    """Every method at every k, each release measured as `publish` measures it; none is published.

    frame: or a file's path. columns: of a frame, in place of a policy, the words of
    `shoal.publish`; or k, method, seed, read and missing_values beside one. methods: `name` or
    `name:parameter=value`, several parameters separated by colons, or a dict with its `name` and
    parameters; `["all"]` for every one that publishes a table; by default about four that suit the
    policy. Its own method keeps its parameters. ks: by default the `k` of this call, else 5, 10,
    25, 50 and the policy's; 1, which is the policy as it is, where that bounds the risk of a sample
    and asks no k. A promise that is broken and a k that can't be reached are rows of the table, not
    errors; raises InputError for what can't be read or asked. attack: also how much guessing, ends
    of intervals and lists of names gain on each release. on_row: called with each row as it is
    measured; what it raises ends the comparison. skip: labels of methods and ks that are measured
    already; `Comparison.joined` puts the rest to them.
    """
    progress = watched(progress)
    if policy is None and isinstance(frame, (str, Path)):
        raise InputError("compare: needs a policy for a file; give one, or read the file first")
    if ks is None and columns.get("k") is not None:
        ks = [columns["k"]]
    if policy is None and columns.get("k") is None:
        columns["k"] = checked_ks(ks, None)[0]
    policy = policy_of_call(cast(Frame, frame), policy, columns, "compare")
    policy.refuse_two_tables("compare")
    if attack and policy.model.is_linked:
        raise InputError("attack: is for one table; leave it out, and audit a release instead")
    # what is asked is judged before a large file is read
    asked_for = None if methods is None else with_methods(policy, methods)
    asked_ks = checked_ks(ks, policy.required_k, policy.least_k)
    if not isinstance(frame, str | Path):
        for warning in open_question_warnings(policy.open_questions()):
            warn(warning)
    progress("reading the table")
    ground: _Ground | _LinkedGround
    if policy.model.is_linked:
        ground = _LinkedGround.of(frame, LinkedProblem(policy))
    else:
        ground = _Ground.of(cast(Source, frame), policy, progress)
    policies, unsuited = asked_for or (proposed_methods(ground.policy), [])
    settings = [_Setting(k, own if k == 1 else own.with_k(k)) for k in asked_ks for own in policies]
    settings = [setting for setting in settings if (setting.label, setting.k) not in skip]
    firsts = [*{setting.label: setting for setting in reversed(settings)}.values()][::-1]
    ground.warm_up(firsts, progress)
    rows = [
        Row(one.method, one.settings, one.settings, k, reason=one.reason)
        for one in unsuited
        for k in asked_ks
    ]
    for number, setting in enumerate(settings):
        tell(progress, f"k={setting.k} {setting.label}", number, len(settings))
        rows.append(_row(ground, setting, attack))
        if on_row is not None:
            on_row(rows[-1])
    return Comparison(
        tuple(sorted(rows, key=Row.rank)),
        policy.model.seed,
        *ground.about,
        policy.required_k,
        label_of(ground.policy),
        ground.guessed,
    )


# What is measured


@dataclass(frozen=True)
class _Setting:
    """A method at a k. policy: that asks for both."""

    k: int
    policy: Policy

    @property
    def label(self) -> str:
        """The method as `methods` names it."""
        return label_of(self.policy)


class _About(NamedTuple):
    """What is said of the data, in the words of `Comparison`."""

    records: int
    people: int
    quasi: tuple[str, ...]
    sha256: str | None


@dataclass(frozen=True)
class _LinkedGround:
    """Linked tables as they were read; policy: with the method that publish takes."""

    own: LinkedSources
    problem: LinkedProblem
    policy: Policy
    guessed: None = None

    @classmethod
    def of(cls, source: object, problem: LinkedProblem) -> "_LinkedGround":
        own = read_linked(source, problem)
        bound_linked(own.tables, problem)  # what is wrong with them is said of all of their rows
        return cls(own, problem, problem.policy.or_method(usual_method(problem.model)))

    @property
    def about(self) -> _About:
        tables, hashed = self.own.tables, self.own.sha256 if self.own.hashes else None
        below = self.problem.model.tables.items()
        columns = ((f"{name}.{c}", a) for name, t in below for c, a in t.attributes.items())
        quasi = (*self.policy.quasi, *(name for name, a in columns if a.role == "quasi"))
        records = sum(table.records for table in tables.values())
        return _About(records, tables[PEOPLE].records, quasi, hashed)

    def warm_up(self, firsts: Sequence[_Setting], progress: Progress) -> None:
        """Runs the first setting of each method once, on the first people."""
        few = replace(self, own=self.first(WARM_UP))
        for setting in firsts:
            progress(f"warming up {setting.label}")
            _row(few, setting, attack=False)

    def first(self, people: int) -> LinkedSources:
        """The first people with all of their rows, as tables of their own."""
        kept: dict[str, Table] = {}
        keys = {table.name: table.key for table in self.problem.given}
        for table in self.problem.given:  # a table stands behind the one that it belongs to
            frame = self.own.tables[table.name].frame
            if table.parent is None:
                frame = frame.head(people)
            else:
                above, key = kept[table.parent].frame, keys[table.parent]
                frame = frame.join(above, left_on=table.link, right_on=key, how="semi")
            kept[table.name] = Table(frame)
        return LinkedSources(kept, {})

    def measured(self, setting: _Setting, row: Row, attack: bool) -> Row:
        """The row with its release as it is measured, without attacks; raises as `_Ground` does."""
        draft = measured_draft(self.own, setting.policy)
        return replace(row, certificate=draft.audit.certificate, seconds=draft.seconds)


@dataclass(frozen=True)
class _Ground:
    """The table as all releases see it: bound and encoded once.

    table: without the cells of its quasi-identifiers. sha256: of its file, if it is one.
    """

    table: Table
    bound: BoundTable
    matrix: Matrix
    whole_table: Classes
    sha256: str | None = None

    @classmethod
    def of(cls, source: Source, policy: Policy, progress: Progress = no_progress) -> "_Ground":
        named = str(source) if isinstance(source, Path) else source
        original = policy.tables.read_original(named)
        table = Table(original.frame)
        progress("checking the data against the policy")
        bound = bound_table(table, policy)
        rest = table.without([attribute.name for attribute in bound.schema.quasi])
        return cls(rest, bound, *bound.method_input(), original.sha256 or None)

    @property
    def policy(self) -> Policy:
        """The policy with the method that publish takes."""
        return self.bound.problem.policy

    @property
    def about(self) -> _About:
        records, subjects = self.table.records, self.bound.encoded.subjects
        people = records if subjects is None else len(np.unique(subjects))
        quasi = tuple(attribute.name for attribute in self.bound.schema.quasi)
        return _About(records, people, quasi, self.sha256)

    @property
    def guessed(self) -> int | None:
        """The records that lack the most frequent label, where the policy names one."""
        if self.bound.label is None or self.policy.model.label is None:
            return None
        return self.table.records - int(np.bincount(self.bound.label).max())

    @property
    def compiled(self) -> bool:
        """Whether all loops are compiled, or only those that can't run without."""
        return self.table.records > FEW_RECORDS

    def warm_up(self, firsts: Sequence[_Setting], progress: Progress) -> None:
        """Runs the first setting of each method once, on the first records."""
        if firsts:
            few = self.first(max(WARM_UP, 4 * max(setting.k for setting in firsts)))
        for setting in firsts:
            progress(f"warming up {setting.label}")
            # whoever asks for the method gets the reason
            with always(self.compiled), suppress(InfeasibleError, InputError):
                find_classes(*few, self.bound.asked.again(setting.policy))

    def measured(self, setting: _Setting, row: Row, attack: bool) -> Row:
        """The row with its release as it is measured; raises InfeasibleError and InputError."""
        problem = self.bound.asked.again(setting.policy)
        with always(self.compiled):
            classes, seconds = find_classes(self.matrix, self.whole_table, problem)
            certificate = self.certificate(problem, classes, attack)
        k_found = classes.search_statistics.get("k")
        return replace(row, certificate=certificate, seconds=seconds, k_found=k_found)

    def first(self, records: int) -> tuple[Matrix, Classes]:
        """The first records as a table of their own."""
        kept = np.arange(self.matrix.records) < records
        matrix = self.matrix.take(np.flatnonzero(kept))
        return matrix, self.whole_table.only(kept, matrix.subjects)

    def certificate(
        self, problem: Problem, classes: Partition | Cut, attack: bool = False
    ) -> Certificate:
        """What readers of such a release would see, measured, and attacked if that is asked."""
        recoded = recode(self.table, replace(self.bound, asked=problem), classes)
        published = Table(recoded.frame)
        measured = measure(published, problem, recoded.truth)
        if not attack:
            return measured.certificate
        encoded = self.bound.encoded
        republish = republisher(self.table, encoded, problem)
        target = AttackedRelease(
            published, measured.release, problem, self.table, encoded, recoded.truth, republish
        )
        found = attacked(measured.certificate, target, AttackRequest(TRIED))
        return found.extended(attacks=found["attacks"] | {"accept": []})  # only publish withholds


def _row(ground: _Ground | _LinkedGround, setting: _Setting, attack: bool) -> Row:
    """The setting's release as it is measured; a method that refuses says why."""
    policy = setting.policy
    parameters = policy.parameters_for(verb_of(policy.model))
    row = Row(policy.method_name, policy.method_settings, parameters, setting.k)
    try:
        return ground.measured(setting, row, attack)
    except (InfeasibleError, InputError) as refused:
        return replace(row, reason="; ".join(refused.said))
