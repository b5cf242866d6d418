"""Text can be read on its background, by day and by night."""

import re
from pathlib import Path

import pytest

import surepick.web

STYLE = (Path(surepick.web.__file__).parent / "static" / "style.css").read_text(encoding="utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))
    for block in re.findall(r":root \{(.*?)\n\s*\}", STYLE, flags=re.S)[:2]
)
TEXT = [(front, back) for front in ("ink", "soft", "blue") for back in ("paper", "card")]
TEXT += [(tone, f"{tone}-soft") for tone in ("blue", "orange", "green")]
TEXT += [("ink", "orange-soft"), ("ink", "green-soft"), ("orange", "card")]
DRAWN = [("blue", "card"), ("orange", "card"), ("green", "card"), ("blue", "faint"), ("orange", "faint")]


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_what_is_drawn_have_contrast(scheme):
    for least, pairs in ((4.5, TEXT), (3.0, DRAWN)):
        for front, back in pairs:
            assert contrast(scheme[front], scheme[back]) >= least, (front, back)
