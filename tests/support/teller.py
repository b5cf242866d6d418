"""Another process that measures: python teller.py STORE SESSION, a few a second until it is sure."""

from __future__ import annotations

import sys
import time

from surepick.sessions.session import Session

MEANS = {"ferry": 3.0, "tunnel": 1.0, "bridge": 1.2}

if __name__ == "__main__":
    session = Session.load(sys.argv[1], sys.argv[2])
    while requests := session.ask(worker="second process"):
        for request in requests:
            session.tell(request, MEANS[request.arm])
            time.sleep(0.05)
