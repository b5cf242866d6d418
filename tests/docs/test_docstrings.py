"""Docstrings are whole sentences: none was cut into strings by a tool that re-wrapped the code."""

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "surepick"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_no_docstring_is_cut_by_quotation_marks_at_the_end_of_a_line():
    cut = [
        f"{path}: {doc}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, DOCUMENTED)
        and re.search(r' "\n\s*"', doc := ast.get_docstring(node, clean=False) or "")
    ]
    assert cut == []
