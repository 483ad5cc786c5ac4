"""A verb refuses an output that is there before it does any work, unless --replace is said."""

import json
import sqlite3
from pathlib import Path

import polars as pl
import pytest
import yaml

import shoal as shoal_in_python

SAID = "shoal: output 'out{}': is there already; name a new file, or say --replace\n"


@pytest.fixture
def place(folder, shoal):
    assert shoal("sample", "patients", "-n", "200", "--seed", "1", "-o", "in.csv", "-q").status == 0
    return folder


def test_an_output_may_be_called_none(place, shoal):
    shoal(*"publish in.csv -p in.policy.yaml -o out.csv --trace None -q".split(), status=0)
    assert (place / "None").is_file()


# that the inputs are not there shows that nothing is read before
@pytest.mark.parametrize(
    ("words", "suffix"),
    [
        ("publish in.csv -p in.policy.yaml -o out.csv", ".csv"),
        ("publish in.csv -p in.policy.yaml -o new.csv --trace out.jsonl", ".jsonl"),
        ("audit missing.csv -p in.policy.yaml -o out.json", ".json"),
        ("audit --ledger missing -o out.json", ".json"),
        ("attack missing.csv -p in.policy.yaml --original in.csv -o out.json", ".json"),
        ("compare missing.csv -p in.policy.yaml -o out.json", ".json"),
        ("dossier missing.csv --context missing.yaml -o out.html", ".html"),
        ("dossier missing.csv --context missing.yaml -o out.html", ".json"),
        ("hierarchies edit missing.csv {remove:A} -o out.csv", ".csv"),
        ("ledger export missing -o out.csv", ".csv"),
        ("sample purchases -o out.csv", ".csv"),
        ("sign out --key missing.pem", ".certificate.json.sig"),
    ],
)
def test_an_output_that_is_there_is_refused_before_any_work(place, shoal, words, suffix):
    kept = place / f"out{suffix}"
    kept.write_text("mine")
    assert shoal(*words.split(), status=2).err == SAID.format(suffix)
    assert kept.read_text() == "mine"
    assert "is there already" not in shoal(*words.split(), "--replace").err


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("publish missing.csv -o out/ --trace out/t.jsonl", ["t.jsonl"]),
        ("publish missing.csv -o out/ --plan out/p.json", ["p.json"]),
        ("publish missing.csv -o out/ --report out/below/r.html", ["below/r.html"]),
        ("audit out -o out/c.json --report out/r.html", ["r.html", "c.json"]),
        ("attack out --original missing.csv -o out/c.json", ["c.json"]),
        ("dossier out --context missing.yaml -o out/d.html", ["d.html", "d.json"]),
        ("stream missing.csv -o out/ --checkpoint ck --report out/r.html", ["r.html"]),
        ("stream missing.csv -o out/ --checkpoint ck --metrics out/m.prom", ["m.prom"]),
        ("stream missing.csv -o out/ --checkpoint ck --metrics out/a/m.prom", ["a/m.prom"]),
        ("republish missing.csv --ledger L -o out/ --metrics out/m.prom", ["m.prom"]),
    ],
)
def test_nothing_else_is_written_into_the_folder_of_a_release(place, shoal, words, names):
    (place / "out").mkdir()
    said = "output 'out/{}': is or lies in the release, which holds nothing else"
    result = shoal(*words.split(), "-p", "in.policy.yaml", status=2)
    assert [said.format(name) in result.err for name in names] == [True] * len(names), result.err
    assert not list((place / "out").iterdir())


def test_python_writes_nothing_else_into_a_release(place):
    for output, trace in (("out.csv", "out.csv"), ("out/", "out/t.jsonl")):
        for more in ({"trace": trace}, {"plan": trace}):
            with pytest.raises(shoal_in_python.InputError, match="lies in the release"):
                shoal_in_python.publish_file("in.csv", "in.policy.yaml", output, **more)
    with pytest.raises(shoal_in_python.InputError, match="lies in the release"):
        shoal_in_python.dossier("out", context="missing.yaml", output="out/d.html")
    done = shoal_in_python.publish(pl.read_csv("in.csv"), "in.policy.yaml")
    with pytest.raises(shoal_in_python.InputError, match="lies in the release"):
        done.save("out/", trace="out/t.jsonl")
    assert not list(place.glob("out*"))


@pytest.mark.parametrize(
    "words",
    [
        *("publish in.csv -o out.csv", "audit in.csv", "compare in.csv --ks 2 --methods mondrian"),
        *("republish in.csv --ledger led", "stream in.csv -o out.csv"),
    ],
)
def test_a_report_takes_the_place_of_a_report_alone(place, shoal, words):
    asked = [*words.split(), "-p", "in.policy.yaml", "--report", "mine.html"]
    for text in ("", '<!DOCTYPE html>\n<html lang="en">\n<head>\n  <title>Mine</title>'):
        Path("mine.html").write_text(text)
        assert "mine.html': is there already, and is no report" in shoal(*asked, status=2).err
        assert Path("mine.html").read_text() == text
    assert not [*place.glob("out*"), *place.glob("led*")]


def test_a_report_is_drawn_anew(place, shoal):
    Path("r.html").write_text("mine")
    for words in ("-o out.csv --replace", "-o more.csv"):
        shoal(*f"publish in.csv -p in.policy.yaml --report r.html -q {words}".split(), status=0)
        assert "Release report" in Path("r.html").read_text()


