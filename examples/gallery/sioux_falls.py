"""Sioux Falls: the quickest way through a network that all of transport research knows

24 junctions and 76 one-way links with their free-flow travel times, which are the same in both directions:
the test network of LeBlanc, Morlok and Pierskalla (1975), as the collection *Transportation Networks for
Research* (TNTP) publishes it in `SiouxFalls_net.tntp`. On the day in question some links are slower than
that, and a probe vehicle measures a link to within a minute. There are thousands of ways from junction 1 to
junction 20; the plans are the 40 quickest by the free-flow times.
"""

from drawing import effort, network, panels

import surepick as sp

# junction, neighbour, free-flow minutes; every pair is two links, one each way
ROADS = """1 2 6  1 3 4  2 6 5  3 4 4  3 12 4  4 5 2  4 11 6  5 6 4  5 9 5  6 8 2
7 8 3  7 18 2  8 9 10  8 16 5  9 10 3  10 11 5  10 15 6  10 16 4  10 17 8  11 12 6
11 14 4  12 13 3  13 24 4  14 15 5  14 23 4  15 19 3  15 22 3  16 17 2  16 18 3  17 19 2
18 20 4  19 20 4  20 21 6  20 22 5  21 22 2  21 24 3  22 23 4  23 24 2"""
WHERE = """1 5 51  2 32 51  3 5 44  4 13 44  5 22 44  6 32 44  7 42 38  8 32 38  9 22 38  10 22 32  11 13 32
12 5 32  13 5 5  14 13 19  15 22 19  16 32 32  17 32 26  18 42 32  19 32 19  20 32 5  21 22 5  22 22 13
23 13 13  24 13 5"""
SLOWER = {"8 -> 16": 6.0, "7 -> 18": 7.0, "10 -> 16": 2.0}  # minutes on top, known to the simulation alone


def triples(text):
    words = text.split()
    return list(zip(words[::3], words[1::3], map(float, words[2::3]), strict=True))


def main():
    links = [link for a, b, t in triples(ROADS) for link in ((a, b, t), (b, a, t))]
    problem = sp.problems.paths(links, "1", "20", n_best=40, noise=1.0)
    print(f"{len(links)} links; {problem.completeness}")
    minutes = [t + SLOWER.get(f"{a} -> {b}", 0.0) for a, b, t in links]
    by_guess = problem.plan_names[problem.best([t for *_, t in links])]
    outcome = sp.simulate(problem, minutes, policy=sp.BetGapE(delta=0.05), seed=0)
    print(f"without traffic: {by_guess}")
    print(f"today: {outcome.plan_name}, {outcome.n_measured} measurements")

    figure, left, right = panels(1.2, 1, height=4.6)
    chosen = {e // 2 for e in problem.vector(outcome.plan).nonzero()[0]}  # both directions are one line
    network(
        left, {name: (float(x), y) for name, x, y in triples(WHERE)}, [r[:2] for r in triples(ROADS)], chosen
    )
    left.set_title(outcome.plan_name, fontsize=10)
    effort(right, problem, outcome, sp.limit(problem, minutes))
    return figure


if __name__ == "__main__":
    main().savefig("sioux_falls.png")
