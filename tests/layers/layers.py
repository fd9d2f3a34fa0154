#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the arrows between the folders: docs/architecture.md says which may include which.

Usage: layers.py PROJECT_FOLDER. Prints each violation; exit status 0 if there is none.
"""
import re
import sys
from pathlib import Path

# The layers that each layer stands on. It may include these, and what these stand on.
USES = {
    "base": [],
    "provider": ["base"],
    "llp": ["base"],
    "mpa": ["base"],
    "dgram": ["base"],
    "ddp": ["base"],
    "rdmap": ["ddp"],
    "rnic": ["provider", "llp", "mpa", "dgram", "rdmap"],
    "bridge": ["provider", "rdmap"],
    "hybrid": ["provider"],
    "devices": ["provider", "rnic", "bridge", "hybrid"],
    "verbs": ["provider", "devices"],
}
# Of the layers below them these see no more than the ones that are named here: the verbs call the
# contract, and do not know who provides it.
SEES = {"verbs": ["base", "provider", "devices"]}
# The rooms of a layer, which are folders of it, and what each stands on; "" is the layer's own
# folder. A layer that is missing here has no rooms.
ROOMS = {
    "llp": {
        "": [],  # the contracts
        "socket": [""],
        "udp": ["socket"],
        "tcp": ["socket"],
        "syscall": ["udp", "tcp"],
        "uring": ["udp", "tcp"],
        "memory": [""],
        "local": ["socket"],
        "capture": [""],
        "impairment": [""],
        "backends": ["syscall", "uring", "local", "impairment", "capture"],  # the table of them
    },
    "rnic": {
        "engine": [],
        "context": ["engine"],
        "memory": ["context"],
        "queues": ["memory"],
        "datagram": ["queues"],
        "datagram/ud": ["datagram"],
        "datagram/rd": ["datagram"],
        "rc": ["queues"],
        "cm": ["rc"],
        "": ["datagram/ud", "datagram/rd", "cm"],  # the device, which composes them
    },
    "compat": {"common": [], "verbs": ["common"], "cm": ["verbs"]},
}
# These see the installed headers, and of the layers no more than this: tools share base's small
# utilities, examples show what a user can do, and the drop-ins for rdma-core's libraries are programs
# of the public verbs.
PROGRAMS = {"tools": ["base"], "examples": [], "compat": []}
# The public headers, and the lists that say which of them are data and which are handles.
PUBLIC = "include"
LISTS = "include/headers.cmake"
HANDLES_SEEN_BY = ("verbs", *PROGRAMS)
# These do no I/O, own no thread, and are told the time and what is random.
PROTOCOL = ["mpa", "dgram", "ddp", "rdmap"]
SIDE_EFFECT_HEADER = re.compile(
    r"sys/(?!types\.h)|netinet/|arpa/|netdb\.h|net/|linux/|unistd\.h|fcntl\.h|poll\.h|liburing|boost/"
    r"|thread$|future$|condition_variable$|semaphore$|random$|ctime$|time\.h|pthread\.h|i?o?f?stream$"
)
SIDE_EFFECT_CALL = re.compile(
    r"\bnow\s*\(|\b\w*(?:_clock|SteadyClock)\b|\bclock_gettime\b|\bgettimeofday\b|\bsystem_random\w*"
    r"|\bgetrandom\b|\bstd::j?thread\b|\bsocket\s*\("
)
# These reach other hosts through llp's contracts alone, the headers of its own folder: sockets and
# what a backend is called are the backends' business.
ABOVE_CONTRACTS = ["provider", "rnic", "bridge", "hybrid", "devices", "verbs"]
SOCKET_HEADER = re.compile(r"sys/(?:socket|un|uio)\.h|netinet/|arpa/|netdb\.h|net/|ifaddrs\.h"
                           r"|boost/asio/(?:ip|local|generic)/|boost/asio/basic_\w*socket")
# A name that no class has for a function of its own is a call without "::", too.
SOCKET_CALL = re.compile(
    r"(?<![\w>])::\s*(socket|connect|bind|listen|accept|shutdown|send|recv)\s*\("
    r"|(?<![\w>.])(?<!\w::)(?:::\s*)?(socketpair|accept4|sendto|sendmsg|sendmmsg|recvfrom|recvmsg"
    r"|recvmmsg|getsockname|getpeername|getsockopt|setsockopt)\s*\(")
# Names that only one backend has. The contracts have no word for it.
CONTRACTS = "llp"
BACKEND_WORD = re.compile(r"\b(?:UDP\w*|Udp\w*|TcpStream|Uring\w*|io_uring|GSO|GRO|gso_\w+|gro_\w+"
                          r"|SO_\w+|MSG_\w+|TCP_\w+|IPPROTO_\w+|sockaddr\w*|setsockopt)\b")

# The example of a backend (docs/development.md) shows that the contracts are enough for one.
EXAMPLE_BACKEND = "tests/stack/unix"

# Classes of backends. Code above the contracts has no word for them, not even in a comment.
BACKEND_CLASS = re.compile(r"\b(?:(?:Udp|Tcp|Uring)[A-Z]\w*|io_uring)\b")

# An installed header shows nothing of what the library is built with.
OUTSIDE_HEADER = re.compile(r"boost/|spdlog/|fmt/|liburing|isa-l")

# What a header of handles defines, and what names a layer's own things. No data header has either.
DEFINED = re.compile(r"^(?:class|struct)\s+(?:[A-Z_]+\s+)?(\w+)[^;{]*\{", re.MULTILINE)
INTERNAL = re.compile(rf"\b(?:detail|{'|'.join(layer for layer in USES if layer != 'base')})(?=::)"
                      rf"|(?<=namespace )(?:diwarp::)?(?:detail|{'|'.join(USES)})\b")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def below(table, one):
    """Everything that stands below `one` in a table like USES."""
    found = set(table[one])
    for lower in table[one]:
        found |= below(table, lower)
    return found


def listed(root):
    """The public headers of the lists: {name: "data" or "handle"}."""
    text = re.sub(r"#[^\n]*", "", (root / LISTS).read_text(encoding="utf-8"))
    return {name: kind.lower()
            for kind, names in re.findall(r"set\(DIWARP_(DATA|HANDLE)_HEADERS\s+([^)]*)\)", text)
            for name in names.split()}


def find(root, file, quote, name):
    """The file in the project that an #include means; None where it means none."""
    if quote == '"' and (file.parent / name).is_file():
        return (file.parent / name).resolve()
    folder = file.relative_to(root).parts[0]
    for place in (root / PUBLIC, *(root / layer / "include" for layer in USES), root, root / folder,
                  root / folder / "src"):
        if (place / name).is_file():
            return place / name
    return None


