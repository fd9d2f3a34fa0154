# SPDX-License-Identifier: Apache-2.0
"""Bandwidth by the number of streams
Several queue pairs of one process at each end, or a process at each end for each stream."""
network("veth", "loopback")
points(streams=[1, 2, 4, 8], size=["64K"])
quick_points(streams=[1, 2])
volume("128M", quick="2M")
value("bandwidth", "mb_per_s.together", unit="MB/s")

FLOW = "--size {size} --iterations {count} --max-loss 100 --timeout 20"
for name, how in (("UD Send", "--transport ud --op send"),
                  ("UD Write-Record", "--transport ud --op write-record"),
                  ("RC Send", "--transport rc --op send")):
    lane(f"{name}, queue pairs", pair("bandwidth", f"{how} {FLOW} --streams {{streams}}"))
    lane(f"{name}, processes", many("streams", pair("bandwidth", f"{how} {FLOW}")))

figure("streams", "bandwidth", x="streams", title="Bandwidth of all streams together")
