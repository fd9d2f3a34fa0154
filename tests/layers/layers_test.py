#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants one violation at a time in a clean tree: layers.py must find each, and nothing else."""
import shutil
import tempfile
import unittest
from pathlib import Path

import layers

# file, line added to it, what the complaint must say
VIOLATIONS = [
    ("base/src/a.cpp", '#include "llp/a.h"', "base does not stand on llp"),
    ("llp/a.cpp", "#include <rnic/a.h>", "llp does not stand on rnic"),
    ("mpa/a.cpp", '#include "ddp/a.h"', "mpa does not stand on ddp"),
    ("ddp/a.h", '#include "rdmap/a.h"', "ddp does not stand on rdmap"),
    ("rdmap/a.cpp", '#include "llp/a.h"', "rdmap does not stand on llp"),
    ("rnic/a.cpp", "#include <diwarp/verbs.h>", "diwarp/verbs.h is a handle's"),
    ("rnic/a.cpp", '#include "rnic/no_such.h"', "no header of the project"),
    ("tools/a.cpp", '#include "rnic/a.h"', "only installed headers"),
    ("examples/a.cpp", '#include "base/a.h"', "only installed headers"),
    ("include/diwarp/verbs.h", '#include "rnic/a.h"', "includes what is not installed"),
    ("include/diwarp/types.h", "#include <spdlog/spdlog.h>", "not installed with it"),
    ("include/diwarp/types.h", '#include "diwarp/verbs.h"', "diwarp/verbs.h is a handle's"),
    ("include/diwarp/new.h", "", "stands in neither list"),
    ("include/diwarp/types.h", "class Thing;", "names no handle"),
    ("include/diwarp/types.h", "std::shared_ptr<rnic::QueuePair> impl;", "nothing of a layer"),
    ("include/diwarp/types.h", "namespace llp {", "nothing of a layer"),
    ("include/diwarp/types.h", "namespace diwarp::ddp {", "nothing of a layer"),
    ("ddp/a.cpp", '#include "diwarp/verbs.h"', "diwarp/verbs.h is a handle's"),
    ("mpa/a.cpp", "#include <sys/socket.h>", "does no I/O"),
    ("ddp/a.cpp", "  #  include <thread>", "does no I/O"),
    ("rdmap/a.cpp", "#include <boost/asio/ip/tcp.hpp>", "does no I/O"),
    ("ddp/a.cpp", "auto t = std::chrono::steady_clock::now();", "is told the time"),
    ("rdmap/a.cpp", "auto t = clock.now();", "is told the time"),
    ("mpa/CMakeLists.txt", "target_link_libraries(diwarp_mpa PUBLIC diwarp_ddp)", "stand on it"),
    ("llp/a.h", '#include "llp/udp/a.h"', "llp does not stand on llp/udp"),
    ("llp/udp/a.cpp", '#include "llp/tcp/a.h"', "llp/udp does not stand on llp/tcp"),
    ("rnic/queues/a.h", '#include "rnic/a.h"', "rnic/queues does not stand on rnic"),
    ("rnic/engine/a.h", '#include "rnic/datagram/a.h"', "does not stand on rnic/datagram"),
    ("rnic/rc/a.cpp", '#include "rnic/cm/a.h"', "rnic/rc does not stand on rnic/cm"),
    ("rnic/datagram/rd/a.cpp", '#include "rnic/datagram/ud/a.h"', "stand on rnic/datagram/ud"),
    ("rnic/cm/a.cpp", "#include <sys/socket.h>", "makes no socket calls"),
    ("verbs/a.cpp", "#include <netinet/in.h>", "makes no socket calls"),
    ("rnic/cm/a.h", "#include <boost/asio/ip/tcp.hpp>", "makes no socket calls"),
    ("verbs/a.cpp", "int fd = ::socket(family, type, 0);", "calls socket()"),
    ("rnic/rc/a.cpp", "  ::setsockopt(fd, level, name, &on, sizeof on);", "calls setsockopt()"),
    ("rnic/rc/a.cpp", "  setsockopt(fd, level, name, &on, sizeof on);", "calls setsockopt()"),
    ("verbs/a.cpp", "if (sendmsg(fd, &message, 0) < 0) return;", "calls sendmsg()"),
    ("rnic/rc/a.cpp", '#include "llp/tcp/a.h"', "none of its backends"),
    ("verbs/a.cpp", '#include "llp/uring/a.h"', "no provider"),
    ("verbs/a.cpp", '#include "rnic/a.h"', "no provider"),
    ("rnic/a.cpp", '#include "llp/uring/a.h"', "none of its backends"),
    ("provider/a.cpp", '#include "rnic/a.h"', "does not stand on"),
    ("rnic/a.cpp", '#include "devices/a.h"', "does not stand on"),
    ("rnic/a.cpp", '#include "bridge/a.h"', "does not stand on"),
    ("bridge/a.cpp", '#include "rnic/a.h"', "does not stand on"),
    ("verbs/a.cpp", '#include "bridge/a.h"', "no provider"),
    ("rnic/rc/a.cpp", "// as of UdpLink", "knows no backend"),
    ("rnic/rc/a.cpp", "auto* end = dynamic_cast<llp::MemoryStream*>(stream);", "what may be asked"),
    ("llp/a.h", "  gso_missing,  ///< no segmentation", "says gso_missing"),
    ("llp/a.h", "/// Lost for want of room (SO_RXQ_OVFL).", "says SO_RXQ_OVFL"),
    ("tests/stack/unix/a.cpp", '#include "llp/socket/a.h"', "llp's contracts alone"),
    ("tests/stack/unix/a.h", "#include <llp/memory/a.h>", "llp's contracts alone"),
    ("llp/attic/a.cpp", "", "lies in no room of llp"),
    ("include/diwarp/types.h", "detail::Node* node;", "names detail"),
    ("include/diwarp/types.h", "namespace detail {", "names detail"),
    ("llp/CMakeLists.txt", "diwarp_layer(llp SOURCES a.cpp USES base mpa)", "USES is"),
]
# file, line added to it: all allowed
ALLOWED = [
    ("rdmap/a.cpp", '#include "base/a.h"'),
    ("llp/a.cpp", "#include <sys/socket.h>"),
    ("mpa/a.cpp", "#include <vector>  // steady_clock::now() in a comment"),
    ("rnic/a.cpp", '#include "diwarp/types.h"'),
    ("include/diwarp/types.h", "struct ThingOptions {};  // rnic::Thing, of a Thing"),
    ("base/src/b.cpp", '#include "local.h"'),
    ("verbs/a.cpp", '#include "diwarp/verbs.h"'),
    ("llp/uring/a.cpp", '#include "llp/socket/a.h"'),
    ("rnic/a.cpp", '#include "rnic/engine/a.h"'),
    ("rnic/cm/a.cpp", '#include "llp/a.h"'),
    ("rnic/cm/a.cpp", "connector.connect(own, peer), llp::connect(peer);  // not ::connect(fd)"),
    ("rnic/cm/a.cpp", "link.sendmsg(parts), link->sendmsg(parts), llp::sendmsg(parts);"),
    ("tests/stack/unix/a.cpp", '#include "llp/a.h"'),
    ("llp/a.cpp", "::setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);"),
    ("llp/udp/a.h", "/// Lost for want of room (SO_RXQ_OVFL)."),
    ("rnic/datagram/rd/a.cpp", '#include "rnic/datagram/a.h"'),
    ("tools/a.cpp", "#include <diwarp/verbs.h>"),
    ("tools/sub/b.cpp", '#include "common/c.h"'),
]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def plant(root, file, line):
    """Adds the line; a call of diwarp_layer() replaces the one that is there."""
    path = root / file
    old = path.read_text(encoding="utf-8") if path.exists() and "diwarp_layer" not in line else ""
    write(path, f"{old}{line}\n")


