"""shoal key, shoal sign"""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.cli.progress import say
from shoal.data.option import option
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.auditor.signatures import Signer

PASSPHRASE = "SHOAL_KEY_PASSPHRASE"
LEAST_CHARACTERS = 12  # of a passphrase that is accepted without a word

app = typer.Typer(help="Make keys to sign certificates with.", no_args_is_help=True)


@app.command("new")
def new(
    name: str = option("NAME", "Writes NAME.pem, private, and NAME.pub.pem.", ...),
    unprotected: bool = option(
        "--unprotected", "No passphrase: whoever has the file can sign.", False
    ),
) -> None:
    """Make an Ed25519 key pair and print its fingerprint. The passphrase is asked for twice, or
    read from SHOAL_KEY_PASSPHRASE.
    """
    from shoal.auditor.signatures import check_new, new_key

    check_new(name)
    fingerprint = new_key(name, None if unprotected else _new_passphrase(name))
    say(f"wrote {name}.pem, to keep private, and {name}.pub.pem, to hand out")
    typer.echo(fingerprint)


def sign(
    released: str = option("FILE", "The release; signs FILE.certificate.json.", ...),
    key: Path = option("--key KEY", "The private key, in PEM. Extra: sign.", ...),
) -> None:
    """Sign the certificate of a release: writes FILE.certificate.json.sig, 64 bytes.
    Refused where a promise does not hold."""
    from shoal.auditor.signatures import open_key
    from shoal.auditor.verify import sign_file

    signer = open_key(key, passphrase_of)
    say(f"wrote {sign_file(released, signer)}, by {signer.fingerprint}")


def opened(key: Path | None) -> Signer | None:
    """The private key of `--sign`, if it is given; opened before any work is done."""
    if key is None:
        return None
    from shoal.auditor.signatures import open_key

    return open_key(key, passphrase_of)


def passphrase_of(name: str) -> str | None:
    """The passphrase of a key, from the environment or the terminal; None without either."""
    known = os.environ.get(PASSPHRASE)
    if known is not None:
        return known
    return getpass.getpass(f"passphrase of {name}: ") if sys.stdin.isatty() else None


def _new_passphrase(name: str) -> str:
    known = os.environ.get(PASSPHRASE)
    if known is None:
        if not sys.stdin.isatty():
            raise InputError(
                f"key '{name}': nobody can be asked for a passphrase; set {PASSPHRASE}, or say"
                " --unprotected"
            )
        known = getpass.getpass(f"new passphrase of {name}.pem: ")
        if known != getpass.getpass("the same again: "):
            raise InputError(f"key '{name}': the two passphrases differ; type the same twice")
    if not known.strip():
        raise InputError(f"key '{name}': the passphrase is empty; type one, or say --unprotected")
    if len(known) < LEAST_CHARACTERS:
        say(
            f"shoal: key '{name}': the passphrase has fewer than {LEAST_CHARACTERS} characters, so"
            " whoever gets the file can guess it; make a key with a longer one"
        )
    return known
