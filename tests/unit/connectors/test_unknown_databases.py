"""Addresses of databases that Shoal does not write to."""

import time

import pytest

from shoal.connectors.database.postgresql import _in_our_words
from shoal.connectors.database.session import DatabaseRefusal
from shoal.connectors.files import check_writable
from shoal.connectors.location import Location, parse_address
from shoal.errors import InputError, PartyError


def test_the_address_of_an_unknown_database_is_refused_as_one_without_its_password():
    with pytest.raises(InputError) as refused:
        check_writable("mysql://ann:secret@host/clinic?table=patients")

    assert "SQLite or PostgreSQL" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_table_in_an_unknown_database_is_refused_without_its_password(shoal):
    result = shoal("profile", "mysql://ann:secret@host/clinic?table=patients", status=2)
    assert result.err == (
        "shoal: input 'mysql://...': is neither a file nor a database that can be read; name a"
        " file, or a table in SQLite or PostgreSQL\n"
    )


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("clinic.db", "sqlite:///clinic.db?table=NAME"),
        ("/data/clinic.sqlite", "sqlite:////data/clinic.sqlite?table=NAME"),
        ("a b%.SQLITE3", "sqlite:///a%20b%25.SQLITE3?table=NAME"),
    ],
)
def test_a_file_named_like_a_database_is_answered_with_the_address_of_a_table_in_it(name, address):
    with pytest.raises(InputError) as refused:
        _ = Location(name).kind

    assert str(refused.value) == (
        f"file '{name}': is named like a database; name a table in it, such as '{address}'"
    )
    assert parse_address(address).location == name


def test_a_message_shows_no_password_of_any_database():
    said = str(InputError("file 'mysql+ssl://ann:secret@host/clinic': is not there"))
    assert said == "file 'mysql+ssl://ann@host/clinic': is not there"


def test_a_message_shows_no_password_whatever_stands_around_the_address():
    said = str(InputError("9postgres://ann:secret@host a://b:c://:d@e://f:g@h ://ann:secret@host"))
    assert said == "9postgres://ann@host a://b@e://f@h ://ann@host"


@pytest.mark.parametrize("part", ["a", "a:/b:", "://", "a://b:c@", "@"])
def test_a_long_name_is_shown_without_delay(part):
    begun = time.thread_time()
    InputError(part * 100_000)
    assert time.thread_time() - begun < 5


@pytest.mark.parametrize("state", ["40001", "40P01", "42P06", "23505"])
def test_a_transaction_that_another_process_crossed_may_succeed_later(state):
    driver = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with pytest.raises(DatabaseRefusal, match=r"meanwhile|same time") as crossed, _in_our_words():
        raise driver.OperationalError("'secret'", status_code=10, sqlstate=state)
    assert isinstance(crossed.value.as_error(str(crossed.value)), PartyError)
