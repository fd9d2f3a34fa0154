# SPDX-License-Identifier: Apache-2.0
"""Sending to several receivers at once
A group's address reaches all of them with one message; "one by one" is a pair for each."""
network("veth", "switch")
points(receivers=[1, 2, 3], size=["1K", "64K", "256K", "1M"])
quick_points(receivers=[3], size=["64K"])
volume("64M", quick="1M")
value("together", "mb_per_s.together", unit="MB/s")
value("slowest", "mb_per_s.least", "mb_per_s", unit="MB/s")
value("valid", "valid_percent", unit="%")

FLOW = "--transport ud --size {size} --iterations {count} --max-loss 100 --timeout 20"
lane("Send to a group", pair("bandwidth", f"--op send {FLOW} --receivers {{receivers}}",
                             receivers="receivers"))
lane("Write-Record to a group", pair("bandwidth", f"--op write-record {FLOW} "
                                                  "--receivers {receivers}",
                                     receivers="receivers"))
lane("Send one by one", many("receivers", pair("bandwidth", f"--op send {FLOW}"), fan="out"))
lane("Send to one", pair("bandwidth", f"--op send {FLOW}"))

figure("broadcast", "together", x="size", per="receivers",
       title="Bandwidth of all receivers together")
published("Send to a group of three above 64 KiB, beside three times what one gets",
          "-12 to -13 %", change("together", "Send to a group", "Send to one", times=3,
                                 receivers="3", size=above("64K")),
          why="here all receivers share the processors of one host, so that three do three times "
              "the work of one")
