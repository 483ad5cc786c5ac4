"""shoal republish"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.progress import shown
from shoal.cli.summary import print_summary


def republish(
    increment: Annotated[
        str, typer.Argument(metavar="INCREMENT", help="The new records; '-' reads CSV from standard input.")
    ],
    policy: options.PolicyFile,
    ledger: Annotated[Path, typer.Option("--ledger", metavar="DIR", help="The ledger; begun if it is not there.")],
    allow_leaks: Annotated[
        bool, typer.Option("--allow-leaks", help="Publish although the history breaks; the certificate says so.")
    ] = False,
    k: options.K = None,
    method: options.Method = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Append the next release of a growing table to a ledger, or nothing if it is not safe beside all earlier ones."""
    from shoal.jobs.republish import republish_file

    asked = options.policy_with(policy, k, method, settings, seed, "crp")
    with shown(quiet) as progress:
        done = republish_file(increment, asked, ledger, allow_leaks=allow_leaks, progress=progress)
    if as_json and done.certificate is not None:
        typer.echo(done.certificate.to_json(), nl=False)
    if quiet:
        return
    if done.repeated:
        where = "waits in the ledger" if done.release is None else f"is release {done.release:04d}"
        print(f"shoal: this increment {where} already; nothing was done", file=sys.stderr)
    elif done.release is None:
        print(f"shoal: no release: {done.waiting} records wait for the next increment", file=sys.stderr)
        for reason in done.reasons:
            print(f"shoal: {reason}", file=sys.stderr)
    elif done.certificate is not None and not as_json:
        print_summary(done.certificate, f"{ledger / f'{done.release:04d}'}")
        if done.waiting:
            print(f"{done.waiting} records wait for the next increment", file=sys.stderr)
