"""A fusion in a few lines."""

from __future__ import annotations

import sys

from shoal.cli.summary import print_summary
from shoal.data.certificate import Certificate


def print_fusion(certificate: Certificate, written: str) -> None:
    """The summary of any release; then rounds, bytes, time, and what each party learned, on
    standard error.
    """
    print_summary(certificate, written)
    told = certificate["fusion"]
    sent = ", ".join(f"{kind} {size:,}" for kind, size in told["bytes"].items())
    spent = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in told["seconds"].items())
    lines = [
        f"over {', '.join(qid['attributes'])}: {qid['groups']['count']} groups of"
        f" {qid['groups']['min']} to {qid['groups']['max']} people"
        for qid in told["qids"]
    ]
    lines += [
        (
            f"{told['people']} people in common, {told['rounds']} rounds, {told['steps']}"
            " specializations"
        ),
        f"bytes that {told['party']} sent: {sent or 'none'}",
        f"seconds: {spent}",
    ]
    if told["colluding_parties"] is not None:
        lines.append(
            f"bids stay hidden unless {told['colluding_parties'] + 1} parties put their views"
            " together"
        )
    for party, facts in told["learned"].items():
        lines += [f"{party} learned:", *(f"  {fact}" for fact in facts)]
    print("\n".join(lines), file=sys.stderr)
