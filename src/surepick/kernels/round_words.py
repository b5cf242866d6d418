"""The first random words of a round's generator, computed in compiled code.

`simulation.round_rng(seed, r)` is NumPy's `default_rng(SeedSequence(seed, spawn_key=(stream, r)))`.
Making that object takes about 20 microseconds, more than many a round. A policy that draws its decision
from the first four 64-bit words of the generator (`words_of`) can have the same words from `first_words`
in a fraction of one: SeedSequence's hash and PCG64's seeding and output, step by step as NumPy documents
and fixes them. A test compares them with NumPy.

The four words are the state of xoshiro256++ (Blackman & Vigna), from which compiled code draws on.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.kernels.compiled import compiled

WordArray: TypeAlias = npt.NDArray[np.uint64]

N_WORDS = 4
_POOL = 4  # SeedSequence's pool, in words of 32 bits
_MASK = 0xFFFFFFFF
_INIT_A, _MULT_A = 0x43B0D7E5, 0x931E8875
_INIT_B, _MULT_B = 0x8B51F9DD, 0x58F38DED
_MIX_L, _MIX_R = 0xCA01F9DD, 0x4973F715
_PCG_HIGH, _PCG_LOW = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)
_U1, _U11, _U12, _U32, _U58, _U63 = (np.uint64(n) for n in (1, 11, 12, 32, 58, 63))
_U64, _U17, _U23, _U41, _U19, _U45 = (np.uint64(n) for n in (64, 17, 23, 41, 19, 45))
_LOW32 = np.uint64(_MASK)
_ZERO = np.uint64(0)


def words_of(rng: np.random.Generator) -> WordArray:
    """Four 64-bit words of this generator.

    >>> words_of(np.random.default_rng(0)).tolist()[0]
    11749869230777074271
    """
    return rng.integers(0, 2**64, N_WORDS, dtype=np.uint64)


def entropy_of(seed: int, stream: int) -> npt.NDArray[np.int64]:
    """Seed and stream as the 32-bit words that SeedSequence hashes; the words of the round number follow."""
    words = _words32(seed)
    words += [0] * (_POOL - len(words))
    return np.array(words + _words32(stream), dtype=np.int64)


def _words32(number: int) -> list[int]:
    words = [number & _MASK]
    while number := number >> 32:
        words.append(number & _MASK)
    return words


@compiled
def first_words(entropy: npt.NDArray[np.int64], n_round: int, out: WordArray) -> None:
    """The four words that `words_of(round_rng(seed, n_round))` gives, into `out`."""
    pool = _mixed(entropy, n_round)
    high, low, inc_high, inc_low = _generated(pool)
    inc_high = (inc_high << _U1) | (inc_low >> _U63)
    inc_low = (inc_low << _U1) | _U1
    # state = 0, step, add the seed, step
    low_sum = inc_low + low
    carry = _U1 if low_sum < low else _ZERO
    high, low = inc_high + high + carry, low_sum
    high, low = _step(high, low, inc_high, inc_low)
    for i in range(N_WORDS):
        high, low = _step(high, low, inc_high, inc_low)
        out[i] = _rotate_right(high ^ low, high >> _U58)


@compiled
def _hash(value: int, multiplier: int, times: int) -> int:
    """SeedSequence's hashmix, with the multiplier before and after."""
    value = (value ^ multiplier) & _MASK
    value = (value * ((multiplier * times) & _MASK)) & _MASK
    return value ^ (value >> 16)


@compiled
def _mix(x: int, y: int) -> int:
    value = (((x * _MIX_L) & _MASK) - ((y * _MIX_R) & _MASK)) & _MASK
    return value ^ (value >> 16)


