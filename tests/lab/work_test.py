#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lanes run: programs that do well, die, hang or print rubbish; and how rounds go."""
import contextlib
import json
import os
import sys
import tempfile
import time

from lab import SERVE, case, check, fake, main, path, refused, where, write
from diwarp_lab import experiment, scene, work
from diwarp_lab.basics import Refusal
from diwarp_lab.networks import NETWORKS, OPTIONS, BuiltIn, Loopback
from diwarp_lab.progress import Progress
from diwarp_lab.results import Results
from diwarp_lab.runner import Networks, Runner
from diwarp_lab.work import Failed, Stage

ROW = 'print(json.dumps([{"mb_per_s": 5, "half_rtt_us": {"p50": 2}}]))'


def use_fakes():
    where.tools = where.folder
    work.known_options.clear()


def stage(limit=5, **point):
    return Stage(Loopback(None, {}, 1, 3), point, limit)


def run_fake(client, server=SERVE, limit=5):
    use_fakes()
    fake("bandwidth", client, server)
    return work.pair("bandwidth", "--size {size}").run(stage(limit, size=64))


@case()
def rows_are_flat():
    check(run_fake(ROW) == {"mb_per_s": 5, "half_rtt_us.p50": 2, "mb_per_s.sum": 5,
                            "mb_per_s.least": 5, "rows": 1}, "row")


@case()
def options_have_the_points_values():
    row = run_fake('print(json.dumps({"words": " ".join(sys.argv[1:])}))')
    check(row["words"] == "--connect 127.0.0.1:1 --json - --size 64", row)


FAILURES = {
    "dies": ('sys.exit("diwarp-bandwidth: no luck")', "ended with status 1: diwarp-bandwidth: no"),
    "is_killed": ("import signal; os.kill(os.getpid(), signal.SIGSEGV)", "killed by signal 11"),
    "hangs": ("time.sleep(100)", "did not end within 1 s, and was killed"),
    "prints_rubbish": ('print("<<<")', "'<<<', which is no JSON"),
    "prints_bytes": (r'sys.stdout.buffer.write(b"\xff\xfe")', "which is no JSON"),
    "prints_nothing": ("", "printed nothing"),
    "prints_nan": ("print('[{\"x\": NaN}]')", "NaN, which is no JSON"),
    "prints_a_number_beyond_all": ("print('[{\"x\": 1e999}]')", "1e999, which is too large"),
    "prints_a_whole_number_beyond_all": ('print("[" + "9" * 400 + "]")', "which is too large"),
    "prints_other_json": ("print([1, 2])", "no row"),
    "prints_no_row": ("print([])", "no row"),
    "prints_without_end": ('while True: print("x" * 100000)', "more than 16 MiB"),
    "closes_its_output_and_stays": ("os.close(1); os.close(2); time.sleep(100)", "did not end"),
}


@case(*((name,) for name in FAILURES))
def a_program_that_fails(name):
    client, told = FAILURES[name]
    begun = time.monotonic()
    refused(Failed, lambda: run_fake(client, limit=30 if "MiB" in told else 1), told)
    check(time.monotonic() - begun < 60, "it took too long")
    check(not children(), f"left behind: {children()}")


NEVER = 'never printed "listening at", and ended with status '
SERVERS = {"dies": ("sys.exit(3)", NEVER + "3"), "ends": ("sys.exit(0)", NEVER + "0"),
           "hangs": ("time.sleep(100)", 'did not print "listening at" within 1 s'),
           "closes_its_output_and_stays": ("os.close(1); os.close(2); time.sleep(100)",
                                           "did not end within 1 s")}


@case(*((name,) for name in SERVERS))
def a_server_that_fails(name):
    server, told = SERVERS[name]
    refused(Failed, lambda: run_fake(ROW, SERVE.split("if \"--server\"")[0] + server, 1), told)
    check(not children(), f"left behind: {children()}")


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return file.read().split()


@case()
def options_that_a_tool_lacks_are_named():
    use_fakes()
    fake("bandwidth", ROW)
    lacking = work.pair("bandwidth", "--size 4 --streams 2", "--clients 3").obstacle(stage())
    check(lacking == "diwarp-bandwidth has no --clients, --streams", lacking)
    check("there is no diwarp-warp" in work.pair("warp", "").obstacle(stage()), "no tool")


