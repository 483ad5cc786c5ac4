"""From Python: the same ledger as from the command line, frames in, the same kind of frame out."""

import json

import polars as pl
import pytest

import shoal
from republish_cases import POLICY, policy, wearers
from shoal.policy.policy import Policy


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
def test_a_frame_goes_in_and_what_was_published_comes_out(tmp_path, kind):
    frame = wearers(30, 1)
    given = {"polars": frame, "pandas": frame.to_pandas(), "pyarrow": frame.to_arrow()}[kind]
    done = shoal.republish(given, policy(), tmp_path / "L")
    assert (done.release, done.waiting, done.repeated) == (1, 0, False)
    assert type(done.data) is type(given)
    written = pl.read_csv(tmp_path / "L" / "0001" / "data.csv", infer_schema=False)
    assert pl.DataFrame(done.data).equals(written)
    stated = (tmp_path / "L" / "0001" / "certificate.json").read_text()
    assert done.certificate == json.loads(stated)


def test_frames_and_files_give_the_same_bytes(tmp_path, shoal):
    """`shoal` here is the command; a frame is known again by the text of its cells."""
    import shoal as library

    (tmp_path / "p.json").write_text(json.dumps(POLICY))
    for seed in (1, 2):
        wearers(30, seed).write_csv(tmp_path / "i.csv")
        words = (tmp_path / "i.csv", "-p", tmp_path / "p.json", "--ledger", tmp_path / "A")
        assert shoal("republish", *words).status == 0
        library.republish(wearers(30, seed), tmp_path / "p.json", tmp_path / "B")
    for release in ("0001", "0002"):
        a, b = (tmp_path / name / release / "data.csv" for name in "AB")
        assert a.read_bytes() == b.read_bytes()


def test_the_same_frame_is_not_published_twice(tmp_path):
    for seed in (1, 2):
        shoal.republish(wearers(30, seed), policy(), tmp_path / "L")
    again = shoal.republish(wearers(30, 1).to_pandas(), policy(), tmp_path / "L")
    assert (again.repeated, again.release, again.data) == (True, 1, None)
    assert shoal.verify_ledger(tmp_path / "L")[0] == 2


@pytest.mark.parametrize("kind", [pl.Float64, pl.Decimal(10, 1)])
def test_nobody_is_published_again_because_an_id_became_a_decimal(tmp_path, kind):
    """pandas makes whole numbers beside a missing one decimals: 1 and 1.0 would be two."""
    frame = wearers(30, 1).with_columns(who=pl.int_range(30))
    assert shoal.republish(frame, policy(), tmp_path / "L").release == 1
    with pytest.raises(shoal.InputError, match="'who': names people by decimals"):
        shoal.republish(frame.cast({"who": kind}), policy(), tmp_path / "L")
    again = frame.cast({"who": pl.Decimal(10, 0), "age": pl.Float64})
    said = "people of the increment who are in earlier releases: 30"
    with pytest.raises(shoal.PromiseError, match=said):
        shoal.republish(again, policy(), tmp_path / "L")


def test_few_people_wait_and_an_empty_frame_changes_nothing(tmp_path):
    waiting = shoal.republish(wearers(3, 1), policy(), tmp_path / "L")
    assert (waiting.release, waiting.data, waiting.waiting) == (None, None, 3)
    assert waiting.reasons
    empty = shoal.republish(wearers(30, 1).clear(), policy(), tmp_path / "L")
    assert empty.reasons == ("the increment is empty",)
    done = shoal.republish(wearers(3, 2), policy(), tmp_path / "L")
    assert done.certificate["records"]["out"] == 6


def test_what_leaks_is_withheld_unless_leaks_are_allowed(tmp_path):
    ledger, asked = tmp_path / "L", policy("static-2")
    shoal.republish(wearers(40, 1), asked, ledger)
    with pytest.raises(shoal.PromiseError, match="withheld") as withheld:
        shoal.republish(wearers(40, 2), asked, ledger)
    assert any("specificity" in finding for finding in withheld.value.findings)
    assert "crp" in str(withheld.value)
    done = shoal.republish(wearers(40, 2), asked, ledger, allow_leaks=True).certificate
    found = shoal.audit_ledger(ledger)
    reported = [finding.report() for finding in found.releases[1].findings]
    assert done["history"] == {"holds": False, "allowed": True, "findings": reported}
    assert (done["covers"], done["records"]["out"]) == ("table", 80)
    assert not found.holds
    assert found.releases[1].violations


@pytest.mark.parametrize(
    "frame", [[1, 2], wearers(30, 1).drop("age"), wearers(30, 1).rename({"age": "years"})]
)
def test_what_is_no_increment_is_refused_and_begins_nothing(tmp_path, frame):
    with pytest.raises(shoal.InputError):
        shoal.republish(frame, policy(), tmp_path / "L")
    assert not list(tmp_path.glob("L*/0*"))


def test_the_table_and_the_chain_can_be_asked_for(tmp_path):
    for seed in (1, 2):
        shoal.republish(wearers(20, seed), policy(), tmp_path / "L")
    assert shoal.verify_ledger(tmp_path / "L")[0] == 2
    assert shoal.ledger_table(tmp_path / "L").height == 40
    assert shoal.ledger_table(tmp_path / "L", release=1).height == 20
    data = tmp_path / "L" / "0001" / "data.csv"
    data.write_bytes(data.read_bytes()[:-1])
    for ask in (shoal.verify_ledger, shoal.ledger_table):
        with pytest.raises(shoal.LedgerError, match=r"0001: data\.csv"):
            ask(tmp_path / "L")


@pytest.mark.long
def test_what_if_runs_every_method_before_it_times_one(tmp_path, monkeypatch):
    """Else the seconds of the first would be those of compiling."""
    ran: list[tuple[str, int]] = []

    class Counted:
        def __init__(self, method):
            self._method = method

        def __getattr__(self, name):
            return getattr(self._method, name)

        def publish(self, increment, *more):
            ran.append((self._method.name, increment.records))
            return self._method.publish(increment, *more)

    build = Policy.build_method
    monkeypatch.setattr(Policy, "build_method", lambda self, verb: Counted(build(self, verb)))
    shoal.what_if(wearers(300, 1), policy(), tmp_path / "L")
    warm = [name for name, records in ran if records != 300]
    names = ["crp", "k-pprp", "static-1", "static-2", "sticky"]
    assert [name for name, records in ran if records == 300] == names
    assert ran.index(("crp", 300)) == len(warm), "all are warm before the first is timed"
    assert sorted(warm) == [name for name in names for _ in range(2)]
    assert not (tmp_path / "L").exists()
