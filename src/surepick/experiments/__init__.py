"""The research harness: cases x policies x seeds -> rows -> summary -> table or figure."""

from surepick.experiments.cases import Case, Row, run_case
from surepick.experiments.rows import read_rows
from surepick.experiments.running import CasesFailedError, Failure, RunProgress, run_cases
from surepick.experiments.specs import instance_from_spec, policy_from_spec, policy_spec
from surepick.experiments.studies import STUDIES, study_named
from surepick.experiments.study import Family, Method, Result, Settings, Study, run_study
from surepick.experiments.workers import ClusterError

__all__ = [
    "STUDIES",
    "Case",
    "CasesFailedError",
    "ClusterError",
    "Failure",
    "Family",
    "Method",
    "Result",
    "Row",
    "RunProgress",
    "Settings",
    "Study",
    "instance_from_spec",
    "policy_from_spec",
    "policy_spec",
    "read_rows",
    "run_case",
    "run_cases",
    "run_study",
    "study_named",
]
