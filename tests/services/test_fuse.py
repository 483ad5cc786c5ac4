"""Real parties over mutual TLS: the table of one owner, whatever is killed, and nothing for
strangers.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

import shoal
from party_processes import bank_fusion, bank_world
from real_commands import running, until
from services.test_transcript import records
from shoal.connectors.party.journal import Journal
from shoal.data.certificate import Certificate
from shoal.fusion import fuse
from shoal.fusion.containment import check_transcript
from shoal.fusion.fuse import fuse_file
from shoal.fusion.request import Keys
from shoal.fusion.wire.messages import FRAME_HEAD, MessageKind
from shoal.policy.agreement import Agreement
from shoal.samples import bank, write_sample
from thorough import long_where

pytestmark = pytest.mark.usefixtures("forked_parties")


QIDS = [
    {"model": "k-anonymity", "attributes": ["age", "sex", "job"], "k": 10},
    {"model": "k-anonymity", "attributes": ["salary", "education", "district"], "k": 20},
]
"""A promise for each group of columns that somebody could know."""


@pytest.fixture(scope="module")
def fused(forked_parties, tmp_path_factory):
    """`shoal fuse` with everything as it is by default: three owners, MPyC, a transcript."""
    folder = tmp_path_factory.mktemp("fused")
    _, certificate = bank_fusion(folder, 250, lambda content: content.update(promises=QIDS))
    return folder, certificate


def test_three_owners_end_with_the_table_of_one(fused):
    folder, certificate = fused
    joined = bank.generate(250, 4)
    alone = shoal.publish(joined, yaml.safe_load(bank.POLICY) | {"promises": QIDS})
    published = pl.read_csv(folder / "out.csv", infer_schema=False)
    expected = alone.data.cast(pl.String).select(published.columns)
    assert published.sort(published.columns).equals(expected.sort(published.columns))
    assert certificate.holds
    assert certificate["fusion"]["people"] == joined.height
    assert certificate["fusion"]["colluding_parties"] == 1


def test_the_certificate_counts_people_qid_by_qid(fused):
    folder, certificate = fused
    published = pl.read_csv(folder / "out.csv", infer_schema=False)
    for qid, promise in zip(certificate["fusion"]["qids"], certificate["promises"], strict=True):
        groups = published.group_by(qid["attributes"]).len()["len"]
        shown = {
            "count": len(groups),
            "min": groups.min(),
            "mean": groups.mean(),
            "max": groups.max(),
        }
        assert qid["groups"] == pytest.approx(shown)
        assert qid["groups"]["min"] == promise["measured"] >= qid["k"] == promise["asked"]


def test_k_over_each_qid_is_not_k_over_all(fused, tmp_path):
    """The attack: a green box over people who stand alone once all QIDs are known."""
    folder, certificate = fused
    published = pl.read_csv(folder / "out.csv", infer_schema=False)
    found = certificate["together"]
    groups = published.group_by(found["attributes"]).len()["len"]
    assert (found["min"], found["alone"]) == (1, (groups == 1).sum())
    assert certificate["people"] == "known"
    (warning,) = (one for one in certificate.warnings if one.code == "together-below-k")
    assert f"classes of 1 to {groups.max()} people, {found['alone']} of {len(published)} alone" in (
        warning.text
    )
    agreement = str(folder / "demo" / "bank.parties.yaml")
    with pytest.raises(shoal.PromiseError, match="all quasi-identifiers together"):
        fuse_file(agreement, str(tmp_path / "out.csv"), require_together=True)
    assert list(tmp_path.iterdir()) == []


def test_frames_are_fused_to_the_table_of_the_files(fused, tmp_path):
    folder, _ = fused
    # numbers as numbers
    frames = {
        owner: pl.read_csv(folder / "demo" / f"bank.{owner}.csv").to_pandas()
        for owner in bank.OWNERS
    }
    release = shoal.fuse(folder / "demo" / "bank.parties.yaml", frames)
    data = pl.DataFrame(release.data)
    assert type(release.data) is type(frames["bank"])
    assert data.equals(pl.read_csv(folder / "out.csv", infer_schema=False))
    assert release.certificate.holds
    assert release.certificate["output"] is None
    assert len(release.classes) == data.height
    assert max(release.classes) + 1 == release.certificate["classes"]["count"]
    assert isinstance(release, shoal.Publication)
    release.report(tmp_path / "fused.html")
    assert "Every promise holds" in (tmp_path / "fused.html").read_text()
    assert release.plot("sizes").axes


def test_people_whose_ids_differ_in_capitals_alone_are_warned_of(fused):
    folder, certificate = fused
    tables = {
        owner: pl.read_csv(folder / "demo" / f"bank.{owner}.csv", infer_schema=False)
        for owner in bank.OWNERS
    }
    lower = pl.col("customer").str.to_lowercase()
    twice = {owner: pl.concat([t, t.with_columns(lower)]) for owner, t in tables.items()}
    found = shoal.fuse(folder / "demo" / "bank.parties.yaml", twice).certificate
    (warning,) = (one for one in found.warnings if one.code == "written-alike")
    people = certificate["fusion"]["people"]
    assert f"'customer': {2 * people} of its values are only {people} if" in warning.text
    assert "written-alike" not in {one.code for one in certificate.warnings}


def test_only_the_release_and_its_certificate_stay(fused):
    folder, _ = fused
    assert sorted(p.name for p in folder.iterdir()) == [
        "demo",
        "out.csv",
        "out.csv.certificate.json",
        "said",
    ]


def test_no_message_says_more_than_the_published_table(fused):
    folder, _ = fused
    found = check_transcript(folder / "said")
    assert found.wrong == []
    assert found.facts > 0
    assert set(found.messages) == {
        "roll",
        "masked",
        "gathered",
        "common",
        "label",
        "pace",
        "batch",
        "seal",
        "shares",
    }


@pytest.mark.parametrize("change", ["coarser table", "another label"])
def test_the_check_finds_a_message_that_says_more(said, change):
    names = [p.name for p in said.glob("*.rows.csv")]
    table = pl.read_csv(said / names[0], infer_schema=False)
    if change == "coarser table":
        column = next(c for c in ("salary", "age", "education", "job") if table[c].n_unique() > 1)
        root = {"salary": "[0, 200]", "age": "[18, 95]", "education": "[none, master]", "job": "*"}[
            column
        ]
        table = table.with_columns(pl.lit(root).alias(column))
    elif change == "another label":
        table = table.with_columns(pl.Series("loan", ["yes"] * table.height))
    for name in names:
        table.write_csv(said / name)
    assert check_transcript(said).wrong


def test_two_owners_and_a_helper(tmp_path):
    world = bank_world(tmp_path, maximum="mpyc", helper="recipient")
    assert world.run() == {"bank": 0, "insurer": 0, "recipient": 0}
    assert world.release("bank") == world.release("insurer")
    assert not (tmp_path / "recipient.csv").exists()
    helper = Journal(tmp_path / "recipient.journal" / "journal")
    assert helper.count(b"M") == 0  # it learned no result


@pytest.mark.parametrize("maximum", ["clear", "mpyc"])
def test_three_owners_join_keyed_ids_by_a_trusted_helper_to_the_same_table(tmp_path, maximum):
    masked, keyed = tmp_path / "masked", tmp_path / "keyed"
    masked.mkdir(), keyed.mkdir()
    worlds = [
        bank_world(masked),
        bank_world(keyed, maximum=maximum, helper="recipient", keyed=True),
    ]
    for world in worlds:
        assert set(world.run().values()) == {0}
    assert len({world.release(name) for world in worlds for name in bank.OWNERS}) == 1
    helper = Journal(keyed / "recipient.journal" / "journal")
    heard = {helper.get(b"R", owner, 0)[32] for owner in bank.OWNERS}
    assert heard == {MessageKind.GATHERED}
    key = Journal(keyed / "insurer.journal" / "journal").get(b"R", "bank", 1)
    assert key[32] == MessageKind.KEY
    assert key[FRAME_HEAD:] not in (keyed / "recipient.journal" / "journal").read_bytes()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The release of runs that nothing disturbed, and how many entries each journal has, by whether
    ids are keyed.
    """
    found = {}
    for keyed in (False, True):
        world = small_world(tmp_path_factory.mktemp("undisturbed"), keyed)
        assert set(world.run().values()) == {0}
        journals = {
            name: Journal(world.folder / f"{name}.journal" / "journal") for name in world.names
        }
        found[keyed] = (
            world.release("bank"),
            {name: len(journal) for name, journal in journals.items()},
        )
    return found


