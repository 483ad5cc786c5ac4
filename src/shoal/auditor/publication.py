"""What a publication in Python hands back: a release that kept its promises."""

import copy
from dataclasses import dataclass, field
from typing import Generic, Protocol

import numpy as np

from shoal.connectors.frames import FrameT, table_of
from shoal.data import notebook
from shoal.data.certificate import Certificate
from shoal.data.release import Release
from shoal.data.warnings import ReleaseWarning
from shoal.policy.policy import Policy


class Found(Protocol):
    """What a publish or an audit measured; pages and figures are drawn from it."""

    @property
    def certificate(self) -> Certificate: ...

    @property
    def release(self) -> Release: ...


@dataclass(frozen=True)
class Publication(Generic[FrameT]):
    """A release that kept its promises.

    data: the published frame, of the kind that came in. certificate: what was measured on it.
    classes: (n,) int32 class of each published row, -1 where it is withheld, in no class.
    policy: what was asked. found: what pages and figures are drawn from, the original included; it
        is left out where the publication is pickled or copied, so that what is stored or sent holds
        nothing that was not published. sensitive: of two tables, the second.
    trace: (n,) the row of the original behind each published one; as private, and left out as well.
    measured: the data as they were measured, whatever was done to `data` since.
    """

    data: FrameT
    certificate: Certificate
    classes: np.ndarray
    policy: Policy = field(repr=False)
    found: Found | None = field(repr=False, compare=False)
    sensitive: FrameT | None = field(default=None, repr=False, compare=False)
    trace: np.ndarray | None = field(default=None, repr=False, compare=False)

    measured: FrameT | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.measured is None:
            object.__setattr__(self, "measured", copy.copy(self.data))

    def __getstate__(self) -> dict[str, object]:
        measured = self.measured if self.is_changed else None
        return {**self.__dict__, "found": None, "trace": None, "measured": measured}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def is_changed(self) -> bool:
        """Whether the data are others than the certificate is about."""
        assert self.measured is not None
        now, then = (table_of(one, allow_empty=True).frame for one in (self.data, self.measured))
        return not now.equals(then)

    @property
    def warnings(self) -> tuple[ReleaseWarning, ...]:
        """What its readers must know although every promise holds."""
        return self.certificate.warnings

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The published rows as a stream of Arrow, for any library that takes one."""
        return table_of(self.data, allow_empty=True).frame.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """The certificate at a glance and the first published rows, for a notebook."""
        published = table_of(self.data, allow_empty=True).frame
        return self.certificate._repr_html_() + notebook.section(notebook.first_rows(published))
