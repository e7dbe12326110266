# SPDX-License-Identifier: GPL-2.0
"""For programs that say what they wait for: sessions, deadlines and events with Andante.

    import andante

    with andante.Session(andante.GAME, period_ns=16_666_667) as session, session.join() as thread:
        while True:
            wait_for_the_next_frame()
            with thread.cycle(andante.now_ns() + 16_666_667):
                draw()

Without the daemon, or without libandante, a session is there all the same, and all calls do nothing. Whatever is no
fault of the program raises nothing: that Andante is not there, has ended, is stuck or has no room, that a thread has
real-time priority. `session.error` says what it was last. Mistakes raise Error. Times are in nanoseconds; instants are those of CLOCK_MONOTONIC (now_ns()).

A session may be used from any thread. A thread that has joined calls begin(), end(), report() and surge() itself;
a sink may be used by any. None of it survives os.fork(): a child opens a session of its own.
"""

import ctypes
import os
import time
from collections import namedtuple
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_uint32, c_uint64, c_void_p

__all__ = ["AUDIO", "GAME", "VIDEO", "INTERACTIVE", "SERVICES", "TELL_FD", "TELL_NOT", "Answer", "Cycle", "Error", "Notice", "Session", "Sink",
           "Terms", "Thread", "now_ns"]

AUDIO, GAME, VIDEO, INTERACTIVE = 1, 2, 3, 4
#: How Thread.tell() has a thread told of its events; or the number of a signal.
TELL_FD, TELL_NOT = -1, 0
#: Kinds of events, numbered from 0 on, of each of which one may be pending for a thread.
SERVICES = 4

NO_DAEMON, PAST_DEADLINE, NO_CYCLE, NOT_ENDED = -2, -6, -7, -14
# The program's own mistakes, as andante.h numbers them: forked, no service, invalid, no role, bad terms, no thread, not
# yours, taken. All others are the machine's state.
_MISTAKES = frozenset((-5, -8, -10, -13, -23, -24, -25, -26))
NAME_BYTES, REASON_BYTES = 128, 512

#: What one thread does: each in ns, 0 where it is not said.
Cycle = namedtuple("Cycle", "period_ns deadline_ns budget_ns", defaults=(0, 0))
#: A promise: so much CPU time in every period, of which `losses` of any `window` fail at most.
Terms = namedtuple("Terms", "budget_ns period_ns deadline_ns losses window", defaults=(0, 0, 0))
#: `terms` are those that were granted, or the nearest that could be, or None; `reason` is in sentences.
Answer = namedtuple("Answer", "granted terms name reason")
#: What has become of a promise: `kind` is "weakened", "exhausted", "ended", or "" for what is not known here.
Notice = namedtuple("Notice", "kind times reason")

KINDS = {1: "weakened", 2: "exhausted", 3: "ended"}


