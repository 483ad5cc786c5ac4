"""What is damaged, missing, added or out of order in a ledger, each named in a line."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from shoal.connectors.ledger import layout
from shoal.errors import LedgerError

LOST_KEY = "private key: is missing or was changed"


def damage(chain: layout.Chain) -> list[str]:
    """Every finding on the whole ledger; empty where all of it is as it was written."""
    findings = _genesis_findings(chain) + _added(chain)
    before: str | None = layout.sha256_of(chain.genesis)
    for release, lacking in _in_order(chain.releases(), _last_readable(chain).releases):
        if lacking:
            findings.append(_missing("release", layout.RELEASE_NAME, release, lacking))
            before = None
            continue
        findings += _release_findings(chain, release, before)
        before = layout.sha256_of(chain.folder(release) / layout.CERTIFICATE)
    return findings + (_private_findings(chain) if chain.private.is_dir() else [])


def is_whole_at_end(chain: layout.Chain) -> bool:
    """Whether the last release is the one that the private part remembers, so that the next one may
    follow it.

    Of what is before the end, only the names are compared, so that an append costs the same however
    long the ledger is: what is wrong, `damage` names.
    """
    step = chain.last_step()
    return (
        not _genesis_findings(chain)
        and not _key_findings(chain, step)
        and _has_exactly(chain.path, layout.RELEASE_NAME, step.releases)
        and _has_exactly(chain.private, layout.STEP_NAME, step.number)
        and layout.sha256_of_names(layout.names_in(chain.private / layout.INPUTS)) == step.inputs
        and layout.sha256_of(chain.predecessor(step.releases + 1)) == step.head
        and not _file_findings(chain, step, step.files)
        and (step.number < 2 or step.previous == layout.sha256_of(chain.step_before(step.number)))
        and (not step.releases or _is_whole_release(chain, step.releases))
    )


def damaged(findings: Sequence[str]) -> LedgerError:
    """The error that names this damage, as an append raises it."""
    first, *more = findings or ["the ledger: is not as its private part remembers it"]
    return LedgerError(
        f"ledger is damaged: {first}; restore it from a copy, nothing was appended. To"
        " withdraw a release, take back the copies that readers have: the ledger keeps its own",
        more,
    )


def changed(step: int, name: str) -> str:
    return f"private step {step:06d}: {name} is missing or was changed"


# The end of the chain


def _is_whole_release(chain: layout.Chain, last: int) -> bool:
    """Whether the first release follows the beginning, and the last one what is before it."""
    links = {1: chain.genesis, last: chain.predecessor(last)}
    return not any(
        _link_findings(chain, release, layout.sha256_of(path)) for release, path in links.items()
    ) and not _data_findings(chain, last)


def _has_exactly(folder: Path, form: str, count: int) -> bool:
    """Whether a folder holds the releases or steps up to a number, and no others."""
    there = {name for name in layout.names_in(folder) if name.isdigit()}
    return there == set(map(form.format, range(1, count + 1)))


# The ledger's own folder


def _genesis_findings(chain: layout.Chain) -> list[str]:
    genesis = layout.read_json(chain.genesis)
    if (
        genesis is None
        or genesis.get("schema") != layout.SCHEMA
        or not isinstance(genesis.get("files"), dict)
    ):
        return [f"{layout.GENESIS}: is missing or damaged"]
    return [
        f"{name}: is missing or was changed"
        for name, digest in genesis["files"].items()
        if layout.sha256_of(chain.path / name) != digest
    ]


def _added(chain: layout.Chain) -> list[str]:
    """What is in either folder and not part of the ledger; drafts of an append come and go."""
    policy_files = layout.mapping_in(layout.read_json(chain.genesis) or {}, "files")
    published = {
        layout.GENESIS,
        *policy_files,
        *(name.split("/")[0] for name in policy_files),
        *map(layout.RELEASE_NAME.format, chain.releases()),
    }
    there, below = layout.names_in(chain.path), layout.names_in(chain.path / layout.HIERARCHIES)
    there |= {f"{layout.HIERARCHIES}/{name}" for name in below}
    strangers = [(name, "ledger") for name in there - published if not layout.is_draft(name)]
    strangers += [(name, "private part") for name in strangers_in_private(chain)]
    return [f"{name}: is not part of the {whole}" for name, whole in sorted(strangers)]


def strangers_in_private(chain: layout.Chain) -> set[str]:
    """What is in the folder of the private part and belongs to no ledger."""
    names = layout.names_in(chain.private)
    own = {layout.LOCK, *map(layout.STEP_NAME.format, chain.steps())}
    if names & own:  # else a key is not ours
        own |= {layout.KEY, layout.INPUTS, layout.TABLE}
    return {name for name in names - own if not layout.is_draft(name)}


def _last_readable(chain: layout.Chain) -> layout.LedgerStep:
    try:
        return chain.last_step()
    except LedgerError:
        return layout.LedgerStep()


def _release_findings(chain: layout.Chain, release: int, before: str | None) -> list[str]:
    name = f"release {release:04d}"
    content = layout.read_json(chain.folder(release) / layout.CERTIFICATE)
    if content is None or not isinstance(content.get("ledger"), dict):
        return [f"{name}: its certificate is missing or damaged"]
    stated = content["ledger"].get("release")
    if stated != release:
        return [f"{name}: is out of order, its certificate says release {stated}"]
    findings = _data_findings(chain, release)
    return findings if before is None else findings + _link_findings(chain, release, before)


def _link_findings(chain: layout.Chain, release: int, before: str) -> list[str]:
    """Whether a release follows what is before it, given by its hash."""
    content = layout.read_json(chain.folder(release) / layout.CERTIFICATE) or {}
    if layout.mapping_in(content, "ledger").get("previous") == before:
        return []
    what = f"release {release - 1:04d}" if release > 1 else layout.GENESIS
    return [
        f"release {release:04d}: does not follow {what} as it is; one of the two was changed or"
        " replaced"
    ]


def _data_findings(chain: layout.Chain, release: int) -> list[str]:
    content = layout.read_json(chain.folder(release) / layout.CERTIFICATE) or {}
    stated = {
        layout.DATA: layout.mapping_in(content, "output").get("sha256"),
        **layout.mapping_in(layout.mapping_in(content, "ledger"), "files"),
    }
    findings = [
        f"release {release:04d}: {name} is missing or was changed"
        for name, digest in stated.items()
        if layout.sha256_of(chain.folder(release) / name) != digest
    ]
    there = {path.name for path in chain.folder(release).iterdir()}
    added = sorted(there - {*stated, layout.CERTIFICATE, layout.SIGNATURE})
    return findings + [f"release {release:04d}: {name} is not part of it" for name in added]


# The private part


def _private_findings(chain: layout.Chain) -> list[str]:
    """What is wrong with the chain of steps, their files, and what they remember of releases."""
    findings = list[str]()
    steps = chain.steps()
    last = max(steps, default=0)
    before: str | None = layout.sha256_of(chain.genesis)
    remembered = _last_readable(chain)
    runs = {number for number, _ in remembered.runs}
    noted = {
        name: layout.number_in(chain.private / layout.INPUTS / name)
        for name in layout.names_in(chain.private / layout.INPUTS)
    }
    for number, lacking in _in_order(steps):
        try:
            step = chain.step(number)
        except LedgerError:
            findings.append(
                _missing("private step", layout.STEP_NAME, number, lacking)
                if lacking
                else f"private step {number:06d}: is missing or damaged"
            )
            before = None
            continue
        if number == last and not chain.is_committed(number):
            break
        if before is not None and step.previous != before:
            findings.append(
                f"private step {number:06d}: does not follow the one before; one of the two was"
                " changed or replaced"
            )
        before = layout.sha256_of(chain.state_file(number))
        findings += _step_findings(chain, step, number == last, noted, number in runs)
    if noted:
        findings.append(f"{layout.INPUTS}: increments are noted that led to no step: {len(noted)}")
    if remembered.releases < max(chain.releases(), default=0):
        findings.append(
            "private part: is older than the ledger, or belongs to another one; restore the one"
            " that belongs to it"
        )
    return findings + _table_findings(chain)


def _table_findings(chain: layout.Chain) -> list[str]:
    """Whether the releases that a table is noted to hold are those of this ledger."""
    if not layout.TableNote.is_in(chain.private):
        return []
    note = layout.TableNote.read(chain.private)
    if note is None:
        return [f"{layout.TABLE}: was changed"]
    if layout.sha256_of(chain.predecessor(note.releases + 1)) != note.head:
        return [f"{layout.TABLE}: is about other releases than this ledger's"]
    return []


def _step_findings(
    chain: layout.Chain,
    step: layout.LedgerStep,
    is_last: bool,
    noted: dict[str, int | None],
    keeps_run: bool,
) -> list[str]:
    """What is wrong with one step that was committed; takes its increment out of those noted."""
    findings = list[str]()
    name = f"private step {step.number:06d}"
    mark = chain.step_folder(step.number) / layout.MARK
    is_marked = mark.exists()  # else an append may be about to
    if (is_marked or not is_last) and layout.sha256_of(mark) != layout.sha256_of_text(""):
        findings.append(f"{name}: {layout.MARK} is missing or was changed")
    if noted.pop(step.input, None if is_marked else step.number) != step.number:
        findings.append(
            f"{name}: its increment is not noted as it was; it could be published twice"
        )
    if is_last:
        findings += _key_findings(chain, step)
    kept = [
        file
        for file in step.files
        if (keeps_run if file == layout.RUN else is_last or file not in step.transient_files)
    ]
    findings += _file_findings(chain, step, kept)
    if step.release is not None:
        stated = layout.sha256_of(chain.folder(step.release) / layout.CERTIFICATE)
        if stated not in (step.head, ""):
            findings.append(
                f"release {step.release:04d}: is not the one that the private part remembers"
            )
    return findings


def _key_findings(chain: layout.Chain, step: layout.LedgerStep) -> list[str]:
    is_lost = step.number and layout.sha256_of(chain.private / layout.KEY) != step.key
    return [LOST_KEY] if is_lost else []


def _file_findings(chain: layout.Chain, step: layout.LedgerStep, names: Iterable[str]) -> list[str]:
    """Which of these files of a step are not as it names them, and which it doesn't name."""
    folder = chain.step_folder(step.number)
    findings = [
        changed(step.number, name)
        for name in names
        if layout.sha256_of(folder / name) != step.files.get(name)
    ]
    added = sorted(layout.names_in(folder) - {*step.files, layout.STATE, layout.MARK})
    where = f"private step {step.number:06d}"
    return findings + [f"{where}: {name} is not part of it" for name in added]


# Numbers in order


def _in_order(there: Sequence[int], end: int = 0) -> Iterator[tuple[int, int]]:
    """Every number that is there, with 0; and each gap up to `end`: its first number, how many."""
    following = 1
    for number in there:
        if number > following:
            yield following, number - following
        yield number, 0
        following = number + 1
    if end >= following:
        yield following, end + 1 - following


def _missing(what: str, form: str, first: int, count: int) -> str:
    if count == 1:
        return f"{what} {form.format(first)}: is missing"
    return f"{what}s {form.format(first)} to {form.format(first + count - 1)}: are missing"
