//! What ways through the kernel cost, seen from programs that go them and read the clock.
//!
//! In virtual time a nanosecond is an instruction, so a way's cost is the difference of two readings of
//! the clock, less what a reading costs. What interrupts a program shows as a gap between two readings
//! that follow each other at once; two programs that share a CPU, and keep their gaps, show what it
//! takes to come from one to the other.

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use andante_programs::clock::{now_ns, sleep_until, thread_cpu_ns};
use nix::sched::{CpuSet, sched_setaffinity, sched_yield};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getppid, pipe, read, write};

use super::shared::Shared;

/// How often a way is gone.
const SAMPLES: usize = 400;
/// Short ways are gone so often for one sample, or the clock's resolution would show.
const AT_ONCE: u64 = 16;
/// A process that only reads the clock has been interrupted if two readings are so far apart [ns]; a
/// reading takes less than a tenth.
const GAP_NS: u64 = 500;
/// How long gaps are watched [ns]: 250 ticks.
const WATCHED_NS: u64 = 1_000_000_000;
/// Sleeps are so long [ns]; no multiple of it is one of the tick's 4 ms soon.
const SLEEP_NS: u64 = 1_037_000;
/// Bytes of a message between laboratory programs (`programs/display.rs`).
const MESSAGE_LEN: usize = 8;

/// The samples of one way [ns].
pub(super) type Samples = (&'static str, Vec<u64>);

/// A group of ways that are gone together.
pub(super) struct Way {
    /// How often the whole of it is gone; 0: as often as it happens.
    pub times: u64,
    pub go: fn(clock_ns: u64) -> nix::Result<Vec<Samples>>,
}

/// All of them.
pub(super) const WAYS: [Way; 14] = [
    way(0, system_calls),
    way(0, pages),
    way(0, pipe_alone),
    way(0, socket_alone),
    way(ALL * AT_ONCE, yielding),
    way((ALL + 1) * AT_ONCE, pipe_pair),
    way((ALL + 1) * AT_ONCE, socket_pair),
    way((ALL + 1) * AT_ONCE, epoll_pair),
    way(ALL, sleeping),
    way(ALL, timer_file),
    way(0, interrupted),
    way(0, sharing),
    way(ALL, preempting),
    way(ALL, children),
];

/// With two CPUs.
pub(super) const WAYS_OF_TWO: [Way; 1] = [way(ALL, pipe_across)];

const ALL: u64 = SAMPLES as u64;

const fn way(times: u64, go: fn(u64) -> nix::Result<Vec<Samples>>) -> Way {
    Way { times, go }
}

/// What a reading of the clock costs [ns].
pub(super) fn clock_ns() -> Vec<u64> {
    (0..SAMPLES)
        .map(|_| {
            let begun_ns = now_ns();
            now_ns() - begun_ns
        })
        .collect()
}

/// Samples of `go`, which is done `times` at once.
fn each(clock_ns: u64, times: u64, mut go: impl FnMut()) -> Vec<u64> {
    let sample = |_| {
        let begun_ns = now_ns();
        for _ in 0..times {
            go();
        }
        (now_ns() - begun_ns).saturating_sub(clock_ns) / times
    };
    (0..SAMPLES).map(sample).collect()
}

fn system_calls(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let system_call = each(clock_ns, AT_ONCE, || {
        black_box(getppid());
    });
    let cpu_clock = each(clock_ns, AT_ONCE, || {
        black_box(thread_cpu_ns());
    });
    Ok(vec![
        ("system_call", system_call),
        ("thread_cpu_clock_read", cpu_clock),
    ])
}

/// The first touch of a page of memory.
fn pages(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let mut memory = Shared::<[u8; 4096]>::private(SAMPLES)?;
    let mut at = 0;
    let faults = each(clock_ns, 1, || {
        memory.get()[at][0] = 1;
        at += 1;
    });
    Ok(vec![("page_first_touched", faults)])
}

fn pipe_alone(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let (out, into) = pipe()?;
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let begun_ns = now_ns();
        write(&into, &[0])?;
        let written_ns = now_ns();
        read(out.as_fd(), &mut [0])?;
        let read_ns = now_ns();
        writes.push(written_ns - begun_ns - clock_ns);
        reads.push(read_ns - written_ns - clock_ns);
    }
    Ok(vec![("pipe_write", writes), ("pipe_read", reads)])
}

