# SPDX-License-Identifier: Apache-2.0
"""Captures, and what tshark with the dissector says about them."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))

from harness import PATIENCE, Skipped, check, path, where  # noqa: E402

DISSECTOR = ROOT / "tools" / "wireshark" / "diwarp.lua"
PORT = 7472
ALICE, BOB = ("10.0.0.1", PORT), ("10.0.0.2", PORT)
LINKTYPE_RAW, LINKTYPE_ETHERNET = 101, 1
PORTS = ("-o", f"diwarp.ports:{PORT}")


def ip_packet(source, destination, payload):
    """A UDP datagram in IPv4, without checksums: no one looks at them."""
    udp = struct.pack(">HHHH", source[1], destination[1], 8 + len(payload), 0) + payload
    hosts = [bytes(map(int, host.split("."))) for host, _ in (source, destination)]
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, *hosts) + udp


def write_pcap(name, packets, cut=262144, link=LINKTYPE_RAW):
    """Packets, a millisecond apart; of each at most `cut` bytes, or as many as a list of them says."""
    cuts = cut if isinstance(cut, list) else [cut] * len(packets)
    with open(path(name), "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, link))
        for number, (packet, most) in enumerate(zip(packets, cuts)):
            kept = packet[:most]
            file.write(struct.pack("<IIII", number // 1000, number % 1000 * 1000, len(kept), len(packet)))
            file.write(kept)
    return path(name)


def capture(name, datagrams, **options):
    """A capture of (source, destination, bytes), or of bytes that Alice sends to Bob."""
    whole = [(ALICE, BOB, datagram) if isinstance(datagram, bytes) else datagram for datagram in datagrams]
    return write_pcap(name, [ip_packet(*datagram) for datagram in whole], **options)


def need_tshark():
    if shutil.which("tshark") is None:
        raise Skipped("there is no tshark here (dev/packages.sh, purpose wireshark)")


def tshark(*options, dissector=DISSECTOR, home=None):
    """What it prints. An error of Lua's is a failure, wherever tshark tells it."""
    need_tshark()
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "WIRESHARK_CONFIG_DIR": where.folder}
    environment["HOME"] = home or where.folder  # without what its owner may have installed
    if home:
        del environment["WIRESHARK_CONFIG_DIR"]
    script = ["-X", f"lua_script:{dissector}"] if dissector else []
    done = subprocess.run(["tshark", *script, *map(str, options)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=PATIENCE,
                          env=environment)
    check(done.returncode == 0, f"tshark {options}: status {done.returncode}: {done.stderr[-2000:]}")
    for text in (done.stdout, done.stderr):
        at = text.lower().find("lua error")
        check(at < 0 and "lua:" not in text[:2000].lower(), f"Lua: {text[max(at - 200, 0):at + 800]}")
    return done.stdout


def canonical(value):
    """Numbers in decimal, bytes without colons, truth as 1 or 0: versions of tshark print them in
    several ways."""
    values = []
    for word in value.split(","):
        word = {"True": "1", "False": "0"}.get(word, word)
        values.append(str(int(word, 16)) if word.startswith("0x") else word.replace(":", ""))
    return ",".join(values)


def rows(capture_path, names, *options):
    """A dictionary of each frame, of those fields that it has."""
    chosen = [option for name in names for option in ("-e", name)]
    text = tshark("-r", capture_path, "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E",
                  "aggregator=,", *chosen, *options)
    found = []
    for line in text.split("\n")[:-1]:
        values = line.split("\t")
        check(len(values) == len(names), f"{len(values)} fields, not {len(names)}: {line}")
        found.append({name: canonical(value) for name, value in zip(names, values) if value})
    return found


EXPERTS = ("gap", "msn_gap", "sequence_gap", "map_gap", "sent_again", "duplicate", "incomplete",
           "unanswered", "unmatched", "contradiction", "forgotten", "reset", "reported", "waits",
           "zero_incarnation", "capture_cut")
DROPS = ("truncated", "version", "class", "flags", "reserved", "crc", "ddp_version", "rdmap_version",
         "opcode", "queue_number", "oversized", "contradiction", "bounds", "rd_header", "control", "group")
NOTES = tuple("diwarp." + name for name in (*EXPERTS, *("drop_" + drop for drop in DROPS)))


def notes_of(row):
    """The names of a frame's expert notes."""
    return {name.removeprefix("diwarp.") for name in row if name in NOTES}


def notes(capture_path, *options):
    """Those of each frame."""
    return [notes_of(row) for row in rows(capture_path, NOTES, *options)]


SOUND = ("diwarp.verdict", "_ws.malformed", "_ws.expert.severity")
WARNING = 0x600000


def check_sound(seen):
    """No frame is malformed, and all are the dissector's; neither warnings nor errors. `seen` are rows with
    at least the fields of SOUND."""
    for row in seen:
        severities = [int(value) for value in row.get("_ws.expert.severity", "0").split(",")]
        check(row.get("diwarp.verdict") == "accepted" and "_ws.malformed" not in row and
              max(severities) < WARNING, row)
