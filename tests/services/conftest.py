"""Servers that several modules share, since they take seconds to start."""

import pytest

from kafka_broker import broker_in, why_not


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """The address of a Kafka broker."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with broker_in(tmp_path_factory.mktemp("kafka")) as address:
        yield address
