"""A session with the database that an address names."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar

from shoal.connectors.database.session import DatabaseRefusal, Session
from shoal.connectors.location import SQLITE, TableAddress


class _Snapshot(ExitStack):
    """Sessions that are kept until its end, by kind and location of their database."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[tuple[str, str], Session] = {}

    def session(self, address: TableAddress) -> Session:
        place = address.kind, address.location
        if place not in self._kept:
            self._kept[place] = self.enter_context(_connected(address, writing=False))
        return self._kept[place]


_snapshot: ContextVar[_Snapshot | None] = ContextVar("snapshot", default=None)


@contextmanager
def one_snapshot() -> Iterator[None]:
    """All that is read of a database in the block is read in one transaction: nothing that others
    write meanwhile is seen in one table and missing in another.
    """
    with _Snapshot() as snapshot:
        before = _snapshot.set(snapshot)
        try:
            yield
        finally:
            _snapshot.reset(before)


@contextmanager
def opened(address: TableAddress, writing: bool = False) -> Iterator[Session]:
    """A session, rolled back at the end unless it was committed; refusals become InputErrors, and
    the loss of a server a PartyError. In `one_snapshot`, those that read one database share one.
    """
    snapshot = None if writing else _snapshot.get()
    try:
        if snapshot is not None:
            yield snapshot.session(address)
            return
        with _connected(address, writing) as session:
            yield session
    except DatabaseRefusal as refused:
        raise refused.as_error(f"{address.where}: {refused.args[0]}") from None


@contextmanager
def _connected(address: TableAddress, writing: bool) -> Iterator[Session]:
    session = _connect(address, writing)
    try:
        yield session
    finally:
        with suppress(DatabaseRefusal):
            session.rollback()
        session.close()


def _connect(address: TableAddress, writing: bool) -> Session:
    if address.kind == SQLITE:
        from shoal.connectors.database.sqlite import SqliteSession

        return SqliteSession.connect(address, writing)
    from shoal.connectors.database.postgresql import PostgresSession

    return PostgresSession.connect(address, writing)