def test_a_fusion_refuses_a_release_that_is_there_before_any_party_starts(place, shoal):
    assert shoal("sample", "bank", "-n", "60", "-o", "bank", "-q").status == 0
    Path("out.csv").write_text("mine")
    for words in ("fuse bank/bank.parties.yaml",):
        assert shoal(*words.split(), "-o", "out.csv", status=2).err == SAID.format(".csv")
    assert Path("out.csv").read_text() == "mine"


def test_a_sample_is_written_again_with_replace_and_its_policy_stays(place, shoal):
    policy = Path("in.policy.yaml").read_text() + "# mine\n"
    Path("in.policy.yaml").write_text(policy)
    shoal("sample", "patients", "-n", "100", "-o", "in.csv", "--replace", status=0)
    assert len(Path("in.csv").read_text().splitlines()) == 101
    assert Path("in.policy.yaml").read_text() == policy


POLICY_AS_OUTPUT = [
    ("publish in.csv -o out.csv", "out.csv.certificate.json"),
    ("publish in.csv -o out.csv --trace mine.yaml", "mine.yaml"),
    ("publish in.csv -o out.csv --plan mine.yaml --method full-domain", "mine.yaml"),
    ("publish in.csv -o out.csv --report mine.html", "mine.html"),
    ("stream in.csv -o out.csv --method castle", "out.csv.certificate.json"),
    ("audit in.csv -o mine.json", "mine.json"),
    ("attack in.csv --original in.csv -o mine.json", "mine.json"),
    ("compare in.csv -o mine.json", "mine.json"),
    ("dossier in.csv --context no.yaml -o mine.html", "mine.json"),
    ("republish in.csv --ledger ledger --report mine.html", "mine.html"),
]


@pytest.mark.parametrize(("words", "policy"), POLICY_AS_OUTPUT)
@pytest.mark.parametrize("agreed", [[], ["--replace"]])
def test_no_output_takes_the_place_of_the_policy(place, shoal, words, policy, agreed):
    text = Path("in.policy.yaml").read_text()
    if policy.endswith(".json"):
        text = json.dumps(yaml.safe_load(text))
    Path(policy).write_text(text)
    shoal(*words.split(), "-p", policy, *(agreed if "republish" not in words else []), status=2)
    assert Path(policy).read_text() == text
    assert not list(place.glob("out*.csv"))


def test_no_output_of_python_takes_the_place_of_the_policy(place):
    for name, more in (("out.csv.certificate.json", {}), ("trace.json", {"trace": "trace.json"})):
        text = json.dumps(yaml.safe_load(Path("in.policy.yaml").read_text()))
        Path(name).write_text(text)
        with pytest.raises(shoal_in_python.InputError, match="policy or a file that is read"):
            shoal_in_python.publish_file("in.csv", name, "out.csv", replace=True, **more)
        assert Path(name).read_text() == text


def test_no_release_of_a_fusion_takes_the_place_of_its_agreement(place, shoal):
    assert shoal("sample", "bank", "-n", "60", "-o", "bank", "-q").status == 0
    agreement = Path("bank/out.csv.certificate.json")
    text = json.dumps(yaml.safe_load(Path("bank/bank.parties.yaml").read_text()))
    agreement.write_text(text)
    result = shoal("fuse", str(agreement), "-o", "bank/out.csv", "--replace")
    assert (result.status, "is read by a party" in result.err) == (2, True)
    assert agreement.read_text() == text


def test_no_release_takes_the_place_of_one_beside_which_it_is_judged(place, shoal):
    policy = yaml.safe_load(Path("in.policy.yaml").read_text())
    policy["attributes"]["sex"] = {"role": "quasi", "hierarchy": "sex.csv"}
    Path("sex.csv").write_text("male;*\nfemale;*\n")
    Path("others.policy.json").write_text(json.dumps(policy))
    released = {"release": "first.csv", "original": "in.csv", "trace": "first.jsonl"}
    others = {"releases": [released | {"policy": "others.policy.json"}]}
    Path("others.yaml").write_text(yaml.safe_dump(others))
    for name in ("first.csv", "first.jsonl"):
        Path(name).write_text("read by nobody, as the outputs are judged before\n")
    words = ["publish", "in.csv", "-p", "in.policy.yaml", "--others", "others.yaml", "--replace"]
    for name in ("first.csv", "others.yaml", "first.jsonl", "others.policy.json", "sex.csv"):
        before = Path(name).read_bytes()
        output = name if name.endswith(".csv") else "out.csv"
        done = shoal(*words, "-o", output, "--trace", "out.jsonl" if output == name else name)
        assert done.status == 2
        assert "nothing that is read" in done.err or "is also another file" in done.err
        assert Path(name).read_bytes() == before
    assert not list(place.glob("out*"))


@pytest.mark.parametrize("outputs", ["-o d.csv", "-o e.csv --trace d.csv", "-o ./d.csv"])
def test_no_output_takes_the_place_of_the_database_that_is_read(outputs, place, shoal):
    rows = pl.read_csv("in.csv", infer_schema=False)
    database = sqlite3.connect("d.csv")
    database.execute(f"CREATE TABLE t ({', '.join(rows.columns)})")
    database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * rows.width)})", rows.rows())
    database.commit()
    database.close()
    before = Path("d.csv").read_bytes()
    source, (_, output, *more) = "sqlite:///d.csv?table=t", outputs.split()
    done = shoal("publish", source, "-p", "in.policy.yaml", "--replace", *outputs.split(), status=2)
    assert "nothing that is read" in done.err or "is also another file" in done.err
    with pytest.raises(shoal_in_python.InputError, match="nothing that is read"):
        shoal_in_python.publish_file(
            source, "in.policy.yaml", output, replace=True, trace=more[1] if more else None
        )
    assert Path("d.csv").read_bytes() == before
