"""Bad input gives one clear line, exit status 2 or 3, and nothing written."""

import functools
import operator
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
import yaml

import shoal as shoal_package
from sample_policies import content_of
from shoal.fusion.fuse import fuse_file


@pytest.fixture
def refused(workplace, shoal):
    """Publishes and demands refusal: the status, one line that says each of these, and no new
    file.
    """

    def run(
        *says: str, status: int = 2, data: str = "patients.csv", output: str = "out.csv", more=()
    ) -> str:
        before = sorted(p.name for p in workplace.iterdir())
        result = shoal("publish", data, "-p", "policy.yaml", "-o", output, *more, status=status)
        assert result.out == ""
        assert result.err.startswith("shoal: ")
        for text in says:
            assert text in result.err
        assert "Traceback" not in result.err
        assert sorted(p.name for p in workplace.iterdir()) == before
        return result.err

    return run


def change_policy(folder: Path, changes: dict[str, object]) -> None:
    """Writes these values at their dotted places in the policy."""
    policy = yaml.safe_load((folder / "policy.yaml").read_text())
    for place, value in changes.items():
        *above, last = (int(word) if word.isdigit() else word for word in place.split("."))
        inner = functools.reduce(operator.getitem, above, policy)
        if value is GONE:
            del inner[last]
        else:
            inner[last] = value
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))


def append_row(folder: Path, row: str) -> None:
    with open(folder / "patients.csv", "a") as file:
        file.write(row + "\n")


GONE = object()
CLOSE = {"model": "t-closeness", "t": 0.2}
GOOD = "Ann Doe,P9,33,female,13001,primary,asthma,100,north"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"attributes.height": {"role": "plain"}, "attributes.shoe": {"role": "drop"}},
            ("'height', 'shoe'", "in the policy, not in the data"),
        ),
        (
            {"attributes.ward": GONE, "attributes.name": GONE},
            ("'name', 'ward'", "in the data, not in the policy", "other: plain"),
        ),
        (
            {"attributes.zip": GONE, "attributes.ZIP": {"role": "plain"}},
            ("'zip': in the data", "did you mean 'zip' for 'ZIP'?"),
        ),
        (
            {"attributes.ward": GONE, "attributes.wards": {"role": "plain"}, "other": "plain"},
            ("'wards': in the policy, not", "; did you mean 'ward' for 'wards'? take it out"),
        ),
    ],
    ids=["missing in the data", "missing in the policy", "other letters", "others are kept"],
)
def test_columns_that_only_the_policy_or_the_data_has_are_named(refused, workplace, changes, says):
    change_policy(workplace, changes)
    refused(*says)


def test_a_column_that_is_nearly_named_like_one_of_the_policy_is_asked_about(refused, workplace):
    text = (workplace / "patients.csv").read_text()
    (workplace / "patients.csv").write_text(
        text.replace(",age,", ",aeg,", 1).replace(",charge,", ",chrage,", 1)
    )
    message = refused(
        "'aeg', 'chrage': in the data, not in the policy; name them",
        "did you mean 'aeg' for 'age', 'chrage' for 'charge'? take them out",
    )
    assert "'age', 'charge': in the policy, not in the data; did you mean" in message


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (
            "male;*\n",
            (
                "attribute 'sex'",
                "1 distinct value missing from its hierarchy",
                "policy check POLICY DATA --show-values",
            ),
        ),
        ("male;a;x;*\nfemale;a;y;*\n", ("attribute 'sex'", "two different labels")),
        (None, ("sex.csv", "can't read")),
    ],
    ids=["gap", "two parents", "not there"],
)
def test_a_hierarchy_that_does_not_serve_is_refused_without_a_value(
    refused, workplace, written, says
):
    if written is not None:
        (workplace / "sex.csv").write_text(written)
    change_policy(workplace, {"attributes.sex.hierarchy": "sex.csv"})
    assert "female" not in refused(*says)


