"""Behind a proxy that speaks HTTPS: logging in, cookies, and whom to believe about it."""

import pytest

from surepick.errors import ParameterError
from surepick.web.settings import Settings
from web_tools import TOKEN, running

PUBLIC = "https://plans.example.org"
BEHIND = {"host": "plans.example.org", "origin": PUBLIC}  # what a proxy passes on of a browser's form


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