@compiled
def _stir(pool: tuple[int, int, int, int], word: int, a: int) -> tuple[tuple[int, int, int, int], int]:
    """Mix one more word of entropy into every word of the pool."""
    p0, p1, p2, p3 = pool
    p0 = _mix(p0, _hash(word, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p1 = _mix(p1, _hash(word, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p2 = _mix(p2, _hash(word, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p3 = _mix(p3, _hash(word, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    return (p0, p1, p2, p3), a


@compiled
def _mixed(entropy: npt.NDArray[np.int64], n_round: int) -> tuple[int, int, int, int]:
    """SeedSequence's pool for this entropy followed by the round number."""
    a = _INIT_A
    p0 = _hash(entropy[0], a, _MULT_A)
    a = (a * _MULT_A) & _MASK
    p1 = _hash(entropy[1], a, _MULT_A)
    a = (a * _MULT_A) & _MASK
    p2 = _hash(entropy[2], a, _MULT_A)
    a = (a * _MULT_A) & _MASK
    p3 = _hash(entropy[3], a, _MULT_A)
    a = (a * _MULT_A) & _MASK
    # every word of the pool into every other
    p1 = _mix(p1, _hash(p0, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p2 = _mix(p2, _hash(p0, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p3 = _mix(p3, _hash(p0, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p0 = _mix(p0, _hash(p1, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p2 = _mix(p2, _hash(p1, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p3 = _mix(p3, _hash(p1, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p0 = _mix(p0, _hash(p2, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p1 = _mix(p1, _hash(p2, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p3 = _mix(p3, _hash(p2, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p0 = _mix(p0, _hash(p3, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p1 = _mix(p1, _hash(p3, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    p2 = _mix(p2, _hash(p3, a, _MULT_A))
    a = (a * _MULT_A) & _MASK
    pool = (p0, p1, p2, p3)
    for i in range(_POOL, len(entropy)):
        pool, a = _stir(pool, entropy[i], a)
    pool, a = _stir(pool, n_round & _MASK, a)
    if n_round >> 32:
        pool, a = _stir(pool, n_round >> 32, a)
    return pool


@compiled
def _generated(pool: tuple[int, int, int, int]) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """SeedSequence's generate_state: four words of 64 bits from the pool."""
    b = _INIT_B
    w0, b = _pair(pool[0], pool[1], b)
    w1, b = _pair(pool[2], pool[3], b)
    w2, b = _pair(pool[0], pool[1], b)
    w3, b = _pair(pool[2], pool[3], b)
    return w0, w1, w2, w3


@compiled
def _pair(low: int, high: int, b: int) -> tuple[np.uint64, int]:
    first = _hash(low, b, _MULT_B)
    b = (b * _MULT_B) & _MASK
    second = _hash(high, b, _MULT_B)
    return (np.uint64(second) << _U32) | np.uint64(first), (b * _MULT_B) & _MASK


@compiled
def _step(
    high: np.uint64, low: np.uint64, inc_high: np.uint64, inc_low: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """state * multiplier + inc, in 128 bits."""
    # low * _PCG_LOW in full, by halves of 32 bits
    a, b = low >> _U32, low & _LOW32
    c, d = _PCG_LOW >> _U32, _PCG_LOW & _LOW32
    middle = b * c + ((b * d) >> _U32)
    other = a * d + (middle & _LOW32)
    new_high = a * c + (middle >> _U32) + (other >> _U32) + low * _PCG_HIGH + high * _PCG_LOW
    new_low = low * _PCG_LOW
    total = new_low + inc_low
    carry = _U1 if total < new_low else _ZERO
    return new_high + inc_high + carry, total


@compiled
def _rotate_right(word: np.uint64, by: np.uint64) -> np.uint64:
    return (word >> by) | (word << ((_U64 - by) & _U63))


@compiled
def next_word(state: WordArray) -> np.uint64:
    """The next 64 bits of xoshiro256++."""
    total = state[0] + state[3]
    result = ((total << _U23) | (total >> _U41)) + state[0]
    shifted = state[1] << _U17
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << _U45) | (state[3] >> _U19)
    return result


@compiled
def uniform(state: WordArray) -> float:
    """A number in (0, 1), never an end."""
    return (float(next_word(state) >> _U12) + 0.5) * 2.0**-52


# The ziggurat of Doornik (2005) for the normal law: 128 boxes of equal area, the tail beginning at _EDGE.
_N_BOXES, _EDGE, _AREA = 128, 3.442619855899, 9.91256303526217e-3
_BOX_MASK = np.uint64(_N_BOXES - 1)


def _boxes() -> npt.NDArray[np.float64]:
    """The right ends x_0 > x_1 > ... > x_128 = 0 of the boxes; x_0 stands for the box with the tail."""
    x = np.zeros(_N_BOXES + 1)
    height = math.exp(-0.5 * _EDGE * _EDGE)
    x[0], x[1] = _AREA / height, _EDGE
    for i in range(2, _N_BOXES):
        x[i] = math.sqrt(-2.0 * math.log(_AREA / x[i - 1] + height))
        height = math.exp(-0.5 * x[i] * x[i])
    return x


_X = _boxes()
_RATIO = _X[1:] / _X[:-1]


@compiled
def normal(state: WordArray) -> float:
    """A standard normal number."""
    while True:
        word = next_word(state)
        u = (float(word >> _U11) + 0.5) * 2.0**-52 - 1.0
        i = np.int64(word & _BOX_MASK)
        if abs(u) < _RATIO[i]:
            return u * _X[i]
        if i == 0:
            return math.copysign(_normal_tail(state), u)
        x = u * _X[i]
        outer = math.exp(-0.5 * (_X[i] * _X[i] - x * x))
        inner = math.exp(-0.5 * (_X[i + 1] * _X[i + 1] - x * x))
        if inner + uniform(state) * (outer - inner) < 1.0:
            return x


@compiled
def _normal_tail(state: WordArray) -> float:
    """A normal number given that it exceeds _EDGE (Marsaglia 1964)."""
    while True:
        x = -math.log(uniform(state)) / _EDGE
        if -2.0 * math.log(uniform(state)) >= x * x:
            return _EDGE + x
