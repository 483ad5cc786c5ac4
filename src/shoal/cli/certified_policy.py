"""The policy that a reader of a certificate gives, as the release was made by it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli import options
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.policy.policy import Policy


def policy_of_release(
    released: str, certificate: Path | None, given: Path | None, overrides: options.Overrides
) -> Policy | None:
    """The policy that is given, with the options that it was published with; where a fusion's
    agreement is given, that of the agreement.
    """
    if given is None:
        overrides.refuse_without_policy()
        return None
    # what reads certificates and agreements is loaded only where a policy is given
    from shoal.connectors.outputs import certificate_path
    from shoal.data.certificate import Certificate

    proof = certificate or Path(certificate_path(released))
    if proof.exists() and Certificate.load(proof)["verb"] == "fuse":
        from shoal.policy.agreement import Agreement

        with suppress(InputError):  # then it is a policy, or nothing that can be read
            return Agreement.load(given).policy
    return overrides.policy(given)
