"""Documentation that fails the build: examples run, and everything that exists is described."""

import re
import tomllib

import pytest

import surepick as sp
from page_code import ELSEWHERE, NOT_RUN, PAGES, ROOT, blocks, lines, name_of, reason_not_to_run
from surepick.cli import COMMANDS, command_of

DOCS = ROOT / "docs"
# Made when the site is built.
MADE = re.compile(
    r"^(\.\./)?(gallery/\w+\.(md|svg)|reference/command-line\.md|comb-gap-e-\w+\.svg|tiny\.py)$"
)


def text_of(*parts):
    return DOCS.joinpath(*parts).read_text(encoding="utf-8")


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_the_code_of_the_other_pages_is_run_by_their_tests(page, test):
    assert page in (ROOT / test).read_text(encoding="utf-8")


def test_every_exception_is_used_and_has_a_reason():
    commands = [line for page in PAGES for block in blocks(page) for line in lines(block)]
    for pattern, reason in NOT_RUN:
        assert reason
        assert any(re.search(pattern, line) for line in commands), pattern
    run = [line for line in commands if reason_not_to_run(line) is None]
    assert len(run) > len(commands) / 2


def test_every_block_has_a_language_that_is_checked():
    known = {"python", "console", "toml", "json", "csv", "sh", "text"}
    for page in PAGES:
        for block in blocks(page):
            assert block.language in known, f"{name_of(page)}: a block in {block.language!r}"


@pytest.mark.parametrize("name", sorted(sp.policies.POLICIES))
def test_every_policy_is_described_with_its_guarantee(name):
    assert f"`{name}`" in text_of("guarantees.md")


def test_every_error_class_is_described():
    page = text_of("reference", "python.md")
    known = {"SurepickError"}
    found = [
        (name, {base.strip() for base in bases.split(",")})
        for path in (ROOT / "src").rglob("*.py")
        for name, bases in re.findall(r"^class (\w+Error)\((.*?)\):", path.read_text(encoding="utf-8"), re.M)
    ]
    while more := {name for name, bases in found if bases & known} - known:
        known |= more
    assert len(known) >= 10
    for name in sorted(known):
        assert f"`{name}`" in page, f"add {name} to docs/reference/python.md"


def test_every_public_name_is_in_the_reference():
    page = text_of("reference", "python.md")
    described = {line.rsplit(".", 1)[1] for line in re.findall(r"^::: (\S+)$", page, flags=re.M)}
    modules = {"policies", "policy", "problems", "simulation", "__version__", "SurepickError"}
    missing = sorted(set(sp.__all__) - described - modules)
    assert not missing, f"add {missing} to docs/reference/python.md, as ::: surepick.module.Name"


def test_every_extra_is_described():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = text_of("start", "first-decision.md")
    for name in extras["optional-dependencies"]:
        assert f"`{name}`" in page or f"[{name}]" in page, name


def test_every_command_and_every_option_says_what_it_is_for():
    for name in COMMANDS:
        command = command_of(name)
        assert command.help, name
        for parameter in command.params:
            assert parameter.help, f"{name}: {parameter.name}"


def test_every_command_is_on_some_page():
    told = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in COMMANDS:
        assert f"surepick {name}" in told or f"`{name}`" in told, name


def test_every_link_between_documents_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8")):
            if MADE.match(target):
                continue
            assert (page.parent / target).exists(), f"{name_of(page)} links to {target}"


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        assert str(page.relative_to(DOCS)) in navigation, f"add {page.name} to the nav of mkdocs.yml"


def test_nothing_tells_of_places_on_the_machine_it_was_written_on():
    for page in PAGES:
        assert not re.search(r"/(work|root|home/\w+)/", page.read_text(encoding="utf-8")), name_of(page)


def test_the_session_in_the_picture_of_the_page_can_be_measured(monkeypatch):
    pytest.importorskip("PIL")
    monkeypatch.syspath_prepend(str(DOCS))
    import pictures

    assert pictures._example("memory://", n=14).view().n_measured == 14
