"""The desk: how long a page waits for it."""

import asyncio
import time

import pytest

from shoal.web.work import PATIENCE, Desk, Refused


class Busy(Desk):
    """A desk that is counting something large."""

    async def look(self, name, **asked):
        await asyncio.sleep(0.02 if name == "quick" else 60)
        return {"name": name}


def test_a_page_that_asks_a_busy_desk_for_four_figures_waits_once():
    async def asked():
        desk = Busy()
        began = time.monotonic()
        found = [await desk.soon(name) for name in ("risk", "check", "profile", "policy")]
        waited = time.monotonic() - began
        quick = await desk.soon("quick")  # asked behind what takes long: it is not waited for
        await desk.close()
        return found, waited, quick

    found, waited, quick = asyncio.run(asked())
    assert found == [None] * 4
    assert PATIENCE <= waited < 2 * PATIENCE
    assert quick is None


def test_what_an_idle_desk_finds_in_time_is_shown_and_kept():
    async def asked():
        desk = Busy()
        found = await desk.soon("quick"), desk.kept("quick").done()
        await desk.close()
        return found

    assert asyncio.run(asked()) == ({"name": "quick"}, True)


def test_a_page_says_what_a_look_refused_however_long_it_took(monkeypatch):
    asked = []

    async def refused(name, **more):
        asked.append(name)
        await asyncio.sleep(2 * PATIENCE)
        raise Refused({"error": "InputError", "message": "6 cells are no numbers", "findings": []})

    async def shown():
        desk = Desk()
        monkeypatch.setattr(desk, "look", refused)
        assert await desk.soon("check") is None
        await asyncio.sleep(4 * PATIENCE)
        with pytest.raises(Refused, match="no numbers"):
            await desk.soon("check")

    asyncio.run(shown())
    assert asked == ["check"]


def test_no_edit_waits_for_a_table_that_is_being_counted(opened, monkeypatch):
    monkeypatch.setattr(opened.server.desk, "look", Busy().look)
    opened.server.desk.forget()
    assert opened.give("ward", "drop").status == 200
    assert opened.server.project.policy["attributes"]["ward"]["role"] == "drop"


def test_a_page_that_waits_for_counts_shows_how_far_they_are(opened, monkeypatch):
    stages = []

    class Watched(Desk):
        _stage = property(lambda self: {}, lambda self, stage: stages.append(stage))

    async def asked():
        project, desk = opened.server.project, Watched()
        policy = {"policy": project.policy, "base": str(project.folder)}
        await desk.look("risk", **opened.server.table_key(), **policy)
        await desk.close()

    asyncio.run(asked())
    stage = next(stage for stage in stages if stage.get("done") == 1)
    said = f"{stage['stage']} · 1 of {stage['total']}"
    desk = opened.server.desk
    monkeypatch.setattr(desk, "look", Busy().look)
    monkeypatch.setattr(desk, "_stage", stage)
    desk.forget()
    for screen in ("/columns", "/promises"):
        assert opened.until(screen, "Counting people counting").words.count(said) == 1
