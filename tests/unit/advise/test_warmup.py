"""What `shoal warmup` has compiled is what the first runs need."""

import subprocess
import sys
from dataclasses import replace

import pytest

from shoal.advise import invented
from shoal.errors import InputError

NOTHING_NEW = """
import sys, tempfile
from pathlib import Path
from shoal.data.numba_kernels import LateKernel
import shoal
from shoal.samples import write_sample
from shoal.advise.invented import warm_up
from shoal.linked.publish import publish_linked
from shoal.tables.publish import publish_file
from shoal.policy.policy import Policy

def signatures():
    return {
        (each.py_func.__module__, each.py_func.__name__, signature)
        for name, module in list(sys.modules.items())
        if name.startswith("shoal.")
        for each in vars(module).values()
        if isinstance(each, LateKernel)
        for signature in each.overloads
    }

warm_up(["publish"])
warm = signatures()
assert len(warm) > 5
with tempfile.TemporaryDirectory() as folder:
    for n in (300, 1000, 5000):
        table = str(Path(folder) / f"{n}.csv")
        write_sample("patients", n, 7, table)
        policy = Policy.load(Path(folder) / f"{n}.policy.yaml")
        for method in (None, "rounded-partition"):
            asked = policy if method is None else policy.with_method(method)
            publish_file(table, asked, str(Path(folder) / f"{n}.{method}.csv"))
        clinic = Path(folder) / f"clinic-{n}"
        write_sample("clinic", n, 7, str(clinic))
        policy = Policy.load(f"{clinic}.policy.yaml").model.model_dump(exclude_unset=True)
        for known in ("all", 1, 2, 3):
            policy["tables"]["visits"]["rows"] = {"known": known}
            if known != "all":
                policy["tables"]["drugs"]["rows"] = {"known": "none"}
                policy["assume"] = ["counts-unknown"]
            released = str(Path(folder) / f"released-{n}-{known}")
            publish_linked(str(clinic), Policy.from_dict(policy), released)
print(sorted(signatures() - warm))
"""


@pytest.mark.long
def test_after_it_a_first_publication_compiles_nothing():
    """Every kernel that publishing the samples calls was there for the types that it is called
    with.
    """
    run = subprocess.run(
        [sys.executable, "-c", NOTHING_NEW], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"


def test_each_verb_runs_its_own_methods_and_all_means_every_one():
    def runs(verb, every_method):
        return {(run.verb, run.method) for run in invented._runs(verb, every_method)}

    assert runs("stream", False) == {("stream", "")}
    assert runs("republish", True) >= {("republish", ""), ("republish", "crp")}
    assert {method for _, method in runs("publish", True)} >= {"mondrian", "tcloseness", "mdav"}


def test_every_republishing_method_can_be_warmed_up(tmp_path):
    """Also one that refuses several sensitive attributes, as m-invariance does."""
    for number, run in enumerate(invented._runs("republish", every_method=True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        replace(run, records=300).into(folder)


def test_the_command_says_when_there_is_nothing_to_compile(shoal):
    assert shoal("warmup", "--verb", "stream", "-q").status == 0
    assert "everything was compiled already" in shoal("warmup", "--verb", "stream", status=0).err


def test_a_verb_that_compiles_nothing_is_refused_by_name():
    with pytest.raises(InputError, match="verb 'audit': compiles nothing; choose among publish"):
        invented.warm_up(["audit"])