PROBES = {
    "is_not_there": (None, "there is no diwarp-bandwidth in "),
    "prints_bytes": (r'sys.stdout.buffer.write(b"\xff\xfe\n")', "has no --size"),
    "hangs": ("time.sleep(100)", "--help did not end within 1 s, and was killed"),
    "prints_without_end": ('while True: print("x" * 100000)', "--help printed more than 16 MiB"),
    "dies": ('sys.exit("no library")', "--help ended with status 1: no library"),
    "crashes": ("import signal; os.kill(os.getpid(), signal.SIGSEGV)", "killed by signal 11"),
    "cannot_be_started": ("", "cannot be started: Permission denied"),
}


@case(*((name,) for name in PROBES))
def a_program_that_cannot_tell_its_options(name):
    """It is an obstacle, each time that it is looked at, and has no more time than a run."""
    use_fakes()
    server, told = PROBES[name]
    if server is not None:
        os.chmod(fake("bandwidth", "", server), 0o600 if "Permission" in told else 0o700)
    work.PROBE_LIMIT = 30 if "MiB" in told else 1
    for _ in range(2):
        why = work.pair("bandwidth", "--size 4").obstacle(stage(limit=100))
        check(told in why, why)
    check(not children(), f"left behind: {children()}")


@case()
def control_characters_of_a_program_are_replaced():
    reason = refused(Failed, lambda: run_fake(r'sys.exit("\x1b[31mred\x07")'), "status 1: ?[31mred?")
    check(reason.isprintable(), reason)


@case()
def a_program_that_writes_errors_of_bytes_and_many_is_quoted():
    told = r'sys.stderr.buffer.write(b"x\n" * 100000 + b"\xff no luck"); sys.exit(1)'
    refused(Failed, lambda: run_fake(told), "status 1: \ufffd no luck")


@case()
def a_child_whose_parent_has_ended_ends():
    """It is not left alone, whenever that happens: of another parent, it ends at once."""
    marker = path("ran")
    child = os.fork()
    if child == 0:
        try:
            scene.end_with(os.getppid() + 1)
            write("ran", "")
        finally:
            os._exit(2)
    check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1, "it ended otherwise")
    check(not os.path.exists(marker), "it went on")


@case()
def a_scene_has_a_folder_only_when_it_is_wanted():
    tempfile.tempdir = where.folder
    before = os.listdir(where.folder)
    with scene.Scene(ahead=False) as made:
        check(os.listdir(where.folder) == before, "there is one at once")
        name = made.folder.name
        check(os.path.isdir(name), "there is none")
    check(not os.path.exists(name), "it stays")


@case()
def a_command_that_fails_is_shown_as_a_person_types_it():
    with scene.Scene(ahead=False) as made:
        space = made.new_space()
        refused(AssertionError, lambda: space.command("ip", "link", "show", "no such"),
                "ip link show 'no such': ")


@case()
def programs_run_together_and_in_sequence():
    use_fakes()
    fake("bandwidth", ROW)
    both = {"a": work.pair("bandwidth", ""), "b": work.pair("bandwidth", "",
                                                             only={"size": [1]})}
    row = work.together(**both).run(stage(size=64))
    check(row["a.mb_per_s"] == row["b.mb_per_s"] == 5, row)
    row = work.sequence(**both).run(stage(size=64))
    check("a.mb_per_s" in row and "b.mb_per_s" not in row, row)


@case()
def rows_of_many_add_up():
    use_fakes()
    fake("bandwidth", 'print(json.dumps([{"mb_per_s": 5, "processor": {"client": {"total_s": 1}, '
                      '"server": {"total_s": 2}}}]))')
    row = work.pair("bandwidth", "", clients="clients").run(stage(clients=3))
    check((row["mb_per_s.sum"], row[work.CLIENT_TIME], row[work.SERVER_TIME]) == (15, 3, 2), row)
    row = work.many("clients", work.pair("bandwidth", ""), fan="out").run(stage(clients=2))
    check((row["mb_per_s.sum"], row["mb_per_s.least"]) == (10, 5), row)
    check((row[work.CLIENT_TIME], row[work.SERVER_TIME]) == (2, 4), row)


@case()
def programs_that_ran_at_different_times_share_all_of_it():
    """Each moved 10 MB in a second, one after the other, with a second between them."""
    rows = [{"valid_bytes": 10e6, "seconds": 1, "ended_s": ended} for ended in (11, 13)]
    check(round(work.merge(rows)["mb_per_s.together"], 3) == 6.667, work.merge(rows))
    check("mb_per_s.together" not in work.merge([{"valid_bytes": 1, "seconds": 1}]), "no end")


