"""What all routes share."""

from __future__ import annotations

from dataclasses import dataclass, field

from surepick.web.live import Hub
from surepick.web.security import Keys
from surepick.web.session_cache import SessionCache
from surepick.web.settings import Settings
from surepick.web.templating import Templates
from surepick.web.uploads import Uploads


@dataclass(frozen=True)
class Context:
    """Settings, secrets, sessions, streams, templates and uploads of one running dashboard."""

    settings: Settings
    keys: Keys
    sessions: SessionCache
    hub: Hub
    templates: Templates
    uploads: Uploads = field(default_factory=Uploads)
