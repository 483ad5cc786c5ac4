"""Record what every verb of the command line writes and says, so that moving code can be shown to
change nothing.

    python tests/golden/verbs.py             # runs every scene: rewrites verbs.json
    python tests/golden/verbs.py NAME...     # runs these scenes alone: rewrites their part
    python tests/golden/verbs.py --to FOLDER # writes what is compared into FOLDER, for `diff -r`

A scene is a folder in which some commands run one after the other. Of each command the exit status
is recorded, and the first 32 hexadecimal digits of the SHA-256 of all that it said on standard
output and standard error, and of every file that it made or changed. `test_verbs.py` runs the
scenes again and compares; the slow ones in `make test-all` alone. A change that is meant to change
an output records it again and says so in its commit.

Outputs are compared byte for byte, but for what differs from run to run, from machine to machine or
from one version to the next: see `Normalised`. Not recorded: the text of `shoal methods` and of
refusals that list methods, as methods come and go.
"""

import contextlib
import gzip
import hashlib
import io
import itertools
import json
import os
import re
import secrets
import shlex
import shutil
import sqlite3
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import yaml

from shoal.cli.main import status_of
from shoal.policy.plug_ins import brought

HERE = Path(__file__).parent
RECORDED = HERE / "verbs.json"
DIGITS = 32  # of a SHA-256: enough to tell outputs apart
# what the width and colours of a terminal, the clock and the owner's environment would change
ENVIRONMENT = {
    "COLUMNS": "80",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "SOURCE_DATE_EPOCH": "1700000000",
    "SHOAL_KEY_PASSPHRASE": "a passphrase for tests",
}
NOW = 1_700_000_000.0
KEY_BYTES = 32  # of a ledger's key

Recorded = dict[str, Any]
Scene = Callable[["Recorder"], None]


def main(arguments: list[str]) -> None:
    if not brought("shoal.commands"):
        sys.exit("install shoal-papers: its verbs and methods would be recorded as refused")
    if arguments[:1] == ["--to"] and len(arguments) == 2:
        for name in SCENES:
            recorded(name, Path(arguments[1]).resolve() / name)
        return
    if unknown := [name for name in arguments if name not in SCENES]:
        sys.exit(f"no scene {', '.join(unknown)}; there are {', '.join(SCENES)}")
    kept = json.loads(RECORDED.read_text()) if arguments else {}
    kept |= {name: recorded(name) for name in arguments or SCENES}
    RECORDED.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n")
    print(f"{sum(map(len, kept.values()))} commands in {RECORDED.name}")


def recorded(scene: str, kept: Path | None = None) -> dict[str, Recorded]:
    """What the commands of a scene write and say, by command. kept: a folder that takes the
    normalised outputs themselves.
    """
    before = Path.cwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, ENVIRONMENT),
        _still_clock_and_known_key(),
    ):
        # `/tmp` itself is a link on some systems, and both names may be shown
        inside = Path(folder).resolve() / "scene"
        inside.mkdir()
        os.chdir(inside)
        try:
            recorder = Recorder(inside, kept)
            SCENES[scene](recorder)
        finally:
            os.chdir(before)
    return recorder.found


def differences(expected: dict[str, Recorded], found: dict[str, Recorded]) -> list[str]:
    """Each output that is not as recorded, by command and file."""
    return [
        f"{command}: {output}"
        for command in sorted(expected.keys() | found.keys())
        for output in sorted(expected.get(command, {}).keys() | found.get(command, {}).keys())
        if expected.get(command, {}).get(output) != found.get(command, {}).get(output)
    ]


@contextlib.contextmanager
def _still_clock_and_known_key() -> Iterator[None]:
    """A clock that stands still, so that seconds and rates are 0, and a ledger's key that is known,
    so that pseudonyms and the hashes over them are the same in every run.
    """
    real = secrets.token_bytes

    def no_time() -> float:
        return 0.0

    def now() -> float:
        return NOW

    def token_bytes(size: int | None = None) -> bytes:
        return bytes(range(KEY_BYTES)) if size == KEY_BYTES else real(size)

    with (
        mock.patch.object(time, "process_time", no_time),
        mock.patch.object(time, "time", now),
        mock.patch.object(secrets, "token_bytes", token_bytes),
    ):
        yield


@contextlib.contextmanager
def _without(library: str) -> Iterator[None]:
    """As if a library was not installed; what else is imported meanwhile stays."""
    if not library:
        yield
        return
    before = sys.modules.get(library, ...)
    sys.modules[library] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[library]
        if before is not ...:
            sys.modules[library] = before


def _ticking() -> contextlib.AbstractContextManager[Any]:
    ticks = itertools.count()

    def a_hundredth_later() -> float:
        return next(ticks) / 100

    return mock.patch.object(time, "process_time", a_hundredth_later)