RAGGED = ("1 row with more or fewer than the header's 9 cells", "row 601")
NO_HEADER = ("line 1 is not UTF-8", "--read encoding=cp1252")
TABLES = {
    "empty": (lambda table: b"", ("patients.csv", "empty")),
    "a line end": (lambda table: b"\n", ("patients.csv", "empty")),
    "a mark": (lambda table: "\ufeff".encode(), ("patients.csv", "empty")),
    "header only": (lambda table: table.partition(b"\n")[0] + b"\n", ("no records",)),
    "names twice": (lambda table: table.replace(b"ward", b"age", 1), ("have the same name",)),
    "cells too few": (lambda table: table + b"Ann,P9,33\n", RAGGED),
    "a cell too many": (lambda table: table + GOOD.encode() + b",more\n", RAGGED),
    "one cell": (lambda table: table + b"x\n", RAGGED),
    "latin": (
        lambda table: table + GOOD.replace("Ann", "Zoë").encode("latin-1") + b"\n",
        ("line 602 is not UTF-8", "--read encoding=cp1252"),
    ),
    "utf-16": (
        lambda table: table.decode().encode("utf-16-le"),
        ("not UTF-8", "--read encoding=utf-16-le"),
    ),
    # whether or not all rows are whole; no name is guessed from what can be read of it
    "a latin name": (lambda table: table.replace(b"sease", b"s\xc3ease", 1), NO_HEADER),
    "and a row": (lambda table: table.replace(b"sease", b"s\xc3ease", 1) + b"x,y\n", NO_HEADER),
    "names alone": (lambda table: b"\nname,patient\n", ()),
    "old line ends": (lambda table: b"a\rb\r", ()),
    "null characters": (lambda table: b"\x00\x01", ()),
    "an open quote": (lambda table: b'"' + b"x" * 300_000, ()),
}


@pytest.mark.parametrize(("written", "says"), TABLES.values(), ids=TABLES)
def test_a_file_that_is_no_table_is_refused_in_one_line(refused, workplace, written, says):
    path = workplace / "patients.csv"
    path.write_bytes(written(path.read_bytes()))
    refused(*says)


def test_blank_lines_are_no_records(workplace, shoal):
    (workplace / "patients.csv").write_text(
        (workplace / "patients.csv").read_text().replace("\n", "\n\n")
    )
    shoal("publish", "patients.csv", "-p", "policy.yaml", "-o", "out.csv", status=0)
    assert len((workplace / "out.csv").read_text().splitlines()) == 601


def test_text_in_a_number_column_names_rows_not_values(refused, workplace):
    append_row(workplace, GOOD.replace(",33,", ",elderly,"))
    append_row(workplace, GOOD.replace(",33,", ",3O,"))
    message = refused("attribute 'age'", "2 records", "rows 601, 602", "not a number")
    assert "elderly" not in message


@pytest.mark.parametrize(
    ("cell", "written", "says"),
    [
        (",100,", ",much,", ("attribute 'charge'", "not numbers")),
        (",33,", ",133,", ("attribute 'age'", "1 record outside its domain", "row 601")),
        (",primary,", ",unheard,", ("attribute 'education'", "missing from its order")),
        (",33,", ',"33,5",', ("digits are written otherwise: say --read decimal=,",)),
    ],
)
def test_a_cell_that_does_not_fit_is_named_without_its_value(
    refused, workplace, cell, written, says
):
    append_row(workplace, GOOD.replace(cell, written))
    message = refused(*says)
    assert written.strip(',"') not in message


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
def test_text_that_floats_would_read_as_no_finite_number(refused, workplace, text):
    append_row(workplace, GOOD.replace(",33,", f",{text},"))
    refused("attribute 'age'", "not a number")


def test_person_without_a_number(refused, workplace):
    append_row(workplace, GOOD.replace(",P9,", ",,"))
    refused("'patient'", "1 record without a subject", "row 601", "in a database: where it is NULL")


def test_findings_of_several_attributes_are_listed_together(refused, workplace):
    append_row(workplace, GOOD.replace(",33,", ",old,").replace(",primary,", ",unheard,"))
    assert len(refused("'age'", "'education'").splitlines()) == 2


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("--k 1", ("k-anonymity",)),
        ("--method nonesuch", ("method 'nonesuch'", "castle, fads for 'shoal stream'")),
        ("--method nonesuch", ("rounded-partition",)),
        ("--method mondrain", ("did you mean 'mondrian'?",)),
        ("--set colour=red", ("unknown parameter 'colour'",)),
        ("--set k=5", ("write --k 5",)),
        ("--set preset=fancy", ("'preset'", "must be one of")),
        ("--set prest=paper", ("did you mean 'preset'?",)),
        ("--set preset", ("--set 'preset'", "PARAM=VALUE")),
    ],
)
def test_an_option_of_publish_that_can_not_be_followed(refused, more, says):
    refused(*says, more=more.split())


