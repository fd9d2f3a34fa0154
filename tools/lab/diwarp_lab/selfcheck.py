# SPDX-License-Identifier: Apache-2.0
"""Proves that the loss that is asked for is the loss that happens: counted at the network, within
so many standard deviations; and that a receiver misses what the network says it dropped."""
import contextlib

from .basics import Refusal, Skipped
from .experiment import Lane
from .summaries import deviations
from .work import Failed, Pair, Plain, Stage

LIMIT = 5  # standard deviations
OTHER_PACKETS = 20  # that are no datagrams, at most, of those that may get lost
RATES = (0.1, 1, 3, 7)  # percent
PACKETS = 40000


class Count:
    """What one rate came to. `missed`: datagrams that a receiver did not get of those `sent`; None
    where that is not told."""

    def __init__(self, network, asked, offered, lost, missed=None, sent=0):
        self.network, self.asked, self.sent = network, asked, sent
        self.offered, self.lost, self.missed = offered, lost, missed
        self.off = deviations(lost, offered, asked / 100)

    def holds(self):
        """A receiver may miss more than the network dropped, for want of room, and no less but for
        packets of the connection beside the datagrams."""
        told = self.missed is None or self.missed >= self.lost - OTHER_PACKETS
        return self.offered > 0 and abs(self.off) <= LIMIT and told

    def __str__(self):
        happened = 100 * self.lost / max(self.offered, 1)
        missed = "" if self.missed is None else \
            f", {self.missed} of {self.sent} datagrams missed"
        return (f"{self.network:9} asked {self.asked:g} %, happened {happened:.3f} % ({self.lost} "
                f"of {self.offered} packets), {abs(self.off):.1f} standard deviations off"
                f"{missed}: {'holds' if self.holds() else 'DOES NOT HOLD'}")


def work_for(network, packets):
    if network.counts_rows:  # what impairs is inside of diwarp
        return Pair("bandwidth", f"--transport ud --op send --size 1K --iterations {packets} "
                                 "--warmup 0 --max-loss 100 --timeout 30")
    return Plain("count", f"--packets {packets} --size 256")


def count(networks, asked, seed, packets):
    """Sends that many packets over a network that is to lose `asked` percent."""
    with contextlib.ExitStack() as stack:
        network = networks.open(Lane("self-check", None, "", {}, 0), {"loss": asked}, seed, 2,
                                stack)
        network.reseed(seed)
        before = network.counted()
        row = work_for(network, packets).run(Stage(network, {}))
        if network.counts_rows:
            return Count(network.name, asked, row.get("impaired.offered", 0),
                         row.get("impaired.dropped", 0))
        if before is None:
            raise Refusal(f"The network {network.name} does not count what it drops: choose "
                          "another with --network.")
        offered, lost = (now - then for now, then in zip(network.counted(), before))
        return Count(network.name, asked, offered, lost, row["sent"] - row["received"], row["sent"])


def run(networks, rates, seed, packets=PACKETS, tell=print):
    """Whether all rates hold."""
    fine = True
    for number, asked in enumerate(rates):
        try:
            one = count(networks, asked, seed + number, packets)
        except (Failed, Skipped) as reason:
            raise Refusal(f"The loss could not be counted: {reason}.") from reason
        tell(str(one))
        fine = fine and one.holds()
    return fine
