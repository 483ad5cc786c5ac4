"""One check of a release, what a certificate states that checks compare with, and where it
contradicts itself.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shoal.data.certificate import CLOSE, EARLIER, Certificate, is_close
from shoal.data.certificate_shape import BY_RELEASE, UNKNOWN, ColumnReport, PromiseReport
from shoal.data.findings import some_named
from shoal.data.language import printable
from shoal.data.notebook import Figures
from shoal.data.numbers import exact_sum
from shoal.data.single_ends import SINGLE_ENDS, TOLERATED
from shoal.data.warnings import (
    GRAVE,
    REMOVED_ROLES,
    TOGETHER_BELOW,
    WITHHELD_FEW,
    ReleaseWarning,
    assumes_people,
    fault_sentence,
)
from shoal.errors import in_python
from shoal.policy import registry

Path = tuple[str | int, ...]
K_ANONYMITY = "k-anonymity"
GRAVE_FINDING = "grave finding"
OTHER_RELEASES = "other releases"


@dataclass(frozen=True, repr=False)
class Check(Figures):
    """What one check found. ok: None where it could not be made. short: lines for a terminal.
    said: the text as a command says it, with options in place of keyword arguments.
    """

    name: str
    ok: bool | None
    text: str
    short: tuple[str, ...] = ()
    said: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # what a certificate names may be a forger's
        object.__setattr__(self, "said", printable(self.text))
        object.__setattr__(self, "text", in_python(self.said))
        object.__setattr__(self, "short", tuple(map(printable, self.short)))

    @property
    def mark(self) -> str:
        if self.name == GRAVE_FINDING:
            return "!"
        return "--" if self.ok is None else "ok" if self.ok else "FAIL"

    def __str__(self) -> str:
        return in_python(self.lines)

    @property
    def lines(self) -> str:
        """What a command prints."""
        return "\n".join(f"{self.mark:<4} {self.name}: {one}" for one in self.short or (self.said,))

    def report(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"name": self.name, "ok": self.ok, "text": self.said}


@dataclass(frozen=True)
class Stated:
    """What a certificate states; None for what it does not.

    compared: the paths of keys that some check has compared with the file, the policy or the
        original, each with all that stands below it. unstated: the parts of which something was
        measured that is not stated. differences: what is stated and what was measured, where these
        differ. findings: those stated, in the words of this version where they were found again.
    """

    certificate: Certificate
    compared: set[Path] = field(default_factory=set)
    unstated: set[str] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)

    @cached_property
    def findings(self) -> list[ReleaseWarning]:
        return [*self.certificate.warnings]

    @property
    def is_earlier(self) -> bool:
        """Whether it is of the schema before this one."""
        return bool(self.certificate["schema"] == EARLIER)

    @property
    def verb(self) -> str:
        return str(self.certificate["verb"])

    @property
    def promises(self) -> list[PromiseReport]:
        return list(self.certificate["promises"])

    @property
    def faults(self) -> list[str]:
        """The faults that it states of its own release."""
        faults = self.at("faults") or {}
        return [fault_sentence(fault, count) for fault, count in faults.items() if count]

    @property
    def counts_choices(self) -> bool:
        """Whether k is of people who fit some known rows or a known date, who may be fewer than a
        whole class.
        """
        linked = self.at("linked") or {}
        is_exact = self.at("linked", "anchor", "gaps") == "exact"
        return is_exact or linked.get("known_rows") is not None or linked.get("keys") == "none"

    @property
    def asked_k(self) -> list[float]:
        """Every k that a promise asks."""
        return [promise["asked"] for promise in self.promises if promise["model"] == K_ANONYMITY]

    @cached_property
    def published(self) -> list[str]:
        """The names of the published columns, in their order."""
        columns = self.at("columns") or []
        return [column["name"] for column in columns if column["technique"] != "removed"]

    @property
    def grouped(self) -> list[str]:
        """The columns that classes and promises are made of, as the certificate names them."""
        columns = self.at("columns") or []
        return [column["name"] for column in columns if column["role"] in ("quasi", "sensitive")]

    @property
    def grave(self) -> list[Check]:
        """The findings for which a release whose promises hold is not plainly good."""
        return [
            Check(GRAVE_FINDING, None, finding.text)
            for finding in self.findings
            if finding.severity == GRAVE
        ]

    def at(self, *path: str | int) -> Any:
        """What stands there."""
        value: Any = self.certificate
        for key in path:
            if isinstance(value, list) and isinstance(key, int):
                value = value[key] if key < len(value) else None
            else:
                value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def lacks(self, name: str) -> Check:
        return Check(name, None, "a certificate of schema 1 names none")

    def note(self, *path: str | int) -> None:
        """Notes that what stands here was compared."""
        self.compared.add(path)

    def compare(self, found: Any, *path: str | int) -> None:
        """Notes that what stands there was compared with what was found, and whether it differs."""
        self.note(*path)
        self.differ(self._name(path), self.at(*path), found)

    def differ(self, name: str, stated: Any, found: Any) -> None:
        """Notes both figures unless they are equal; of a part, those below it."""
        if isinstance(stated, Mapping) and isinstance(found, Mapping):
            for key in {**stated, **found}:
                self.differ(f"{name}, {key}", stated.get(key), found.get(key))
        elif not is_close(stated, found):
            both = f"{figure(stated)} stated, {figure(found)} measured"
            self.differences.append(f"{name}: {both}")

    def _name(self, path: Path) -> str:
        """A key as a person reads it: of a promise or a column, whose it is."""
        first, *more = path
        about = str(first)
        if first == "risk" and more:
            about = f"{RISKS[str(more.pop())]} (a share)"
        if len(path) > 1 and isinstance(path[1], int):
            whose = self.at(*path[:2])
            about = whose["model"] if first == "promises" else f"column '{whose['name']}'"
            more = [key for key in more[1:] if key != "measured"]
        return ", ".join([about, *(str(key).replace("_", " ") for key in more)])


def figure(value: Any) -> str:
    """A figure of a certificate as a sentence has it."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "yes", False: "no"}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def broken_text(promise: PromiseReport) -> str:
    """A promise that does not hold, with both figures."""
    asked, measured = figure(promise["asked"]), figure(promise["measured"])
    return f"{promise['model']}: {asked} asked, {measured} measured"


