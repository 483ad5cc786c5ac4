"""Compiled code finds a place, or gets one."""

from __future__ import annotations

from pathlib import Path

from shoal.kernels import needs_cache_place


def test_a_writable_home_or_package_is_enough(tmp_path):
    assert not needs_cache_place(tmp_path, Path("/nonexistent"))
    assert not needs_cache_place(Path("/nonexistent"), tmp_path)


def test_without_either_a_place_is_needed():
    assert needs_cache_place(Path("/nonexistent"), Path("/nonexistent/home"))
