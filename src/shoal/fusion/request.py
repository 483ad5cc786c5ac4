"""What a fusion is asked: one of its parties, and all of them on one machine."""

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.data.option import Request, option
from shoal.policy.options import METHOD, REPLACE, SEED, SETTINGS, K, parsed

if TYPE_CHECKING:
    from shoal.policy.agreement import Agreement

KEYS = option("--keys DIR", "The folder with NAME.key and NAME.crt.", Path())
TRANSCRIPT = option("--transcript DIR", "Keep every message for 'shoal audit --transcript'.")


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
