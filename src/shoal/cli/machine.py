"""What there is, and making it ready: shoal ui, methods, sample, warmup."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from shoal.cli import options
from shoal.cli.progress import listed, say, shown
from shoal.data.option import MOST, option
from shoal.errors import InputError, MissingExtraError
from shoal.policy.options import REPLACE

# shoal warmup


def warmup(
    verbs: list[str] | None = option(
        "--verb VERB", "Only what this verb needs: publish, stream, republish or fuse; repeatable."
    ),
    every_method: bool = option(
        "--all", "Every method, not only those that run where none is named.", False
    ),
    quiet: bool = options.QUIET,
) -> None:
    """Compile for this machine what Shoal would compile on its first use, so that no run waits."""
    from shoal.advise.invented import warm_up

    with shown(quiet) as progress:
        compiled = warm_up(verbs or (), every_method, progress)
    if not quiet:
        done = f"compiled {compiled} functions" if compiled else "everything was compiled already"
        say(f"shoal: {done}")


# shoal sample


def sample(
    name: str = option(
        "NAME", "Which generator: bank, clinic, patients, purchases, survey or wearables.", ...
    ),
    output: str = option("-o, --output", "Where to write the table; of clinic, a folder.", ...),
    replace: bool = REPLACE,
    n: int = option("-n", "How many records; of clinic, people.", 1000, low=1),
    seed: int = option("--seed", "The same seed gives the same table.", 0, low=0),
    quiet: bool = option("-q, --quiet", "Say nothing.", False),
) -> None:
    """Write one or several tables of invented people, with a policy that fits beside them."""
    from shoal.samples import write_sample

    written = write_sample(name, n, seed, output, replace)
    if not quiet:
        say(f"wrote {listed(written)}")


def methods(
    as_json: bool = option("--json", "Print everything as JSON.", False),
    every: bool = option("--all", "The papers' comparators, too, where they are installed.", False),
) -> None:
    """List the methods to choose from: verb, paper, parameters with defaults and ranges, and every
    promise they can keep.
    """
    from shoal.advise.methods import describe_promises
    from shoal.advise.methods import methods as listed

    described = {"methods": listed(every=every), "promises": describe_promises()}
    if as_json:
        typer.echo(json.dumps(described, indent=2))
        return
    for method in described["methods"]:
        typer.echo(f"{method['name']}  ({method['verb']})")
        typer.echo(f"    {method['paper']}")
        for parameter in method["parameters"]:
            typer.echo(
                f"    --set {parameter['name']}={parameter['default']} "
                f" {_limits(parameter)}{parameter['help']}"
            )
    typer.echo("\npromises:")
    for promise in described["promises"]:
        typer.echo(f"  {promise['model']}: {promise['definition']}")
    typer.echo(f"\n{_comparators(every)}")


def _comparators(shown: bool) -> str:
    """Where to find the papers' comparators."""
    from shoal.policy.plug_ins import COMPARATORS, INSTALL
    from shoal.policy.registry import is_missing

    if any(map(is_missing, COMPARATORS)):
        return f"{len(COMPARATORS)} comparators of the papers: '{INSTALL}' in Shoal's repository"
    those = "are among these" if shown else "with --all"
    return f"{len(COMPARATORS)} comparators of the papers {those}"


def _limits(parameter: dict[str, Any]) -> str:
    if parameter["choices"]:
        return f"[{'|'.join(str(c) for c in parameter['choices'] if c != '')}] "
    low, high = parameter["low"], parameter["high"]
    ends = ["" if end in (None, MOST) else end for end in (low, high)]
    return "" if ends == ["", ""] else f"[{ends[0]}..{ends[1]}] "


def ui(
    folder: Path = option(
        "[FOLDER]", "The project; made where it is not there.", Path("shoal-project")
    ),
    tables: Path = option("--tables DIR", "Below which tables may be opened.", Path()),
    no_browser: bool = option("--no-browser", "Only print the page's address.", False),
) -> None:
    """Open the web interface of a project in your browser: from a table to a signed release, step
    by step. Only this computer can reach it.
    """
    missing = [name for name in ("Starlette", "uvicorn") if find_spec(name.lower()) is None]
    if missing:
        needs = f"shoal ui needs {' and '.join(missing)}"
        raise MissingExtraError.of(needs, "web,excel", are_many=len(missing) > 1)
    if not tables.is_dir():
        raise InputError(f"--tables '{tables}': is not a folder; name one that exists")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"project '{folder}': is a file; name a folder")
    from shoal.web.app import serve

    serve(folder, tables, lambda line: say(line), (lambda path: None) if no_browser else _show)


def _show(path: Path) -> None:
    """Opens a file in the person's browser, silently where there is none."""
    import webbrowser

    webbrowser.open(path.resolve().as_uri())