@case()
def what_all_rows_share_is_of_all():
    """Shares are means, and what each process counted adds up."""
    use_fakes()
    fake("bandwidth", 'print(json.dumps({"valid_percent": 50, "overflowed": 2, "impaired": '
                      '{"offered": 10, "dropped": 1}}))')
    row = work.many(2, work.pair("bandwidth", "")).run(stage())
    check((row["valid_percent"], row["overflowed"]) == (50, 4), row)
    check((row["impaired.offered"], row["impaired.dropped"]) == (20, 2), row)
    row = work.merge([{"valid_percent": 100}, {"valid_percent": 0}])
    check(row["valid_percent"] == 50, row)


@case()
def a_pair_beside_another_has_it_there_all_the_time():
    use_fakes()
    fake("bandwidth", ROW)
    fake("pingpong", "time.sleep(60)")
    row = work.beside(work.pair("bandwidth", ""), work.pair("pingpong", "")).run(stage(limit=30))
    check(row["mb_per_s"] == 5, row)
    fake("pingpong", ROW)
    fake("bandwidth", "time.sleep(1)\n" + ROW)
    refused(Failed, lambda: work.beside(work.pair("bandwidth", ""),
                                        work.pair("pingpong", "")).run(stage(limit=30)), "ended first")


@case()
def one_row_of_many_is_chosen():
    write("rows", '#!/bin/sh\necho \'{"rows": [{"name": "a", "x": 1}, {"name": "b", "x": 2}]}\'',
          True)
    chosen = work.program(path("rows"), row={"name": "b"}, column="x")
    check(chosen.run(stage()) == {"name": "b", "x": 2, "value": 2}, "row b")
    refused(Failed, lambda: work.program(path("rows"), row={"name": "c"}).run(stage()),
            "no row")


@case(("udp",), ("tcp",), ("count",))
def plain_sockets_print_rows(kind):
    row = work.plain(kind, "--seconds 0.1" if kind != "count" else "--packets 200").run(stage(30))
    check(row.get("half_rtt_us.p50", row.get("mb_per_s", row.get("received"))) > 0, row)


class NoOutput:
    def __init__(self):
        self.rows = []

    def write_row(self, row):
        self.rows.append(row)

    def write_json(self, *_):
        pass


def run_experiment(text, explicit=False, **more):
    one = experiment.load(write("one.py", text))
    results, out = Results(one, one.point_list(False)), NoOutput()
    networks = Networks(one.networks, explicit)
    with open(os.devnull, "w") as silent:
        Runner(one, results, out, networks, Progress("x", 1, silent), one.rounds, 1, limit=5,
               **more).run()
    return results, out.rows, networks


COUNTER = '''
with open(__file__ + ".log", "a") as file: file.write(sys.argv[sys.argv.index("--op") + 1] + " ")
print(json.dumps([{"mb_per_s": 5}]))'''
LANES = '''value("speed", "mb_per_s")
lane("a", pair("bandwidth", "--op a"))
lane("b", pair("bandwidth", "--op b"))
'''


@case()
def lanes_take_turns_within_a_round():
    use_fakes()
    fake("bandwidth", COUNTER)
    results, rows, _ = run_experiment("rounds(least=2, most=2, warmup=1)\n" + LANES)
    with open(path("diwarp-bandwidth.log")) as file:
        check(file.read().split() == ["a", "b"] * 3, "not in turn")
    check([(row["lane"], row["round"]) for row in rows] ==
          [("a", 1), ("b", 1), ("a", 2), ("b", 2)], rows)


@case()
def rounds_end_when_the_quartiles_settle():
    use_fakes()
    fake("bandwidth", ROW)
    _, rows, _ = run_experiment("rounds(least=2, most=9, warmup=0)\n" + LANES)
    check(len(rows) == 8, f"{len(rows)} rows")  # settled() looks at four


@case()
def a_lane_that_fails_does_not_end_the_others():
    use_fakes()
    fake("bandwidth", 'if "b" in sys.argv: sys.exit("no b")\n' + ROW)
    results, rows, _ = run_experiment("points(size=[1, 2, 3])\nrounds(least=3, most=3, warmup=0)\n"
                                      + LANES)
    failed = [row for row in rows if row["status"] != "ok"]
    check(len(rows) - len(failed) == 9 and len(failed) == 4, rows)
    check("no b" in failed[0]["why"] and results.obstacles["b", 2] ==
          "it failed at the points before", results.obstacles)


