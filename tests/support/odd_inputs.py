"""Odd names, numbers, JSON values and bytes, drawn from a seed: what `fuzzing` gives to what takes input."""

import copy
from typing import Any

NAMES = (
    *("0.0", "1.0", "t0.0", "-1", "--help", "-s", "1e5", "nan", "inf", "12,5", "$(touch pwned)", "`id`"),
    *("; rm -rf x", "a\tb", "a\nb", "", " ", "\u0000", "caf\u00e9", "\u202e", "'", '"', "\\", "{arm}"),
    *("%s", "../x"),
    *("a" * 300, "\ud800", "\u0661\u0662", "\u00b2", "7" * 5000, "<script>", "=1+1", "@SUM(1)"),
)
NUMBERS = (
    *(0, 1, -1, 2, 0.5, 1e-31, 1e31, 1e155, 1e308, -1e308, 5e-324, 2**63, -(2**63), 10**400, 1e10),
    *(float("nan"), float("inf"), True, False),
)


def odd(rng, depth=0):
    """Something that may stand anywhere in JSON."""
    kind = rng.randrange(8)
    if kind < 3:
        return rng.choice(NUMBERS)
    if kind < 5:
        return rng.choice(NAMES)
    if kind == 5 or depth > 3:
        return None
    if kind == 6:
        return [odd(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(NAMES): odd(rng, depth + 1) for _ in range(rng.randrange(3))}


def places(value, at=()):
    """Where something can be changed in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*at, key)
        yield from places(item, (*at, key))


def mutated(rng, value):
    """The value with one to three changes."""
    value = copy.deepcopy(value)
    for _ in range(rng.randrange(1, 4)):
        found = list(places(value))
        if not found:
            return odd(rng)
        *path, last = rng.choice(found)
        part = value
        for key in path:
            part = part[key]
        change = rng.randrange(6)
        if change == 0:
            del part[last]
        elif change == 1 and isinstance(part, list):
            part.append(copy.deepcopy(rng.choice(part)))
        elif change == 2 and isinstance(part, dict):
            part[rng.choice(NAMES)] = part.pop(last)
        elif change == 3:
            nested: Any = []
            for _ in range(rng.choice((5, 60, 120))):
                nested = [nested]
            part[last] = nested
        else:
            part[last] = odd(rng)
    return value


def garbled(rng, text):
    """The text with some of its bytes changed, removed or doubled."""
    data = bytearray(text)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        change = rng.randrange(4)
        if change == 0:
            data[at : at + rng.randrange(8)] = b""
        elif change == 1 and rng.random() < 0.1:
            data[at:at] = rng.choice((b"[", b'{"a":')) * 100_000
        elif change == 1:
            data[at:at] = rng.choice(NAMES).encode(errors="surrogatepass")
        elif change == 2:
            data[at:at] = data[at : at + rng.randrange(20)]
        else:
            data[at:at] = bytes([rng.randrange(256)])
    return bytes(data)