class Recorder:
    """Runs commands in a folder and records what each of them changes.

    found: by command, the exit status and a digest for each output.
    """

    def __init__(self, folder: Path, kept: Path | None) -> None:
        self.found: dict[str, Recorded] = {}
        self._folder, self._kept = folder, kept
        self._seen: dict[str, str] = {}  # the content's SHA-256 of each file
        self._named: dict[str, str] = {}  # the file that has a SHA-256

    def run(
        self,
        command: str,
        said: bool = True,
        stdin: bytes = b"",
        without: str = "",
        stopped: bool = False,
        ticking: bool = False,
    ) -> int:
        """Runs a command.

        said: whether its words count, or its files and its status alone. without: a library that
        can't be imported. stopped: by Ctrl-C as soon as the command waits. ticking: the clock moves
        on whenever it is asked, for a chart of times, which needs some.
        """
        self._changed()  # what the scene itself wrote since is no output
        with contextlib.ExitStack() as stack:
            stack.enter_context(_without(without))
            if stopped:
                waits = mock.patch.object(time, "sleep", side_effect=KeyboardInterrupt)
                stack.enter_context(waits)
            if ticking:
                stack.enter_context(_ticking())
            status, out, err = _shoal(shlex.split(command), stdin)
        outputs = {"stdout": out, "stderr": err} if said else {}
        outputs |= {str(path): content for path, content in self._changed()}
        name = command
        while name in self.found:
            name += " (again)"
        self.found[name] = {"status": status}
        normalised = Normalised(self._folder, self._named)
        for output, content in outputs.items():
            compared = normalised.content(output, content)
            if compared:
                self.found[name][output] = hashlib.sha256(compared).hexdigest()[:DIGITS]
                self._keep(name, output, compared)
        return status

    def _changed(self) -> list[tuple[Path, bytes]]:
        """The files that are new or other than before, and of what is gone that it is gone."""
        paths = sorted(path for path in self._folder.rglob("*") if path.is_file())
        files = [(path.relative_to(self._folder), path.read_bytes()) for path in paths]
        changed = []
        for path, content in files:
            digest = hashlib.sha256(content).hexdigest()
            if self._seen.get(str(path)) != digest:
                changed.append((path, content))
                self._seen[str(path)] = digest
                self._named.setdefault(digest, str(path))
        for gone in self._seen.keys() - {str(path) for path, _ in files}:
            del self._seen[gone]
            changed.append((Path(gone), b"(gone)"))
        return changed

    def _keep(self, command: str, output: str, content: bytes) -> None:
        if self._kept is not None:
            short = hashlib.sha256(command.encode()).hexdigest()[:4]
            words = re.sub(r"[^\w.=-]+", "_", command)[:80]
            path = self._kept / f"{len(self.found):03d} {words} {short}" / output
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _shoal(words: list[str], stdin: bytes) -> tuple[int, bytes, bytes]:
    """The exit status, and what was said on standard output and standard error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        # a program's name in its help is that of the package that was started, or the file's
        mock.patch.object(sys.modules["__main__"], "__package__", None),
        mock.patch.object(sys, "argv", ["shoal"]),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8")),
        warnings.catch_warnings(),
    ):
        status = status_of(words)
        contents = [said.buffer.getvalue() for said in (out, err)]  # type: ignore[attr-defined]
    return status, contents[0], contents[1]


Q = '(?:"|&#34;)'
CERTIFICATES = ("certificate.json", "stdout", ".html")
KEYS = (".pem", ".key", ".crt", ".sig")  # random, or made by what is


class Normalised:
    """An output without what differs from run to run, machine to machine, version to version.

    named: the file whose content has a SHA-256. Where an output names the hash of another, such as
    that of a certificate, which holds versions, the file's name is compared instead of the hash.
    """

    RULES = (
        # what is shown while something takes long, and how long it has taken
        (r"(?m)^shoal: .* \(\d+ s\)\n", ""),
        # the versions in a certificate, in pages and in metadata, where quotes may be escaped
        (rf"({Q}(?:python|numpy|polars|numba|wheel_sha256){Q}: )(?:{Q}[^&\"]*{Q}|null)", r"\1..."),
        (rf"({Q}shoal{Q}: ){Q}\d+\.\d+[^&\"]*{Q}", r"\1..."),
        (r"(<th scope=\"row\">Shoal</th><td>)[^<]*", r"\1..."),
        (r"(\bShoal |\burn:shoal:)\d+\.\d+\.\d+\w*", r"\1..."),
        # a database's line about a stream holds the stream's random identity
        (r"(INTO \"shoal_streams\" VALUES\('\w+',)'[0-9a-f]{16}'", r"\1'...'"),
    )
    # rules for some files alone, by the end of their names
    OWN_RULES = (
        # the hash of a ledger's private state over itself, certificates' hashes and so versions
        (("state.json", "table.json"), r'(?m)^( "sha256": )"[0-9a-f]{64}"', r"\1..."),
        # the agreement of a fusion names its throw-away keys; its parties work in processes, whose
        # clocks go on
        (CERTIFICATES, r'("agreement": )"[0-9a-f]{64}"', r"\1..."),
        (
            CERTIFICATES,
            r'("(?:total|join|label|scoring|secure rounds|instructions|table)": )[\d.e-]+',
            r"\1...",
        ),
        (("stderr",), r"(?m)^seconds: .*", "seconds: ..."),
    )

    def __init__(self, folder: Path, named: dict[str, str]) -> None:
        self._folder, self._named = folder, named

    def content(self, output: str, content: bytes) -> bytes:
        """What is compared of an output."""
        decoded = self._decoded(output, content)
        try:
            text = decoded.decode()
        except UnicodeDecodeError:
            return decoded
        text = text.replace(str(self._folder), "FOLDER")
        text = re.sub(r"\b[0-9a-f]{64}\b", self._name_of, text)
        for pattern, kept in self.RULES:
            text = re.sub(pattern, kept, text)
        for names, pattern, kept in self.OWN_RULES:
            if output.endswith(names):
                text = re.sub(pattern, kept, text)
        return text.encode()

    def _name_of(self, found: re.Match[str]) -> str:
        name = self._named.get(found.group())
        return found.group() if name is None else f"(SHA-256 of {name})"

    def _decoded(self, output: str, content: bytes) -> bytes:
        """What a file holds whose bytes are random in part, or are those of a library's version."""
        name = output.rpartition("/")[2]
        if name.endswith(KEYS):
            return b"a key or a signature"
        if name == "CURRENT":
            return _checkpoint_text(content)
        if name.endswith((".messages", ".shares")):
            return _transcript_text(content)
        if name.endswith(".rows.csv"):  # an owner's table by row, in an order that nobody can guess
            return b"".join(sorted(content.splitlines(keepends=True)))
        if content[:4] == b"PAR1":
            return _frame_text(pl.read_parquet(io.BytesIO(content)))
        if content[:6] == b"ARROW1":
            return _frame_text(pl.read_ipc(io.BytesIO(content)))
        if content[:2] == b"\x1f\x8b":
            return gzip.decompress(content)
        if content[:2] == b"PK":
            return _workbook_text(content)
        if content[:15] == b"SQLite format 3":
            return _database_text(content)
        return content


