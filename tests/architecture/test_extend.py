"""The door for plug-in authors: its names stay, and it is quick to open."""

import ast
import subprocess
import sys
from pathlib import Path

import shoal.extend

DOOR = Path(shoal.extend.__file__)
NAMES = """
    DROP HOLD NEW REUSE SUPPRESS AnonymityRequirement Arrivals Attack AttackScene Bucketizer
    BundlePromises BundleRows Bundler Bundles Classes
    Closeness Cut Emissions Hierarchy HierarchyMaker InfeasibleError InputError LedgerView
    Matrix Metric OnlyK Partition Partitioner Piece Placement Population PrivacyModel Promise
    PromiseTerms Promises Recoder Release Renderer Republisher SensitiveColumn Sink Source Space
    State StreamMethod StreamPromises StreamPublisher Templates ValueCounts as_written check_attack
    check_hierarchy_maker check_metric check_partitioner check_promise check_recoder
    check_stream_method promises_on sensitive_column sensitive_columns sign small_classes
    small_matrices small_releases small_scenes value_counts
"""


def test_no_name_of_the_door_is_lost():
    assert sorted(shoal.extend.__all__) == sorted(NAMES.split())
    for name in shoal.extend.__all__:
        assert getattr(shoal.extend, name) is not None


def test_what_the_door_shows_is_what_it_names():
    imported = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(DOOR.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shoal")
        for alias in node.names
    }
    assert imported == set(shoal.extend.__all__)


def test_the_battery_is_listed_beside_the_rest():
    assert {"check_partitioner", "small_matrices"} <= {*dir(shoal.extend)}


def test_opening_the_door_compiles_nothing():
    script = "import sys, shoal.extend; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
