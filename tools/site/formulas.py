"""Formulas: `$...$` in a line and `$$...$$` on lines of its own, written in LaTeX, become MathML.

Browsers typeset MathML themselves, so that a page needs no script and nothing from elsewhere.
"""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

INLINE = r"(?<![\\$\w])\$(?![\s$])([^$\n]+(?:\n[^$\n]+)?)(?<![\s\\])\$(?![\w$])"
BLOCK = re.compile(r"^\$\$\s*(.+?)\s*\$\$\s*$", re.S | re.M)
# names of functions, with what ends before them and whether a bracket or another operator follows
FUNCTION = re.compile(r"(</\w+>)?<mi>(log|ln|exp|max|min|sup|inf|det)</mi>(?=(<mo)?)")
BEFORE_EMPHASIS, AFTER_FENCES = 185, 20  # priorities: code first, then formulas, then everything else


class Inline(InlineProcessor):
    """A formula within a line."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802
        """The formula as MathML, kept from all further rules."""
        return self.md.htmlStash.store(mathml(m[1])), m.start(0), m.end(0)


class Block(Preprocessor):
    """Formulas on lines of their own."""

    def run(self, lines: list[str]) -> list[str]:
        """The page with these as MathML."""

        def stashed(m: re.Match[str]) -> str:
            formula = mathml(m[1], display="block")
            return self.md.htmlStash.store(f'<div class="formula" tabindex="0">{formula}</div>')

        return BLOCK.sub(stashed, "\n".join(lines)).split("\n")


class Formulas(Extension):
    """The extension that Markdown loads."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Register both."""
        md.preprocessors.register(Block(md), "formulas", AFTER_FENCES)
        md.inlinePatterns.register(Inline(INLINE, md), "formula", BEFORE_EMPHASIS)


def mathml(latex: str, display: str = "inline") -> str:
    """The formula as MathML.

    >>> mathml("a_1").split("<mrow>")[1]
    '<msub><mi>a</mi><mn>1</mn></msub></mrow></math>'
    """
    return FUNCTION.sub(_spaced, str(convert(" ".join(latex.split()), display=display)))


def _spaced(m: re.Match[str]) -> str:
    """The name of a function with LaTeX's thin spaces: none after an operator or before a bracket."""
    before, name, operator = m[1] or "", m[2], m[3]
    thin = '<mspace width="0.167em" />'
    left = thin if before and before != "</mo>" else ""
    right = "" if operator else thin
    return f"{before}<mrow>{left}<mi>{name}</mi>{right}</mrow>"


def makeExtension(**options: Any) -> Formulas:  # noqa: N802
    """As Markdown asks for it."""
    return Formulas(**options)
