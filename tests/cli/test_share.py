"""What is sent to others holds, and what was changed does not."""

import json

import pytest

from command_line import drive, surepick, view


@pytest.fixture
def decided(folder):
    surepick("new", "trips.csv", "--epsilon", "2")
    drive()
    assert view()["state"] == "confident"
    return folder


def test_every_file_is_written_by_its_ending_and_holds_elsewhere(decided):
    names = ["report.html", "log.json", "certificate.json", "values.csv", "values.xlsx", "backup.db"]
    said = surepick("export", *(word for name in names for word in ("-o", name)), "--json")
    assert said.code == 0, said.err
    assert said.json["files"] == names
    assert surepick("export", "-o", "report.html").code == 2
    assert surepick("export", "-o", "report.html", "-o", "backup.db", "--force").code == 0
    assert surepick("export", "-o", "surepick.db", "--force").code == 2  # the store itself
    assert view()["state"] == "confident"
    (decided / "surepick.db").unlink()
    for files in ("report.html", "log.json", "certificate.json log.json", "report.html certificate.json"):
        checked = surepick("verify", *files.split(), "--json")
        assert (checked.code, checked.json["holds"]) == (0, True), checked
    assert surepick("verify", "--store", "backup.db").code == 0
    assert view("--store", "backup.db")["state"] == "confident"
    assert surepick("verify", "values.csv").code == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Take &quot;", "Keep &quot;"),
        ("1 time in 20", "1 time in 99"),
        ("delta</td><td>0.05", "delta</td><td>0.01"),
    ],
)
def test_a_report_that_says_something_else_than_its_log_does_not_hold(decided, old, new):
    surepick("export", "-o", "report.html")
    page = (decided / "report.html").read_text()
    assert old in page
    (decided / "report.html").write_text(page.replace(old, new))
    said = surepick("verify", "report.html", "--json")
    assert (said.code, said.json["holds"]) == (1, False)
    (decided / "report.html").write_text(page + "<p>one more claim</p>")
    assert surepick("verify", "report.html").code == 1


def test_a_changed_log_or_certificate_does_not_hold(decided):
    surepick("export", "-o", "log.json", "-o", "certificate.json")
    data = json.loads((decided / "log.json").read_text())
    body = next(event for event in data["log"]["events"] if '"value' in event["body"])
    body["body"] = body["body"].replace(".", "9.", 1)
    (decided / "forged.json").write_text(json.dumps(data))
    assert surepick("verify", "forged.json").code == 1
    surepick("new", "trips.csv", "-s", "second")
    assert surepick("verify", "certificate.json").code == 0, "it names its session"
    certificate = json.loads((decided / "certificate.json").read_text())
    (decided / "certificate.json").write_text(json.dumps({**certificate, "n_measured": 7}))
    assert surepick("verify", "certificate.json").code == 1
    assert surepick("verify", "certificate.json", "log.json").code == 1


def test_a_signature_is_checked_with_its_key(decided):
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    for name in ("mine", "other"):
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
        public = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
        (decided / f"{name}.pem").write_bytes(private)
        (decided / f"{name}.pub").write_bytes(public)
    assert surepick("export", "-o", "certificate.json", "--sign", "mine.pem").code == 0
    assert surepick("verify", "certificate.json", "--public-key", "mine.pub").code == 0
    assert surepick("verify", "certificate.json", "--public-key", "other.pub").code == 1
    assert "not checked" in surepick("verify", "certificate.json").out
    assert surepick("verify", "--public-key", "mine.pub", "--json").error["field"] == "public_key"


def test_a_running_session_has_a_report_and_no_certificate(folder):
    surepick("new", "trips.csv")
    drive(5)
    assert surepick("export", "-o", "report.html").code == 0
    assert surepick("verify", "report.html").code == 0
    assert surepick("export", "-o", "certificate.json").code == 2
