"""Behind a proxy that speaks HTTPS: logging in, cookies, and whom to believe about it."""

import re
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from surepick.errors import ParameterError
from surepick.web.settings import Settings
from web_tools import TOKEN, running

PUBLIC = "https://plans.example.org"
BEHIND = {"host": "plans.example.org", "origin": PUBLIC}  # what a proxy passes on of a browser's form
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "server.md"


def log_in(server, headers):
    return server.stranger.post("/login", data={"token": TOKEN}, headers=headers)


OPTIONS = {"allowed_hosts": ("plans.example.org",)}
FORWARDED = {**BEHIND, "x-forwarded-proto": "https"}


def test_behind_a_proxy_people_can_log_in_and_their_cookie_is_secure(store):
    with running(store, trusted_proxies=("127.0.0.0/8",), **OPTIONS) as server:
        answer = log_in(server, FORWARDED)
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"]
        assert "Secure" in cookie
        headers = {**FORWARDED, "cookie": cookie.split(";")[0]}
        assert "middle" in server.stranger.get("/", headers=headers).text
        form = {**headers, "content-type": "application/x-www-form-urlencoded"}
        assert server.stranger.post("/logout", headers=form).status_code == 303
        assert server.stranger.get("/", headers=headers).status_code == 303  # the cookie has ended
        for origin in ("https://evil.example", "http://plans.example.org", "https://plans.example.org:444"):
            assert log_in(server, {**FORWARDED, "origin": origin}).status_code == 403
        plain = log_in(server, {})  # on the machine itself, without the proxy
        assert plain.status_code == 303
        assert "Secure" not in plain.headers["set-cookie"]


def test_forwarded_headers_are_believed_of_a_trusted_proxy_alone(store):
    with running(store, trusted_proxies=("127.0.0.0/8",), **OPTIONS) as server:
        assert log_in(server, {**FORWARDED, "x-forwarded-proto": "javascript"}).status_code == 403
    with running(store, trusted_proxies=("10.0.0.1",), **OPTIONS) as server:
        answer = log_in(server, FORWARDED)
        assert answer.status_code == 403
        assert "--trust-proxy" in answer.text
    with pytest.raises(ParameterError):
        Settings("memory://", TOKEN, trusted_proxies=("everybody",))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return int(opened.getsockname()[1])


def test_the_configuration_for_nginx_in_the_docs_works(store, tmp_path):
    nginx, openssl = shutil.which("nginx") or shutil.which("/usr/sbin/nginx"), shutil.which("openssl")
    if nginx is None or openssl is None:
        pytest.skip("nginx or openssl is not installed; `apt-get install nginx-light openssl` lets this run")
    key, crt, port = tmp_path / "key", tmp_path / "crt", free_port()
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=plans.example.org"]
    subprocess.run([openssl, *words, "-keyout", key, "-out", crt], check=True, capture_output=True)
    found = re.search(r"```text\n(server.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    public = f"https://plans.example.org:{port}"
    with running(store, trusted_proxies=("127.0.0.1",), **OPTIONS) as server:
        site = found[1].replace("listen 443", f"listen 127.0.0.1:{port}")
        site = site.replace("127.0.0.1:8000", server.url.removeprefix("http://"))
        site = re.sub(r"/etc/ssl/\S+\.crt", str(crt), re.sub(r"/etc/ssl/\S+\.key", str(key), site))
        places = "".join(
            f"{what}_temp_path {tmp_path}/{what};\n"
            for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        conf = tmp_path / "nginx.conf"
        conf.write_text(
            f"daemon off;\npid {tmp_path}/pid;\nerror_log {tmp_path}/log;\nevents {{}}\n"
            f"http {{\naccess_log off;\n{places}{site}}}\n"
        )
        process = subprocess.Popen([nginx, "-p", tmp_path, "-c", conf], stderr=subprocess.DEVNULL)
        try:
            _drive_through(port, public)
        finally:
            process.terminate()
            process.wait(timeout=20)


def _drive_through(port, public):
    """Log in and look, as a browser does through the proxy."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    headers = {"host": public.removeprefix("https://"), "origin": public, "accept": "text/html"}
    with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trusting, headers=headers) as client:
        for _ in range(100):
            try:
                client.get("/login")
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        answer = client.post("/login", data={"token": TOKEN})
        assert answer.status_code == 303, answer.text
        cookie = answer.headers["set-cookie"]
        assert "Secure" in cookie
        page = client.get("/", headers={"cookie": cookie.split(";")[0]})
        assert page.status_code == 200
        assert "middle" in page.text
