"""People who come again: how much of what arrives `sticky` publishes, and what it loses."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml
from measure import Asked, Figure, Result, settings

from shoal.connectors.ledger import Ledger
from shoal.data.ledger_view import CARRIED, LIVE, LOCKSTEP, TOGETHER
from shoal.data.table import texts_of
from shoal.ledgers.increment import Terms, tokens_of
from shoal.ledgers.methods.sticky import Sticky
from shoal.ledgers.returning import in_order_of_names
from shoal.ledgers.what_if import OVER_TIME, Run
from shoal.policy.policy import Policy
from shoal.samples import wearables

TITLE = "People who come again"
CLAIM = (
    "Share of arriving records that `sticky` publishes, and its loss, for invented wearers who"
    " come every month, or nearly: weight walks by a normal step of 1 kg a month, and 1 % leave a"
    " month and are replaced. No target: what is measured depends on who returns."
)
PEOPLE, MONTHS, LEAVE, K, SEED = 3000, 12, 0.01, 10, 1
ATTENDANCE = (1.0, 0.95, 0.9)
# mode, size, patience
SETTINGS = (
    (LOCKSTEP, 10, 1),
    (LOCKSTEP, 20, 2),
    (TOGETHER, 12, 0),
    (TOGETHER, 15, 0),
    (TOGETHER, 20, 0),
    (CARRIED, 15, 0),
    (CARRIED, 20, 0),
)
SIZES = (10, 15, 20)
SHOWN = (1, 6, 12)


def measure(asked: Asked) -> Result:
    people = asked.rows or PEOPLE
    measured = settings(asked, k=K, seed=SEED, months=MONTHS, rows=people)
    found = Result("returning", TITLE, CLAIM, measured | {"data": "none; the wearers are invented"})
    policies = {mode: _policy(mode) for mode in OVER_TIME}
    seconds = []
    for share in ATTENDANCE:
        asked.say(f"returning: {people} people, {MONTHS} months, attendance {share:.0%}")
        frames = list(_months(people, share, LEAVE))
        arrived = sum(frame.height for frame in frames)
        for mode, size, patience in SETTINGS:
            began = time.process_time()
            run, _ = _run(frames, policies[mode], mode, Sticky(size=size, patience=patience))
            seconds.append(time.process_time() - began)
            waits = f", patience {patience}" if mode == LOCKSTEP else ""
            told = f"records published, {share:.0%} come: {mode}, size {size}{waits}"
            found.figures.append(Figure(told, "%", (100 * run.published / arrived,)))
            who = {f"people served in month {MONTHS}": run.served}
            if mode == LOCKSTEP:
                who["all people, in groups that go on"] = float(
                    (run.state.panel.status == LIVE).mean()
                )
            for people_of, counted in who.items():
                served = told.replace("records published", people_of)
                found.figures.append(Figure(served, "%", (100 * counted,)))
    asked.say("returning: loss by month, everybody there")
    found.figures += _losses(policies[CARRIED], people)
    told = f"a rehearsal of {MONTHS} months, one setting"
    found.figures.append(Figure(told, "CPU s", tuple(seconds)))
    return found


def _losses(policy: Policy, people: int) -> Iterator[Figure]:
    """By month, of groups of several sizes, and of groups made anew each month."""
    for leave, replaced in ((0.0, True), (LEAVE, True), (LEAVE, False)):
        frames = list(_months(people, 1.0, leave, replaced))
        for size in SIZES:
            _, losses = _run(frames, policy, CARRIED, Sticky(size=size))
            for month in SHOWN:
                told = f"gcp in month {month}, groups of {size}, {leave:.0%} leave a month"
                told += "" if replaced else " and nobody follows"
                yield Figure(told, "%", (100 * losses[month - 1],))
    for month in SHOWN:
        _, losses = _run([frames[month - 1]], policy, CARRIED, Sticky(size=K))
        yield Figure(f"gcp in month {month}, groups made anew", "%", (100 * losses[0],))


def _run(
    frames: Sequence[pl.DataFrame], policy: Policy, mode: str, method: Sticky
) -> tuple[Run, list[float]]:
    """All months under one setting; and the loss of each release."""
    run, losses = Run(Terms(policy, method, Ledger(Path())), mode), []
    subject, missing_values = policy.model.subject_columns[0], policy.model.missing_values
    for frame in frames:
        named, rows = in_order_of_names(texts_of(frame), subject)
        run.step(tokens_of(named, subject, missing_values, bytes(32)), rows)
        losses.append(run.gcp or 0.0)
    return run, losses


def _policy(mode: str) -> Policy:
    """The wearers', with only what is measured here."""
    content: dict[str, Any] = yaml.safe_load(wearables.POLICY)
    attributes = {
        name: attribute
        for name, attribute in content["attributes"].items()
        if attribute["role"] in ("subject", "quasi")
    }
    attributes["activity"] = {"role": "sensitive", "over_time": OVER_TIME[mode]}
    return Policy.from_dict(content | {"attributes": attributes, "other": "drop"})


def _months(
    people: int, attendance: float, leave: float, replaced: bool = True
) -> Iterator[pl.DataFrame]:
    """Who comes in each month, as they are then. replaced: whether others follow who leave."""
    rng = np.random.default_rng(SEED)
    everybody = wearables.generate(2 * people, SEED)
    weight = everybody["weight"].to_numpy().astype(float)
    members = np.arange(people)
    for month in range(MONTHS):
        if month:
            weight = np.clip(weight + rng.normal(0, 1, len(weight)), 30, 220)
            left = np.flatnonzero(rng.random(len(members)) < leave)
            if replaced:
                members[left] = int(members.max()) + 1 + np.arange(len(left))
            else:
                members = np.delete(members, left)
        here = members[rng.random(len(members)) < attendance]
        weighed = pl.Series("weight", np.rint(weight[here]).astype(np.int64))
        yield everybody[here].with_columns(weighed)
