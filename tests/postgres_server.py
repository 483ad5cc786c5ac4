"""A PostgreSQL server of the tests' own: in a temporary folder, on a socket that lies in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from shoal.connectors.database.postgresql import PostgresSession
from shoal.connectors.database.session import DatabaseRefusal
from shoal.connectors.database.tables import opened
from shoal.connectors.location import parse_address

if TYPE_CHECKING:
    import polars as pl
    import pytest

USER, PASSWORD = "asked", "ge heim/@:%"
HBA = f"""local all {USER} scram-sha-256
local all all trust
"""
QUICK = ("fsync=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=20")


def binaries() -> Path | None:
    """The folder of initdb and postgres; Debian keeps it off the PATH."""
    found = shutil.which("initdb")
    if found and (Path(found).resolve().parent / "postgres").is_file():
        return Path(found).resolve().parent
    kept = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    return kept[-1].parent if kept else None


def _version(path: Path) -> float:
    return float(path.parts[-3])


def why_not() -> str | None:
    """Why no server can be started here; None where one can."""
    try:
        import adbc_driver_postgresql.dbapi  # noqa: F401
    except ImportError:
        return "PostgreSQL's driver is not installed: pip install '.[postgres]'"
    if binaries() is None:
        return "no PostgreSQL server: 'make services' installs one on Debian, as root"
    if os.name == "posix" and os.geteuid() == 0 and not _as_postgres():
        return "PostgreSQL does not run as root, and there is no user 'postgres' to run it as"
    return None


def _as_postgres() -> list[str]:
    """How root runs a command as the user that Debian's package makes."""
    if os.geteuid() != 0:
        return []
    known = shutil.which("runuser") and subprocess.run(["id", "postgres"], capture_output=True)
    return ["runuser", "-u", "postgres", "--"] if known and known.returncode == 0 else []


class Server:
    """A running server. folder: of its socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        """Starts it, the first time or after an outage, and waits until it answers."""
        bin_ = binaries()
        assert bin_ is not None
        command = [*_as_postgres(), bin_ / "postgres", "-D", self.folder / "data"]
        command += ["-k", self.folder, "-c", "listen_addresses="]
        command += [word for one in QUICK for word in ("-c", one)]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        _until_ready(self.folder, self._process)

    def url(self, table: str, *, user: str = "postgres", more: str = "", base: str = "") -> str:
        """The address of a table."""
        where = f"postgresql://{user}@/{base or 'postgres'}?host={self.folder}"
        return f"{where}&table={quote(table)}{more}"

    def run(self, *statements: str, base: str = "postgres") -> list[tuple]:
        """Runs SQL as the superuser, each statement committed; the rows of the last."""
        import adbc_driver_postgresql.dbapi as driver

        uri = f"postgresql://postgres@/{base}?host={self.folder}"
        with driver.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetch_polars().rows()

    def stop(self) -> None:
        """Stops it at once, as an outage does."""
        pid = self.folder / "data" / "postmaster.pid"
        if pid.is_file():
            # runuser may stand between it and us; SIGQUIT: an immediate shutdown
            os.kill(int(pid.read_text().splitlines()[0]), 3)
        if self._process is not None:
            self._process.wait(timeout=30)

    def keep_wearers(self, frame: pl.DataFrame, schema: str = "public") -> None:
        """Makes the table `people` of wearers."""
        self.run(
            f"CREATE TABLE {schema}.people (who text PRIMARY KEY, age bigint, height bigint,"
            " sex text, activity text, beat bigint)"
        )
        people = parse_address(self.url("people", more=f"&schema={schema}"))
        with opened(people, writing=True) as table:
            table.session.insert(table, frame)
            table.session.commit()

    def await_quiet(self) -> None:
        """Waits while it is at work for a client that is gone: it may still commit for it."""
        others = "SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend'"
        until = time.monotonic() + 120
        while self.run(others) != [(1,)]:
            assert time.monotonic() < until
            time.sleep(0.05)

    def tables(self, schema: str = "public") -> set[str]:
        """The names of the tables in a schema, by default the usual one."""
        found = self.run(
            "SELECT relname::text FROM pg_class"
            f" WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r'"
        )
        return {name for (name,) in found}


@contextmanager
def server() -> Iterator[Server]:
    """A server that lives as long as the block, and that knows USER; skips the test where there can
    be none.
    """
    reason = why_not()
    if reason:
        import pytest

        pytest.skip(reason)
    # not in pytest's own folder: a socket's name has to be short, and the server's user to reach it
    folder = Path(tempfile.mkdtemp(prefix="shoal-pg-"))
    user, bin_ = _as_postgres(), binaries()
    assert bin_ is not None
    if user:
        shutil.chown(folder, "postgres")
    data = folder / "data"
    made = [*user, bin_ / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"]
    made += ["-E", "UTF8", "--locale=C", "--no-instructions"]
    started = Server(folder)
    try:
        subprocess.run(made, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (data / "pg_hba.conf").write_text(HBA)
        started.start()
        secret = PASSWORD.replace("'", "''")
        started.run(f"CREATE ROLE {USER} LOGIN PASSWORD '{secret}'")
        yield started
    finally:
        started.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _until_ready(folder: Path, process: subprocess.Popen) -> None:
    import adbc_driver_postgresql.dbapi as driver

    until = time.monotonic() + 60
    while True:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            driver.connect(f"postgresql://postgres@/postgres?host={folder}").close()
            return
        except driver.Error:
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.05)


def lose_a_commit(pg: Server, monkeypatch: pytest.MonkeyPatch, reached: bool) -> None:
    """The connection is lost at the next commit: before the server has made it, or behind it."""
    commit = PostgresSession.commit

    def lost(session: PostgresSession) -> None:
        monkeypatch.setattr(PostgresSession, "commit", commit)
        if reached:
            commit(session)
            raise DatabaseRefusal("the connection was lost", is_lost=True)
        (pid,) = session.query("SELECT pg_backend_pid()::text").row(0)
        pg.run(f"SELECT pg_terminate_backend({pid})::text")
        commit(session)

    monkeypatch.setattr(PostgresSession, "commit", lost)
