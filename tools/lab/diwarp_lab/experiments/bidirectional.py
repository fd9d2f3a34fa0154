# SPDX-License-Identifier: Apache-2.0
"""Bandwidth in both directions at once
"Two runs" have programs of their own, one each way; in "one run" each end sends and receives."""
network("veth", "loopback")
points(size=["1K", "16K", "64K", "256K", "1M"])
quick_points(size=["64K"])
volume("64M", quick="4M")
value("bandwidth", "mb_per_s.together", unit="MB/s")

FLOW = "--size {size} --iterations {count} --max-loss 100 --timeout 20"


def two_runs(how):
    return together(there=pair("bandwidth", f"{how} {FLOW}"),
                    back=pair("bandwidth", f"{how} {FLOW}", ends=(1, 0)))


lane("UD Send, one way", pair("bandwidth", f"--transport ud --op send {FLOW}"))
lane("UD Send, two runs", two_runs("--transport ud --op send"))
lane("UD Send, one run", pair("bandwidth", f"--transport ud --op send --bidirectional {FLOW}"))
lane("RC Send, one way", pair("bandwidth", f"--transport rc --op send {FLOW}"))
lane("RC Send, two runs", two_runs("--transport rc --op send"))
lane("RC Send, one run", pair("bandwidth", f"--transport rc --op send --bidirectional {FLOW}"))

figure("bidirectional", "bandwidth", x="size", title="Bandwidth of both ways together")
