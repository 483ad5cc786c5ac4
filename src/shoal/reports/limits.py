"""What a release does not promise, in sentences that a report shows."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import ASSUMED, rows_of_nobody
from shoal.data.language import gettext, ngettext
from shoal.data.release import PublishedColumn, Release
from shoal.data.schema import Role, Shown
from shoal.data.true_values import TrueValues
from shoal.data.warnings import ROWS_LINKED
from shoal.reports.in_short import several_classes
from shoal.reports.pages import Measured, listed

ORDERS: dict[str | None, str] = {
    "input": gettext(
        "Rows stand in the order of the input. Anyone who knows that order, such as an"
        " alphabetical list, can tell who is who; leave 'order: input' out of the policy."
    ),
    "content": gettext(
        "Rows are sorted by what they show, so their order tells nothing about the order of"
        " the input."
    ),
    None: gettext(
        "Rows are not sorted by what they show. Where they are in the order of the input, anyone"
        " who knows that order can tell who is who."
    ),
}


def limits(measured: Measured) -> Iterator[tuple[str, str]]:
    """What is not promised, and why."""
    schema, certificate = measured.schema, measured.certificate
    quasi = ", ".join(a.name for a in schema.quasi)
    if certificate.get("presence"):
        yield (
            gettext("Who is in the table, and whose row it is."),
            gettext(
                "The method publishes {quasi} as in the table. It hides which sensitive value of a"
                " group is a person's, and nothing else. Whoever knows the values of others in a"
                " group, or learns which values go with which quasi-identifiers, guesses better"
                " than the promises say.",
                quasi=quasi,
            ),
        )
    if certificate.get("people") == "assumed":
        yield (
            gettext("Every record is taken to be a person."),
            gettext(
                "The policy names no subject. A person with several records hides among fewer"
                " others than the figures say, and may be in several classes."
            ),
        )
    if certificate["counted"] == "rows":
        yield (
            gettext("Rows were counted, not people."),
            gettext(
                "The file does not say who a record belongs to. A person with several records"
                " hides among fewer others than the figures say."
            ),
        )
    if several := several_classes(certificate):
        yield gettext("One person, several rows."), f"{several}."
    yield from _sensitive_limits(measured)
    intersect = gettext("Anyone with another release about the same people can intersect the two.")
    judged = gettext("This report looks at this one alone.")
    if certificate.get("beside"):
        judged = gettext("This report looks at this one and at those that were named.")
    yield (gettext("Several releases."), f"{intersect} {judged}")
    yield (
        gettext("Other knowledge."),
        gettext(
            "The promises hold against somebody who knows {quasi}. They say nothing about an"
            " attacker who knows more: a sensitive value of somebody, or one that somebody can't"
            " have.",
            quasi=quasi,
        ),
    )
    if stood_for := [a.name for a in schema.quasi if a.shown in (Shown.MEDIAN, Shown.MODE)]:
        yield (
            gettext("Cells of {names} that cover the truth.", names=", ".join(stood_for)),
            gettext(
                "A class shows its median or its most frequent value, which is somebody's own; what"
                " the others have is not within the cell."
            ),
        )
    if means := [a.name for a in schema.quasi if a.shown in (Shown.MEAN, Shown.BOTH)]:
        yield (
            gettext("Means of {means}.", means=", ".join(means)),
            gettext(
                "Anyone who knows all values of a class but one can compute that one. Without a"
                " range beside it, a mean does not tell how far values lie from it."
            ),
        )
    if plain := [a.name for a in schema.with_role(Role.PLAIN)]:
        yield (
            gettext("Columns that are published as they are."),
            gettext(
                "No promise is about {plain}: whoever knows them finds people in smaller classes,"
                " or alone.",
                plain=", ".join(plain),
            ),
        )
    linked = linked_rows(certificate)
    yield gettext("Can rows of one person be linked?"), f"{linked[:1].upper()}{linked[1:]}."
    output = certificate.get("output") or {}
    order = output.get("dialect", {}).get("order", schema.render.order)
    yield (gettext("The order of the rows."), ORDERS[order])
    if certificate["records"].get("withheld"):
        yield (
            gettext("Withheld records."),
            gettext(
                "They are in no class and count in no promise; their other columns are still"
                " published where the policy allows it. Whoever finds no class for a person knows"
                " that it is one of them."
            ),
        )
    yield (
        gettext("Statistics about groups."),
        gettext(
            "The release is meant to be learned from. What is true of most people of an age or a"
            " place is true of those who are not in it, too; this is not differential privacy."
        ),
    )


def _sensitive_limits(measured: Measured) -> Iterator[tuple[str, str]]:
    """How far sensitive values are protected, attribute by attribute."""
    sensitive = {p: set(p.sensitive) for p in measured.policy.build_promises()}
    agreed = _agreeing_classes(measured.release)
    for attribute in measured.schema.sensitive:
        models = sorted({p.model for p, names in sensitive.items() if attribute.name in names})
        if not models:
            found = gettext(
                "In {agreed:,} of {classes:,} classes all records agree on it, so everyone who is"
                " known to be in such a class has that value.",
                agreed=agreed[attribute.name],
                classes=measured.release.classes.count,
            )
            yield (
                gettext("Sensitive values of {name}.", name=attribute.name),
                gettext(
                    "No promise was asked for it, so a class hides who has which value, but not"
                    " which values there are. {found}",
                    found=found,
                ),
            )
        elif "t-closeness" not in models:
            yield (
                gettext("Good guesses about {name}.", name=attribute.name),
                gettext(
                    "{models} keeps several values possible, but some may be far likelier in a"
                    " class than in the whole table; t-closeness bounds that.",
                    models=gettext(" and ").join(models),
                ),
            )


def _agreeing_classes(release: Release) -> dict[str, int]:
    """Classes in which every record has the same value, by sensitive attribute."""
    kept = np.flatnonzero(release.classes.labels >= 0)
    labels = release.classes.labels[kept]
    found = {}
    for name, column in release.classes.sensitive.items():
        codes = column.codes[kept]
        one = np.zeros(release.classes.count, dtype=np.int64)
        one[labels] = codes
        differ = np.bincount(labels[codes != one[labels]], minlength=release.classes.count)
        found[name] = int((differ == 0).sum())
    return found


# Who pays most: how unevenly the loss of a release falls on its rows.


NEARLY_ALL = 0.8  # of a column's domain: readers learn next to nothing


@dataclass(frozen=True)
class WhoPays:
    """Mean share of detail that rows lose; suppressed rows lose all of it.

    tenth: of the tenth of the rows that lose most. mostly: the columns in which these lose more
    than on average, worst first. half: of the half that loses least. worst: of the class that loses
    most, suppressed rows aside. rows: in that class. columns: of which it shows next to nothing.
    """

    tenth: float
    mostly: tuple[str, ...]
    half: float
    worst: float
    rows: int
    columns: tuple[str, ...]


def who_pays(release: Release) -> WhoPays | None:
    """How unevenly the loss falls; None where a cell's width is unknown, or of nothing."""
    if not release.columns:
        return None
    widths = np.stack([column.widths[column.codes] for column in release.columns])
    if release.starred is not None:
        widths = np.where(release.starred, 1.0, widths)
    loss = widths.mean(axis=0)
    if not loss.size or np.isnan(loss).any():
        return None
    order = np.argsort(loss, kind="stable")
    tenth, half = order[-max(loss.size // 10, 1) :], order[: max(loss.size // 2, 1)]
    by_column = widths[:, tenth].mean(axis=1)
    above = np.flatnonzero(by_column > by_column.mean() * (1 + 1e-9))
    shown = loss if release.starred is None else np.where(release.starred, -1.0, loss)
    at = int(np.argmax(shown))
    same = np.ones(loss.size, dtype=bool)
    for column in release.columns:
        same &= column.codes == column.codes[at]
    wide = zip(release.columns, widths[:, at], strict=True)
    return WhoPays(
        tenth=float(loss[tenth].mean()),
        mostly=tuple(release.columns[j].name for j in above[np.argsort(-by_column[above])]),
        half=float(loss[half].mean()),
        worst=float(max(shown[at], 0.0)),
        rows=int(same.sum()) if shown[at] >= 0 else 0,
        columns=tuple(column.name for column, width in wide if width >= NEARLY_ALL),
    )


@dataclass(frozen=True)
class Kept:
    """What readers still see of a column.

    exact: records that show their one value. covered: of numbers, the share of all records whose
    values the cell of a record covers, on average; None of others. hidden: records that show
    nothing of it.
    """

    exact: int
    covered: float | None
    hidden: int = 0


def kept(release: Release) -> dict[str, Kept]:
    """By quasi-identifier, what readers still see of it; suppressed records show nothing."""
    found = {}
    for column in release.columns:
        shown, true = release.cell_counts[column.name], release.originals.get(column.name)
        exact = shown[(column.lo == column.hi) & (column.widths == 0)].sum()
        hidden = shown[np.isneginf(column.lo)].sum()
        found[column.name] = Kept(int(exact), _covered(column, true), int(hidden))
    return found


def _covered(column: PublishedColumn, true: TrueValues | None) -> float | None:
    values = np.array([]) if true is None else true.numbers
    values = np.sort(values[~np.isnan(values)])
    lo, hi = (column.lo, column.hi) if column.observed_bounds is None else column.observed_bounds
    inside = np.searchsorted(values, hi, "right") - np.searchsorted(values, lo)
    inside = np.where(np.isneginf(column.lo), len(values), inside)
    often = np.bincount(column.codes, minlength=len(inside)) * ~np.isnan(column.lo)
    if not len(values) or not often.any():
        return None
    return float(np.average(inside / len(values), weights=often))


def hidden_from(release: Release) -> dict[str, int]:
    """By column, how many people have a record that hides it entirely; records, where each is taken
    to be a person. Suppressed records hide every column. Without columns that hide nothing.
    """
    whose = release.classes.subjects
    marked = {column.name: np.isneginf(column.lo)[column.codes] for column in release.columns}
    people = {
        name: int(mark.sum()) if whose is None else len(np.unique(whose[mark]))
        for name, mark in marked.items()
    }
    return {name: count for name, count in people.items() if count}


KEYS = {
    "release": gettext("yes, by random numbers that are new in this release"),
    "keyed": gettext("yes, by pseudonyms that are the same in each release"),
    "none": gettext("no: the release has no keys"),
}


def linked_rows(certificate: Certificate) -> str:
    """Whether the rows of one person stay linkable, and by what."""
    if certificate.get("linked"):
        return KEYS[certificate["linked"]["keys"]]
    columns, records = certificate.get("columns") or [], certificate["records"]["out"]
    if certificate.get("people") == ASSUMED or certificate["counted"] == "rows":
        return gettext("not measured: every row is taken to be a person")
    if marks := {c["name"]: c["role"] for c in columns if c["technique"] == "pseudonym"}:
        whom = gettext("households") if {*marks.values()} == {"household"} else gettext("people")
        return gettext("yes, by {names}: pseudonyms of {whom}", names=listed([*marks]), whom=whom)
    invented = rows_of_nobody(certificate)
    said = ngettext("; {count:,} row is invented", "; {count:,} rows are invented", invented)
    nobodys = said if invented else ""
    if certificate["subjects"] == records - invented:
        return gettext("everybody has one row") + nobodys
    linked = next((one.text for one in certificate.warnings if one.code == ROWS_LINKED), "")
    if linked:  # says by which columns, and who is then left among few
        return gettext("yes: {linked}", linked=linked.partition(";")[0])
    if plain := [c["name"] for c in columns if c["role"] == "plain"]:
        return gettext("perhaps, by values of {names}, published as they are", names=listed(plain))
    unmarked = gettext(
        "no column marks them ({rows:,} rows of {people}), but whoever knows what several rows of"
        " somebody show may find them together",
        rows=records - invented,
        people=people_of(certificate),
    )
    return unmarked + nobodys


def people_of(certificate: Certificate) -> str:
    """How many people there are, in words."""
    if certificate.get("subjects") is None:
        return gettext("people who were not counted")
    return ngettext("{count:,} person", "{count:,} people", certificate["subjects"])


def row_order(certificate: Certificate) -> str:
    """How rows stand; nothing where it is not known, as an audit that found neither may have it."""
    if certificate.get("linked"):
        is_drawn = certificate["verb"] == "publish"
        return gettext("drawn by chance, so it says nothing of its own") if is_drawn else ""
    dialect = (certificate.get("output") or {}).get("dialect") or {}
    order = dialect.get("order", "input")
    if order == "content":
        return gettext("by what they show, so it says nothing of its own")
    return gettext("as in the original, which may tell who is who") if order else ""
