"""Whatever fails in the middle of an append, the ledger is as it was or has the whole release."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import shoal
from failing_calls import Killed, failing_at_every_step
from file_limits import limited
from real_commands import ended
from republish_cases import POLICY, append, policy, save, take_back, wearers
from shoal.attacks.run.attack import audit_ledger
from shoal.connectors.ledger import Ledger, signals_deferred
from shoal.errors import STOPS
from thorough import every

PEOPLE = 60
STAND_IN = 65534


@pytest.fixture
def place(tmp_path) -> Path:
    """A ledger of one release and a copy to go back to."""
    append(tmp_path / "L", wearers(PEOPLE, 0))
    save(tmp_path)
    return tmp_path


def drafts(place: Path) -> list[Path]:
    return [path for path in place.rglob(".*") if path.name.endswith(".part")]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_write_that_fails_anywhere_is_reported_and_leaves_the_ledger_whole(
    place, monkeypatch, number
):
    shown: list[str] = []
    failure = OSError(number, os.strerror(number))
    for failing in failing_at_every_step(lambda: failure, monkeypatch):
        with failing as made:
            try:
                done = append(place / "L", wearers(PEOPLE, 1))
                shown += [done.unfinished] if done.unfinished else []
                assert Ledger.at(place / "L").releases() == [1, 2], made
            except shoal.InputError as error:
                shown.append(f"ledger: {error}")
                assert Ledger.at(place / "L").releases() == [1], made
        assert Ledger.at(place / "L").verify() == [], made
        done = append(place / "L", wearers(PEOPLE, 1))
        assert (done.release, Ledger.at(place / "L").releases()) == (2, [1, 2]), made
        assert not drafts(place), made
        take_back(place)
    assert len(shown) > len(made) - 4, "all but a few that did not matter, as the folder was there"
    assert all(os.strerror(number) in line for line in shown)
    assert any("release 0002 is published" in line for line in shown)
    assert all(line.startswith(("ledger", "release 0002")) for line in shown)


def test_a_stop_at_any_instant_leaves_nothing_half_done(place, monkeypatch):
    """Ctrl-C or SIGTERM: what is begun is tidied up at once, unless the release is out already."""
    for failing in failing_at_every_step(KeyboardInterrupt, monkeypatch):
        with failing as made:
            try:
                append(place / "L", wearers(PEOPLE, 1))
            except KeyboardInterrupt:
                assert not drafts(place), made
        assert Ledger.at(place / "L").verify() == [], made
        assert append(place / "L", wearers(PEOPLE, 1)).release == 2
        take_back(place)
    assert len(made) > 10


@pytest.mark.parametrize("stop", STOPS)
def test_no_stop_counts_while_a_release_takes_its_place(stop):
    """Else the command would say that nothing was written, beside a release."""
    before = signal.signal(stop, lambda number, frame: pytest.fail("stopped"))
    try:
        with signals_deferred():
            os.kill(os.getpid(), stop)
    finally:
        signal.signal(stop, before)


# A power cut: only what was synced is on the disk


class Disk:
    """What a power cut would leave: contents of files and names in folders that were synced, and no
    more.

    Whatever was there before the append is on the disk.
    """

    def __init__(self, place: Path) -> None:
        self.roots = [place / "L", place / "L.private"]
        self.names = {path for root in self.roots for path in (root, *root.rglob("*"))}
        self.contents = {path for path in self.names if path.is_file()}

    def watch(self, patched) -> None:
        fsync, rename = os.fsync, os.rename

        def synced(handle):
            path = Path(os.readlink(f"/proc/self/fd/{handle}"))
            fsync(handle)
            if path.is_dir():
                self.names = {p for p in self.names if p.parent != path} | set(path.iterdir())
            else:
                self.contents.add(path)

        def renamed(source, target):
            rename(source, target)
            moved = {
                p
                for p in self.contents | self.names
                if Path(source) in p.parents or p == Path(source)
            }
            there = {
                p: Path(target) / p.relative_to(source) if p != Path(source) else Path(target)
                for p in moved
            }
            self.contents = {there.get(p, p) for p in self.contents}
            # the name is new until its folder is synced; what is below keeps its own
            self.names = {there.get(p, p) for p in self.names if p != Path(source)} - {Path(target)}

        patched.setattr(os, "fsync", synced)
        patched.setattr(os, "rename", renamed)
        patched.setattr(os, "replace", renamed)

    def cut(self, keeps_names: bool) -> None:
        """keeps_names: whether names that were not synced are there after all; contents that were
        not are lost.
        """
        for root in self.roots:
            for path in sorted(root.rglob("*"), key=lambda p: len(p.parts)):
                if not path.exists():
                    continue
                if not keeps_names and path not in self.names:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                elif path.is_file() and path not in self.contents:
                    path.write_bytes(b"")


@pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="the system does not tell which file a handle is of"
)
@pytest.mark.parametrize("keeps_names", [True, False])
def test_a_power_cut_at_any_instant_leaves_the_ledger_whole(place, monkeypatch, keeps_names):
    cut = published = 0
    for failing in failing_at_every_step(Killed, monkeypatch):
        disk, done = Disk(place), None
        with monkeypatch.context() as patched:
            disk.watch(patched)
            with failing as made:
                try:
                    done = append(place / "L", wearers(PEOPLE, 1))
                except Killed:
                    cut += 1
        disk.cut(keeps_names)
        assert Ledger.at(place / "L").verify() == [], made
        is_out = Ledger.at(place / "L").releases() == [1, 2]
        assert is_out or done is None, "what was reported as published stays"
        published += is_out
        assert append(place / "L", wearers(PEOPLE, 1)).release == 2
        assert Ledger.at(place / "L").verify() == []
        take_back(place)
    assert cut > 20
    assert published > 2, "some cuts came after the release was out"


def test_the_model_of_a_power_cut_finds_a_rename_before_its_contents(place, monkeypatch):
    """The test above can fail: without syncing, it does."""
    from shoal.connectors.ledger import layout

    disk = Disk(place)
    with monkeypatch.context() as patched:
        disk.watch(patched)
        patched.setattr(layout, "sync", lambda path: None)
        append(place / "L", wearers(PEOPLE, 1))
    disk.cut(keeps_names=True)
    assert Ledger.at(place / "L").verify()


# Real processes


def prepared(folder: Path) -> None:
    (folder / "p.json").write_text(json.dumps(POLICY))
    for i in range(2):
        wearers(400, i).write_csv(folder / f"{i}.csv")


def arguments(increment: int) -> list[str]:
    return ["republish", f"{increment}.csv", "-p", "p.json", "--ledger", "L", "-q"]


def test_a_file_that_may_not_grow_is_reported_in_one_line(tmp_path):
    pytest.importorskip("resource")
    prepared(tmp_path)
    append(tmp_path / "L", wearers(400, 0))
    for limit in (0, 9000):
        failed = subprocess.run(
            limited(limit, *arguments(1)), cwd=tmp_path, capture_output=True, text=True
        )
        assert failed.returncode == 2, failed.stderr
        assert failed.stderr.count("\n") == 1
        assert "writing failed" in failed.stderr
        assert not drafts(tmp_path)
        assert Ledger.at(tmp_path / "L").verify() == []
    assert append(tmp_path / "L", wearers(400, 1)).release == 2


FULL = """
set -e
mount -t tmpfs -o size=$1k none "$2/disk"
cp -r "$2"/L "$2"/L.private "$2"/disk
cd "$2"
set +e
"$3" -m shoal republish 1.csv -p p.json --ledger disk/L -q 2> error
echo $? > status
ls disk/L > left
mount -o remount,size=9m "$2/disk"
"$3" -m shoal ledger verify disk/L -q || exit 9
"$3" -m shoal republish 1.csv -p p.json --ledger disk/L -q || exit 9
find disk -name '.*.part' | grep . && exit 8
ls disk/L > releases
"""


def test_a_full_disk_is_reported_and_leaves_the_ledger_whole(tmp_path):
    """A disk of a few hundred kilobytes, in a name space of its own; so small that other files no
    longer fit.
    """
    try:
        allowed = subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("no file system can be mounted here")
    prepared(tmp_path)
    assert ended(tmp_path, *arguments(0)).returncode == 0
    (tmp_path / "disk").mkdir()
    statuses = []
    files = [
        path
        for name in ("L", "L.private")
        for path in (tmp_path / name).rglob("*")
        if path.is_file()
    ]
    used = sum(-(-path.stat().st_size // 4096) * 4 for path in files)
    for more in every(2, (4, 20, 28, 36, 400)):
        size = used + more  # kilobytes
        order = ["unshare", "-rm", "sh", "-c", FULL, "sh", str(size), str(tmp_path), sys.executable]
        done = subprocess.run(order, capture_output=True, text=True)
        assert done.returncode == 0, (size, done.stderr)
        statuses.append(int((tmp_path / "status").read_text()))
        lines = (tmp_path / "error").read_text().splitlines(keepends=True)
        findings = ("one person's", "no promise covers", "known too", "published as it is")
        error = "".join(line for line in lines if not any(text in line for text in findings))
        is_there = "0002" in (tmp_path / "left").read_text().split()
        assert is_there == (statuses[-1] == 0), (size, error)
        assert error.count("\n") <= 1, (size, error)
        if error:
            assert ("release 0002 is published" in error) == is_there, (size, error)
        assert {"0001", "0002"} < set((tmp_path / "releases").read_text().split())
    assert statuses[0] == 2
    assert statuses[-1] == 0


@contextmanager
def as_somebody_else(folder: Path) -> Iterator[None]:
    """Who may do everything is not stopped by rights: then as a user who may not, to whom the
    folder belongs.
    """
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, STAND_IN, STAND_IN)
    os.seteuid(STAND_IN)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("locked", ["L", "L.private", "."])
def test_a_ledger_that_may_not_be_written_is_reported(request, locked):
    """The ledger's folder, its private part, or the folder where it would begin."""
    folder = Path(tempfile.mkdtemp(prefix="shoal-readonly-"))  # where anybody may go
    request.addfinalizer(lambda: shutil.rmtree(folder, ignore_errors=True))
    shoal.republish(wearers(PEOPLE, 0), policy(), folder / "L")
    with as_somebody_else(folder):
        mode = (folder / locked).stat().st_mode
        (folder / locked).chmod(0o500)
        try:
            with pytest.raises(shoal.InputError, match=r"^ledger '.*Permission denied"):
                shoal.republish(
                    wearers(PEOPLE, 1), policy(), folder / ("new" if locked == "." else "L")
                )
        finally:
            (folder / locked).chmod(mode)
        assert Ledger.at(folder / "L").verify() == []
        assert not (folder / "new").exists()
        assert shoal.republish(wearers(PEOPLE, 1), policy(), folder / "L").release == 2


