"""Measures one fusion: real parties as processes over mutual TLS, from agreed ids to the finished
table.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.data.table import encode_text
from shoal.errors import MissingExtraError, PartyError
from shoal.policy.agreement import Agreement
from shoal.policy.agreement_model import Domain
from shoal.samples import bank
from shoal_papers.reproduce.data_sets import adult, adult_test, data_file
from shoal_papers.reproduce.paper import DataSet, Setting

NUMBERS = {
    "age": [17, 90],
    "education-num": [1, 16],
    "capital-gain": [0, 99999],
    "hours-per-week": [1, 99],
}
TOP5 = ("age", "education-num", "marital-status", "relationship", "capital-gain")
TOP7 = (*TOP5, "sex", "hours-per-week")
PAIRS = (
    ("age", "education-num"),
    ("marital-status", "relationship"),
    ("capital-gain", "age"),
    ("education-num", "relationship"),
    ("capital-gain", "marital-status"),
    ("age", "relationship"),
)
OWNERS = {
    2: (
        ("age", "education-num", "capital-gain", "hours-per-week"),
        ("marital-status", "relationship", "sex"),
    ),
    3: (
        ("age", "capital-gain", "hours-per-week"),
        ("education-num", "marital-status"),
        ("relationship", "sex"),
    ),
}
BY_PARTY = " by party"
"""A suffix to the name of a QID: each party's own attributes of it are a QID of their own."""
LITERAL, HIDDEN = "party-tds-literal", "party-tds-literal, hidden"
OWN, STEPWISE = "party-tds", "party-tds-stepwise"
METHODS: Mapping[str, dict[str, Any]] = {
    LITERAL: {"name": LITERAL, "runner_up": "told"},
    HIDDEN: {"name": LITERAL, "runner_up": "hidden", "ahead": 8},
    OWN: {"name": OWN, "ahead": 8},
    STEPWISE: {"name": STEPWISE},
}
"""What an agreement says, by the method of a setting; steps ahead do not follow the delay here, so
that the number of rounds can be repeated.
"""
EXACT, PRINTED, COUNTED = "exact", "printed", "counted"
RIVALS = {EXACT: (OWN, STEPWISE), PRINTED: (LITERAL, STEPWISE)}
"""Methods whose times are compared, so they take turns, by the kind of a run. A run that is only
counted compares scores in the clear.
"""
REPEATS = 3
NAMES = ("bank", "office", "state")
PATIENCE = 120
SETTING = ("method", "parties", "qids", "delay", "k", "share", "run")
TIMES = ("seconds", "scoring", "secure_rounds", "instructions")
SECURE = (*TIMES, "shares_bytes")
"""What only a run with the secure maximum says."""
_CONTEXT: Any = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")


@dataclass(frozen=True)
class Joint:
    """The joint table that the parties hold parts of, and another one to test a classifier on."""

    train: pl.DataFrame
    test: pl.DataFrame
    label: str
    attributes: Mapping[str, dict[str, Any]]
    owners: Mapping[int, Sequence[Sequence[str]]]
    qids: Mapping[str, Sequence[Sequence[str]]]

    def asked(self, setting: Setting) -> list[list[str]]:
        """The attributes of each QID of a setting."""
        name = setting["qids"]
        if not name.endswith(BY_PARTY):
            return [list(qid) for qid in self.qids[name]]
        (whole,) = self.qids[name.removesuffix(BY_PARTY)]
        parts = [
            [attribute for attribute in owned if attribute in whole]
            for owned in self.owners[setting["parties"]]
        ]
        return [part for part in parts if part]


