"""A scikit-learn transformer: k-anonymous columns for a model, all values recoded alike."""

from collections.abc import Mapping
from typing import Any, cast, get_args

import numpy as np
import polars as pl

from shoal.auditor.release_frame import Numbers, numbers_of
from shoal.connectors.frames import FrameT, as_it_is, like, table_of
from shoal.connectors.location import FRAME, Location
from shoal.data import progress
from shoal.data.hierarchies.bins import Bins
from shoal.data.hierarchies.dates import Dates
from shoal.data.numbers import parse_numbers
from shoal.data.option import require_choice
from shoal.data.recoding import GlobalRecoding
from shoal.data.schema import Kind
from shoal.data.table import Table, as_text
from shoal.data.warnings import warn
from shoal.errors import InputError, MissingExtraError
from shoal.policy.binding.table import bound_table, rule_of
from shoal.policy.from_columns import (
    BESIDE,
    Names,
    NamesOrSettings,
    Settings,
    knowing_its_keywords,
    words_of_call,
    words_of_frame,
)
from shoal.policy.policy import Policy, PolicyLike
from shoal.recoding.recode import cells_of, suppress_cells
from shoal.reports.publication import warn_of
from shoal.tables.global_recoding import texts_of_round
from shoal.tables.publish import publication
from shoal.tables.request import NOTHING_ELSE

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise MissingExtraError.of("shoal.sklearn needs scikit-learn", "ml") from None

METHOD = "full-domain"
progress.in_python = True


class Anonymizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Recodes quasi-identifiers by levels that keep every promise on the records it was fitted to.

    `fit` publishes a frame by the method `full-domain` and keeps its plan; `transform` applies the
    plan: rows stay in their order; a value that `fit` did not see, such as a day or a code, becomes
    the published group that covers it by its hierarchy, else `*`, as a number beyond its bins; one
    beyond a domain is refused, as is a column of texts none of which `fit` saw. Promises hold for
    the records of `fit` and no others: what `transform` makes of others is for a model alone.

    policy: as of `shoal.publish`; or, without one, its words. Beside a policy go k, method, seed,
    read and missing_values. Parameters of `full-domain` are kept; raises InputError for another
    method, or further rounds. suppression: the share of the records of `fit` whose
    quasi-identifiers may all become `*`, so that others keep finer levels; by default what the
    method says, or none. `transform` shows no combination of cells but those that `fit` published,
    and `*` instead of any other. numbers: `mid` makes numbers of a quasi-identifier's numbers and
    intervals, and of `*` a missing value, as `Publication.numbers` does; else all of it is text.
    Frames of pandas, Polars or pyarrow go in and come out, without identifiers and dropped columns.
    Sensitive columns, which l and t need, come out as they are, and a model behind it learns from
    them unless a step between drops them.
    Warns of columns that are the same for everybody, of each once from a line that fits many times.

    policy_, plan_: what was asked, and what becomes of each value; both are the owner's. levels_:
        the level of each quasi-identifier. certificate_: what was measured on the records of `fit`.
    """

    @knowing_its_keywords
    def __init__(
        self,
        policy: PolicyLike | None = None,
        *,
        quasi: NamesOrSettings = (),
        sensitive: NamesOrSettings = (),
        subject: str | None = None,
        plain: NamesOrSettings = (),
        drop: Names = (),
        other: str | None = None,
        k: int | None = None,
        l: int | None = None,
        t: float | None = None,
        method: str | Settings | None = None,
        seed: int | None = None,
        read: Settings | None = None,
        missing_values: Names = (),
        suppression: float | None = None,
        numbers: Numbers = "published",
    ) -> None:
        self.policy = policy
        self.quasi = quasi
        self.sensitive = sensitive
        self.subject = subject
        self.plain = plain
        self.drop = drop
        self.other = other
        self.k = k
        self.l = l
        self.t = t
        self.method = method
        self.seed = seed
        self.read = read
        self.missing_values = missing_values
        self.suppression = suppression
        self.numbers = numbers

    def fit(self, X: Any, y: object = None) -> "Anonymizer":
        """Finds the levels; raises as `shoal.publish` where no release keeps the promises."""
        require_choice("numbers", self.numbers, get_args(Numbers))
        own = ("policy", "suppression", "numbers")
        words = {name: value for name, value in self.get_params().items() if name not in own}
        if self.policy is None:
            policy = Policy.of_words(words_of_frame(X, words))
        else:
            beside = {name: words[name] for name in BESIDE}
            policy = Policy.of(self.policy).changed(words_of_call(beside))
        self.policy_ = _recoding_all_alike(policy, self.suppression)
        release = publication(X, self.policy_, NOTHING_ELSE, {})
        warn_of(release.certificate, once=True)
        found: Any = release.found
        self.plan_ = found.draft.plan
        self.certificate_ = release.certificate
        for name, column in self.plan_.rounds[0].items():
            if column.whole is not None:
                has_levels = self.policy_.model.attributes[name].hierarchy is not None
                more = "" if has_levels else "give it more levels, a number by 'bins', "
                warn(
                    f"column '{name}' is the same for everybody at the levels that were found;"
                    f" {more}let more records become '*' (suppression=), or leave it out",
                    once=True,
                )
        self.levels_ = release.certificate["method"]["search_statistics"]["levels"]
        self.feature_names_in_ = np.array([*map(str, as_it_is(X).columns)], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.names_out_ = np.array(table_of(release.data).names, dtype=object)
        self.types_ = self.policy_.tables.table_given(X).frame.schema
        cells = pl.col(self.policy_.quasi).cast(pl.String)
        self.combinations_ = found.draft.frame.select(cells).unique()
        return self

    def transform(self, X: FrameT) -> FrameT:
        """The frame with every value generalized by the plan."""
        check_is_fitted(self)
        tables = self.policy_.tables
        given = _typed_as(tables.table_given(X).frame, self.types_)
        unneeded = sorted({*self.types_}.difference(given.columns, self.names_out_))
        number = pl.int_range(1, given.height + 1).cast(pl.String)
        given = given.with_columns(number.alias(name) for name in unneeded)
        table, beyond = self._within_bins(Table(tables.original_frame(given)))
        bound = bound_table(table, self.policy_, counts=False)
        (columns,), render = self.plan_.rounds, bound.schema.render
        texts, covered = texts_of_round(columns, bound.encoded.attributes, render)
        for encoded, is_known in zip(bound.encoded.attributes, covered, strict=True):
            name, values = encoded.attribute.name, is_known[: encoded.present]
            is_new = ~is_known[encoded.ranks] | beyond.get(name, False)
            self._tell_of_new(name, is_new, may_be=len(values) < 2 or bool(values.any()))
        starred, mark = bound.encoded.suppressed, render.suppressed
        shown = cells_of(table, bound, GlobalRecoding((texts,), -starred.astype(np.int32)))
        shown = shown.with_columns(suppress_cells(shown[n], beyond[n], mark) for n in beyond)
        if self.plan_.suppression:
            starred = starred | ~self._are_published(shown)
        names = [*self.policy_.quasi]
        if self.certificate_["records"]["withheld"]:  # by them a promise would not hold
            names += [attribute.name for attribute in bound.schema.sensitive]
        shown = shown.with_columns(suppress_cells(shown[name], starred, mark) for name in names)
        written = tables.written_frame(shown, Location(FRAME).kind)
        if self.numbers != "published":
            model, proof = self.policy_.model, self.certificate_
            written = numbers_of(written, proof, model, self.numbers, ())
        made = like(X, written)
        if hasattr(X, "index"):
            cast("Any", made).index = X.index
        return made

    def _within_bins(self, table: Table) -> tuple[Table, dict[str, np.ndarray]]:
        """The table with the least of the bins for each number beyond them, and the records that
        held one, (n,) bool; not of columns with a domain.
        """
        beyond, model = dict[str, np.ndarray](), self.policy_.model
        for name in {*self.policy_.quasi}.intersection(table.names):
            declared, column = model.attributes[name], table.column(name)
            bins = rule_of(declared.hierarchy, "")
            if isinstance(bins, Bins) and declared.domain is None:
                cells = np.array(column.cells)
                is_value = np.isfinite(parse_numbers(column.cells)) & ~np.isin(
                    cells, model.no_names
                )
                beyond[name] = (is_value & bins.values_without_leaf(cells))[column.codes]
                least = str(bins.edges[0] if bins.edges else bins.start)
                within = suppress_cells(as_text(table.frame[name]), beyond[name], least)
                table = Table(table.frame.with_columns(within))
        return table, beyond

    def _tell_of_new(self, name: str, is_new: np.ndarray, may_be: bool) -> None:
        """Warns of mostly new values; raises InputError where texts may not all be."""
        if 2 * is_new.sum() <= len(is_new):
            return
        declared = self.policy_.model.attributes[name]
        ordered = isinstance(rule_of(declared.hierarchy, ""), Bins | Dates)
        text = (
            f"column '{name}': {is_new.sum()} of {len(is_new)} values become '*', as none like them"
            " was fitted; write them as in the data that it was fitted on"
        )
        if not (may_be or ordered or declared.kind is Kind.NUMBER):
            raise InputError(text)
        warn(text)

    def _are_published(self, shown: pl.DataFrame) -> np.ndarray:
        """Whether `fit` published the quasi cells of each record; (n,) bool."""
        cells, known = shown.select(pl.col(self.policy_.quasi).cast(pl.String)), self.combinations_
        # any column may be called as the index is
        places = dict(zip(cells.columns, map(str, range(cells.width)), strict=True))
        rows = cells.rename(places).with_row_index()
        on = [*places.values()]
        found = rows.join(known.rename(places), on=on, how="semi", nulls_equal=True)
        return np.isin(np.arange(cells.height), found["index"])

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """The columns that come out."""
        check_is_fitted(self)
        return self.names_out_


def _typed_as(frame: pl.DataFrame, fitted: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The frame with numbers as those of `fit`: one missing value makes pandas' whole ones floats,
    and 27.0 is another text than 27.
    """
    columns = []
    for name, now in frame.schema.items():
        then, column = fitted.get(name, now), pl.col(name)
        if then.is_float() and now.is_integer():
            columns.append(column.cast(then))
        elif then.is_integer() and now.is_float():
            text, whole = column.cast(pl.String), column.cast(pl.Int64, strict=False)
            columns.append(pl.when(whole == column).then(whole.cast(pl.String)).otherwise(text))
    return frame.with_columns(columns)


def _recoding_all_alike(policy: Policy, suppression: float | None) -> Policy:
    """The policy by global recoding of every record, with the parameters that it gives this."""
    named, settings = (policy.model.method or {"name": METHOD})["name"], policy.method_settings
    if named != METHOD:
        raise InputError(
            f"method '{named}': does not recode a value alike in every record; leave the method"
            f" out, or name '{METHOD}'"
        )
    if settings.get("rounds"):
        raise InputError(
            f"method '{METHOD}': a transformer recodes a value alike in every record; leave out"
            " 'rounds'"
        )
    return policy.with_method(METHOD, {} if suppression is None else {"suppression": suppression})