# Contradictions: what a certificate states and its own figures deny.
#
# They need neither the file nor the policy, so no forger can keep them from being found.


MEASURED = ("distinct_in", "distinct_out", "loss", "single_ends", "alone_in")
OF_QUASI = ("loss", "single_ends", "round")
EACH_A_PERSON = ("publish", "audit", "fuse")  # a ledger's invented rows are nobody


def consistency(stated: Stated) -> Check:
    """Whether the figures of a certificate fit one another."""
    found = list(dict.fromkeys(contradictions(stated)))
    if found:
        return Check("figures", False, f"contradict one another: {some_named(found)}")
    return Check("figures", True, "fit one another")


def contradictions(stated: Stated) -> Iterator[str]:
    """The keys that contradict others, with what they contradict."""
    yield from _records(stated)
    yield from _people(stated)
    groups = stated.at("classes")
    yield from _sizes("classes", groups, _most_people(stated))
    if stated.at("measured") != BY_RELEASE:
        yield from () if stated.counts_choices else _risk(stated)
        yield from _utility(stated)
    yield from _promises(stated)
    yield from _attacks(stated)
    if stated.at("together") is not None:
        yield from _together(stated)
    if not stated.is_earlier:
        yield from _columns(stated)
        yield from _warnings(stated)


def _records(stated: Stated) -> Iterator[str]:
    records = stated.at("records")
    came, out, starred = records["in"], records["out"], records["suppressed"]
    if starred > out:
        yield "more records are suppressed than published"
    if records.get("withheld") not in (None, 0, starred):
        yield "only a part of the suppressed records is withheld"
    if came is None:
        return
    is_whole = stated.verb == "publish"  # all others may leave records for later, or out
    if came < out or (is_whole and came != out):
        yield f"{out} records of {came} are published"