def _frame_text(frame: pl.DataFrame) -> bytes:
    return f"{dict(frame.schema)}\n{frame.write_ndjson()}".encode()


def _workbook_text(content: bytes) -> bytes:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_filelike(io.BytesIO(content))
    sheets = {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}
    return repr(sheets).encode()


def _checkpoint_text(content: bytes) -> bytes:
    """A stream's state, without its random identity, and without the hash that says which policy,
    source and sink it belongs to, as it holds the names of folders.
    """
    parts = content.split(b"\n", 2)
    if len(parts) < 3:
        return content
    entries, rest = json.loads(parts[1])["entries"], parts[2]
    lines = [json.dumps(json.loads(parts[1])["format"])]
    for name, entry in entries.items():
        if "value" in entry:
            lines.append(f"{name}: {'...' if name in OF_ONE_RUN else json.dumps(entry['value'])}")
            continue
        part, rest = rest[: entry["size"]], rest[entry["size"] :]
        table = _frame_text(pl.read_ipc(io.BytesIO(part))).decode() if "frame" in entry else None
        lines.append(f"{name}: {table or (entry['array'], entry['shape'], part.hex())}")
    return "\n".join(lines).encode()


OF_ONE_RUN = ("policy", "identity")


def _transcript_text(content: bytes) -> bytes:
    """Who was sent what, and how long it was, receiver by receiver; most of what is sent is masked
    by random numbers, and messages to several receivers cross each other.
    """
    head = struct.Struct("<16sBI")  # receiver, kind, length
    at, lines = 0, []
    while at < len(content):
        receiver, kind, length = head.unpack_from(content, at)
        part = content[at + head.size : at + head.size + length]
        at += head.size + length
        shown = part.decode("latin-1") if kind in PLAIN_KINDS else ""
        lines.append((receiver.rstrip(b"\0").decode(), kind, length, shown))
    return "\n".join(map(str, sorted(lines, key=lambda line: line[0]))).encode()


# how many records a party has, and the hash of the finished table: of messages whose content is the
# same in every run
PLAIN_KINDS = (1, 9)


def _database_text(content: bytes) -> bytes:
    database = sqlite3.connect(":memory:")
    database.deserialize(content)
    return "\n".join(database.iterdump()).encode()


SCENES: dict[str, Scene] = {}
SLOW: set[str] = set()  # the scenes that only `make test-all` runs


def scene(slow: bool = False) -> Callable[[Scene], Scene]:
    """Lists a function as a scene by its own name, with blanks."""

    def listed(function: Scene) -> Scene:
        name = function.__name__.replace("_", " ")
        SCENES[name] = function
        if slow:
            SLOW.add(name)
        return function

    return listed


def _policy(path: str, of: str, **changes: Any) -> None:
    """Writes a policy like another one. changes: keys with other values; None takes a key out."""
    policy = yaml.safe_load(Path(of).read_text()) | changes
    kept = {key: value for key, value in policy.items() if value is not None}
    Path(path).write_text(json.dumps(kept, indent=1))


def _edit(path: str, old: str, new: str, count: int = 1) -> None:
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new, count))


def _patients(at: Recorder, people: int = 200) -> None:
    """A small table of patients; its policy asks for k = 5."""
    at.run(f"sample patients -n {people} --seed 7 -o patients.csv -q")
    _edit("patients.policy.yaml", "k: 10}", "k: 5}")


PATIENTS = "patients.csv -p patients.policy.yaml"


@scene()
def samples(at: Recorder) -> None:
    Path("other").mkdir()
    for name in ("patients", "purchases", "wearables"):
        at.run(f"sample {name} -n 50 -o {name}.csv")
        at.run(f"sample {name} -n 20 --seed 3 -o other/{name}.tsv -q")
    at.run("sample bank -n 40 -o bank")
    at.run("sample patients -n 20 -o patients.parquet")
    at.run("sample patients -n 20 -o patients.jsonl")
    at.run("sample no-such -o out.csv")
    at.run("sample patients -n 0 -o out.csv")


@scene()
def publish_formats(at: Recorder) -> None:
    _patients(at)
    formats = "csv tsv txt tab jsonl csv.gz jsonl.gz xlsx parquet arrow".split()
    for form in formats:
        at.run(f"publish {PATIENTS} -o out.{form} -q")
    for form in ("tsv", "jsonl.gz", "xlsx", "parquet", "arrow"):
        at.run(f"sample patients -n 200 --seed 7 -o read.{form} -q")
        at.run(f"publish read.{form} -p patients.policy.yaml -o again.csv --replace -q")
    at.run(f"publish {PATIENTS} -o folder/ -q")
    at.run(f"publish {PATIENTS} -o folder/")
    at.run(f"publish {PATIENTS} -o folder/ --replace")
    at.run(f"publish {PATIENTS} -o 'sqlite:///people.db?table=released'")
    at.run(f"publish {PATIENTS} -o 'sqlite:///people.db?table=released' --replace --k 8")
    at.run("audit 'sqlite:///people.db?table=released' -p patients.policy.yaml")
    at.run("verify 'sqlite:///people.db?table=released'")
    at.run(f"publish {PATIENTS} -o -")
    table = Path("patients.csv").read_bytes()
    at.run("publish - -p patients.policy.yaml -o - -q", stdin=table)
    at.run("publish - -p patients.policy.yaml -o out.csv --replace", stdin=table)
    Path("latin.csv").write_bytes(
        table.replace(b",", b";").replace(b"north", "nörth".encode("cp1252"))
    )
    words = "--read encoding=cp1252 --read delimiter=;"
    publish = f"publish latin.csv -p patients.policy.yaml -o out.csv {words}"
    at.run(publish)
    at.run(f"{publish} --replace")
    at.run(f"{publish} --replace --write delimiter=|")
    at.run("audit out.csv -p patients.policy.yaml")
    at.run(
        f"verify out.csv -p patients.policy.yaml --original latin.csv {words} --write delimiter=|"
    )
    at.run(f"publish {PATIENTS} -o described.csv -q")
    at.run("dossier described.csv --metadata datapackage,croissant -q")


