"""Words for people: numbers with their nouns, names cut to length, plans by their pieces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def plural(number: float, one: str, many: str | None = None) -> str:
    """Return the word for a number shown without decimals: `one`, or `many`, which is `one` with an s."""
    return one if 0.5 < number < 1.5 else many or f"{one}s"


def how_many(number: float, one: str, many: str | None = None) -> str:
    """Return the number, with commas at its thousands, and the word in singular or plural."""
    return f"{number:,.0f} {plural(number, one, many)}"


def in_short(count: int) -> str:
    """Return a number of plans as short text, whatever its size.

    >>> in_short(20_000), in_short(61_917_364_224), in_short(2**5000)
    ('20,000', '6.2e10', '1.4e1505')
    """
    if count < 10**6:
        return f"{count:,}"
    power = math.floor(math.log10(count))  # exact to far more digits than are shown
    first = f"{10 ** (math.log10(count) - power):.1f}"
    return f"1.0e{power + 1}" if first == "10.0" else f"{first}e{power}"


def shortened(text: str, length: int, mark: str = "…") -> str:
    """Return the text, or as much of it as fits, with a mark where it is cut off.

    >>> shortened("a very long name", 8), shortened("a very long name", 8, "...")
    ('a very …', 'a ver...')
    """
    return text if len(text) <= length else text[: length - len(mark)] + mark


def first_of(names: Sequence[str], most: int = 8, *, n: int | None = None) -> str:
    """Return the first names with commas, and how many more there are, of n or of all that are given.

    >>> first_of(["road", "rail", "sea"], 2), first_of(["road", "rail"], n=9)
    ('road, rail and 1 more', 'road, rail and 7 more')
    """
    shown = names[:most]
    more = (len(names) if n is None else n) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def counted(pieces: Sequence[str], plan: Iterable[float], join: str = " + ") -> str:
    """Return a name for a plan: the pieces that it uses, and how often.

    >>> counted(["tea", "coffee", "cocoa"], [2.0, 0.0, 1.0])
    '2 x tea + cocoa'
    """
    used = [(name, x) for name, x in zip(pieces, plan, strict=True) if x]
    return join.join(name if x == 1 else f"{x:g} x {name}" for name, x in used) or "nothing"
