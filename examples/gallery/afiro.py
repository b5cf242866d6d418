"""NETLIB's AFIRO: a linear program of which five costs are measured and the zeros are known

AFIRO is a small one of the NETLIB linear programs (netlib.org, `lp/data/afiro`): 27 rows, 32 variables, and a
cost of zero for all but five of them. NETLIB's list gives -464.75314286 as its least cost. Here the five
costs are not given but measured, with noise of scale 0.1; that the others are zero is known, and nothing is
spent on them.
"""

from drawing import CHOSEN, effort, panels
from scipy.optimize import linprog

import surepick as sp

# variable, then rows and amounts; "cost" is what is to be least
COLUMNS = """X01 X48 .301 R09 -1 R10 -1.06 X05 1|X02 X21 -1 R09 1 cost -.4|X03 X46 -1 R09 1|X04 X50 1 R10 1
X06 X49 .301 R12 -1 R13 -1.06 X17 1|X07 X49 .313 R12 -1 R13 -1.06 X18 1|X08 X49 .313 R12 -1 R13 -.96 X19 1
X09 X49 .326 R12 -1 R13 -.86 X20 1|X10 X45 2.364 X17 -1|X11 X45 2.386 X18 -1|X12 X45 2.408 X19 -1
X13 X45 2.429 X20 -1|X14 X21 1.4 R12 1 cost -.32|X15 X47 -1 R12 1|X16 X51 1 R13 1
X22 X46 .109 R19 -1 R20 -.43 X27 1|X23 X44 -1 R19 1 cost -.6|X24 X48 -1 R19 1|X25 X45 -1 R19 1|X26 X50 1 R20 1
X28 X47 .109 R22 -.43 R23 1 X40 1|X29 X47 .108 R22 -.43 R23 1 X41 1|X30 X47 .108 R22 -.39 R23 1 X42 1
X31 X47 .107 R22 -.37 R23 1 X43 1|X32 X45 2.191 X40 -1|X33 X45 2.219 X41 -1|X34 X45 2.249 X42 -1
X35 X45 2.279 X43 -1|X36 X44 1.4 R23 -1 cost -.48|X37 X49 -1 R23 1|X38 X51 1 R22 1|X39 R23 1 cost 10"""
RIGHT = {"X50": 310, "X51": 300, "X05": 80, "X17": 80, "X27": 500, "R23": 44, "X40": 500}  # else 0


def afiro():
    """Return the problem and the true costs; rows named R are equations, rows named X upper limits."""
    costs, rows = {}, {}
    for column in COLUMNS.replace("\n", "|").split("|"):
        name, *words = column.split()
        amounts = dict(zip(words[::2], map(float, words[1::2]), strict=True))
        costs[name] = amounts.pop("cost", 0.0)
        for row, amount in amounts.items():
            rows.setdefault(row, {})[name] = amount
    table = {
        kind: [[own.get(name, 0.0) for name in costs] for row, own in rows.items() if row[0] == kind]
        for kind in "XR"
    }
    right = {kind: [RIGHT.get(row, 0.0) for row in rows if row[0] == kind] for kind in "XR"}
    problem = sp.Polytope(
        A_ub=table["X"],
        b_ub=right["X"],
        A_eq=table["R"],
        b_eq=right["R"],
        arms=list(costs),
        known={name: 0.0 for name, cost in costs.items() if cost == 0},
        noise=0.1,
        goal="smallest",
    )
    return problem, costs


def main():
    problem, costs = afiro()
    means, rows = list(costs.values()), problem.rows
    print(
        f"{len(rows.b_ub) + len(rows.b_eq)} rows, {len(means)} variables, {sum(map(bool, means))} with a cost"
    )
    outcome = sp.simulate(problem, costs, policy=sp.BetGapE(delta=0.05), seed=0)
    value = problem.vector(outcome.plan) @ means
    print(f"cost {value:.4f} after {outcome.n_measured} measurements: {outcome.state}")
    given = linprog(means, rows.a_ub, rows.b_ub, rows.a_eq, rows.b_eq)
    print(f"with all costs given, HiGHS (scipy) prints {given.fun:.4f}")

    figure, left, side = panels(1.2, 1, height=4.6)
    amounts = {name: x for name, x in zip(costs, problem.vector(outcome.plan), strict=True) if x > 1e-9}
    left.barh(list(amounts)[::-1], list(amounts.values())[::-1], color=CHOSEN, height=0.6)
    left.set_title("the answer: amounts that are not zero", fontsize=10)
    effort(side, problem, outcome, most=5)
    return figure


if __name__ == "__main__":
    main().savefig("afiro.png")
