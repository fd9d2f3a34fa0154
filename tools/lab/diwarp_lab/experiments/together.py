# SPDX-License-Identifier: Apache-2.0
"""Two kinds at once, and TCP beside them
What each gets that comes to a bottleneck of 100 Mbit/s, 12.5 MB/s, where another one runs all the
time. A newcomer may get more than half of it for as long as this takes. UD does not look for its rate:
it is paced at half of that."""
network("switch", rate="100M", queue=100, delay=500)
points(size=["64K"], seconds=[2])
quick_points(seconds=[0.2])
quick_rounds(least=1, most=1)
volume("16M", quick="1M")
value("bandwidth", "mb_per_s", unit="MB/s")

FLOW = "--size {size} --max-loss 100 --timeout 30 --iterations"
UD = "--transport ud --op send --rate 6M --window 8"


def kinds(count, seconds):
    return {"UD": pair("bandwidth", f"{UD} {FLOW} {count}"),
            "RD": pair("bandwidth", f"--transport rd --op send {FLOW} {count}"),
            "RC": pair("bandwidth", f"--transport rc --op send {FLOW} {count}"),
            "TCP": plain("tcp", f"--seconds {seconds}")}


MEASURED, ENDLESS = kinds("{count}", "{seconds}"), kinds(20000, 60)
for one in MEASURED:
    for other in ENDLESS:
        if one != other:
            lane(f"{one} beside {other}", beside(MEASURED[one], ENDLESS[other]))

figure("together", "bandwidth", x="lane", title="What the first one gets")
