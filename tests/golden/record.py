"""Record the SHA-256 of what every method publishes, so that a refactoring can be shown to change
nothing.

    python tests/golden/record.py              # the bundled samples: rewrites samples.json
    python tests/golden/record.py fusions      # the sample of three owners: fusions.json
    python tests/golden/record.py adult FOLDER # Adult, from the folder with the real data sets:
    adult.json

`test_golden.py` runs one sample for each verb again and compares; all in `make test-all`. A change
that is meant to change releases records them again and says so in its commit. Certificates count
without their times, the version and the statistics of a search.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from shoal.cli.main import status_of
from shoal.data.recoding import OWN_METHODS

HERE = Path(__file__).parent
CLOSENESS = {"model": "t-closeness", "attributes": ["disease", "charge"], "t": 0.35}
ADULT_COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()
ADULT_QUASI = ("workclass", "education", "marital-status", "race", "sex", "native-country")
# what makes a method quick enough on 30,162 records to be recorded there
ADULT_PARAMETERS = {
    "bottom-up": {"block": 1024},
    "k-member": {"block": 1024},
    "oka": {"block": 1024},
    "tcloseness-fcm": {"block": 1024},
    "tcloseness-k-first": {"block": 1024},
    "tcloseness-kmeanspp": {"block": 1024},
    "tcloseness-merge": {"block": 4096},
    "tcloseness-t-first": {"block": 4096},
    "mdav": {"block": 4096},
}
CONSENTED = {"party-tds-literal": {"runner_up": "told"}}
# times, versions, and the hashes and random masks that follow from them
CERTIFICATE_IGNORES = ("seconds", "scale", "shoal", "date", "build", "ledger", "fusion", "parties")
METHOD_IGNORES = ("account", "search_statistics")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["adult"] and len(arguments) == 2:
        recorded, path = adult(Path(arguments[1]).resolve()), HERE / "adult.json"
    elif arguments == ["fusions"]:
        recorded, path = fusions(), HERE / "fusions.json"
    elif not arguments:
        recorded, path = samples(), HERE / "samples.json"
    else:
        sys.exit(__doc__)
    path.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    print(f"{len(recorded)} releases in {path.name}")


def samples(left_out: Sequence[str] = ()) -> dict[str, Any]:
    """What every method publishes of the bundled samples. left_out: tables of no interest."""
    with _folder() as folder:
        return dict(_of_samples(folder, left_out))


def fusions() -> dict[str, Any]:
    """What every method of fusion publishes of the bundled sample, each owner a process."""
    with _folder() as folder:
        return dict(_of_fusions(folder))


def adult(data: Path) -> dict[str, Any]:
    """What every method publishes of Adult's complete training records."""
    with _folder() as folder:
        return dict(_of_adult(folder, data))