def small_world(folder, keyed: bool, **more):
    world = bank_world(folder, n=40, keyed=keyed, helper="recipient" if keyed else None, **more)
    for promise in world.content["promises"]:
        promise["k"] = 8
    return world


@pytest.mark.parametrize(
    ("name", "keyed"),
    long_where(
        lambda case: case[0] != "bank",
        [("bank", False), ("insurer", False), ("office", False), ("recipient", True)],
    ),
)
def test_killed_all_along_its_journal_a_party_goes_on_to_the_same_table(
    tmp_path, undisturbed, name, keyed
):
    """At every eighth entry; at every single one with SHOAL_EVERY_ENTRY=1, which takes minutes."""
    step = 1 if os.environ.get("SHOAL_EVERY_ENTRY") else 8
    expected, entries = undisturbed[keyed]
    world = small_world(tmp_path, keyed)
    lives = world.die_again_and_again(name, step)
    assert {world.release(owner) for owner in world.names if owner != "recipient"} == {expected}
    assert lives >= entries[name] // step - 4  # who left, and who has everything, may never be told


TOLD = {"name": "party-tds-literal", "runner_up": "told"}


@pytest.mark.parametrize(
    ("entry", "method"), [(21, {}), (25, {}), (20, TOLD), (22, TOLD), (24, TOLD)]
)
def test_killed_around_a_secure_round_a_party_goes_on_to_the_same_table(
    tmp_path, undisturbed, entry, method
):
    """Also where the winner is told the second best bid, and has lost it."""
    world = small_world(tmp_path, False, maximum="mpyc")
    expected = undisturbed[False][0]
    if method:
        (tmp_path / "whole").mkdir()
        whole = small_world(tmp_path / "whole", False)
        whole.content["method"] = world.content["method"] = method
        assert set(whole.run().values()) == {0}
        expected = whole.release("bank")
    name = world.names[entry % 3]
    for other in world.names:
        world.start(other, die_at=entry if other == name else None)
    world.running[name].join(60)
    assert world.running[name].exitcode == -9
    world.start(name)
    assert set(world.statuses().values()) == {0}
    assert {world.release(one) for one in world.names} == {expected}


