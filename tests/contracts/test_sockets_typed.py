"""Every class of the registry fits its protocol as mypy sees it, signatures included."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.connectors.feeds import TableFeed, TextFeed
from shoal.data.recoding import TwoTables
from shoal.policy import registry
from shoal.protocols import HierarchyMaker, Metric, PrivacyModel, Renderer, Sink, Source
from shoal.recoding.recode import Boxes
from shoal.streams.kafka import TopicFeed, TopicSink
from shoal.streams.kafka_group import PartitionFeed
from shoal.streams.outputs import PartsSink, StandardOutput
from shoal.streams.stream_tables import TableSink

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_mypy_finds_that_every_class_fits_its_socket(tmp_path):
    pairs = [
        (method.implementation, registry.socket_of(method.implementation, method.verb))
        for method in registry.methods().values()
    ]
    for found, socket in (
        (registry.models(), PrivacyModel),
        (registry.metrics(), Metric),
        (registry.makers(), HierarchyMaker),
    ):
        pairs += [(thing, socket) for thing in found.values()]
    pairs += [(thing, Source) for thing in (TextFeed, TableFeed, TopicFeed, PartitionFeed)]
    pairs += [(thing, Sink) for thing in (PartsSink, StandardOutput, TopicSink, TableSink)]
    pairs += [(renderer, Renderer) for renderer in (Boxes, TwoTables)]
    lines = ["import shoal.protocols"]
    for number, (thing, socket) in enumerate(pairs):
        lines.append(f"import {thing.__module__}")
        lines.append(
            f"s{number}: type[{socket.__module__}.{socket.__name__}]"
            f" = {thing.__module__}.{thing.__qualname__}"
        )
    page = tmp_path / "sockets.py"
    page.write_text("\n".join(lines) + "\n")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", page],
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout
