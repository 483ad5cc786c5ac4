"""(k,l)-diversity: k subjects and l different values of every listed attribute in each class.

Named by Wu, Ye, Xu, Pei (k-means++ t-closeness) among the models that grew out of k-anonymity; the
list of references that would define it is lost.
Reading, ours: at least k distinct subjects and at least l different sensitive values in every
class. So it asks what p-sensitive k-anonymity asks, under the other name. A model of the same name
for tables with transactions (Gong, Yang, Luo 2016) is another one and not meant here.
"""

from dataclasses import dataclass
from typing import ClassVar

from shoal.data.option import parameter
from shoal.privacy.value_counts import DifferentValues


@dataclass(frozen=True)
class KLDiversity(DifferentValues):
    """k-anonymity, and at least l different values of each listed attribute in every class."""

    model: ClassVar[str] = "k-l-diversity"
    source: ClassVar[str] = (
        "named in Wu, Ye, Xu, Pei (k-means++ t-closeness); its definition is lost, this is our"
        " reading"
    )
    definition: ClassVar[str] = (
        "Every class has at least k distinct subjects and at least l different values of each"
        " listed attribute (our reading of a model whose definition is lost)."
    )
    letter: ClassVar[str] = "l"

    attributes: tuple[str, ...] = parameter("sensitive attributes, each on its own")
    k: int = parameter("least number of distinct subjects in a class", low=2)
    l: int = parameter("least number of different values in a class", low=1)
