"""Comparison: what every method loses at every k, sorted by loss, and which of them to take."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from shoal.advise.methods import label
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import PromiseReport
from shoal.policy import registry
from shoal.version import VERSION

SCHEMA = "shoal.comparison/1"
NESTED = ("parameters", "promises", "faults")


@dataclass(frozen=True)
class Row:
    """One method at one k: what its release measures, or the reason why there is none.

    settings: parameters that were asked for; parameters: all of them, as used. certificate: None
    where there is no release. seconds: CPU seconds of the method alone. k_found: by a method that
    searches for k under a bound of the release.
    """

    method: str
    settings: Mapping[str, Any]
    parameters: Mapping[str, Any]
    k: int
    certificate: Certificate | None = None
    seconds: float | None = None
    reason: str | None = None
    k_found: int | None = None

    @property
    def label(self) -> str:
        """The method as `methods` names it."""
        return label(self.method, self.settings)

    @property
    def holds(self) -> bool | None:
        """Whether every promise holds on the release; None where there is none."""
        return None if self.certificate is None else self.certificate.holds

    @property
    def measured(self) -> Mapping[str, Any]:
        """The certificate; empty where there is no release."""
        return self.certificate or {}

    @property
    def promises(self) -> Mapping[str, PromiseReport]:
        """The promises of the release by title; a k of 1 asks for one less than other ks."""
        stated = self.measured.get("promises", [])
        return dict(zip(promise_titles(stated), stated, strict=True))

    @property
    def k_text(self) -> str:
        """The k that was asked, and the one that was found."""
        return str(self.k) if self.k_found is None else f"{self.k}, found {self.k_found}"

    def score(self, name: str) -> float | None:
        """A measure of utility or risk; None where it does not apply."""
        if self.certificate is None:
            return None
        tried = attack_figures(self.certificate)
        own = {**self.certificate["utility"], "gcp": self.certificate.loss}
        return {**own, **self.certificate["risk"], **tried}.get(name)

    @property
    def loss(self) -> float:
        """What releases are ranked by: gcp; infinite where there is none."""
        loss = self.score("gcp")
        return float("inf") if loss is None else loss

    def rank(self) -> tuple[int, bool, float]:
        """By ascending k; within it by loss, what keeps every promise first."""
        return self.k, not self.holds, self.loss

    def as_dict(self) -> Mapping[str, Any]:
        """All figures by name; the same names in every row."""
        measured, sizes = self.measured, self.measured.get("classes", {})
        return {
            "label": self.label,
            "method": self.method,
            "parameters": self.parameters,
            "k": self.k,
            "holds": self.holds,
            "reason": self.reason,
            **{name: self.score(name) for name in (*registry.metrics(), *FIGURES)},
            "classes": sizes.get("count"),
            "least_class": sizes.get("min"),
            "mean_class": sizes.get("mean"),
            "max_class": sizes.get("max"),
            "suppressed": self.certificate and self.certificate.rows_lost,
            "promises": measured.get("promises", []),
            "faults": measured.get("faults"),
            "seconds": self.seconds,
        }


@dataclass(frozen=True, repr=False)
class Comparison:
    """Every method at every k on one table: rows by ascending k, and within it by ascending loss.

    subjects: people in the table. quasi: what an attacker is taken to know. sha256: of the file, if
    it was one. asked_k: the policy's. own: the label of the method that publish takes. guessed:
    where the policy names a label, the records that do not have the most frequent one.
    """

    rows: tuple[Row, ...]
    seed: int
    records: int
    subjects: int
    quasi: tuple[str, ...]
    sha256: str | None = None
    asked_k: int | None = None
    own: str = ""
    guessed: int | None = None

    @property
    def ks(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(row.k for row in self.rows))

    @property
    def methods(self) -> tuple[str, ...]:
        """Their labels, least loss first at the k of the recommendation."""
        at = [row for row in self.rows if row.k == self.advised_k]
        return tuple(dict.fromkeys(row.label for row in (*at, *self.rows)))

    @property
    def advised_k(self) -> int | None:
        """The k that is advised about: the policy's where it was compared, else the least."""
        return self.asked_k if self.asked_k in self.ks else min(self.ks, default=None)

    @property
    def recommendation(self) -> "Recommendation | None":
        """The method to take and why; None where none keeps every promise at that k.

        A release at a larger k keeps the promises, too, and may lose less.
        """
        least: dict[str, Row] = {}
        for row in self.rows:
            is_known = row.holds and row.loss < float("inf")
            if is_known and row.k >= (self.advised_k or 0):
                least[row.label] = min(least.get(row.label, row), row, key=lambda one: one.loss)
        known = sorted(least.values(), key=lambda row: row.loss)
        return recommend(known, self.advised_k, len({row.label for row in self.rows}))

    @property
    def promise_titles(self) -> tuple[str, ...]:
        """Those of all releases, each once."""
        return tuple(dict.fromkeys(title for row in self.releases for title in row.promises))

    @property
    def own_choice(self) -> str:
        """Which method publish takes under the policy, whether that is one of these, and if not,
        what else one of its name is asked.
        """
        own = f"publish under this policy takes {self.own}"
        if self.own in self.methods:
            return own
        name, *settings = self.own.split(":")
        alike = next((row for row in self.rows if row.method == name), None)
        known = {} if alike is None else alike.parameters
        differ = [
            f"{key}={known[key]}"
            for key, _, value in (setting.partition("=") for setting in settings)
            if str(known.get(key, value)) != value
        ]
        instead = f"; the {name} compared here has {', '.join(differ)} instead" if differ else ""
        return f"{own}, not compared here{instead}"

    @property
    def releases(self) -> tuple[Row, ...]:
        """The rows that have a release."""
        return tuple(row for row in self.rows if row.certificate is not None)

    def joined(self, earlier: "Comparison") -> "Comparison":
        """With the rows of an earlier comparison of the same table; of the same point, this one's.

        For a comparison that was stopped and continued with `skip`.
        """
        own = {(row.label, row.k) for row in self.rows}
        rest = [row for row in earlier.rows if (row.label, row.k) not in own]
        return replace(self, rows=tuple(sorted((*self.rows, *rest), key=Row.rank)))

    @property
    def broken(self) -> tuple[Row, ...]:
        """The rows whose release breaks a promise: a publish would withhold them."""
        return tuple(row for row in self.releases if not row.holds)

    def ranked(self, k: int) -> list[Row]:
        """The rows of this k that keep every promise, by ascending loss (gcp); ties as named."""
        return sorted(
            (row for row in self.rows if row.k == k and row.holds), key=lambda row: row.loss
        )

    def to_frame(self) -> pl.DataFrame:
        """All figures, a row for each method and k; what was measured of each promise in a column.

        A figure is null where it does not apply, and where there is no release.
        """
        rows = [row.as_dict() for row in self.rows]
        plain = {name: None for row in rows for name in row if name not in NESTED}
        absent = dict.fromkeys(self.promise_titles)
        measured = [
            absent | {title: p["measured"] for title, p in row.promises.items()}
            for row in self.rows
        ]
        return pl.DataFrame(
            [
                {name: row[name] for name in plain} | own
                for row, own in zip(rows, measured, strict=True)
            ],
            infer_schema_length=None,
        )

    def to_json(self) -> str:
        advice = self.recommendation
        content = {
            "schema": SCHEMA,
            "shoal": VERSION,
            "seed": self.seed,
            "records": self.records,
            "subjects": self.subjects,
            "recommendation": None if advice is None else asdict(advice),
            "input": None if self.sha256 is None else {"sha256": self.sha256},
            "rows": [row.as_dict() for row in self.rows],
        }
        return json.dumps(content, indent=2, allow_nan=False) + "\n"


