# SPDX-License-Identifier: Apache-2.0
"""Bandwidth by size and operation
One sender, one receiver, both polling; valid bytes at the receiver."""
network("veth", "loopback")
points(size=["64", "1K", "4K", "16K", "64K", "256K", "512K", "1M"])
quick_points(size=["1K", "256K"])
volume("64M", quick="1M")
quick_rounds(least=1, most=1)
value("bandwidth", "mb_per_s", unit="MB/s")
value("rate", "messages_per_s", unit="messages/s")
value("lost", "loss_percent", unit="% of messages", better="lower")
value("client_cpu", "processor.client.total_s", unit="s", better="lower")
value("server_cpu", "processor.server.total_s", unit="s", better="lower")

FLOW = "--size {size} --iterations {count} --max-loss 100 --timeout 20"
lane("UD Send", pair("bandwidth", f"--transport ud --op send {FLOW}"))
lane("UD Write-Record", pair("bandwidth", f"--transport ud --op write-record {FLOW}"))
lane("UD Read", pair("bandwidth", f"--transport ud --op read {FLOW}"))
lane("RD Send", pair("bandwidth", f"--transport rd --op send {FLOW}"))
lane("RC Send", pair("bandwidth", f"--transport rc --op send {FLOW}"))
lane("RC Write", pair("bandwidth", f"--transport rc --op write {FLOW}"))
lane("RC Read", pair("bandwidth", f"--transport rc --op read {FLOW}"))

figure("bandwidth", "bandwidth", x="size", title="Bandwidth")
figure("rate", "rate", x="size", title="Messages a second")

SMALL = ("over RC many messages go into one call to the kernel's TCP here, and come in one; a datagram "
         "costs its own way through the kernel, but for trains of equal ones (segmentation)")
LARGE = ("no packet is lost or late between namespaces, and the kernel passes what TCP sends in pieces "
         "of 64 KiB; published over 10 Gbit/s Ethernet, where TCP's segments were single packets, and "
         "with markers in its stream")
published("UD Send beside RC Send, 1 KiB: bandwidth", "+193 %",
          change("bandwidth", "UD Send", "RC Send", size="1K"), why=SMALL)
published("UD Write-Record beside RC Write, 1 KiB: bandwidth", "+188.8 %",
          change("bandwidth", "UD Write-Record", "RC Write", size="1K"), why=SMALL)
published("UD Send beside RC Send, 256 KiB: bandwidth", "+33.4 %",
          change("bandwidth", "UD Send", "RC Send", size="256K"), why=LARGE)
published("UD Write-Record beside RC Write, 512 KiB: bandwidth", "+256 %",
          change("bandwidth", "UD Write-Record", "RC Write", size="512K"), why=LARGE)
published("UD Read beside RC Read: bandwidth", "up to +76.1 %",
          change("bandwidth", "UD Read", "RC Read", take=max), why=LARGE)