class Error(Exception):
    """A call that has failed; `code` is one of ANDANTE_E_* of andante.h."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class _Struct(ctypes.Structure):
    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(self), **fields)


class _Wish(_Struct):
    _fields_ = [("size", c_uint32), ("role", c_uint32), ("period_ns", c_uint64), ("deadline_ns", c_uint64),
                ("budget_ns", c_uint64), ("name", c_char_p)]


class _Cycle(_Struct):
    _fields_ = [("size", c_uint32), ("reserved", c_uint32), ("period_ns", c_uint64), ("deadline_ns", c_uint64),
                ("budget_ns", c_uint64)]


class _Terms(_Struct):
    _fields_ = [("size", c_uint32), ("losses", c_uint32), ("window", c_uint32), ("reserved", c_uint32),
                ("budget_ns", c_uint64), ("period_ns", c_uint64), ("deadline_ns", c_uint64)]


class _Answer(_Struct):
    _fields_ = [("size", c_uint32), ("granted", c_uint32), ("nearest", c_uint32), ("losses", c_uint32),
                ("window", c_uint32), ("reserved", c_uint32), ("budget_ns", c_uint64), ("period_ns", c_uint64),
                ("deadline_ns", c_uint64), ("name", c_char * NAME_BYTES), ("reason", c_char * REASON_BYTES)]


class _Notice(_Struct):
    _fields_ = [("size", c_uint32), ("kind", c_uint32), ("times", c_uint64), ("reason", c_char * REASON_BYTES)]


_FUNCTIONS = {
    "open": (c_int, POINTER(_Wish), POINTER(c_void_p)),
    "close": (c_int, c_void_p),
    "join": (c_int, c_void_p, POINTER(_Cycle), POINTER(c_void_p)),
    "leave": (c_int, c_void_p),
    "begin": (c_int, c_void_p, c_uint64),
    "end": (c_int, c_void_p),
    "report": (c_int, c_void_p, c_uint64),
    "surge": (c_int, c_void_p),
    "sink_of": (c_void_p, c_void_p),
    "sink_free": (c_int, c_void_p),
    "raise": (c_int, c_void_p, c_uint32, c_uint64),
    "raise_now": (c_int, c_void_p, c_uint32, c_uint64),
    "subscribe": (c_int, c_void_p, c_int, c_uint32, c_uint32),
    "unsubscribe": (c_int, c_void_p, c_int),
    "tell": (c_int, c_void_p, c_int),
    "told": (c_int, c_void_p),
    "pending": (c_int, c_void_p, c_uint32),
    "foreground": (c_int, c_void_p, c_int),
    "promise": (c_int, c_void_p, POINTER(_Terms), POINTER(_Answer)),
    "withdraw": (c_int, c_void_p),
    "calls": (c_int, c_void_p),
    "fd": (c_int, c_void_p),
    "next_notice": (c_int, c_void_p, POINTER(_Notice)),
    "last_message": (c_char_p,),
}


def _load():
    """The functions of the library, by name; None where it is not installed, and why."""
    try:
        library = ctypes.CDLL("libandante.so.0")
        functions = {}
        for name, (returns, *takes) in _FUNCTIONS.items():
            function = getattr(library, "andante_" + name)
            function.restype, function.argtypes = returns, takes
            functions[name] = function
        return functions, None
    except (OSError, AttributeError) as error:
        return None, Error(NO_DAEMON, f"libandante is not installed: {error}")


_CALLS, _ABSENT = _load()


def _last_error(code):
    return Error(code, _CALLS["last_message"]().decode(errors="replace"))


def now_ns():
    """Now, of CLOCK_MONOTONIC."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def _fd_of(file):
    """Its descriptor, which it may be itself, as os.eventfd() returns it."""
    return file if isinstance(file, int) else file.fileno()


class _Handle:
    """What the library has made. Freed once, by close() or at the end of a `with`."""

    _free = ""
    _handle = None
    #: Why nothing has come of a call, if that was no mistake of the program; the last one.
    error = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __bool__(self):
        """Whether anything comes of calls."""
        return self._handle is not None

    def close(self):
        """Frees it; all calls do nothing afterwards."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _CALLS[self._free](handle)

    def _ask(self, name, *arguments):
        return 0 if self._handle is None else self._told(_CALLS[name](self._handle, *arguments))

    def _told(self, code):
        """Raises a mistake, and keeps what is none."""
        if code in _MISTAKES:
            raise _last_error(code)
        if code < 0 and code not in (PAST_DEADLINE, NO_CYCLE):
            self.error = _last_error(code)
        return code


class Session(_Handle):
    """A connection to Andante, which lasts until it is closed and all its threads have left.

    `role` is AUDIO, GAME, VIDEO or INTERACTIVE; the cycle is what threads do unless they say otherwise. Raises
    Error for a wish that makes no sense.
    """

    _free = "close"

    def __init__(self, role, period_ns=0, deadline_ns=0, budget_ns=0, name=None):
        self.error = _ABSENT
        if _CALLS is None:
            return
        wish = _Wish(role=role, period_ns=period_ns, deadline_ns=deadline_ns, budget_ns=budget_ns,
                     name=None if name is None else os.fsencode(name))
        handle = c_void_p()
        self._told(_CALLS["open"](byref(wish), byref(handle)))
        self._handle = handle.value

    def join(self, cycle=None):
        """The calling thread takes part from now on, with this Cycle or the session's; its Thread."""
        own = None if cycle is None else byref(_Cycle(**cycle._asdict()))
        handle = c_void_p()
        self._ask("join", own, byref(handle))
        return Thread(handle.value)

    def foreground(self, on):
        """Whether the program has its user's attention. If not, its promise may go to another session of its user's."""
        self._ask("foreground", bool(on))

    def promise(self, terms):
        """Asks for these Terms for all threads of the session together; the Answer."""
        answer = _Answer()
        asked = byref(_Terms(**terms._asdict()))
        if not self or self._ask("promise", asked, byref(answer)) < 0:
            return Answer(False, None, "", str(self.error or "the session is closed"))
        said = Terms(answer.budget_ns, answer.period_ns, answer.deadline_ns, answer.losses, answer.window)
        return Answer(bool(answer.granted), said if answer.granted or answer.nearest else None,
                      answer.name.decode(errors="replace"), answer.reason.decode(errors="replace"))

    def withdraw(self):
        """The promise is needed no more."""
        self._ask("withdraw")

    def fileno(self):
        """For select and poll: readable when there may be a notice; -1 without Andante."""
        return -1 if self._handle is None else self._ask("fd")

    def next_notice(self):
        """News of the promise since it was last asked; None: nothing. Does not wait."""
        notice = _Notice()
        if self._ask("next_notice", byref(notice)) <= 0:
            return None
        return Notice(KINDS.get(notice.kind, ""), notice.times, notice.reason.decode(errors="replace"))


