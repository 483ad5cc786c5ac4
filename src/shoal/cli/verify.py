"""shoal sign, shoal verify, shoal dossier"""

import getpass
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.cli import options
from shoal.cli.progress import listed, say, shown
from shoal.data.option import Request, option
from shoal.errors import InputError
from shoal.policy.options import REPLACE, Overrides

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shoal.auditor.checks import Check
    from shoal.auditor.signatures import Signer


AGREED = option("-p, --policy", "The policy (of a fusion: its agreement): measures again.")
TRACE = option(
    "--trace", "Whose row is whose, as its --trace wrote it: counts people; not of a stream."
)


class VerifyRequest(Request, kw_only=True):
    """What a verification is asked."""

    released: str = option("FILE", "The released table, or the D.json of a dossier.", ...)
    certificate: Path | None = option("[CERT]", "Its certificate; else FILE.certificate.json.")
    policy: Path | None = AGREED
    overrides: Overrides
    original: str | None = option("--original", "The table it was made of: compares its hash.")
    trace: str | None = TRACE
    trust: list[str] | None = option(
        "--trust PUB.pem",
        "A public key, or a folder of *.pub.pem: one of them must have signed;"
        " repeatable. Extra: sign.",
    )


def verify(
    asked: VerifyRequest,
    as_json: bool = option("--json", "Print the checks as JSON instead of lines.", False),
    quiet: bool = options.QUIET,
    memory: str | None = options.MEMORY,
) -> None:
    """Check a released file against its certificate, one line per check; exit status 1 if one
    fails.
    """
    from shoal.auditor.dossier.context import is_dossier
    from shoal.auditor.verify import verify as run

    with shown(quiet) as progress:
        policy = asked.overrides.of_release(asked.released, asked.certificate, asked.policy)
        checks = run(
            asked.released,
            asked.certificate,
            policy,
            original=asked.original,
            trace=asked.trace,
            trust=asked.trust or (),
            progress=progress,
        )
    is_broken = any(check.ok is False for check in checks)
    if as_json:
        typer.echo(json.dumps([check.report() for check in checks], indent=2))
    elif quiet:
        for check in checks:
            if check.ok is False:
                say(check.lines)
    else:
        for check in checks:
            typer.echo(check.lines)
        if not is_dossier(asked.released):
            for line in _still_to_accept(asked, checks, is_broken):
                typer.echo(line)
    raise typer.Exit(1 if is_broken else 0)


def _still_to_accept(
    asked: VerifyRequest, checks: "Sequence[Check]", is_broken: bool
) -> "Iterator[str]":
    """What a reader must know of a release after its checks."""
    from shoal.auditor.signatures import Proof
    from shoal.reports.attacks import how_much, must_be_accepted
    from shoal.reports.text import counted_text

    certificate = Proof.of(asked.released, asked.certificate).certificate
    if not is_broken and (found := must_be_accepted(certificate)):
        count = counted_text(len(found), "finding of attacks is", "findings of attacks are")
        much = how_much([row.word for row in found])
        yield f"{count} {much}; a dossier says what is accepted"
    if last := _despite_grave(checks):
        yield last


def _despite_grave(checks: "Sequence[Check]") -> str:
    """The last line about checks with grave findings among them; empty where there are none."""
    from shoal.auditor.checks import GRAVE_FINDING
    from shoal.data.findings import some_named
    from shoal.data.warnings import with_grave

    facts = [check.said.partition(";")[0] for check in checks if check.name == GRAVE_FINDING]
    failed = sum(check.ok is False for check in checks)
    measured = any(check.name == "promises" and check.ok for check in checks)
    kept = "Every promise holds" if measured else "Every promise is stated to hold"
    first = f"{failed} check{'s fail' if failed > 1 else ' fails'}" if failed else kept
    counted = with_grave(first, len(facts))
    return f"{counted} in the certificate: {some_named(facts, '; ')}" if facts else ""


# shoal dossier


