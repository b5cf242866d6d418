"""Builders of problems by kind: knapsacks, transports, paths, trees, matchings, choices, programs.

A builder (`kinds`) makes a `Family` of plans (`family`), which finds its candidates (`candidates`).
"""

from surepick.core.given.arms import NewArm as NewArm
from surepick.core.prior_data import PriorData as PriorData
from surepick.problems.cities import city_hours as city_hours
from surepick.problems.cities import transport_instance as transport_instance
from surepick.problems.cities import whole_transport as whole_transport
from surepick.problems.family import Family as Family
from surepick.problems.kinds.assignment import assign as assign
from surepick.problems.kinds.choice import choice as choice
from surepick.problems.kinds.choice import top_k as top_k
from surepick.problems.kinds.knapsack import knapsack as knapsack
from surepick.problems.kinds.knapsack import knapsack_instance as knapsack_instance
from surepick.problems.kinds.matching import matchings as matchings
from surepick.problems.kinds.path import paths as paths
from surepick.problems.kinds.program import Program as Program
from surepick.problems.kinds.program import as_program as as_program
from surepick.problems.kinds.program import portfolio as portfolio
from surepick.problems.kinds.program import production as production
from surepick.problems.kinds.tour import tours as tours
from surepick.problems.kinds.transport import transport as transport
from surepick.problems.kinds.tree import trees as trees
from surepick.problems.mps import read_program as read_program
from surepick.problems.network import Network as Network
from surepick.problems.network import as_network as as_network
from surepick.problems.truth import Truth as Truth
