"""Random bytes, damaged files and random words for every reader and every command.

A case is one command in a folder of real files, of which some are damaged, or with words that fit
nothing. Whatever they are, it ends with a status of the contract and never with 70, with one clear
line, without a cell or a traceback, within `MEMORY`, and leaves nothing half-written behind.

Cases run one after the other in a process that has loaded everything; one that ends the process, by
a crash or for memory, is a finding, and the next process goes on behind it.
"""

import argparse
import contextlib
import gzip
import io
import json
import os
import random
import re
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MEMORY = 4 << 30
"""Bytes of addresses that the process of a case may take, libraries among them."""

PATIENCE = 120
"""Seconds for one case."""

CELL = "zq7w"
"""In every cell of the column that is sensitive, and in no message."""

STATUSES = {0, 1, 2, 3, 4}

POLICY = {
    "version": 1,
    "attributes": {
        "id": {"role": "subject"},
        "age": {"role": "quasi", "type": "number", "domain": [0, 120]},
        "sex": {"role": "quasi", "hierarchy": {"tree": ["f", "m"]}},
        "zip": {"role": "quasi", "hierarchy": "zip.csv"},
        "ill": {"role": "sensitive"},
    },
    "promises": [{"model": "k-anonymity", "k": 3}],
    "seed": 7,
}
BEFORE = [
    "publish t.csv -p p.yaml -o r.csv --method full-domain --plan plan.json",
    "publish t.csv -p p.yaml -o r.parquet",
    "publish t.csv -p p.yaml -o r.xlsx",
    "publish t.csv -p p.yaml -o r.csv.gz",
    "publish t.csv -p p.yaml -o r.jsonl",
    "stream t.csv -p p.yaml -o s.csv --checkpoint ck --trace s.trace --set delta=20",
    "republish t.csv -p p.yaml --ledger led",
    "republish u.csv -p p.yaml --ledger led",
    "sample bank -n 60 --seed 1 -o bank.csv",
    "sign --new-key own --unprotected",
    "party init bank --keys .",
]
TABLES = ("t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.arrow", "t.xlsx", "t.csv.gz", "t.jsonl.gz")
TABLES += ("t.orc", "deep.orc", "long.orc")
TABLES += ("zstd.parquet", "zstd.arrow", "deep.parquet", "deep.arrow", "long.parquet")
TABLES += ("sqlite:///t.db?table=t",)
POLICIES = ("p.yaml", "p.json", "p.toml")
RELEASES = ("r.csv", "r.parquet", "r.xlsx", "r.csv.gz", "r.jsonl")
OUTPUTS = ("o.csv", "o.tsv", "o.jsonl", "o.parquet", "o.arrow", "o.xlsx", "o.csv.gz", "out/", "-")
COMMANDS = [
    "publish T -p P -o O",
    "publish T -p P -o O --memory 300MB",
    "publish T -p P -o O --method full-domain --plan plan.json --report o.html",
    "publish T -p P -o o.csv --attack all",
    "publish T -p P -o O --others P",
    "profile T",
    "profile T -p P",
    "compare T -p P --columns",
    "policy init T",
    "policy init T -o o.yaml",
    "policy check P",
    "policy check P T",
    "compare T -p P --ks 2,3 --methods mondrian",
    "compare T -p P --levels zip:1",
    "audit R -p P",
    "audit R -p P --original T",
    "audit R --column quasi=age,sex --k 3",
    "attack R -p P --original T",
    "audit s.csv -p P --original t.csv --trace s.trace",
    "audit --ledger led",
    "verify R",
    "verify R -p P",
    "verify R r.csv.certificate.json -p P --original T",
    "dossier R -p P -o o.html",
    "stream T -p P -o o.csv --checkpoint o.ck",
    "stream T -p P -o o.jsonl",
    "stream t.csv -p p.yaml -o s.csv --checkpoint ck --trace s.trace --set delta=20",
    "stream-status ck",
    "republish T -p P --ledger led",
    "republish T -p P --ledger o.led",
    "republish T -p P --ledger led --what-if",
    "ledger verify led",
    "ledger export led -o O",
    "attack R -p P --original T --person 1",
    "hierarchies match T --folder .",
    "hierarchies edit zip.csv '{put: 9, under: 1}' -o -",
    "party run a parties.yaml --check",
    "methods",
    "fuse parties.yaml -o O",
    "party init new",
    "party run bank parties.yaml -o O --patience 1",
    "sign R --key own.pem",
    "sign --new-key o --unprotected",
    "sample patients -n 20 -o O",
    "hierarchies edit zip.csv '[{rename: 9, to: 8}]' --data T --column zip",
    "policy check --schema",
    "warmup --verb publish",
    "publish T -p P -o O --dry-run",
    "reproduce rounded-partition --quick --out .",
    "ui",
    *["python"] * 4,
]
"""Each leaf command of the program; `ui` stands for requests to its page, `python` for a frame."""