@dataclass(frozen=True)
class FusionBench:
    """Runs the parties of a setting, and reads what their table is good for."""

    joint: Joint
    data: DataSet
    repeats: int = REPEATS
    _found: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False, compare=False)

    def measure(self, setting: Setting) -> dict[str, Any]:
        """Seconds by phase (medians), rounds, steps, bytes, groups and the classifier's accuracy.

        Methods whose times are compared take turns, after a run each that is not counted.
        """
        if setting["method"] == "original":
            return {"accuracy": self._accuracy(None)}
        asked = {name: value for name, value in setting.items() if name in SETTING}
        if asked.get("run") == COUNTED:
            return {n: value for n, value in self._run(asked).items() if n not in SECURE}
        if _key(asked) not in self._found:
            rivals = RIVALS[asked.get("run", EXACT)]
            takes_turns = self.repeats > 1 and asked["method"] in rivals
            methods = rivals if takes_turns else (asked["method"],)
            settings = [asked | {"method": method} for method in methods]
            runs = [[self._run(each) for each in settings] for _ in range(self._rounds)]
            for place, each in enumerate(settings):
                self._found[_key(each)] = _medians([turn[place] for turn in runs][-self.repeats :])
        return self._found[_key(asked)]

    @property
    def _rounds(self) -> int:
        return self.repeats + (self.repeats > 1)

    def _run(self, setting: Setting) -> dict[str, Any]:
        taken, fused = self.fuse(setting)
        return taken | {"accuracy": self._accuracy(fused)}

    def fuse(self, setting: Setting) -> tuple[dict[str, Any], tuple[Agreement, pl.DataFrame]]:
        """What one fusion took and found; its agreement and its table."""
        with tempfile.TemporaryDirectory() as folder:
            content = self.prepare(Path(folder), setting)
            measured, table = _run(Path(folder), content, float(setting["delay"]))
            said = [
                json.loads(path.read_text())["messages"].get("batch", 0)
                for path in Path(folder).glob("*.statistics.json")
            ]
        agreement = Agreement.from_dict(_without_places(content))
        spent = {
            phase: measured["seconds"].get(phase, 0.0)
            for phase in ("scoring", "secure rounds", "instructions")
        }
        groups = table.select(agreement.quasi).n_unique()
        taken = {
            "seconds": round(sum(measured["seconds"].values()) - measured["seconds"]["join"], 3),
            **{phase.replace(" ", "_"): round(seconds, 3) for phase, seconds in spent.items()},
            "rounds": measured["rounds"],
            "steps": measured["steps"],
            "touched": measured["touched"],
            "groups": groups,
            "batch_bytes": measured["bytes"].get("batch", 0),
            "shares_bytes": measured["bytes"].get("shares", 0),
            "instructions_sent": sum(said),
        }
        return taken, (agreement, table)

    def prepare(self, folder: Path, setting: Setting) -> dict[str, Any]:
        """Tables, keys and the agreement; everybody's rows in the same order, as if ids were
        joined.
        """
        from shoal.fusion.fuse import free_ports
        from shoal.fusion.request import Keys

        joint = self.joint
        qids = joint.asked(setting)
        asked = {name for qid in qids for name in qid}
        parties = []
        for name, owned in zip(NAMES, joint.owners[setting["parties"]], strict=False):
            mine = [attribute for attribute in owned if attribute in asked]
            shared = joint.train.head(int(setting.get("share", 1) * joint.train.height))
            table = shared.with_row_index("id")
            table.select("id", *mine, joint.label).write_csv(folder / f"{name}.csv")
            parties.append(
                {
                    "name": name,
                    "table": str(folder / f"{name}.csv"),
                    "certificate": str(folder / f"{name}.crt"),
                    "attributes": {attribute: joint.attributes[attribute] for attribute in mine},
                }
            )
        promises = [{"model": "k-anonymity", "attributes": qid, "k": setting["k"]} for qid in qids]
        content: dict[str, Any] = {
            "version": 1,
            "join": "id",
            "label": {"attribute": joint.label, "shared": True},
            "parties": parties,
            "promises": promises,
            "method": METHODS[setting["method"]],
        }
        if setting.get("run") == COUNTED:
            content["maximum"] = {"name": "clear", "scores_may_be_seen": True}
        if len(parties) == 2:
            content["helper"] = {"name": "helper", "certificate": str(folder / "helper.crt")}
        whole_table = [*parties, *([content["helper"]] if "helper" in content else [])]
        for party, port in zip(whole_table, free_ports(len(whole_table)), strict=True):
            Keys.of(party["name"], folder).make(party["name"])
            party["address"] = f"127.0.0.1:{port}"
        (folder / "parties.json").write_text(json.dumps(content))
        return content

    def _accuracy(self, found: tuple[Agreement, pl.DataFrame] | None) -> float:
        """Percent of the test records that a decision tree, learned on the masked table, gets
        right.
        """
        try:
            from sklearn.preprocessing import OneHotEncoder
            from sklearn.tree import DecisionTreeClassifier
        except ImportError:
            raise MissingExtraError.of("the classifier needs scikit-learn", "ml") from None
        joint = self.joint
        train, test = joint.train, joint.test
        if found is not None:
            agreement, table = found
            for domain in agreement.domains:
                spans = sorted(domain.span(text) for text in table[domain.name].unique().to_list())
                train, test = (_masked(part, domain, spans) for part in (train, test))
        numbers = [name for name, dtype in train.schema.items() if dtype.is_numeric()]
        texts = [name for name in train.columns if name not in (*numbers, joint.label)]
        encoder = OneHotEncoder(handle_unknown="ignore").fit(train.select(texts).to_numpy())

        def features(part: pl.DataFrame) -> np.ndarray:
            shown = encoder.transform(part.select(texts).to_numpy()).toarray()
            return np.column_stack([shown, *(part[name].to_numpy() for name in numbers)])

        tree = DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=2, ccp_alpha=0.0005, random_state=0
        )
        tree.fit(features(train), train[joint.label].to_numpy())
        wrong = tree.predict(features(test)) != test[joint.label].to_numpy()
        return round(100 - 100 * float(wrong.mean()), 2)


def _key(setting: Setting) -> str:
    return json.dumps(dict(setting), sort_keys=True)


