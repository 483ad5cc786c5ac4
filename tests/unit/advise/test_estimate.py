"""What a publish will take: the model by hand, the measured run, and what is said of both."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl
import pytest
import yaml

import linked_cases
import shoal
from shoal.advise import estimate as job
from shoal.advise.estimate import (
    BUNDLES,
    CUT,
    MeasuredRun,
    StageCost,
    cut_speed_up,
    growth,
    measured_run,
    memory_of,
    run_apart,
    stages_of,
    wall_seconds,
)
from shoal.advise.invented import FEW, LinkedShape, Shape
from shoal.data.room import size_text
from shoal.errors import InputError
from shoal.reports.advice_in_words import duration, estimate_lines

RUN = MeasuredRun(
    records=300_000,
    stages=(StageCost("reading", 0.2, 0.1), StageCost(CUT, 0.6, 0.6)),
    bytes_in=9_000_000,
    bytes_out=18_000_000,
    memory=300_000_000,
    less_records=60_000,
    less_memory=252_000_000,
)


@pytest.fixture
def ran(monkeypatch):
    """Every run that is asked for, which all use what RUN says."""
    asked = []

    def run(shape, records, less_records):
        asked.append((shape, records, less_records))
        return replace(RUN, records=records)

    monkeypatch.setattr(job, "run_apart", run)
    return asked


def test_all_stages_grow_with_the_records_and_the_cut_with_its_levels_too():
    # 80 records in classes of 10 have 3 levels, 640 have 6
    assert growth("reading", 80, 640, k=10) == 8
    assert growth(CUT, 80, 640, k=10) == 16


def test_one_class_is_still_one_level():
    assert growth(CUT, 10, 20, k=10) == 2


def test_wall_is_what_one_thread_does_alone_and_a_share_of_the_rest():
    stages = (StageCost("reading", 10.0, 2.0), StageCost(CUT, 19.0, 19.0))
    assert wall_seconds(stages, 10**6, cores=1) == 29
    assert wall_seconds(stages, 10**6, cores=2) == pytest.approx(2 + 4 + 10)
    assert wall_seconds(stages, 300_000, cores=2) == 2 + 4 + 19  # cut by one task


@pytest.mark.parametrize(("cores", "times"), [(1, 1), (3, 2.65), (8, 5.3), (16, 6.3), (64, 6.3)])
def test_cutting_gains_what_was_measured_and_no_more(cores, times):
    assert cut_speed_up(cores) == pytest.approx(times)


def test_memory_lies_on_the_line_through_both_runs():
    assert memory_of(RUN, 300_000) == 300_000_000
    assert memory_of(RUN, 1_300_000) == 500_000_000  # 200 bytes a record
    assert memory_of(replace(RUN, memory=None), 300_000) is None


def test_an_estimate_follows_from_the_run(ran):
    found = shoal.estimate(3_000_000, 8, k=10, cores=3)
    assert ran == [(Shape(8), 300_000, 60_000)]
    assert found.seconds == {s.name: s.seconds for s in stages_of(RUN, 3_000_000, 10)}
    assert found.seconds["reading"] == pytest.approx(2)
    assert sorted(found.wall) == [1, 2, 3, 4, 8, 16]
    assert found.wall[1] == pytest.approx(found.cpu_seconds)
    assert (found.bytes_in, found.bytes_out, found.temporary) == (90_000_000, *[180_000_000] * 2)
    assert found.memory == 840_000_000
    # 300 MB, 6 bytes a record, 4 bytes for each of 8 attributes of 300,000 classes
    assert found.least_memory == 300_000_000 + 18_000_000 + 9_600_000
    assert found.nameless == 25 * 9 * 3_000_000
    assert not any("refines" in stop for stop in found.stops)


def test_a_small_table_is_measured_itself_and_would_be_refined(ran):
    found = shoal.estimate(200_000, 8)
    assert ran[0][1] == 200_000
    assert any("'refine: none'" in stop for stop in found.stops)


def test_whether_the_machine_holds_it_is_said(ran, monkeypatch):
    for memory, fits, said in (
        (10**9, True, "at most about 840 MB; this machine has 1.0 GB"),
        (10**8, False, "which is too little"),
        (None, None, "at most about 840 MB"),
    ):
        monkeypatch.setattr(job, "machine_memory", lambda memory=memory: memory)
        found = shoal.estimate(3_000_000, 8)
        assert found.fits is fits
        assert any(said in line for line in estimate_lines(found))
    assert any("not measured" in line for line in estimate_lines(replace(found, memory=None)))


def test_this_machine_has_memory():
    assert job.machine_memory() > 10**7


def test_everything_that_is_no_size_is_listed():
    with pytest.raises(InputError) as refused:
        shoal.estimate(0, 0, k=1, other=-1, values=1, cores=0)
    assert len((refused.value.args[0], *refused.value.findings)) >= 6
    with pytest.raises(InputError, match="records is 2147483648"):
        shoal.estimate(2**31, 8)
    with pytest.raises(InputError, match="5 records can't hide anybody among k = 10"):
        shoal.estimate(5, 8)
    with pytest.raises(InputError, match="quasi is True"):
        shoal.estimate(50, True)


def test_the_measured_run_publishes_such_a_table_and_tells_every_stage():
    found = measured_run(Shape(2, k=5, other=1), 400, 300)
    names = [stage.name for stage in found.stages]
    assert names == [name for name in dict.fromkeys(job.STAGES.values()) if name != BUNDLES]
    assert all(stage.seconds >= 0 and stage.alone >= 0 for stage in found.stages)
    assert found.bytes_in == len("q0,q1,o0\n") + 400 * len("100,100,10000000\n")
    # Linux adds up a process's pages late, so that the most it has held may shrink by a few.
    assert found.memory is None or found.memory > 0.99 * found.less_memory > 10**6


def test_the_invented_table_has_the_shape_that_was_asked_for():
    few, many = Shape(9, other=2).table(3_000), Shape(1, values=(1_000,)).table(30_000)
    assert few.shape == (3_000, 11)
    assert [few[f"q{i}"].n_unique() for i in range(9)] == [*FEW, FEW[0]]
    assert many["q0"].n_unique() > 900


def test_the_process_of_its_own_says_what_it_measured(monkeypatch, capsys):
    monkeypatch.setattr(job, "measured_run", lambda shape, *sizes: RUN)
    job.main(json.dumps([asdict(Shape(2)), 400, 300]))
    said = capsys.readouterr().out

    def run(command, **rest):
        assert command[1:4] == ["-P", "-m", "shoal.advise.estimate"]
        return type("Done", (), {"returncode": 0, "stdout": said})

    monkeypatch.setattr(job.subprocess, "run", run)
    assert run_apart(Shape(2), 400, 300) == RUN


def test_a_run_that_fails_is_said(monkeypatch):
    done = type("Done", (), {"returncode": 4, "stderr": "trace\nOSError: no space left\n"})
    monkeypatch.setattr(job.subprocess, "run", lambda *given, **rest: done)
    with pytest.raises(InputError, match="failed: OSError: no space left"):
        run_apart(Shape(2), 400, 300)


def test_the_command_takes_its_figures_from_table_and_policy(ran, folder, shoal):
    assert shoal("sample", "patients", "-n", "300", "-o", "in.csv", "-q").status == 0
    before = sorted(folder.iterdir())
    asked = ("publish", "in.csv", "-p", "in.policy.yaml", "-o", "out.csv", "--dry-run")
    stated = shoal(*asked, "--threads", "3", status=0)
    assert "300 records, 4 quasi-identifiers, k = 10, by the rounded partition" in stated.out
    content = json.loads(shoal(*asked, "--k", "5", "--json", "-q").out)
    assert content["k"] == 5
    assert content["cpu_seconds"] == pytest.approx(sum(content["seconds"].values()))
    assert sorted(folder.iterdir()) == before
    shape = ran[0][0]
    frame = pl.read_csv("in.csv", infer_schema=False)
    names = yaml.safe_load(Path("in.policy.yaml").read_text())["attributes"]
    quasi = [name for name, one in names.items() if one["role"] == "quasi"]
    assert shape.values == tuple(frame[name].n_unique() for name in quasi)
    shown = [name for name, one in names.items() if one["role"] in ("sensitive", "plain")]
    assert (shape.quasi, shape.other) == (len(quasi), len(shown))


def test_linked_tables_are_invented_with_as_many_rows_for_each_person(ran, folder, shoal):
    world = linked_cases.world(300)
    Path("clinic").mkdir()
    for name, frame in world.items():
        frame.write_csv(f"clinic/{name}.csv")
    Path("policy.json").write_text(json.dumps(linked_cases.policy()))
    before = sorted(folder.rglob("*"))
    asked = ("publish", "clinic", "-p", "policy.json", "-o", "out", "--dry-run")
    stated = shoal(*asked, status=0)
    assert "300 people with rows in several tables, 2 quasi-identifiers, k = 3" in stated.out
    assert "--memory" not in stated.out
    assert sorted(folder.rglob("*")) == before
    shape = ran[0][0]
    shape.invent(4_000, folder)
    people, visits, drugs = (pl.read_csv(f"tables/{name}.csv") for name in shape.names)
    assert people.height == 4_000
    assert visits.height / 4_000 == pytest.approx(world["visits"].height / 300, rel=0.05)
    assert drugs.height == visits.height  # each visit has one
    assert visits["q0"].n_unique() <= world["visits"]["cost"].n_unique()
    assert shape.other == 3


def test_the_measured_run_publishes_linked_tables_and_tells_every_stage():
    shape = LinkedShape([Shape(1, 5, 1), Shape(1, 5, 0, (9,))], [0], [{"0": 0.4, "2": 0.6}])
    found = measured_run(shape, 200, 100)
    names = [stage.name for stage in found.stages]
    assert names == [name for name in dict.fromkeys(job.STAGES.values()) if name != CUT]
    assert found.bytes_out > found.bytes_in / 2 > 0
    text = json.dumps([asdict(shape), 200, 100])
    assert json.loads(text)[0]["counts"] == [{"0": 0.4, "2": 0.6}]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.26, "0.3 s"), (13.2, "13 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_durations_are_said_in_units_of_people(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("size", "said"),
    [(1, "1 byte"), (12, "12 bytes"), (1_500, "1.5 kB"), (25e9, "25 GB"), (1.2e9, "1.2 GB")],
)
def test_sizes_are_said_in_units_of_people(size, said):
    assert size_text(size) == said