@pytest.mark.parametrize("name", ["*", "^age.*$"])
@pytest.mark.parametrize("verb", ["publish", "stream", "republish", "audit", "check"])
def test_a_column_whose_name_reads_as_a_pattern_is_refused_by_its_number(workplace, name, verb):
    attributes = {"age": {"role": "quasi", "type": "number", "domain": [0, 9]}, name: {}}
    attributes[name] = {"role": "sensitive"}
    policy = content_of(attributes, 2)
    frame = pl.DataFrame({"age": ["1", "2", "3"], name: ["x", "y", "z"]})
    act = {
        "publish": lambda: shoal_package.publish(frame, policy),
        "stream": lambda: shoal_package.stream(policy).push(frame),
        "republish": lambda: shoal_package.republish(frame, policy, workplace / "ledger"),
        "audit": lambda: shoal_package.audit(frame, policy),
        "check": lambda: shoal_package.check(policy, frame),
    }[verb]
    with pytest.raises(shoal_package.InputError, match="column 2: its name"):
        act()


@pytest.mark.parametrize("name", ["*", "^age.*$", "^z$"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".jsonl", "/", ".db"])
@pytest.mark.parametrize("verb", ["profile", "publish"])
def test_a_file_with_a_column_named_like_a_pattern_is_refused_in_one_line(
    shoal, workplace, name, suffix, verb
):
    frame = pl.DataFrame({"age": ["1", "2"], "z": ["a", "b"], name: ["x", "y"]})
    path = workplace / f"odd{suffix}"
    if suffix == "/":
        path.mkdir()
        frame.write_parquet(path / "part.parquet")
    elif suffix == ".db":
        with closing(sqlite3.connect(path)) as database:
            database.execute(f'CREATE TABLE t (age, z, "{name}")')
        path = f"sqlite:///{path}?table=t&order=age"
    else:
        write = {
            ".csv": frame.write_csv,
            ".parquet": frame.write_parquet,
            ".arrow": frame.write_ipc,
            ".jsonl": frame.write_ndjson,
        }[suffix]
        write(path)
    more = ["-p", workplace / "policy.yaml", "-o", "o.csv"] if verb == "publish" else []
    assert "column 3: its name" in shoal(verb, str(path), *map(str, more), status=2).err


@pytest.mark.parametrize(
    ("places", "says"),
    [
        ({"output": "nowhere/out.csv"}, ("can't be written",)),
        ({"output": "out.docx"}, ("unknown format", ".parquet")),
        ({"data": "nowhere.csv"}, ("nowhere.csv", "can't be read")),
    ],
)
def test_places_where_nothing_can_be_read_or_written(refused, places, says):
    refused(*says, **places)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_output_folder_that_is_not_writable(refused, workplace):
    (workplace / "locked").mkdir(mode=0o500)
    refused("can't be written", output="locked/out.csv")


def test_output_that_is_a_folder(refused, workplace):
    (workplace / "folder.csv").mkdir()
    refused("can't be written", output="folder.csv")


def test_input_equal_to_output(refused, workplace):
    before = (workplace / "patients.csv").read_bytes()
    refused("is the input", output="patients.csv")
    refused("is the input", output=str(workplace / "." / "patients.csv"))
    assert (workplace / "patients.csv").read_bytes() == before


def test_missing_values_where_the_policy_rejects_them(refused, workplace):
    append_row(workplace, GOOD.replace(",33,", ",,"))
    change_policy(workplace, {"missing": "reject"})
    refused("attribute 'age'", "1 record without a value")


def test_more_than_the_people_there_are_is_infeasible_and_names_the_nearest(
    refused, workplace, sample_table
):
    people = sample_table["patient"].n_unique()
    refused(f"{people} subjects", f"k = {people}", status=3, more=("--k", str(people + 1)))


