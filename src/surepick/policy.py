"""What the author of a policy imports; `surepick.core.policy` is where it lives."""

from surepick.core.policy import *  # noqa: F403
