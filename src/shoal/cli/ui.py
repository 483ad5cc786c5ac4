"""shoal ui"""

from importlib.util import find_spec
from pathlib import Path

from shoal.cli.progress import say
from shoal.data.option import option
from shoal.errors import InputError, MissingExtraError


def ui(
    folder: Path = option(
        "[FOLDER]", "The project; made where it is not there.", Path("shoal-project")
    ),
    tables: Path = option("--tables DIR", "Below which tables may be opened.", Path()),
    no_browser: bool = option("--no-browser", "Only print the page's address.", False),
) -> None:
    """Open the steward's page of a project in your browser: from a table to a signed release, step
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

    serve(
        folder,
        tables,
        lambda line: say(line),
        (lambda path: None) if no_browser else _show,
    )


def _show(path: Path) -> None:
    """Opens a file in the person's browser, silently where there is none."""
    import webbrowser

    webbrowser.open(path.resolve().as_uri())
