# SPDX-License-Identifier: Apache-2.0
"""What rounds come to: quartiles, when they have settled, and whether a share is as asked."""
import math


def quantile(ordered, share):
    """Linear between the two nearest, as the tools have it."""
    rank = share * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def summary(values):
    """{"count", "min", "low", "median", "high", "max"}; None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return {"count": len(ordered), "min": ordered[0], "low": quantile(ordered, 0.25),
            "median": quantile(ordered, 0.5), "high": quantile(ordered, 0.75), "max": ordered[-1]}


def settled(values, percent, last=2):
    """Whether the last rounds moved neither the median nor a quartile by more than this share of
    the median."""
    if len(values) <= last + 1:
        return False
    now, before = summary(values), summary(values[:-last])
    limit = abs(now["median"]) * percent / 100
    return all(abs(now[name] - before[name]) <= limit for name in ("low", "median", "high"))


def deviations(events, trials, share):
    """How many standard deviations the number of events is off, if each of the trials has one with
    this probability."""
    spread = math.sqrt(trials * share * (1 - share))
    off = events - trials * share
    return off / spread if spread else math.inf if off else 0.0