def test_a_table_that_changes_while_its_party_is_down_ends_the_run(tmp_path):
    """What is repeated must be repeated with the same bids: others would tell more."""
    world = bank_world(tmp_path, n=40)
    for name in ("insurer", "office"):
        world.start(name, patience=15)
    while (tmp_path / "bank.journal").exists() is False or Journal(
        tmp_path / "bank.journal" / "journal"
    ).get(b"B") is None:
        world.start("bank", die_at=12)
        world.running["bank"].join(60)
    table = tmp_path / "bank.table.csv"
    changed = pl.read_csv(table, infer_schema=False).with_columns(pl.col("salary").reverse())
    changed.write_csv(table)
    world.start("bank")
    world.running["bank"].join(60)
    assert world.statuses(0)["bank"] == 4
    assert "bids differ from those it holds" in world.message("bank")
    assert not list(tmp_path.glob("*.csv.certificate.json"))


def test_raw_values_swapped_within_final_nodes_leave_all_messages_of_their_kind_and_length(
    tmp_path,
):
    """Among people of one label whose salaries end in one node, so that all counts, and thus all
    scores, stay. How many steps are planned ahead would be measured, so it is fixed for both.
    """
    write_sample("bank", 250, 4, str(tmp_path / "demo"))
    agreement = tmp_path / "demo" / "bank.parties.yaml"
    text = agreement.read_text()
    agreement.write_text(text.replace("{name: party-tds}", "{name: party-tds, ahead: 1}"))
    bank, insurer, office = (
        pl.read_csv(tmp_path / "demo" / f"bank.{owner}.csv")
        for owner in ("bank", "insurer", "office")
    )
    table = bank.join(insurer, on="customer", how="semi").join(office, on="customer", how="semi")
    first = shoal.fuse(agreement, {"bank": table}, transcript=tmp_path / "first")
    starts = sorted(int(text.strip("[]").split(",")[0]) for text in first.data["salary"].unique())
    node = pl.Series("node", np.searchsorted(starts, table["salary"].to_numpy(), side="right"))
    swapped = table.with_columns(pl.col("salary").shuffle(seed=1).over(node, "loan"))
    assert not swapped.equals(table)
    second = shoal.fuse(agreement, {"bank": swapped}, transcript=tmp_path / "second")
    assert second.data.equals(first.data)
    for path in (tmp_path / "first").glob("*.[ms]*s"):
        assert shapes(path) == shapes(tmp_path / "second" / path.name)


