"""Two published tables, read together: whether they fit each other, and what promises find there.

Everybody may deal the values of a group to its rows, as `joined` does in one way. Whatever is then
measured by group does not depend on how they were dealt.
"""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from shoal.data.certificate_shape import PromiseReport, SizesReport
from shoal.data.classes import Sizes
from shoal.data.recoding import COUNT, DISCLOSED, GROUP
from shoal.data.release import Release
from shoal.data.schema import Kind, Schema
from shoal.data.table import Table, as_text
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.protocols import PrivacyModel

FEWEST = 1


def joined(quasi: pl.DataFrame, sensitive: pl.DataFrame, name: str) -> pl.DataFrame:
    """The first table with a value of its group for each row, under the name of the attribute.

    Raises InputError with everything by which the two do not fit each other.
    """
    InputError.raise_for(_column_findings(quasi, sensitive, name))
    group, values_group = _whole(quasi[GROUP]), _whole(sensitive[GROUP])
    count = _whole(sensitive[COUNT])
    odd = [
        (int((numbers < FEWEST).sum()), what)
        for numbers, what in (
            (group, "groups of the table of quasi-identifiers"),
            (values_group, "groups of the table of sensitive values"),
            (count, "counts"),
        )
    ]
    findings = [f"{many} {what} are not whole numbers from 1 on" for many, what in odd if many]
    findings = findings or _group_findings(group, values_group, count, sensitive[name])
    if findings:
        first, *more = (f"two tables: {found}" for found in findings)
        raise InputError(f"{first}; fetch both tables of one release again", more)
    order = np.argsort(values_group, kind="stable")
    dealt = np.empty(len(group), dtype=np.int64)
    dealt[np.argsort(group, kind="stable")] = np.repeat(order, count[order])
    return quasi.with_columns(sensitive[name].gather(dealt))


def _column_findings(quasi: pl.DataFrame, sensitive: pl.DataFrame, name: str) -> list[str]:
    findings = []
    if GROUP not in quasi.columns or name in quasi.columns:
        findings.append(
            f"two tables: the first must have a column '{GROUP}' and none '{name}'; give the table"
            " of quasi-identifiers first"
        )
    if sorted(sensitive.columns) != sorted([GROUP, name, COUNT]):
        findings.append(
            f"two tables: the second must have the columns '{GROUP}', '{name}' and '{COUNT}'; give"
            " the table of sensitive values that belongs to the first"
        )
    return findings


def _whole(column: pl.Series) -> np.ndarray:
    """(n,) int64, the whole numbers of a column; 0 for whatever is none.

    In text only as they are counted: to whoever joins the tables by it, `01` is not `1`.
    """
    is_number = column.dtype.is_numeric()
    text = column.cast(pl.String) if is_number else as_text(column)
    values = text.cast(pl.Float64, strict=False).fill_null(0.0).to_numpy()
    is_whole = np.isfinite(values) & (values == np.floor(values)) & (values < 2**53)
    if not is_number:
        is_whole = is_whole & text.str.contains(r"\A[1-9][0-9]*\z").fill_null(False).to_numpy()
    return np.where(is_whole, values, 0).astype(np.int64)


def _group_findings(
    group: np.ndarray, values_group: np.ndarray, count: np.ndarray, values: pl.Series
) -> list[str]:
    """How the groups of the two tables differ."""
    numbers, place = np.unique(np.concatenate((group, values_group)), return_inverse=True)
    rows = np.bincount(place[: len(group)], minlength=len(numbers))
    counted = np.zeros(len(numbers), dtype=np.int64)
    np.add.at(counted, place[len(group) :], count)
    listed = np.bincount(place[len(group) :], minlength=len(numbers)) > 0
    alone = int(((rows == 0) | ~listed).sum())
    unequal = int(((rows > 0) & listed & (rows != counted)).sum())
    pairs = pl.DataFrame([pl.Series(GROUP, values_group), as_text(values).alias("value")])
    repeated = pairs.height - pairs.n_unique()
    return [
        f"{many} {what}"
        for many, what in (
            (alone, "groups are in one of them only"),
            (unequal, "groups have counts that do not add up to their rows"),
            (repeated, "values are listed a second time in their group"),
        )
        if many
    ]


