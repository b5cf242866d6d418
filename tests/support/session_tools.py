"""What the session tests share: a small problem, tapes of measurements, and a simulation that reads them."""

import json
import math

import numpy as np

import surepick as sp
from surepick.errors import StoreError

PLANS = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1], [1, 0, 1, 0]], dtype=float)
SCALE = 0.3
MEANS = np.array([1.0, 0.3, 0.6, -0.2])


def problem(**options):
    """Five plans over four arms."""
    names = ["copper", "tin", "zinc", "lead"]
    return sp.Problem(PLANS, arms=names, **{"noise": SCALE, **options}, goal="largest")


def best_plan(weights):
    """The same plans as a function of the user's own knows them."""
    return PLANS[np.argmax(PLANS @ weights)]


def oracle_problem():
    """The same problem with nothing but that function."""
    return sp.OracleProblem(best_plan, 4, noise=SCALE, arms=problem().arm_names, goal="largest")


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self):
        self.now = 1e9

    def __call__(self):
        return self.now


class Tapes:
    """The measurements that each arm would give, in their order; an environment for `simulate` as well."""

    def __init__(self, seed=0, *, means=MEANS, scale=SCALE):
        self.means = means
        self._noise = scale * np.random.default_rng(seed).standard_normal((len(means), 20_000))
        self._used = np.zeros(len(means), dtype=int)

    def value(self, token):
        """The measurement that stands at the token's place."""
        arm, place = map(int, token.split("."))
        return float(self.means[arm] + self._noise[arm, place])

    def answer(self, request):
        """The measurement that a request asks for."""
        return self.value(request.token)

    def measure(self, counts, rng):
        """Sums of the next places of the tapes, correctly rounded as a session adds them up."""
        sums = np.zeros(len(counts))
        for arm in np.flatnonzero(counts):
            places = range(self._used[arm], self._used[arm] + counts[arm])
            sums[arm] = math.fsum(self.value(f"{arm}.{place}") for place in places)
            self._used[arm] += counts[arm]
        return sums


def answer(session, value, *, n=math.inf, at_once=1, worker=None):
    """Tell what `value` gives for each request, until n values are told or the session has ended."""
    while n > 0 and (requests := session.ask(at_once, worker=worker)):
        for request in requests:
            session.tell(request, value(request), sure=True)
            n -= 1
    return session


def gaussian(means, scale=1.0, seed=0):
    """Return how requests are answered: the mean of the arm, by number or by name, and Gaussian noise."""
    rng = np.random.default_rng(seed)
    by_name = isinstance(means, dict)
    return lambda request: float(
        means[request.arm if by_name else request.probe] + scale * rng.standard_normal()
    )


def run_to_end(session, tapes, *, n=1, worker=None):
    """Ask and tell until the session has ended."""
    return answer(session, tapes.answer, at_once=n, worker=worker).outcome


def tell_all(session, requests, tapes):
    for request in requests:
        session.tell(request, tapes.value(request.token), sure=True)


def holds(session):
    """Whether the log holds, with the certificate of the session as it is read from a file."""
    return session.verify(json.loads(json.dumps(session.certificate().to_json()))).holds


def tell_until_refused(session, tapes):
    """The tokens that were acknowledged, the request whose tell was refused if it was one, and the error."""
    told, request = [], None
    try:
        while requests := session.ask(2):
            for request in requests:
                session.tell(request, tapes.value(request.token))
                told.append(request.token)
            request = None
    except StoreError as error:
        return told, request, str(error)
    return told, None, "it ended"


def same_run(a, b):
    """Whether two runs took the same decisions on the same measurements."""
    return (
        (a.plan, a.state, a.n_measured, a.n_rounds) == (b.plan, b.state, b.n_measured, b.n_rounds)
        and a.counts.tolist() == b.counts.tolist()
        and np.array_equal(a.means, b.means, equal_nan=True)
        and a.standing == b.standing
    )
