import numpy as np
import pytest

from surepick import problems


def hours_between(hours, supplier, demander):
    return hours.numbers[hours.row_names.index(supplier), hours.column_names.index(demander)]


def test_both_tables_name_the_same_cities_in_the_same_order():
    straight, road = problems.city_hours("great-circle"), problems.city_hours("freeway")
    assert straight.numbers.shape == road.numbers.shape == (9, 9)
    assert straight.row_names == road.row_names
    assert straight.column_names == road.column_names


def test_great_circle_hours_are_the_straight_distance_with_its_detour():
    # Portland is 1.2990 degrees north and .8021 degrees east of Boston, at a latitude of about 43.01 degrees;
    # over so short a way the earth is flat, with 111.19 km a degree
    km = 111.19 * np.hypot(1.2990, 0.8021 * np.cos(np.radians(43.01)))
    assert hours_between(problems.city_hours(), "Boston", "Portland") == pytest.approx(
        km * 1.25 / 95, rel=1e-3
    )


def test_freeway_hours_are_miles_over_the_median_speed():
    assert hours_between(problems.city_hours("freeway"), "New York", "Charlotte") == pytest.approx(
        612.0 / 61.1
    )
