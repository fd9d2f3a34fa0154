# SPDX-License-Identifier: Apache-2.0
"""What holds for every row that diwarp-pingpong and diwarp-bandwidth report, whatever the host is busy
with."""
import re

from harness import check

ONE_SIDED = ("read", "atomic")


def check_processor(row, ends=("client", "server")):
    """What each end's process took, while it was measured."""
    times = row["processor"]
    check(set(times) == set(ends), row)
    for end in ends:
        total = times[end]["user_s"] + times[end]["system_s"]
        check(min(times[end].values()) >= 0 and abs(times[end]["total_s"] - total) < 1e-9, row)


def check_latency(row):
    check_processor(row)
    one_sided = row["op"] in ONE_SIDED
    times = row["operation_us" if one_sided else "half_rtt_us"]
    figures = [times[key] for key in ("min", "p50", "p99", "p999", "max")]
    # A turn that lost a message has no time. On a loaded machine that may be each turn of large
    # messages over UD.
    each_lost = (row["transport"] == "ud" and row["size"] > 65536 and figures[-1] == 0 and
                 row["lost"] >= row["iterations"])
    check(figures == sorted(figures) and (figures[0] > 0 or each_lost), f"no order statistics: {row}")
    check(row["measured"] == ("full operation" if one_sided else "half round trip"), row)
    check(row["lost"] >= 0, row)


def check_bandwidth(row):
    check_processor(row)
    check(row["sent"] == row["iterations"], row)
    check(row["received"] + row["lost"] == row["sent"], row)
    whole, most = (number * row["size"] for number in
                   (row["received"], row["received"] + row["partial"]))
    check(whole <= row["valid_bytes"] <= most and row["wrong"] == 0, row)
    check(row["partial"] <= row["lost"], row)
    check(row["partial"] == 0 or row["op"] in ("write-record", "read"), row)
    sent = row["sent"] * row["size"]
    share = row["valid_bytes"] / sent if sent else row["received"] / row["sent"]
    check(abs(row["valid_percent"] - 100 * share) < 1e-6, row)
    check(row["overflowed"] >= 0 and row["received"] + row["partial"] > 0, row)
    check(row["messages_per_s"] > 0 or row["received"] == 0, row)
    check(row["mb_per_s"] > 0 or row["size"] == 0, row)
    if row["transport"] != "ud":
        check(row["lost"] == 0, row)


def check_rows(rows, program, transport, sizes, iterations, operation="send"):
    check([row["size"] for row in rows] == sizes, rows)
    for row in rows:
        check(row["transport"] == transport and row["op"] == operation, row)
        check(row["iterations"] == iterations, row)
        (check_latency if program == "pingpong" else check_bandwidth)(row)


def check_table(text, caption, rows):
    """A line that tells what is alike in all rows, the titles, and the rows: 80 columns are enough."""
    lines = text.splitlines()
    check(len(lines) == rows + 2 and re.match(caption + r"\b", lines[0]), text)
    check(all(len(line) <= 80 for line in lines), text)
    check(len(lines[1]) == 80, text)
