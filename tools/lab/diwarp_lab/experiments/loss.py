# SPDX-License-Identifier: Apache-2.0
"""Goodput and validity under loss
A bottleneck of 200 Mbit/s and half a millisecond each way, which loses packets at random. UD is
paced below the bottleneck; RD and RC find its rate themselves. "As published" sends datagrams of
64 KiB, which IP fragments, and takes a record whose last segment is lost for lost. Completion times
are of single messages: of Write-Records and Reads until their end is told, with all their bytes or
not; of Sends, of which all must come, only where that is likely. Gaps are the missing ranges of
messages of which a part came."""
network("switch", rate="200M", queue=200, delay=500)
points(loss=[0, 0.1, 0.5, 1, 5], size=["1K", "16K", "64K", "256K", "1M"])
quick_points(loss=[0, 1], size=["64K"])
volume("4M", quick="512K")
quick_rounds(least=1, most=1)
value("goodput", "flow.mb_per_s", unit="MB/s")
value("valid", "flow.valid_percent", unit="%")
value("not_whole", "flow.loss_percent", unit="% of messages", better="lower")
for share in ("p50", "p99"):
    value(f"{share}_time", f"times.half_rtt_us.{share}", f"times.operation_us.{share}",
          f"long.half_rtt_us.{share}", f"long.operation_us.{share}", unit="us", better="lower")
value("gaps", "flow.gaps.per_partial", unit="of a partial message", better="lower")
value("gap_size", "flow.gaps.mean_bytes", unit="bytes", better="neither")
value("largest_gap", "flow.gaps.largest_bytes", unit="bytes", better="lower")

PACED = "--rate 20M"
SHORT, LONG = {"size": upto("64K")}, {"size": above("64K")}
# Of a longer Send over UD that loses packets hardly one comes whole.
FEW_DATAGRAMS = {"size": upto("16K")}


def both(how, flow="", times="", short=SHORT, long=LONG):
    """The flow of messages, then single ones for the time that each takes: few that take long."""
    always = f"{how} --size {{size}} --warmup 0 --max-loss 100 --timeout 20"
    single = f"{always} {times} --iterations"
    parts = {"flow": pair("bandwidth", f"{always} {flow} --iterations {{count}}"),
             "times": pair("pingpong", f"{single} 20", only=short)}
    if long:
        parts["long"] = pair("pingpong", f"{single} 6", only=long)
    return sequence(**parts)


UD = f"{PACED} --window 16"
lane("UD Send", both("--transport ud --op send", UD, PACED, FEW_DATAGRAMS, None))
lane("UD Write-Record", both("--transport ud --op write-record", UD, f"{PACED} --partial"))
# Of Reads so many at once would wait for each other until they time out.
lane("UD Read", both("--transport ud --op read", PACED, f"{PACED} --partial"))
lane("RD Send", both("--transport rd --op send"))
lane("RC Send", both("--transport rc --op send"))
lane("as published", both("--transport ud --op write-record --segment jumbo --completion "
                          "last-segment", UD, PACED, FEW_DATAGRAMS, None))

figure("goodput", "goodput", x="loss", per="size", title="Goodput of valid bytes against loss, %")
figure("valid", "valid", x="loss", per="size", title="Share of the bytes that is valid")
figure("not_whole", "not_whole", x="loss", per="size", title="Messages that did not come whole")
figure("p50_time", "p50_time", x="loss", per="size", title="Half of the messages took at most")
figure("p99_time", "p99_time", x="loss", per="size", title="99 % of the messages took at most")
figure("gaps", "gaps", x="loss", per="size", title="Gaps of a message of which a part came")
figure("gap_size", "gap_size", x="loss", per="size", title="Bytes of a gap")
