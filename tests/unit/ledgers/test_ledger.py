"""The chain of releases: whatever is damaged, missing, added or out of order is found and named."""

import builtins
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest

from republish_cases import POLICY, append, grown, policy, wearers
from shoal.attacks.run.attack import audit_ledger
from shoal.auditor.ledger.release_view import verify_ledger
from shoal.connectors.files import write_text
from shoal.connectors.ledger import Ledger, layout, verify
from shoal.errors import InputError, LedgerError, PromiseError
from shoal.ledgers.republish import republish, republish_file
from shoal.policy.policy import Policy


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """Three releases, and people who wait."""
    path = grown(tmp_path_factory.mktemp("ledger") / "wearers")
    append(path, wearers(2, 9))
    return path


@pytest.fixture
def ledger(original, tmp_path) -> Path:
    """A copy to damage."""
    shutil.copytree(original, tmp_path / "L")
    shutil.copytree(original.with_name("wearers.private"), tmp_path / "L.private")
    return tmp_path / "L"


def is_said(words: str, ledger: Path) -> bool:
    return any(words in finding for finding in Ledger.at(ledger).verify())


def assert_refused(ledger: Path, said: str, asked: Policy | None = None) -> None:
    """Nobody new is taken in, for what is said."""
    with pytest.raises(LedgerError, match=said):
        append(ledger, wearers(30, 40), asked)


def files_of(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "lock")


def test_every_changed_byte_of_every_file_is_found(ledger):
    for folder in (ledger, ledger.with_name("L.private")):
        for path in files_of(folder):
            content = path.read_bytes()
            flipped = [
                content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
                for at in places(content)
            ]
            for damaged in (content + b"\n", *flipped):
                path.write_bytes(damaged)
                assert not_verified(ledger), path
            path.write_bytes(content)
    assert Ledger.at(ledger).verify() == []


def places(content: bytes) -> set[int]:
    """Where a byte is changed: at both ends and in the middle."""
    return {0, len(content) // 2, len(content) - 1} if content else set()


def not_verified(ledger: Path) -> bool:
    try:
        verify_ledger(ledger)
    except (LedgerError, InputError):
        return True
    return False


@pytest.mark.parametrize("release", ["0001", "0002", "0003"])
def test_a_missing_release_is_named(ledger, release):
    shutil.rmtree(ledger / release)
    assert f"release {release}: is missing" in Ledger.at(ledger).verify()[0]


def test_a_missing_last_release_is_found_by_a_later_append(ledger):
    shutil.rmtree(ledger / "0003")
    assert_refused(ledger, r"0003: is missing.* To withdraw a release, take back")
    assert Ledger.at(ledger).releases() == [1, 2]


def test_a_last_release_that_is_taken_away_with_its_mark_is_found(tmp_path):
    """Its increment is noted, and its private step stays for when it is restored."""
    ledger = grown(tmp_path / "L", releases=2)
    (ledger / "0002").rename(tmp_path / "away")
    (tmp_path / "L.private" / "000002" / "published").unlink()
    assert Ledger.at(ledger).verify() == ["release 0002: is missing"]
    assert_refused(ledger, "0002: is missing")
    (tmp_path / "away").rename(ledger / "0002")
    assert append(ledger, wearers(30, 3)).release == 3


def test_a_last_mark_that_is_missing_is_reported_and_no_damage(ledger, shoal):
    """An append that was killed leaves the same behind."""
    assert "mark" not in shoal("ledger", "verify", ledger).err
    (ledger.with_name("L.private") / "000004" / "published").unlink()
    stated = shoal("ledger", "verify", ledger, status=0)
    assert "private step 000004: its mark 'published' is missing" in stated.err
    append(ledger, wearers(30, 4))
    assert "mark" not in shoal("ledger", "verify", ledger).err


@pytest.mark.parametrize("part", ["L", "L.private"])
def test_a_folder_named_by_a_huge_number_is_reported_in_a_line(tmp_path, part):
    """And not looked for release by release."""
    ledger = grown(tmp_path / "L", releases=1)
    (tmp_path / part / "999999999999").mkdir()
    found = Ledger.at(ledger).verify()
    assert len(found) <= 3
    assert found[0] in (
        "releases 0002 to 999999999998: are missing",
        "private steps 000002 to 999999999998: are missing",
    )
    with pytest.raises(LedgerError):
        append(ledger, wearers(30, 4))


def test_reordered_releases_are_named(ledger):
    (ledger / "0001").rename(ledger / "x")
    (ledger / "0002").rename(ledger / "0001")
    (ledger / "x").rename(ledger / "0002")
    assert is_said("release 0001: is out of order", ledger)
    assert is_said("release 0002: is out of order", ledger)


@pytest.mark.parametrize("name", ["00002", "extra.txt", "0009", "notes/0001", ".a.part"])
def test_whatever_is_added_beside_the_releases_is_named(ledger, name):
    for folder, whole in ((ledger, "ledger"), (ledger.with_name("L.private"), "private part")):
        place, added = folder / name, folder / Path(name).parts[0]
        place.parent.mkdir(exist_ok=True)
        place.mkdir() if name == "00002" else place.write_text("x")
        assert Ledger.at(ledger).verify() == [f"{added.name}: is not part of the {whole}"]
        shutil.rmtree(added) if added.is_dir() else added.unlink()


@pytest.mark.parametrize("method", ["crp", "k-pprp"])
@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: flip(path, 0), lambda path: path.write_bytes(b"")]
)
def test_nobody_is_published_again_under_another_key(tmp_path, method, damage):
    """With another key, known people could not be told from new ones."""
    ledger, asked = grown(tmp_path / "L", releases=1, asked=policy(method)), policy(method)
    key = tmp_path / "L.private" / "key"
    damage(key)
    left = key.read_bytes() if key.exists() else None
    with pytest.raises(LedgerError, match="private key: is missing or was changed"):
        append(ledger, pl.concat([wearers(10, 1), wearers(20, 2)]), asked)
    assert Ledger.at(ledger).releases() == [1]
    assert (key.read_bytes() if key.exists() else None) == left
    assert Ledger.at(ledger).verify() == ["private key: is missing or was changed"]


