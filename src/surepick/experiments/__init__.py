"""Experiments: many cases on many workers, and the tables of the paper."""

from surepick.experiments.cases import Case, Row, run_case
from surepick.experiments.executors import ClusterError
from surepick.experiments.paper import EXPERIMENTS, Settings, cases_of, experiments_named, methods_named
from surepick.experiments.reproduction import Reproduction, reproduce
from surepick.experiments.rows import read_rows, write_parquet
from surepick.experiments.running import CasesFailedError, Failure, RunProgress, run_cases
from surepick.experiments.specs import instance_from_spec, policy_from_spec, policy_spec
from surepick.experiments.theory_report import theory_report

__all__ = [
    "EXPERIMENTS",
    "Case",
    "CasesFailedError",
    "ClusterError",
    "Failure",
    "Reproduction",
    "Row",
    "RunProgress",
    "Settings",
    "cases_of",
    "experiments_named",
    "instance_from_spec",
    "methods_named",
    "policy_from_spec",
    "policy_spec",
    "read_rows",
    "reproduce",
    "run_case",
    "run_cases",
    "theory_report",
    "write_parquet",
]