def promise_titles(promises: Sequence[PromiseReport]) -> list[str]:
    """What each promise is called in a head of a table; no two are called the same."""
    titles: list[str] = []
    for promise in promises:
        over = ",".join(promise["attributes"])
        title = promise["model"] + (f"({over})" if over else "")
        count = sum(other == title or other.startswith(f"{title} #") for other in titles)
        titles.append(f"{title} #{count + 1}" if count else title)
    return titles


# Which of the compared methods to take, and why, in words.


NEAR = 0.005  # of loss (gcp): less than most readers can notice
HALF = 0.5  # of the CPU seconds
NOTHING_LEFT = (
    "; but nothing is left to analyse: its release is one class of everybody; ask for less (a"
    " smaller k, a larger t), or publish fewer quasi-identifiers"
)
NOTICED = 1.0  # CPU seconds; below, nobody waits, and which method is faster is chance


@dataclass(frozen=True)
class Recommendation:
    """The method to take at this k, and the reason in a sentence.

    method: as `methods` names it, with its parameters.
    """

    method: str
    k: int
    why: str

    def __str__(self) -> str:
        at = f" at k = {self.k}" if self.k > 1 else ""
        return f"take {self.method}{at}: {self.why}"


def recommend(ranked: Sequence[Row], k: int | None, compared: int) -> Recommendation | None:
    """The method that loses least, or a much faster one that loses hardly more; None of none.

    ranked: by ascending loss, each keeping every promise at this k or a larger one. compared: how
    many methods there are, those that keep none included.
    """
    if not ranked:
        return None
    best, *others = ranked
    is_slow = _seconds(best) >= NOTICED
    near = [other for other in others if is_slow and other.loss <= best.loss + NEAR]
    quick = [other for other in near if _seconds(other) <= HALF * _seconds(best)]
    if quick:
        chosen = min(quick, key=_seconds)
        why = _faster(chosen, best, k)
    else:
        chosen, why = best, _least(best, others, compared, k)
    if chosen.k != k:
        why += f"; {chosen.label} at k = {chosen.k} keeps k = {k}, too"
    is_one_class = chosen.measured.get("classes", {}).get("count") == 1
    return Recommendation(chosen.label, chosen.k, why + (NOTHING_LEFT if is_one_class else ""))


