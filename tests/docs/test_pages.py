"""Every block of code of the README and of every page runs."""

import pytest

from page_code import ELSEWHERE, PAGES, Reader, blocks, name_of, printed


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in ELSEWHERE and blocks(p)], ids=name_of)
def test_everything_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREPICK_STORE", raising=False)
    told = printed(Reader(tmp_path), page)
    if page.name == "README.md":
        assert "wrong with probability at most 0.05" in told
