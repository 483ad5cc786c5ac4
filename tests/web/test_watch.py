"""Streams and ledgers on the page: read, and left as they are."""

import json

import pytest

import republish_cases
from shoal.cli.main import status_of
from shoal.connectors.files import file_sha256
from shoal.policy.policy import Policy
from shoal.web.job import _republish
from shoal.web.watch import line


@pytest.mark.long
def test_a_ledger_is_verified_and_its_damage_named(visitor, tables, monkeypatch):
    monkeypatch.chdir(tables)
    for seed in ("1", "2"):
        sample = f"sample wearables -n 400 --seed {seed} -o w.csv -q --replace"
        assert status_of(sample.split()) == 0
        assert status_of("republish w.csv -p w.policy.yaml --ledger led -q".split()) == 0
    visitor.post("/watch", kind="ledger", path="led")
    page = visitor.until("/ledger/1", "The history holds")
    assert "2 releases" in page.words
    assert visitor.get("/ledger/2").status == 404
    assert visitor.get("/stream/1").status == 404
    # the next increment: tried with every method, then the gate, then published
    sample = ["sample", "wearables", "-n", "400", "--seed", "3", "-o", "next.csv", "-q"]
    assert status_of(sample) == 0
    visitor.get("/ledger/1")
    visitor.send("try-form", path="next.csv")
    page = visitor.until("/ledger/1", "What each method would do with next.csv", 300)
    assert len(list((tables / "led").glob("0*"))) == 2  # trying publishes nothing
    assert visitor.post("/ledger/1", do="publish").status == 422
    visitor.send("methods", method="crp")
    answers = {"who": "a", "purpose": "b", "controls": "c", "review_by": "2031-01-01"}
    visitor.send("answers", **answers)
    visitor.send("sign-form", name="Ada", decision="accept")
    visitor.until("/ledger/1", "Publish release 3")
    visitor.send("publish-form")
    visitor.until("/ledger/1", "Release 3 is published")
    page = visitor.until("/ledger/1", "3 releases, measured again")
    # a signature is over the increment, the ledger and the method
    assert "! Increment and ledger as they were tried" in page.words
    assert visitor.post("/ledger/1", do="publish").status == 422
    assert "allow-leaks" not in page.text
    first = min((tables / "led").rglob("*.csv"))
    first.write_bytes(first.read_bytes() + b"x\n")
    page = visitor.until("/ledger/1", "The chain is damaged")
    assert "0001" in page.words


def test_a_watched_folder_lies_below_the_start(visitor):
    assert visitor.post("/watch", kind="stream", path="..").status == 404
    assert visitor.post("/watch", kind="volcano", path=".").status == 422


def test_a_line_leaves_out_what_is_not_known():
    assert line([1.0, None, 1.0])["path"].count(",") == 2
    assert line([], 5)["path"] == ""


def test_an_increment_of_the_page_keeps_the_parameters_of_its_ledger(tmp_path):
    attributes = republish_cases.POLICY["attributes"] | {"beat": {"role": "drop"}}
    policy = Policy.from_dict(republish_cases.POLICY | {"attributes": attributes})
    ledger, increment = tmp_path / "L", tmp_path / "i.csv"
    asked = policy.with_method("m-invariance", {"m": 3})
    republish_cases.append(ledger, republish_cases.wearers(60, 1), asked)
    republish_cases.wearers(60, 2).write_csv(increment)
    job = {"folder": str(ledger), "increment": str(increment), "method": "m-invariance"}
    _republish(job | {"sha256": file_sha256(increment)}, lambda stage: None, None)
    certificate = json.loads((ledger / "0002" / "certificate.json").read_text())
    assert certificate["method"]["parameters"] == {"m": 3, "refine": "none"}