def _people(stated: Stated) -> Iterator[str]:
    people, subjects = stated.at("people"), stated.at("subjects")
    out, is_rows = stated.at("records", "out"), stated.at("counted") == "rows"
    if people is not None and is_rows != (people == UNKNOWN):
        yield "'counted' is not what 'people' says"
    if stated.verb in ("publish", "fuse") and is_rows:
        yield f"'shoal {stated.verb}' always counts people"
    if subjects is None:
        return
    if subjects > out:
        yield f"{subjects} people in {out} records"
    each = people in ("assumed", UNKNOWN) or is_rows or stated.verb == "fuse"
    if each and stated.verb in EACH_A_PERSON and subjects != out:
        yield f"{subjects} people in {out} records that each count as one"


def _most_people(stated: Stated) -> int:
    """The records that are in classes."""
    records = stated.at("records")
    return int(records["out"]) - int(records.get("withheld") or 0)


def _sizes(name: str, groups: Mapping[str, Any], most: int) -> Iterator[str]:
    """Groups of people: the smallest, mean and largest fit each other, and all fit the records."""
    count, least, mean, largest = (groups[key] for key in ("count", "min", "mean", "max"))
    if count is None:
        if least is not None and least > most:
            yield f"{name}: {least} people in {most} records"
        return
    known = [one is not None for one in (least, mean, largest)]
    if any(known) != bool(count) or all(known) != bool(count):
        yield f"{name}: {count} classes without sizes, or sizes without classes"
        return
    if not count:
        return
    total = count * mean
    if not least <= mean * (1 + CLOSE) or not mean <= largest * (1 + CLOSE):
        yield f"{name}: the mean is not between the smallest and the largest"
    if total > most * (1 + CLOSE):
        yield f"{name}: {total:.0f} people in classes, of {most} records"
    elif abs(total - round(total)) > 1e-6 * max(total, 1):
        yield f"{name}: no whole number of people has this mean"


RISKS = {
    "prosecutor_max": "the prosecutor's greatest chance",
    "prosecutor_mean": "the prosecutor's mean chance",
    "journalist_max": "the journalist's greatest chance",
    "marketer": "the marketer's mean chance",
}
"""What the risks of a certificate are called."""


def _is_risk_of(size: Any, risk: Any) -> bool:
    """Whether this is the risk of somebody in a class of this size."""
    return is_close(risk, 1 / size if size else None)


def _risk(stated: Stated) -> Iterator[str]:
    risk, groups = stated.at("risk"), stated.at("classes")
    if not _is_risk_of(groups["min"], risk["prosecutor_max"]):
        yield f"{RISKS['prosecutor_max']} is not that of the smallest class"
    if not _is_risk_of(groups["mean"], risk["prosecutor_mean"]):
        yield f"{RISKS['prosecutor_mean']} is not that of the mean class"
    if stated.at("attacks", "population") is not None:
        return  # then these are about a population that is known
    for name, same in (("journalist_max", "prosecutor_max"), ("marketer", "prosecutor_mean")):
        if not is_close(risk[name], risk[same]):
            yield f"{RISKS[name]} is not {RISKS[same]}, though no population is known"


def _utility(stated: Stated) -> Iterator[str]:
    utility, records = stated.at("utility"), stated.at("records")
    out, starred, count = records["out"], records["suppressed"], stated.at("classes", "count")
    discernible, wrong = utility.get("discernibility"), utility.get("classification")
    if discernible is not None:
        least = (out - starred) ** 2 / max(count, 1) + starred * out
        if not least * (1 - CLOSE) <= discernible <= out * out:
            yield "'utility.discernibility' does not fit the number of records and classes"
    if wrong is not None and not 0 <= wrong <= out:
        yield "'utility.classification' counts more than all records"
    negative = [name for name, score in utility.items() if score is not None and score < 0]
    yield from (f"'utility.{name}' is below 0" for name in negative if "squared" in name)
    mean = mean_loss(stated.at("columns") or [])
    if mean is not None and not is_close(utility.get("gcp"), mean):
        yield "'utility.gcp' is not the mean loss of the quasi-identifiers"