def test_more_diversity_than_there_are_values_is_infeasible(refused, workplace):
    change_policy(workplace, {"promises.1.l": 13})
    refused("l-diversity", "12", status=3)


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("version", GONE, "version"),
        ("colour", "red", "policy 'policy.yaml', colour: is not a known key"),
        ("shoes", 1, "shoes: is not a known key; 'shoal policy check --schema' lists its keys"),
        ("promisses", [], "promisses: is not a known key; did you mean 'promises'?"),
        ("render", {"interval": "x"}, "interval: is not a known key; did you mean 'intervals'?"),
        ("render", {"intervals": "{hi}-{lo}"}, "{lo}"),
        ("label", "chrage", "'label' names no attribute of the policy; did you mean 'charge'?"),
        ("attributes.age.wieght", 2, "age.wieght: is not a known key; did you mean 'weight'?"),
        ("attributes.order", {"rol": 1}, "order.rol: is not a known key; did you mean 'role'?"),
        ("attributes.age.role", "quasy", "attributes.age.role"),
        ("attributes.age.domain", [9, 3], "domain"),
        ("attributes.education.order", [True, False], "quotes"),
        ("attributes.name.role", "subject", "more than one subject"),
        ("promises", [], "promises"),
        *(("promises.0.k", k, "k-anonymity") for k in (1, 0, -3, "ten", 2.5, True)),
        ("promises.0.model", "k-anonimity", "unknown model; did you mean 'k-anonymity'?"),
        ("promises.0.model", "no-model", "unknown model"),
        ("promises.1.attribute", "diseas", "is not in the policy; did you mean 'disease'?"),
        ("promises.1", {**CLOSE, "attributes": ["ward"]}, "'sensitive'"),
        ("promises.1", {**CLOSE, "attributes": ["nothing"]}, "'nothing'"),
        ("promises.1", {"model": "t-closeness", "attributes": ["disease"]}, "'t' is missing"),
    ],
)
def test_policy_findings(refused, workplace, place, value, says):
    change_policy(workplace, {place: value})
    refused(says)


@pytest.mark.parametrize("number", [".inf", "-.inf", ".nan", "1.0e+400"])
@pytest.mark.parametrize("key", ["weight", "round", "domain"])
def test_every_number_of_an_attribute_is_finite(refused, workplace, key, number):
    value = [0, float(yaml.safe_load(number))] if key == "domain" else yaml.safe_load(number)
    change_policy(workplace, {f"attributes.age.{key}": value})
    refused(f"attributes.age.{key}", "must be a finite number")


@pytest.mark.parametrize("weight", [1e100, 5e-324])
def test_the_most_and_the_least_that_an_attribute_may_weigh(shoal, workplace, weight):
    change_policy(workplace, {"attributes.age.weight": weight})
    for method in ("mondrian", "rounded-partition", "full-domain", "lattice-peeling", "mdav"):
        words = "publish patients.csv -p policy.yaml -o out.csv --replace --method"
        assert shoal(*words.split(), method).status == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"attributes.age.role": "quasy", "colour": "red"}, ("age", "colour")),
        ({"attributes.ward": GONE, "attributes.shoe": {"role": "plain"}}, ("ward", "shoe")),
    ],
)
def test_all_findings_of_a_policy_come_at_once(refused, workplace, changes, says):
    change_policy(workplace, changes)
    assert len(refused(*says).splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("publish", "shoal publish"),
        ("publish a b c", "shoal publish"),
        ("audit --colour", "shoal audit"),
        ("nonesuch", "shoal"),
    ],
)
def test_usage_errors_are_one_line_that_names_the_help_of_the_command(shoal, words, command):
    said = shoal(*words.split(), status=2).err
    assert said.startswith("shoal: ")
    assert said.endswith(f"; see '{command} --help'\n")
    assert len(said.splitlines()) == 1


def test_outputs_overwrite_nothing_that_the_policy_reads(refused, workplace):
    (workplace / "sex.csv").write_text("male;*\nfemale;*\n")
    change_policy(workplace, {"attributes.sex.hierarchy": "sex.csv"})
    refused("the policy or a file that is read", output="sex.csv")


