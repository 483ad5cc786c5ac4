"""A session with the database that an address names."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from shoal.connectors.database.address import SQLITE, TableAddress
from shoal.connectors.database.session import DatabaseRefusal, Session


@contextmanager
def opened(address: TableAddress, writing: bool = False) -> Iterator[Session]:
    """A session, rolled back at the end unless it was committed; refusals become InputErrors, and
    the loss of a server a PartyError.
    """
    try:
        session = _connect(address, writing)
        try:
            yield session
        finally:
            with suppress(DatabaseRefusal):
                session.rollback()
            session.close()
    except DatabaseRefusal as refused:
        raise refused.as_error(f"{address.where}: {refused.args[0]}") from None


def _connect(address: TableAddress, writing: bool) -> Session:
    if address.kind == SQLITE:
        from shoal.connectors.database.sqlite import SqliteSession

        return SqliteSession.connect(address, writing)
    from shoal.connectors.database.postgresql import PostgresSession

    return PostgresSession.connect(address, writing)
