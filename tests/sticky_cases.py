"""Panels of invented people who come again, and ledgers made of them, for tests."""

import json

import numpy as np

from republish_cases import POLICY
from shoal.connectors.ledger.private import PanelState
from shoal.data.ledger_view import CARRIED, LIVE, LedgerView, Panel
from shoal.data.partition import Matrix
from shoal.ledgers.methods.sticky import Sticky
from shoal.ledgers.planned_release import partition_table
from shoal.policy.policy import Policy
from shoal.testing import OnlyK

OVER_TIME = {"lockstep": "any", "together": "fresh", "carried": "steady"}


def policy(mode: str = "lockstep", k: int = 3, promises=(), **parameters) -> Policy:
    """Of the wearers of `republish_cases`; plain columns only where members never miss."""
    content = json.loads(json.dumps(POLICY))
    content["attributes"]["activity"]["over_time"] = OVER_TIME[mode]
    if mode != "lockstep":
        content["attributes"]["beat"] = {"role": "drop"}
    content["promises"] += promises
    return Policy.from_dict(content).with_k(k).with_method("sticky", parameters)


def simulated(
    method: Sticky, mode: str, k: int, attendance: np.ndarray, codes: np.ndarray
) -> list[dict[int, int]]:
    """What is published of whom, without files: person -> class, by release.

    attendance: (increments, people) bool. codes: (increments, people) the one quasi-identifier.
    """
    state, waiting, releases = PanelState(Panel(mode)), {}, []
    for here, code in zip(attendance, codes, strict=True):
        records = {**waiting, **{p: int(code[p]) for p in np.flatnonzero(here).tolist()}}
        place = state.places(np.array(list(records), dtype=np.uint64))
        records = {
            p: c
            for (p, c), at in zip(records.items(), place.tolist(), strict=True)
            if at < 0 or state.panel.status[at] == LIVE
        }
        people, values = list(records), list(records.values())
        absent = _absent(state, people) if mode == CARRIED else []
        tokens = np.array([*people, *absent], dtype=np.uint64)
        if not len(tokens):
            continue
        is_carried = np.arange(len(tokens)) >= len(people)
        person = state.places(tokens)
        for p in absent:  # as somebody of the group who is here
            group = state.panel.group[state.places(np.array([p], dtype=np.uint64))[0]]
            own = next(i for i in range(len(people)) if _group(state, person[i]) == group)
            values.append(values[own])
        matrix = Matrix.from_columns(np.array(values)[:, None], [100.0])
        view = LedgerView(
            panel=state.panel, person=person, is_carried=is_carried, partition=partition_table
        )
        placed = method.publish(matrix, view, OnlyK(matrix, k), np.random.default_rng(0))
        after = PanelState(placed.panel.after, state.tokens, state.records)
        kept = placed.labels >= 0
        waiting = {p: c for p, c, is_out in zip(people, values, kept, strict=False) if not is_out}
        if kept.any():
            people = tokens[kept], tokens[kept].astype(np.int64)
            founded = placed.panel.founded[kept]
            after = after.published(len(releases) + 1, *people, founded, None)
            shown = dict(zip(tokens[kept].tolist(), placed.labels[kept].tolist(), strict=True))
            releases.append(shown)
        state = after
    return releases


def _group(state: PanelState, place: int) -> int:
    return -1 if place < 0 else int(state.panel.group[place])


def _absent(state: PanelState, here: list[int]) -> list[int]:
    """Live people who are not here, of groups of which somebody is."""
    places = state.places(np.array(here, dtype=np.uint64))
    groups = {_group(state, place) for place in places.tolist()} - {-1}
    return [
        p
        for p, g, s in zip(
            state.tokens.tolist(), state.panel.group, state.panel.status, strict=True
        )
        if g in groups and s == LIVE and p not in here
    ]