NAMELESS = policy(roles={"who": "drop"})


def test_a_ledger_of_people_without_names_needs_no_key(tmp_path):
    ledger = grown(tmp_path / "L", releases=2, asked=NAMELESS)
    assert Ledger.at(ledger).verify() == []


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("input", 5),
        ("input", None),
        ("more", 1),
        ("records", "a"),
        ("records", True),
        ("number", 1),
        ("files", []),
    ],
)
def test_a_step_that_can_not_be_understood_is_damaged(ledger, key, value):
    step = max(ledger.with_name("L.private").glob("0*")) / "state.json"
    content = json.loads(step.read_text()) | {key: value}
    step.write_text(json.dumps({k: v for k, v in content.items() if v is not None}))
    assert is_said(f"private step {step.parent.name}: is missing or damaged", ledger)
    assert_refused(ledger, "is missing or damaged")


@pytest.mark.parametrize(
    "change", ["{}", "[]", '{"ledger": 3, "output": 5}', '{"ledger": {"files": []}}']
)
def test_a_certificate_that_can_not_be_understood_is_damaged(ledger, change):
    for release in ("0001", "0003"):
        (ledger / release / "certificate.json").write_text(change)
        assert is_said(release, ledger)
        assert_refused(ledger, "damaged")


def test_a_release_that_was_changed_is_not_said_to_be_there_already(ledger):
    """Nor signed: whoever ran the same command again signed what somebody had written there."""
    assert append(ledger, wearers(30, 1)).repeated
    certificate = ledger / "0001" / "certificate.json"
    certificate.write_text(certificate.read_text().replace('"cells"', '"company"'))
    with pytest.raises(LedgerError, match="0002: does not follow release 0001 as it is"):
        append(ledger, wearers(30, 1))


STRANGE = {
    **{f"method {value!r}": {"method": value} for value in ("x", 5, [], None)},
    "no parameters": {"method": {"name": "m-invariance", "parameters": "x"}},
    **{
        f"m {type(m).__name__}": {"method": {"name": "it", "parameters": {"m": m}}}
        for m in ("x", -1, 1.5, True)
    },
    "people": {"ledger": {"returning_people": "x"}},
    "covers": {"covers": ["table"]},
    "panel": {"panel": 5},
}


@pytest.mark.parametrize("stated", STRANGE.values(), ids=STRANGE)
def test_a_last_certificate_of_a_stranger_is_judged_before_it_is_used(ledger, shoal, stated):
    """Nothing holds its hash where there is no private part: whatever was in it raised."""
    state(ledger, stated)
    assert "0003: its certificate is missing or damaged" in shoal("audit", "--ledger", ledger).err


def test_signatures_of_more_values_than_any_number_of_rows_are_judged(ledger, shoal):
    stated = {"method": {"name": "it", "parameters": {"m": 2**62}}}
    state(ledger, stated | {"covers": "table", "guards": "signatures"})
    assert "frequencies: 30 people" in shoal("audit", "--ledger", ledger, status=1).err


def state(ledger: Path, stated: dict[str, Any]) -> None:
    """What the last certificate says, in a copy for readers."""
    shutil.rmtree(ledger.with_name("L.private"))
    path = ledger / "0003" / "certificate.json"
    content = json.loads(path.read_text())
    within = {"ledger": content["ledger"] | stated.get("ledger", {})}
    path.write_text(json.dumps(content | stated | within))


@pytest.mark.parametrize("name", ["ledger.json", "policy.json"])
def test_nothing_is_appended_under_changed_terms(ledger, name):
    text = (ledger / name).read_text()
    for changed in (
        "[]",
        text.replace('"k": 4', '"k": 2') + " ",
        '{"files": {"": "", "\\u0000": 1}}',
    ):
        (ledger / name).write_text(changed)
        assert_refused(ledger, "damaged", asked=policy(k=2))
        assert Ledger.at(ledger).releases() == [1, 2, 3]
        assert Ledger.at(ledger).verify()