fn socket_alone(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let (mut a, mut b) = UnixStream::pair().map_err(os)?;
    let epoll = Epoll::new(EpollCreateFlags::empty())?;
    epoll.add(&b, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    let (mut sends, mut polls, mut receives) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let begun_ns = now_ns();
        a.write_all(&[0; MESSAGE_LEN]).map_err(os)?;
        let sent_ns = now_ns();
        epoll.wait(&mut [EpollEvent::empty()], 1000u16)?;
        let polled_ns = now_ns();
        b.read_exact(&mut [0; MESSAGE_LEN]).map_err(os)?;
        let received_ns = now_ns();
        sends.push(sent_ns - begun_ns - clock_ns);
        polls.push(polled_ns - sent_ns - clock_ns);
        receives.push(received_ns - polled_ns - clock_ns);
    }
    Ok(vec![
        ("socket_send_polled", sends),
        ("epoll_wait_ready", polls),
        ("socket_receive", receives),
    ])
}

fn yielding(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let yields = each(clock_ns, AT_ONCE, || {
        let _ = sched_yield();
    });
    Ok(vec![("yield_alone", yields)])
}

/// Round trips between this process and a child that answers with `echo`.
fn round_trips(
    clock_ns: u64,
    echo: impl FnOnce() -> nix::Result<()>,
    mut ask: impl FnMut() -> nix::Result<()>,
) -> nix::Result<Vec<u64>> {
    let child = child(echo)?;
    // The first ones load pages.
    for _ in 0..AT_ONCE {
        ask()?;
    }
    let mut failed = Ok(());
    let samples = each(clock_ns, AT_ONCE, || {
        if let Err(error) = ask() {
            failed = Err(error);
        }
    });
    end(child)?;
    failed.map(|()| samples)
}

fn pipe_pair(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let (ping_out, ping_in) = pipe()?;
    let (pong_out, pong_in) = pipe()?;
    let echo = || {
        while read(ping_out.as_fd(), &mut [0])? == 1 {
            write(&pong_in, &[0])?;
        }
        Ok(())
    };
    let ask = || {
        write(&ping_in, &[0])?;
        read(pong_out.as_fd(), &mut [0]).map(|_| ())
    };
    let samples = round_trips(clock_ns, echo, ask)?;
    Ok(vec![("pipe_round_trip", samples)])
}

fn socket_pair(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let (mut a, mut b) = UnixStream::pair().map_err(os)?;
    let echo = || {
        loop {
            b.read_exact(&mut [0; MESSAGE_LEN]).map_err(os)?;
            b.write_all(&[0; MESSAGE_LEN]).map_err(os)?;
        }
    };
    let ask = || {
        a.write_all(&[0; MESSAGE_LEN]).map_err(os)?;
        a.read_exact(&mut [0; MESSAGE_LEN]).map_err(os)
    };
    let samples = round_trips(clock_ns, echo, ask)?;
    Ok(vec![("socket_round_trip", samples)])
}

/// As a client and a server of the laboratory speak.
fn epoll_pair(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let (mut a, mut b) = UnixStream::pair().map_err(os)?;
    let echo = || {
        let epoll = Epoll::new(EpollCreateFlags::empty())?;
        epoll.add(&b, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        loop {
            epoll.wait(&mut [EpollEvent::empty()], 1000u16)?;
            b.read_exact(&mut [0; MESSAGE_LEN]).map_err(os)?;
            b.write_all(&black_box(now_ns()).to_le_bytes())
                .map_err(os)?;
        }
    };
    let ask = || {
        a.write_all(&[0; MESSAGE_LEN]).map_err(os)?;
        a.read_exact(&mut [0; MESSAGE_LEN]).map_err(os)
    };
    let samples = round_trips(clock_ns, echo, ask)?;
    Ok(vec![("server_round_trip", samples)])
}

/// From an instant to the program that slept until then, on a CPU with nothing else to do.
fn sleeping(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let sample = |_| {
        let at_ns = now_ns() + SLEEP_NS;
        sleep_until(at_ns);
        now_ns() - at_ns - clock_ns
    };
    let samples = (0..SAMPLES).map(sample).collect();
    Ok(vec![("sleep_wakes_on_idle", samples)])
}

fn timer_file(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::empty())?;
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let at_ns = now_ns() + SLEEP_NS;
        let at = TimeSpec::from(std::time::Duration::from_nanos(at_ns));
        timer.set(
            Expiration::OneShot(at),
            TimerSetTimeFlags::TFD_TIMER_ABSTIME,
        )?;
        timer.wait()?;
        samples.push(now_ns() - at_ns - clock_ns);
    }
    Ok(vec![("timerfd_wakes_on_idle", samples)])
}

