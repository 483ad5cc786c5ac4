"""The first release of every sample has no finding: by its own policy, and by a proposed one."""

from pathlib import Path

import pytest
import yaml

from shoal.data.certificate import Certificate
from shoal.samples import generators

VERBS = {
    "publish": "publish {name}.csv -p {policy} -o out.csv",
    "republish": "republish {name}.csv -p {policy} --ledger out",
    "stream": "stream {name}.csv -p {policy} -o out.csv --checkpoint state",
}
VERB_OF = {"purchases": ["stream"], "wearables": ["publish", "republish"]}
ONE_TABLE = [name for name, one in generators().items() if hasattr(one, "generate")]
BUNDLED = [(name, verb) for name in ONE_TABLE for verb in VERB_OF.get(name, ["publish"])]


def released(shoal, verb: str, name: str, policy: str) -> None:
    """Publishes a sample by a policy, and finds nothing to say about it."""
    assert shoal(*VERBS[verb].format(name=name, policy=policy).split(), "-q", status=0).err == ""
    (stated,) = Path().rglob("*certificate.json")
    assert list(Certificate.load(stated).warnings) == []


@pytest.fixture(params=[300, 1000])
def records(request, folder) -> int:
    return request.param


@pytest.mark.parametrize(("name", "verb"), BUNDLED)
def test_a_sample_by_its_own_policy(name, verb, records, shoal):
    shoal("sample", name, "-n", records, "--seed", 7, "-o", f"{name}.csv", "-q")
    released(shoal, verb, name, f"{name}.policy.yaml")


@pytest.mark.parametrize("name", ONE_TABLE)
def test_a_sample_by_a_proposed_policy_whose_questions_are_answered(name, records, shoal):
    shoal("sample", name, "-n", records, "--seed", 7, "-o", f"{name}.csv", "-q")
    assert shoal("policy", "init", f"{name}.csv", "-o", "draft.yaml", "-q").status == 0
    content = yaml.safe_load(Path("draft.yaml").read_text())
    for settings in content["attributes"].values():
        settings.pop("ask", None)
    promised = {promise.get("attribute") for promise in content["promises"]}
    private = {n for n, own in content["attributes"].items() if own["role"] == "sensitive"}
    assert private <= promised
    Path("draft.yaml").write_text(yaml.safe_dump(content))
    released(shoal, "publish", name, "draft.yaml")
