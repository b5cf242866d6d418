"""Values that contradict the guarantee: an exit code of their own, and facts in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import surepick as sp
from session_tools import SCALE, Tapes, problem, run_to_end
from surepick.cli import app
from surepick.sessions.session import Session

QUIET, LOUD = SCALE, 4 * SCALE


def ended(tmp_path: Path, scale: float) -> str:
    place = f"sqlite:///{tmp_path / 'plans.db'}"
    session = Session.create(place, "alloys", problem(), policy=sp.CombGapE(delta=0.3))
    run_to_end(session, Tapes(scale=scale))
    return place


def call(command: list[str], store: str) -> Result:
    return CliRunner().invoke(app, [*command, "--store", store])


@pytest.mark.parametrize(("scale", "code"), [(QUIET, 0), (LOUD, 3)])
@pytest.mark.parametrize("command", ["status", "verify", "watch", "run --measure false,{arm} --name alloys"])
def test_an_answer_with_doubts_has_an_exit_code_of_its_own(
    tmp_path: Path, command: str, scale: float, code: int
) -> None:
    store = ended(tmp_path, scale)
    words = [word.replace(",", " ") for word in command.split()]
    assert call(words, store).exit_code == code
    found = call([*words, "--json"], store)
    assert found.exit_code == code
    data = json.loads(found.stdout.splitlines()[-1])
    data = data.get("summary", data)  # `watch` has it in there
    assert data["trusted"] == (code == 0)
    assert bool(data["doubts"]) == (code == 3)
    if code:
        doubt = data["doubts"][0]
        assert doubt["code"] == "noise_larger"
        assert doubt["arm"] in problem().arm_names
        assert doubt["seen"] > doubt["stated"] == SCALE


def test_a_certificate_with_doubts_holds_and_one_without_them_does_not(tmp_path: Path) -> None:
    store = ended(tmp_path, LOUD)
    given = Session.load(store).certificate().to_json()
    file = tmp_path / "certificate.json"
    for data, code in ((given, 3), ({**given, "doubts": [], "trusted": True}, 1)):
        file.write_text(json.dumps(data), encoding="utf-8")
        assert call(["verify", str(file)], store).exit_code == code


def test_a_running_session_with_doubts_is_not_confident_and_says_so(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'plans.db'}"
    session = Session.create(store, "mine", problem(), policy=sp.CombGapE(delta=1e-12))
    tapes = Tapes(scale=LOUD)
    for _ in range(60):
        for request in session.ask():
            session.tell(request, tapes.value(request.token))
    found = call(["status", "--json"], store)
    data = json.loads(found.stdout)
    assert (found.exit_code, data["status"], data["trusted"]) == (0, "running", False)
    assert data["doubts"][0]["text"] in data["sentence"]