/// Two readings of the clock between which something else ran [ns].
#[derive(Debug, Clone, Copy, Default)]
struct Gap {
    before_ns: u64,
    after_ns: u64,
}

/// Reads the clock for a while; every gap is kept, and their number in the element behind the last.
fn watch(until_ns: u64, gaps: &mut [Gap]) {
    let (mut before_ns, mut found) = (now_ns(), 0);
    while before_ns < until_ns && found + 1 < gaps.len() {
        let after_ns = now_ns();
        if after_ns - before_ns > GAP_NS {
            gaps[found] = Gap {
                before_ns,
                after_ns,
            };
            found += 1;
        }
        before_ns = after_ns;
    }
}

/// More gaps than [`WATCHED_NS`] can have.
const GAPS_MAX: usize = 16_384;

fn kept(gaps: &[Gap]) -> impl Iterator<Item = &Gap> {
    gaps.iter().take_while(|gap| gap.after_ns > 0)
}

/// What interrupts a program that has the CPU for itself: the tick, and whatever else there is.
fn interrupted(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let mut gaps = Shared::<Gap>::private(GAPS_MAX)?;
    // Touched before.
    gaps.get().fill(Gap::default());
    watch(now_ns() + WATCHED_NS, gaps.get());
    let gaps = gaps.get();
    let costs = kept(gaps).map(|gap| gap.after_ns - gap.before_ns - clock_ns);
    let distances = kept(gaps)
        .zip(kept(gaps).skip(1))
        .map(|(a, b)| b.before_ns - a.before_ns);
    Ok(vec![
        ("tick", costs.collect()),
        ("tick_period", distances.collect()),
    ])
}

/// Two programs that never wait: from the last instruction of one to the first of the other.
fn sharing(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let mut mine = Shared::<Gap>::among_children(GAPS_MAX)?;
    let mut others = Shared::<Gap>::among_children(GAPS_MAX)?;
    mine.get().fill(Gap::default());
    others.get().fill(Gap::default());
    let until_ns = now_ns() + WATCHED_NS;
    let child = child(|| {
        watch(until_ns, others.get());
        Ok(())
    })?;
    watch(until_ns, mine.get());
    waitpid(child, None)?;
    let switches = |from: &[Gap], to: &[Gap]| -> Vec<u64> {
        let came = |gap: &Gap| {
            kept(to)
                .map(|other| other.after_ns)
                .find(|at_ns| (gap.before_ns..gap.after_ns).contains(at_ns))
                .map(|at_ns| at_ns - gap.before_ns - clock_ns)
        };
        kept(from).filter_map(came).collect()
    };
    let mut samples = switches(mine.get(), others.get());
    samples.extend(switches(others.get(), mine.get()));
    Ok(vec![("slice_ends_switch", samples)])
}

/// When a sleeper was awake [ns].
#[derive(Debug, Clone, Copy, Default)]
struct Awake {
    due_ns: u64,
    from_ns: u64,
    to_ns: u64,
}

/// A sleeper takes the CPU from a program that never waits, and gives it back.
fn preempting(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let mut gaps = Shared::<Gap>::private(GAPS_MAX)?;
    let mut awake = Shared::<Awake>::among_children(SAMPLES)?;
    gaps.get().fill(Gap::default());
    awake.get().fill(Awake::default());
    let sleeper = child(|| {
        let mut from_ns = now_ns();
        for awake in awake.get() {
            let due_ns = now_ns() + SLEEP_NS;
            awake.due_ns = due_ns;
            awake.to_ns = now_ns();
            sleep_until(due_ns);
            awake.from_ns = now_ns();
            black_box(&mut from_ns);
        }
        Ok(())
    })?;
    watch(now_ns() + 2 * SAMPLES as u64 * SLEEP_NS, gaps.get());
    waitpid(sleeper, None)?;
    let awake = awake.get();
    let (mut enter, mut leave, mut latency) = (Vec::new(), Vec::new(), Vec::new());
    for (one, next) in awake.iter().zip(&awake[1..]) {
        let holds = |gap: &&Gap| (gap.before_ns..gap.after_ns).contains(&one.from_ns);
        let Some(gap) = kept(gaps.get()).find(holds) else {
            continue;
        };
        latency.push(one.from_ns - one.due_ns - clock_ns);
        // The clock is set to the very instant; a gap that began before it was something else's.
        if gap.before_ns + GAP_NS > one.due_ns && next.to_ns < gap.after_ns {
            enter.push(one.from_ns - gap.before_ns - clock_ns);
            leave.push(gap.after_ns - next.to_ns - clock_ns);
        }
    }
    Ok(vec![
        ("sleep_wakes_on_busy", latency),
        ("sleep_preempts", enter),
        ("sleep_begins_switch", leave),
    ])
}

