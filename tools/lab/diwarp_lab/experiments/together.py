# SPDX-License-Identifier: Apache-2.0
"""Two kinds at once, and TCP beside them
Both share a bottleneck of 100 Mbit/s. UD does not look for its rate: it is paced at half of it."""
network("switch", rate="100M", queue=100, delay=500)
points(size=["64K"], seconds=[2])
quick_points(seconds=[0.2])
quick_rounds(least=1, most=1)
volume("16M", quick="1M")
value("first", "first.mb_per_s", unit="MB/s")
value("second", "second.mb_per_s", unit="MB/s")

FLOW = "--size {size} --iterations {count} --max-loss 100 --timeout 30"
KINDS = {"UD": pair("bandwidth", f"--transport ud --op send --rate 6M --window 8 {FLOW}"),
         "RD": pair("bandwidth", f"--transport rd --op send {FLOW}"),
         "RC": pair("bandwidth", f"--transport rc --op send {FLOW}"),
         "TCP": plain("tcp", "--seconds {seconds}")}
for first, second in (("UD", "RD"), ("UD", "RC"), ("RD", "RC"), ("UD", "TCP"), ("RD", "TCP"),
                      ("RC", "TCP")):
    lane(f"{first} beside {second}", together(first=KINDS[first], second=KINDS[second]))

figure("first", "first", x="lane", title="What the first one gets")
figure("second", "second", x="lane", title="What the second one gets")
