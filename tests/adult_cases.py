"""Adult as several tests declare it."""

from typing import Any

COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()


def declared() -> dict[str, Any]:
    """Seven quasi-identifiers, the nominal ones ordered by frequency; occupation is sensitive."""
    names = ["workclass", "marital-status", "race", "sex", "native-country"]
    by_frequency = {"role": "quasi", "type": "ordinal", "order": "frequency"}
    return {
        **{name: dict(by_frequency) for name in names},
        "age": {"role": "quasi", "type": "number", "domain": [17, 90]},
        "education-num": {"role": "quasi", "type": "number", "domain": [1, 16]},
        "occupation": {"role": "sensitive"},
    }
