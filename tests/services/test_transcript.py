"""The audit of a transcript finds whatever is missing, changed or too much, and never breaks."""

import hashlib
import shutil
import struct

import pytest

from party_processes import bank_fusion
from shoal.fusion.containment import check_transcript
from shoal.fusion.conversation import Recorder
from shoal.fusion.wire.messages import MessageKind
from thorough import every

RECORD = struct.Struct("<16sBI")


SPOKEN = ["three owners", "two and a helper", "keyed"]


@pytest.fixture(scope="module", params=SPOKEN)
def spoken(forked_parties, tmp_path_factory, request):
    """The transcript of a fusion by MPyC."""

    def change(content):
        for promise in content["promises"]:
            promise["k"] = 5
        if request.param != "three owners":
            content["helper"] = {"name": "recipient"}
        if request.param == "two and a helper":
            content["parties"] = content["parties"][:2]
            content["promises"] = [{"model": "k-anonymity", "k": 4}]
        if request.param == "keyed":
            content["joining"] = {"name": "keyed", "helper_is_trusted": True}
            content["parties"][2]["attributes"]["district"] = {"role": "plain"}

    folder = tmp_path_factory.mktemp("spoken")
    bank_fusion(folder, 120, change)
    assert check_transcript(folder / "said").wrong == []
    return folder / "said"


@pytest.fixture
def turn(request) -> int:
    """The number of the transcript: each gets a third of the damages, all of them together."""
    return SPOKEN.index(request.node.callspec.params["spoken"])


@pytest.fixture
def said(spoken, tmp_path):
    shutil.copytree(spoken, tmp_path / "said")
    return tmp_path / "said"


DAMAGES = {
    "emptied": lambda content: b"",
    "without its last byte": lambda content: content[:-1],
    "half": lambda content: content[: len(content) // 2],
    "its first bytes": lambda content: content[:10],
    "eight bytes more": lambda content: content + b"01234567",
    "a flipped bit": lambda content: content[:40] + bytes([content[40] ^ 4]) + content[41:],
    "no text": lambda content: b"\xff\xfe\xfd" + content,
    "a list": lambda content: b"[1, 2]",
    "deep": lambda content: b"[" * 100_000,
    "gone": None,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_whichever_file_is_damaged_the_audit_says_so(said, shoal, damage, turn):
    first = turn + [*DAMAGES.values()].index(damage)
    for path in every(len(SPOKEN), sorted(said.iterdir()), first):
        if path.suffix == ".csv" and damage is DAMAGES["without its last byte"]:
            continue  # it ends with an empty line
        content = path.read_bytes()
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage(content))
        found = shoal("audit", "--trace", str(said), "-q")
        assert found.status in (1, 2), path.name
        assert "Traceback" not in found.err
        if path.suffix in (".messages", ".shares"):
            assert f"'{path.name}' is damaged or not complete" in found.err or damage is None
            assert len(found.err.splitlines()) == 1
        path.write_bytes(content)
    assert shoal("audit", "--trace", str(said)).status == 0


def test_every_truncation_of_the_messages_is_found(said, shoal, turn):
    path = said / "bank.messages"
    content = path.read_bytes()
    sizes = range(0, len(content), max(1, len(content) // 40))
    for size in every(len(SPOKEN), sizes, turn):
        path.write_bytes(content[:size])
        assert shoal("audit", "--trace", str(said)).status == 2


def records(path):
    """All records but the last one."""
    content, at, found = path.read_bytes(), 0, []
    while at < len(content):
        length = RECORD.unpack_from(content, at)[2]
        found.append(content[at : at + RECORD.size + length])
        at += len(found[-1])
    return found[:-1]


def write_records(path, found) -> None:
    """The file as its party would have written it."""
    content = b"".join(found)
    end = hashlib.sha256(content).digest()
    path.write_bytes(content + RECORD.pack(b"", 0, len(end)) + end)


def test_whichever_message_is_missing_or_there_twice_it_is_found(said):
    check_every_message_counts(said)


def check_every_message_counts(said, kinds=tuple(MessageKind)) -> None:
    """Without any message of these kinds, or with it twice, a transcript's check finds it."""
    for path in said.glob("*.messages"):
        whole = records(path)
        for at in [at for at, one in enumerate(whole) if one[16] in kinds]:
            for changed in (whole[:at] + whole[at + 1 :], [*whole[: at + 1], *whole[at:]]):
                write_records(path, changed)
                assert check_transcript(said).wrong, f"{path.name}, {whole[at][:21]}"
        write_records(path, whole)
    assert check_transcript(said).wrong == []


def test_shares_that_are_not_of_all_rounds_are_found(said):
    for path in said.glob("*.shares"):
        whole = records(path)
        all_changed = [[], whole[: len(whole) // 2]]
        if path.stem != "recipient":  # a helper has begun a round more, who knows how far
            all_changed += [whole[:-1], whole[1:], whole + whole[-1:]]
        for changed in all_changed if whole else []:
            write_records(path, changed)
            wrong = check_transcript(said).wrong
            assert any("not the shares of" in finding for finding in wrong), path.name
        write_records(path, whole)
    assert check_transcript(said).wrong == []


def test_every_kind_of_message_that_does_not_belong_is_found(said):
    names = sorted(path.stem for path in said.glob("*.messages"))
    for sender in names:
        path = said / f"{sender}.messages"
        whole = records(path)
        for receiver in names:
            for kind in sorted(set(MessageKind) | {99}):
                more = RECORD.pack(receiver.encode(), kind, 32) + bytes(32)
                write_records(path, [*whole, more])
                if receiver == sender:
                    with pytest.raises(Exception, match="is damaged or not complete"):
                        check_transcript(said)
                else:
                    assert check_transcript(said).wrong, f"{sender} to {receiver}: {kind}"
        write_records(path, whole)


def test_what_a_killed_party_left_is_continued_behind_its_last_whole_message(tmp_path):
    first = Recorder(tmp_path, "bank")
    first.record("office", b"one")
    first._shares.close()
    path = tmp_path / "bank.shares"
    path.write_bytes(path.read_bytes() + RECORD.pack(b"office", 11, 100) + b"half of it")
    again = Recorder(tmp_path, "bank")
    again.record("office", b"two")
    again._shares.close()
    assert path.read_bytes() == b"".join(
        RECORD.pack(b"office", MessageKind.SHARES, 3) + content for content in (b"one", b"two")
    )