def _medians(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each time and the spread of the total; all else comes from the first run."""
    row = dict(runs[0])
    for name in TIMES:
        row[name] = round(statistics.median(run[name] for run in runs), 3)
    whole = [run["seconds"] for run in runs]
    return row | {"seconds_least": min(whole), "seconds_most": max(whole), "repeats": len(runs)}


def _masked(part: pl.DataFrame, domain: Domain, spans: list[tuple[int, int]]) -> pl.DataFrame:
    """The column as the cut of the fused table shows it."""
    cells, _ = domain.cells_of(encode_text(part[domain.name].cast(pl.String)), "test")
    places = np.searchsorted([lo for lo, _ in spans], cells, side="right") - 1
    return part.with_columns(
        pl.Series(domain.name, [domain.text(*span) for span in spans]).gather(places)
    )


def _without_places(content: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in content.items() if key not in ("parties", "helper")}
    bare = [
        {k: v for k, v in party.items() if k not in ("certificate", "address")}
        for party in content["parties"]
    ]
    return (
        kept | {"parties": bare} | ({"helper": {"name": "helper"}} if "helper" in content else {})
    )


def _run(
    folder: Path, content: dict[str, Any], delay: float
) -> tuple[dict[str, Any], pl.DataFrame]:
    """All parties to their end; what the first one tells, and its table."""
    names = [
        party["name"]
        for party in [*content["parties"], *([content["helper"]] if "helper" in content else [])]
    ]
    if hasattr(_CONTEXT, "set_forkserver_preload"):
        # imported once for all
        _CONTEXT.set_forkserver_preload([__name__, "shoal.fusion.protocol", "shoal.fusion.fuse"])
    running = [
        _CONTEXT.Process(target=_take_part, args=(str(folder), name, delay / 1000))
        for name in names
    ]
    for process in running:
        process.start()
    for process in running:
        process.join()
    if any(process.exitcode for process in running):
        raise PartyError("a party of the experiment ended early; run again, finished rows are kept")
    measured = json.loads((folder / f"{names[0]}.statistics.json").read_text())
    return measured, pl.read_csv(folder / f"{names[0]}.table.csv", infer_schema=False)


def _take_part(folder: str, name: str, delay: float) -> None:
    """One party in its process."""
    from shoal.connectors import files
    from shoal.fusion.columns import PartyInput
    from shoal.fusion.protocol import run_party
    from shoal.fusion.request import Keys

    place = Path(folder)
    agreement = Agreement.load(place / "parties.json")
    identity = Keys.of(name, place).identity(name, agreement)
    party_input, joined = None, None
    if name in agreement.owners:
        party_input = PartyInput.read(agreement, name, files.read(str(place / f"{name}.csv")).table)
        joined = np.arange(len(party_input.ids))
    fused = run_party(
        agreement,
        identity,
        place / f"{name}.journal",
        party_input,
        joined=joined,
        patience=PATIENCE,
        delay=delay,
    )
    if fused is not None:
        (place / f"{name}.statistics.json").write_text(json.dumps(fused.statistics))
        fused.published.write_csv(place / f"{name}.table.csv")


def _adult(folder: Path | None) -> FusionBench:
    frame, data = adult(folder)
    train, test = (_typed(part) for part in (frame, adult_test(folder)))
    attributes: dict[str, dict[str, Any]] = {}
    for name in TOP7:
        if name in NUMBERS:
            attributes[name] = {"role": "quasi", "type": "number", "domain": NUMBERS[name]}
        else:
            tree = data_file(folder, f"adult/taxonomy_tds/{name}.csv")
            attributes[name] = {"role": "quasi", "hierarchy": str(tree.resolve())}
    qids: dict[str, Sequence[Sequence[str]]] = {"QID5": [TOP5], "QID7": [TOP7], "six pairs": PAIRS}
    return FusionBench(Joint(train, test, "income", attributes, OWNERS, qids), data)


def _typed(frame: pl.DataFrame) -> pl.DataFrame:
    numbers = [*NUMBERS, "capital-loss", "fnlwgt"]
    return frame.with_columns(pl.col(name).cast(pl.Int64) for name in numbers)


def bench(folder: Path | None, quick: bool) -> FusionBench:
    """Adult, or invented customers of a bank where it must be quick."""
    if not quick:
        return _adult(folder)
    train, test = bank.generate(700, 1).drop("customer"), bank.generate(300, 2).drop("customer")
    attributes = bank.attributes()
    owners = {
        2: (("salary", "age", "education"), ("sex", "job", "district")),
        3: (("salary", "education"), ("age", "sex"), ("job", "district")),
    }
    five = ("salary", "age", "sex", "job", "education")
    qids: dict[str, Sequence[Sequence[str]]] = {
        "QID5": [five],
        "QID7": [(*five, "district")],
        "six pairs": [five[:2], five[2:4], five[3:]],
    }
    data = DataSet("invented customers (sample bank)", train.height, "made with seed 1")
    return FusionBench(Joint(train, test, "loan", attributes, owners, qids), data, repeats=1)
