"""Streams as the FADS paper measures them: loss and time of a method over the records in file
order.

A setting names experiment, method, parameters, k, delta, records, and how many quasi-identifiers of
which group: 1 has numbers and hierarchies, 2 numbers alone. With `l`, every cluster also needs that
many distinct values of a sensitive attribute. With `seeds`, that many are drawn, and comparisons
are counted. With `stream`, that many records are streamed, and `records` of them, the first, are
measured. Every record is its own person, as in the paper.
"""

from __future__ import annotations

import hashlib
import io
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import polars as pl
import yaml

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.labels import Tree
from shoal.data.hierarchies.table import read_hierarchy
from shoal.data.option import build
from shoal.data.schema import Attribute, Kind, Missing, Role, Schema
from shoal.data.stream import KINDS, Arrivals, Space
from shoal.policy import registry
from shoal.protocols import StreamPromises
from shoal.samples import purchases
from shoal_papers.reproduce import comparisons
from shoal_papers.reproduce.data_sets import adult, data_file
from shoal_papers.reproduce.paper import DataSet, Setting

NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
TREES = ("education", "marital-status", "occupation", "native-country")
REPEATS = 5
PIECE = 10_000
QUICK_RECORDS = 3000


class _KAlone(StreamPromises):
    """k-anonymity and nothing else."""

    needs_more_than_k = False

    def __init__(self, k: int) -> None:
        self.k = k

    def holds(self, records: Arrivals, labels: np.ndarray, count: int) -> np.ndarray:
        return np.bincount(labels[labels >= 0], minlength=count) >= self.k

    def may_join(self, records: Arrivals, clusters: np.ndarray) -> np.ndarray:
        return np.ones(len(records), dtype=bool)


