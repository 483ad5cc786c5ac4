"""Tables that are made from the program while the docs are built, so that they can't go stale.

```{method-table} mondrian        source and parameters of a method
```{promise-table} k-anonymity    definition, source, kind and parameters of a promise
```{command-table} ledger verify  arguments and options of a command
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class MethodTable(SphinxDirective):
    """Source and parameters of a method."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        from shoal.advise.methods import methods

        found = _named(methods(every=True), "name", self.arguments[0])
        source = nodes.paragraph("", "", nodes.strong("", "Source: "), nodes.Text(found["paper"]))
        return [source, *_parameters(found["parameters"])]


class PromiseTable(SphinxDirective):
    """Definition, source and parameters of a promise."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        from shoal.advise.methods import describe_promises

        found = _named(describe_promises(), "model", self.arguments[0])
        monotone = (
            "yes: merging classes never breaks it"
            if found["monotone"]
            else "no: merging classes may break it"
        )
        facts = [
            ("Definition", found["definition"]),
            ("Source", found["source"]),
            ("Monotone", monotone),
        ]
        listed = nodes.bullet_list()
        for label, text in facts:
            paragraph = nodes.paragraph("", "", nodes.strong("", f"{label}: "), nodes.Text(text))
            listed += nodes.list_item("", paragraph)
        return [listed, *_parameters(found["parameters"])]


class CommandTable(SphinxDirective):
    """Arguments and options of a command, as its help has them."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        import typer.main

        from shoal.cli.main import app

        command = typer.main.get_command(app)
        context = typer.Context(command, info_name="shoal")
        for name in self.arguments[0].split():
            command = command.get_command(context, name)
            context = typer.Context(command, info_name=name, parent=context)
        records = [p.get_help_record(context) for p in command.params if not p.hidden]
        rows = [record for record in records if record and "--help" not in record[0]]
        return [_table(("argument", "what it does"), rows)]


def _named(described: list[dict[str, Any]], key: str, name: str) -> dict[str, Any]:
    return next(entry for entry in described if entry[key] == name)


def _parameters(parameters: list[dict[str, Any]]) -> list[nodes.Node]:
    if not parameters:
        return [nodes.paragraph("", "It takes no parameters.")]
    rows = [(p["name"], _default(p), _range(p), p["help"]) for p in parameters]
    return [_table(("parameter", "default", "allowed", "what it does"), rows)]


def _default(parameter: dict[str, Any]) -> str:
    default = parameter["default"]
    if parameter["required"]:
        return "(required)"
    return "(none)" if default in ("", None) or default == () else str(default)


def _range(parameter: dict[str, Any]) -> str:
    if parameter["choices"]:
        return ", ".join(str(choice) for choice in parameter["choices"] if choice != "")
    low, high = parameter["low"], parameter["high"]
    if low is None and high is None:
        return {"str": "text", "tuple": "list of names", "bool": "true, false"}.get(
            parameter["kind"], "number"
        )
    return f"{'' if low is None else f'{low:g}'}..{'' if high is None else f'{high:g}'}"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> nodes.table:
    table, group = nodes.table(), nodes.tgroup(cols=len(head))
    table += group
    for _ in head:
        group += nodes.colspec(colwidth=1)
    group += nodes.thead("", _row(head, literal_first=False))
    group += nodes.tbody("", *(_row(row, literal_first=True) for row in rows))
    return table


def _row(cells: tuple[str, ...], literal_first: bool) -> nodes.row:
    row = nodes.row()
    for place, cell in enumerate(cells):
        inner = nodes.literal("", cell) if literal_first and place == 0 else nodes.Text(cell)
        row += nodes.entry("", nodes.paragraph("", "", inner))
    return row


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("method-table", MethodTable)
    app.add_directive("promise-table", PromiseTable)
    app.add_directive("command-table", CommandTable)
    return {"parallel_read_safe": True}