def test_a_ledger_that_may_not_be_read_is_reported(request):
    folder = Path(tempfile.mkdtemp(prefix="shoal-readonly-"))
    request.addfinalizer(lambda: shutil.rmtree(folder, ignore_errors=True))
    shoal.republish(wearers(PEOPLE, 0), policy(), folder / "L")
    assert shoal.audit_ledger(folder / "L").holds
    with as_somebody_else(folder):
        (folder / "L" / "0001").chmod(0)
        assert shoal.audit_ledger(folder / "L").damage
        with pytest.raises(shoal.ShoalError, match="ledger"):
            shoal.republish(wearers(PEOPLE, 1), policy(), folder / "L")
        (folder / "L" / "0001").chmod(0o755)
        assert shoal.audit_ledger(folder / "L").holds


def test_clocks_that_jump_do_not_matter(tmp_path, monkeypatch):
    """Nothing of a ledger depends on time, neither what is told nor what is found."""
    for at in (4e9, 1.0, 2e9):
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda at=at: at)
            append(tmp_path / "L", wearers(PEOPLE, int(at)), policy())
        for path in (*tmp_path.glob("L/**/*"), *tmp_path.glob("L.private/**/*")):
            os.utime(path, (at, at))
    assert audit_ledger(tmp_path / "L").holds
    assert len(Ledger.at(tmp_path / "L").releases()) == 3
