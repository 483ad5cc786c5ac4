"""shoal sign"""

import getpass
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.cli.progress import say
from shoal.data.option import option
from shoal.errors import InputError
from shoal.policy.options import REPLACE

if TYPE_CHECKING:
    from shoal.auditor.signatures import Signer

PASSPHRASE = "SHOAL_KEY_PASSPHRASE"
LEAST_CHARACTERS = 12  # of a passphrase that is accepted without a word


def sign(
    released: str | None = option("FILE", "The release."),
    certificate: Path | None = option("[CERT]", "Its certificate; else FILE.certificate.json."),
    key: Path | None = option(
        "--key KEY",
        "The private key, in PEM. Extra: sign.",
        needs=("released",),
        takes_no=("new_key",),
    ),
    new_key: str | None = option(
        "--new-key NAME",
        "Instead, makes an Ed25519 key pair: NAME.pem, private, and NAME.pub.pem. Asks for its"
        " passphrase twice, or reads SHOAL_KEY_PASSPHRASE.",
        takes_no=("released",),
    ),
    unprotected: bool = option(
        "--unprotected", "No passphrase: whoever has the file can sign.", False, needs=("new_key",)
    ),
    replace: bool = REPLACE,
) -> None:
    """Sign the certificate of a release: writes its CERT.sig, 64 bytes.
    Refused where a promise does not hold."""
    from shoal.auditor.signatures import check_new, open_key
    from shoal.auditor.signatures import new_key as made
    from shoal.auditor.verify import sign_file
    from shoal.connectors import files
    from shoal.connectors.location import Location
    from shoal.connectors.outputs import signature_path

    if new_key is not None:
        check_new(new_key)
        fingerprint = made(new_key, None if unprotected else _new_passphrase(new_key))
        say(f"wrote {new_key}.pem, to keep private, and {new_key}.pub.pem, to hand out")
        typer.echo(fingerprint)
        return
    if released is None or key is None:
        raise InputError("sign: needs FILE and --key, or --new-key; see 'shoal sign --help'")
    signature = signature_path(certificate or Location(released).certificate)
    files.check_writable(signature, replace)
    signer = open_key(key, passphrase_of)
    say(f"wrote {sign_file(released, signer, certificate)}, by {signer.fingerprint}")


def opened(key: Path | None) -> "Signer | None":
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
