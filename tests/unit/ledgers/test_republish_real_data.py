"""Re-publication on real wearers: rows are not people."""

import pytest

from sample_policies import content_of
from shoal.connectors import files
from shoal.ledgers.republish import republish_file
from shoal.policy.policy import Policy

pytestmark = pytest.mark.long

BODIES = {
    "age": {"role": "quasi", "type": "number", "domain": [10, 100]},
    "weight": {"role": "quasi", "type": "number", "domain": [30, 200]},
}


def policy(k: int, **attributes) -> Policy:
    return Policy.from_dict(content_of(BODIES | attributes, k, other="drop"))


def test_165_thousand_rows_of_four_people_are_four_people(tmp_path, data_folder):
    """PUC-Rio: each body has tens of thousands of rows; by rows, k = 13,161 would hold."""
    source = files.read(str(data_folder / "wearables" / "puc_rio_har.csv.gz")).frame
    source.write_csv(tmp_path / "a.csv")
    people = {"user": "subject", "class": "sensitive"}
    waits = republish_file(str(tmp_path / "a.csv"), policy(5, **people), tmp_path / "five")
    assert (waits.release, waits.waiting) == (None, 165_633)
    assert "k = 5 asked, 4 subjects" in waits.reasons[0]
    done = republish_file(str(tmp_path / "a.csv"), policy(4, **people), tmp_path / "four")
    assert done.certificate["classes"]["count"] == 1, "four people make one class of four"
    assert done.certificate["promises"][0]["measured"] == 4
