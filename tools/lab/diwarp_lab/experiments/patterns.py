# SPDX-License-Identifier: Apache-2.0
"""Many to one, and one to many
Hot spot: all clients at one server's queue pair. Fan-in: each client has a server of its own, and
these share a host. Fan-out: clients on one host, each with a server elsewhere. Together they have the
valid bytes of all, over the time from the first one's beginning to the last one's end."""
network("veth", "switch")
points(clients=[1, 2, 4, 8], size=["16K"])
quick_points(clients=[2])
volume("128M", quick="1M")
value("together", "mb_per_s.together", unit="MB/s")
value("slowest", "mb_per_s.least", "mb_per_s", unit="MB/s")
value("client_cpu", "processor.client.total_s", unit="s", better="lower")
value("server_cpu", "processor.server.total_s", unit="s", better="lower")

FLOW = "--size {size} --iterations {count} --max-loss 100 --timeout 30"
for name, how in (("UD", "--transport ud --op send"), ("RC", "--transport rc --op send")):
    lane(f"{name} hot spot", pair("bandwidth", f"{how} {FLOW}", server="--clients {clients}",
                                  clients="clients"))
    lane(f"{name} fan-in", many("clients", pair("bandwidth", f"{how} {FLOW}"), fan="in"))
    lane(f"{name} fan-out", many("clients", pair("bandwidth", f"{how} {FLOW}"), fan="out"))

figure("patterns", "together", x="clients", title="Bandwidth of all clients together")
figure("patterns_slowest", "slowest", x="clients", title="Bandwidth of the slowest client")
