# SPDX-License-Identifier: GPL-2.0
"""All that andante.py has: session.py there | absent | lost."""

import os
import select
import signal
import socket
import sys
import threading

import andante

PERIOD_NS = 16_666_667


def fails(code, call, *arguments):
    try:
        call(*arguments)
    except andante.Error as error:
        assert error.code == code, error
        assert str(error), "an error has a sentence"
        return
    raise AssertionError(f"{call} succeeds")


def one_cycle(thread):
    assert not thread.begin(andante.now_ns())
    with thread.cycle(andante.now_ns() + PERIOD_NS * 100):
        pass
    assert not thread.end(), "the cycle has ended"
    assert thread.begin(andante.now_ns() + PERIOD_NS * 100) and thread.end()
    assert not thread.error
    assert thread.begin(andante.now_ns() + PERIOD_NS * 100) and thread.begin(andante.now_ns() + PERIOD_NS * 200)
    assert thread.error.code == -14 and "end()" in str(thread.error)
    thread.error = None
    assert thread.end() and not thread.end(), "the second one had begun"
    thread.report(123)
    thread.surge()


def audio(session, seen):
    with session.join(andante.Cycle(period_ns=5_333_333)) as thread:
        one_cycle(thread)
        seen.append(bool(thread))


def events(thread):
    with thread.sink() as sink:
        assert not thread.is_pending(2)
        sink.raise_event(2, andante.now_ns())
        sink.raise_now(2)
        assert thread.is_pending(2)
        fails(-8, sink.raise_event, andante.SERVICES)
    reader, writer = socket.socketpair()
    with reader, writer:
        thread.subscribe(reader, 1, 30_000)
        thread.unsubscribe(reader)
    eventfd = os.eventfd(0)
    thread.subscribe(eventfd, 1)
    thread.unsubscribe(eventfd)
    os.close(eventfd)
    assert thread.tell(andante.TELL_FD) > 0 and thread.told() == []
    assert thread.tell(signal.SIGUSR1) == 0 and thread.tell(andante.TELL_NOT) == 0
    fails(-23, thread.tell, 65)


def promises(session):
    answer = session.promise(andante.Terms(budget_ns=16_000_000, period_ns=PERIOD_NS))
    assert not answer.granted and answer.reason and 0 < answer.terms.budget_ns < 16_000_000, answer
    nearest = session.promise(answer.terms)
    assert nearest.granted and nearest.name and nearest.terms == answer.terms, nearest
    fails(-23, session.promise, andante.Terms(budget_ns=2, period_ns=1))
    session.withdraw()


def forks(thread):
    child = os.fork()
    if child == 0:
        fails(-5, thread.end)
        fails(-5, thread.surge)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def there():
    fails(-13, andante.Session, 9)
    fails(-10, andante.Session, andante.GAME, 0, 0, 0, b"\xff")
    fails(-23, andante.Session, andante.GAME, 0, 0, 0, "two words")
    seen = []
    with andante.Session(andante.GAME, PERIOD_NS, name="python") as session, session.join() as thread:
        assert session and not session.error
        fails(-26, session.join)
        session.foreground(True)
        one_cycle(thread)
        other = threading.Thread(target=audio, args=(session, seen))
        other.start()
        other.join()
        events(thread)
        promises(session)
        forks(thread)
        assert select.select([session], [], [], 0) == ([], [], [])
        assert session.next_notice() is None
    assert seen == [True]
    assert not session and session.next_notice() is None, "a closed one does nothing"


def absent():
    with andante.Session(andante.AUDIO) as session, session.join() as thread, thread.sink() as sink:
        assert session.error.code == -2 and not session and not thread
        thread.begin(1)
        thread.end()
        sink.raise_event(0)
        assert not thread.is_pending(0) and session.fileno() == -1
        assert not session.promise(andante.Terms(1, 2)).granted


def lost():
    """The daemon ends once it has let us in: that is no reason for a program to end."""
    with andante.Session(andante.GAME, PERIOD_NS) as session:
        assert session and not session.error
        session.foreground(True)
        assert session.error.code == -3 and "ended" in str(session.error)
        with session.join() as thread, thread.cycle(andante.now_ns() + PERIOD_NS):
            assert not thread
        answer = session.promise(andante.Terms(1_000_000, PERIOD_NS))
        assert not answer.granted and "ended" in answer.reason
        session.withdraw()
        assert session.next_notice() is None


{"there": there, "absent": absent, "lost": lost}[sys.argv[1]]()
