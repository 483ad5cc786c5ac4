"""Real owners who take turns: the groups of one owner, whatever is killed or mutated, and a
transcript that says no more than the table.
"""

import numpy as np
import polars as pl
import pytest

from naive_party_mondrian import rows_by_turns
from party_processes import bank_fusion, bank_world
from recorded_fusion import in_memory, record
from services.test_hostile_messages import refused_mutations
from services.test_transcript import check_every_message_counts
from shoal.fusion.containment import check_transcript
from shoal.policy.agreement import Agreement
from shoal.samples import bank

METHOD = {"name": "party-mondrian", "hulls": True}


@pytest.fixture(scope="module")
def fused(forked_parties, tmp_path_factory):
    """Two owners without a helper, one of them with a column that is published as it is."""

    def change(content):
        content["parties"].pop(1)
        content["parties"][1]["attributes"]["district"] = {"role": "plain"}
        promises = [
            {"model": "k-anonymity", "k": 5},
            {"model": "l-diversity", "attribute": "loan", "l": 2},
            {"model": "l-diversity", "attribute": "district", "l": 2},
        ]
        content |= {"promises": promises, "method": METHOD}

    folder = tmp_path_factory.mktemp("fused")
    path, certificate = bank_fusion(folder, 120, change)
    return folder, Agreement.load(path), certificate


def test_two_owners_need_no_helper_and_end_with_the_groups_of_one(fused):
    folder, agreement, certificate = fused
    published = pl.read_csv(folder / "out.csv", infer_schema=False)
    parts = bank.generate_parts(120, 4)
    joined = parts["bank"].join(parts["office"], on="customer").cast(pl.String)
    shown = joined.select("district", "loan")
    districts, loans = (np.unique(column, return_inverse=True)[1] for column in shown)
    asked = {"labels": 2, "hulls": True, "others": [(districts, 2)]}
    rows = rows_by_turns(agreement, joined, shown, loans, **asked)
    assert sorted(published.select(*agreement.quasi, *shown.columns).rows()) == sorted(rows)
    assert [promise["holds"] for promise in certificate["promises"]] == [True] * 3
    assert certificate["fusion"]["colluding_parties"] is None
    assert "shares" not in certificate["fusion"]["bytes"]


def test_no_message_says_more_than_the_published_table(fused):
    found = check_transcript(fused[0] / "said")
    assert found.wrong == []
    assert found.facts > 0
    assert {"batch", "hulls", "sensitive"} <= set(found.messages)


def test_the_check_finds_messages_that_say_more_than_a_coarser_table(said):
    for name in ("bank", "office"):
        path = said / f"{name}.rows.csv"
        table = pl.read_csv(path, infer_schema=False)
        table.with_columns(pl.lit("[0, 200]").alias("salary")).write_csv(path)
    assert any("'salary' more than is published" in w for w in check_transcript(said).wrong)


def test_whichever_message_is_missing_or_there_twice_it_is_found(said):
    check_every_message_counts(said)


def test_killed_all_along_its_journal_a_party_goes_on_to_the_same_table(tmp_path):
    world = bank_world(tmp_path, n=40)
    world.content |= {"promises": [{"model": "k-anonymity", "k": 4}], "method": METHOD}
    assert world.die_again_and_again("bank", 10) > 2
    assert len({world.release(name) for name in world.names}) == 1


def test_more_values_than_there_are_end_the_run_for_all(tmp_path):
    world = bank_world(tmp_path, n=40)
    diverse = {"model": "l-diversity", "attribute": "loan", "l": 3}
    world.content |= {"promises": [{"model": "k-anonymity", "k": 4}, diverse], "method": METHOD}
    assert set(world.run().values()) == {3}
    assert "'loan' has fewer than 3 different values" in world.message("office")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return record(tmp_path_factory.mktemp("recorded"), method=METHOD)


def test_every_mutation_is_refused_in_one_line_or_changes_nothing(recorded, monkeypatch):
    in_memory(monkeypatch)
    refused_mutations(recorded, 40)
