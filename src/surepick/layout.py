"""How plans are drawn; `surepick.core.layout` is where it lives."""

from surepick.core.layout import *  # noqa: F403
