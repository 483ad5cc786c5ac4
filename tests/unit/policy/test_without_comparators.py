"""What the papers' comparators published is audited, verified and handed on without them; only who
publishes needs them, and is told what to install.
"""

import contextlib
import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoints, distributions
from pathlib import Path

import pytest
import yaml

from sample_policies import PATIENTS, WEARABLES
from shoal.cli.main import status_of
from shoal.errors import InputError
from shoal.policy import plug_ins, registry
from shoal.policy.agreement import Agreement
from shoal.policy.plug_ins import COMPARATORS, INSTALL
from shoal.policy.policy import Policy
from thorough import LONG

TABLE = "datafly"
STREAMS = [n for n, known in COMPARATORS.items() if known.verb == "stream" if LONG or n == "sky"]
LEDGER = "static-2"
FUSION = "party-tds-literal"
CHANGES = ("date", "seconds", "build")


def run(*arguments: object) -> None:
    assert status_of([str(argument) for argument in (*arguments, "-q")]) == 0


def forget() -> None:
    for cached in (plug_ins.installed, registry.methods, registry._by_entry_name):
        cached.cache_clear()


@pytest.fixture
def hidden(monkeypatch):
    """The distribution is not installed, and nothing of it can be imported."""
    others = [each for each in distributions() if each.name != plug_ins.DISTRIBUTION]
    found = EntryPoints(entry for each in others for entry in each.entry_points)
    monkeypatch.setattr(plug_ins, "entry_points", lambda: found)
    for name in [name for name in sys.modules if name.split(".")[0] == "shoal_papers"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "shoal_papers", None)
    forget()
    yield
    forget()


@pytest.fixture(scope="module")
def released(tmp_path_factory, forked_parties) -> Path:
    """A folder with what comparators of each kind have published."""
    folder = tmp_path_factory.mktemp("released")
    with contextlib.chdir(folder):
        _publish_all()
    return folder


def _publish_all() -> None:
    for name, records in (("patients", 600), ("purchases", 600), ("wearables", 150)):
        run("sample", name, "-n", records, "--seed", 7, "-o", f"{name}.csv")
    with_method("patients.policy.yaml", "table.yaml", name=TABLE)
    run("publish", "patients.csv", "-p", "table.yaml", "-o", "table.csv")
    for method in STREAMS:
        with_method("purchases.policy.yaml", f"{method}.yaml", name=method, delta=300)
        shown = ("-p", f"{method}.yaml", "-o", f"{method}.csv", "--trace", f"{method}.jsonl")
        run("stream", "purchases.csv", *shown)
    Path("wearables.policy.yaml").write_text(WEARABLES)
    with_method("wearables.policy.yaml", "ledger.yaml", name=LEDGER)
    run("sample", "wearables", "-n", 150, "--seed", 8, "-o", "more.csv")
    for table in ("wearables.csv", "more.csv"):
        run("republish", table, "-p", "ledger.yaml", "--ledger", "ledger", "--allow-leaks")
    run("sample", "bank", "-n", 200, "--seed", 7, "-o", "bank.csv")
    with_method("bank.parties.yaml", "fusion.yaml", name=FUSION, runner_up="told")
    run("fuse", "fusion.yaml", "-o", "fused.csv", "--transcript", "transcript")
    Path("context.yaml").write_text("version: 1\n")


def with_method(source: str, path: str, **method: object) -> None:
    content = yaml.safe_load(Path(source).read_text())
    Path(path).write_text(json.dumps(content | {"method": method}))


@pytest.fixture
def there(released, monkeypatch) -> Path:
    monkeypatch.chdir(released)
    return released


def of_stream(method: str) -> tuple[str, ...]:
    shown = ("-p", f"{method}.yaml", "--original", "purchases.csv", "--trace", f"{method}.jsonl")
    return ("audit", f"{method}.csv", *shown, "--json")


BESIDE_ORIGINAL = ("-p", "table.yaml", "--original", "patients.csv")
LATER = ("ledger/0002/data.csv", "ledger/0002/certificate.json", "-p", "ledger.yaml")
READERS = [
    ("audit", "table.csv", "-p", "table.yaml", "--json"),
    ("audit", "table.csv", *BESIDE_ORIGINAL, "--json"),
    ("verify", "table.csv", *BESIDE_ORIGINAL),
    ("verify", "sky.csv", "-p", "sky.yaml", "--original", "purchases.csv"),
    ("verify", "fused.csv", "-p", "fusion.yaml"),
    ("audit", "--trace", "transcript"),
    ("audit", "--ledger", "ledger", "--json"),
    ("ledger", "verify", "ledger"),
    ("ledger", "export", "ledger", "-o", "-"),
    ("verify", *LATER),
    ("dossier", "table.csv", "-p", "table.yaml", "--context", "context.yaml", "-q", "--replace"),
    *map(of_stream, STREAMS),
]
LEAKS = [("audit", "--ledger", "ledger", "--json"), ("verify", *LATER)]
"""The second release of a ledger by static-2 leaks, which is what both say of it."""