def shapes(path):
    """Receiver, kind and length of all messages: those of the program in order, shares sorted."""
    found = [(one[:17], len(one)) for one in records(path)]
    return found if path.suffix == ".messages" else sorted(found)


def test_a_fusion_whose_starter_is_killed_goes_on_when_it_is_run_again(tmp_path):
    write_sample("bank", 250, 4, str(tmp_path / "demo"))
    agreement, output = str(tmp_path / "demo" / "bank.parties.yaml"), str(tmp_path / "out.csv")
    journal = tmp_path / ".out.csv.fuse" / "bank" / "journal"
    with running(tmp_path, "fuse", agreement, "-o", output, "-q") as starter:
        until(lambda: journal.exists() and journal.stat().st_size > 20_000, starter)
    before = journal.read_bytes()[:10_000]
    assert not (tmp_path / "out.csv").exists()
    time.sleep(1)  # its parties die with it
    certificate = fuse_file(agreement, output)
    assert certificate.holds
    assert before
    assert not journal.exists()


@pytest.mark.parametrize("victim", ["party run", "secure_maximum"])
def test_a_party_that_fails_for_a_reason_that_passes_is_started_again_and_it_is_said(
    tmp_path, victim
):
    """Its process for the secure maximum ends, or it is killed itself."""
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("the system does not tell what its processes run")
    write_sample("bank", 250, 4, str(tmp_path / "demo"))
    agreement = str(tmp_path / "demo" / "bank.parties.yaml")
    with running(tmp_path, "fuse", agreement, "-q", "-o", "out.csv") as fusion:
        found = until(lambda: descendants(fusion.pid, victim), fusion)
        os.kill(found[0], signal.SIGKILL)
        _, shown = fusion.communicate(timeout=120)
    assert fusion.returncode == 0, shown
    assert "starting it again (1 of" in shown
    assert Certificate.load(tmp_path / "out.csv.certificate.json").holds


