"""Utility and risk of a release, one measure per file."""

from shoal.utility.average_class_size import AverageClassSize
from shoal.utility.class_sizes import class_sizes
from shoal.utility.classification import Classification
from shoal.utility.discernibility import Discernibility
from shoal.utility.gcp import GlobalCertaintyPenalty
from shoal.utility.generalized_loss import GeneralizedLoss
from shoal.utility.risk import JournalistMax, Marketer, ProsecutorMax, ProsecutorMean
from shoal.utility.squared_error import InformationLossPercent, SquaredError, SquaredErrorNormalised

__all__ = [
    "AverageClassSize",
    "Classification",
    "Discernibility",
    "GeneralizedLoss",
    "GlobalCertaintyPenalty",
    "InformationLossPercent",
    "JournalistMax",
    "Marketer",
    "ProsecutorMax",
    "ProsecutorMean",
    "SquaredError",
    "SquaredErrorNormalised",
    "class_sizes",
]