@scene()
def publish_and_verify(at: Recorder) -> None:
    _patients(at)
    at.run(f"publish {PATIENTS} -o out.csv --report report.html --trace t.jsonl")
    at.run(f"publish {PATIENTS} -o json.csv --json")
    at.run(f"publish {PATIENTS} -o k.csv --k 12 --seed 1 --method mondrian --set cut=nearest")
    _policy("together.yaml", "patients.policy.yaml", require_together=True)
    at.run("publish patients.csv -p together.yaml -o together.csv")
    at.run(f"publish {PATIENTS} -o memory.csv --memory 700MB --threads 1")
    at.run("audit out.csv -p patients.policy.yaml")
    at.run("audit out.csv -p patients.policy.yaml --original patients.csv")
    at.run("audit out.csv -p patients.policy.yaml --original patients.csv --trace t.jsonl")
    at.run(
        "audit out.csv -p patients.policy.yaml --original patients.csv --trace t.jsonl --json -q"
    )
    at.run(
        "audit out.csv -p patients.policy.yaml --original patients.csv --trace t.jsonl"
        " --report audit.html -o a.json"
    )
    at.run("audit out.csv -p patients.policy.yaml --k 50")
    at.run(
        "audit out.csv -p patients.policy.yaml --original patients.csv --trace t.jsonl"
        " --memory 700MB"
    )
    at.run(
        "audit out.csv --column quasi=age,sex --column quasi=zip --k 5"
        " --column sensitive=disease:l=2:t=0.9"
    )
    at.run("audit patients.csv --column quasi=age,sex --k 2 --column subject=patient")
    at.run(
        "audit out.csv -p patients.policy.yaml --original patients.csv --trace t.jsonl --downstream"
    )
    at.run("verify out.csv")
    at.run("verify out.csv -p patients.policy.yaml --original patients.csv")
    at.run("verify out.csv -p patients.policy.yaml --original patients.csv --trace t.jsonl --json")
    at.run(
        "verify k.csv -p patients.policy.yaml --k 12 --seed 1 --method mondrian --set cut=nearest"
    )
    at.run("verify k.csv -p patients.policy.yaml")
    at.run("verify k.csv out.csv.certificate.json")
    at.run("verify out.csv -q --memory 700MB")
    shutil.copy("out.csv.certificate.json", "forged.json")
    _edit("forged.json", '"asked": 5', '"asked": 6')
    at.run("verify out.csv forged.json -p patients.policy.yaml")
    Path("forged.json").write_text("{}")
    at.run("verify out.csv forged.json")
    lines = Path("out.csv").read_text().splitlines()
    Path("out.csv").write_text("\n".join(lines[:-1]) + "\n")
    at.run("verify out.csv -p patients.policy.yaml")
    at.run("verify missing.csv")


@scene(slow=True)
def publish_attacked(at: Recorder) -> None:
    _patients(at)
    at.run("sample patients -n 60 --seed 9 -o others.csv -q")
    # as other people: the sample numbers everybody from P01 on
    Path("others.csv").write_text(Path("others.csv").read_text().replace(",P", ",Q"))
    at.run(f"publish {PATIENTS} -o first.csv -q --k 4 --trace f.jsonl")
    at.run(f"publish {PATIENTS} -o out.csv --attack all --report report.html --trace t.jsonl")
    Path("others.yaml").write_text("releases: [{release: first.csv, trace: f.jsonl}]")
    at.run(f"publish {PATIENTS} -o all.csv --attack all --others others.yaml --json")
    original = "-p patients.policy.yaml --original patients.csv --trace t.jsonl"
    at.run(f"attack out.csv {original} --attack singling-out,linkability --control others.csv")
    at.run(f"attack out.csv {original} --attack inference:tolerance=0.1 --folds 2")
    options = "--control others.csv --external others.csv --others others.yaml"
    at.run(f"attack out.csv {original} {options} --report audit.html")
    at.run(f"attack out.csv {original} --attack no-such", said=False)
    at.run(f"attack out.csv {original} --person most-exposed")
    at.run(f"attack out.csv {original} --person 3 --json")
    at.run(f"attack out.csv {original} --person most-distorted")
    at.run(f"attack out.csv {original} --person 9999")


@scene()
def global_recoding(at: Recorder) -> None:
    _patients(at)
    method = "--method full-domain --set suppression=0.1"
    at.run(f"publish {PATIENTS} -o out.csv {method} --explain --report report.html")
    at.run(f"publish {PATIENTS} -o out.csv --replace {method} --plan plan.json")
    at.run("sample patients -n 200 --seed 8 -o later.csv -q")
    at.run(
        "publish later.csv -p patients.policy.yaml -o later-out.csv --method full-domain"
        " --plan plan.json"
    )
    at.run(
        f"publish {PATIENTS} -o rounds.csv --method full-domain --set suppression=0.3"
        " --set rounds=3"
    )
    at.run(f"publish {PATIENTS} -o none.csv --plan plan.json --method mondrian")
    at.run(f"compare {PATIENTS} {method} --levels age:1 --levels zip:3")
    at.run(f"compare {PATIENTS} {method} --levels age:1 --json")
    at.run(f"compare {PATIENTS} {method} --levels age:9")
    at.run(f"compare {PATIENTS} {method} --columns")
    at.run(f"compare {PATIENTS} --columns --json -q")


