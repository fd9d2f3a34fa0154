# SPDX-License-Identifier: Apache-2.0
"""Numbers as users write them, and as figures show them."""
import re

FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
DECIMAL = {"": 1, "K": 10 ** 3, "M": 10 ** 6, "G": 10 ** 9}
LARGEST = 1e18
NUMBER = re.compile(r"(\d+(?:\.\d+)?)([KMG]?)\Z", re.IGNORECASE)


def parse_number(text, factors=FACTORS):
    """"4K" is 4096, "0.5" is 0.5; a whole number is an int. ValueError on anything else."""
    found = NUMBER.match(str(text).strip())
    if not found:
        raise ValueError(f"{text!r} is not a number such as 64, 0.5, 4K or 1M")
    value = float(found[1]) * factors[found[2].upper()]
    if value > LARGEST:
        raise ValueError(f"{str(text)[:20]}... is larger than {LARGEST:g}")
    return int(value) if value == int(value) else value


def short(value):
    """4096 is "4K", 0.5 is "0.5"; what is no number stays as it is."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    for name, factor in reversed(FACTORS.items()):
        if value >= factor and value % factor == 0:
            return f"{value // factor:g}{name}"
    return f"{value:g}"


def significant(value, digits=3):
    """Three digits that count, without exponents."""
    if value is None:
        return "-"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
