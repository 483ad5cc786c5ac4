"""What Python reads of a refusal: keyword arguments in place of a command's options."""

import ast
import functools
import inspect
import pickle
import re
import time
from pathlib import Path

import pytest

import shoal
from sample_policies import content_of
from shoal.data.findings import AttributeFinding, Fault
from shoal.data.option import Option, Request
from shoal.errors import FLAGS, InputError, ShoalError, in_python
from shoal.tables.global_recoding import Plan

SOURCE = Path(shoal.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z]")
NAMED = re.compile(r"(?<![\w-])--([a-z-]+)")
COMMAND = re.compile(r"'(?:shoal|publish|fuse) [^']*'")


def documented(tree: ast.Module) -> set[ast.AST]:
    """The docstrings, and the parts of longer texts."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, kinds)]
    docs = {body[0].value for body in bodies if body and isinstance(body[0], ast.Expr)}
    return docs | {
        part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }


@functools.cache
def texts() -> list[str]:
    """Every text of the source outside the doors that names an option."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text("utf-8")
        if path.relative_to(SOURCE).parts[0] in ("cli", "web") or not OPTION.search(source):
            continue
        tree = ast.parse(source)
        left_out = documented(tree)
        for node in ast.walk(tree):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            said = [getattr(part, "value", None) for part in parts]
            text = "".join(one if isinstance(one, str) else "X" for one in said)
            if node not in left_out and OPTION.search(text):
                found.append(text)
    return found