@scene()
def two_tables(at: Recorder) -> None:
    at.run("sample wearables -n 150 --seed 7 -o wearables.csv -q")
    attributes = yaml.safe_load(Path("wearables.policy.yaml").read_text())["attributes"]
    for name in attributes:
        if name.startswith("acc_") or name == "effort":
            attributes[name] = {"role": "drop"}
    promise = {"model": "l-diversity", "attribute": "activity", "l": 3}
    words = {"attributes": attributes, "promises": [promise]}
    _policy("apart.yaml", "wearables.policy.yaml", **words, method={"name": "anatomy", "l": 3})
    at.run("publish wearables.csv -p apart.yaml -o apart.csv --report report.html")
    at.run("publish wearables.csv -p apart.yaml -o near.csv --set near=true --json")
    at.run("audit apart.csv -p apart.yaml --original wearables.csv")
    at.run("verify apart.csv -p apart.yaml")
    _edit("apart.sensitive.csv", ",", ";")
    at.run("verify apart.csv -p apart.yaml")


@scene(slow=True)
def beside_others(at: Recorder) -> None:
    at.run("sample patients -n 400 --seed 7 -o patients.csv -q")
    everybody = pl.read_csv("patients.csv", infer_schema=False)
    everybody = everybody.unique("patient", keep="first", maintain_order=True)
    everybody.head(260).write_csv("first.csv")
    everybody.tail(260).write_csv("second.csv")
    policy = "-p patients.policy.yaml"
    at.run(f"publish first.csv {policy} -o first-out.csv --k 20 -q --trace first.jsonl")
    first = {"release": "first-out.csv", "policy": "patients.policy.yaml"}
    first |= {"original": "first.csv", "trace": "first.jsonl"}
    for name, asked in (
        ("presence", {}),
        ("own", {"attacker": "own"}),
        ("strict", {"strict": True}),
        ("asked", {"k": 3, "l": 2}),
    ):
        Path(f"{name}.yaml").write_text(yaml.safe_dump({"releases": [first], **asked}))
    at.run(
        f"publish second.csv {policy} -o second-out.csv --others presence.yaml"
        " --trace second-out.jsonl --report report.html"
    )
    at.run(f"publish second.csv {policy} -o strict.csv --others strict.yaml --json")
    at.run(f"publish second.csv {policy} -o own.csv --others own.yaml")
    at.run(f"publish second.csv {policy} -o alone.csv -q --trace alone.jsonl")
    for released in ("second-out", "alone"):
        for attacker in ("presence", "own"):
            at.run(
                f"audit {released}.csv {policy} --original second.csv --trace {released}.jsonl"
                f" --others {attacker}.yaml"
            )
    at.run(
        f"audit alone.csv {policy} --original second.csv --trace alone.jsonl --report audit.html"
        " --json --others asked.yaml --k 3"
    )
    Path("lacking.yaml").write_text("releases: [{release: first-out.csv}]")
    at.run(f"publish second.csv {policy} -o none.csv --others lacking.yaml")
    at.run(f"publish second.csv {policy} -o none.csv --beside first-out.csv")


@scene()
def streams(at: Recorder) -> None:
    at.run("sample purchases -n 600 --seed 7 -o purchases.csv -q")
    _policy("stream.yaml", "purchases.policy.yaml", method={"name": "fads", "delta": 200})
    stream = "stream purchases.csv -p stream.yaml"
    at.run(f"{stream} -o out.csv --trace trace.jsonl --report report.html")
    at.run(f"{stream} -o whole.csv --trace whole.jsonl --measure whole --json")
    at.run(f"{stream} -o release.csv --trace release.jsonl --measure release")
    audit = "audit out.csv -p stream.yaml --original purchases.csv --trace trace.jsonl"
    at.run(audit)
    at.run(f"{audit} --json -q --report audit.html")
    at.run(audit.replace("audit", "attack"))
    at.run("audit out.csv -p stream.yaml")
    at.run("verify out.csv -p stream.yaml")
    table = Path("purchases.csv").read_bytes()
    at.run("stream - -p stream.yaml -o - -q", stdin=table)
    for form in ("jsonl", "parquet", "csv.gz", "arrow"):
        at.run(f"{stream} -o out.{form} -q")
    at.run(f"{stream} -o 'sqlite:///stream.db?table=released'")
    at.run(f"{stream} -o 'sqlite:///stream.db?table=released' --checkpoint tabled")
    lines = table.decode().splitlines()
    Path("bad.csv").write_text("\n".join([*lines[:300], "what,is,this", *lines[300:]]) + "\n")
    at.run("stream bad.csv -p stream.yaml -o bad-out.csv")
    at.run("stream bad.csv -p stream.yaml -o stop.csv --dead-letters stop")
    Path("trace.jsonl").write_text("".join(Path("trace.jsonl").read_text().splitlines(True)[:-1]))
    at.run(audit)


@scene(slow=True)
def streams_continued(at: Recorder) -> None:
    """A source that grows, and a stream that is stopped whenever it waits for more of it."""
    at.run("sample purchases -n 600 --seed 7 -o whole.csv -q")
    lines = Path("whole.csv").read_text().splitlines(keepends=True)
    for method in STREAM_METHODS:
        name = {"name": method, "delta": 150}
        _policy("stream.yaml", "whole.policy.yaml", method=name)
        command = (
            f"stream {method}.csv -p stream.yaml -o {method}.out.csv --checkpoint {method}"
            f" --trace {method}.jsonl"
        )
        Path(f"{method}.csv").write_text("".join(lines[:400]))
        at.run(f"{command} --follow", stopped=True)
        if method == "fads":
            at.run("stream-status fads")
        Path(f"{method}.csv").write_text("".join(lines))
        at.run(command)
    at.run("stream-status fads")
    at.run("stream-status fads --json")
    at.run("stream-status missing")
    Path("fads/CURRENT").write_bytes(Path("fads/CURRENT").read_bytes()[:-9])
    _policy("stream.yaml", "whole.policy.yaml", method={"name": "fads", "delta": 150})
    at.run("stream fads.csv -p stream.yaml -o fads.out.csv --checkpoint fads --trace fads.jsonl")


