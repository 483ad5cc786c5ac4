"""What every verb of the command line writes and says is what was recorded: moving code must change
nothing.
"""

import json

import pytest

from golden import verbs
from thorough import long_where

RECORDED = json.loads(verbs.RECORDED.read_text())


@pytest.mark.parametrize("scene", long_where(verbs.SLOW.__contains__, sorted(verbs.SCENES)))
def test_every_output_of_a_scene_is_the_recorded_one(scene):
    differing = verbs.differences(RECORDED[scene], verbs.recorded(scene))
    assert not differing, "not as recorded:\n" + "\n".join(differing)


def test_every_scene_is_recorded():
    assert RECORDED.keys() == verbs.SCENES.keys()


def test_a_difference_names_its_command_and_its_output():
    found = verbs.differences(
        {"publish": {"status": 0, "out.csv": "1"}, "audit": {"status": 0}},
        {"publish": {"status": 0, "out.csv": "2"}, "verify": {"status": 1}},
    )
    assert found == ["audit: status", "publish: out.csv", "verify: status"]