def room(layer, parts):
    """The deepest room of the layer in which a file of these path components lies."""
    inside = "/".join(parts[1:-1])
    return max((one for one in ROOMS[layer] if one == "" or f"{inside}/".startswith(f"{one}/")),
               key=len)


def room_problem(folder, place, target):
    """What is wrong where one file of a layer with rooms includes another."""
    own, other = room(folder, place.parts), room(folder, target.parts)
    if own == other or other in below(ROOMS[folder], own):
        return None
    names = [f"{folder}/{one}".rstrip("/") for one in (own, other)]
    return f"{names[0]} does not stand on {names[1]}"


def public_problem(place, target, kinds):
    """What is wrong where a file includes a public header."""
    folder = place.parts[0]
    kind = kinds.get("/".join(target.parts[2:]), "unlisted")
    if kind == "unlisted":
        return f"{target} stands in neither list of {LISTS}"
    own = kinds.get("/".join(place.parts[2:])) if folder == PUBLIC else None
    if kind == "handle" and (own == "data" or own is None and folder not in HANDLES_SEEN_BY):
        return f"{target} is a handle's header"
    return None


def include_problem(root, file, quote, name, kinds):
    """What is wrong with one #include; None if nothing is."""
    place = file.relative_to(root)
    folder = place.parts[0]
    found = find(root, file, quote, name)
    if found is None:
        if quote == '"' or name.split("/")[0] in [*USES, "diwarp"]:
            return "no header of the project has this name"
        if folder in PROTOCOL and SIDE_EFFECT_HEADER.match(name):
            return "a protocol layer does no I/O and owns no thread"
        if folder in ABOVE_CONTRACTS and SOCKET_HEADER.match(name):
            return f"{folder} makes no socket calls: llp's connector does"
        if folder == PUBLIC and OUTSIDE_HEADER.match(name):
            return "an installed header includes what is not installed with it"
        return None
    target = found.relative_to(root)
    if target.parts[0] == PUBLIC:
        return public_problem(place, target, kinds)
    if folder == PUBLIC:
        return "an installed header includes what is not installed"
    if target.parts[0] == folder:
        return room_problem(folder, place, target) if folder in ROOMS else None
    if folder in PROGRAMS:
        allowed = target.parts[0] in PROGRAMS[folder]
        return None if allowed else "only installed headers may be used here"
    if target.parts[0] not in below(USES, folder):
        return f"{folder} does not stand on {target.parts[0]}"
    if target.parts[0] not in SEES.get(folder, USES):
        return f"{folder} knows the contract alone, and no provider"
    if folder in ABOVE_CONTRACTS and target.parts[0] == CONTRACTS and len(target.parts) > 2:
        return f"{folder} knows llp's contracts, and none of its backends"
    return None


def check_file(root, file, kinds):
    text = file.read_text(encoding="utf-8")
    place = file.relative_to(root)
    for quote, name in INCLUDE.findall(text):
        problem = include_problem(root, file, quote, name, kinds)
        if problem:
            yield f"{place} includes {name}: {problem}"
    if place.parts[0] in PROTOCOL:
        for call in SIDE_EFFECT_CALL.findall(COMMENT.sub("", text)):
            yield f"{place} uses {call}: a protocol layer is told the time and what is random"


