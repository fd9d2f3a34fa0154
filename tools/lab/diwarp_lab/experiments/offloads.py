# SPDX-License-Identifier: Apache-2.0
"""Segmentation and coalescing by the kernel
Each on and off, where it is of use: the sender hands trains of datagrams to the kernel (GSO), the
receiver takes them in trains (GRO)."""
network("veth")
points(mtu=[1500, 9000], size=["64K"])
quick_points(mtu=[1500])
volume("64M", quick="4M")
value("bandwidth", "mb_per_s", unit="MB/s")
value("lost", "loss_percent", unit="% of messages", better="lower")

FLOW = "--transport ud --op write-record --size {size} --iterations {count} --max-loss 100"
for name, gso, gro in (("neither", "off", "off"), ("segmentation", "on", "off"),
                       ("coalescing", "off", "on"), ("both", "on", "on")):
    lane(name, pair("bandwidth", f"{FLOW} --gso {gso}", server=f"--gro {gro}"))

figure("offloads", "bandwidth", x="lane", per="mtu", title="Bandwidth with what the kernel does")
published("Receive coalescing: bandwidth", "+83.3 %", change("bandwidth", "coalescing", "neither"),
          why="published between hosts with 10 Gbit/s Ethernet, where the driver gathers; between "
              "namespaces datagrams come one by one unless they were sent as trains")
published("Send segmentation: bandwidth", "little", change("bandwidth", "segmentation", "neither"),
          why="between namespaces a train that is never cut saves the whole way of each datagram "
              "through the kernel, on both sides")
