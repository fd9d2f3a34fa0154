# SPDX-License-Identifier: Apache-2.0
"""Points: the values of what varies, as an experiment's file and the command line write them."""
import math

from .networks import OPTIONS, setting
from .quantities import parse_number

# Points of these names are whole numbers, from these on.
NUMBERS = {"size": 0, "streams": 1, "clients": 1, "receivers": 1}


class Wrong(Exception):
    """What is wrong with the use of a word; the loader knows the file, and mostly the line."""

    def __init__(self, text, line=None):
        super().__init__(text)
        self.line = line


def point_values(name, values):
    if not isinstance(values, (list, tuple)) or not values:
        raise Wrong(f"{name} needs a list of values, not {values!r}")
    if name in OPTIONS:
        return once(name, [setting(name, value) for value in values])
    if name in NUMBERS:
        return once(name, [whole_number(name, value) for value in values])
    return once(name, [number_or_text(value) for value in values])


def once(name, values):
    """The values, of which each is another point."""
    for number, value in enumerate(values):
        if value in values[:number]:
            raise Wrong(f"{name} has {value!r} twice")
    return values


def wanted_values(name, values):
    """What `only` limits a name to: a list as points() has it, or upto(), above()."""
    return values if isinstance(values, (upto, above)) else point_values(name, values)


def whole_number(name, value):
    try:
        number = parse_number(value)
    except ValueError:
        number = None
    if not isinstance(number, int) or number < NUMBERS.get(name, 1):
        raise Wrong(f"{name} needs whole numbers from {NUMBERS.get(name, 1)} such as 64, 4K or "
                    f"1M, not {value!r}")
    return number


def number_or_text(value):
    try:
        return parse_number(value)
    except ValueError:
        return value


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class upto:
    """In change(): of the points, those up to a value."""

    def __init__(self, most):
        self.most = parse_number(most)

    def __contains__(self, value):
        return is_number(value) and value <= self.most


class above:
    """In change(): of the points, those above a value."""

    def __init__(self, limit):
        self.limit = parse_number(limit)

    def __contains__(self, value):
        return is_number(value) and value > self.limit


def combinations(names, points):
    """[{name: value}] of these names, as the points have them; of no names, one that is empty."""
    found = []
    for point in points:
        one = {name: point[name] for name in names}
        if one not in found:
            found.append(one)
    return found or [{}]