def clean_tree(root):
    shutil.rmtree(root, ignore_errors=True)
    for layer, uses in layers.USES.items():
        call = f"diwarp_layer({layer} SOURCES a.cpp USES {' '.join(uses)})\n"
        write(root / layer / "CMakeLists.txt", call if uses else call.replace(" USES ", ""))
        for room in layers.ROOMS.get(layer, [""]):
            folder = Path(layer, room)
            write(root / folder / "a.cpp", f'#include "{folder}/a.h"\n')
            write(root / folder / "a.h", "#include <cstddef>\n")
    (root / "base/a.h").unlink()
    write(root / "base/include/base/a.h", "#include <cstddef>\n")
    write(root / "base/src/local.h", "")
    write(root / "include/diwarp/types.h", "#include <cstdint>\n")
    write(root / "include/diwarp/verbs.h",
          '#include "diwarp/types.h"\nclass DIWARP_EXPORT Thing {\n};\n')
    write(root / layers.LISTS, "set(DIWARP_DATA_HEADERS\n  types.h)  # data\n\n"
                               "set(DIWARP_HANDLE_HEADERS\n  verbs.h)\n")
    write(root / "tools/common/c.h", "")
    write(root / "tools/a.cpp", "")
    write(root / "examples/a.cpp", "")


class Layers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name) / "project"
        clean_tree(self.root)

    def tearDown(self):
        self.folder.cleanup()

    def test_a_clean_tree_has_no_violation(self):
        self.assertEqual(layers.check(self.root), [])

    def test_what_is_allowed_is_no_violation(self):
        for file, line in ALLOWED:
            plant(self.root, file, line)
        self.assertEqual(layers.check(self.root), [])

    def test_each_violation_is_found(self):
        for file, line, complaint in VIOLATIONS:
            with self.subTest(file=file, line=line):
                clean_tree(self.root)
                plant(self.root, file, line)
                problems = layers.check(self.root)
                self.assertTrue(problems, "not found")
                for problem in problems:
                    self.assertIn(complaint, problem)
                    self.assertIn(file, problem)

    def test_a_header_that_a_list_names_and_that_is_gone_is_a_violation(self):
        (self.root / "include/diwarp/types.h").unlink()
        self.assertIn(f"{layers.LISTS} names types.h, which does not exist",
                      layers.check(self.root))

    def test_a_layer_that_is_gone_is_a_violation(self):
        (self.root / "mpa/CMakeLists.txt").unlink()
        self.assertEqual(layers.check(self.root), ["mpa has no CMakeLists.txt"])


if __name__ == "__main__":
    unittest.main()