STREAM_METHODS = "fads castle b-castle faanst fads-tuple sky swaf zhou".split()


@scene()
def ledgers(at: Recorder) -> None:
    _wearables(at)
    policy = "-p wearables-1.policy.yaml"
    for number in (1, 2, 3):
        report = "--report report.html --json" if number == 3 else ""
        at.run(f"republish wearables-{number}.csv {policy} --ledger crp {report}")
    at.run(f"republish wearables-3.csv {policy} --ledger crp")
    at.run(f"republish wearables-4.csv {policy} --ledger crp --what-if")
    at.run("audit --ledger crp")
    at.run("audit --ledger crp --json -q --report history.html")
    at.run("attack --ledger crp")
    at.run("ledger verify crp")
    at.run(f"ledger verify crp --noted {'0' * 64}")
    at.run("ledger export crp -o table.csv")
    at.run("ledger export crp -o - --release 2")
    at.run("ledger export crp -o ninth.csv --release 9")
    at.run("verify crp/0002/data.csv crp/0002/certificate.json")
    at.run("verify crp/0002/data.csv crp/0002/certificate.json --json")
    with_table = f"{policy} --ledger tabled -o 'sqlite:///ledger.db?table=months'"
    at.run(f"republish wearables-1.csv {with_table}")
    at.run(f"republish wearables-2.csv {with_table} -q")
    at.run("audit 'sqlite:///ledger.db?table=months' --ledger tabled")
    at.run("ledger verify 'sqlite:///ledger.db?table=months'")
    Path("others.yaml").write_text("releases: [{release: crp}]")
    at.run("publish wearables-4.csv -p wearables-1.policy.yaml -o beside.csv --others others.yaml")
    _edit("crp/0002/data.csv", ",", ";")
    at.run("ledger verify crp")
    at.run("audit --ledger crp")


def _wearables(at: Recorder) -> None:
    for number in (1, 2, 3, 4):
        people = 150 if number == 1 else 60
        at.run(f"sample wearables -n {people} --seed {number} -o wearables-{number}.csv -q")
    _edit("wearables-1.policy.yaml", "k: 10}", "k: 5}")


@scene(slow=True)
def ledgers_of_each_method(at: Recorder) -> None:
    _wearables(at)
    for method in ("k-pprp", "static-1", "static-2"):
        for number in (1, 2, 3):
            at.run(
                f"republish wearables-{number}.csv -p wearables-1.policy.yaml --ledger {method}"
                f" --method {method}{' --allow-leaks' * (number == 3)}"
            )
        at.run(f"ledger export {method} -o {method}.csv")
        at.run(f"audit --ledger {method}")


@scene(slow=True)
def ledgers_of_people_who_return(at: Recorder) -> None:
    """The same people with other values, some of whom are gone."""
    january = _bodies(at)
    weights = january["weight"].cast(pl.Float64) + 1
    activities = pl.concat([january["activity"].tail(1), january["activity"].head(149)])
    later = january.with_columns(weight=weights.cast(pl.String), activity=activities)
    later.filter(pl.int_range(pl.len()) % 8 != 0).write_csv("february.csv")
    january.filter(pl.int_range(pl.len()) % 9 != 0).write_csv("march.csv")
    fresh = {"activity": {"role": "sensitive", "over_time": "fresh"}}
    _bodies_policy("sticky.yaml", fresh, {"name": "sticky"})
    for table in ("january", "february", "march"):
        at.run(f"republish {table}.csv -p sticky.yaml --ledger sticky")
    _looked_at(at, "sticky")
    at.run(
        "republish march.csv -p sticky.yaml --ledger anew --what-if --earlier january.csv"
        " --earlier february.csv"
    )


@scene(slow=True)
def ledgers_with_updates_and_deletions(at: Recorder) -> None:
    january = _bodies(at)
    at.run("sample wearables -n 60 --seed 2 -o new.csv -q")
    new = pl.read_csv("new.csv", infer_schema=False)
    weights = january["weight"].cast(pl.Float64) + 1
    updated = january.with_columns(weight=weights.cast(pl.String))
    parts = {
        "january": [("insert", january)],
        "february": [
            ("delete", january.gather_every(8)),
            ("update", updated.gather_every(8, 1)),
            ("insert", new.head(30)),
        ],
        "march": [("delete", january.gather_every(8, 2)), ("insert", new.tail(30))],
    }
    for name, tables in parts.items():
        whole = [table.with_columns(operation=pl.lit(what)) for what, table in tables]
        pl.concat(whole).write_csv(f"{name}.csv")
    _bodies_policy("moving.yaml", {"operation": {"role": "operation"}}, {"name": "m-invariance"})
    for table in parts:
        at.run(f"republish {table}.csv -p moving.yaml --ledger moving --set m=3")
    at.run("republish january.csv -p moving.yaml --ledger moving --set m=3 --what-if")
    _looked_at(at, "moving")


def _bodies(at: Recorder) -> pl.DataFrame:
    at.run("sample wearables -n 150 --seed 1 -o january.csv -q")
    return pl.read_csv("january.csv", infer_schema=False)


def _bodies_policy(path: str, more: dict[str, Any], method: dict[str, Any]) -> None:
    """A policy of one sensitive attribute that asks for k = 4. more: other attributes."""
    attributes = yaml.safe_load(Path("january.policy.yaml").read_text())["attributes"]
    for name in ("acc_x", "acc_y", "acc_z", "effort"):
        attributes[name] = {"role": "drop"}
    promises = [{"model": "k-anonymity", "k": 4}]
    words = {"attributes": attributes | more, "promises": promises, "method": method}
    _policy(path, "january.policy.yaml", **words)


def _looked_at(at: Recorder, ledger: str) -> None:
    at.run(f"attack --ledger {ledger} --report {ledger}.html")
    at.run(f"ledger verify {ledger}")
    at.run(f"ledger export {ledger} -o {ledger}.csv")