class Thread(_Handle):
    """A thread that takes part until it is closed."""

    _free = "leave"

    def __init__(self, handle):
        self._handle = handle

    def begin(self, deadline_ns):
        """A cycle begins, which is to be done by then. Returns False if that has passed: it has not begun.

        One that was in progress was not ended, which `error` says: this one has begun in its place.
        """
        return self._ask("begin", deadline_ns) in (0, NOT_ENDED)

    def end(self):
        """The cycle is done. Returns False if none was begun."""
        return self._ask("end") == 0

    def cycle(self, deadline_ns):
        """begin() and end() around the body of a `with`."""
        return _InCycle(self, deadline_ns)

    def report(self, worked_ns):
        """The time that the last cycle took, where the program knows better than from its beginning to its end."""
        self._ask("report", worked_ns)

    def surge(self):
        """The next cycles take more work than those before."""
        self._ask("surge")

    def is_pending(self, service):
        """Whether an event of this service waits for the thread."""
        return self._ask("pending", service) == 1

    def subscribe(self, socket, service, frame_bytes=0):
        """An event of this service whenever so many bytes have come to the socket; 0: whenever anything comes.

        In the place of the socket there may be an eventfd: whenever somebody writes to it.
        """
        self._ask("subscribe", _fd_of(socket), service, frame_bytes)

    def unsubscribe(self, socket):
        """What comes there is nobody's event any more."""
        self._ask("unsubscribe", _fd_of(socket))

    def tell(self, by):
        """The thread is told so that it has an event: TELL_FD, TELL_NOT, or a signal. Returns the descriptor, or 0.

        Until it has run it is told once of each service, so look at all that has come. In Python a signal is best
        blocked, and waited for by signal.sigwaitinfo(), which does not tell the service.
        """
        return max(self._ask("tell", by), 0)

    def told(self):
        """The services of which it has been told by the descriptor since this was last asked."""
        bits = max(self._ask("told"), 0)
        return [service for service in range(SERVICES) if bits >> service & 1]

    def sink(self):
        """Through which any thread of the process raises events for this one."""
        return Sink(None if self._handle is None else _CALLS["sink_of"](self._handle))


class _InCycle:
    def __init__(self, thread, deadline_ns):
        self._thread, self._deadline_ns = thread, deadline_ns

    def __enter__(self):
        self._thread.begin(self._deadline_ns)

    def __exit__(self, *_):
        self._thread.end()


class Sink(_Handle):
    """Raises events for a thread."""

    _free = "sink_free"

    def __init__(self, handle):
        self._handle = handle

    def raise_event(self, service, deliver_ns=0):
        """An event of this service, to be delivered then; 0: at once."""
        self._ask("raise", service, deliver_ns)

    def raise_now(self, service, deliver_ns=0):
        """The same, and calls the scheduler, which sees it though the thread has been woken before and waits."""
        self._ask("raise_now", service, deliver_ns)