def test_numbers_beyond_exact_comparison(refused, workplace):
    change_policy(workplace, {"attributes.age.domain": [0, 2e18]})
    for last in (1, 2, 3):
        append_row(workplace, GOOD.replace(",33,", f",100000000000000000{last},"))
    assert "1000000000" not in refused("attribute 'age'", "more digits than can be told apart")


def test_a_missing_header(refused, workplace):
    table = pl.read_csv(workplace / "patients.csv", infer_schema=False)
    names = {name: table[name][1] for name in table.columns if name not in ("age", "sex")}
    table.rename(names).write_csv(workplace / "patients.csv")
    kept = {"age": {"role": "quasi", "type": "number"}, "sex": {"role": "quasi"}}
    only_k = [{"model": "k-anonymity", "k": 5}]
    change_policy(workplace, {"attributes": kept, "other": "plain", "promises": only_k})
    refused("names that look like data")


def test_designated_values_that_nobody_has(refused, workplace):
    promise = {"model": "alpha-k-anonymity", "attribute": "ward", "alpha": 0.5, "k": 5}
    promise["values"] = ["Nowhere"]
    change_policy(workplace, {"attributes.ward.role": "sensitive", "promises.1": promise})
    assert "Nowhere" not in refused("1 of its designated values occur in no record")


def test_a_table_without_a_header_shows_nobody(refused, workplace):
    lines = (workplace / "patients.csv").read_text().splitlines()[1:]
    (workplace / "patients.csv").write_text("\n".join(lines) + "\n")
    message = refused("none of the 9 names is in the policy")
    assert lines[0].split(",")[0] not in message


def test_a_json_key_given_twice_is_an_error(refused, workplace):
    (workplace / "policy.yaml").unlink()
    (workplace / "policy.json").write_text('{"version": 1, "version": 1}')
    (workplace / "policy.yaml").symlink_to("policy.json")
    refused("policy")


@pytest.mark.parametrize("wrapped", [SystemError, RuntimeError])
def test_a_stop_that_comes_wrapped_in_an_error_is_an_interruption(wrapped, monkeypatch, shoal):
    def stopped(*arguments, **options):
        raise wrapped("what compiled code says, and Python of a class") from KeyboardInterrupt()

    monkeypatch.setattr("shoal.cli.main.app", stopped)
    assert shoal("publish", status=130).err == "shoal: interrupted; nothing was written\n"


@pytest.fixture
def owners(folder, shoal):
    """A folder with three owners' tables, the shell standing in it."""
    assert shoal("sample", "bank", "-n", "60", "-o", "bank.csv", "-q").status == 0
    for name in ("bank", "insurer", "office"):
        assert shoal("party", "init", name, "-q").status == 0
    agreement = yaml.safe_load((folder / "bank.parties.yaml").read_text())
    for at, party in enumerate(agreement["parties"]):
        party.update(address=f"127.0.0.1:{9801 + at}", certificate=f"{party['name']}.crt")
    (folder / "bank.parties.yaml").write_text(yaml.safe_dump(agreement))
    return folder


@pytest.mark.parametrize("command", [("fuse",), ("party", "bank")])
@pytest.mark.parametrize(
    ("output", "says"),
    [
        (
            "bank.bank.csv",
            "is read by a party; name another file, nothing that is read is overwritten",
        ),
        ("fused.doc", "unknown format"),
        ("none/fused.csv", "can't be written; name a file in a folder that exists"),
    ],
)
def test_a_fusion_asks_where_its_release_goes_before_it_begins(
    owners, shoal, command, output, says
):
    """An owner's table is never overwritten by what became of it."""
    before = {path.name: path.read_bytes() for path in owners.iterdir()}
    assert says in shoal(*command, "bank.parties.yaml", "-o", output, status=2).err
    assert {path.name: path.read_bytes() for path in owners.iterdir()} == before


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ([1, 2], "tables: is not a mapping; give a dict of frames by party"),
        (pl.DataFrame({"customer": ["1"]}), "tables: is not a mapping"),
        (
            {"stranger": pl.DataFrame({"customer": ["1"]})},
            "tables: stranger is not an owner; the agreement has bank, insurer, office",
        ),
        (dict.fromkeys([7, 8], pl.DataFrame()), "tables: 7, 8 are not owners; "),
        ({"bank": [1]}, "party 'bank', frame: is not a pandas, polars or pyarrow table"),
        ({"bank": SimpleNamespace(data=pl.DataFrame())}, "table; give its `.data`, and collect"),
    ],
)
def test_tables_of_a_fusion_that_are_none_are_reported(owners, tables, says):
    with pytest.raises(shoal_package.InputError) as refused:
        shoal_package.fuse("bank.parties.yaml", tables)
    assert says in refused.value.args[0]


