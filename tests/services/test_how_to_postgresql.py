"""The script of docs/how-to/postgresql.md, run as it is against a server of its own."""

from __future__ import annotations

import shutil

import pytest

from postgres_server import server
from real_commands import how_to


@pytest.mark.skipif(shutil.which("psql") is None, reason="needs psql")
def test_the_script_publishes_into_the_schema_that_researchers_read(tmp_path):
    with server() as pg:
        settings = {"PGHOST": str(pg.folder), "PGUSER": "postgres", "PGDATABASE": "postgres"}
        run = how_to("postgresql.sh", tmp_path, **settings)
        assert "ok   measured again: an audit finds the same" in run.stdout or (
            "agrees as far as rows tell" in run.stdout
        )
        assert "FAIL" not in run.stdout
        assert pg.run("SELECT count(*) FROM released.patients") == [(1000,)]
        assert "2 releases follow each other as they were published" in run.stderr
        assert pg.run("SELECT count(*) FROM released.wearers") == [(600,)]
