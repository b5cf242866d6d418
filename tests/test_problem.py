import surepick as sp


def test_equal_plans_are_merged_and_reported():
    problem = sp.Problem([[1, 0], [0, 1], [1, -0.0]], plan_names=["a", "b", "c"])
    assert problem.plan_names == ("a", "b")
    assert problem.duplicates == (("c", "a"),)
    assert problem.plan("c") == 0
