# SPDX-License-Identifier: Apache-2.0
"""Goodput and validity under loss
A bottleneck of 200 Mbit/s and half a millisecond each way, which loses packets at random. UD is
paced below the bottleneck; RD and RC find its rate themselves. "As published" sends datagrams of
64 KiB, which IP fragments, and takes a record whose last segment is lost for lost."""
network("switch", rate="200M", queue=200, delay=500)
points(loss=[0, 0.1, 0.5, 1, 5], size=["1K", "16K", "64K", "256K", "1M"])
quick_points(loss=[0, 1], size=["64K"])
volume("16M", quick="1M")
value("goodput", "flow.mb_per_s", unit="MB/s")
value("valid", "flow.valid_percent", unit="%")
value("not_whole", "flow.loss_percent", unit="% of messages", better="lower")
value("median_time", "times.half_rtt_us.p50", "times.operation_us.p50", unit="us", better="lower")
value("p99_time", "times.half_rtt_us.p99", "times.operation_us.p99", unit="us", better="lower")

PACED = "--rate 20M --window 16"


# Of a longer message over UD that loses packets hardly one comes whole.
FEW_DATAGRAMS = {"size": upto("16K")}


def both(how, flow="", times_for=None):
    """The flow of messages, then single ones for the time that each takes."""
    always = f"{how} --size {{size}} --warmup 0 --max-loss 100 --timeout 20"
    return sequence(flow=pair("bandwidth", f"{always} {flow} --iterations {{count}}"),
                    times=pair("pingpong", f"{always} --iterations 20", only=times_for))


lane("UD Send", both("--transport ud --op send", PACED, FEW_DATAGRAMS))
lane("UD Write-Record", both("--transport ud --op write-record", PACED, FEW_DATAGRAMS))
lane("UD Read", both("--transport ud --op read", PACED, FEW_DATAGRAMS))
lane("RD Send", both("--transport rd --op send"))
lane("RC Send", both("--transport rc --op send"))
lane("as published", both("--transport ud --op write-record --segment jumbo",
                          f"{PACED} --completion last-segment", FEW_DATAGRAMS))

figure("goodput", "goodput", x="loss", per="size", title="Goodput of valid bytes against loss, %")
figure("valid", "valid", x="loss", per="size", title="Share of the bytes that is valid")
figure("p99_time", "p99_time", x="loss", per="size", title="99 % of the messages took at most")
missing("Gaps: how many ranges of a message are missing", "diwarp-bandwidth does not tell ranges")
