"""Stream: records published as they arrive, within a bounded delay and in bounded memory.

`stream` is for a program that brings its own records; `run.stream_file` is the command's.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.connectors import engines
from shoal.connectors.frames import Frame, FrameT, like, table_of
from shoal.data.certificate import Certificate
from shoal.data.notebook import Figures
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import path_text
from shoal.data.warnings import ReleaseWarning, warn
from shoal.errors import CheckpointError, InputError
from shoal.policy.binding.columns import check_people
from shoal.policy.policy import Policy, PolicyLike
from shoal.protocols import NamedMethod
from shoal.streams import run
from shoal.streams.checkpoint import UNFIT, packed, unpacked
from shoal.streams.core import Batch, StreamCore, state_below
from shoal.streams.options import StreamOptions
from shoal.streams.publishing import refused


def stream(
    policy: PolicyLike,
    *,
    method: str | NamedMethod | None = None,
    reference: "Frame | None" = None,
    **parameters: object,
) -> "Stream":
    """A stream under a policy: `push` batches of records, `flush` at the end.

    method, parameters: override those of the policy. reference: a table of the same columns, where
    the policy leaves domains or values to be learnt from data, or where t-closeness is asked; else
    that of the policy, if it names one. Raises InputError where something does not fit.
    """
    asked = Policy.of(policy)
    if method is None:
        asked = asked.or_method(DEFAULT_METHOD)
    if method is not None or parameters:
        asked = asked.with_method(method, parameters)
    asked.build_method("stream")
    return Stream(asked, reference)


DEFAULT_METHOD = "fads"


class Stream(Figures):
    """Records in, published rows out, in batches of any size: the same records give the same rows.

    What comes back may hold records of earlier batches, and those of this one may come later. Every
    row was measured before it came back: what breaks a promise raises PromiseError instead.
    """

    def __init__(self, policy: Policy, reference: "Frame | None" = None) -> None:
        policy.require_answers()
        self.policy = policy
        self._reference = reference
        self._core: StreamCore | None = None
        self._like: Any = None
        self._ended = False

    def _figures(self) -> dict[str, object]:
        return {"policy": self.policy, "ended": self._ended}

    def push(self, batch: FrameT) -> FrameT:
        """Takes records in; the rows that are published now, as the kind of frame that came in.

        A batch without records is a quiet moment. Raises InputError, and takes none of them, where
        a record does not fit the policy, or comes after `flush`.
        """
        if self._ended:
            raise InputError(
                "stream: has ended with flush, so nothing can follow; begin a new one for these"
                " records"
            )
        frame = self.policy.tables.table_given(batch, allow_empty=True).frame
        core = self._begun(frame.columns)
        InputError.raise_for(check_people(frame, self.policy.model))
        self._like = batch
        if bad := core.unfit_records(frame):
            raise refused(sorted(bad.items()))
        known = len(core.found)
        out, _ = core.push(frame, core.arrived + np.arange(frame.height))
        return like(batch, _measured(core, out, known))

    def flush(self) -> Any:
        """The end of the stream: the remaining rows, as the kind of frame pushed last."""
        if self._core is None:
            raise InputError("stream: nothing was pushed; push records before the end")
        self._ended = True
        known = len(self._core.found)
        out = _measured(self._core, self._core.flush(), known)
        return out if self._like is None else like(self._like, out)

    @property
    def waiting(self) -> int:
        """How many records are held."""
        return 0 if self._core is None else self._core.waiting

    def snapshot(self) -> bytes:
        """Everything that is needed to go on in another process, private records included."""
        if self._core is None:
            raise InputError("stream: nothing was pushed; there is nothing to save")
        core = {f"core/{name}": value for name, value in self._core.snapshot().items()}
        policy = self.policy.model.model_dump_json()
        state = {"names": self._core.names, "policy": policy, "ended": self._ended}
        return packed({**state, **core})

    def restore(self, snapshot: bytes) -> None:
        """Resumes where the snapshot was taken; raises CheckpointError under another policy."""
        damaged = CheckpointError("stream: the snapshot is damaged; take up an earlier one")
        try:
            state = unpacked(snapshot)
        except UNFIT:
            raise damaged from None
        if state.get("policy") != self.policy.model.model_dump_json():
            raise CheckpointError(
                "stream: the snapshot was taken under another policy; use the same one"
            )
        self._core = None
        try:
            self._begun(state["names"]).restore(state_below("core/", state))
            self._ended = bool(state["ended"])
        except InputError:
            raise
        except UNFIT:
            self._core = None
            raise damaged from None

    def _begun(self, names: list[str]) -> StreamCore:
        if self._core is None:
            given = self._reference
            reference = self.policy.reference_table if given is None else table_of(given)
            self._core = StreamCore(self.policy, list(names), reference)
        elif sorted(names) != sorted(self._core.names):
            raise InputError(
                "stream: this batch has other columns than the first; give every batch the same"
            )
        return self._core


def _measured(core: StreamCore, batch: Batch | None, known: int) -> pl.DataFrame:
    """What a batch publishes. known: findings that were warned of before it."""
    for finding in core.found[known:]:
        warn(ReleaseWarning.of(finding))
    if batch is None:
        return core.nothing
    core.measure(batch, batch.frame)
    return batch.frame


# A stream from a source into a sink, from Python: as the command, with a checkpoint.


def stream_file(
    source: str | Path,
    policy: PolicyLike,
    output: str | Path,
    *,
    checkpoint: str | Path | None = None,
    engine: str | None = None,
    follow: bool = False,
    progress: Progress = no_progress,
) -> Certificate:
    """Publishes a source into a sink as `shoal stream` does, to its end; resumes where the
    checkpoint stopped.

    Every release is measured from its bytes before it leaves. Raises InputError, CheckpointError,
    or PromiseError where one breaks a promise: it is withheld, and the stream stops. What the
    certificate warns about is a `ReleaseWarning` as well.

    source, output: names as of the command. checkpoint: the folder that keeps the state. engine:
    `"spark:N"`, whose executors publish the files of a folder in N shards, each a stream of its
    own; it needs the checkpoint, which also remembers the number of shards. follow: whether to wait
    for more until interrupted.
    """
    asked = Policy.of(policy).or_method(DEFAULT_METHOD)
    options = StreamOptions(
        path_text(source, "source"),
        path_text(output, "output"),
        None if checkpoint is None else Path(path_text(checkpoint, "checkpoint")),
        follow=follow,
    )
    with engines.using(engine):
        certificate, _ = run.stream_file(options, asked, progress=progress)
    for warning in certificate.warnings:
        warn(warning)
    return certificate