@scene()
def signatures(at: Recorder) -> None:
    _patients(at)
    at.run("sign --new-key owner", said=False)
    at.run("sign --new-key owner")
    at.run(f"publish {PATIENTS} -o out.csv -q")
    at.run("sign out.csv --key owner.pem", said=False)
    at.run("verify out.csv --trust owner.pub.pem", said=False)
    at.run(f"publish {PATIENTS} -o later.csv -q")
    at.run("verify later.csv --trust owner.pub.pem")
    at.run("sign later.csv --key owner.pem", said=False)
    at.run("verify later.csv --trust owner.pub.pem", said=False)
    at.run("sign patients.csv --key owner.pem")
    at.run("sign later.csv --key missing.pem --replace")


@scene()
def dossiers(at: Recorder) -> None:
    _patients(at)
    at.run(f"publish {PATIENTS} -o out.csv --attack all -q")
    at.run("dossier --template")
    Path("release.yaml").write_text(CONTEXT)
    release = "dossier out.csv --context release.yaml -p patients.policy.yaml"
    for profile in ("iso-27559", "hipaa-expert", "ema-hc", "ehds", "gbt-42460", "appi"):
        at.run(f"{release} --profile {profile} -o {profile}.html")
    every = "--profile iso-27559 --profile hipaa-expert --profile ehds"
    at.run(f"{release} {every} --original patients.csv -o several.html -q")
    at.run(f"{release} --profile hipaa-expert --complete")
    at.run(f"{release} --profile no-such -o none.html")
    _edit("out.csv", ",", ";")
    at.run(f"{release} --profile ehds -o none.html")


CONTEXT = """\
version: 1
controller: {name: St Mary's Hospital, contact: data-office@st-marys.example}
recipient:
  who: the seven statisticians of the regional health study
  kind: restricted
  knowledge: they may know that a neighbour was in hospital
purpose: to see how illnesses differ by region and age
legal_basis: the study's permit
controls: {agreement: signed by each statistician, retention: "three years, then deleted"}
attributes:
  age: {why: illness depends on it, replicable: high, available: high, distinguishing: medium}
threshold: {max: 0.3, mean: 0.2, why: "seven people, bound by contract"}
other_releases: none-known
review_by: 2099-11-22
sign_off: []
"""


@scene()
def decisions(at: Recorder) -> None:
    """What an owner looks at before publishing: proposals, profiles, risks and comparisons."""
    _patients(at)
    at.run("policy init patients.csv -o proposed.yaml --k 5")
    at.run("policy init patients.csv --explain")
    at.run("policy init patients.csv -o proposed.yaml")
    at.run("policy check proposed.yaml patients.csv")
    at.run("policy check patients.policy.yaml patients.csv")
    at.run("policy check patients.policy.yaml")
    at.run("policy check --schema", said=False)  # lists every method
    at.run("methods", said=False)
    at.run("methods --json", said=False)
    at.run(f"profile {PATIENTS}")
    at.run(f"profile {PATIENTS} --json -q")
    at.run("profile patients.csv --qi age,zip --k 3")
    at.run(f"profile {PATIENTS} --json --k 3")
    at.run(
        f"compare {PATIENTS} --methods mondrian,full-domain,rounded-partition:refine=none"
        " --ks 5,20,900"
        " --report compared.html -o compared.json",
        ticking=True,
    )
    at.run(f"compare {PATIENTS} --methods mondrian,mdav --ks 5 --skip 5:mdav --attack --json")
    wards = Path("tables/herkunft.csv")
    wards.parent.mkdir()
    wards.write_text("north;up;*\nsouth;down;*\n")
    Path("tables/sex.csv").write_text("female;*\nmale;*\n")
    at.run("hierarchies match patients.csv tables")
    at.run("hierarchies match patients.csv tables -p patients.policy.yaml --json")
    at.run("policy init patients.csv --hierarchies tables -o matched.yaml")
    edits = "'{put: east, under: down}' '{rename: down, to: low}'"
    at.run(f"hierarchies edit {wards} {edits}")
    at.run(f"hierarchies edit {wards} {edits} -o edited.csv")
    Path("counted.csv").write_text("ward\n" + "north\n" * 9 + "south\n" * 9 + "east\n")
    rare = "'{put: east, under: down}' '{rare: 3}' --data counted.csv --column ward"
    at.run(f"hierarchies edit {wards} {rare} -o rare.csv")
    at.run(f"hierarchies edit {wards} '{{put: east, under: nowhere}}'")
    gap = {"role": "quasi", "hierarchy": "tables/herkunft.csv"}
    _policy("gap.yaml", "patients.policy.yaml", attributes={"ward": gap}, other="drop", promises=[])
    at.run("policy check gap.yaml patients.csv")
    promises = [{"model": "k-anonymity", "k": 5}]
    _policy(
        "gap.yaml",
        "patients.policy.yaml",
        attributes={"ward": gap},
        other="drop",
        promises=promises,
    )
    at.run("policy check gap.yaml patients.csv")
    at.run("policy check gap.yaml patients.csv --show-values")


