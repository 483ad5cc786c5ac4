"""What once was an internal error, status 70: each ends with 2 and one line that names it."""

import json
import os
from pathlib import Path

import pytest

from sample_policies import content_of
from shoal.cli.main import status_of

POLICY = content_of(
    {
        "pid": {"role": "subject"},
        "age": {"role": "quasi", "type": "number", "domain": [0, 99]},
        "sex": {"role": "quasi", "hierarchy": {"tree": ["m", "f"]}},
        "dis": {"role": "sensitive"},
    },
    2,
)
ROWS = "pid,age,sex,dis\n1,20,m,a\n2,30,f,b\n3,20,m,a\n4,21,f,b\n"


@pytest.fixture(autouse=True)
def folder(folder):
    Path("c.csv").write_text(ROWS)
    Path("p.json").write_text(json.dumps(POLICY))


def refusal(command: str, capsys) -> str:
    """What is said by a command that ends with 2 and leaves nothing."""
    there = set(os.listdir())
    capsys.readouterr()
    assert status_of(command.split()) == 2
    assert {name for name in os.listdir() if name != "ck"} <= there
    said = capsys.readouterr().err
    assert said.startswith("shoal: ")
    assert said.count("\n") == 1
    return said


def changed(name: str, keys: list, value: object) -> None:
    """One value of a JSON file, in place of what was there."""
    content = part = json.loads(Path(name).read_text())
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    Path(name).write_text(json.dumps(content))


def test_lines_that_end_with_a_carriage_return_alone(capsys):
    Path("c.csv").write_text(ROWS.replace("\n", "\r"), newline="")
    assert "holds a carriage return" in refusal("stream c.csv -p p.json -o s.csv", capsys)


def test_a_header_with_a_quote_that_stays_open(capsys):
    Path("c.csv").write_text("a" * 140_000 + ",b\n1,2\n")
    assert "check its quotes" in refusal("stream c.csv -p p.json -o s.csv", capsys)


@pytest.mark.parametrize(
    "command",
    [
        "stream loop -p p.json -o s.csv",
        "publish c.csv -p p.json -o o.csv --trace loop",
        "publish c.csv -p p.json -o o.csv --plan loop",
        "republish c.csv -p p.json --ledger loop",
    ],
)
def test_a_link_that_leads_to_itself(command, capsys, monkeypatch):
    monkeypatch.delenv("SHOAL_DEBUG", raising=False)
    Path("loop").symlink_to("loop")
    assert "links" in refusal(command, capsys)


def test_a_pipe_gives_way_to_no_file(capsys):
    os.mkfifo("pipe")
    said = refusal("publish c.csv -p p.json -o o.csv --trace pipe", capsys)
    assert "'pipe': can't be written" in said
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize("verb", ["publish", "stream"])
def test_a_name_that_no_file_can_have(verb, capsys):
    command = f"{verb} c.csv -p p.json -o {'a' * 260}.csv"
    assert "a name of more than 255 bytes" in refusal(command, capsys)
    assert "255 bytes" in refusal(f"{verb} {'a' * 260}.csv -p p.json -o o.csv", capsys)


def test_ends_are_rounded_however_narrow_the_step(capsys):
    changed("p.json", ["attributes", "age", "round"], 1e-300)
    assert status_of("publish c.csv -p p.json -o o.csv -q".split()) == 0
    assert status_of("verify o.csv -p p.json --original c.csv".split()) == 0


def test_a_workbook_that_the_disk_refuses(capsys):
    pytest.importorskip("xlsxwriter")
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    from shoal.connectors import files
    from shoal.errors import InputError

    with pytest.raises(InputError, match="No space left on device"):
        files.write(files.read("c.csv").frame, Path("/dev/full"), ".xlsx")


@pytest.mark.parametrize(
    ("key", "value", "must_be"),
    [
        ("classes.count", None, "a whole number"),
        *(("output.dialect.delimiter", mark, "one ASCII character") for mark in ("é", "€", "")),
    ],
)
def test_a_certificate_that_states_what_none_does(key, value, must_be, capsys):
    assert status_of("publish c.csv -p p.json -o o.csv -q".split()) == 0
    changed("o.csv.certificate.json", key.split("."), value)
    assert f"'{key}' must be {must_be}" in refusal("verify o.csv", capsys)


def test_a_plan_whose_method_has_no_name(capsys):
    planned = "publish c.csv -p p.json --method full-domain --plan o.plan -q -o"
    assert status_of([*planned.split(), "o.csv"]) == 0
    changed("o.plan", ["method"], {"parameters": {}})
    assert "holds no plan of this version" in refusal(f"{planned} again.csv", capsys)


