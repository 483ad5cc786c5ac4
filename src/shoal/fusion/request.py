"""What a fusion is asked, of one party or of all on one machine, and whether it can be done: the
keys of its parties, and where its outputs go.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.connectors.location import Location
from shoal.connectors.party.tls import Identity, certificate_findings, key_finding, make_keys
from shoal.data.option import Request, option
from shoal.errors import InputError
from shoal.policy.options import METHOD, REPLACE, SEED, SETTINGS, K, parsed

if TYPE_CHECKING:
    from shoal.policy.agreement import Agreement

KEYS = option("--keys DIR", "The folder with NAME.key and NAME.crt.", Path())
TRANSCRIPT = option("--transcript DIR", "Keep every message for 'shoal audit --trace DIR'.")


class PartyRequest(Request):
    """What one party of a fusion is asked."""

    name: str = option("NAME", "Which of the parties this is.", ...)
    parties: str = option("PARTIES.yaml", "The agreement.", ...)
    output: str | None = option("-o, --output", "The release; a helper writes none.")
    keys: Path = KEYS
    folder: Path | None = option(
        "--folder DIR", "Where the journal is kept; by default NAME.journal."
    )
    agreed: str | None = option("--agreed HASH", "The agreement's hash that was signed off.")
    transcript: Path | None = TRANSCRIPT
    ledger: Path = option(
        "--ledger DIR", "The folder of NAME.ledger, where the agreement says 'before'.", Path()
    )
    patience: float = option("--patience", "Seconds to wait for the other parties.", 600.0, low=1)
    replace: bool = REPLACE


class FuseRequest(Request):
    """What a fusion of all parties is asked."""

    parties: str = option("PARTIES.yaml", "The agreement of all parties.", ...)
    output: str = option("-o, --output", "The fused release.", ...)
    transcript: Path | None = TRANSCRIPT
    k: int | None = K
    method: str | None = METHOD
    settings: list[str] | None = SETTINGS
    seed: int | None = SEED
    require_together: bool = option(
        "--require-together",
        "Fails unless the largest k holds over all quasi-identifiers together.",
        False,
    )
    replace: bool = REPLACE

    def agreement(self) -> "Agreement":
        """The agreement of all parties with what the command changes; raises InputError."""
        from shoal.policy.agreement import Agreement

        settings = parsed(self.settings or [])
        return Agreement.load(self.parties).with_overrides(self.method, settings, self.k, self.seed)


# The keys of a party.


@dataclass(frozen=True)
class Keys:
    """Where a party's private key and certificate are stored."""

    key: Path
    certificate: Path

    @classmethod
    def of(cls, name: str, folder: Path) -> "Keys":
        return cls(folder / f"{name}.key", folder / f"{name}.crt")

    def make(self, name: str) -> None:
        """Writes fresh keys; raises InputError where some exist, or the name can't be a party's."""
        from shoal.policy.agreement_model import name_findings

        InputError.raise_for(name_findings([name]))
        for path in (self.key, self.certificate):
            if path.exists():
                raise InputError(
                    f"'{path}': already exists; a new key would invalidate the signed agreement"
                )
        private, public = make_keys(name)
        make_folder(self.key.parent, "keys")
        descriptor = os.open(self.key, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(private)
        self.certificate.write_bytes(public)

    def identity(self, name: str, agreement: "Agreement") -> Identity:
        """The party as the others know it.

        Raises InputError with every finding about its key and about all parties' certificates.
        """
        peer = agreement.peer(name)
        try:
            key = self.key.read_bytes()
            own = self.certificate.read_bytes()
        except OSError as failed:
            raise InputError(
                f"party '{name}': key '{self.key}' can't be read ({failed.strerror}); 'shoal party"
                " init' makes it"
            ) from None
        if own != peer.certificate:
            raise InputError(
                f"party '{name}': the agreement has another certificate than '{self.certificate}';"
                " make a new agreement"
            )
        InputError.raise_for(
            finding
            for other in agreement.participants
            for finding in certificate_findings(
                agreement.peer(other).certificate, other, str(agreement.party(other).certificate)
            )
        )
        unfit = key_finding(key, own, name, str(self.key))
        InputError.raise_for([] if unfit is None else [unfit])
        return Identity(name, peer.address, own, key)


# Checks before a fusion begins: whether its release can be written without overwriting a table.


def check_output(agreement: "Agreement", output: str, replace: bool = True) -> None:
    """Raises InputError where the release can't be written, or would overwrite what is read.

    replace: whether a file that is there already gives way.
    """
    from shoal.connectors.files import check_writable

    _ = Location(output).kind_to_write  # raises where it is none
    outputs = output, f"{output}.certificate.json"
    check_not_read(agreement, *outputs)
    for name in outputs:
        check_writable(name, replace)


def make_folder(folder: Path, what: str) -> None:
    """A folder, made unless it is there; raises InputError. what: the option that names it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as failed:
        raise InputError(
            f"{what} '{folder}': is not a folder and none can be made there ({failed.strerror});"
            " name another"
        ) from None


def check_not_read(agreement: "Agreement", *outputs: str | Path) -> None:
    """Raises InputError where a party reads a file that would be written."""
    named = (party.table for party in agreement.model.parties if party.table is not None)
    tables = [str(agreement.base / table) for table in named]
    read = {Path(name).resolve() for name in (*tables, *agreement.policy.files)}
    for output in outputs:
        if Path(output).resolve() in read:
            raise InputError(
                f"output '{output}': is read by a party; name another file, nothing that is read is"
                " overwritten"
            )