@pytest.mark.parametrize("part", ["a", "a={", "a={} ", "--read ", "--read a=", ":/", "'shoal "])
def test_a_long_message_is_read_in_one_go(part):
    started = time.process_time()
    str(InputError(part * (100_000 // len(part))))
    assert time.process_time() - started < 2


def test_every_message_that_names_an_option_names_a_keyword_in_python():
    assert len(texts()) > 100
    for text in texts():
        assert not OPTION.search(COMMAND.sub("", in_python(text)))
        assert COMMAND.findall(in_python(text)) == COMMAND.findall(text)


def options() -> list[Option]:
    import shoal.fusion.request
    import shoal.streams.options
    import shoal.tables.request  # noqa: F401

    kinds = [Request]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return [one for kind in kinds[1:] for one in kind.options().values()]


def test_flags_are_the_options_without_a_value():
    flags = {one.flag.removeprefix("--") for one in options() if one.default is False}
    others = {one.flag.removeprefix("--") for one in options() if one.default is not False}
    named = {name for text in texts() for name in NAMED.findall(COMMAND.sub("", text))}
    assert flags & named - others <= {*FLAGS}
    assert not others - flags & {*FLAGS}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exists; say --replace", "exists; say replace=True"),
        ("leave out --memory, or", "leave out memory=, or"),
        ("--trace: needs the original", "trace: needs the original"),
        ("keep it with --method mdav, or", "keep it with method='mdav', or"),
        ("such as --k 10 --seed 7", "such as k=10 seed=7"),
        ("--dead-letters stop", "dead_letters='stop'"),
        ("such as --read header=2; name", "such as read={'header': 2}; name"),
        ("say --read decimal=, --read thousands=.", "say read={'decimal': ',', 'thousands': '.'}"),
        ('--read "thousands= "', "read={'thousands': ' '}"),
        ('say --read "thousands=\'"', "say read={'thousands': \"'\"}"),
        ("--read delimiter=;", "read={'delimiter': ';'}"),
        ("'--write numbers=lo,hi' if", "write={'numbers': 'lo,hi'} if"),
        ("'shoal audit --original O' tells", "'shoal audit --original O' tells"),
        ("an em--dash and 1--2", "an em--dash and 1--2"),
        ("give it (--others; others=)", "give it (others=)"),
        ("--write foo=...: is not", "write={'foo': '...'}: is not"),
        ("attribute '--replace': unknown", "attribute '--replace': unknown"),
    ],
)
def test_an_option_becomes_the_keyword(text, said):
    assert in_python(text) == said


def test_an_error_reads_in_python_and_says_to_commands():
    error = pickle.loads(pickle.dumps(InputError("a: say --replace", ["b: leave out --memory"])))
    assert isinstance(error, ShoalError)
    assert str(error) == "a: say replace=True\n  - b: leave out memory="
    assert error.findings == ("b: leave out memory=",)
    assert error.said == ["a: say --replace", "b: leave out --memory"]


def test_a_call_of_python_names_keywords_and_the_command_options(shoal, workplace):
    import shoal as library

    library.publish_file("patients.csv", "policy.yaml", "out.csv")
    with pytest.raises(InputError, match=r"; name a new file, or say replace=True$"):
        library.publish_file("patients.csv", "policy.yaml", "out.csv")
    shown = shoal("publish", "patients.csv", "-p", "policy.yaml", "-o", "out.csv")
    assert "or say --replace" in shown.err
    checks = library.verify("out.csv")
    (policy,) = [check for check in checks if check.name == "policy"]
    assert "policy=" in policy.text
    assert "--" not in policy.text
    assert "--policy" in shoal("verify", "out.csv").out


def test_findings_of_check_name_keywords(workplace):
    import polars as pl

    frame = pl.read_csv("patients.csv", infer_schema=False)
    found = shoal.check("policy.yaml", frame.with_columns(age=pl.lit("31,5")))
    assert any("read={'decimal': ','}" in one.message for one in found)
    assert isinstance(found[0], AttributeFinding)
    assert found[0].kind in Fault


def test_bad_input_is_a_value_error_and_nothing_else_is():
    with pytest.raises(ValueError, match="is unknown; did you mean 'mondrian'"):
        shoal.Policy.from_dict(POLICY).with_method("mondrain", {})
    ours = {one for one in vars(shoal.errors).values() if _is_ours(one)}
    others = {one for one in ours if not issubclass(one, InputError)}
    assert not any(issubclass(one, ValueError) for one in others)


def _is_ours(one: object) -> bool:
    return isinstance(one, type) and issubclass(one, ShoalError)


POLICY = content_of({"zip": {"role": "quasi", "hierarchy": {"prefix": 5}}}, 5)


def test_what_a_check_of_the_policy_is_refused_is_said_as_it_is(monkeypatch):
    def broken():
        raise InputError("hierarchy maker 'mine': can't be loaded")

    monkeypatch.setattr("shoal.policy.registry.makers", broken)
    with pytest.raises(InputError) as refused:
        shoal.Policy.from_dict(POLICY)
    assert str(refused.value) == "hierarchy maker 'mine': can't be loaded"


def test_a_plan_that_cant_be_read_is_not_said_to_be_of_another_version(tmp_path, monkeypatch):
    def refused(_path):
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "plan.json"
    path.write_text("{}")
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(InputError, match="can't be read"):
        Plan.load(path)


READING = {
    "propose_policy": shoal.propose_policy,
    "profile": shoal.profile,
    "match_hierarchies": lambda table, read: shoal.match_hierarchies(table, ".", read=read),
    "publish": lambda table, read: shoal.publish(table, quasi="sex", k=5, other="drop", read=read),
}
SAID_OF_READING = {
    "text": ("decimal=,", "read: is of type str; give a dict, .* of encoding, .*, header"),
    "pairs": ([("decimal", ",")], "read: is of type list; give a dict, .* of encoding, .*"),
    "nothing": ("", "read: is of type str; give a dict"),
    "another key": (
        {"decimals": ","},
        "read, decimals: is not a known key; did you mean 'decimal'",
    ),
    "no key": ({1: ","}, "read, 1: is not a known key; choose one of encoding, .*, header"),
    "another value": ({"decimal": ";"}, r"read, decimal: must be '\.' or ','"),
    "another type": ({"header": "two"}, "read, header: must be a whole number"),
}


@pytest.mark.parametrize(("read", "says"), SAID_OF_READING.values(), ids=SAID_OF_READING)
@pytest.mark.parametrize("verb", READING.values(), ids=READING)
def test_what_is_wrong_about_reading_is_one_line_that_names_what_is_right(verb, read, says, folder):
    (folder / "codes.csv").write_text("F;female\nM;male\n")
    people = shoal.sample("patients", n=50, seed=1)
    with pytest.raises(InputError, match=f"^{says}") as refused:
        verb(people, read=read)
    assert not refused.value.findings
    assert verb(people, read={"decimal": ","})


@pytest.mark.parametrize("verb", [shoal.publish, shoal.compare])
def test_a_key_of_the_policy_is_no_keyword(verb):
    people = shoal.sample("patients", n=50, seed=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'write'; say it in a policy"):
        verb(people, quasi=["age"], k=5, other="drop", write={"numbers": ["lo"]})


@pytest.mark.parametrize(
    ("name", "word", "says"),
    [
        ("risk", "quasi", "say it in a policy"),
        ("marginal", "k", "say it in a policy"),
        ("profile", "quas", "did you mean 'quasi'?"),
        ("sample", "k", "it takes name, n, seed"),
        ("stream_status", "policy", "it takes checkpoint, now"),
    ],
)
def test_an_unknown_keyword_is_refused_in_one_line_that_names_what_is_right(name, word, says):
    with pytest.raises(InputError) as refused:
        getattr(shoal, name)("x", **{word: 3})
    assert str(refused.value) == f"{name}: unexpected keyword argument '{word}'; {says}"
    assert isinstance(refused.value, TypeError)


def test_a_function_that_refuses_unknown_keywords_is_found_by_pickle_and_help():
    assert pickle.loads(pickle.dumps(shoal.risk)) is shoal.risk
    assert [*inspect.signature(shoal.sample).parameters] == ["name", "n", "seed"]
