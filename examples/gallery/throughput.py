"""A flow line with 605 or 3,249 designs: the demonstration of PyPRS, rebuilt

Jobs pass three stations; service times are exponential with rates s1 + s2 + s3 = L, and stations 2 and 3 have
room for b2 + b3 = L jobs, beyond which the station before is blocked. Which design has the largest
throughput? One simulation runs 2,000 jobs to warm up and returns the throughput of the next 50. PyPRS, a
package for parallel ranking and selection (github.com/simulation-optimization/PyPRS), describes this under "A
Demo Application"; the code here follows that description. L = 12 gives 605 designs and L = 20 gives 3,249.
PyPRS reports L = 50, 57,624 designs: its KT procedure takes 6,170,721 simulations on average, 107 a design,
its GSP 12,318,493. The noise is learned. The answer is judged by the exact throughput in the long run, from
the Markov chain of each design. `python throughput.py 20` takes some minutes: 41,650 simulations for the best
of 3,249 within 0.3, 13 a design.
"""

import sys

import numpy as np
from drawing import CHOSEN, OTHER, panels

import surepick as sp

WARM_UP, COUNTED = 2_000, 50
EPSILON = 0.3  # the difference in throughput that does not matter


def designs(total):
    """All (s1, s2, s3, b2, b3) of whole numbers, each at least 1."""
    rates = [(a, b, total - a - b) for a in range(1, total - 1) for b in range(1, total - a)]
    return np.array([(*rate, room, total - room) for rate in rates for room in range(1, total)])


def simulated(lines, rng):
    """Return the throughput of one simulation of each of these lines, all at once."""
    rates, rooms, each = lines[:, :3], lines[:, 3:], np.arange(len(lines))
    left = np.zeros((WARM_UP + COUNTED + 1, 3, len(lines)))  # when each job leaves each station; job 0: at 0
    for job in range(1, len(left)):
        service = rng.exponential(size=rates.shape) / rates
        for station in range(3):
            start = left[job - 1, station]
            if station:
                start = np.maximum(start, left[job, station - 1])
            end = start + service[:, station]
            if station < 2:  # blocked until the job that is this far ahead has left the next station
                ahead = np.maximum(job - rooms[:, station], 0)
                end = np.maximum(end, left[ahead, station + 1, each])
            left[job, station] = end
    return COUNTED / (left[-1, 2] - left[WARM_UP, 2])


def exact(line):
    """Return the throughput in the long run; a state is the jobs at stations 2 and 3 and who is blocked."""
    (s1, s2, s3, room2, room3), start = line, (0, 0, False, False)
    states, moves, todo = {start: 0}, [], [start]

    def next_states(at2, at3, first_blocked, second_blocked):
        at2_after = at2 - 1 + first_blocked  # a job that leaves station 2 lets the blocked one in
        if not first_blocked:
            full = at2 == room2
            yield s1, (at2 + (not full), at3, full, second_blocked)
        if at2 and not second_blocked:
            full = at3 == room3
            yield s2, (at2, at3, first_blocked, True) if full else (at2_after, at3 + 1, False, False)
        if at3:
            after = (at2_after, at3, False, False) if second_blocked else (at2, at3 - 1, first_blocked, False)
            yield s3, after

    while todo:
        state = todo.pop()
        for rate, new in next_states(*state):
            if new not in states:
                states[new] = len(states)
                todo.append(new)
            moves.append((states[state], states[new], rate))
    flows = np.zeros((len(states), len(states)))
    for a, b, rate in moves:
        flows[b, a] += rate
        flows[a, a] -= rate
    flows[-1] = 1.0  # in place of one balance equation, which follows from the others: shares add up to 1
    shares = np.linalg.solve(flows, np.eye(len(states))[-1])
    return s3 * sum(share for (_, at3, *_), share in zip(states, shares, strict=True) if at3)


class Simulator:
    """What is measured. Many lines at once take little longer than one, so runs are kept in stock."""

    def __init__(self, lines):
        self.lines, self.stock, self.asked = lines, [[] for _ in lines], set(range(len(lines)))
        self.means = np.array([exact(line) for line in lines])

    def uses(self, arm, n, rng):
        """Return n fresh simulations of this line; the stock of all lines asked for lately is filled up."""
        self.asked.add(arm)
        if len(self.stock[arm]) < n:
            arms, each = np.array(sorted(self.asked)), max(n, 4 if len(self.asked) > 200 else 32)
            for some in np.array_split(arms, 1 + len(arms) * each // 2_000):
                runs = simulated(np.repeat(self.lines[some], each, axis=0), rng)
                for s, own in zip(some.tolist(), runs.reshape(len(some), each).tolist(), strict=True):
                    self.stock[s] += own
            self.asked = {arm}
        taken, self.stock[arm] = self.stock[arm][:n], self.stock[arm][n:]
        return np.array(taken)[:, None]

    def measure(self, counts, rng):
        return np.array([self.uses(s, int(n), rng).sum() if n else 0.0 for s, n in enumerate(counts)])


def main(total=12):
    lines = designs(total)
    simulator, names = Simulator(lines), ["{}-{}-{} | {}-{}".format(*line) for line in lines.tolist()]
    problem = sp.problems.choice(names, goal="largest")
    outcome = sp.simulate(problem, simulator, policy=sp.BetGapE(delta=0.05, epsilon=EPSILON), seed=0)
    best = int(np.argmax(simulator.means))
    print(f"{len(lines):,} designs; the best: {names[best]}, throughput {simulator.means[best]:.3f}")
    print(f"answer: {outcome.plan_name}, {simulator.means[outcome.plan]:.3f}")
    print(f"{outcome.n_measured:,} simulations, {outcome.n_measured / len(lines):.1f} a design")

    figure, axis = panels(1, height=3.6)
    axis.scatter(simulator.means, outcome.counts, s=8, color=OTHER)
    axis.scatter(simulator.means[outcome.plan], outcome.counts[outcome.plan], s=50, color=CHOSEN)
    axis.set(xlabel="exact throughput", ylabel="simulations", yscale="log")
    axis.set_title("every design; the answer in colour")
    return figure


if __name__ == "__main__":
    main(*map(int, sys.argv[1:])).savefig("throughput.png")
