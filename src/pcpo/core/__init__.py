"""The mathematics of constrained policy updates on pytrees. Knows no environment, no network, no config, no file."""

from pcpo.core.types import LocalModel as LocalModel
from pcpo.core.types import Status as Status
from pcpo.core.types import StepInfo as StepInfo
from pcpo.core.types import Surrogates as Surrogates
from pcpo.core.types import UpdateRule as UpdateRule