LONG = ("estimate", "fuse", "reproduce", "warmup")
"""What takes seconds, and is drawn less often."""

LEFT = {"stream": ("o.", "ck", "s."), "republish": ("led", "o.led"), "audit": ("",), "ui": ("",)}
"""What a verb that fails may leave: a stream what it had committed, a ledger its lock, an audit
what it found, the page its project."""

ODD = ["", "null", "-1", "1e999", "NaN", "0", "9" * 40, "[]", "{}", "\0", "\r", '"', "'", "*", "é"]
ODD += ["1e-300", "&a", "<<: *a", "a" * 300, "\udcff", "%s", "2024-13-45", "=1+1", "\ufeff", "true"]
ODD += ["²", "2²", "[" * 3000, '{"a":' * 3000, '{"a":' + "[" * 990 + "]" * 990 + "}"]
ODD += ["!!int ''", "!!bool x", "!!timestamp x", "1" + ":1" * 50_000, "a" * 100_000]
ODD += ["delta=9223372036854775808", "c0=inf", "<!-- -->", "<![CDATA[1]]>", " ="]
VALUES: list[Any] = [None, True, -1, 0, 1e308, 1e-300, 10**30, "", "x", [], {}, {"a": []}]
VALUES += [
    "\0",
    "2024-02-30",
    "é" * 40,
    0.5,
    3,
    [1, 2],
    {"prefix": -1},
    {"bins": [1, 0]},
    "zip.csv",
]
FAR = ["0", "-1", "4294967295", "18446744073709551615", "9" * 5000, "B4294967295", "ZZZZZ2"]
FAR += ["A1:XFD1048576", "XFD1048576", "A1048577", "AAAA2", "100000000", "", "x"]
"""Instead of an attribute's value in a workbook."""
_ATTRIBUTE = re.compile(rb' ([A-Za-z:]+)="([^"<]*)"')
INSTEAD = [(b"\n", b"\r"), (b"\n", b"\r\n"), (b"\n", b"\n\n"), (b",", b";"), (b'"', b"")]
INSTEAD += [(b"3", b"-"), (b"a", b"\xff"), (b":", b""), (b"1", b"")]