def mean_loss(columns: Sequence[ColumnReport]) -> float | None:
    """The mean over published quasi-identifiers; None where that of some is not known."""
    shown = [column for column in columns if column["technique"] != "removed"]
    losses = [column["loss"] for column in shown if column["role"] == "quasi"]
    known = [loss for loss in losses if loss is not None]
    return exact_sum(known) / len(known) if known and len(known) == len(losses) else None


def _promises(stated: Stated) -> Iterator[str]:
    most = _most_people(stated)
    for promise in stated.promises:
        model, measured = promise["model"], promise["measured"]
        if promise["holds"] and _is_worse(promise):
            yield f"{model}: said to hold, though {promise['asked']} is asked, {measured} measured"
        if model != K_ANONYMITY:
            continue
        if measured is not None and measured > most:
            yield f"{model}: {measured} people alike, of {most} records"
        groups, risk = promise.get("classes"), promise.get("risk")
        if groups is None or risk is None or stated.counts_choices:
            continue
        yield from _sizes(model, groups, most)
        yield from _of_groups(promise, stated.at("classes"))


def _of_groups(promise: Mapping[str, Any], all_together: Mapping[str, Any]) -> Iterator[str]:
    """What k-anonymity says of its own groups, against what was measured and all attributes."""
    groups, risk = promise["classes"], promise["risk"]
    if not is_close(promise["measured"], groups["min"]):
        yield f"{K_ANONYMITY}: what is measured is not its smallest class"
    if not all(
        _is_risk_of(groups[of], risk[key]) for of, key in (("min", "max"), ("mean", "mean"))
    ):
        yield f"{K_ANONYMITY}: its risk is not that of its classes"
    whole = all_together["count"]
    if not promise["attributes"] and not all(
        is_close(groups[key], all_together[key]) for key in groups.keys() & all_together.keys()
    ):
        yield f"{K_ANONYMITY}: over all quasi-identifiers, but its classes are not 'classes'"
    elif whole and groups["count"] and groups["count"] > whole:
        yield f"{K_ANONYMITY}: more classes over some quasi-identifiers than over all"


def _is_worse(promise: PromiseReport) -> bool:
    """Whether what was measured does not reach what is asked, beyond all rounding."""
    asked, measured = promise["asked"], promise["measured"]
    slack = CLOSE * max(1.0, abs(asked))
    model = registry.models().get(promise["model"])
    if measured is not None and model is not None:
        short = asked - measured if model.higher_is_better else measured - asked
        if short > slack:
            return True
    k, people = promise.get("k"), promise.get("k_measured")
    return isinstance(k, int) and isinstance(people, int) and people < k


def _attacks(stated: Stated) -> Iterator[str]:
    for row in stated.at("attacks", "accept") or []:
        upper = row["upper"]
        if row["holds"] is True and (upper is None or upper > row["at_most"]):
            yield f"attacks: '{row['measure']}' is accepted above its limit"
        if row["holds"] is None and stated.verb == "publish":
            yield f"attacks: '{row['measure']}' was not judged, though the original was there"


def _together(stated: Stated) -> Iterator[str]:
    found, subjects, groups = (stated.at(key) for key in ("together", "subjects", "classes"))
    least, people = found["min"], found["people"]
    if found["asked"] != max(stated.asked_k, default=None):
        yield "'together.asked' is not the largest k that a promise asks"
    if least != groups["min"]:
        yield "'together.min' is not the smallest class"
    if subjects is not None and people > subjects:
        yield "'together.people' are more than 'subjects'"
    total = groups["count"] * (groups["mean"] or 0)
    if not (groups["max"] or 0) <= people <= total * (1 + CLOSE):
        yield "'together.people' are fewer than the largest class has, or more than all classes"
    if max(found["alone"], found["below"] or 0, found.get("in_several", 0)) > people:
        yield "'together' counts more people alone, below, or in several classes than there are"
    if (found["alone"] > 0) != (least == 1):
        yield "'together.alone' is not what 'together.min' says"
    if found["asked"] is None or found["below"] is None:
        return
    if (found["below"] > 0) != (least is not None and least < found["asked"]):
        yield "'together.below' is not what 'together.min' says"


