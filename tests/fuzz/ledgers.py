"""Ledgers: every release judged by itself, and the whole published table as of each."""

from dataclasses import replace
from pathlib import Path
from random import Random

import polars as pl

import shoal
from fuzz import draw
from fuzz.cells import Policy, Table
from fuzz.draw import Case
from fuzz.judge import judge
from fuzz.outcome import Outcome, compare, write_inputs
from fuzz.tables import match_of, methods, some_method
from shoal.errors import InfeasibleError, InputError, PromiseError
from shoal.ledgers.republish import republish_file

INVENTS = "m-invariance"  # its rows are not all of people


def draw_case(random: Random, method: str | None = None) -> Case:
    """A growing table in a few increments."""
    name = method or random.choice(methods("republish"))
    parts = tuple(random.choice([2, 9, 20, 35]) for _ in range(random.randint(1, 4)))
    columns, sensitive = draw.draw_columns(random, sum(parts), draw.STREAM_KINDS)
    columns.attributes["person"] = {"role": "subject"}
    columns.cells["person"] = [f"p{i}" for i in range(sum(parts))]
    if name == INVENTS:
        sensitive = _for_signatures(columns, sensitive)
    shares = random.random() < 0.3
    policy = columns.policy(draw.promises(sensitive, random, shares), some_method(name, random))
    if random.random() < 0.3:
        policy["missing"] = "value"
    return Case("ledger", policy, columns.table(), {"h.csv": draw.HIERARCHY}, parts)


def _for_signatures(columns: draw.Columns, sensitive: dict[str, str]) -> dict[str, str]:
    """One sensitive attribute, and nothing that would show which rows are invented."""
    kept = next(iter(sensitive), None)
    for name, a in list(columns.attributes.items()):
        if a["role"] == "plain" or (a["role"] == "sensitive" and name != kept):
            del columns.attributes[name], columns.cells[name]
    return {} if kept is None else {kept: sensitive[kept]}


def run(case: Case, folder: Path, random: Random) -> Outcome:
    """Everything that has to be true of one ledger."""
    outcome, at = Outcome(), 0
    asked, ledger = write_inputs(case, folder), folder / "ledger"
    for number, size in enumerate(case.parts):
        part = Table(case.table.names, case.table.rows[at : at + size])
        at += size
        source = folder / f"increment-{number + 1}.csv"
        source.write_text(part.text(), encoding="utf-8", newline="")
        try:
            done = republish_file(str(source), asked, ledger, allow_leaks=True)
        except (InputError, InfeasibleError) as unfit:
            outcome.counts[str(unfit.args[0]).split("'")[0][:60]] += 1
            continue
        except PromiseError as broken:
            outcome.counts["withheld: " + str(broken).split("'")[1][:40]] += 1
            continue
        if done.release is not None:
            outcome.counts["releases"] += 1
            _judge_release(case, asked, ledger, done, outcome)
    if not outcome.counts["releases"]:
        outcome.status = "refused" if sum(outcome.counts.values()) else "nothing published"
        return outcome
    _judge_ledger(case, ledger, outcome)
    return outcome


def _judge_release(case, asked, ledger, done, outcome) -> None:
    path = ledger / f"{done.release:04d}" / "data.csv"
    policy = replace(Policy.of(case.policy, case.files), shuffled=True)
    released = Table.read(path.read_text(encoding="utf-8"))
    if case.policy["method"]["name"] == INVENTS:
        verdict = judge(policy, released)
    else:
        match = match_of(released, case.table)
        outcome.require(len(set(match)) == len(match), "ledger: a record is published twice", "")
        verdict = judge(policy, released, case.table, match)
        compare(outcome, "republish", done.certificate, verdict)
    outcome.require(verdict.holds, "ledger: a release breaks a promise", str(verdict))
    alone = judge(policy, released)
    outcome.require(alone.holds, "audit of a release: it fails alone", str(alone))
    outcome.audit("audit of a release", asked.with_shuffled_rows(), path, alone)
    certificate = path.with_name("certificate.json")
    outcome.verify(path, {}, {"policy": asked}, certificate=certificate)


def _judge_ledger(case, ledger, outcome) -> None:
    """The history by its own audit, and the whole table as of the last release."""
    releases, _ = shoal.verify_ledger(ledger)
    outcome.require(releases == outcome.counts["releases"], "ledger: releases differ", "")
    found = shoal.audit_ledger(ledger)
    for release in found.releases:
        outcome.require(
            release.certificate.holds, "audit of a ledger: a promise fails", str(release.number)
        )
    frame = shoal.ledger_table(ledger).with_columns(pl.all().cast(pl.String).fill_null(""))
    whole = Table(frame.columns, [list(row) for row in frame.rows()])
    policy = Policy.of(case.policy, case.files)
    # what compares with a whole table was compared with each release
    counted = [p for p in policy.promises if p["model"] in ("k-anonymity",)]
    policy = replace(policy, promises=tuple(counted), shuffled=True)
    verdict = judge(policy, whole)  # rows are people here
    outcome.require(verdict.holds, "ledger: the whole table breaks k", str(verdict))