@scene()
def refusals(at: Recorder) -> None:
    """Bad input, policies and usage; none of these messages lists methods."""
    _patients(at, 100)
    publish = f"publish {PATIENTS} -o out.csv"
    at.run(f"{publish} --k 500")
    at.run(f"{publish} --k 0")
    at.run(f"{publish} --k many")
    at.run(f"{publish} --no-such")
    at.run(f"{publish} --set cut")
    at.run(f"{publish} --method mondrian --set cut=no-such")
    at.run(f"{publish} --method no-such", said=False)
    at.run(f"{publish} --read encoding=no-such")
    at.run(f"{publish} --memory much")
    at.run(f"{publish} --report page.txt")
    at.run(f"{publish} --engine spark")
    at.run("publish patients.csv -p patients.policy.yaml -o out.unknown")
    at.run("publish patients.csv -p patients.policy.yaml -o patients.csv")
    at.run("publish patients.csv -p patients.policy.yaml -o missing/folder/out.csv")
    at.run("publish patients.csv -p missing.yaml -o out.csv")
    at.run("publish missing.csv -p patients.policy.yaml -o out.csv")
    at.run("publish patients.csv -o out.csv")
    at.run("publish")
    at.run("no-such")
    at.run("audit patients.csv -p patients.policy.yaml")
    at.run("audit patients.csv --column quasi=no-such --k 2")
    at.run("audit --trace missing")
    at.run("audit --ledger missing")
    at.run("ledger verify missing")
    at.run("ledger export missing -o out.csv")
    at.run("stream patients.csv -p patients.policy.yaml -o out.csv")
    at.run("stream missing.csv -p patients.policy.yaml -o out.csv")
    kafka = "stream kafka://127.0.0.1:1/topic -p patients.policy.yaml -o out.csv --checkpoint state"
    at.run(kafka, without="confluent_kafka")
    at.run(
        "republish patients.csv -p patients.policy.yaml --ledger ledger --method mondrian",
        said=False,
    )
    at.run("fuse missing.yaml -o out.csv")
    at.run("fuse patients.policy.yaml -o out.csv")
    at.run("party run bank missing.yaml --check")
    at.run("reproduce no-such", said=False)
    at.run("warmup --verb no-such")
    at.run("ui patients.csv --no-browser")
    at.run("ui project --tables missing --no-browser")
    for name, changes in POLICIES_AT_FAULT.items():
        _policy("fault.yaml", "patients.policy.yaml", **changes)
        at.run(f"publish patients.csv -p fault.yaml -o '{name}.csv'")
    Path("fault.yaml").write_text("version: 1\nattributes: [")
    at.run("policy check fault.yaml")
    rows = Path("patients.csv").read_text().splitlines()
    faults = {
        "empty": "",
        "header": rows[0] + "\n",
        "ragged": "\n".join([*rows, "one,two"]) + "\n",
        "doubled": "\n".join([f"{rows[0]},age", *(f"{row},1" for row in rows[1:])]) + "\n",
        "letters": "\n".join(rows[:9]).replace(",3", ",x") + "\n",
    }
    for name, text in faults.items():
        Path(f"{name}.csv").write_text(text)
        at.run(f"publish {name}.csv -p patients.policy.yaml -o out.csv")


POLICIES_AT_FAULT: dict[str, dict[str, Any]] = {
    "version": {"version": 9},
    "key": {"promisess": []},
    "promise": {"promises": [{"model": "k-anonimity", "k": 5}]},
    "no promise": {"promises": []},
    "parameter": {"promises": [{"model": "k-anonymity"}]},
    "column": {"attributes": {"agee": {"role": "quasi", "type": "number", "domain": [0, 100]}}},
    "domain": {
        "attributes": {"age": {"role": "quasi", "type": "number", "domain": [0, 20]}},
        "other": "drop",
        "promises": [{"model": "k-anonymity", "k": 5}],
    },
    "infeasible": {"promises": [{"model": "l-diversity", "attribute": "disease", "l": 40}]},
}


@scene()
def helps(at: Recorder) -> None:
    """The help of every command."""
    at.run("--help")
    for command in COMMANDS:
        at.run(f"{command} --help")


COMMANDS = (
    "publish,republish,stream,stream-status,ledger,ledger verify,ledger export,audit,verify,"
    "sign,dossier,profile,compare,attack,fuse,party,party init,"
    "party run,methods,warmup,ui,policy,policy init,policy check,"
    "hierarchies,hierarchies match,hierarchies edit,reproduce,sample"
).split(",")


@scene(slow=True)
def machine(at: Recorder) -> None:
    """What a machine takes; the figures themselves are its own."""
    at.run("warmup --verb publish", said=False)
    _patients(at)
    at.run(f"publish {PATIENTS} -o out.csv --dry-run", said=False)
    at.run(f"publish {PATIENTS} -o out.csv --dry-run --json", said=False)


@scene(slow=True)
def fusion_in_turns(at: Recorder) -> None:
    _owners(at)
    at.run("party run bank demo/bank.parties.yaml --check")
    at.run("party init bank --keys keys", said=False)
    at.run("party init bank --keys keys")
    at.run("party run nobody demo/bank.parties.yaml -o out.csv")
    at.run(f"party run bank demo/bank.parties.yaml -o out.csv --keys keys --agreed {'0' * 64}")
    _fused(at, "party-mondrian")


@scene(slow=True)
def fusions(at: Recorder) -> None:
    _owners(at)
    _fused(at, "party-tds", " --set ahead=8")
    _fused(at, "party-tds-literal", " --set runner_up=told")
    _fused(at, "party-tds-stepwise")
    at.run("fuse demo/bank.parties.yaml -o json.csv --k 6 --set ahead=8 --json")
    at.run("fuse demo/bank.parties.yaml -o none.csv --k 95")


def _owners(at: Recorder) -> None:
    """Three owners of 100 people each, who ask for k = 4."""
    at.run("sample bank -n 100 --seed 3 -o demo -q")
    agreement = yaml.safe_load(Path("demo/bank.parties.yaml").read_text())
    for promise in agreement["promises"]:
        promise["k"] = 4
    Path("demo/bank.parties.yaml").write_text(json.dumps(agreement))


def _fused(at: Recorder, method: str, settings: str = "") -> None:
    at.run(
        f"fuse demo/bank.parties.yaml -o {method}.csv --method {method}{settings}"
        f" --transcript {method} --report {method}.html"
    )
    at.run(f"audit --trace {method}")
    at.run(f"verify {method}.csv")
    at.run(f"audit {method}.csv -p demo/bank.policy.yaml --json")


if __name__ == "__main__":
    main(sys.argv[1:])
