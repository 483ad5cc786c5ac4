"""A release of invented people with all that columns can be, and how to forge its certificate."""

import hashlib
import json
import random
from pathlib import Path

import polars as pl
import yaml

import shoal
from sample_policies import content_of
from shoal.cli.main import status_of

POLICY = content_of(
    {
        "patient": "subject",
        "name": "identifier",
        "age": {"role": "quasi", "type": "number", "domain": [0, 100], "round": 5},
        "zip": {"role": "quasi", "hierarchy": {"prefix": 3}},
        "sex": "quasi",
        "disease": "sensitive",
        "ward": "plain",
    },
    4,
    {"model": "l-diversity", "attribute": "disease", "l": 2, "kind": "distinct"},
    other="drop",
    write={"numbers": ["lo", "hi"]},
    method={"name": "mondrian"},
    seed=3,
)
"""A policy with all that columns can be; its release does not hold its people."""


def people() -> pl.DataFrame:
    """80 people, every fourth with two records; a note that the policy drops."""
    chance = random.Random(5)
    rows = []
    for person in range(80):
        one = {
            "patient": f"p{person}",
            "name": f"n{person}",
            "age": str(chance.randint(18, 90)),
            "zip": f"1{chance.randint(0, 4)}{chance.randint(0, 9)}",
            "sex": chance.choice("fm"),
            "disease": chance.choice(["flu", "asthma", "ulcer"]),
            "ward": chance.choice("abc"),
            "note": f"x{person}",
        }
        rows += [one] * (2 if person % 4 == 0 else 1)
    return pl.DataFrame(rows)


def run(folder: Path, command: str) -> int:
    """The status of a command whose words with a dot are files of the folder."""
    return status_of([str(folder / word) if "." in word else word for word in command.split()])


PUBLISH = "publish in.csv -p policy.yaml -o out.csv --trace t.jsonl --replace -q"


def publish(folder: Path, frame: pl.DataFrame | None = None, policy: dict = POLICY) -> Path:
    """Writes a table, its policy, a release and its certificate into the folder."""
    (people() if frame is None else frame).write_csv(folder / "in.csv")
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    assert run(folder, PUBLISH) == 0
    return folder


def content_of(folder: Path) -> dict:
    return json.loads((folder / "out.csv.certificate.json").read_text())


def forge(folder: Path, change) -> None:
    content = content_of(folder)
    change(content)
    (folder / "out.csv.certificate.json").write_text(json.dumps(content))


def setting(*path_and_value):
    """A change of one key: the way down to it, then the forged value."""
    *path, last, value = path_and_value

    def change(content):
        for key in path:
            content = content[key]
        content[last] = value

    return change


def with_new_hash(released: Path) -> None:
    """The certificate names the file as it is now."""
    proof = Path(f"{released}.certificate.json")
    content, written = json.loads(proof.read_text()), released.read_bytes()
    content["output"] |= {"sha256": hashlib.sha256(written).hexdigest(), "bytes": len(written)}
    proof.write_text(json.dumps(content))


def checked(folder: Path, *, policy=True, original=True, trace=True, **more):
    """The checks by name; without the original there is no trace either."""
    given = {
        "policy": folder / "policy.yaml" if policy is True else policy or None,
        "original": folder / "in.csv" if original else None,
        "trace": folder / "t.jsonl" if original and trace else None,
    }
    return {check.name: check for check in shoal.verify(folder / "out.csv", **given, **more)}


def alone(folder: Path, **more) -> dict[str, shoal.Check]:
    """The checks with nothing but the file and its certificate."""
    return checked(folder, policy=False, original=False, **more)


def failed(checks: dict[str, shoal.Check]) -> list[str]:
    return [name for name, check in checks.items() if check.ok is False]