def descendants(process: int, what: str) -> list[int]:
    """Processes below this one whose command line holds these words."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")")[-1].split()[1])
    below, found = {process}, []
    while below:
        below = {child for child, parent in parents.items() if parent in below}
        for child in sorted(below):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ")
                found += [child] if what.encode() in words else []
    return found


def test_a_stranger_under_an_agreed_name_is_not_heard(tmp_path):
    world = bank_world(tmp_path)
    others = {
        name: dict(party) for name, party in zip(world.names, world.content["parties"], strict=True)
    }
    strange = tmp_path / "strange"
    strange.mkdir()
    stranger = bank_world(strange)
    # the right names and addresses, the insurer's key is another one
    for party in stranger.content["parties"]:
        agreed = others[party["name"]]
        party |= {"address": agreed["address"]}
        if party["name"] != "insurer":
            shutil.copy(tmp_path / agreed["certificate"], strange / party["certificate"])
    for name in ("bank", "office"):
        world.start(name, patience=4)
    stranger.start("insurer", patience=4)
    assert world.statuses() == {"bank": 4, "office": 4}
    assert "insurer" in world.message("bank")
    assert not list(tmp_path.glob("*.csv.certificate.json"))
    assert stranger.statuses() == {"insurer": 4}


@pytest.mark.parametrize(
    ("lie", "shown"),
    [
        ("records", "more or fewer ids"),
        ("roll", "party 'bank', message 'roll': can't be read"),
        ("common", "people in common twice"),
    ],
)
def test_a_party_that_lies_where_it_can_be_seen_ends_the_run(tmp_path, lie, shown):
    world = bank_world(tmp_path, n=40)
    for name in world.names:
        world.start(name, patience=8, lie=lie if name == "bank" else None)
    assert set(world.statuses().values()) == {4}
    assert any(shown in world.message(name) for name in ("insurer", "office"))
    assert not list(tmp_path.glob("*.csv.certificate.json"))


def test_parties_with_another_agreement_stop(tmp_path):
    world = bank_world(tmp_path)
    for name in ("bank", "insurer"):
        world.start(name, patience=5)
    other = yaml.safe_load((tmp_path / "parties.yaml").read_text())
    other["promises"][0]["k"] = 2
    (tmp_path / "other").mkdir()
    for path in [*tmp_path.glob("*.crt"), *tmp_path.glob("*.key"), *tmp_path.glob("*.table.csv")]:
        shutil.copy(path, tmp_path / "other")
    second = type(world)(tmp_path / "other", other)
    second.start("office", patience=5)
    assert second.statuses() == {"office": 4}
    assert "another agreement" in second.message("office")
    assert 4 in world.statuses().values()


def test_too_few_people_in_common_end_the_run_for_everybody(tmp_path):
    world = bank_world(tmp_path)
    world.content["minimum"] = 1000
    assert set(world.run().values()) == {3}
    assert "in common" in world.message("office")
    assert not (tmp_path / "bank.csv").exists()


def test_a_helper_ends_when_the_owners_find_too_few_people_in_common(tmp_path):
    """It computes without knowing which round is the last, and used to wait for one forever."""
    world = bank_world(tmp_path, maximum="mpyc", helper="recipient")
    world.content["minimum"] = 1000
    assert world.run() == {"bank": 3, "insurer": 3, "recipient": 4}
    assert "left before the end" in world.message("recipient")


def test_owners_who_disagree_on_a_label_publish_nothing(tmp_path):
    world = bank_world(tmp_path)
    table = tmp_path / "office.table.csv"
    wrong = pl.read_csv(table, infer_schema=False).with_columns(pl.lit("yes").alias("loan"))
    wrong.write_csv(table)
    assert world.run(patience=5)["office"] == 2  # the tables are at fault, not a party
    assert "differ" in world.message("office")
    assert not (tmp_path / "bank.csv").exists()


def test_tls_1_2_finds_no_common_suite(tmp_path):
    import socket
    import ssl

    world = bank_world(tmp_path)
    world.start("bank", patience=15)
    host, port = world.content["parties"][0]["address"].split(":")
    keys = Keys.of("insurer", tmp_path)

    def handshake(version) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(keys.certificate, keys.key)
        context.minimum_version = context.maximum_version = version
        context.set_alpn_protocols(["h2"])
        with (
            socket.create_connection((host, int(port)), timeout=5) as plain,
            context.wrap_socket(plain) as secure,
        ):
            return secure.version()

    for _ in range(100):
        try:
            assert handshake(ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        handshake(ssl.TLSVersion.TLSv1_2)
    world.running["bank"].kill()


def demo(folder, change=lambda content: None):
    """A small agreement on files with hierarchies in tables, a plain column, and the label in both
    tables.
    """
    rng = np.random.default_rng(0)
    job = rng.integers(0, 3, 120)
    salary = job * 20 + rng.integers(0, 30, 120)
    label = np.where(salary > 40, "high", "low")
    people = pl.DataFrame({"id": [f"u{i}" for i in range(120)], "salary": salary, "income": label})
    people[:110].write_csv(folder / "bank.csv")
    people = people.with_columns(
        job=pl.Series(["janitor", "lawyer", "manager"]).gather(job),
        ward=pl.Series(["a", "b"]).gather(job % 2),
    )
    people[::-1].select("id", "job", "ward", "income").write_csv(folder / "clinic.csv")
    (folder / "job.csv").write_text("janitor;blue;*\nlawyer;white;*\nmanager;white;*\n")
    content = {
        "version": 1,
        "join": "id",
        "label": {"attribute": "income", "shared": True},
        "parties": [
            {
                "name": "bank",
                "table": "bank.csv",
                "attributes": {"salary": {"role": "quasi", "type": "number", "domain": [0, 99]}},
            },
            {
                "name": "clinic",
                "table": "clinic.csv",
                "attributes": {
                    "job": {"role": "quasi", "hierarchy": "job.csv"},
                    "ward": {"role": "plain"},
                },
            },
        ],
        "helper": {"name": "recipient"},
        "promises": [{"model": "k-anonymity", "k": 4}],
    }
    change(content)
    (folder / "parties.yaml").write_text(yaml.safe_dump(content))
    return str(folder / "parties.yaml")


def test_files_with_hierarchies_and_plain_columns(tmp_path):
    certificate = fuse_file(
        demo(tmp_path), str(tmp_path / "out.parquet"), transcript=tmp_path / "said"
    )
    published = pl.read_parquet(tmp_path / "out.parquet")
    assert published.columns == ["salary", "job", "ward", "income"]
    assert published["ward"].unique().sort().to_list() == ["a", "b"]
    assert certificate.holds
    assert certificate["records"]["out"] == 110
    assert published.group_by("salary", "job").len()["len"].min() >= 4
    assert check_transcript(tmp_path / "said").wrong == []


def test_a_fused_table_of_stars_alone_is_one_class_that_every_promise_counts(tmp_path):
    """No step is valid; each QID, and all of them together, is measured on everybody."""

    def change(content):
        bank, clinic = content["parties"]
        bank["attributes"] = {"salary": {"role": "drop"}, "sex": {"role": "quasi"}}
        bank["attributes"]["sex"]["hierarchy"] = "sex.csv"
        clinic["attributes"]["salary"] = {"role": "drop"}
        content["promises"] = [
            {"model": "k-anonymity", "attributes": [name], "k": 110} for name in ("sex", "job")
        ]

    agreement = demo(tmp_path, change)
    table = pl.read_csv(tmp_path / "bank.csv", infer_schema=False)
    sex = pl.Series("sex", ["f", "m"] * (table.height // 2))
    table.with_columns(sex).write_csv(tmp_path / "bank.csv")
    table = pl.read_csv(tmp_path / "clinic.csv", infer_schema=False)
    table.with_columns(salary=pl.lit("unknown")).write_csv(tmp_path / "clinic.csv")
    (tmp_path / "sex.csv").write_text("f;*\nm;*\n")
    certificate = fuse_file(agreement, str(tmp_path / "out.csv"))
    published = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    assert set(published["sex"]) == set(published["job"]) == {"*"}
    assert certificate.holds
    assert certificate["classes"]["count"] == 1
    for promise, qid in zip(certificate["promises"], certificate["fusion"]["qids"], strict=True):
        assert promise["measured"] == promise["classes"]["min"] == qid["groups"]["min"] == 110
    assert (certificate["together"]["min"], certificate["together"]["below"]) == (110, 0)
    audited = shoal.audit(published, Agreement.load(agreement).policy)
    assert audited["promises"] == certificate["promises"]


def test_what_a_party_said_at_its_end_is_waited_for(monkeypatch):
    """Else it is told that a party ended, not why, where this process reads later than that one
    ends.
    """
    heard = fuse._listen
    monkeypatch.setattr(fuse, "_listen", lambda *known: (time.sleep(0.5), heard(*known)))
    ends = "import sys; sys.stderr.write('shoal: the table is torn; fix it\\n'); sys.exit(2)"
    with pytest.raises(shoal.InputError, match="the table is torn; fix it"):
        fuse.run_to_end(
            [fuse.PartyProcess("bank", [sys.executable, "-c", ends])], progress=lambda stage: None
        )


@pytest.mark.parametrize(
    ("change", "error", "shown"),
    [
        (lambda c: c.pop("helper"), shoal.InputError, "name a helper"),
        (lambda c: c["parties"][0].update(table="none.csv"), shoal.InputError, "does not exist"),
        (lambda c: c["parties"][0].pop("table"), shoal.InputError, "no 'table'"),
        (
            lambda c: c["promises"][0].update(k=500),
            shoal.InfeasibleError,
            "fewer than 500 people in common",
        ),
        (
            lambda c: c["parties"][0]["attributes"]["salary"].update(domain=[0, 9]),
            shoal.InputError,
            "outside its domain",
        ),
        (lambda c: c.update(join="name"), shoal.InputError, "no column 'name'"),
    ],
)
def test_what_can_not_be_is_reported_and_leaves_nothing(tmp_path, change, error, shown):
    agreement = demo(tmp_path, change)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(error, match=shown):
        fuse_file(agreement, str(tmp_path / "out.csv"))
    assert sorted(path.name for path in tmp_path.iterdir()) == before
