"""p-sensitive k-anonymity: every confidential attribute takes several values in each class.

Truta, Vinay. ICDE Workshops 2006, page 94.
Reading: all texts that stand for no value are one value.
"""

from dataclasses import dataclass
from typing import ClassVar

from shoal.data.option import parameter
from shoal.privacy.value_counts import DifferentValues


@dataclass(frozen=True)
class PSensitiveKAnonymity(DifferentValues):
    """k-anonymity, and at least p different values of each listed attribute in every class."""

    model: ClassVar[str] = "p-sensitive-k-anonymity"
    source: ClassVar[str] = "Truta, Vinay 2006"
    definition: ClassVar[str] = (
        "Every class has at least k distinct subjects and at least p different values of each"
        " listed attribute."
    )
    letter: ClassVar[str] = "p"

    attributes: tuple[str, ...] = parameter("sensitive attributes, each on its own")
    p: int = parameter("least number of different values in a class", low=1)
    k: int = parameter("least number of distinct subjects in a class", low=2)
