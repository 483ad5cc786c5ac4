"""The keys of the parties of a fusion, and whether its outputs can be written."""

import os
from dataclasses import dataclass
from pathlib import Path

from shoal.connectors import files
from shoal.connectors.location import Location
from shoal.connectors.party.tls import Identity, certificate_findings, key_finding, make_keys
from shoal.errors import InputError
from shoal.policy.agreement import Agreement
from shoal.policy.agreement_model import name_findings


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

    def identity(self, name: str, agreement: Agreement) -> Identity:
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


def check_output(agreement: Agreement, output: str, replace: bool = True) -> None:
    """Raises InputError where the release can't be written, or would overwrite what is read.

    replace: whether a file that is there already gives way.
    """
    _ = Location(output).kind_to_write  # raises where it is none
    outputs = output, f"{output}.certificate.json"
    check_not_read(agreement, *outputs)
    for name in outputs:
        files.check_writable(name, replace)


def make_folder(folder: Path, what: str) -> None:
    """A folder, made unless it is there; raises InputError. what: the option that names it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as failed:
        raise InputError(
            f"{what} '{folder}': is not a folder and none can be made there ({failed.strerror});"
            " name another"
        ) from None


def check_not_read(agreement: Agreement, *outputs: str | Path) -> None:
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
