"""Update rules as pairs of pure functions: ``init(num_constraints) -> state``, ``update(model, state) -> step``.

Each rule turns a `pcpo.core.LocalModel` into a step; none knows what a policy or an environment is.
"""

from pcpo.core.metric import Metric as Metric
from pcpo.rules._adaptive import AdaptiveOptions as AdaptiveOptions
from pcpo.rules._adaptive import AdaptiveState as AdaptiveState
from pcpo.rules._adaptive import Choice as Choice
from pcpo.rules._adaptive import Verdict as Verdict
from pcpo.rules._cpo import cpo as cpo
from pcpo.rules._pcpo import pcpo as pcpo
from pcpo.rules._penalty import fpo as fpo
from pcpo.rules._penalty import pdo as pdo
from pcpo.rules._trpo import trpo as trpo
