#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Becomes a command that may make no system call of those that containers forbid: they end with
EPERM, as Docker's profile has it. Usage: confined.py COMMAND [ARGUMENT...]"""
import ctypes
import os
import struct
import sys

# The numbers are those of x86-64; from 424 on they are the same everywhere.
FORBIDDEN = {
    "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321, "userfaultfd": 323,
    "perf_event_open": 298, "kcmp": 312, "ptrace": 101, "pidfd_send_signal": 424,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "pidfd_open": 434,
    "pidfd_getfd": 438}
EPERM = 1
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # classic BPF, linux/bpf_common.h
ALLOW, ERRNO = 0x7FFF0000, 0x00050000  # linux/seccomp.h


class Program(ctypes.Structure):
    """struct sock_fprog."""
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def instruction(code, yes, no, value):
    return struct.pack("=HBBI", code, yes, no, value)


def forbid():
    numbers = sorted(FORBIDDEN.values())
    code = instruction(LOAD_WORD, 0, 0, 0)  # the call's number
    for index, number in enumerate(numbers):
        code += instruction(JUMP_IF_EQUAL, len(numbers) - index, 0, number)
    code += instruction(RETURN, 0, 0, ALLOW) + instruction(RETURN, 0, 0, ERRNO | EPERM)
    memory = ctypes.create_string_buffer(code, len(code))
    program = Program(len(code) // 8, ctypes.addressof(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or \
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        sys.exit("confined.py: no filter could be set: " + os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    forbid()
    os.execvp(sys.argv[1], sys.argv[1:])
