#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A script for pyverbs: pyverbs_traffic.py DEVICE. It opens the device, registers memory, connects
two RC queue pairs and moves data by Send, Write and Read. Status 0 where every byte arrived."""
import sys
import time

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
import pyverbs.enums as e
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

PATIENCE = 60
SIZE = 10000
RIGHTS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


class End:
    """One of two queue pairs that are connected, with its memory."""

    def __init__(self, context):
        self.domain = PD(context)
        self.completions = CQ(context, 16)
        self.region = MR(self.domain, SIZE, RIGHTS)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.completions, rcq=self.completions,
                          cap=QPCap(max_send_wr=8, max_recv_wr=8))
        self.queue_pair = QP(self.domain, init)

    def connect(self, gid, number):
        attributes = QPAttr(port_num=1)
        attributes.dest_qp_num = number
        attributes.path_mtu = e.IBV_MTU_1024
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 1
        attributes.min_rnr_timer = 12
        attributes.timeout = 14
        attributes.retry_cnt = attributes.rnr_retry = 7
        attributes.qp_access_flags = RIGHTS
        route = GlobalRoute(dgid=gid, sgid_index=0)
        attributes.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
        self.queue_pair.to_rts(attributes)

    def sge(self):
        return SGE(self.region.buf, SIZE, self.region.lkey)

    def receive(self):
        self.queue_pair.post_recv(RecvWR(wr_id=1, sg=[self.sge()], num_sge=1))

    def post(self, opcode, peer=None):
        request = SendWR(wr_id=2, opcode=opcode, num_sge=1, sg=[self.sge()])
        if peer:
            request.set_wr_rdma(peer.region.rkey, peer.region.buf)
        self.queue_pair.post_send(request)

    def completion(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            count, completions = self.completions.poll()
            if count:
                check(completions[0].status == e.IBV_WC_SUCCESS, str(completions[0]))
                return completions[0]
            time.sleep(0.001)
        raise AssertionError("no completion")

    def fill(self, letter):
        self.region.write(letter * SIZE, SIZE)

    def check_filled(self, letter):
        check(self.region.read(SIZE, 0) == letter * SIZE, f"not all bytes are {letter}")

    def close(self):
        for one in (self.queue_pair, self.completions, self.region, self.domain):
            one.close()


def main(name):
    listed = [device.name.decode() for device in get_device_list()]
    check(name in listed, f"{name} is not among {listed}")
    context = Context(name=name)
    port = context.query_port(1)
    check(port.state == e.IBV_PORT_ACTIVE and context.query_device().max_qp > 0, str(port))
    gid = context.query_gid(1, 0)
    one, other = End(context), End(context)
    one.connect(gid, other.queue_pair.qp_num)
    other.connect(gid, one.queue_pair.qp_num)

    other.receive()
    one.fill(b"s")
    one.post(e.IBV_WR_SEND)
    check(one.completion().opcode == e.IBV_WC_SEND, "another completion")
    check(other.completion().byte_len == SIZE, "another length")
    other.check_filled(b"s")

    one.fill(b"w")
    one.post(e.IBV_WR_RDMA_WRITE, other)
    one.completion()
    one.fill(b"x")
    one.post(e.IBV_WR_RDMA_READ, other)  # follows the Write, and brings its bytes back
    one.completion()
    one.check_filled(b"w")
    other.check_filled(b"w")

    one.close()
    other.close()
    context.close()


if __name__ == "__main__":
    main(sys.argv[1])