class DossierRequest(Request, kw_only=True):
    """What a dossier is asked."""

    released: str | None = option("RELEASED", "The released table.")
    certificate: Path | None = option("[CERT]", "Its certificate; else RELEASED.certificate.json.")
    context: Path | None = option(
        "--context", "What no certificate can know: who, why, under which controls."
    )
    output: Path | None = option("-o, --output D.html", "The page; D.json is written beside it.")
    replace: bool = REPLACE
    policy: Path | None = AGREED
    overrides: Overrides
    original: str | None = option("--original", "The table it was made of: tells the initial risk.")
    trace: str | None = TRACE
    profile: list[str] | None = option(
        "--profile NAME",
        "Whose clauses are listed; repeatable. By default gdpr. Others: appi, ehds, ema-hc,"
        " gbt-42460, hipaa-expert, ico-2025, ipc-ontario-2025, iso-27559, korea-2026,"
        " owasp-aisvs, tc260-2025.",
    )
    metadata: str | None = option(
        "--metadata KIND,...",
        "Describes the release in files beside it: datapackage, croissant. Needs no --context.",
    )
    complete: bool = option("--complete", "Exit status 1 while something is open.", False)
    template: bool = option("--template", "Print an empty context file, and end.", False)
    schema: bool = option("--schema", "Print the JSON Schema of a context file, and end.", False)
    trust: list[str] | None = option(
        "--trust PUB.pem",
        "A public key, or a folder of *.pub.pem: one of them must have signed the"
        " release; repeatable. Extra: sign.",
    )
    sign: Path | None = option(
        "--sign KEY",
        "Sign D.json, which names the page's hash, with this private key. Extra: sign.",
        needs=("output",),
        why="--sign: signs what -o writes; name a page with -o",
    )


def dossier(asked: DossierRequest, quiet: bool = options.QUIET) -> None:
    """Write the dossier of a release: what was measured, what its owner answers, what is open."""
    from shoal.auditor.dossier.context import json_schema
    from shoal.auditor.dossier.context import template as empty_context

    if asked.template or asked.schema:
        typer.echo(empty_context() if asked.template else json_schema(), nl=not asked.template)
        return
    from shoal.reports.metadata import kinds_of, write_metadata

    kinds = kinds_of(asked.metadata)
    if asked.released is not None and kinds:
        described = write_metadata(asked.released, asked.certificate, kinds)
        if not quiet:
            say(f"wrote {listed(described)}")
        if asked.context is None:
            return
    if asked.released is None or asked.context is None:
        lacking = "RELEASED" if asked.released is None else "--context"
        raise InputError(
            f"dossier: {lacking} is missing; 'shoal dossier --template' prints a context file"
        )
    signer = opened(asked.sign)
    policy = asked.overrides.of_release(asked.released, asked.certificate, asked.policy)
    from shoal.reports.dossier import dossier as build_dossier
    from shoal.reports.dossier import json_path, summary, write_dossier

    if asked.output is not None:
        from shoal.connectors.location import Location

        proof = asked.certificate or Location(asked.released).certificate
        inputs: list[Path | str | None] = [asked.released, proof, asked.context]
        inputs += [asked.original, asked.trace]
        inputs += [] if policy is None else policy.files
        options.check_page(asked.output, "-o")
        written = asked.output, json_path(asked.output)
        options.check_outputs(
            *written, inputs=inputs, replace=asked.replace, release=asked.released
        )
    with shown(quiet) as progress:
        found = build_dossier(
            asked.released,
            asked.certificate,
            context=asked.context,
            policy=policy,
            original=asked.original,
            trace=asked.trace,
            profiles=asked.profile or (),
            trust=asked.trust or (),
            progress=progress,
        )
    if asked.output is not None:
        write_dossier(found, asked.output)
        if signer is not None:
            signer.sign(json_path(asked.output))
    if not quiet:
        if asked.output is not None:
            say(f"wrote {asked.output} and {json_path(asked.output)}")
        for line in summary(found):
            say(line)
        if asked.output is None:
            say("nothing was written: name a page with -o D.html")
    raise typer.Exit(1 if asked.complete and found.open else 0)


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