@dataclass(frozen=True)
class Groups:
    """The group of each published row, (n,) int32, 0..count-1; promises are measured on these."""

    labels: np.ndarray
    count: int

    def report(self, model: PrivacyModel, release: Release, frame: pl.DataFrame) -> PromiseReport:
        """A promise as a certificate states it."""
        classes = replace(release.classes, labels=self.labels, count=self.count, quasi={})
        return model.report(classes)

    def stated(self) -> dict[str, str | SizesReport]:
        """What a certificate says of such a release beside its measurements."""
        return {"presence": DISCLOSED, "groups": Sizes.of(np.bincount(self.labels)).stated}


def parted(table: Table, name: str, truth: Truth | None = None) -> tuple[Table, Groups]:
    """A joined table without its column of groups, and these.

    name: the sensitive attribute. truth: values are then dealt so that each row has its own, if the
    group has them; as many rows as possible of a group that does not.
    """
    numbers, labels = np.unique(_whole(table.frame[GROUP]), return_inverse=True)
    labels = labels.reshape(-1).astype(np.int32)
    frame = table.frame.drop(GROUP)
    if truth is not None:
        own = truth.original.column(name)
        text = pl.Series(list(own.cells), dtype=pl.String).gather(truth.aligned(own.codes))
        frame = frame.with_columns(_dealt_like(frame[name], text, labels))
    return Table(frame), Groups(labels, len(numbers))


def _dealt_like(shown: pl.Series, own: pl.Series, labels: np.ndarray) -> pl.Series:
    """The values of each group, in the order of its rows' own ones as far as it has them."""
    rows = np.arange(len(labels))
    group = pl.Series("group", labels)
    numbered = []
    for text in (as_text(shown), own):
        frame = pl.DataFrame([group, text.alias("value"), pl.Series("row", rows)])
        numbered.append(
            frame.with_columns(pl.int_range(pl.len()).over("group", "value").alias("n"))
        )
    matched = numbered[1].join(numbered[0], on=["group", "value", "n"], how="inner", suffix="_of")
    source = np.full(len(rows), -1, dtype=np.int64)
    source[matched["row"].to_numpy()] = matched["row_of"].to_numpy()
    unmatched = np.flatnonzero(source < 0)
    if len(unmatched):
        left = np.ones(len(rows), dtype=bool)
        left[source[source >= 0]] = False
        spare = np.flatnonzero(left)
        by_group = unmatched[np.argsort(labels[unmatched], kind="stable")]
        source[by_group] = spare[np.argsort(labels[spare], kind="stable")]
    return shown.gather(source)


def contradicted(table: Table, groups: Groups, original: Table, schema: Schema) -> int:
    """The fewest published records that can't be those of the original, in whatever order.

    0 is proof where all records differ in their quasi-identifiers; of equal ones each might be any.
    """
    names, value = [str(place) for place in range(len(schema.quasi))], str(len(schema.quasi))
    shown = _as_keys(table, schema).with_columns(pl.Series(GROUP, groups.labels))
    own = _as_keys(original, schema)
    rows = shown.group_by(*names, GROUP).agg(pl.len().cast(pl.Int64).alias("rows"))
    people = own.group_by(*names, value).agg(pl.len().cast(pl.Int64).alias("people"))
    # how many rows of a group may have a value, against how often the group lists it
    possible = (
        rows.join(people, on=names, how="inner")
        .group_by(GROUP, value)
        .agg(pl.min_horizontal("rows", "people").sum().alias("possible"))
    )
    listed = shown.group_by(GROUP, value).agg(pl.len().cast(pl.Int64).alias("listed"))
    short = listed.join(possible, on=[GROUP, value], how="left").select(
        (pl.col("listed") - pl.col("possible").fill_null(0)).clip(lower_bound=0).sum()
    )
    many = rows.group_by(names).agg(pl.col("rows").sum())
    had = people.group_by(names).agg(pl.col("people").sum())
    strange = many.join(had, on=names, how="left").select(
        (pl.col("rows") - pl.col("people").fill_null(0)).clip(lower_bound=0).sum()
    )
    return max(int(short.item()), int(strange.item()))


def _as_keys(table: Table, schema: Schema) -> pl.DataFrame:
    """Quasi-identifiers and sensitive values as text, numbers that are equal as the same one. They
    are named by their places, as their own names may be those of counts.
    """
    columns = []
    for place, attribute in enumerate((*schema.quasi, *schema.sensitive)):
        text = as_text(table.frame[attribute.name])
        if attribute.kind is Kind.NUMBER:
            number = text.str.strip_chars().cast(pl.Float64, strict=False)
            text = pl.select(pl.coalesce(number.cast(pl.String), text)).to_series()
        columns.append(text.alias(str(place)))
    return pl.DataFrame(columns)
