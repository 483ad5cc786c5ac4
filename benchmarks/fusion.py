"""Fusion: what a step costs per record that it touches, what is said, and how long real parties
take.

python fusion.py steps ROWS REPEATS          measures the steps in its own process; prints JSON
python fusion.py rounds FOLDER NAME COUNT    takes part in secure rounds and prints what each took
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

TITLE = "Fusion of several owners' tables"
CLAIM = (
    "Top-down specialization on Adult's complete training records, resampled to 10 million for the"
    " steps (QID7, k = 1,000): CPU nanoseconds for each record that a step touches, once per QID,"
    " against one NumPy count of (group, child) per record. Then three real parties on Adult"
    " itself: mutual TLS on loopback, MPyC."
)
ROWS, K = 10_000_000, 1000


def measure(asked: Any) -> Any:
    import processes
    from measure import ONE_THREAD, Figure, Result, ratios, settings

    rows = asked.rows or ROWS
    asked.say(f"fusion: steps on {rows:,} records")
    run = processes.script("fusion.py", "steps", rows, asked.repeats, env=ONE_THREAD)
    steps = run.said
    figures = [
        Figure("one count of (group, child), NumPy", "ns a record", tuple(steps["floor"])),
        Figure("tds", "ns a touched record", tuple(steps["tds"]), 60),
        Figure("tds over the bare count", "times", ratios(steps["tds"], steps["floor"])),
        Figure(
            "party that plans and says a batch", "ns a touched record", tuple(steps["winner"]), 60
        ),
        Figure("party that applies a batch", "ns a touched record", tuple(steps["follower"]), 60),
        Figure("peak memory of a process with all of this", "GB", (run.peak / 1e9,), 2),
        Figure("id join, first masking", "CPU us an id", tuple(steps["mask"])),
        Figure("id join, masking again", "CPU us an id", tuple(steps["again"])),
    ]
    asked.say("fusion: bytes and rounds on Adult")
    said = _said()
    for name in ("QID5", "six pairs"):
        figures.append(
            Figure(
                f"record ids over packed codes, {name}",
                "times",
                (said[name]["ids_over_codes"],),
                25,
                "at least",
            )
        )
    figures.append(
        Figure(
            "rounds step by step over rounds in batches, six pairs",
            "times",
            (said["six pairs"]["rounds"],),
            3,
            "at least",
        )
    )
    asked.say("fusion: random settings")
    random = _random_settings()
    figures += [
        Figure(
            "rounds step by step over rounds in batches, 56 settings",
            "times",
            (random[0] / random[2],),
            3,
            "at least",
        ),
        Figure(
            "rounds of the literal rule over rounds in batches, 56 settings",
            "times",
            (random[1] / random[2],),
        ),
        Figure(
            "settings of 56 where batches take more rounds than the literal rule",
            "",
            (random[3],),
            0,
        ),
    ]
    asked.say("fusion: real parties")
    figures += _real(asked.repeats, statistics.median(steps["winner"]), Figure)
    return Result(
        "fusion",
        TITLE,
        CLAIM,
        settings(asked, rows=rows, k=K, seed=1),
        figures,
        notes=[
            (
                "Touched counts the records under every node that was tried, chosen or not, once"
                " for each QID with its attribute."
            ),
            (
                "The id join is linear: three owners of 10 million people each spend about 10^7 x"
                " (first + 2 x again) of CPU time, on all cores in parallel, in chunks that a"
                " killed party does not repeat."
            ),
            (
                "56 settings on Adult: 1 to 3 QIDs of 2 to 5 attributes, k from 5 to 100,"
                " attributes spread over 2 or 3 parties at random; 64 steps planned ahead."
            ),
            (
                "Sum of parts: (rounds + 1, for the end) x the median secure round, measured alone"
                " among three processes, and touched records x what a planning party takes for"
                " each, above."
            ),
            (
                "Real parties: wall clock on two cores shared with other work, from agreed ids to"
                " the table; bytes are those of all batches of a run against 4 bytes for every"
                " record under every specialized node."
            ),
        ],
    )


def _said() -> dict[str, dict[str, float]]:
    """Bytes and rounds of three parties in one process."""
    from shoal.fusion.methods.party_tds import PartyTds, batch_roots, decode_steps
    from shoal_papers.baselines.party_tds_variants import PartyTdsStepwise

    found = {}
    for name, k in (("QID5", 100), ("six pairs", 20)):
        case = _Case(name, k)
        batches = case.together(PartyTds())[1]
        codes = sum(len(batch) for batch in batches)
        ids, state = 0, case.state()
        for batch in batches:
            for step in decode_steps(batch)[0]:
                ids += 4 * len(state.rows[step.attribute][step.lo, step.hi])
                state.step(step)
        assert all(batch_roots(decode_steps(batch)[0]) for batch in batches)
        found[name] = {
            "ids_over_codes": ids / codes,
            "rounds": len(case.together(PartyTdsStepwise())[1]) / len(batches),
        }
    return found


def _random_settings() -> tuple[int, int, int, int]:
    """Rounds step by step, by the literal rule and in batches; and how often batches take more than
    that rule.
    """
    from shoal.data.schema import IndexedRequirement
    from shoal.fusion.methods.party_tds import PartyTds
    from shoal_papers.baselines.party_tds_variants import PartyTdsLiteral, PartyTdsStepwise

    rules = PartyTdsStepwise(), PartyTdsLiteral(ahead=64, runner_up="hidden"), PartyTds(ahead=64)
    case, rounds = _Case("QID7", 2), np.zeros((56, 3), dtype=int)
    for seed in range(56):
        rng = np.random.default_rng(seed)
        case.qids = [
            IndexedRequirement(
                tuple(sorted(rng.choice(7, int(rng.integers(2, 6)), replace=False).tolist())),
                int(rng.integers(5, 101)),
            )
            for _ in range(int(rng.integers(1, 4)))
        ]
        used = sorted({attribute for qid in case.qids for attribute in qid.attributes})
        whose = rng.integers(0, rng.integers(2, 4), 7)
        case.owners = [[j for j in used if whose[j] == party] for party in range(3)]
        rounds[seed] = [len(case.together(rule)[1]) for rule in rules]
    stepwise, literal, batches = rounds.sum(axis=0).tolist()
    return stepwise, literal, batches, int((rounds[:, 2] > rounds[:, 1]).sum())


def _real(repeats: int, nanoseconds: float, figure: Any) -> list[Any]:
    from shoal_papers.reproduce.fusion_bench import bench

    measured = bench(None, False)
    figures = []
    for qids, k, most in (("QID5", 100, 3.0), ("six pairs", 20, 8.0)):
        setting = {"method": "party-tds", "parties": 3, "qids": qids, "delay": 0, "k": k}
        runs, parts = [], []
        for _ in range(repeats):  # a run and its secure round share their moment
            runs.append(measured.fuse(setting)[0])
            each = _secure_round(measured, setting)
            parts.append((runs[-1]["rounds"] + 1) * each + runs[-1]["touched"] * nanoseconds / 1e9)
        seconds = tuple(run["seconds"] for run in runs)
        figures += [
            figure(f"three real parties, {qids}, k = {k}, agreed ids to table", "s", seconds, most),
            figure(f"the sum of its parts, {qids}", "s", tuple(parts)),
            figure(
                f"the run over the sum of its parts, {qids}",
                "times",
                tuple(np.divide(seconds, parts)),
                3,
            ),
        ]
    return figures


def _secure_round(measured: Any, setting: Any, count: int = 12) -> float:
    """Seconds of one secure round among three processes that do nothing else."""
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        names = [party["name"] for party in measured.prepare(Path(folder), setting)["parties"]]
        started = [
            subprocess.Popen(
                [sys.executable, __file__, "rounds", folder, name, str(count)],
                stdout=subprocess.PIPE,
            )
            for name in names
        ]
        said = [process.communicate()[0] for process in started]
    return statistics.median(json.loads(said[0]))


def _take_part_in_rounds(folder: Path, name: str, count: int) -> list[float]:
    from shoal.connectors.party.journal import Journal
    from shoal.data.progress import no_progress
    from shoal.fusion.conversation import Conversation
    from shoal.fusion.limits import terms_of
    from shoal.fusion.request import Keys
    from shoal.fusion.secure_rounds import MpycRounds
    from shoal.fusion.wire.link import PartyLink
    from shoal.policy.agreement import Agreement

    agreement = Agreement.load(folder / "parties.json")
    identity = Keys.of(name, folder).identity(name, agreement)
    others = [agreement.peer(other) for other in agreement.owners if other != name]
    journal = Journal(folder / f"{name}.rounds")
    link = PartyLink(identity, others, terms_of(agreement, name, 0), journal, patience=60)
    rounds = MpycRounds(Conversation(name, agreement, link, journal, no_progress))
    link.establish()
    rounds.open()
    seconds = []
    for number in range(count):
        begun = time.monotonic()
        rounds.maximum([1000 + number] * agreement.rule().most_ahead)
        seconds.append(time.monotonic() - begun)
    link.finish()
    rounds.close()
    return seconds[1:]  # the first one waits for MPyC to start


class _Case:
    """Adult as three parties hold it, in one process."""

    def __init__(self, qids: str, k: int, rows: int | None = None) -> None:
        from shoal.data.schema import IndexedRequirement
        from shoal.data.table import encode_text
        from shoal.policy.agreement import Agreement
        from shoal_papers.reproduce.fusion_bench import NAMES, bench

        joint = bench(None, False).joint
        asked = {name for qid in joint.qids[qids] for name in qid}
        parties = [
            {"name": name, "attributes": {a: joint.attributes[a] for a in owned if a in asked}}
            for name, owned in zip(NAMES, joint.owners[3], strict=True)
        ]
        agreement = Agreement.from_dict(
            {
                "version": 1,
                "join": "id",
                "label": {"attribute": "income", "shared": True},
                "parties": parties,
                "promises": [
                    {"model": "k-anonymity", "attributes": list(q), "k": k}
                    for q in joint.qids[qids]
                ],
            }
        )
        train = joint.train
        self.taxonomies = [domain.taxonomy for domain in agreement.domains]
        codes = [
            d.cells_of(encode_text(train[d.name].cast(pl.String)), "bench")[0]
            for d in agreement.domains
        ]
        classes = (train["income"] == ">50K").to_numpy().astype(np.int64)
        if rows is not None:
            picked = np.random.default_rng(1).integers(0, len(classes), rows)
            codes, classes = [column[picked] for column in codes], classes[picked]
        self.codes, self.classes = codes, classes
        self.qids = [IndexedRequirement(q.attributes, q.k) for q in agreement.qids()]
        place = {name: j for j, name in enumerate(agreement.quasi)}
        self.owners = [[place[a] for a in party["attributes"]] for party in parties]

    def state(self) -> Any:
        from shoal.search.specialization import Specialization

        return Specialization(self.codes, [t.cells for t in self.taxonomies], self.qids)

    def parties(self, rule: Any) -> list[Any]:
        return [_one(self, own, rule) for own in self.owners]

    def together(self, rule: Any) -> tuple[list[Any], list[bytes]]:
        from shoal.fusion.secure_maximum import plain_maximum

        parties: list[Any] = self.parties(rule)
        batches: list[bytes] = []
        while True:
            winner, steps, _ = plain_maximum([party.bid() for party in parties])
            if not steps:
                return parties, batches
            others = [party for p, party in enumerate(parties) if p != winner]
            for party in others:
                party.lose()
            batches.append(parties[winner].specialize(steps))
            for party in others:
                party.apply(batches[-1])


def main(rows: int, repeats: int) -> dict[str, list[float]]:
    from shoal.fusion.id_join import fresh_secret, masked_again, masked_ids
    from shoal.fusion.methods.party_tds import PartyTds
    from shoal.search.specialization import Candidates

    found: dict[str, list[float]] = {
        name: [] for name in ("floor", "tds", "winner", "follower", "mask", "again")
    }
    for size in (10_000, *[rows] * repeats):  # the first one compiles
        case = _Case("QID7", K, size)
        labels = np.random.default_rng(0).integers(0, 48, size).astype(np.int32)
        child = (case.codes[0] % 2).astype(np.int32)
        spent = {
            "floor": (
                _seconds(lambda labels=labels, child=child: np.bincount(labels * 2 + child)) / size
            )
        }
        state = case.state()
        candidates = Candidates(state, dict(enumerate(case.taxonomies)), case.classes)
        spent["tds"] = _seconds(lambda c=candidates: _all_steps(c)) / state.touched
        del state, candidates
        owners = case.owners
        winner, follower = (_one(case, own, PartyTds()) for own in (owners[1], owners[2]))
        batch: list[bytes] = []
        seconds = _seconds(
            lambda w=winner, b=batch: b.append(w.specialize(sum(bid > 0 for bid in w.bid())))
        )
        spent["winner"] = seconds / winner.state.touched
        spent["follower"] = (
            _seconds(lambda f=follower, b=batch: f.apply(b[0])) / follower.state.touched
        )
        ids, secret = [str(i) for i in range(2000)], fresh_secret()
        points: list[bytes] = []
        spent["mask"] = (
            _seconds(lambda i=ids, s=secret, p=points: p.append(masked_ids(i, bytes(32), s)))
            / 2000
            / 1e3
        )
        spent["again"] = _seconds(lambda p=points, s=secret: masked_again(p[0], s)) / 2000 / 1e3
        if size == rows:
            for name, value in spent.items():
                found[name].append(value * 1e9)
    return found


def _one(case: _Case, own: list[int], rule: Any) -> Any:
    from shoal.fusion.ground import Ground

    weights = [1.0] * len(case.taxonomies)
    of = {j: number for number, owned in enumerate(case.owners) for j in owned}
    whose = [of.get(j, 0) for j in range(len(weights))]  # without an owner where no QID has it
    ground = Ground(case.taxonomies, case.classes, case.qids, weights, whose)
    return rule.party(ground, {j: case.codes[j] for j in own})


def _all_steps(candidates: Any) -> None:
    while candidates.take_best() is not None:
        pass


def _seconds(work: Any) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


if __name__ == "__main__":
    if sys.argv[1] == "steps":
        print(json.dumps(main(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        print(json.dumps(_take_part_in_rounds(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))))
