"""What the author of a policy imports; all that a run may do besides is in `surepick.core.run`."""

from surepick.core.guarantee import GAUSSIAN as GAUSSIAN
from surepick.core.guarantee import SUB_GAUSSIAN as SUB_GAUSSIAN
from surepick.core.guarantee import Guarantee as Guarantee
from surepick.core.policy import Policy as Policy
from surepick.core.policy import check_delta as check_delta
from surepick.core.policy import check_epsilon as check_epsilon
from surepick.core.policy import known_noise_scale as known_noise_scale
from surepick.core.run import Measure as Measure
from surepick.core.run import Run as Run
from surepick.core.run import Standing as Standing
from surepick.core.run import Stop as Stop