def _of_samples(folder: Path, left_out: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for name, records in (("patients", 600), ("purchases", 2000), ("bank", 600)):
        _shoal("sample", name, "-n", records, "--seed", 7, "-o", f"{name}.csv")
    patients = yaml.safe_load(Path("patients.policy.yaml").read_text())
    close = patients | {
        "promises": [{"model": "k-anonymity", "k": 5}, CLOSENESS],
        "label": "disease",
    }
    shuffled = patients | {"render": {"order": "shuffled", "intervals": "{lo}..{hi}"}}
    for name, policy in (
        ("patients", patients | {"label": "disease"}),
        ("close", close),
        ("shuffled", shuffled),
    ):
        if name not in left_out:
            yield from _tables(name, policy, "patients.csv", {})
    yield from _two_tables("patients", patients, "patients.csv")
    yield from _streams(
        "purchases", yaml.safe_load(Path("purchases.policy.yaml").read_text()), "purchases.csv"
    )
    for increment in (1, 2, 3):
        _shoal(*f"sample wearables -n 400 --seed {increment} -o wearables-{increment}.csv".split())
    wearables = yaml.safe_load(Path("wearables-1.policy.yaml").read_text())
    yield from _ledgers("wearables", wearables, [f"wearables-{i}.csv" for i in (1, 2, 3)])
    if "bank" not in left_out:
        bank = yaml.safe_load(Path("bank.policy.yaml").read_text())
        yield from _tables("bank", bank, "bank.csv", {})


def _of_fusions(folder: Path) -> Iterator[tuple[str, Any]]:
    _shoal("sample", "bank", "-n", 600, "--seed", 7, "-o", "bank.csv")
    yield from _fusions("bank", yaml.safe_load(Path("bank.parties.yaml").read_text()))


def _of_adult(folder: Path, data: Path) -> Iterator[tuple[str, Any]]:
    lines = (data / "adult" / "adult.data").read_text().splitlines()
    rows = [line.split(", ") for line in lines if line and "?" not in line]
    kept = ("age", *ADULT_QUASI, "hours-per-week", "occupation", "income")
    places = [ADULT_COLUMNS.index(name) for name in kept]
    text = [",".join(kept), *(",".join(row[place] for place in places) for row in rows)]
    Path("adult.csv").write_text("\n".join(text) + "\n")
    hierarchies = (data / "adult" / "hierarchies_arx").resolve()
    attributes: dict[str, Any] = {
        "age": {"role": "quasi", "type": "number", "domain": [17, 90]},
        "hours-per-week": {"role": "quasi", "type": "number", "domain": [1, 99]},
        "occupation": {"role": "sensitive"},
        "income": {"role": "plain"},
    }
    attributes |= {
        name: {"role": "quasi", "hierarchy": f"{hierarchies}/{name}.csv"} for name in ADULT_QUASI
    }
    policy: dict[str, Any] = {
        "version": 1,
        "attributes": attributes,
        "promises": [{"model": "k-anonymity", "k": 10}],
        "label": "income",
        "seed": 3,
    }
    yield from _tables("adult", policy, "adult.csv", ADULT_PARAMETERS)
    by_order = {
        name: {"role": "quasi", "type": "ordinal", "order": "frequency"} for name in ADULT_QUASI
    }
    yield from _tables(
        "adult by order",
        policy | {"attributes": attributes | by_order},
        "adult.csv",
        ADULT_PARAMETERS,
    )
    yield from _two_tables("adult", policy, "adult.csv")
    yield from _streams("adult", policy, "adult.csv")
    thirds = [f"adult-{third}.csv" for third in range(3)]
    for third, path in enumerate(thirds):
        who = [f"{line},{number}" for number, line in enumerate(text[1:])]
        Path(path).write_text("\n".join([f"{text[0]},who", *who[third:6000:3]]) + "\n")
    growing = policy | {"attributes": attributes | {"who": {"role": "subject"}}}
    yield from _ledgers("adult", growing, thirds)


def _tables(
    name: str, policy: dict[str, Any], data: str, parameters: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    for method in _methods("publish"):
        if method in OWN_METHODS:
            continue  # of two tables, which other policies suit
        policy_file = _write(policy, {"name": method, **parameters.get(method, {})})
        status = _shoal("publish", data, "-p", policy_file, "-o", "out.csv")
        yield f"{name} / {method}", _recorded(status, "out.csv", "out.csv.certificate.json")


def _two_tables(name: str, policy: dict[str, Any], data: str) -> Iterator[tuple[str, Any]]:
    suited = _with_one_sensitive(policy)
    attributes = {
        column: declared if declared["role"] in ("quasi", "sensitive") else {"role": "drop"}
        for column, declared in suited["attributes"].items()
    }
    hidden = next(n for n, declared in attributes.items() if declared["role"] == "sensitive")
    promise = {"model": "l-diversity", "attribute": hidden, "l": 3}
    suited |= {"attributes": attributes, "promises": [promise]}
    for method in sorted(OWN_METHODS):
        for near in (False, True):
            policy_file = _write(suited, {"name": method, "l": 3, "near": near})
            status = _shoal("publish", data, "-p", policy_file, "-o", "out.csv")
            files = ("out.csv", "out.sensitive.csv", "out.csv.certificate.json")
            yield f"{name} / {method}{', near' * near}", _recorded(status, *files)


def _streams(name: str, policy: dict[str, Any], data: str) -> Iterator[tuple[str, Any]]:
    for method in _methods("stream"):
        policy_file = _write(policy, {"name": method, "delta": 500})
        status = _shoal(
            "stream", data, "-p", policy_file, "-o", "out.csv", "--trace", "trace.jsonl"
        )
        yield (
            f"{name} / {method}",
            _recorded(status, "out.csv", "out.csv.certificate.json", "trace.jsonl"),
        )


def _ledgers(name: str, policy: dict[str, Any], increments: list[str]) -> Iterator[tuple[str, Any]]:
    for method in _methods("republish"):
        suited = _with_one_sensitive(policy) if method == "m-invariance" else policy
        policy_file, ledger = _write(suited, {"name": method}), f"ledger {name} {method}"
        for number, increment in enumerate(increments, 1):
            status = _shoal(
                "republish", increment, "-p", policy_file, "--ledger", ledger, "--allow-leaks"
            )
            release = f"{ledger}/{number:04d}"
            recorded = _recorded(status, f"{release}/data.csv", f"{release}/certificate.json")
            yield f"{name} / {method} / {number}", recorded
        status = _shoal("ledger", "export", ledger, "-o", "out.csv")
        yield f"{name} / {method} / export", _recorded(status, "out.csv")


def _with_one_sensitive(policy: dict[str, Any]) -> dict[str, Any]:
    """The policy as m-invariance needs it: one sensitive attribute and no plain one."""
    attributes = dict(policy["attributes"])
    sensitive = [name for name, declared in attributes.items() if declared["role"] == "sensitive"]
    for name, declared in attributes.items():
        if declared["role"] == "plain" or name in sensitive[1:]:
            attributes[name] = {"role": "drop"}
    return policy | {"attributes": attributes, "label": None}


def _fusions(name: str, agreement: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for method in _methods("fuse"):
        chosen = {"name": method} | CONSENTED.get(method, {})
        Path("parties.yaml").write_text(json.dumps(agreement | {"method": chosen}))
        status = _shoal(
            "fuse", "parties.yaml", "-o", "out.csv", "--transcript", f"transcript {method}"
        )
        audited = _shoal("audit", "--trace", f"transcript {method}")
        recorded = _recorded(status, "out.csv", "out.csv.certificate.json")
        yield f"{name} / {method}", recorded | {"transcript": audited}


def _methods(verb: str) -> list[str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status_of(["methods", "--all", "--json"])
    return [
        method["name"] for method in json.loads(out.getvalue())["methods"] if method["verb"] == verb
    ]


def _write(policy: dict[str, Any], method: dict[str, Any]) -> str:
    Path("policy.yaml").write_text(json.dumps(policy | {"method": method}))
    return "policy.yaml"


def _shoal(*arguments: object) -> int:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        return status_of([str(argument) for argument in (*arguments, "-q")])


def _recorded(status: int, *paths: str | Path) -> dict[str, Any]:
    """The exit status, and a digest of each file; the files are gone afterwards, but for those of a
    ledger.
    """
    found: dict[str, Any] = {"status": status}
    for path in map(Path, paths):
        if path.exists():
            found[re.sub(r".*/", "", str(path))] = _digest(path)
            if path.parent == Path():
                path.unlink()
    return found


def _digest(path: Path) -> str:
    content = path.read_bytes()
    if path.name.endswith("certificate.json"):
        certificate = {
            key: value
            for key, value in json.loads(content).items()
            if key not in CERTIFICATE_IGNORES
        }
        method = certificate.get("method") or {}
        certificate["method"] = {
            key: value for key, value in method.items() if key not in METHOD_IGNORES
        }
        content = json.dumps(certificate, sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


if __name__ == "__main__":
    main(sys.argv[1:])
