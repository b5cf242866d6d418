"""Whatever comes in from outside is taken or refused with a `SurepickError`; `make soak` tries far more."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from common import largest, refuses
from surepick.errors import FileError
from surepick.inputs.load import read_problem
from surepick.sessions import codec

FUZZER = Path(__file__).parent / "support" / "fuzzing.py"


@pytest.mark.parametrize(
    ("targets", "inputs"),
    [(("codec", "files", "certificate"), 100), (("csv", "cli"), 40), (("forms", "mcp"), 40)],
)
def test_odd_inputs_are_refused_by_name(targets, inputs):
    words = [word for target in targets for word in ("--target", target)]
    command = [sys.executable, str(FUZZER), *words, "--inputs", str(inputs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    for target in targets:
        (taken,) = re.findall(rf"^{target}: {inputs} inputs, (\d+) taken$", done.stdout, re.M)
        assert 0 < int(taken) < inputs, target


def test_the_fuzzer_sees_an_error_of_ours(monkeypatch):
    import fuzzing

    def broken(*_):
        raise KeyError("name")

    monkeypatch.setitem(fuzzing.TARGETS, "codec", broken)
    assert "KeyError" in (fuzzing.fuzz("codec", 0) or "")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"kind": ' + '{"a": ' * 100_000, '{"kind": 1' + "0" * 5000 + "}"]
)
def test_a_file_that_is_nested_too_deeply_or_holds_endless_numbers_is_refused(text, tmp_path):
    path = tmp_path / "deep.json"
    path.write_text(text)
    with pytest.raises(FileError):
        read_problem(path)


@pytest.mark.parametrize("name", ["plans", "costs", "noise_scale", "arm_names", "minimize"])
def test_a_problem_in_json_without_a_part_is_refused(name):
    part = {k: v for k, v in codec.problem_to_json(largest([[1, 0], [0, 1]])).items() if k != name}
    with refuses("problem", FileError):
        codec.problem_from_json(part)
