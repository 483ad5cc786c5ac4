"""The script of docs/how-to/postgresql.md, run as it is against a server of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from postgres_server import server

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "postgresql.sh"


@pytest.mark.skipif(shutil.which("psql") is None, reason="needs psql")
def test_the_script_publishes_into_the_schema_that_researchers_read(tmp_path):
    with server() as pg:
        here = Path(sys.executable).parent
        settings = {"PGHOST": str(pg.folder), "PGUSER": "postgres", "PGDATABASE": "postgres"}
        path = f"{tmp_path}{os.pathsep}{here}{os.pathsep}{os.environ['PATH']}"
        # the command as this very source has it
        command = tmp_path / "shoal"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m shoal "$@"\n')
        command.chmod(0o755)
        run = subprocess.run(
            ["sh", str(SCRIPT)],
            cwd=tmp_path,
            env={**os.environ, **settings, "PATH": path},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        assert "ok   measured again: an audit finds the same" in run.stdout or (
            "agrees as far as rows tell" in run.stdout
        )
        assert "FAIL" not in run.stdout
        assert pg.run("SELECT count(*) FROM released.patients") == [(1000,)]
        assert "2 releases follow each other as they were published" in run.stderr
        assert pg.run("SELECT count(*) FROM released.wearers") == [(600,)]
