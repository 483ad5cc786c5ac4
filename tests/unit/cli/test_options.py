"""An option stands in one place, the request of its verb. The command line, Python's keywords and
what the page asks are made from it.
"""

import inspect
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import shoal
from shoal.cli.main import FILE_OF, GROUPS
from shoal.cli.options import _options, command
from shoal.data.option import Request, option, with_keywords
from shoal.errors import InputError
from shoal.tables import request
from shoal.tables.request import (
    OutputOptions,
    OutputWords,
    PublishCommand,
    PublishOptions,
    PublishWords,
    TableOptions,
    TableWords,
)


class Drawn(Request):
    colour: str = option("--colour NAME", "In which colour.", "red", choices=("red", "blue"))
    width: int | None = option("--width N", "How wide.", low=1, needs=("output",), why="no output")
    paper: bool = option("--paper", "On paper.", False, needs=("output",))
    screen: bool = option("--screen", "On the screen.", False, takes_no=("output", "paper"))


def draw(
    *,
    name: str = option("NAME", "What.", ...),
    drawn: Drawn,
    output: Path | None = option("-o, --output FILE", "Where to."),
) -> None:
    """Draw."""
    print(name, drawn.colour, drawn.width, output)


def run(verb, *words):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command(verb))
    return CliRunner().invoke(app, words)


def test_options_of_a_request_stand_where_its_parameter_does():
    text = run(draw, "--help").output
    shown = [text.index(name) for name in ("NAME", "--colour", "--width", "--screen", "--output")]
    assert shown == sorted(shown)
    assert run(draw, "fish", "--colour", "blue").output == "fish blue None None\n"
    assert run(draw, "fish", "--width", "3", "-o", "f").output == "fish red 3 f\n"


def test_the_bounds_of_an_option_are_those_of_the_command():
    assert "--width" in run(draw, "fish", "--width", "0", "-o", "f").output
    assert run(draw).exit_code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--colour", "green"), "--colour NAME 'green': is unknown; choose one of red, blue"),
        (("--width", "2"), "no output"),
        (("--paper",), "draw: --paper cannot be used without --output"),
        (("--screen", "-o", "f"), "draw: --output cannot be used with --screen"),
        (("--screen", "--paper", "-o", "f"), "draw: --output and --paper cannot be used with"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, said):
    refused = run(draw, "fish", *words).exception
    assert isinstance(refused, InputError)
    assert refused.said[0].startswith(said)


def test_what_an_option_needs_or_does_not_take_are_options():
    known, named = set(), set()
    for verb in FILE_OF.keys() - GROUPS:
        module = import_module(f"shoal.cli.{FILE_OF[verb]}")
        options = {n: one for n, _, one in _options(getattr(module, verb.replace("-", "_")))}
        known |= options.keys()
        named |= {name for one in options.values() for name in (*one.needs, *one.takes_no)}
    assert named <= known


# An option of publish is added in one place.


class WithOneMore(PublishOptions):
    colour: str = option("--colour NAME", "Its colour.", "red", choices=("red", "blue"))
    depth: int | None = option(
        "--depth N", "How deep.", low=1, needs=("trace",), why="depth: needs a trace"
    )


def test_the_command_has_an_option_once_its_request_has(monkeypatch):
    asked = []

    def publish(one: PublishCommand) -> None:
        asked.append(one)

    monkeypatch.setattr(request, "PublishOptions", WithOneMore)
    needed = ("in.csv", "-p", "policy.yaml", "-o", "out.csv")
    assert "Its colour." in run(publish, "--help").output
    assert run(publish, *needed, "--colour", "blue", "--explain").exit_code == 0
    assert (asked[0].given.colour, asked[0].given.explain) == ("blue", True)


class Words(PublishWords, total=False):
    colour: str
    depth: int


def test_python_has_an_option_once_its_request_and_its_words_have(monkeypatch):
    monkeypatch.setattr(request, "PublishOptions", WithOneMore)

    @with_keywords(Words, WithOneMore)
    def publish(frame, **words):
        """Publishes."""
        return request.publish_options(words)

    assert "\ncolour: Its colour." in publish.__doc__
    assert inspect.signature(publish).parameters["colour"].default == "red"
    assert publish(None, plan=None).colour == "red"
    done = publish(None, colour="blue", trace=Path("t.jsonl"), depth=2)
    assert (done.colour, done.trace, done.depth) == ("blue", "t.jsonl", 2)
    for words, said in (
        ({"colour": "green"}, "publish: parameter 'colour' must be one of red, blue"),
        ({"depth": 0, "trace": "t"}, "publish: parameter 'depth' must be at least 1"),
        ({"depth": 2}, "depth: needs a trace"),
        ({"trace": object()}, "trace: a path is needed, this is of type object"),
    ):
        with pytest.raises(InputError, match=f"^{said}"):
            publish(None, **words)


def test_the_page_has_an_option_once_its_request_has(monkeypatch):
    edits = pytest.importorskip("shoal.web.edits")
    for module in (edits, request):
        monkeypatch.setattr(module, "PublishOptions", WithOneMore)
    form = {"kind": ["draft"], "colour": ["blue"], "depth": ["2"], "explain": ["on"], "plan": [""]}
    given = edits.options_of(form)
    assert given == {"colour": "blue", "depth": "2", "explain": "on"}
    asked = request.publish_options({"explain": False, "trace": Path("t.jsonl"), **given})
    assert asked == WithOneMore(explain=True, trace="t.jsonl", colour="blue", depth=2)
    with pytest.raises(InputError, match=r"^trace: the page says where its files go"):
        edits.options_of(form | {"trace": ["/etc/passwd"]})


def test_type_checkers_see_every_option_of_publish():
    for words, asked in ((TableWords, TableOptions), (OutputWords, OutputOptions)):
        assert {*words.__annotations__} == {*asked.options()}


@pytest.mark.parametrize("verb", [shoal.publish, shoal.publish_file])
def test_python_takes_every_option_of_publish_and_says_what_it_does(verb):
    parameters = inspect.signature(verb).parameters
    for name, one in PublishOptions.options().items():
        assert parameters[name].default == one.default
        assert f"\n{name}: {one.help}" in verb.__doc__
