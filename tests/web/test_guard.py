"""The security rules S1 to S7, S10, S11: who may ask, what every answer carries."""

import ast
import asyncio
import http.client
import ipaddress
import os
import re
import socket
import sys
from pathlib import Path

import pytest

from shoal.cli.machine import _show
from shoal.errors import InputError
from shoal.web import guard, policy_text
from shoal.web.app import _listening, opening_page
from shoal.web.guard import COOKIE, Door, Guard, TooManyTries
from shoal.web.policy_text import read
from shoal.web.server import MOST_STREAMS
from shoal.web.work import Job
from web.visitor import SECRET, Visitor


def test_s1_it_listens_on_a_random_loopback_address_and_no_other(shared_server):
    host = ipaddress.ip_address(shared_server.door.host)
    assert host.is_loopback
    others = {_listening().getsockname()[0] for _ in range(3)} | {shared_server.door.host}
    if sys.platform != "darwin":
        assert len(others) > 1
        stranger = http.client.HTTPConnection("127.0.0.1", shared_server.door.port, 2)
        with pytest.raises(OSError):
            stranger.connect()


@pytest.mark.parametrize("host", ["evil.test:{port}", "localhost:{port}", "{host}", "{host}:1", ""])
def test_s2_another_host_gets_400_and_no_body(shared_server, guest, host):
    named = host.format(host=shared_server.door.host, port=shared_server.door.port)
    answer = guest.request("GET", "/", headers={"Host": named})
    assert (answer.status, answer.body) == (400, b"")


def test_s2_two_hosts_get_400(shared_server):
    connection = http.client.HTTPConnection(shared_server.door.host, shared_server.door.port, 5)
    connection.putrequest("GET", "/", skip_host=True)
    connection.putheader("Host", shared_server.door.address)
    connection.putheader("Host", "evil.test")
    connection.endheaders()
    assert connection.getresponse().status == 400


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says whose a connection is")
@pytest.mark.parametrize("kind", [socket.AF_INET, socket.AF_INET6])
def test_s3_the_system_says_whose_a_connection_is(kind):
    with _listening() as server, socket.socket(kind) as client:
        host, port = server.getsockname()
        client.connect((host if kind == socket.AF_INET else f"::ffff:{host}", port))
        end, (seen, seen_port, *_) = server.accept()
        with end:
            assert guard.user_of((seen, seen_port), (host, port)) == os.getuid()
            assert guard.user_of((seen, seen_port), (host, port + 1)) is None
    assert guard.user_of((seen, seen_port), (host, port)) is None


def test_s3_a_cookie_is_of_no_use_to_another_account(guest, monkeypatch):
    monkeypatch.setattr(guard, "user_of", lambda client, server: os.getuid() + 1)
    answer = guest.request("GET", "/open")
    assert (answer.status, answer.text) == (403, "The page is for the account that has opened it.")
    monkeypatch.setattr(guard, "user_of", lambda client, server: None)  # not in its tables
    assert guest.request("GET", "/open").status == 403
    monkeypatch.setattr(guard, "TABLES", ())  # no system could tell
    assert guest.request("GET", "/open").status == 200


def test_s3_without_a_cookie_nothing_is_reported(shared_server):
    stranger = Visitor(shared_server, come=False)
    for path in ("/", "/open", "/static/shoal.css", "/jobs/1/events", "/nothing"):
        answer = stranger.request("GET", path)
        assert answer.status == 401
        assert shared_server.project.name not in answer.text


def test_s3_a_link_opens_once_and_its_cookie_is_strict(shared_server):
    token = shared_server.door.new_link()
    stranger = Visitor(shared_server, come=False)
    answer = stranger.request("POST", "/enter", {"token": token})
    cookie = answer.headers["set-cookie"].lower()
    assert answer.status == 200
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.request("POST", "/enter", {"token": token}).status == 401


def test_s3_a_link_is_void_after_a_minute_and_five_tries_are_the_most():
    now = [0.0]
    door = Door("127.0.0.9", 80, lambda: now[0])
    token = door.new_link()
    now[0] = guard.LINK_SECONDS + 1
    assert door.enter(token) is None
    for _ in range(guard.TRIES - 1):
        assert door.enter("guess") is None
    with pytest.raises(TooManyTries):
        door.enter(door.new_link())
    now[0] += guard.TRIES_SECONDS + 1
    assert door.enter(door.new_link()) is not None


