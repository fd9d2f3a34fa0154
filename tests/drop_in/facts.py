# SPDX-License-Identifier: Apache-2.0
"""What the cases show of programs of the distribution. A fact stands at the case that shows it;
compatibility.py makes docs/compatibility.md of them."""
import collections

Works = collections.namedtuple("Works", "program package what how")
Fails = collections.namedtuple("Fails", "program package why")
facts = []


def works(program, package, what, how):
    """Of a case: the program of that Debian package does `what`, where it is run as `how` says, in
    which IP stands for an address of the host."""
    return recorder(Works(program, package, what, how))


def fails(program, package, why):
    """Of a case that shows that it does not work, or of no case where nothing is to be shown."""
    return recorder(Fails(program, package, why))


def recorder(fact):
    if any("|" in cell for cell in fact):
        raise ValueError(f"{fact}: a table's cell has no |")
    facts.append(fact)
    return lambda function: function
