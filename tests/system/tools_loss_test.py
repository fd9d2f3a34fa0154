#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The measuring tools against a peer that loses what it is told to. Called with the name of one case;
--list names all."""
import sys
import threading
import time

import foreign_peer
from harness import PATIENCE, case, check, check_sentence, main, path, rows_of, run


class ForeignServer:
    """A foreign_peer.Server in a thread of its own."""

    def __init__(self, on_message=None, result=None, server=None):
        self.server = server or foreign_peer.Server(on_message, result)
        self.failure = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            self.server.run()
        except Exception as failure:  # told by the thread that waits
            self.failure = failure

    def finish(self):
        self.thread.join(PATIENCE)
        check(not self.thread.is_alive() and self.failure is None, f"the server: {self.failure!r}")
        return self.server.done


def start_forgetful_echo():
    """Answers messages, but every tenth only when it comes again, and then three times."""
    seen = set()

    def echo(number, payload, source, queue_pair):
        forget = number % 10 == 5
        if not forget or number in seen:
            for _ in range(3 if forget else 1):
                queue_pair.send(payload, source)
        seen.add(number)

    server = ForeignServer(echo, lambda word: None)
    return server, seen


@case()
def lost_answers_are_asked_for_again():
    """A busy host may take more messages for lost than the three that are."""
    server, seen = start_forgetful_echo()
    run("pingpong", "--connect", server.server.address, "--size", 100, "--iterations", 30,
        "--warmup", 0, "--max-loss", 100, "--json", path("rows.json"))
    row = rows_of("rows.json")[0]
    check(row["lost"] >= 3 and row["sent"] == 30 + row["lost"], row)
    check(seen == set(range(30)), seen)
    check(server.finish() == row, "the server was told other figures")


@case()
def more_loss_than_allowed_is_a_failure():
    server, _ = start_forgetful_echo()
    done = run("pingpong", "--connect", server.server.address, "--size", 100, "--iterations", 30,
               "--warmup", 0, "--max-loss", 5, status=1)
    check_sentence("pingpong", done.stderr, r"\d+ of \d+ messages of 100 bytes got lost")
    server.finish()


@case()
def answers_that_never_come_end_the_run():
    server = ForeignServer(lambda *_: None, lambda word: None)
    done = run("pingpong", "--connect", server.server.address, "--timeout", "0.5", status=1)
    check_sentence("pingpong", done.stderr, "no answer came from 127.0.0.1:")
    server.finish()


def contents_of_answer(number, size):
    """As tools/common/pattern.cpp makes them: the number, and then words of a hash."""
    most = 2 ** 64 - 1
    seed = size * 0x9E3779B97F4A7C15 & most ^ number * 0xC2B2AE3D27D4EB4F & most ^ 1
    octets = number.to_bytes(4, "little")
    index = 0
    while len(octets) < size:
        index += 1
        word = seed + index * 0x9E3779B97F4A7C15 & most
        word = (word ^ word >> 29) * 0xBF58476D1CE4E5B9 & most
        octets += (word ^ word >> 32).to_bytes(8, "little")
    return octets[:size]


class RecordServer(foreign_peer.Server):
    """Answers a Write-Record with the last answer once more, amid which the beginning of the next one
    comes, and then with the next as a whole, all at the same place."""

    SIZE = 100

    def __init__(self):
        super().__init__(None, lambda word: None)
        self.granted = {"memory": {"stag": 7, "offset": 0}}

    def take_message(self, queue_pair):
        segment, source = queue_pair.hear()
        number = segment.immediate
        memory = self.row["memory"]
        place = (memory["stag"], memory["offset"])

        def segments(payload, number):
            return queue_pair.record_segments(payload, *place, self.SIZE // 2, immediate=number)

        whole = segments(contents_of_answer(number, self.SIZE), number)
        if number > 0:
            first, last = segments(contents_of_answer(number - 1, self.SIZE), number - 1)
            whole[:0] = first, *segments(number.to_bytes(4, "little"), number), last
        for segment in whole:
            queue_pair.send_segment(segment, source)
            time.sleep(0.001)  # for the client to see each by itself


@case()
def write_record_that_comes_again_is_not_taken_for_the_next_one():
    """Its bytes may be the next one's by then, and of those a part."""
    server = ForeignServer(server=RecordServer())
    run("pingpong", "--connect", server.server.address, "--op", "write-record", "--transport", "ud",
        "--size", RecordServer.SIZE, "--iterations", 100, "--warmup", 0, "--max-loss", 100,
        "--verify", "--json", path("rows.json"))
    row = rows_of("rows.json")[0]
    check(row["sent"] == 100 + row["lost"], row)
    server.finish()


def start_receiver(credited, **changes):
    """Counts all messages, but gives credits for the first `credited` only."""
    numbers = []

    def take(number, payload, source, queue_pair):
        numbers.append(number)
        if number < credited:
            queue_pair.send((number + 1).to_bytes(8, "little"), source)

    def result(word):
        if word["type"] != "sent":
            return None
        answer = {"type": "result", "flow": word["flow"], "received": len(numbers),
                  "valid_bytes": len(numbers) * 100, "partial": 0, "wrong": 0, "first_wrong": "",
                  "next": credited, "gaps": {"count": 0, "bytes": 0, "largest": 0}}
        answer.update(changes)
        numbers.clear()
        return {key: value for key, value in answer.items() if value is not None}

    return ForeignServer(take, result)


def send_to(server, *options, status=0):
    return run("bandwidth", "--connect", server.server.address, "--size", 100, "--iterations", 100,
               "--warmup", 10, "--window", 16, "--json", path("rows.json"), *options, status=status)


@case()
def sender_out_of_credits_goes_on_in_the_end():
    """110 messages, credits for 40: the other 70 are more than four windows."""
    server = start_receiver(credited=40, received=90, valid_bytes=9000)
    send_to(server, "--max-loss", 10)
    row = rows_of("rows.json")[0]
    check(row["received"] == 90 and row["valid_bytes"] == 9000, row)
    check(row["lost"] == 10 and row["write_offs"] >= 4, row)
    check(server.finish() == row, "the server was told other figures")


@case()
def flow_with_more_loss_than_allowed_is_a_failure():
    server = start_receiver(credited=110, received=90, valid_bytes=9000)
    done = send_to(server, "--max-loss", "9.9", status=1)
    check_sentence("bandwidth", done.stderr, "10 of 100 messages of 100 bytes got lost")
    server.finish()


@case()
def wrong_contents_are_a_failure():
    server = start_receiver(credited=110, wrong=1, first_wrong="Message 7 came twice.")
    done = send_to(server, status=1)
    check_sentence("bandwidth", done.stderr, "message 7 came twice")
    server.finish()


@case()
def unusable_results_are_a_failure():
    for changes in ({"received": None}, {"received": -1}, {"valid_bytes": "many"}, {"next": []}):
        server = start_receiver(credited=110, **changes)
        done = send_to(server, status=1)
        check_sentence("bandwidth", done.stderr, "no usable")
        server.finish()


if __name__ == "__main__":
    sys.exit(main())
