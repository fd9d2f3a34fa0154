# SPDX-License-Identifier: Apache-2.0
"""Where the time of a 64 B round trip goes
Built up step by step: each lane adds one thing to one before it. Half round trips of two polling
processes, measured by diwarp-compare."""
network("loopback")
rounds(least=5, most=9, settle=3)
value("latency", "value", unit="us", better="lower")
points(milliseconds=[150])
quick_points(milliseconds=[20])
quick_rounds(least=1, most=1)


def step(row, column="lane.median"):
    return program("diwarp-compare --rounds 1 --time {milliseconds} --only ^" + row +
                   "$ --json -", row={"name": row}, column=column)


lane("UDP sockets", step("ud-send-latency", "baseline.median"))
lane("connected to the peer", step("udp-connected-latency"))
lane("with UD: headers, CRC, engine", step("ud-send-latency"))
lane("placed by Write-Record", step("ud-record-latency"))
lane("with RD: acknowledged", step("rd-send-latency"))
lane("TCP sockets", step("rc-nocrc-send-latency", "baseline.median"))
lane("with RC: frames, no CRC", step("rc-nocrc-send-latency"))
lane("with RC's CRC", step("rc-send-latency"))
lane("placed by RC Write", step("rc-write-latency"))
lane("woken by the RNIC thread", step("rc-idle-write-latency"))

figure("breakdown", "latency", x="lane", title="Half a round trip of 64 B")