/// Instants of a child's life [ns].
#[derive(Debug, Clone, Copy, Default)]
struct Life {
    runs_ns: u64,
    exits_ns: u64,
}

/// As the laboratory's batch program has children.
fn children(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let mut life = Shared::<Life>::among_children(1)?;
    let mut samples: [Vec<u64>; 5] = Default::default();
    for _ in 0..SAMPLES {
        let begun_ns = now_ns();
        // SAFETY: the child reads the clock and leaves by `_exit`.
        let child = match unsafe { fork() }? {
            ForkResult::Child => {
                let life = &mut life.get()[0];
                life.runs_ns = now_ns();
                life.exits_ns = now_ns();
                // SAFETY: always sound.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => child,
        };
        let forked_ns = now_ns();
        waitpid(child, None)?;
        let waited_ns = now_ns();
        let life = life.get()[0];
        let parts = [
            forked_ns.saturating_sub(begun_ns + clock_ns),
            life.runs_ns.saturating_sub(forked_ns + clock_ns),
            life.exits_ns.saturating_sub(life.runs_ns + clock_ns),
            waited_ns - life.exits_ns - clock_ns,
            waited_ns - begun_ns - clock_ns,
        ];
        for (list, part) in samples.iter_mut().zip(parts) {
            list.push(part);
        }
    }
    let [fork, wait, touch, exit, whole] = samples;
    Ok(vec![
        ("fork", fork),
        ("fork_wait_switch", wait),
        ("child_first_write", touch),
        ("exit_switch_waited", exit),
        ("fork_exit_wait", whole),
    ])
}

/// A byte to and fro between two CPUs that have nothing else to do.
fn pipe_across(clock_ns: u64) -> nix::Result<Vec<Samples>> {
    let (ping_out, ping_in) = pipe()?;
    let (pong_out, pong_in) = pipe()?;
    let mut told = Shared::<u64>::among_children(1)?;
    let mut there = Shared::<u64>::among_children(1)?;
    let echo = || {
        pin(1)?;
        while read(ping_out.as_fd(), &mut [0])? == 1 {
            there.get()[0] = now_ns();
            write(&pong_in, &[0])?;
        }
        Ok(())
    };
    pin(0)?;
    let child = child(echo)?;
    let (mut to, mut back, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        // Both CPUs are idle when it begins.
        sleep_until(now_ns() + SLEEP_NS);
        told.get()[0] = now_ns();
        write(&ping_in, &[0])?;
        read(pong_out.as_fd(), &mut [0])?;
        let back_ns = now_ns();
        let (told_ns, there_ns) = (told.get()[0], there.get()[0]);
        to.push(there_ns.saturating_sub(told_ns + clock_ns));
        back.push(back_ns.saturating_sub(there_ns + clock_ns));
        whole.push(back_ns - told_ns - clock_ns);
    }
    end(child)?;
    Ok(vec![
        ("pipe_wakes_other_idle_cpu", to),
        ("pipe_answers_other_cpu", back),
        ("pipe_round_trip_two_cpus", whole),
    ])
}

fn pin(cpu: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(Pid::from_raw(0), &set)
}

/// Forks a child that does this and leaves.
fn child(go: impl FnOnce() -> nix::Result<()>) -> nix::Result<Pid> {
    // SAFETY: the process has one thread; the child leaves by `_exit`.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let status = i32::from(go().is_err());
            // SAFETY: always sound; skips the parent's buffered output and destructors.
            unsafe { libc::_exit(status) }
        }
    }
}

fn end(child: Pid) -> nix::Result<()> {
    kill(child, Signal::SIGKILL)?;
    waitpid(child, None).map(|_| ())
}

fn os(error: std::io::Error) -> nix::Error {
    nix::Error::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