def _seconds(row: Row) -> float:
    return row.seconds or 0.0


def _least(best: Row, others: Sequence[Row], compared: int, k: int | None) -> str:
    if compared == 1:
        return f"no other method was compared; it loses {percent(best.loss)} of the detail"
    if not others:
        return f"it alone keeps every promise, and loses {percent(best.loss)} of the detail"
    return (
        f"of {len(others) + 1} methods that keep every promise it loses least,"
        f" {percent(best.loss)} of the detail; next is {_with_loss(others[0], k)}"
    )


def _faster(chosen: Row, best: Row, k: int | None) -> str:
    return (
        f"it keeps every promise, too, and loses {percent(chosen.loss)} of the detail, hardly more"
        f" than {_with_loss(best, k)}; it takes {_seconds(chosen):.2g} instead of"
        f" {_seconds(best):.2g} CPU seconds"
    )


def _with_loss(row: Row, k: int | None) -> str:
    """A method with what it loses, and at which k where that is not the one advised about."""
    return f"{row.label} with {percent(row.loss)}" + (f" at k = {row.k}" if row.k != k else "")


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"


# What attacks found on a release, in the few numbers that methods are compared by.


TRIED = ("singling-out", "linkability", "inference")
FIGURES = ("inference_gain", "ends_gain", "ends_tries", "linkage")


def attack_figures(certificate: Mapping[str, Any]) -> dict[str, float | None]:
    """By name, null where it could not be measured; empty where nothing was tried.

    inference_gain: of the best attacker on the attribute that it gains most on. ends_tries: ends
    that were looked at, None of few people.
    """
    found = certificate.get("attacks")
    if not found or not all(name in found for name in TRIED):
        return {}
    return {
        "inference_gain": _share(most_gained(certificate)),
        "ends_gain": _share(found["singling-out"]["gain"]),
        "ends_tries": found["singling-out"]["isolate"]["of"],
        "linkage": _share(found["linkability"]["success"]),
    }


def most_gained(certificate: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The gain of guessing, with its interval, on the attribute where it is greatest; None where it
    was not measured.
    """
    tried = (certificate.get("attacks") or {}).get("inference", {})
    known = [one["gain"] for one in tried.values() if _share(one["gain"]) is not None]
    return max(known, key=lambda gain: gain["share"], default=None)


def _share(number: Any) -> float | None:
    return None if number is None else number["share"]
