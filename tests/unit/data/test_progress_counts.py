"""Progress: one argument for everybody, counts for those who take them."""

import shoal
from sample_policies import content_of
from shoal.data.progress import no_progress, tell


def test_counts_reach_only_those_who_take_them():
    plain: list[str] = []
    counted: list[tuple] = []

    def both(stage: str, done: int | None = None, total: int | None = None) -> None:
        counted.append((stage, done, total))

    for progress in (plain.append, no_progress, both):
        tell(progress, "a stage", 1, 4)
    both("another")
    assert plain == ["a stage"]
    assert counted == [("a stage", 1, 4), ("another", None, None)]


def test_a_comparison_counts_its_points():
    said = []

    def progress(stage: str, done: int | None = None, total: int | None = None) -> None:
        if total is not None:
            said.append((done, total))

    frame = shoal.sample("patients", 60, 3)
    policy = content_of(
        {"age": {"role": "quasi", "type": "number", "domain": [0, 100]}}, 3, other="drop"
    )
    shoal.compare(frame, policy, ["mondrian"], ks=[3, 5], progress=progress)
    assert said == [(0, 2), (1, 2)]