def said(result) -> object:
    """What a command printed, without what no run repeats."""
    try:
        content = json.loads(result.out)
    except ValueError:
        return result.status, result.out
    return result.status, {key: value for key, value in content.items() if key not in CHANGES}


def test_readers_say_the_same_without_the_method(there, shoal, request):
    with_it = [said(shoal(*reader)) for reader in READERS]
    agreed = Agreement.load(Path("fusion.yaml")).hash
    request.getfixturevalue("hidden")
    assert [said(shoal(*reader)) for reader in READERS] == with_it
    assert [status for status, _ in with_it] == [int(reader in LEAKS) for reader in READERS]
    assert Agreement.load(Path("fusion.yaml")).hash == agreed


@pytest.mark.parametrize(
    ("name", "command"),
    [
        (TABLE, "publish patients.csv -p table.yaml -o no.csv"),
        ("sky", "stream purchases.csv -p sky.yaml -o no.csv"),
        (LEDGER, "republish more.csv -p ledger.yaml --ledger no"),
        (FUSION, "fuse fusion.yaml -o no.csv"),
        (FUSION, "party run north fusion.yaml -o no.csv"),
        (TABLE, "policy check table.yaml"),
        ("sky", "policy check sky.yaml"),
        (LEDGER, "policy check ledger.yaml more.csv"),
        (TABLE, "compare patients.csv -p table.yaml"),
        ("oka", "compare patients.csv -p patients.policy.yaml --methods oka"),
        ("k-member", "publish patients.csv -p table.yaml -o no.csv --method k-member"),
    ],
)
def test_whoever_publishes_is_told_what_to_install(name, command, there, shoal, hidden):
    refused = shoal(*command.split(), status=2)
    assert refused.err.splitlines()[-1].startswith(f"shoal: method '{name}': is one of the papers'")
    assert INSTALL in refused.err
    assert not Path("no.csv").exists()
    assert not Path("no").exists()


def test_another_verbs_comparator_and_a_comparators_clusters_are_refused(there, shoal, hidden):
    refused = shoal("publish", "patients.csv", "-p", "sky.yaml", "-o", "no.csv", status=2)
    assert "method 'sky': serves 'shoal stream' only" in refused.err
    with_method("wearables.policy.yaml", "by.yaml", name="sticky", cluster="k-member")
    refused = shoal("republish", "more.csv", "-p", "by.yaml", "--ledger", "no", status=2)
    assert INSTALL in refused.err


@pytest.mark.parametrize("name", COMPARATORS)
def test_what_is_known_of_each_without_it_is_what_it_says_itself(name):
    known, method = COMPARATORS[name], registry.methods()[name]
    assert known.verb == method.verb
    assert known.recodes_globally == method.recodes_globally
    assert not method.renders_two_tables
    assert not getattr(method.implementation, "takes_turns", False)
    if known.verb in ("stream", "fuse"):
        assert known.defaults == {p.name: p.default for p in method.parameters}
        assert list(known.defaults) == [p.name for p in method.parameters]


def test_the_distribution_brings_these_and_no_other():
    assert {m.name for m in registry.methods().values() if m.is_comparator} == set(COMPARATORS)


def test_without_them_none_is_listed_and_settings_are_read_as_the_method_reads_them(hidden):
    assert not set(registry.methods()) & set(COMPARATORS)
    policy = Policy.from_dict(yaml.safe_load(PATIENTS)).with_method("swaf", {"delta": "20"})
    assert policy.parameters_taken("stream")["delta"] == 20
    with pytest.raises(InputError, match="unknown parameter 'gamma'"):
        registry.parameters_taken("swaf", "stream", {"gamma": 1})


HIDING = """
import importlib.metadata as metadata
others = [each for each in metadata.distributions() if each.name != "shoal-papers"]
left = metadata.EntryPoints(entry for each in others for entry in each.entry_points)
metadata.entry_points = lambda **wanted: left.select(**wanted) if wanted else left
"""


def started(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Shoal in a process that knows nothing of the distribution."""
    (folder / "sitecustomize.py").write_text(HIDING)
    return subprocess.run(
        [sys.executable, "-m", "shoal", *arguments],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )


def test_reproduce_is_a_verb_only_where_it_is_installed_and_says_what_to_install(tmp_path, shoal):
    assert " reproduce " in shoal("--help").out
    assert " reproduce " not in started(tmp_path, "--help").stdout
    refused = started(tmp_path, "reproduce", "crp")
    assert refused.returncode == 2
    (line,) = refused.stderr.splitlines()
    assert line.startswith("shoal: reproduce: comes with")
    assert INSTALL in line


def test_own_verbs_look_for_no_plug_ins():
    script = (
        "import sys; from shoal.cli.main import status_of; status_of(['publish', '--help']);"
        " sys.exit('shoal.policy.plug_ins' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert done.returncode == 0
