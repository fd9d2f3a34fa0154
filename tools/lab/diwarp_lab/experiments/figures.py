# SPDX-License-Identifier: Apache-2.0
"""All experiments, beside what was published
The numbers are those of datagram-iWARP against iWARP over reliable connections: Rashti, Grant,
Afsahi and Balaji (HiPC 2010, IPDPS 2011), and Grant's dissertation (Queen's University). Three
rounds of each experiment; alone it runs until its quartiles settle."""
combine("latency", "bandwidth", "bidirectional", "streams", "together", "broadcast", "patterns",
        "offloads", "memory", "breakdown", "loss", rounds=3)
missing("Applications over sockets: media streaming and SIP, their rates and memory",
        "needs an interface of sockets over diwarp")
missing("MPI over datagrams", "needs an MPI that runs over diwarp")