def test_terms_that_were_changed_with_their_hashes_do_not_begin_the_chain(ledger):
    """Weakened, and ledger.json made to fit: the first release holds the hash of what it was."""
    text = (ledger / "policy.json").read_text().replace('"k": 4', '"k": 2')
    (ledger / "policy.json").write_text(text)
    genesis = json.loads((ledger / "ledger.json").read_text())
    genesis["files"]["policy.json"] = hashlib.sha256(text.encode()).hexdigest()
    (ledger / "ledger.json").write_text(json.dumps(genesis, indent=1) + "\n")
    assert_refused(ledger, r"0001: does not follow ledger\.json", asked=policy(k=2))


def test_an_added_release_or_file_is_named(ledger):
    shutil.copytree(ledger / "0003", ledger / "0004")
    assert is_said("release 0004", ledger)
    shutil.rmtree(ledger / "0004")
    (ledger / "0002" / "more.csv").write_text("a\n1\n")
    assert Ledger.at(ledger).verify() == ["release 0002: more.csv is not part of it"]


@pytest.mark.parametrize("step", ["000001", "000003"])
def test_a_file_that_is_added_to_a_step_is_named_and_not_read(tmp_path, step):
    """People of a `pending.parquet` that somebody had put there were published."""
    ledger = grown(tmp_path / "L")
    wearers(9, 7).cast(pl.String).write_parquet(tmp_path / "L.private" / step / "pending.parquet")
    said = f"private step {step}: pending.parquet is not part of it"
    assert Ledger.at(ledger).verify() == [said]
    if step == "000003":
        with pytest.raises(LedgerError, match=said):
            append(ledger, wearers(30, 4))


def test_a_file_that_is_added_to_the_hierarchies_is_named(tmp_path):
    (tmp_path / "sex.csv").write_text("f,*\nm,*\n")
    attributes = POLICY["attributes"] | {"sex": {"role": "quasi", "hierarchy": "sex.csv"}}
    asked = Policy.from_dict(POLICY | {"attributes": attributes}, tmp_path).with_method("crp", {})
    ledger = grown(tmp_path / "L", 1, asked=asked)
    assert Ledger.at(ledger).verify() == []
    (ledger / "hierarchies" / "more.csv").write_text("")
    assert Ledger.at(ledger).verify() == ["hierarchies/more.csv: is not part of the ledger"]


def test_a_release_that_was_replaced_with_its_certificate_is_found(ledger, tmp_path):
    """A whole other release, consistent in itself, does not follow the one before."""
    other = grown(tmp_path / "other", releases=2, asked=policy(k=5))
    shutil.rmtree(ledger / "0002")
    shutil.copytree(other / "0002", ledger / "0002")
    assert is_said("0002: does not follow release 0001", ledger)
    assert is_said("0003: does not follow release 0002", ledger)


def test_the_published_part_alone_can_be_verified(ledger):
    shutil.rmtree(ledger.with_name("L.private"))
    assert verify_ledger(ledger)[0] == 3


@pytest.mark.parametrize(("method", "release"), [("crp", "0002"), ("k-pprp", "0001")])
def test_nothing_is_appended_where_what_a_method_looks_at_is_damaged(tmp_path, method, release):
    """The end of the ledger; of a method that looks at all releases, any."""
    asked = policy(method)
    ledger = grown(tmp_path / "L", releases=2, asked=asked)
    data = ledger / release / "data.csv"
    data.write_bytes(data.read_bytes()[:-1])
    assert_refused(ledger, rf"{release}: data\.csv", asked=asked)


def test_nothing_is_appended_without_the_private_part(ledger):
    shutil.rmtree(ledger.with_name("L.private"))
    assert_refused(ledger, r"its private part '.*L\.private' is missing")
    assert not ledger.with_name("L.private").exists()  # a copy can be moved to where it was