@pytest.mark.parametrize("agreement", [None, 7, ["bank.parties.yaml"]])
def test_an_agreement_that_is_none_is_reported(agreement):
    with pytest.raises(
        shoal_package.InputError, match="agreement: is not an agreement; give the path of one"
    ):
        shoal_package.fuse(agreement)


def test_a_report_on_a_fusion_overwrites_no_table(owners):
    before = (owners / "bank.office.csv").read_bytes()
    with pytest.raises(shoal_package.InputError, match="is read by a party"):
        fuse_file("bank.parties.yaml", "fused.csv", beside=[Path("bank.office.csv")])
    assert (owners / "bank.office.csv").read_bytes() == before


@pytest.mark.parametrize(
    "command",
    [
        ("publish", "patients.csv", "-p", "policy.yaml", "-o", "out.csv"),
        ("stream", "patients.csv", "-p", "policy.yaml", "-o", "out.csv"),
        ("republish", "patients.csv", "-p", "policy.yaml", "--ledger", "L"),
        ("fuse", "parties.yaml", "-o", "out.csv"),
        ("audit", "patients.csv", "-p", "policy.yaml"),
        ("audit", "--ledger", "L"),
        ("compare", "patients.csv", "-p", "policy.yaml", "--methods", "mondrian"),
    ],
)
def test_a_report_is_a_page_and_its_name_says_so(workplace, shoal, command):
    before = sorted(path.name for path in workplace.iterdir())
    for name in ("r.pdf", "report", "patients.csv"):
        assert shoal(*command, "--report", name, status=2).err.splitlines() == [
            f"shoal: --report '{name}': is a page of HTML; give it a name that ends in .html"
        ]
    assert sorted(path.name for path in workplace.iterdir()) == before


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            ("--ledger", "L", "--trace", "t.jsonl", "--downstream"),
            "--trace and --downstream cannot be used with --ledger",
        ),
        (("--ledger", "L", "--trace", "."), "audit: --trace cannot be used with --ledger"),
        (
            ("--trace", ".", "--report", "r.html", "-o", "c.json"),
            "--output and --report cannot be used",
        ),
        (
            ("patients.csv", "--trace", ".", "--k", "5"),
            "audit: RELEASED and --k cannot be used with --trace FOLDER",
        ),
        (("patients.csv", "-p", "policy.yaml", "--trace", "t.jsonl"), "give it with --original"),
    ],
)
def test_what_an_audit_would_not_look_at_is_refused(workplace, shoal, command, says):
    """Else a report that was asked for would be missing, or a trace taken for checked."""
    assert says in shoal("audit", *command, status=2).err


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("publish", "--k", "ten"), "--k: is not a whole number; write for instance --k 10"),
        (
            ("sample", "patients", "-n", "ten"),
            "-n: is not a whole number; write for instance -n 10",
        ),
        (
            ("stream", "--deadline", "soon"),
            "--deadline: is not a number; write for instance --deadline 1.5",
        ),
        (("stream", "--deadline", "-3"), "--deadline: should be greater than or equal to 0"),
    ],
)
def test_an_option_of_another_kind_is_named_with_a_way_out(workplace, shoal, command, says):
    assert shoal(*command, status=2).err == f"shoal: {says}; see 'shoal {command[0]} --help'\n"


