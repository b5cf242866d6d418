"""What the author of a policy imports; it lives in `surepick.core`: `policy`, `run` and `guarantee`."""

from surepick.core.guarantee import *  # noqa: F403
from surepick.core.policy import *  # noqa: F403
from surepick.core.run import *  # noqa: F403