@case()
def the_built_in_network_tells_programs_by_their_environment():
    use_fakes()
    fake("bandwidth", 'print(json.dumps([{"mb_per_s": 5, "impair": os.environ["DIWARP_IMPAIR"],'
                      '"impaired": {"offered": 1000, "dropped": 12}}]))')
    text = 'network("built-in")\npoints(loss=[1])\nrounds(least=2, most=2, warmup=0)\n' + LANES + \
        'lane("c", pair("bandwidth", "--transport rc"))\n' + \
        'lane("d", sequence(flow=pair("bandwidth", ""), times=pair("bandwidth", "")))\n'
    results, rows, _ = run_experiment(text)
    check(results.counts == {("built-in", 1): [8000, 96]}, results.counts)
    check("TCP" in results.obstacles["c", 0], results.obstacles)
    network = BuiltIn(None, {"loss": 1, "delay": 50}, 7, 2)
    check(network.environment == {"DIWARP_IMPAIR": "drop=0.01,delay=50,seed=7"},
          network.environment)


NOTHING = 'print(json.dumps([{"mb_per_s": 0, "valid_bytes": 0, "overflowed": %d}]))'
FAILED = "nothing valid arrived, though no loss was asked for"
EMPTY = {"for_no_reason": ("", 0, FAILED), "of_no_bytes": ("points(size=[0])\n", 0, ""),
         "where_losses_are_asked_for": ('network("built-in")\npoints(loss=[1])\n', 0, ""),
         "where_losses_were_counted": ("", 3, "")}


@case(*((name,) for name in EMPTY))
def nothing_valid_arrives(name):
    use_fakes()
    text, overflowed, told = EMPTY[name]
    fake("bandwidth", NOTHING % overflowed)
    _, rows, _ = run_experiment(text + "rounds(least=1, most=1, warmup=0)\n" + LANES)
    check(rows and all(told in row["why"] and (row["status"] == "failed") == bool(told)
                       for row in rows), rows)


@case()
def a_network_that_the_user_chose_leaves_out_what_the_experiment_set():
    """And refuses what the user set."""
    chosen = Networks(("built-in",), True, {"loss"})
    left = chosen.fitting("built-in", {"rate": 10, "loss": 1, "delay": 2})
    check(left == {"loss": 1, "delay": 2}, left)
    check("built-in leaves out: rate" in chosen.notes[0], chosen.notes)
    chosen = Networks(("veth",), True, {"loss"})
    refused(Refusal, lambda: chosen.possible([{"size": 1}], {"loss": 1}), "veth has no loss")
    refused(Refusal, lambda: chosen.possible([{"loss": 0}, {"loss": 1}], {}), "veth has no loss")


@case()
def points_that_a_network_of_the_users_choice_cannot_have_are_left_out():
    chosen = Networks(("veth",), True, set())
    points = [{"loss": 0, "size": 1}, {"loss": 1, "size": 1}]
    check(chosen.possible(points, {}) == points[:1], "those without loss")
    check("veth has no loss: the points that need it are left out" in chosen.notes[0],
          chosen.notes)
    refused(Refusal, lambda: chosen.possible(points[1:], {}), "veth has no loss")
    check(Networks(("veth",), False).possible(points, {}) == points, "nobody chose it")


@case()
def without_namespaces_the_built_in_network_serves():
    use_fakes()
    fake("bandwidth", ROW)
    no = Networks(("switch",), False)
    no._no_namespaces = "as the case wants it"
    with contextlib.ExitStack() as stack:
        made = no.open(experiment.Lane("x", None, "", {}, 0), {"loss": 1, "rate": 10 ** 6}, 1, 2,
                       stack)
    check(made.name == "built-in" and made.settings == {"loss": 1}, made.settings)
    check("leaves out: rate" in no.notes[0] and "without root" in no.notes[1], no.notes)
    strict = Networks(("switch",), True)
    strict._no_namespaces = "as the case wants it"
    refused(Exception, lambda: strict.open(experiment.Lane("x", None, "", {}, 0), {}, 1, 2, None),
            "no network namespaces", "as the case wants it")


@case()
def every_network_says_what_it_can():
    for name, kind in NETWORKS.items():
        check(kind.about and set(kind.can) <= set(OPTIONS), name)


@case()
def seeds_repeat():
    one = Runner(None, None, None, None, None, None, 1)
    check(one.seed_of("a", 1) == one.seed_of("a", 1) != one.seed_of("a", 2), "seeds")
    check(json.dumps(one.seed_of("a", 1)), "a number")


if __name__ == "__main__":
    sys.exit(main())