class _KAndL(_KAlone):
    """k-anonymity and distinct l-diversity; sensitive: (n,) code of every record of the stream."""

    needs_more_than_k = True

    def __init__(self, k: int, l: int, sensitive: np.ndarray) -> None:
        super().__init__(k)
        self._l, self._sensitive = l, sensitive

    def holds(self, records: Arrivals, labels: np.ndarray, count: int) -> np.ndarray:
        known = labels >= 0
        many = int(self._sensitive.max()) + 1
        pairs = np.unique(labels[known] * many + self._sensitive[records.seq[known]])
        distinct = np.bincount(pairs // many, minlength=count)
        return super().holds(records, labels, count) & (distinct >= self._l)


@dataclass(frozen=True)
class StreamBench:
    """Streams the records under each setting.

    attributes: numbers first, then trees. values: (n, d) float64, as `Space` reads them.
    sensitive: (n,) codes of what `l` counts.
    """

    data: DataSet
    attributes: tuple[Attribute, ...]
    values: np.ndarray
    sensitive: np.ndarray
    repeats: int

    def measure(self, setting: Setting) -> dict[str, Any]:
        """Loss over the records, CPU seconds of the method, and how many left in each way.

        Of several seeds the mean loss and that of each, the median of seconds, and the least and
        most of what varies; all else is of the first.
        """
        records = setting["records"]
        streamed = setting.get("stream", records)
        space, values = self._part(setting["group"], setting["attributes"], streamed)
        parameters = dict(pair.split("=") for pair in setting["parameters"].split(",") if pair)
        method = registry.method(setting["method"], "stream").implementation
        built, warm = (
            build(method, setting["method"], {**parameters, "delta": delta})
            for delta in (setting["delta"], setting["k"])
        )
        promises = (
            _KAndL(setting["k"], setting["l"], self.sensitive)
            if "l" in setting
            else _KAlone(setting["k"])
        )
        self._stream(warm, space, values[: 3 * setting["k"]], promises, 1, records)  # compiles
        seeds = range(1, setting["seeds"] + 1) if "seeds" in setting else [1] * self.repeats
        runs = [self._stream(built, space, values, promises, seed, records) for seed in seeds]
        seconds = sorted(run.pop("seconds") for run in runs)
        found = runs[0] | {
            "seconds": seconds[len(seconds) // 2],
            "seconds_least": seconds[0],
            "seconds_most": seconds[-1],
        }
        if "seeds" in setting:
            for name in ("loss", "comparisons", "kept"):
                drawn = [run[name] for run in runs]
                found |= {f"{name}_least": min(drawn), f"{name}_most": max(drawn)}
            losses = [run["loss"] for run in runs]
            found["loss"] = fmean(losses)
            found |= {f"loss_{seed}": loss for seed, loss in zip(seeds, losses, strict=True)}
        if "seeds" in setting and setting["method"] in comparisons.METHODS:
            return found
        return {name: n for name, n in found.items() if not name.startswith("comparisons")}

    def _part(self, group: int, attributes: int, records: int) -> tuple[Space, np.ndarray]:
        linear = [j for j, a in enumerate(self.attributes) if a.hierarchy is None]
        rest = [j for j, a in enumerate(self.attributes) if a.hierarchy is not None]
        # of both kinds alike as there are more of them; the paper does not say which it took first
        mixed = [j for pair in zip(linear, rest, strict=False) for j in pair]
        order = linear if group == 2 else mixed + [j for j in linear + rest if j not in mixed]
        chosen = sorted(order[:attributes])
        schema = Schema(tuple(self.attributes[j] for j in chosen), Missing.REJECT)
        return Space.of(schema), np.ascontiguousarray(self.values[self._order(records)][:, chosen])

    def _order(self, records: int) -> np.ndarray:
        """The records in file order; where more are asked for, then all of them shuffled, again and
        again.
        """
        whole, rng = len(self.values), np.random.default_rng(7)
        order = np.arange(whole)
        while len(order) < records:
            order = np.concatenate([order, rng.permutation(whole)])
        return order[:records]

    @staticmethod
    def _stream(
        method: Any, space: Space, values: np.ndarray, promises: _KAlone, seed: int, measured: int
    ) -> dict[str, Any]:
        publisher = method.start(space, promises, seed)
        seq = np.arange(len(values))
        with comparisons.counting() as made:
            begun = time.process_time()
            released = [
                one
                for at in range(0, len(values), PIECE)
                for one in publisher.push(
                    Arrivals(seq[at : at + PIECE], values[at : at + PIECE], seq[at : at + PIECE])
                )
            ]
            released += publisher.flush()
            seconds = time.process_time() - begun
        loss_of = {-1: 1.0}
        losses = np.zeros(len(values))
        kinds, longest = np.zeros(len(KINDS), np.int64), 0
        for one in released:
            loss_of.update(
                zip(
                    one.made.tolist(),
                    space.published_bounds(one.lo, one.hi)[2].tolist(),
                    strict=True,
                )
            )
            losses[one.seq] = [loss_of[number] for number in one.cluster.tolist()]
            kinds += np.bincount(one.kind, minlength=len(KINDS))
            longest = max(longest, int((one.emitted - one.seq).max(initial=0)))
        shares = {name: int(n) for name, n in zip(KINDS, kinds, strict=True)}
        live = len(released[-1].live) if released else 0
        return {
            "loss": float(losses[:measured].mean()),
            "seconds": seconds,
            "comparisons": sum(made),
            "kept": live,
            "longest": longest,
            **shares,
        }


def bench(folder: Path | None, quick: bool) -> StreamBench:
    """Adult over the hierarchies of Fung, Wang and Yu, or, for a quick run, invented purchases."""
    if quick:
        return _purchases()
    frame, data = adult(folder)
    trees = {
        name: read_hierarchy(data_file(folder, f"adult/taxonomy_tds/{name}.csv"), name)
        for name in TREES
    }
    return StreamBench(data, *_encoded(frame, NUMBERS, trees), _codes(frame["workclass"]), REPEATS)


def _purchases() -> StreamBench:
    frame = purchases.generate(QUICK_RECORDS, 1)
    policy = yaml.safe_load(purchases.POLICY)["attributes"]
    trees = {
        name: Tree.from_spec(policy[name]["hierarchy"]["tree"]).make(np.array([]))
        for name in ("city", "channel")
    }
    text = io.BytesIO()
    frame.write_csv(text)
    digest = hashlib.sha256(text.getvalue()).hexdigest()
    data = DataSet("invented purchases (shoal sample purchases, seed 1)", frame.height, digest)
    encoded = _encoded(frame, ("age", "income"), trees)
    return StreamBench(data, *encoded, _codes(frame["category"]), 1)


def _codes(cells: pl.Series) -> np.ndarray:
    return cells.rank("dense").to_numpy().astype(np.int64)


def _encoded(
    frame: pl.DataFrame, numbers: tuple[str, ...], trees: dict[str, Hierarchy]
) -> tuple[tuple[Attribute, ...], np.ndarray]:
    """Numbers over the range of the data; the paper does not print its domains."""
    attributes, columns = [], []
    for name in numbers:
        column = frame[name].cast(pl.Float64).to_numpy()
        domain = (float(column.min()), float(column.max()))
        attributes.append(Attribute(name, Role.QUASI, Kind.NUMBER, domain=domain))
        columns.append(column)
    for name, tree in trees.items():
        attributes.append(Attribute(name, Role.QUASI, hierarchy=tree))
        columns.append(tree.leaf_codes(frame[name]).astype(np.float64))
    return tuple(attributes), np.column_stack(columns)