def prepare(folder: Path) -> None:
    """Real files of every kind that some command reads."""
    import polars as pl
    import yaml
    from pyarrow import orc

    from shoal.cli.main import status_of

    draw = random.Random(5)
    rows = [
        {"id": f"p{n}", "age": draw.randrange(100), "sex": draw.choice("fm"), "zip": draw.choice(
            ["11", "12", "21", "22"]), "ill": CELL + draw.choice("abcd")}
        for n in range(120)
    ]  # fmt: skip
    table = pl.DataFrame(rows[:60])
    table.write_csv(folder / "t.csv")
    pl.DataFrame(rows[60:]).write_csv(folder / "u.csv")
    table.write_csv(folder / "t.tsv", separator="\t")
    table.write_ndjson(folder / "t.jsonl")
    table.write_parquet(folder / "t.parquet")
    table.write_ipc(folder / "t.arrow")
    table.write_parquet(folder / "zstd.parquet", compression="zstd", use_pyarrow=True)
    table.write_ipc(folder / "zstd.arrow", compression="zstd")
    same = pl.DataFrame({"age": pl.repeat(3, 10**8, dtype=pl.Int8, eager=True)})
    same.write_parquet(folder / "deep.parquet", compression="zstd")
    same.write_ipc(folder / "deep.arrow", compression="zstd")
    long = pl.DataFrame({"age": [3] * 3000, "ill": [CELL + "x" * (1 << 20)] * 3000})
    long.write_parquet(folder / "long.parquet", compression="zstd")
    orc.write_table(table.to_arrow(), folder / "t.orc", compression="zstd")
    lists = table.with_columns(
        more=pl.Series([[0] * (1 << 24)] + [[]] * 59, dtype=pl.List(pl.Int8))
    )
    orc.write_table(lists.to_arrow(), folder / "deep.orc", compression="zstd")
    orc.write_table(long[:300].to_arrow(), folder / "long.orc", compression="zstd")
    for name in ("t.csv", "t.jsonl"):
        packed = gzip.compress((folder / name).read_bytes(), mtime=0)
        (folder / f"{name}.gz").write_bytes(packed)
    (folder / "zip.csv").write_text("11;1;*\n12;1;*\n21;2;*\n22;2;*\n")
    (folder / "p.yaml").write_text(yaml.safe_dump(POLICY, sort_keys=False))
    (folder / "p.json").write_text(json.dumps(POLICY))
    parts = [f"{json.dumps(key)} = {_toml(value)}" for key, value in POLICY.items()]
    (folder / "p.toml").write_text("\n".join(parts))
    assert tomllib.loads((folder / "p.toml").read_text()) == POLICY
    import sqlite3

    from shoal.connectors import files
    from web.visitor import Visitor, served

    with contextlib.closing(sqlite3.connect(folder / "t.db")) as base:
        base.execute("create table t (id text primary key, age, sex, zip, ill)")
        base.executemany("insert into t values (?,?,?,?,?)", [tuple(r.values()) for r in rows[:60]])
        base.commit()
    files.write(table, folder / "t.xlsx", ".xlsx")
    with contextlib.chdir(folder):
        for command in BEFORE:
            assert status_of(command.split()) == 0, command
    for agreement in folder.glob("*parties*.yaml"):
        agreement.rename(folder / "parties.yaml")
    with served(folder / "project", folder) as page:
        visitor = Visitor(page)
        assert visitor.post("/table", path="t.csv").status == 200
        visitor.edit("person", person="1")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def draw_case(seed: str, folder: Path) -> list[str]:
    """The words of a command; damages files of the folder that it reads."""
    draw = random.Random(seed)
    command = draw.choice(COMMANDS)
    if command.startswith(LONG) and draw.random() < 0.9:
        command = draw.choice(COMMANDS)
    if command in ("ui", "python"):
        return [command, seed]
    chosen = {
        "T": draw.choice(TABLES),
        "P": draw.choice(POLICIES),
        "R": draw.choice(RELEASES),
        "O": draw.choice(OUTPUTS),
    }
    import shlex

    words = [chosen.get(word, word) for word in shlex.split(command)]
    named = [word.removeprefix("sqlite:///").partition("?")[0] for word in words]
    read = [path for name in named for path in _within(folder, folder / name)]
    read += [folder / f"{n}.certificate.json" for n in named if n.startswith(("r.", "s."))]
    read += [folder / "zip.csv"] if "-p" in words else []
    read += folder.glob("bank.*.csv") if "parties.yaml" in words else []
    for path in draw.sample(read, min(len(read), draw.choice([0, 1, 1, 1, 2]))):
        if path.is_file():
            path.write_bytes(damaged(path.read_bytes(), draw, path))
    if draw.random() < 0.3:
        options = _options(words)
        for _ in range(draw.randrange(1, 4)):
            words += [draw.choice(options)] if options and draw.random() < 0.8 else []
            words += [draw.choice([*ODD, *chosen.values(), "age", "k=2", "2"]).replace("\0", "")]
    if len(words) > 1 and draw.random() < 0.05:
        at = draw.randrange(1, len(words))
        words[at] = draw.choice(ODD).replace("\0", "")
    return words


def _within(folder: Path, path: Path) -> list[Path]:
    if path == folder or not path.exists():
        return []
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def damaged(content: bytes, draw: random.Random, path: Path) -> bytes:
    """Other bytes in its place: some kept, moved, lost or made up."""
    if path.suffix in (".yaml", ".json") and draw.random() < 0.6:
        with contextlib.suppress(ValueError):
            return _with_another_value(content, draw)
    if path.suffix == ".xlsx" and draw.random() < 0.6:
        with contextlib.suppress(zipfile.BadZipFile, ValueError):
            return _with_another_attribute(content, draw)
    found = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 5])):
        at = draw.randrange(len(found) + 1)
        kind = draw.randrange(8)
        if kind == 0 and found:
            for _ in range(draw.choice([1, 3, 20])):
                found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del found[at:]
        elif kind == 2:
            found[at : at + draw.randrange(9)] = draw.randbytes(draw.randrange(9))
        elif kind == 3:
            found[at:at] = draw.choice(ODD).encode("utf-8", "surrogateescape")
        elif kind == 4:
            found[at:at] = found[at : at + draw.randrange(200)]
        elif kind == 5:
            del found[at : at + draw.randrange(200)]
        elif kind == 6:
            found = found.replace(*draw.choice(INSTEAD))
        else:
            found = bytearray(draw.randbytes(draw.randrange(200)))
    if path.suffix == ".gz" and draw.random() < 0.5:
        with contextlib.suppress(OSError, EOFError):
            return gzip.compress(damaged(gzip.decompress(content), draw, path.with_suffix("")))
    return bytes(found)