def check_sockets(root, file):
    """Layers above the contracts make no socket call; contracts name no backend's things."""
    place = file.relative_to(root)
    whole = file.read_text(encoding="utf-8")
    text = COMMENT.sub("", whole)
    if place.parts[0] in ABOVE_CONTRACTS:
        for word in sorted(set(BACKEND_CLASS.findall(whole))):
            yield f"{place} says {word}: {place.parts[0]} knows no backend"
        for qualified, bare in SOCKET_CALL.findall(text):
            yield f"{place} calls {qualified or bare}(): {place.parts[0]} makes no socket calls"
        for cast in re.findall(r"dynamic_cast<\s*(?:const\s+)?llp::\w+", text):
            yield f"{place} has {cast}>: a contract says what may be asked"
    if place.parts[0] == CONTRACTS and len(place.parts) == 2 and file.suffix == ".h":
        for word in sorted(set(BACKEND_WORD.findall(whole))):
            yield f"{place} says {word}: a contract has no words of a backend's"


def check_example(root):
    """The example of a backend stands on the contracts alone."""
    folder = root / EXAMPLE_BACKEND
    for file in sorted(p for p in folder.rglob("*") if p.suffix in (".h", ".cpp")):
        for _, name in INCLUDE.findall(file.read_text(encoding="utf-8")):
            if re.match(rf"{CONTRACTS}/.*/", name):
                place = file.relative_to(root)
                yield f"{place} includes {name}: the example knows llp's contracts alone"


def check_cmake(root, layer):
    """The USES of diwarp_layer() must be those of the table, and no target above may be named."""
    path = root / layer / "CMakeLists.txt"
    if not path.exists():
        yield f"{layer} has no CMakeLists.txt"
        return
    text = re.sub(r"#[^\n]*", "", path.read_text(encoding="utf-8"))
    call = re.search(rf"diwarp_layer\(\s*{layer}\b(.*?)\)", text, re.DOTALL)
    uses = re.search(r"\bUSES\s+([a-z_\s]+)", call.group(1)) if call else None
    named = uses.group(1).split() if uses else []
    if sorted(named) != sorted(USES[layer]):
        yield f"{layer}/CMakeLists.txt: USES is {named}, not {USES[layer]}"
    for target in re.findall(r"\bdiwarp_([a-z]+)\b", text):
        if target in USES and target != layer and target not in below(USES, layer):
            yield f"{layer}/CMakeLists.txt names diwarp_{target}: {layer} does not stand on it"


def check_lists(root, kinds):
    """Each public header must stand in one of the lists, and what they name must exist."""
    folder = root / PUBLIC / "diwarp"
    present = {str(file.relative_to(folder)) for file in folder.rglob("*.h")}
    for name in sorted(present - set(kinds)):
        yield f"{PUBLIC}/diwarp/{name} stands in neither list of {LISTS}"
    for name in sorted(set(kinds) - present):
        yield f"{LISTS} names {name}, which does not exist"


def check_data(root, kinds):
    """A data header must name neither what a handle's header defines nor what is inside a layer."""
    texts = {name: COMMENT.sub("", (root / PUBLIC / "diwarp" / name).read_text(encoding="utf-8"))
             for name in kinds if (root / PUBLIC / "diwarp" / name).is_file()}
    handles = {found for name, text in texts.items() if kinds[name] == "handle"
               for found in DEFINED.findall(text)}
    for name in sorted(name for name in texts if kinds[name] == "data"):
        words = set(re.findall(r"\w+", texts[name]))
        for found in sorted(words & handles):
            yield f"{PUBLIC}/diwarp/{name} names {found}: a data header names no handle"
        for found in sorted(set(INTERNAL.findall(texts[name]))):
            yield f"{PUBLIC}/diwarp/{name} names {found}: a data header names nothing of a layer"


def check_rooms(root, layer):
    """Each source of a layer with rooms lies in a room, and each room has sources."""
    folders = set()
    for file in sorted(p for p in (root / layer).rglob("*") if p.suffix in (".h", ".cpp")):
        folder = file.parent.relative_to(root / layer).as_posix()
        folders.add("" if folder == "." else folder)
        if folder != "." and folder not in ROOMS[layer]:
            yield f"{file.relative_to(root)} lies in no room of {layer}: ROOMS has them"
    for folder in sorted(set(ROOMS[layer]) - folders):
        yield f"{layer}/{folder} has no sources"


def check(root):
    """Every violation in the project at `root`, a message each."""
    problems = []
    kinds = listed(root)
    problems += check_lists(root, kinds)
    problems += check_data(root, kinds)
    for layer in USES:
        problems += check_cmake(root, layer)
    for layer in ROOMS:
        if layer in USES or (root / layer).is_dir():  # of programs some may be left out
            problems += check_rooms(root, layer)
    problems += check_example(root)
    for folder in [PUBLIC, *USES, *PROGRAMS]:
        files = sorted(p for p in (root / folder).rglob("*") if p.suffix in (".h", ".cpp"))
        if not files and folder in USES:
            problems.append(f"{folder} has no sources")
        for file in files:
            problems += check_file(root, file, kinds)
            problems += check_sockets(root, file)
    return problems


def main():
    problems = check(Path(sys.argv[1]).resolve())
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
