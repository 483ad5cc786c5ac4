"""Options that say which policy holds, and how they change it."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.data.option import Request, option
from shoal.data.regular_files import Json
from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.policy.policy import Policy

POLICY = option("-p, --policy", "The policy (YAML, JSON or TOML).", ...)
K = option("--k", "Overrides the policy's k.")
METHOD = option("--method", "Overrides the policy's method; see 'shoal methods'.")
SETTINGS = option("--set PARAM=VALUE", "Sets a parameter of the method; repeatable.")
READ = option(
    "--read KEY=VALUE", "How the input is written, such as encoding=cp1252, decimal=,; repeatable."
)
WRITE = option(
    "--write KEY=VALUE",
    "How the release is written, such as encoding=utf-8, delimiter=;; repeatable.",
)
TABLES = option(
    "--table NAME=FILE", "A further table about the same people, beside the first; repeatable."
)
SEED = option("--seed", "Overrides the policy's seed.")
REPLACE = option("--replace", "Puts what is written in place of what has that name.", False)


class DataFiles(Request):
    """What tables lie beside the first, and how all of them are written."""

    table: list[str] | None = TABLES
    read: list[str] | None = READ

    @property
    def further(self) -> dict[str, str]:
        """The tables beside the first, by name; raises InputError."""
        return tables(self.table)

    @property
    def reading(self) -> Json:
        """What overrides the policy's `read`; raises InputError."""
        return files_options(self.read)[0]


class Overrides(Request):
    """What a command changes in a policy."""

    k: int | None = K
    method: str | None = METHOD
    settings: list[str] | None = SETTINGS
    seed: int | None = SEED
    read: list[str] | None = READ
    write: list[str] | None = WRITE

    def policy(
        self,
        path: Path,
        verb: str = "publish",
        with_default: "Callable[[Policy], Policy] | None" = None,
        is_published: bool = False,
    ) -> "Policy":
        """The policy in the file with these changes; raises InputError.

        verb: that the method must serve. with_default: gives the policy the method of the verb or
        of the ledger, where the command names none. is_published: whether the method has done its
        work, so that it need not be installed.
        """
        from shoal.policy.policy import Policy

        policy = Policy.load(path).with_files(*files_options(self.read, self.write))
        if self.k is not None:
            policy = policy.with_k(self.k)
        is_default = self.method is None and policy.model.method is None
        if self.method is None and with_default is not None:
            policy = with_default(policy)
        if self.method is not None or self.settings:
            settings = parsed(self.settings or [])
            policy = policy.with_method(self.method, settings, may_be_absent=is_published)
        if is_default and self.settings:
            policy.require_fit(verb)
        return policy if self.seed is None else policy.with_seed(self.seed)

    def of_release(
        self, released: str, certificate: Path | None, given: Path | None
    ) -> "Policy | None":
        """The policy that is given, with the options that it was published with; where a fusion's
        agreement is given, that of the agreement. Raises InputError for changes of no policy.
        """
        if given is None:
            if any(value not in (None, []) for value in vars(self).values()):
                raise InputError(
                    "--k, --method, --set, --seed, --read and --write: change a policy; name it"
                    " with --policy"
                )
            return None
        # what reads certificates and agreements is loaded only where a policy is given
        from shoal.connectors.linked_tables import place_of_one
        from shoal.data.certificate import Certificate

        proof = certificate or Path(place_of_one(released).certificate)
        if proof.exists() and Certificate.load(proof)["verb"] == "fuse":
            from shoal.policy.agreement import Agreement

            with suppress(InputError):  # then it is a policy, or nothing that can be read
                return Agreement.load(given).policy
        return self.policy(given, is_published=True)


def tables(given: Sequence[str] | None) -> dict[str, str]:
    """NAME=FILE texts of --table by name; raises InputError with every one that is none."""
    pairs = [text.partition("=")[::2] for text in given or []]
    findings = [
        f"--table '{name}': is not NAME=FILE; name the table and its file"
        for name, path in pairs
        if not (name and path)
    ]
    times = Counter(name for name, _ in pairs)
    findings += [
        f"--table {name}=...: is given {count} times; name each table once"
        for name, count in times.items()
        if count > 1
    ]
    InputError.raise_for(findings)
    return dict(pairs)


def names(texts: list[str] | None) -> list[str]:
    """Names that commas part, over all times that the option is given."""
    return [name.strip() for text in texts or [] for name in text.split(",") if name.strip()]


def files_options(
    read: Sequence[str] | None, write: Sequence[str] | None = None
) -> tuple[Json, Json]:
    """KEY=VALUE texts of --read and --write; raises InputError with every one that is none."""
    from shoal.policy.loading import keys_and_values

    reading, findings = keys_and_values("--read", list(read or []))
    writing, more = keys_and_values("--write", list(write or []))
    InputError.raise_for([*findings, *more])
    return reading, writing


def parsed(settings: list[str]) -> dict[str, str]:
    """PARAM=VALUE texts as a mapping; raises InputError with every one that is not."""
    findings = [
        f"--set '{text}': is not PARAM=VALUE; write for instance --set preset=paper"
        for text in settings
        if "=" not in text
    ]
    pairs = [[part.strip() for part in text.partition("=")] for text in settings]
    findings += [
        f"--set '{name}': the method takes no such parameter; write --{name} {value}"
        for name, _, value in pairs
        if name in ("k", "method", "seed")  # every method has these from the policy
    ]
    InputError.raise_for(findings)
    return {name: value for name, _, value in pairs}