def test_s3_no_token_is_in_what_the_browser_is_started_with(shared_server, tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr("webbrowser.open", started.append)
    path = tmp_path / "open.html"
    policy_text.write(path, opening_page(shared_server))
    _show(path)
    token = re.search(r'name="token" value="([^"]+)"', path.read_text())[1]
    assert started == [path.as_uri()]
    assert token not in started[0]
    assert path.stat().st_mode & 0o077 == 0


def test_s3_only_the_newest_link_opens():
    door = Door("127.0.0.9", 80)
    first, second = door.new_link(), door.new_link()
    assert door.enter(first) is None
    assert door.enter(second) is not None


def test_s3_a_second_command_needs_the_secret_of_the_lock(shared_server):
    stranger = Visitor(shared_server, come=False)
    assert stranger.request("POST", "/link", {"secret": "guess"}).status == 401
    page = stranger.request("POST", "/link", {"secret": SECRET})
    token = re.search(r'name="token" value="([^"]+)"', page.text)[1]
    assert stranger.request("POST", "/enter", {"token": token}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Origin": None},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_s4_a_change_from_elsewhere_is_refused(guest, headers):
    before = guest.server.project.policy_text
    form = {"key": guest.key, "edit": "k", "k": "7", "base": guest.server.project.policy_sha}
    assert guest.request("POST", "/policy", form, headers).status == 403
    assert guest.server.project.policy_text == before


def test_s4_a_form_needs_the_key_of_this_browser(shared_server, guest):
    key = Visitor(shared_server).key
    for wrong in ("", "x", key):
        form = {"key": wrong, "edit": "k", "k": "7", "base": shared_server.project.policy_sha}
        assert guest.request("POST", "/policy", form).status == 403
    body = {"Content-Type": "application/json"}
    assert guest.request("POST", "/policy", {"key": key}, body).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_s4_other_pages_can_not_even_look(guest, site):
    for path in ("/open", "/jobs/1/events"):
        assert guest.request("GET", path, headers={"Sec-Fetch-Site": site}).status == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH"])
def test_s4_other_methods_do_nothing(guest, method):
    assert guest.request(method, "/policy").status == 405


def test_s5_s6_every_answer_carries_the_rules(guest):
    for path in ("/open", "/columns", "/static/shoal.js", "/nothing", "/help"):
        headers = guest.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_s5_no_page_has_a_style_or_a_script_in_it(guest):
    for path in ("/open", "/columns", "/promises", "/result", "/history", "/help", "/text"):
        page = guest.get(path).text
        assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:", page)
        assert re.findall(r"<script[^>]*>", page) == ['<script src="/static/shoal.js" defer>']


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "link.csv", "pipe", "..", "\0", "~/x", "project/.."]
)
def test_s7_only_plain_files_below_the_start_folder_are_opened(visitor, tables, name):
    outside = tables.parent / "outside.csv"
    outside.write_text("a,b\n1,2\n")
    (tables / "link.csv").symlink_to(outside)
    os.mkfifo(tables / "pipe")
    assert visitor.post("/table", path=name).status == 404
    assert visitor.server.project.table is None
    for folder in ("..", "/etc", "%2e%2e"):
        assert visitor.get(f"/open?t={folder}").status == 404


def test_s7_a_link_inside_the_start_folder_is_fine(tables):
    (tables / "inside.csv").symlink_to(tables / "patients.csv")
    assert policy_text.within("inside.csv", tables) == (tables / "patients.csv").resolve()


def test_s10_a_large_body_is_refused_before_it_is_read(guest):
    answer = guest.request("POST", "/policy", {"key": ""}, {"Content-Length": "2000000"})
    assert answer.status == 413


def test_s10_a_large_body_of_no_stated_length_is_cut_off(guest):
    door = guest.server.door
    connection = http.client.HTTPConnection(door.host, door.port, 10)
    headers = {"Origin": door.origin, "Cookie": guest.cookie}
    pieces = iter([b"x" * 65_536] * 16)
    connection.request("POST", "/policy", pieces, headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_s10_a_form_of_too_many_fields_is_none(guest):
    form = [("key", guest.key)] + [("n", "")] * 20_000
    assert guest.request("POST", "/nothing", form).status == 403
    assert guest.request("POST", "/nothing", form[:-1]).status == 404


def test_s4_a_web_socket_is_closed_before_any_route_sees_it(shared_server):
    shown = []

    async def send(message):
        shown.append(message)

    guard = Guard(None, shared_server.door)
    asyncio.run(guard({"type": "websocket"}, None, send))
    assert shown == [{"type": "websocket.close"}]


def test_s10_twelve_hours_without_a_visit_end_a_visit():
    now = [0.0]
    door = Door("127.0.0.9", 80, lambda: now[0])
    cookie = door.enter(door.new_link())
    now[0] += guard.IDLE_SECONDS - 1
    assert door.knows(cookie)
    now[0] += guard.IDLE_SECONDS
    assert not door.knows(cookie)


def test_s10_quit_clears_what_the_browser_keeps(server, visitor):
    answer = visitor.post("/quit")
    assert answer.headers["clear-site-data"] == '"cache", "cookies", "storage"'
    assert not server.door.knows(visitor.cookie.removeprefix(f"{COOKIE}="))


def test_s10_eight_windows_listen_and_no_more(shared_server, guest):
    job = shared_server.jobs._all["listened"] = Job("listened", "draft", {}, state="done")
    shared_server.streams = MOST_STREAMS
    try:
        assert guest.get("/jobs/listened/events").status == 503
        shared_server.streams -= 1
        assert guest.get("/jobs/listened/events").status == 200
        assert shared_server.streams == MOST_STREAMS - 1  # a stream that ended is counted no more
    finally:
        shared_server.streams = 0
        del shared_server.jobs._all[job.id]


SAFE_LOADERS = ("policy_text.py", "project.py")  # which load with loaders that are safe


def test_s11_yaml_is_read_safely_and_nothing_is_unpickled():
    for text in ("!!python/object/apply:os.getcwd []", "a: !!python/name:os.system"):
        with pytest.raises(InputError):
            read(text)
    for path in (Path(guard.__file__).parent).glob("*.py"):
        tree = ast.parse(path.read_text())
        names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        names |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert not names & {"pickle", "marshal", "shelve", "multiprocessing", "dill"}, path.name
        loads = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == "load"]
        used = [ast.unparse(n.value) for n in loads]
        assert "yaml" not in used or path.name in SAFE_LOADERS
