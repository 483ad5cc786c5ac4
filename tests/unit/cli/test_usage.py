"""Commands that are typed wrongly: what is wrong, what there is, and whose help says more."""

import errno
from pathlib import Path

import pytest
import yaml

from shoal.cli.main import INSTEAD
from shoal.errors import InputError
from shoal.policy.loading import read_options
from shoal.policy.options import files_options
from shoal.samples import generators
from shoal_papers.reproduce import papers


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("publish", "in.csv", "--k"), "publish"),
        (("hierarchies", "match", "in.csv", "-p"), "hierarchies match"),
        (("policy", "--help=3"), "policy"),
    ],
)
def test_an_option_without_its_value_points_to_the_help_of_its_command(arguments, command, shoal):
    assert shoal(*arguments, status=2).err.endswith(f"; see 'shoal {command} --help'\n")


def test_a_path_that_may_not_be_read_has_a_way_out(tmp_path, monkeypatch, shoal):
    (tmp_path / "p.yaml").touch()
    monkeypatch.setattr("os.access", lambda *_, **__: False)
    said = shoal("publish", "in.csv", "-p", tmp_path / "p.yaml", "-o", "out.csv", status=2).err
    assert said.endswith("is not readable; run as its owner, or ask for the right to read it\n")


def test_an_option_of_no_command_points_to_the_help_of_all(shoal):
    assert shoal("--version=3").err.endswith("; see 'shoal --help'\n")


@pytest.mark.parametrize(
    ("option", "meant"), [("--sett", "; did you mean --set or --seed or --quiet"), ("--zzz", "")]
)
def test_options_that_are_suggested_are_in_the_help(option, meant, shoal):
    result = shoal("compare", "in.csv", option, "1")
    assert result.err == f"shoal: No such option: {option}{meant}; see 'shoal compare --help'\n"


def test_a_short_k_is_answered_by_the_long_one(shoal):
    said = shoal("publish", "in.csv", "-o", "out.csv", "-k", "3").err
    assert said == "shoal: No such option: -k; did you mean --k; see 'shoal publish --help'\n"


@pytest.mark.parametrize("old", INSTEAD)
def test_an_old_spelling_is_refused_with_the_new_one_named(old, shoal):
    is_option = old.startswith("-")
    result = shoal("audit", "out.csv", old) if is_option else shoal(old, "out.csv")
    assert result.status == 2
    whose = "shoal audit" if is_option else "shoal"
    assert result.err == f"shoal: {old}: write {INSTEAD[old]}; see '{whose} --help'\n"
    assert not is_option or "No such option" in shoal("compare", "in.csv", "--earlier").err


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (("starlette", "uvicorn"), "needs Starlette and uvicorn, which are not installed; run"),
        (("uvicorn",), "needs uvicorn, which is not installed; run"),
    ],
)
def test_what_is_missing_is_named_as_one_or_as_many(missing, said, shoal, monkeypatch):
    monkeypatch.setattr(
        "shoal.cli.machine.find_spec", lambda name: None if name in missing else name
    )
    assert said in shoal("ui", status=4).err


@pytest.mark.parametrize(("command", "known"), [("sample", generators), ("reproduce", papers)])
def test_a_missing_name_is_answered_with_those_that_there_are(command, known, shoal):
    said = shoal(command).err
    assert said.startswith("shoal: Missing argument 'NAME' (")
    assert [name for name in known() if name not in said] == []


def test_all_missing_arguments_are_said_at_once_and_what_they_are(shoal):
    wanted = "'DATA' (the table) and 'DIR' (a folder of hierarchy tables)"
    assert f"Missing arguments {wanted}; see" in shoal("hierarchies", "match").err
    assert "Missing argument 'DIR' (a folder" in shoal("hierarchies", "match", "in.csv").err


def test_an_unknown_key_of_read_or_write_is_answered_with_those_that_there_are(shoal):
    result = shoal("profile", "in.csv", "--read", "foo=1", "--read", "delimeter=;")
    known = "choose one of encoding, delimiter, decimal, thousands, dates, sheet, header, unpacked,"
    known += " record_lines, partitioner"
    assert result.status == 2
    assert result.err.splitlines() == [
        f"shoal: --read foo=...: is not a known key; {known}",
        f"shoal: --read delimeter=...: is not a known key; did you mean 'delimiter'? {known}",
    ]
    with pytest.raises(
        InputError, match=r"^write={'foo': '...'}: is .* encoding, delimiter, newline"
    ):
        files_options(None, ["foo=1"])


def test_an_unknown_key_of_reading_is_answered_in_python_too():
    with pytest.raises(InputError, match=r"^read, foo: is not a known key; choose one of encoding"):
        read_options({"foo": 1})


@pytest.fixture
def purchases(folder, shoal):
    """A stream and a policy that names no method."""
    assert shoal("sample", "purchases", "-n", "100", "-o", "in.csv", "-q").status == 0
    policy = yaml.safe_load(Path("in.policy.yaml").read_text())
    policy.pop("method", None)
    Path("policy.yaml").write_text(yaml.safe_dump(policy))


@pytest.mark.parametrize(
    ("verb", "to", "setting", "taken", "way_out"),
    [
        (
            "publish",
            "-o",
            "cut=nearest",
            "rounded-partition': parameter 'cut' must be one of paper, admissible; nobody",
            "that fits with --method: mondrian",
        ),
        ("publish", "-o", "cut=foo", "rounded-partition': ", "'shoal methods' lists"),
        ("stream", "-o", "beta=5", "fads': ", "that fits with --method: "),
        ("republish", "--ledger", "cut=foo", "crp': ", "'shoal methods' lists"),
    ],
)
def test_a_parameter_that_the_default_does_not_take_names_methods_that_do(
    verb, to, setting, taken, way_out, purchases, shoal
):
    result = shoal(verb, "in.csv", "-p", "policy.yaml", to, "out.csv", "--set", setting, status=2)
    assert result.err.startswith(f"shoal: method '{taken}")
    assert "; nobody named a method, so this one is taken: name " in result.err
    assert way_out in result.err


def test_a_method_that_was_named_is_not_called_the_default(purchases, shoal):
    named = ("--method", "mondrian", "--set", "cut=foo")
    result = shoal("publish", "in.csv", "-p", "policy.yaml", "-o", "out.csv", *named)
    said = "shoal: method 'mondrian': parameter 'cut' must be one of median, nearest\n"
    assert result.err == said


def test_the_help_groups_all_verbs_and_names_no_type_of_flags(shoal):
    from shoal.cli.main import PANELS, VERBS

    shown = [shoal(*words, "--help").out for words in ((), ("publish",), ("policy", "init"))]
    assert all(f"─ {panel} ─" in shown[0] for panel in PANELS)
    assert len(VERBS) == len({*VERBS})
    assert "<int>" in shown[1]
    assert not any("<bool>" in text for text in shown)


def test_a_file_that_memory_is_too_short_for_is_no_matter_of_rights(shoal, tmp_path, monkeypatch):
    def short(*_, **__):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    (tmp_path / "in.csv").write_text("a\n1\n")
    monkeypatch.setattr("shoal.connectors.dialect.open", short, raising=False)
    monkeypatch.setattr("shoal.connectors.files.open", short, raising=False)
    result = shoal("profile", str(tmp_path / "in.csv"), status=2)
    assert result.err.split(";")[0] == "shoal: memory: there is not enough of it for this"
