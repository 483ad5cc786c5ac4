"""A proposed policy in words: why each role, who is alone with what, and what is to be decided."""

from __future__ import annotations

from shoal.advise.proposal.proposal import Proposal, ProposedColumn
from shoal.advise.proposal.singled_out import Order, share_text
from shoal.data.printable import printable

NO_SUBJECT = "no column numbers people: every record is taken to be its own person"


def question_lines(proposal: Proposal) -> list[str]:
    """What somebody has to decide before anything is published."""
    lines = []
    questions = proposal.questions
    if questions:
        count = len(questions)
        lines.append(
            "1 open question; answer it and delete its 'ask', or nothing is published:"
            if count == 1
            else f"{count} open questions; answer them and delete each 'ask', or nothing is"
            " published:"
        )
        lines += [f"  {_one_line(name)}: {_one_line(ask)}" for name, ask in questions.items()]
    if proposal.subject is None:
        lines.append(NO_SUBJECT)
    return lines


def explanation_lines(proposal: Proposal) -> list[str]:
    """A table of all columns, then who is alone in few columns."""
    heads = ("column", "role", "alone", "adds", "why")
    rows = [heads, *(_row(column) for column in proposal.columns)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}"
        f"  {row[3]:>{widths[3]}}  {row[4]}"
        for row in rows
    ]
    many = sum(column.role == "quasi" for column in proposal.columns)
    together = share_text(proposal.together)
    lines.append(f"all {many} quasi-identifiers: {together} of {proposal.unit} unique")
    return lines + ([] if proposal.order is None else _order_lines(proposal.order, proposal.unit))


def _row(column: ProposedColumn) -> tuple[str, ...]:
    shares = ["" if share is None else share_text(share) for share in (column.alone, column.adds)]
    role = column.role if column.ask is None else f"{column.role} (ask)"
    return _one_line(column.name), role, *shares, _one_line(column.reason)


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _order_lines(order: Order, unit: str) -> list[str]:
    lines = []
    if order.pairs:
        pairs = (
            f"{_one_line(a)} and {_one_line(b)} {share_text(share)}" for a, b, share in order.pairs
        )
        lines.append(f"worst pairs: {', '.join(pairs)} of {unit} unique")
    if order.steps:
        steps = (f"{_one_line(name)} {share_text(share)}" for name, share in order.steps)
        lines.append(f"{', + '.join(steps)} of {unit} unique")
    return lines
