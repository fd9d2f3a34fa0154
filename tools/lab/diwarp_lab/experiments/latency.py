# SPDX-License-Identifier: Apache-2.0
"""Latency by size and operation
Half round trips of messages between two polling processes; of Reads the whole operation."""
network("veth", "loopback")
points(size=["2", "64", "256", "1K", "2K", "8K", "64K"])
quick_points(size=["64", "2K"])
volume("4M", quick="2K")
quick_rounds(least=1, most=1)
value("latency", "half_rtt_us.p50", "operation_us.p50", unit="us", better="lower")
value("p99", "half_rtt_us.p99", "operation_us.p99", unit="us", better="lower")

SINGLE = "--size {size} --iterations {count} --max-loss 100 --timeout 20"
lane("UD Send", pair("pingpong", f"--transport ud --op send {SINGLE}"))
lane("UD Write-Record", pair("pingpong", f"--transport ud --op write-record {SINGLE}"))
lane("UD Read", pair("pingpong", f"--transport ud --op read {SINGLE}"))
lane("RD Send", pair("pingpong", f"--transport rd --op send {SINGLE}"))
lane("RC Send", pair("pingpong", f"--transport rc --op send {SINGLE}"))
lane("RC Write", pair("pingpong", f"--transport rc --op write {SINGLE}"))
lane("RC Read", pair("pingpong", f"--transport rc --op read {SINGLE}"))

figure("latency", "latency", x="size", title="Latency")
figure("latency_p99", "p99", x="size", title="99 % of the messages took at most")

WHY = ("published between two hosts of 2010, over a TCP that its stack called through a socket layer "
       "of its own; here both ends share a host and its caches, so that what remains is the "
       "kernel's UDP against its TCP")
published("UD Send beside RC Send, up to 2 KiB: latency", "-18.1 %",
          change("latency", "UD Send", "RC Send", size=upto("2K")), why=WHY)
published("UD Write-Record beside RC Write, up to 2 KiB: latency", "-24.4 %",
          change("latency", "UD Write-Record", "RC Write", size=upto("2K")),
          why=WHY + "; and an RC Write here is seen by polling memory, without a completion, while a "
          "Write-Record gives one with its validity map")
published("UD Read beside RC Read, up to 2 KiB: latency", "-20.28 %",
          change("latency", "UD Read", "RC Read", size=upto("2K")),
          why=WHY + "; and the engine that answers a Read polls all the time, over either transport")
