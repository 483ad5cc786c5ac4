"""The sample of wearers: real variety of bodies, other people for other seeds."""

import numpy as np
import yaml

from shoal.data.table import Table
from shoal.policy.binding.table import bound_table
from shoal.policy.policy import Policy
from shoal.samples import wearables


def test_bodies_have_the_variety_of_people_measured_in_steps():
    frame = wearables.generate(1500, 1)
    bodies = frame.select("age", "height", "weight")
    assert bodies.n_unique() > 400, "most bodies are of few people"
    assert max(bodies[name].n_unique() for name in bodies.columns) < 25, "each figure is of many"
    weight, height = frame["weight"].to_numpy(), frame["height"].to_numpy()
    assert 0.3 < np.corrcoef(weight, height)[0, 1] < 0.75


def test_other_seeds_are_other_people_and_the_same_seed_the_same():
    one, two = wearables.generate(300, 1), wearables.generate(300, 2)
    assert not set(one["wearer"]) & set(two["wearer"])
    assert one.equals(wearables.generate(300, 1))
    assert one["wearer"].n_unique() == 300


def test_the_policy_fits_a_hundred_thousand_of_them():
    policy = Policy.from_dict(yaml.safe_load(wearables.POLICY))
    bound_table(Table(wearables.generate(100_000, 5)), policy)


def test_activities_show_in_the_sensors():
    frame = wearables.generate(3000, 4)
    mean = {
        name: frame.filter(frame["activity"] == name)["effort"].mean()
        for name in wearables.ACTIVITIES
    }
    assert list(mean) == sorted(mean, key=mean.get)