def _with_another_attribute(content: bytes, draw: random.Random) -> bytes:
    """A workbook that says something else in a part of its archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    for _ in range(draw.choice([1, 1, 2])):
        name = draw.choice([name for name in parts if _ATTRIBUTE.search(parts[name])])
        counted = [one for one in _ATTRIBUTE.finditer(parts[name]) if one[2][-1:].isdigit()]
        begin, end = draw.choice(counted or [*_ATTRIBUTE.finditer(parts[name])]).span(2)
        value = draw.choice(FAR).encode()
        parts[name] = parts[name][:begin] + value + parts[name][end:]
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name, part in parts.items():
            new.writestr(name, part)
    return made.getvalue()


def _with_another_value(content: bytes, draw: random.Random) -> bytes:
    import yaml

    is_json = content.lstrip().startswith(b"{")
    found = json.loads(content) if is_json else yaml.safe_load(content)
    places: list[tuple[Any, Any]] = []

    def walk(part: Any) -> None:
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            places.append((part, key))
            if isinstance(value, dict | list):
                walk(value)

    if not isinstance(found, dict | list):
        raise ValueError
    walk(found)
    for _ in range(draw.choice([1, 1, 2])):
        part, key = draw.choice(places)
        kind = draw.random()
        if kind < 0.2 and isinstance(part, dict):
            part.pop(key, None)
        elif kind < 0.3 and isinstance(part, dict):
            part[draw.choice(["x", "k", "round", "type", "weight", "order", "subject"])] = (
                draw.choice(VALUES)
            )
        else:
            part[key] = draw.choice(VALUES)
    return (json.dumps(found) if is_json else yaml.safe_dump(found)).encode()


def _options(words: list[str]) -> list[str]:
    """Those of a command, but for what waits or asks."""
    import typer

    from shoal.cli.main import app

    at: Any = typer.main.get_command(app)
    for word in words:
        if not hasattr(at, "commands") or word not in at.commands:
            break
        at = at.commands[word]
    named = {name for parameter in at.params for name in parameter.opts if name.startswith("-")}
    waits = {"--follow", "--help", "--complete", "--threads", "--engine", "--patience", "--all"}
    return sorted(named - waits)


def run(words: list[str], folder: Path, remembered: Path) -> list[str]:
    """What is wrong about one case, in the order of its weight."""
    there = {path: path.read_bytes() for path in _within(Path(), folder)}
    os.environ.pop("SHOAL_DEBUG", None)
    with _captured(remembered) as said, contextlib.chdir(folder):
        status = _status(words)
    out, err = said()
    problems = []
    if status not in STATUSES:
        problems.append(f"status {status}: {err.strip()[:200]}")
    if "Traceback" in out + err or "panicked" in err:
        problems.append(f"traceback: {err.strip()[-300:]}")
    if "memory: there is not" in err:
        problems.append("memory")
    is_name = "in the data, not in the policy" in err  # what the first line holds names a column
    if CELL in err and "--person" not in words and not is_name:
        problems.append(f"cell: {err.strip()[:300]}")
    if status == 2 and not err.startswith(("shoal: ", "Usage")):
        problems.append(f"no clear line: {err[:200]!r}")
    problems += _left(words[0], status, there, folder)
    return problems


def _status(words: list[str]) -> int:
    """Runs a case in the folder that is the current one."""
    from shoal.cli.main import status_of

    if words[0] == "ui":
        from fuzz.odd_requests import visit

        return visit(words[1], Path(), ODD)
    if words[0] == "python":
        return _python(words[1])
    return status_of([*words, "-q"] if words[0] in ("publish", "stream") else words)


def _python(seed: str) -> int:
    """What a command would end with that called the same function."""
    from fuzz.odd_frames import call
    from shoal.errors import ShoalError

    try:
        call(seed)
    except ShoalError as refused:
        print(f"shoal: {refused.args[0]}", file=sys.stderr)
        return 70 if "\n" in refused.args[0] else refused.exit_status
    except BaseException as bug:
        if os.environ.get("SHOAL_DEBUG") == "1":
            raise
        print(type(bug).__name__, file=sys.stderr)
        return 70
    return 0


def _left(verb: str, status: int, there: dict[Path, bytes], folder: Path) -> Iterator[str]:
    for path in _within(Path(), folder):
        name = str(path.relative_to(folder))
        if ".part" in path.name:
            yield f"draft left: {name}"
        elif status and path not in there and not name.startswith(LEFT.get(verb, ("?",))):
            yield f"left behind: {name} (status {status})"


@contextlib.contextmanager
def _captured(remembered: Path) -> Iterator[Callable[[], tuple[str, str]]]:
    """Both outputs of this process, whoever writes to them, and nothing to read."""
    paths = [remembered / "out", remembered / "err"]
    kept = [os.dup(1), os.dup(2)]
    for number, path in enumerate(paths, 1):
        with open(path, "wb") as file:
            os.dup2(file.fileno(), number)
    try:
        yield lambda: tuple(path.read_text("utf-8", "replace") for path in paths)  # type: ignore
    finally:
        for number, (stream, old) in enumerate(zip((sys.stdout, sys.stderr), kept, strict=True), 1):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
            os.dup2(old, number)
            os.close(old)


def worker(seed: str, first: int, count: int, seeds: Path) -> None:
    """Runs cases and says before each which it is, and behind each what it found."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    tell = os.fdopen(os.dup(1), "w", buffering=1)
    with tempfile.TemporaryDirectory() as remembered:
        for number in range(first, first + count):
            tell.write(json.dumps({"begun": number}) + "\n")
            words, problems = one(f"{seed} {number}", seeds, Path(remembered))
            tell.write(json.dumps({"done": number, "words": words, "problems": problems}) + "\n")


