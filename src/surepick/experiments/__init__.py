"""The research harness: cases x policies x seeds -> rows -> summary -> table or figure."""

from surepick.experiments.cases import Case, Row, run_case
from surepick.experiments.instances import instance_from_spec
from surepick.experiments.running import CasesFailedError, RunProgress, read_rows, run_cases
from surepick.experiments.studies import STUDIES, study_named
from surepick.experiments.study import Family, Method, Result, Settings, Study, run_study

__all__ = [
    "STUDIES",
    "Case",
    "CasesFailedError",
    "Family",
    "Method",
    "Result",
    "Row",
    "RunProgress",
    "Settings",
    "Study",
    "instance_from_spec",
    "read_rows",
    "run_case",
    "run_cases",
    "run_study",
    "study_named",
]