def test_a_folder_with_other_things_is_no_ledger(tmp_path):
    (tmp_path / "L").mkdir()
    (tmp_path / "L" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other things"):
        append(tmp_path / "L", wearers(30, 1))
    assert [p.name for p in (tmp_path / "L").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["a.sqlite?table=t", "sqlite:///a.sqlite?table=t"])
def test_a_table_in_a_database_is_no_ledger(folder, name):
    with pytest.raises(InputError, match="ledger: is a folder, not a table; name one"):
        republish(wearers(30, 1), policy(), name)
    assert not list(folder.iterdir())


def test_nothing_is_appended_to_a_private_part_that_is_damaged(ledger):
    step = max(ledger.with_name("L.private").glob("0*"))
    for path in files_of(step):
        content = path.read_bytes()
        if not content:
            continue  # the mark
        path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
        assert_refused(ledger, "damaged")
        path.write_bytes(content)
    assert append(ledger, wearers(30, 4)).release == 4


def test_whole_records_are_kept_only_while_they_wait(ledger):
    assert list(ledger.with_name("L.private").glob("*/pending.parquet"))
    append(ledger, wearers(30, 4))
    assert not list(ledger.with_name("L.private").glob("*/pending.parquet"))


def named(*names):
    return wearers(len(names), 1).with_columns(who=pl.Series(names))


OTHER_SPELLINGS = [
    ("{}", "00{}"),
    ("{}", "{}.0"),
    ("x{}", "X{}"),
    ("Ann.Lee{}@x.org", "ann.lee{}@x.org"),
    ("McAvoy{}", "mcavoy{}"),
    ("McAvoy{}", "MCAVOY{}"),
    ("ab{}", "Ab{}.00"),
    ("AB{}.0", "ab{}"),
    ("007{}.0", "7{}"),
    ("00000000000{}", "{}"),
    ("{}", "00000000000{}"),
    ("Straße{}", "STRASSE{}"),
    ("Straße{}", "STRAẞE{}"),
    ("ismail{}", "İSMAİL{}"),
]
SPELLED = [("crp", number, *one) for number in (30, 3) for one in OTHER_SPELLINGS]
SPELLED += [("sticky", number, *one) for number in (30, 3) for one in OTHER_SPELLINGS[:3]]
SPELLED += [("m-invariance", 3, *one) for one in OTHER_SPELLINGS[:3]]


@pytest.mark.parametrize(("method", "people", "spelled", "otherwise"), SPELLED)
def test_whoever_is_published_or_waits_is_found_under_any_spelling(
    tmp_path, method, people, spelled, otherwise
):
    """Thirty are published, and three wait, also through a step that leaves them as they were."""
    asked = policy(method, roles={"beat": "drop"})
    first, again = ([form.format(100 + i) for i in range(people)] for form in (spelled, otherwise))
    assert append(tmp_path / "L", named(*first), asked).waiting == (people if people < 4 else 0)
    if method == "crp":
        append(tmp_path / "L", named("x1"), asked)
    with pytest.raises(InputError, match=f"increment: {people} of its people are those of earlier"):
        append(tmp_path / "L", named(*again), asked)


def test_whoever_stands_by_one_of_two_spellings_may_be_the_other(tmp_path):
    append(tmp_path / "L", named(*(f"{a}nn{i}" for a in "aA" for i in range(15))), policy("sticky"))
    both = [f"{a}nn{i}" for a in ("A", "a") for i in range(15)]
    with pytest.raises(InputError, match="increment: 15 of its people are those of earlier"):
        append(tmp_path / "L", named(*both[:15], *(f"aNn{i}" for i in range(15))), policy("sticky"))
    append(tmp_path / "L", named(*both, *(f"aNn{i}" for i in range(15))), policy("sticky"))


@pytest.mark.parametrize("is_at_once", [False, True])
def test_whoever_was_deleted_is_found_under_any_spelling(is_at_once, tmp_path):
    """In the increments that follow, and in the one that deletes."""
    asked = policy("m-invariance", roles={"beat": "drop", "op": "operation"})
    names = [f"Pa.X{i}" for i in range(90)]
    frame = named(*names).with_columns(op=pl.lit("insert"))
    append(tmp_path / "L", frame, asked)
    gone = frame.head(4).with_columns(op=pl.lit("delete"))
    again = frame.head(4).with_columns(pl.col("who").str.to_lowercase())
    if is_at_once:
        again = pl.concat([gone, again])
    else:
        append(tmp_path / "L", gone, asked)
    with pytest.raises(InputError, match="increment: 4 of its people are those of earlier"):
        append(tmp_path / "L", again, asked)


def test_ids_that_stand_side_by_side_excuse_no_other_ids(tmp_path):
    known = [f"p{i}" for i in range(1, 17)]
    append(tmp_path / "L", named(*known), policy("sticky"))
    half = [*known[:8], *(f"P{i}" for i in range(9, 17))]
    for others in ([], ["x1", "X1"], ["P1"]):
        with pytest.raises(InputError, match="increment: 8 of its people are those of earlier"):
            append(tmp_path / "L", named(*half, *others), policy("sticky"))
    release = append(tmp_path / "L", named(*known, "P1", "P2", "P3", "P4"), policy("sticky"))
    shown = release.certificate["records"]["out"]
    assert shown + release.waiting == 20, "each has the other one at its side"


@pytest.mark.parametrize(("house", "member"), [("H{}", "{}"), ("H{}", "{}.0"), ("00h{}", "{}.0")])
def test_people_of_two_columns_are_refused_where_each_is_spelled_otherwise_in_its_own_way(
    tmp_path, house, member
):
    named = {key: {"role": "identifier"} for key in ["who", "member"]}
    content = POLICY | {"attributes": POLICY["attributes"] | named, "subject": list(named)}
    asked = Policy.from_dict(content).with_k(4)
    first, again = (
        wearers(30, 1).with_columns(
            who=pl.Series([in_house.format(100 + i // 2) for i in range(30)]),
            member=pl.Series([of_member.format(1 + i % 2) for i in range(30)]),
        )
        for in_house, of_member in (("h{}", "0{}"), (house, member))
    )
    append(tmp_path / "L", first, asked)
    with pytest.raises(InputError, match="increment: 30 of its people are those of earlier"):
        append(tmp_path / "L", again, asked)


@pytest.mark.parametrize("spelled", ["00{}", "{}.0"])
def test_a_few_people_of_a_large_increment_are_not_taken_for_others(tmp_path, spelled):
    people, form = wearers(30, 1), "9{}".format
    append(tmp_path / "L", people.with_columns(who=pl.Series([form(i) for i in range(100, 130)])))
    names = [str(i) for i in range(1000, 1300)] + [spelled.format(form(i)) for i in range(100, 103)]
    again = wearers(len(names), 2).with_columns(who=pl.Series(names))
    with pytest.raises(InputError, match="increment: 3 of its people are those of earlier"):
        append(tmp_path / "L", again)


@pytest.mark.parametrize("method", ["crp", "k-pprp"])
def test_records_at_fault_are_numbered_as_the_increment_numbers_them(tmp_path, method):
    people = wearers(30, 1)
    nobody = people.head(1).with_columns(who=pl.lit(None))
    for at in (7, 29):
        increment = pl.concat([people.head(at), nobody, people.tail(-at)])
        with pytest.raises(InputError, match=rf"1 record without a subject \(row {at + 1}\)"):
            append(tmp_path / "L", increment, policy(method))


def test_people_ever_published_are_kept_in_few_runs(tmp_path):
    ledger = grown(tmp_path / "L", releases=9, n=12)
    runs = [
        len(np.fromfile(path, "<u8"))
        for path in sorted(ledger.with_name("L.private").glob("*/run.bin"))
    ]
    assert runs == [192, 24], "nine runs of twelve people: eight merged, and the last"
    assert Ledger.at(ledger).verify() == []
    with pytest.raises(PromiseError, match="in earlier releases: 2"):
        append(ledger, pl.concat([wearers(1, 3).head(1), wearers(12, 9).tail(1), wearers(20, 30)]))


@pytest.mark.parametrize("place", ["a/b/L", "file/L", "."])
def test_a_ledger_begins_where_it_can_or_says_why_not(tmp_path, monkeypatch, place):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_text("")
    monkeypatch.chdir(tmp_path / "in")
    wearers(30, 1).write_csv(tmp_path / "i.csv")
    if place == "a/b/L":
        assert republish_file(str(tmp_path / "i.csv"), policy(), place).release == 1
        assert verify_ledger(place)[0] == 1
    else:
        with pytest.raises(InputError, match="ledger"):
            republish_file(str(tmp_path / "i.csv"), policy(), place)
        assert not list(tmp_path.rglob("*.part"))


def test_what_is_before_the_end_need_only_be_there_for_an_append(ledger):
    """Changed bytes of old releases wait for the next audit; a missing folder does not."""
    data = ledger / "0002" / "data.csv"
    content = data.read_bytes()
    data.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    assert append(ledger, wearers(30, 4)).release == 4
    assert audit_ledger(ledger).damage == ["release 0002: data.csv is missing or was changed"]
    data.write_bytes(content)
    shutil.move(ledger / "0001", ledger.parent / "away")
    assert_refused(ledger, "0001: is missing")


@pytest.mark.long
def test_the_work_of_an_append_does_not_grow_with_the_ledger(tmp_path, monkeypatch):
    """What is opened and hashed, at the 3rd and 40th release of people without names."""
    done = {}
    for seed in range(1, 41):
        opened, hashed = [], []
        with monkeypatch.context() as patched:
            patched.setattr(hashlib, "file_digest", counted(hashlib.file_digest, hashed))
            patched.setattr(builtins, "open", counted(builtins.open, opened))
            append(tmp_path / "L", wearers(20, seed), NAMELESS)
        done[seed] = len(opened), len(hashed)
    assert done[40] == done[3]


def counted(call, calls: list):
    def noted(*arguments, **options):
        calls.append(arguments)
        return call(*arguments, **options)

    return noted


@pytest.mark.long
def test_the_state_of_a_step_does_not_grow_with_the_ledger(tmp_path):
    ledger = grown(tmp_path / "L", releases=20, n=12)
    sizes = [
        len(p.read_bytes()) for p in sorted(ledger.with_name("L.private").glob("0*/state.json"))
    ]
    assert max(sizes[10:]) < min(sizes[1:10]) + 400, (
        "a hash for each list of people, of which there are few"
    )


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        lambda p: p.write_text("2\n"),
        lambda p: p.write_text("x"),
        lambda p: p.write_text("1\x0e"),
    ],
)
def test_an_increment_whose_note_is_lost_or_changed_is_not_published_twice(ledger, damage):
    """Where people have no names, only the note tells that an increment is known."""
    notes = ledger.with_name("L.private") / "inputs"
    first = next(path for path in notes.iterdir() if path.read_text() == "1\n")
    damage(first)
    found = Ledger.at(ledger).verify()
    said = "private step 000001: its increment is not noted as it was; it could be published twice"
    assert found[0] == said
    with pytest.raises(LedgerError, match="damaged"):
        append(ledger, wearers(30, 1))


@pytest.mark.parametrize("name", [b"0" * 64, b"\xff"])
def test_an_increment_whose_note_was_given_another_name_is_not_published_twice(tmp_path, name):
    """There are as many notes; without names of people, no more tells that one is known."""
    ledger = grown(tmp_path / "L", releases=3, asked=NAMELESS)
    notes = ledger.with_name("L.private") / "inputs"
    first = next(path for path in notes.iterdir() if path.read_text() == "1\n")
    os.rename(bytes(first), bytes(notes) + b"/" + name)
    with pytest.raises(LedgerError, match="000001: its increment is not noted as it was"):
        append(ledger, wearers(30, 1), NAMELESS)
    assert Ledger.at(ledger).releases() == [1, 2, 3]


@pytest.mark.parametrize("part", ["L", "L.private"])
def test_a_release_or_step_that_was_given_another_name_is_found_by_an_append(tmp_path, part):
    """As many as there were, and both ends in their places."""
    ledger = grown(tmp_path / "L", releases=4)
    folder = sorted((tmp_path / part).glob("0*"))[1]
    folder.rename(folder.with_name("9" * len(folder.name)))
    assert_refused(ledger, "is missing")


def test_nobody_is_published_again_where_a_list_of_people_was_changed(tmp_path):
    """By one bit: whoever it stood for would be taken for somebody new."""
    ledger = grown(tmp_path / "L", releases=3, n=12)
    runs = sorted(ledger.with_name("L.private").glob("*/run.bin"))
    assert [path.stat().st_size for path in runs] == [2 * 24 * 8, 2 * 12 * 8]
    before = {path: path.read_bytes() for path in files_of(tmp_path)}
    for run in runs:
        for at in places(before[run]):
            flip(run, at)
            for frame in (wearers(12, 1).reverse(), wearers(12, 4), wearers(2, 4)):
                frame.write_csv(tmp_path / "increment.csv")
                with pytest.raises(
                    LedgerError, match=rf"{run.parent.name}: run\.bin is missing or was changed"
                ):
                    republish_file(str(tmp_path / "increment.csv"), policy(), ledger)
            assert is_said("run.bin is missing or was changed", ledger)
            run.write_bytes(before[run])
    (tmp_path / "increment.csv").write_bytes(before[tmp_path / "increment.csv"])
    assert {path: path.read_bytes() for path in files_of(tmp_path)} == before
    assert append(ledger, wearers(12, 4)).release == 4


def test_a_list_of_people_changed_together_with_its_step_is_found_by_an_append(tmp_path):
    """A step that is consistent in itself: the last step remembers the hash of the list, too."""
    ledger = grown(tmp_path / "L", releases=6, n=12)
    run = ledger.with_name("L.private") / "000004" / "run.bin"
    flip(run, 0)
    state = json.loads((run.parent / "state.json").read_text())
    state["files"]["run.bin"] = layout.sha256_of(run)
    content = {key: value for key, value in state.items() if key not in ("schema", "sha256")}
    state["sha256"] = layout.sha256_of_state(content)
    (run.parent / "state.json").write_text(layout.json_text(state))
    with pytest.raises(LedgerError, match=r"run\.bin is missing or was changed"):
        append(ledger, wearers(12, 1).reverse())


SPOILT_LISTS = {
    f"{size} bytes": lambda run, size=size: run.write_bytes((run.read_bytes() + bytes(8))[:size])
    for size in (0, 8, 191, 193, 200)
} | {
    "nothing": Path.unlink,
    "a pipe": lambda run: (run.unlink(), os.mkfifo(run)),
    "a folder": lambda run: (run.unlink(), run.mkdir()),
}


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("spoil", SPOILT_LISTS.values(), ids=SPOILT_LISTS)
def test_a_list_of_people_that_is_shorter_longer_or_no_file_is_found(tmp_path, spoil, older):
    """Even of an older step, whose files are not all read; and it is not waited for."""
    ledger = grown(tmp_path / "L", releases=1, n=12)
    if older:
        append(ledger, wearers(2, 9))
    [run] = ledger.with_name("L.private").glob("*/run.bin")
    spoil(run)
    with pytest.raises(LedgerError, match=r"run\.bin is missing or was changed"):
        append(ledger, wearers(12, 4))


@pytest.mark.long
def test_every_changed_character_of_the_last_state_is_found(ledger):
    """Nothing follows it that would hold its hash."""
    path = max(ledger.with_name("L.private").glob("0*")) / "state.json"
    content = path.read_bytes()
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert Ledger.at(ledger).verify(), at
    path.write_bytes(content)


@pytest.mark.parametrize(
    "kind", ["nothing", "pipe", "folder", "link to nothing", "link to a device"]
)
def test_what_is_missing_or_no_file_is_found_and_not_waited_for(ledger, kind):
    for folder in (ledger, ledger.with_name("L.private")):
        for path in files_of(folder):
            if path.match("000004/published"):
                continue  # an append may be about to set it
            content = path.read_bytes()
            path.unlink()
            {
                "nothing": lambda place: None,
                "pipe": os.mkfifo,
                "folder": os.mkdir,
                "link to nothing": lambda place: os.symlink("nowhere", place),
                "link to a device": lambda place: os.symlink("/dev/zero", place),
            }[kind](path)
            assert not_verified(ledger), path
            path.rmdir() if kind == "folder" else path.unlink(missing_ok=True)
            path.write_bytes(content)
    assert Ledger.at(ledger).verify() == []


def test_an_older_private_part_is_found(ledger, tmp_path):
    shutil.copytree(ledger.with_name("L.private"), tmp_path / "older")
    append(ledger, wearers(30, 4))
    shutil.rmtree(ledger.with_name("L.private"))
    (tmp_path / "older").rename(ledger.with_name("L.private"))
    assert "private part: is older than the ledger" in Ledger.at(ledger).verify()[0]
    assert_refused(ledger, "private part: is older")


def test_an_older_copy_of_both_parts_is_recognized_by_a_noted_hash(ledger, tmp_path):
    older = {
        name: shutil.copytree(tmp_path / name, tmp_path / f"older {name}")
        for name in ("L", "L.private")
    }
    noted = [verify_ledger(ledger)[1]]
    append(ledger, wearers(30, 4))
    noted.append(verify_ledger(ledger, noted=noted[0])[1])
    for name, copy in older.items():
        shutil.rmtree(tmp_path / name)
        copy.rename(tmp_path / name)
    assert verify_ledger(ledger, noted=noted[0]) == (3, noted[0])
    for nonsense in ("abc", "", "g" * 64, noted[0].upper() + "0"):
        with pytest.raises(InputError, match="noted: is not the hash of a release"):
            verify_ledger(ledger, noted=nonsense)
    with pytest.raises(LedgerError, match="the noted release is not in it"):
        verify_ledger(ledger, noted=noted[1])


def test_a_link_is_another_name_of_the_same_ledger(ledger, tmp_path):
    (tmp_path / "link").symlink_to(ledger, target_is_directory=True)
    assert append(tmp_path / "link", wearers(30, 4)).release == 4
    with pytest.raises(PromiseError, match="in earlier releases: 30"):
        append(tmp_path / "link", wearers(30, 4).reverse())
    assert Ledger.at(ledger).verify() == []
    assert not (tmp_path / "link.private").exists()


def test_what_an_append_leaves_half_done_for_a_moment_is_no_damage(ledger):
    """Whoever verifies meanwhile and finds something waits for the append, and looks again."""
    [waiting] = ledger.with_name("L.private").glob("*/pending.parquet")
    with ThreadPoolExecutor(1) as pool:
        with Ledger.at(ledger).locked():
            waiting.rename(ledger.parent / "away")
            found = pool.submit(Ledger.at(ledger).verify)
            sleep(0.3)
            assert not found.done()
            (ledger.parent / "away").rename(waiting)
        assert found.result() == []


def test_a_private_part_that_others_could_read_is_closed(tmp_path):
    (tmp_path / "L.private").mkdir(mode=0o777)
    (tmp_path / "L.private").chmod(0o777)
    append(tmp_path / "L", wearers(30, 1))
    assert (tmp_path / "L.private").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("names", [["a.csv"], ["key", "inputs/1"], ["key", "lock", "notes/1"]])
def test_a_folder_with_other_things_is_no_private_part(tmp_path, names):
    """It was closed to others and taken, and whatever verified the ledger found it damaged."""
    private = tmp_path / "L.private"
    for name in names:
        (private / name).parent.mkdir(exist_ok=True, parents=True)
        (private / name).write_text("mine")
    private.chmod(0o755)
    with pytest.raises(InputError, match=r"L\.private', which holds other things; name another"):
        append(tmp_path / "L", wearers(30, 1))
    assert private.stat().st_mode & 0o777 == 0o755
    assert {path.read_text() for path in files_of(private)} == {"mine"}
    assert not (tmp_path / "L").exists()


def test_readers_without_the_private_part_are_pointed_to_a_copy(ledger, monkeypatch):
    monkeypatch.setattr(verify, "damage", Mock(side_effect=PermissionError(13, "denied")))
    with pytest.raises(InputError, match="a copy of the folder without its private part"):
        Ledger.at(ledger).verify()


def test_nothing_else_is_written_into_a_ledger(ledger, tmp_path, shoal, monkeypatch):
    """By any command: whatever it left there was damage, and kept every increment out."""
    monkeypatch.chdir(tmp_path)
    wearers(30, 4).write_csv("i.csv")
    (tmp_path / "p.json").write_text(json.dumps(POLICY))
    given, release = ("i.csv", "-p", "p.json"), ("L/0001/data.csv", "L/0001/certificate.json")
    for arguments in (
        ("republish", *given, "--ledger", "L", "--report", "L/r.html"),
        ("republish", *given, "--ledger", "M", "-o", "sqlite:///L/a.db?table=t"),
        ("audit", "--ledger", "L", "--report", "L/0001/r.html"),
        ("audit", "--ledger", "L", "-o", "L.private/found.json"),
        ("audit", release[0], "-p", "L/policy.json", "-o", "L/0001/x.json"),
        ("ledger", "export", "L", "-o", "L/t.csv"),
        ("dossier", *release, "--metadata", "datapackage"),
        ("publish", *given, "-o", "L/out.csv"),
        ("publish", *given, "-o", "L/out/"),
        ("publish", *given, "-o", "sqlite:///L.private/a.db?table=t"),
        ("publish", *given, "-o", "out.csv", "--trace", "L.private/000001/t.jsonl"),
        ("republish", *given, "--ledger", "M", "--metrics", "L/m.prom"),
        ("stream", *given, "--method", "fads", "-o", "L/s.csv"),
        ("stream", *given, "--method", "fads", "-o", "s.csv", "--checkpoint", "L.private/ck"),
        ("policy", "init", "i.csv", "-o", "L/p.yaml"),
        ("sample", "wearables", "-o", "L/w.csv"),
    ):
        assert "lies in the ledger" in shoal(*arguments, status=2).err, arguments
    assert verify_ledger(ledger)[0] == 3
    assert not (tmp_path / "M").exists()


def test_a_file_of_the_name_alone_makes_no_ledger(folder):
    Path("ledger.json").write_text('{"balance": 3}')
    write_text("out.csv", "")
    assert Path("out.csv").exists()


def test_no_ledger_begins_in_another(ledger):
    for place in (ledger / "inner", ledger / "0001" / "inner"):
        with pytest.raises(InputError, match="would lie in another ledger"):
            republish(wearers(30, 4), policy(), place)
    assert Ledger.at(ledger).verify() == []


def test_no_private_part_is_kept_in_another_ledger(tmp_path):
    """Its readers would have the key."""
    grown(tmp_path / "L.private", releases=1)
    before = {path: path.stat().st_mode for path in (tmp_path / "L.private", *files_of(tmp_path))}
    with pytest.raises(InputError, match="would lie in another ledger"):
        republish(wearers(30, 4), policy(), tmp_path / "L")
    assert {path: path.stat().st_mode for path in before} == before
    assert {*files_of(tmp_path)} < {*before}


def test_a_step_that_was_written_before_a_field_was_renamed_is_read(tmp_path):
    """As version 0.1 wrote it: `passing` for `transient_files`."""
    ledger = grown(tmp_path / "L", releases=1)
    append(ledger, wearers(2, 9))
    path = ledger.with_name("L.private") / "000002" / "state.json"
    state = json.loads(path.read_text())
    former = {
        "passing" if name == "transient_files" else name: value for name, value in state.items()
    }
    content = {name: former[name] for name in former if name not in ("schema", "sha256")}
    path.write_text(layout.json_text(former | {"sha256": layout.sha256_of_state(content)}))
    assert Ledger.at(ledger).verify() == []
    append(ledger, wearers(30, 3))
    assert Ledger.at(ledger).verify() == []
    assert not (path.parent / "pending.parquet").exists(), "the next step replaced it"


def test_an_append_whose_lock_was_removed_meanwhile_appends_nothing(ledger, monkeypatch):
    lock = ledger.with_name("L.private") / layout.LOCK
    monkeypatch.setattr(Ledger, "commit", committed_after(lock.unlink))
    before = files_of(ledger)
    with pytest.raises(InputError, match="its lock was removed"):
        append(ledger, wearers(30, 5))
    assert files_of(ledger) == before
    assert Ledger.at(ledger).verify() == []


@pytest.mark.parametrize("of", [Ledger.begin, Ledger.commit], ids=["begin", "commit"])
def test_whoever_writes_beside_a_ledger_that_begins_leaves_it_alone(tmp_path, monkeypatch, of):
    """Their sweep took its draft for one that a kill had left."""

    def meanwhile(*arguments: Any, **named: Any) -> Any:
        write_text(tmp_path / "out.csv", "")
        return of(*arguments, **named)

    monkeypatch.setattr(Ledger, of.__name__, meanwhile)
    append(tmp_path / "L", wearers(30, 1))
    assert verify_ledger(tmp_path / "L")[0] == 1
    assert not [*tmp_path.rglob("*.part")]


def test_the_step_of_another_run_is_not_taken_for_ones_own(ledger, monkeypatch):
    """Both said that they had appended release 4, and gave two hashes of it to note."""
    theirs = ledger.with_name("theirs")
    for part in ("", ".private"):
        shutil.copytree(f"{ledger}{part}", f"{theirs}{part}")
    append(theirs, wearers(30, 6))

    def they_append() -> None:
        shutil.copytree(f"{theirs}.private/000005", f"{ledger}.private/000005")
        shutil.copytree(theirs / "0004", ledger / "0004")

    monkeypatch.setattr(Ledger, "commit", committed_after(they_append))
    with pytest.raises(InputError, match="ledger"):
        append(ledger, wearers(30, 5))
    assert files_of(ledger / "0004") != []


def committed_after(happens: Callable[[], None], commit: Any = Ledger.commit) -> Any:
    """An append, before whose last moves something happens."""

    def committed(*arguments: Any, **named: Any) -> Any:
        happens()
        return commit(*arguments, **named)

    return committed


def test_an_append_removes_what_an_earlier_build_left_of_a_step(tmp_path):
    left = grown(tmp_path / "L", releases=1).with_name("L.private") / ".000002.part"
    left.mkdir()
    append(tmp_path / "L", wearers(30, 2))
    assert not left.exists()