def one(seed: str, seeds: Path, remembered: Path) -> tuple[list[str], list[str]]:
    """A case: its words, and what is wrong."""
    folder = remembered / "case"
    shutil.copytree(seeds, folder)
    try:
        words = draw_case(seed, folder)
        problems = run(words, folder, remembered)
        if any(problem.startswith("status 70") for problem in problems):
            shutil.rmtree(folder)
            shutil.copytree(seeds, folder)
            problems.append(_trace(draw_case(seed, folder), folder, remembered))
        return words, problems
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _trace(words: list[str], folder: Path, remembered: Path) -> str:
    os.environ["SHOAL_DEBUG"] = "1"
    try:
        with _captured(remembered), contextlib.chdir(folder):
            _status(words)
    except BaseException as bug:
        frames = traceback.extract_tb(bug.__traceback__)
        own = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "/shoal/" in f.filename]
        return f"trace {type(bug).__name__} {' '.join(own[-4:])}: {str(bug)[:200]}"
    return "trace: none the second time"


def run_cases(seed: str, first: int, count: int) -> Iterator[tuple[int, list[str], list[str]]]:
    """Number, words and problems of cases, in processes of their own."""
    with tempfile.TemporaryDirectory() as made:
        seeds = Path(made) / "seeds"
        seeds.mkdir()
        quiet = io.StringIO()
        with contextlib.redirect_stderr(quiet), contextlib.redirect_stdout(quiet):
            prepare(seeds)
        at = first
        while at < first + count:
            command = [sys.executable, "-m", "fuzz.hostile", "--worker", str(seeds)]
            command += ["--seed", seed, "--first", str(at), "--count", str(first + count - at)]
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]
            )
            assert process.stdout is not None
            while select.select([process.stdout], [], [], PATIENCE)[0]:
                line = process.stdout.readline()
                if not line:
                    break
                shown = json.loads(line)
                if "done" in shown:
                    at = shown["done"] + 1
                    yield shown["done"], shown["words"], shown["problems"]
            else:
                process.kill()
            if (status := process.wait()) or at < first + count:
                yield at, [], [f"the process ended with {status}"]
                at += 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.hostile", description=__doc__)
    parser.add_argument("--seed", default=f"{random.randrange(10**6)}")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--worker", type=Path)
    asked = parser.parse_args()
    if asked.worker is not None:
        worker(asked.seed, asked.first, asked.count, asked.worker)
        return 0
    started, kinds, shown = time.monotonic(), Counter[str](), 0.0
    print(f"seed {asked.seed}", flush=True)
    for done, case in enumerate(run_cases(asked.seed, asked.first, asked.count), 1):
        number, words, problems = case
        if problems:
            kinds[problems[-1][:120]] += 1
            print(f"PROBLEM {number}: {' '.join(words)!r}", *problems, sep="\n    ", flush=True)
        if (now := time.monotonic() - started) - shown > 30 or done == asked.count:
            shown = now
            print(
                f"{done} of {asked.count}, {done / now:.1f}/s, {kinds.total()} problems", flush=True
            )
    for kind, times in kinds.most_common():
        print(f"  {times:5} {kind}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
