# SPDX-License-Identifier: Apache-2.0
"""Builds all guards of a tree at once: an environment variable tells a program which of them is off.

The body of a function with guards stands in the result once for each of them, without it, and once as
it is; the number of the guard that is off chooses. So a tree is compiled once, not once for each guard.
What the compiler evaluates is as it is, whatever is switched off. A guard that stands in no body, such
as one of a constant, has no switch.
"""

VARIABLE = "DIWARP_GUARD_OFF"

HEADER = f"""\
#pragma once
#include <cstdlib>

inline int diwarp_guard_off() {{
  static const int number = [] {{
    const char* text = std::getenv("{VARIABLE}");
    return text != nullptr ? std::atoi(text) : 0;
  }}();
  return number;
}}

constexpr bool diwarp_is_off(int guard) {{
  return !__builtin_is_constant_evaluated() && diwarp_guard_off() == guard;
}}
"""


def switched_body(text, begin, end, numbered):
    """The body of a function, at begin to end of its file's text, with a switch for each guard."""
    variants = [f"if (diwarp_is_off({number})) {{{guard.without(text, begin, end)}\n}} else "
                for number, guard in numbered]
    return f"{''.join(variants)}{{{text[begin:end]}\n}}"


def switched(text, numbered, header):
    """A file's text with a switch for each (number, guard) of it; header is the path of HEADER."""
    bodies = {}
    for number, guard in numbered:
        if guard.function:
            bodies.setdefault(guard.function, []).append((number, guard))
    if not bodies:
        return text
    parts, at = [], 0
    for (begin, end), guards in sorted(bodies.items()):
        parts += [text[at:begin], switched_body(text, begin, end, guards)]
        at = end
    whole = "".join(parts) + text[at:]
    first, newline, rest = whole.partition("#pragma once\n")
    include = f'#include "{header}"\n'
    return f"{first}{newline}{include}{rest}" if newline else f"{include}{whole}"
