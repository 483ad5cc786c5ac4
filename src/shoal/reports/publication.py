"""Publish and fuse in Python: a release with its page and its figures."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, get_args, overload

import polars as pl

from shoal.attacks.run.request import Asked, AttackRequest, asked_attacks
from shoal.auditor import verdict
from shoal.auditor.release_frame import Numbers, numbers_of
from shoal.connectors.frames import FrameT, as_it_is, like, ordered_categories, table_of
from shoal.data import cores
from shoal.data.certificate import Certificate
from shoal.data.language import printable
from shoal.data.option import require_choice, require_flag, with_keywords
from shoal.data.progress import Progress, no_progress, watched
from shoal.data.regular_files import path_text
from shoal.data.warnings import PLAIN_SINGLES_OUT, QUASI_LEFT_OUT, warn
from shoal.errors import InputError
from shoal.policy.agreement import AgreementLike
from shoal.policy.from_columns import Columns, columns_among, refuse_unknown
from shoal.policy.policy import Policy, PolicyLike
from shoal.reports.text import summary
from shoal.tables import publish as job
from shoal.tables import request
from shoal.tables.draft import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from shoal.attacks.beside.others import OthersLike
    from shoal.connectors.linked_tables import LinkedSource
    from shoal.linked.publish import LinkedPublication
    from shoal.reports.pages import Measured

Plot = Literal["sizes", "columns", "loss"]


@dataclass(frozen=True, repr=False)
class Publication(verdict.Publication[FrameT]):
    """A release that kept its promises.

    data: the published frame, of the kind that came in. certificate: what was measured on it.
    classes: (n,) int32 class of each published row, -1 where it is withheld, in no class.
    policy: what was asked. sensitive: the second table of `anatomy`, None else. trace: (n,) the row
    of the original, from 0, behind each published one. A pickled or copied publication leaves out
    the trace and what pages and figures are drawn from, which holds the original.
    """

    def __repr__(self) -> str:
        """The verdict, and where to find what."""
        rows, columns = as_it_is(self.data).shape
        return "\n".join(
            (
                f"Publication: {rows} rows, {columns} column{'s' if columns != 1 else ''}",
                summary(self.certificate),
                *map(printable, (*self.certificate.verdict[1:], *self.certificate.worst_found)),
                "data, certificate, policy, classes, warnings; save(path), numbers(how),"
                " report(path), plot(what)",
            )
        )

    def save(
        self, path: str | Path, overwrite: bool = False, trace: str | Path | None = None
    ) -> Certificate:
        """Writes the release and its certificate, as `shoal publish` does, and returns the latter.

        path: of any format, a folder or a table in a database. trace: a private file that says
        which row was whose, for `shoal.attack`, `audit` and `verify`. What is there is refused
        unless `overwrite` is true. Raises InputError, and then nothing is written.
        """
        require_flag("overwrite", overwrite)
        private = None if trace is None else path_text(trace, "trace")
        return job.save(self, path_text(path, "output"), overwrite, private)

    def numbers(self, how: Numbers = "mid") -> FrameT:
        """The published frame with numbers in place of intervals, as `read_release` gives them:
        their middles, the means that are shown, or structs of their ends; `published` leaves
        intervals as they are. Signs for no value, which `data` shows as they are published, become
        null. A warning names columns of numbers that stay text. A quasi-identifier of which every
        cell is true, false or missing becomes truth values; ordered categories stay such.
        """
        released = table_of(self.data).frame
        held: Any = self.found.draft.truth.original if isinstance(self.found, Outcome) else ()
        named = [name for name in released.columns if name in held]
        were_numbers = [name for name in named if held.column(name).was_number]
        frame = numbers_of(released, self.certificate, self.policy.model, how, were_numbers)
        texts = [frame[name] for name in self.policy.quasi if frame[name].dtype == pl.String]
        truths = [one.name for one in texts if one.is_in(["true", "false", "", None]).all()]
        shown = pl.when(pl.col(truths) != "").then(pl.col(truths) == "true")
        frame = frame.with_columns(shown) if truths else frame
        return like(self.data, frame, ordered_categories(self.data))

    def report(self, path: str | Path, overwrite: bool = False) -> None:
        """Writes the page that `shoal publish --report` writes; PATH ends in .html. What is there
        is refused unless `overwrite` is true.
        """
        from shoal.reports.pages import write_page
        from shoal.reports.release import render

        require_flag("overwrite", overwrite)
        path = Path(path_text(path, "report"))
        if path.suffix.lower() not in (".html", ".htm"):
            raise InputError(
                f"report '{path}': a report is a page of HTML; give it a name that ends in .html"
            )
        if path.exists() and not overwrite:
            raise InputError(f"report '{path}': exists; name another file, or say overwrite=True")
        write_page(render(self._measured), path)

    def plot(self, what: Plot = "sizes") -> Figure:
        """A figure of Matplotlib: `sizes` of classes, `columns` before and after, or `loss`.

        What it shows of the original keeps the rule of reports: no bar of fewer than k people.
        """
        from shoal.reports.figures import figure_of_release

        require_choice("plot", what, get_args(Plot))
        return figure_of_release(self._measured, what)

    @property
    def _measured(self) -> Measured:
        from shoal.reports.pages import measured_of

        if self.found is None:
            raise InputError(
                "publication: was stored without its original, so nothing can be drawn; draw its"
                " pages and figures before it is stored"
            )
        return measured_of(self.found, self.policy)


class FrameWords(request.TableWords, Columns, total=False):
    """The keywords of one table: options, and what is said of columns and numbers."""


class LinkedWords(request.OutputWords, Columns, total=False):
    """The keywords of linked tables."""


class EveryWord(FrameWords, LinkedWords, total=False):
    """The keywords of either."""


@overload
def publish(
    frame: LinkedSource,
    policy: PolicyLike,
    *,
    output: str | Path,
    threads: int | None = None,
    progress: Progress | bool = False,
    **words: Unpack[LinkedWords],
) -> LinkedPublication: ...


@overload
def publish(
    frame: FrameT,
    policy: PolicyLike | None = None,
    *,
    require_together: bool = False,
    attack: Asked = (),
    others: OthersLike | None = None,
    threads: int | None = None,
    progress: Progress | bool = False,
    **words: Unpack[FrameWords],
) -> Publication[FrameT]: ...


@with_keywords(EveryWord, request.PublishOptions)
def publish(
    frame: FrameT | LinkedSource,
    policy: PolicyLike | None = None,
    *,
    require_together: bool = False,
    attack: Asked = (),
    others: OthersLike | None = None,
    output: str | Path | None = None,
    threads: int | None = None,
    progress: Progress | bool = False,
    **words: Unpack[EveryWord],
) -> Publication[FrameT] | LinkedPublication:
    """One release of a pandas, polars or pyarrow frame; the same kind of frame comes back.

    What streams Arrow is taken, too; of it comes a polars frame. Every promise of the policy holds
    on `data`, measured on its cells; raises InputError, InfeasibleError or PromiseError and returns
    nothing otherwise. What the certificate warns about is a `ReleaseWarning` as well.

    Instead of a policy, name the columns and the numbers:

    quasi: columns that an attacker could know, or a mapping from them to settings as in a policy's
        `attributes`, such as `{"zip": {"hierarchy": {"prefix": 5}}, "age": {}}`; required.
    sensitive: columns that an attacker wants to learn. subject: the column that names the person.
    plain: columns that are published as they are. Both may be such mappings, too. drop: columns
        that are removed. other: `plain` or `drop` for columns that nobody named; else they are an
        error.
    k: how many people must look alike; required. l, t: distinct values, and closeness to the whole
        table, of every sensitive column.

    label: the column whose value a reader wants to predict; `classification` is measured by it, or
        else by the only sensitive category.
    method: a method's name, or a dict with its `name` and parameters. seed: of random numbers.
    read: how numbers and dates are written, as in a policy: `{"decimal": ","}`. missing_values:
        texts or numbers that stand for no value. These and k may stand beside a policy, which they
        then change.
    progress: True writes each stage to standard error; a function is called with its name.
    require_together: the largest k of any promise must hold over all quasi-identifiers, too.
    attack: as in `shoal.attack`; what is found stands in the certificate, and a threshold of the
        policy that is exceeded withholds the release.
    others: releases of the same people that are out, an `OtherRelease` each, or what `--others`
        reads; nobody is then left among fewer than k by all of them.
    threads: how many may work at once; by default the process's cores. The release is the same for
        any number.

    Linked tables (a policy with `tables`): frame is their folder, workbook or database, or the file
    or frame of each by its name. output: where they go, a new folder, a workbook or a database;
    trace and replace are of them alone. A `LinkedPublication` comes back.

    Options as of `shoal publish`:
    """
    refuse_unknown(words, inspect.signature(publish).parameters)
    asked, columns = request.publish_options(words), columns_among(words)
    if policy is not None and (of_several := Policy.of(policy)).model.is_linked:
        from shoal.linked.publish import publish_linked

        more = {"require_together": require_together, "attack": attack, "others": others}
        request.refuse_for_linked(
            [*request.of_one_table(asked), *(name for name, given in more.items() if given)]
        )
        if output is None:
            raise InputError(
                "output: linked tables go to a new folder, a workbook or a database; name it"
            )
        with cores.using(threads):
            linked = publish_linked(
                cast("LinkedSource", frame),
                job.policy_and_words(of_several, columns),
                path_text(output, "output"),
                trace=asked.trace,
                replace=asked.replace,
                progress=watched(progress),
            )
        warn_of(linked.certificate)
        return linked
    if output is not None or asked.options_given.keys() & request.OutputOptions.options():
        raise InputError(
            f"output, {', '.join(request.OutputOptions.options())}: are of linked tables (a policy"
            " with 'tables'); of one table 'save(path, trace=...)' of what comes back writes both,"
            " and 'shoal.publish_file' goes from file to file"
        )
    wanted = request.PublishRequest(
        **vars(asked),
        require_together=require_together,
        attack=AttackRequest(asked_attacks(attack)),
        others=others,
        progress=watched(progress),
    )
    with cores.using(threads):
        done = job.publication(cast("FrameT", frame), policy, wanted, columns)
    warn_of(done.certificate)
    return Publication(**vars(done))


@overload
def fuse(
    agreement: AgreementLike,
    tables: None = None,
    *,
    transcript: str | Path | None = None,
    require_together: bool = False,
    progress: Progress = no_progress,
) -> Publication[pl.DataFrame]: ...


@overload
def fuse(
    agreement: AgreementLike,
    tables: Mapping[str, FrameT],
    *,
    transcript: str | Path | None = None,
    require_together: bool = False,
    progress: Progress = no_progress,
) -> Publication[FrameT]: ...


def fuse(
    agreement: AgreementLike,
    tables: Mapping[str, Any] | None = None,
    *,
    transcript: str | Path | None = None,
    require_together: bool = False,
    progress: Progress = no_progress,
) -> Publication[Any]:
    """One release from all parties' tables, with all parties as processes on this machine.

    agreement: a PARTIES.yaml, or its content. tables: pandas, polars or pyarrow frames by party;
    a party that is not named reads the agreement's own `table`. Returns the same kind of frame as
    the first one. transcript: a folder for all messages, which `shoal audit --trace` checks.
    require_together: as in `publish`. What the certificate warns about is a `ReleaseWarning`, too.
    Raises InputError, InfeasibleError, PromiseError or PartyError, and then returns nothing.
    """
    from shoal.fusion.fuse import fuse as fused

    done = fused(agreement, tables, transcript, require_together, progress)
    warn_of(done.certificate)
    return Publication(**vars(done))


def warn_of(certificate: Certificate, once: bool = False) -> None:
    """Warns who called the public function of what the certificate warns about; of a column that
    others may know once, if it was measured whom it singles out. once: as of `warn`.
    """
    measured = {one.column for one in certificate.warnings if one.code == PLAIN_SINGLES_OUT}
    for warning in certificate.warnings:
        if warning.code != QUASI_LEFT_OUT or warning.column not in measured:
            warn(warning, once)