@pytest.mark.parametrize("command", [("methods",), ("policy", "check", "--schema"), ("--help",)])
def test_a_list_ends_silently_once_its_reader_has_seen_enough(command):
    """As under `head`."""
    found = with_standard_output_closed(*command)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_reader_of_standard_output_that_went_away_is_reported_as_such(workplace):
    """Not by the status of a promise that does not hold, nor as done."""
    said = "shoal: standard output: was closed before all was shown; keep its reader open\n"
    found = with_standard_output_closed("audit", "patients.csv", "-p", "policy.yaml", "--json")
    assert found.returncode == 2
    assert found.stderr.endswith(said)


def test_streams_that_are_closed_from_the_beginning_are_no_place_for_a_library(workplace):
    """Polars took the number of standard output for events of its own, and the command hung."""
    command = "publish patients.csv -p policy.yaml -o out.csv -q".split()
    closed = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", sys.executable, "-m", "shoal", *command]
    assert subprocess.run(closed, timeout=300).returncode == 0
    assert (workplace / "out.csv.certificate.json").exists()


def with_standard_output_closed(*command: str) -> subprocess.CompletedProcess:
    """A command whose reader is gone before it begins."""
    reading, writing = os.pipe()
    os.close(reading)
    found = subprocess.run(
        [sys.executable, "-m", "shoal", *command], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    return found


def test_a_sample_of_nobody_is_refused():
    with pytest.raises(shoal_package.InputError, match="n = -1 records; ask for 1 or more"):
        shoal_package.sample("patients", n=-1)


def test_an_extra_that_is_missing_is_installed_from_the_clone_never_by_a_name_on_an_index():
    stated = str(shoal_package.MissingExtraError.of("a topic needs confluent-kafka", "kafka"))
    said = "a topic needs confluent-kafka, which is not installed; run in the clone of Shoal"
    assert stated == f"{said}: pip install '.[kafka]'"


def test_the_page_names_all_that_it_needs_in_one_command(workplace, shoal, monkeypatch):
    monkeypatch.setattr("shoal.cli.machine.find_spec", lambda name: None)
    stated = shoal("ui", "ward", status=4)
    assert stated.err.count("pip install") == 1
    assert stated.err.endswith("pip install '.[web,excel]'\n")


def test_a_table_in_the_place_of_an_agreement_is_reported_as_such(workplace, shoal):
    stated = shoal("fuse", "patients.csv", "-o", "fused.csv").err
    assert stated.startswith(
        "shoal: agreement 'patients.csv': is not a mapping of keys to values; compare with"
    )


def test_a_table_in_the_place_of_a_policy_is_asked_about(workplace, shoal):
    Path("latin.csv").write_bytes(b"\xfc;b\n")
    for table in ("patients.csv", "latin.csv"):
        stated = shoal("publish", "policy.yaml", "-p", table, "-o", "o.csv").err
        assert stated.endswith("it has the name of a table: are the two files swapped?\n")


@pytest.mark.parametrize("k", [1, "ten", 2.5, None])
def test_a_proposal_for_no_k_is_refused(k, sample_table):
    with pytest.raises(shoal_package.InputError, match=r"k-anonymity.*'k' must be"):
        shoal_package.propose(sample_table, k=k)


@pytest.mark.parametrize(
    ("settings", "word"),
    [({"n": "5"}, "n"), ({"n": 2.5}, "n"), ({"seed": 1.5}, "seed"), ({"seed": -1}, "seed")],
)
def test_a_sample_of_what_is_no_whole_number_is_refused(settings, word):
    with pytest.raises(
        shoal_package.InputError, match=rf"sample 'patients': {word} is not a whole number"
    ):
        shoal_package.sample("patients", **settings)


def test_a_method_needs_no_settings_and_takes_no_text_for_them(sample_policy):
    policy = shoal_package.Policy.from_dict(sample_policy)
    assert policy.with_method("mondrian").model.method == {"name": "mondrian"}
    with pytest.raises(shoal_package.InputError, match="method: its parameters are a dict"):
        policy.with_method("mondrian", "cut=nearest")


@pytest.mark.parametrize("name", ["\ufeff", "Bank", "é", "run", "a" * 300])
def test_nobody_gets_keys_by_a_name_that_no_party_can_have(shoal, name):
    assert "a name is" in shoal("party", "init", name, status=2).err


def test_keys_of_nobody_are_asked_for_by_name(workplace, shoal):
    assert shoal("party", "init").err == (
        "shoal: Missing argument 'NAME' (this party's name); see 'shoal party init --help'\n"
    )


def test_an_audit_of_a_stream_without_its_trace_says_what_is_missing(workplace, shoal):
    shuffled = pl.read_csv("patients.csv", infer_schema=False).sample(
        fraction=1, shuffle=True, seed=1
    )
    asked = yaml.safe_load(Path("policy.yaml").read_text()) | {"render": {"order": "input"}}
    Path("policy.yaml").write_text(yaml.safe_dump(asked))
    assert shoal("publish", "patients.csv", "-p", "policy.yaml", "-o", "out.csv", "-q").status == 0
    shuffled.write_csv("other.csv")
    stated = shoal("audit", "out.csv", "-p", "policy.yaml", "--original", "other.csv", status=1)
    said = "most records differ: was the release made of that table, in that order?"
    assert f"{said} a stream needs its --trace" in stated.err.splitlines()


def test_a_trace_that_is_nested_too_deeply_is_refused(workplace, shoal):
    Path("t.jsonl").write_text("[" * 100_000)
    stated = shoal(
        *"audit patients.csv -p policy.yaml --original patients.csv --trace t.jsonl".split(),
        status=2,
    )
    assert stated.err == "shoal: trace 't.jsonl': can't be read; give the file that --trace wrote\n"


def test_a_fusion_that_is_interrupted_says_how_to_resume(owners, shoal, monkeypatch):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("shoal.fusion.fuse.fuse_file", stopped)
    stated = shoal("fuse", "bank.parties.yaml", "-o", "fused.csv")
    assert (stated.status, stated.err) == (
        130,
        "shoal: interrupted; nothing was published, run the same command again to resume\n",
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: {b: c\nd: e\n", "line 2 can't be understood: did not find expected ',' or '}'"),
        ("a:\n\tb: c\n", "line 2 can't be understood: found character that cannot start"),
        ("a: 1\nb: 2\na: 3\n", "line 3 can't be understood: a key is named a second time; fix"),
        (
            "a: [1]\nb: 010\n",
            "line 2 can't be understood: a number begins with 0 (quote it to keep",
        ),
        ("a: [01, 0.5]\n", "line 1 can't be understood: a number begins with 0 (quote it to keep"),
        ("a: ['01', 0.5, 0, 2]\n", "attributes: is missing"),
        ("[a]: 1\n", "line 1 can't be understood: a list or mapping stands for a key; fix"),
        *((text, "") for text in ("a: &x [*x]", "? [1]\n: 2", "{" * 3000)),
        ("- a\n", "is not a mapping of keys to values; 'shoal policy init DATA' proposes"),
        ("parties: []\n", "is an agreement of several owners; 'shoal fuse' takes it"),
        ("version: 1\nattributes: {}\npromises: []\n", "promises: is empty; name at least one"),
    ],
)
def test_a_policy_file_that_can_t_be_read_says_where_and_why(workplace, refused, text, says):
    (workplace / "policy.yaml").write_text(text)
    refused("policy 'policy.yaml'", says)


def test_a_policy_in_the_place_of_an_agreement_is_named_as_one(workplace, shoal):
    said = shoal("fuse", "policy.yaml", "-o", "fused.csv").err
    assert said.startswith("shoal: agreement 'policy.yaml': is the policy of one table")
    assert said.count("\n") == 1


def test_check_lists_made_hierarchies_beside_missing_columns(workplace, shoal):
    changes = {"attributes.sex.hierarchy": {"tree": {"x": ["y"]}}, "attributes.wards.role": "plain"}
    change_policy(workplace, {"attributes.wards": {}} | changes)
    said = shoal("policy", "check", "policy.yaml", "patients.csv").err
    assert "'wards': in the policy" in said
    assert "attribute 'sex'" in said


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("check", "did you mean 'shoal policy check'"),
        ("init", "did you mean 'shoal party init' or 'shoal policy init'"),
        ("publis", "did you mean 'publish', 'republish'"),
    ],
)
def test_a_command_without_its_group_is_completed(typed, hint, shoal):
    assert f"No such command '{typed}'; {hint}; see 'shoal --help'" in shoal(typed, status=2).err
