# SPDX-License-Identifier: Apache-2.0
"""Memory by the number of clients
What clients cost their server: over UD one queue pair serves all, over RC each has a connection.
"Kernel" is the slab of the whole host, in which the sockets of both ends lie."""
network("loopback")
points(clients=[10, 100, 1000, 10000])
quick_points(clients=[10, 100])
rounds(least=3, most=5)
for when in ("idle", "used"):
    value(f"{when}_process", f"{when}.allocated_bytes", unit="bytes", better="lower")
    value(f"{when}_resident", f"{when}.resident_bytes", unit="bytes", better="lower")
    value(f"{when}_kernel", f"{when}.kernel_bytes", unit="bytes", better="lower")

for name in ("UD", "RD", "RC"):
    lane(name, program(f"diwarp-memory --transport {name.lower()} --clients {{clients}} --json -"))

figure("memory", "used_process", x="clients", title="Memory of the server, after a message of each")
figure("memory_kernel", "used_kernel", x="clients", title="The kernel's, after a message of each")
published("UD beside RC, 10,000 clients: memory of the server", "-24.1 %",
          change("used_resident", "UD", "RC", clients="10000"),
          why="published of a whole application, most of whose memory is its own; here it is the "
              "part alone that clients add")
