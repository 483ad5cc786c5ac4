"""A comparison as rows of text, for the screen and for the page: one row per method and k."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shoal.advise.comparison import Comparison, Row, most_gained, percent
from shoal.data.language import gettext, printable_lines
from shoal.data.warnings import fault_sentences
from shoal.reports.attacks import interval_text
from shoal.reports.text import MEASURES, table_lines

NONE = "-"
MOST_PROMISES = 3  # with a column of their own
GUESSED = (
    "classif.: records labelled wrongly if each gets the most frequent label of its class;"
    " {guessed:,} if each gets that of all"
)
FIGURES = "promises as measured; CPU s of the method alone"


@dataclass(frozen=True)
class FigureColumn:
    """One figure of every release. text: the figure of a row that has a release."""

    title: str
    means: str
    text: Callable[[Row], str]


def columns(comparison: Comparison) -> list[FigureColumn]:
    """The figures that methods are chosen by, few enough to stand side by side."""
    loss, risk, attacks = (_known(group, comparison) for group in ([LOSS], [RISK], ATTACKS))
    promises = [_promise(title) for title in comparison.promise_titles]
    if len(promises) > MOST_PROMISES:
        promises = [ALL_PROMISES]
    starred = any(SUPPRESSED.text(row) not in ("0", NONE) for row in comparison.releases)
    figures = [*loss, *_labelled(comparison), *promises, *risk, *attacks, *SIZES]
    return [*figures, *([SUPPRESSED] if starred else []), SECONDS]


def more_columns(comparison: Comparison) -> list[FigureColumn]:
    """All other figures that some release has, the promises that `columns` sums up included."""
    promises = [_promise(title) for title in comparison.promise_titles]
    others = [one for one in OTHERS if one not in _labelled(comparison)]
    return [*_known(others, comparison), *(promises if len(promises) > MOST_PROMISES else [])]


def _known(group: Sequence[FigureColumn], comparison: Comparison) -> list[FigureColumn]:
    """The measures that some release has."""
    return [one for one in group if any(one.text(row) != NONE for row in comparison.releases)]


def _labelled(comparison: Comparison) -> list[FigureColumn]:
    """The measure of how well labels can be guessed, where the policy names one."""
    return [] if comparison.guessed is None else [CLASSIFICATION]


def reasons(comparison: Comparison) -> list[str]:
    """Why there is no release, once for all methods of a k that say the same."""
    found: dict[tuple[int, str], list[str]] = {}
    for row in comparison.rows:
        if row.reason is not None:
            found.setdefault((row.k, row.reason), []).append(row.label)
    named = {len(comparison.methods): gettext("every method")}
    return [
        f"k={k}, {named.get(len(labels), ', '.join(labels))}: {reason}"
        for (k, reason), labels in found.items()
    ]


def faults(comparison: Comparison) -> list[str]:
    """Every promise that a release breaks, and every record that does not fit the original."""
    found = []
    for row in comparison.broken:
        found += [
            gettext(
                "k={k}, {label}: {title} does not hold: asked {asked}, measured {measured}",
                k=row.k,
                label=row.label,
                title=title,
                asked=_figure(p["asked"]),
                measured=_figure(p["measured"]),
            )
            for title, p in row.promises.items()
            if not p["holds"]
        ]
        found += [f"k={row.k}, {row.label}: {text}" for text in fault_sentences(row.measured)]
    return found


def as_text(comparison: Comparison) -> str:
    """The table in aligned columns, and the notes below it."""
    table = table_lines(table_of(comparison), left=1)
    return printable_lines([*table, "", *notes(comparison)]) + "\n"


def table_of(comparison: Comparison) -> list[list[str]]:
    """The heads of the table, and a row for each method and k."""
    shown = columns(comparison)
    lines = [["method", "k", *(column.title for column in shown)]]
    for row in comparison.rows:
        figures = [NONE if row.certificate is None else column.text(row) for column in shown]
        lines.append([row.label, row.k_text, *figures])
    return lines


def notes(comparison: Comparison) -> list[str]:
    """What loses least, is advised, broken or out of reach, and what the figures are."""
    ranked = [(k, rows[0]) for k in comparison.ks if (rows := comparison.ranked(k))]
    best = [f"k={k}: {row.label} {percent(row.score('gcp'))}" for k, row in ranked]
    advice = comparison.recommendation
    has_several = len(comparison.releases) > 1  # else the advice says what the one release loses
    said = ["least loss (gcp) " + "; ".join(best)] if best and has_several else []
    said += [str(advice)] if advice is not None else []
    said += [comparison.own_choice] if comparison.own else []
    said += [f"BROKEN {fault}" for fault in faults(comparison)]
    said += [f"no release at {reason}" for reason in reasons(comparison)]
    if comparison.releases and comparison.guessed is not None:
        said += [GUESSED.format(guessed=comparison.guessed)]
    return [*said, FIGURES] if comparison.releases else said


# Figures in words


def _whole(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def _figure(value: float | None) -> str:
    return NONE if value is None else f"{value:.4g}" if isinstance(value, float) else f"{value:,}"


def _ratio(value: float | None) -> str:
    return NONE if value is None else f"{value:,.3f}"


def _seconds(row: Row) -> str:
    if row.seconds is None:
        return NONE
    return f"{row.seconds:.3f}" if row.seconds < 100 else f"{row.seconds:,.0f}"


def _measure(
    title: str, name: str, show: Callable[[float | None], str], means: str = ""
) -> FigureColumn:
    return FigureColumn(title, means or MEASURES[name], lambda row: show(row.score(name)))


def _ends(row: Row) -> str:
    gain, tries = percent(row.score("ends_gain")), row.score("ends_tries")
    return gain if tries is None or gain == NONE else f"{gain} of {tries:,}"


def _gain(row: Row) -> str:
    gain = None if row.certificate is None else most_gained(row.certificate)
    return NONE if gain is None else interval_text(gain)


def _size(key: str) -> Callable[[Row], str]:
    return lambda row: _whole(row.measured["classes"][key])


def _promise(title: str) -> FigureColumn:
    def text(row: Row) -> str:
        promise = row.promises.get(title)
        if promise is None:
            return NONE
        return _figure(promise["measured"]) + ("" if promise["holds"] else " BROKEN")

    means = gettext("What was measured of the promise of {title}, in the class where it is worst.")
    return FigureColumn(title, means.format(title=title), text)


LOSS = _measure("gcp", "gcp", percent)
RISK = _measure(
    gettext("prosecutor mean"),
    "prosecutor_mean",
    percent,
    gettext(
        "The chance to pick a person out of the people of a class, on average over all people, for"
        " an attacker who knows that the person is in the release."
    ),
)
ATTACKS = (
    FigureColumn(
        gettext("gain"),
        gettext(
            "How much more often the best attacker guesses a sensitive value of people in the"
            " release than of people who were left out, with its interval at 95 %."
        ),
        _gain,
    ),
    FigureColumn(
        gettext("ends"),
        gettext(
            "How much more often an interval's end points at one person in the release than left"
            " out, and how many ends were tried."
        ),
        _ends,
    ),
    _measure(
        gettext("linked"),
        "linkage",
        percent,
        gettext("People whose record a list of all columns picks."),
    ),
)
CLASSIFICATION = _measure(gettext("classif."), "classification", _whole)
OTHERS = (
    _measure(gettext("generalized"), "generalized_loss", percent),
    _measure(
        gettext("prosecutor max"),
        "prosecutor_max",
        percent,
        gettext("The greatest chance to pick the record of a person known to be in the release."),
    ),
    _measure(gettext("avg size"), "average_class_size", _ratio),
    _measure(gettext("discernibility"), "discernibility", _whole),
    CLASSIFICATION,
    _measure(gettext("sq. error"), "squared_error", _whole),
)
ALL_PROMISES = FigureColumn(
    gettext("promises"),
    gettext("Whether every promise holds; what was measured of each stands among further figures."),
    lambda row: NONE if row.holds is None else gettext("all hold") if row.holds else "BROKEN",
)
SIZES = (
    FigureColumn(gettext("classes"), gettext("Classes of people who look alike."), _size("count")),
    FigureColumn(gettext("largest"), gettext("People in the largest class."), _size("max")),
)
SUPPRESSED = FigureColumn(
    gettext("suppr."),
    gettext("Records that show the suppression mark in every quasi-identifier."),
    lambda row: _whole(row.as_dict()["suppressed"]),
)
SECONDS = FigureColumn(
    gettext("CPU s"),
    gettext("CPU seconds of the method alone, in one run, compiled before."),
    _seconds,
)