@pytest.mark.parametrize(
    "command",
    [
        "publish c.csv -p p.json -o o.csv --trace {}",
        "publish c.csv -p p.json -o o.csv --plan {}",
        "policy init c.csv -o {}",
        "ledger export led --output {}",
        "policy check null.json",
        "publish c.csv -p p.json -o sqlite:///c.db%00?table=t",
        "publish c.csv -p p.json -o sqlite:///c.db?table=%00",
    ],
)
def test_a_name_that_holds_a_null_character(command, capsys):
    Path("null.json").write_text(json.dumps(POLICY))
    changed("null.json", ["attributes", "sex", "hierarchy"], "a\0b")
    assert status_of("republish c.csv -p p.json --ledger led -q".split()) == 0
    assert "null character" in refusal(command.format("a\0b"), capsys)


@pytest.mark.parametrize(
    ("key", "value"), [("records", {}), ("wait", 3), ("at", 1e300), ("loss", "much")]
)
def test_a_status_of_a_stream_that_says_something_else(key, value, capsys):
    assert status_of("stream c.csv -p p.json -o s.csv --checkpoint ck -q".split()) == 0
    changed("ck/status.json", [key], value)
    assert "can't be read" in refusal("stream-status ck", capsys)


def test_half_a_character(capsys):
    changed("p.json", ["attributes", "sex", "hierarchy"], {"tree": ["\ud800", "m"]})
    assert "half a character" in refusal("policy check p.json", capsys)
    Path("p.json").write_text(json.dumps(POLICY))
    assert "UTF-8" in refusal("publish c.csv -p p.json -o o.csv --method \udcff", capsys)


@pytest.mark.parametrize(
    "command",
    [
        "publish c.csv -p p.json -o",
        "stream c.csv -p p.json --checkpoint ck -o",
        "profile",
        "policy init",
        "verify",
    ],
)
@pytest.mark.parametrize(
    "place", ["\udcff.csv", "sqlite:///c.db?table=\udcff", "sqlite:///\udcff?table=t"]
)
def test_a_place_whose_name_is_not_utf_8(command, place, capsys):
    Path("\udcff.csv").write_text(ROWS)
    assert "its name is not UTF-8" in refusal(f"{command} {place}", capsys)


@pytest.mark.parametrize("option", ["--trace p.json -o", "--dead-letters h.csv -o"])
def test_a_stream_writes_over_nothing_that_it_reads(option, capsys):
    changed("p.json", ["attributes", "sex", "hierarchy"], "h.csv")
    Path("h.csv").write_text("m,*\nf,*\n")
    assert "is also read" in refusal(f"stream c.csv -p p.json {option} s.csv", capsys)


@pytest.mark.parametrize(("old", "new"), [("key: visit", "key: nope"), ("{visits: v", "{visits: ")])
def test_a_link_that_a_linked_table_lacks(old, new, capsys):
    assert status_of("sample clinic -n 60 -o cl -q".split()) == 0
    Path("l.yaml").write_text(Path("cl.policy.yaml").read_text().replace(old, new))
    assert "has no column '" in refusal("compare cl -p l.yaml --ks 2 -q", capsys)


PUBLISH = "publish c.csv -p p.json -o o.csv"
CHECK = "policy check p.json c.csv"


@pytest.mark.parametrize("command", [PUBLISH, CHECK, "profile c.csv", "policy init c.csv"])
@pytest.mark.parametrize("mark", "é€\u2028")
def test_a_spreadsheet_whose_cells_nothing_in_ascii_parts(mark, command, capsys):
    Path("c.csv").write_text(f"sep={mark}\n" + ROWS.replace(",", mark), "utf-8")
    assert "'sep=', names no ASCII character" in refusal(command, capsys)


def test_a_policy_without_attributes(capsys):
    changed("p.json", ["attributes"], {})
    assert "no quasi-identifier" in refusal(PUBLISH, capsys)
    assert status_of(CHECK.split()) == 2
    assert "none of the 4 names is in the policy" in capsys.readouterr().err


@pytest.mark.parametrize("first", [",,,", ";;;", '"",""'])
def test_a_stream_whose_first_line_names_nothing(first, capsys):
    Path("c.csv").write_text(ROWS.replace("pid,age,sex,dis", first))
    assert "needs a name" in refusal("stream c.csv -p p.json -o s.csv", capsys)


@pytest.mark.parametrize(
    "command",
    [
        *(f"republish c.csv --ledger {place}" for place in ("c.csv/../c.csv", "full")),
        *(f"stream b.csv -o s.csv --checkpoint {place}" for place in ("empty", "full", "new/deep")),
        "stream c.csv -o s.csv --trace new --checkpoint new",
    ],
)
def test_a_refusal_leaves_folders_as_they_were(command):
    Path("b.csv").write_text(ROWS.replace("sex", "gender"))
    Path("empty").mkdir()
    Path("full/segment-1").mkdir(parents=True)
    there = {*Path().rglob("*")}
    assert status_of([*command.split(), "-p", "p.json"]) == 2
    assert {*Path().rglob("*")} == there


def test_a_hierarchy_that_is_too_deep_serves_no_column(capsys):
    Path("sex.csv").write_text("".join(f"{sex}{1100 * ';*'}\n" for sex in "mf"))
    assert status_of("hierarchies match c.csv .".split()) == 0
    assert "sex.csv: the hierarchy has 1,101 columns" in capsys.readouterr().out