def _columns(stated: Stated) -> Iterator[str]:
    columns = stated.at("columns")
    names = [column["name"] for column in columns]
    if len(set(names)) < len(names):
        yield "a column is described twice"
    for number, column in enumerate(columns):
        yield from _figures_of(column, f"columns[{number}]", stated.at("records"))
        yield from _use_of(column, f"columns[{number}]", stated)
    shown = {column["name"] for column in columns if column["role"] == "quasi"}
    for promise in stated.promises:
        known = shown if promise["model"] == K_ANONYMITY else {*names}
        if {*promise["attributes"]} - known:
            yield f"{promise['model']}: is about columns that are not described"
    together = stated.at("together", "attributes")
    if together is not None and {*together} != shown:
        yield "'together' is not about the quasi-identifiers that 'columns' names"


def _figures_of(column: ColumnReport, name: str, records: Mapping[str, Any]) -> Iterator[str]:
    """Figures that a column can't have."""
    if (column["distinct_out"] or 0) > records["out"]:
        yield f"'{name}' shows more values than there are records"
    if (column["distinct_in"] or 0) > (records["in"] or math.inf):
        yield f"'{name}' had more values than there were records"
    lacks: tuple[str, ...] = ()
    if column["technique"] in ("removed", "derived"):
        lacks = (*MEASURED, "round")
    elif column["role"] != "quasi":
        lacks = OF_QUASI
    elif column["type"] == "category":
        lacks = ("round", "single_ends")
    for key in lacks:
        if column.get(key) is not None:
            yield f"'{name}' has no '{key}' that could be stated"


def _use_of(column: ColumnReport, name: str, stated: Stated) -> Iterator[str]:
    """What a column is for, against what became of it."""
    faults = stated.at("faults") or {}
    if (column["role"] == "derived") != (column["technique"] == "derived"):
        yield f"'{name}' is derived by its role or its technique alone"
    if (column["role"] == "derived") != (column["derived_from"] is not None):
        yield f"'{name}' does not say what it is derived from, or is not derived"
    elif column["derived_from"] is not None and column["derived_from"] not in stated.published:
        yield f"'{name}' is derived from what is not published"
    is_kept = column["technique"] not in ("removed", "pseudonym")
    if column["role"] in REMOVED_ROLES and is_kept and not faults.get("not_removed"):
        yield f"'{name}' is published, though its role is to be removed"


def _warnings(stated: Stated) -> Iterator[str]:
    codes = [warning["code"] for warning in stated.at("warnings")]
    records, together = stated.at("records"), stated.at("together")
    if any(map(assumes_people, stated.at("warnings"))) and stated.at("people") != "assumed":
        yield "warning 'people-assumed', though people are not assumed"
    if WITHHELD_FEW in codes and not records["withheld"]:
        yield f"warning '{WITHHELD_FEW}', though nobody is withheld"
    if 0 < records["withheld"] < max(stated.asked_k, default=0) and WITHHELD_FEW not in codes:
        yield f"the warning '{WITHHELD_FEW}' is missing"
    single = sum((column["single_ends"] or 0) > TOLERATED for column in stated.at("columns"))
    if single != codes.count(SINGLE_ENDS):
        yield f"the warnings '{SINGLE_ENDS}' are not those that 'columns' asks for"
    if together is None or not all(promise["holds"] for promise in stated.promises):
        return
    below = bool(together["below"])
    if below != (TOGETHER_BELOW in codes):
        yield f"the warning '{TOGETHER_BELOW}' is not what 'together' says"
