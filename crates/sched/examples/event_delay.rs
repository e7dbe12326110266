// SPDX-License-Identifier: GPL-2.0
//! How long after an event its sink runs, on this kernel, as root: with every rule, and with none.
//!
//! A thread that never sleeps holds 1 ms in every 10, with a window of losses, beside eight loops. It has
//! used that up when it has an event 5 ms into each period.
//!
//!     cargo build --release -p andante-sched --example event_delay
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use andante_sched::contracts::{HeldBy, Promise};
use andante_sched::events::Sink;
use andante_sched::{EventRules, Options, Scheduler, counters};

const MS: u64 = 1_000_000;
const EVENTS: u64 = 100;
/// `AN_WINDOW` of `core/contract.h`.
const WINDOW: u32 = 1 << 4;

static ENDED: AtomicBool = AtomicBool::new(false);
static SINK: AtomicI32 = AtomicI32::new(0);
/// When the event was raised that the sink has not seen yet; 0: it has.
static RAISED_NS: AtomicU64 = AtomicU64::new(0);
static DELAY_NS: AtomicU64 = AtomicU64::new(0);

fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it lives during the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn sink() {
    // SAFETY: it takes nothing.
    SINK.store(unsafe { libc::gettid() }, SeqCst);
    while !ENDED.load(SeqCst) {
        let raised_ns = RAISED_NS.load(SeqCst);
        if raised_ns != 0 {
            DELAY_NS.store(now_ns() - raised_ns, SeqCst);
            RAISED_NS.store(0, SeqCst);
        }
        spin_loop();
    }
}

fn delays(rules: EventRules) -> Result<(), Box<dyn std::error::Error>> {
    let options = Options {
        learn_percent: 0,
        events: Some(rules),
        ..Options::default()
    };
    let mut scheduler = Scheduler::load(&options)?;
    let promise = Promise {
        budget_ns: MS,
        period_ns: 10 * MS,
        deadline_ns: 0,
        losses: 1,
        window: 2,
        flags: WINDOW,
        cpu: 0,
    };
    let name = scheduler.contract_create(&promise, HeldBy::Thread, &[])?;
    scheduler.contract_bind(SINK.load(SeqCst), name)?;
    scheduler.contract_sweep()?;
    let mut all_ns = Vec::new();
    for _ in 0..EVENTS {
        let next_ns = (now_ns() / (10 * MS) + 1) * 10 * MS + 5 * MS;
        thread::sleep(Duration::from_nanos(next_ns - now_ns()));
        RAISED_NS.store(now_ns(), SeqCst);
        scheduler.event_raise(Sink::Contract(name), 0, 0)?;
        while RAISED_NS.load(SeqCst) != 0 {
            thread::sleep(Duration::from_micros(500));
        }
        all_ns.push(DELAY_NS.load(SeqCst));
    }
    all_ns.sort_unstable();
    let [median, largest] = [all_ns.len() / 2, all_ns.len() - 1].map(|at| all_ns[at] / 1000);
    let contract = scheduler.contracts()[0];
    let mut counted = counters()?;
    counted.retain(|(name, _)| name.starts_with("event"));
    println!(
        "REPORT events {rules:?}: median {median} us, at most {largest} us; {counted:?}; {contract:?}"
    );
    Ok(scheduler.detach()?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(|| {
                while !ENDED.load(SeqCst) {
                    spin_loop();
                }
            })
        })
        .chain([thread::spawn(sink)])
        .collect();
    while SINK.load(SeqCst) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    // It raises on time, whatever the others do.
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: it lives during the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    let none = EventRules {
        rules: [false; 4],
        server: false,
    };
    for rules in [none, EventRules::default()] {
        delays(rules)?;
    }
    ENDED.store(true, SeqCst);
    for thread in threads {
        thread.join().map_err(|_| "a thread has failed")?;
    }
    Ok(())
}
