"""Commands that are typed wrongly: what is wrong, what there is, and whose help says more."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("publish", "in.csv", "--k"), "publish"),
        (("hierarchies", "match", "in.csv", "-p"), "hierarchies match"),
        (("policy", "--help=3"), "policy"),
    ],
)
def test_an_option_without_its_value_points_to_the_help_of_its_command(arguments, command, shoal):
    result = shoal(*arguments)
    assert result.status == 2
    assert result.err.endswith(f"; see 'shoal {command} --help'\n")


def test_an_option_of_no_command_points_to_the_help_of_all(shoal):
    assert shoal("--version=3").err.endswith("; see 'shoal --help'\n")


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("--method", "; did you mean --methods"),
        ("--sett", "; did you mean --seed or --quiet"),
        ("--zzz", ""),
    ],
)
def test_options_that_are_suggested_are_in_the_help(option, meant, shoal):
    result = shoal("compare", "in.csv", option, "1")
    assert result.err == f"shoal: No such option: {option}{meant}; see 'shoal compare --help'\n"
