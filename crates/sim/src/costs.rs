//! What ways through the kernel cost the model, derived from what they were measured to cost.
//!
//! `costs.toml` beside this crate's sources is written by `andante lab costs` (`make costs`) and says of
//! each key what it is. It holds times of whole ways, which are sums of what the model has as parts; the
//! parts are differences of ways, each derived where it is computed below. Under `-icount` a nanosecond
//! is an instruction, so that they hold for any machine that takes one nanosecond for one.

use std::sync::LazyLock;

use crate::Ns;
use crate::programs::FORK_NS;
use crate::shell::raw;

/// All of them; the file is a part of the binary.
pub(crate) static COSTS: LazyLock<KernelCosts> =
    LazyLock::new(|| KernelCosts::derive(&Measured::parse(FILE)));

const FILE: &str = include_str!("../costs.toml");

/// Costs of the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelCosts {
    /// What `kernel/` spends by itself.
    pub model: raw::Costs,
    pub calls: SystemCalls,
}

/// Instructions that system calls take beside what is modelled of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemCalls {
    pub pipe: Messages,
    /// Of the connection between a client and its server.
    pub socket: Messages,
    /// Receiving by a server, which waits in epoll and reads the clock.
    pub serve: Ns,
    pub sleep: Ns,
    pub fork: Ns,
    pub wait: Ns,
    pub exit: Ns,
}

/// Instructions of a message of a few bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Messages {
    pub send: Ns,
    /// With the waiting for one: readers mostly come before their messages.
    pub receive: Ns,
}

/// Callbacks of one way [ns].
#[derive(Debug, Clone, Copy)]
struct Callbacks {
    enqueue: f64,
    dispatch: f64,
    running: f64,
    stopping: f64,
}

impl Callbacks {
    /// Means of the runs along a way.
    fn along(measured: &Measured, way: &str) -> Self {
        let ns = |name| measured.ns(&["along", "andante", way, name, "ns"]);
        Self {
            enqueue: ns("enqueue"),
            dispatch: ns("dispatch"),
            running: ns("running"),
            stopping: ns("stopping"),
        }
    }

    /// A wake-up and a switch to the woken from a task that sleeps.
    fn once_each(&self) -> f64 {
        self.enqueue + self.dispatch + self.running + self.stopping
    }
}

/// What is derived first, since much else depends on it [ns].
#[derive(Debug, Clone, Copy)]
struct Parts {
    /// An interrupt that does next to nothing, entry and exit and all.
    interrupt: f64,
    wake: f64,
    schedule: f64,
}

impl KernelCosts {
    /// A kernel that takes no time, but for what is named here.
    pub fn ideal(named: &crate::machine::Costs) -> Self {
        let model = raw::Costs {
            level: named.level_ns,
            change: named.switch_ns,
            migration: named.migration_ns,
            ..raw::Costs::default()
        };
        Self {
            model,
            calls: SystemCalls::default(),
        }
    }

    fn derive(measured: &Measured) -> Self {
        let parts = Parts::derive(measured);
        let calls = calls(measured, &parts);
        Self {
            model: model(measured, &parts, &calls),
            calls,
        }
    }
}

impl Parts {
    /// - An interrupt: the least that a program that never waits lost to one.
    /// - A wake-up and a switch: from a timer's instant to the program that slept until then on an idle
    ///   CPU, less that interrupt and the callbacks on the way (nobody stops).
    /// - A wake-up's part of both: try_to_wake_up() as traced, less the tracer's own part and the
    ///   callback.
    fn derive(measured: &Measured) -> Self {
        const IDLE: &str = "sleep_wakes_on_idle";
        let interrupt = measured.way("tick", "least");
        let callbacks = Callbacks::along(measured, IDLE);
        let both = measured.way(IDLE, "ns")
            - interrupt
            - (callbacks.enqueue + callbacks.dispatch + callbacks.running);
        let wake = measured.function("try_to_wake_up", "ns") - measured.decision("enqueue", "base");
        Self {
            interrupt,
            wake,
            schedule: both - wake,
        }
    }
}

fn model(measured: &Measured, parts: &Parts, calls: &SystemCalls) -> raw::Costs {
    let Parts {
        interrupt,
        wake,
        schedule,
    } = *parts;
    // A busy CPU's program is interrupted and preempted: its callbacks stop it and enqueue it anew. What
    // is left over an idle CPU is the way out of user space and back, and one memory for another.
    let busy = Callbacks::along(measured, "sleep_begins_switch");
    let preempt = measured.way("sleep_preempts", "ns")
        - (interrupt + wake + schedule + busy.once_each() + busy.enqueue);
    // Of an interrupt that does next to nothing, what is not the timers' function; of that, the least.
    let timer = measured.function("hrtimer_interrupt", "least");
    // What a program that never waits loses to one, less what every interrupt takes: not its function alone,
    // for the kernel does what is due (timers, RCU) on the way back.
    let tick = measured.way("tick", "ns") - (interrupt - timer);
    // From one CPU's write to the other's program, which idled: beside the write, the wake-up and the
    // switch, the interrupt. The least, since two CPUs that are busy have half of the emulator's speed
    // each, which the model takes into account by itself.
    let across = Callbacks::along(measured, "pipe_round_trip");
    let ipi = measured.ns(&[
        "path",
        "andante-two-cpus",
        "pipe_wakes_other_idle_cpu",
        "least",
    ]) - (calls.pipe.send as f64
        + wake
        + schedule
        + across.enqueue
        + across.dispatch
        + across.running);
    raw::Costs {
        enqueue: whole(measured.decision("enqueue", "base")),
        enqueue_preempts: whole(measured.decision("enqueue", "wake_preemptions")),
        dispatch: whole(measured.decision("dispatch", "base")),
        dispatch_picks: whole(measured.decision("dispatch", "picks")),
        dispatch_keeps: whole(measured.decision("dispatch", "kept")),
        dispatch_picks_contract: whole(measured.decision("dispatch", "contract_picks")),
        running: whole(measured.decision("running", "base")),
        running_contract: whole(measured.decision("running", "contract_picks")),
        stopping: whole(measured.decision("stopping", "base")),
        stopping_contract: whole(measured.decision("stopping", "contract_picks")),
        init_task: whole(measured.callback("init_task")),
        enable: whole(measured.callback("enable")),
        exit_task: whole(measured.callback("disable") + measured.callback("exit_task")),
        schedule: whole(schedule),
        wake: whole(wake),
        interrupt: whole(interrupt - timer),
        timer: whole(timer),
        tick: whole(tick),
        kick: whole(measured.function("kick_cpus_irq_workfn", "ns")),
        ipi: whole(ipi),
        preempt: whole(preempt),
        // These are parts of the above.
        level: 0,
        change: 0,
        migration: 0,
    }
}

fn calls(measured: &Measured, parts: &Parts) -> SystemCalls {
    let both = parts.wake + parts.schedule;
    // Half of a way there and back is a message sent and received, a wake-up and a switch. What of it is
    // the scheduler's callbacks is spent by the model, but for those of sockets, which are in here.
    let half = |way: &str| {
        let callbacks = Callbacks::along(measured, way);
        measured.way(way, "ns") / 2.0 - callbacks.once_each() - both
    };
    let messages = |way, send| Messages {
        send: whole(send),
        receive: whole(half(way) - send),
    };
    let socket_send = measured.way("socket_send_polled", "ns");
    let socket = messages("socket_round_trip", socket_send);
    // Its client sends and receives without epoll; the other half of the way is the server's.
    let serve = 2.0 * half("server_round_trip") - half("socket_round_trip") - socket_send;
    // From the call to the other program's first instruction.
    let sleeps = Callbacks::along(measured, "sleep_begins_switch");
    let sleep = measured.way("sleep_begins_switch", "ns")
        - (parts.schedule + sleeps.stopping + sleeps.dispatch + sleeps.running);
    // Both are means: forks differ by what their pages cost, and the program's own time is only known so.
    let wait = measured.ns(&["own", "andante", "batch", "ns"]) - measured.way("fork", "mean");
    // The parent's call, less the callbacks and the wake-up in it.
    let birth: f64 = ["init_task", "enable", "enqueue"]
        .map(|name| measured.ns(&["along", "andante", "fork_exit_wait", name, "ns"]))
        .iter()
        .sum();
    let fork = measured.way("fork", "ns") - birth - parts.wake;
    // What is left of a child's whole life, with two wake-ups (its own, its parent's) and two switches.
    let exit = measured.way("fork_exit_wait", "kernel") - fork - wait - 2.0 * both;
    SystemCalls {
        pipe: messages("pipe_round_trip", measured.way("pipe_write", "ns")),
        socket,
        serve: whole(serve),
        sleep: whole(sleep),
        // The laboratory's programs have a part of it as their own work.
        fork: whole(fork - FORK_NS as f64),
        wait: whole(wait),
        exit: whole(exit),
    }
}

/// A cost cannot be less than nothing; that none is, the tests see to.
fn whole(ns: f64) -> Ns {
    ns.round().max(0.0) as Ns
}

/// What was measured, by key.
struct Measured(toml::Table);

impl Measured {
    fn parse(text: &str) -> Self {
        let table = text.parse();
        Self(table.unwrap_or_else(|error| panic!("costs.toml: {error}; `make costs` writes it")))
    }

    fn find(&self, keys: &[&str]) -> Option<f64> {
        let (first, rest) = keys.split_first()?;
        let mut value = self.0.get(*first)?;
        for key in rest {
            value = value.get(*key)?;
        }
        value
            .as_float()
            .or_else(|| Some(value.as_integer()? as f64))
    }

    /// Of a key that has to be there.
    fn ns(&self, keys: &[&str]) -> f64 {
        self.find(keys).unwrap_or_else(|| {
            let key = keys.join(".");
            panic!("costs.toml lacks {key}: let `make costs` write it anew")
        })
    }

    /// Of a way that was gone under Andante.
    fn way(&self, way: &str, what: &str) -> f64 {
        self.ns(&["path", "andante", way, what])
    }

    /// The mean of a callback's runs in all scenarios.
    fn callback(&self, name: &str) -> f64 {
        self.ns(&["callback", "all", name, "ns"])
    }

    /// What a run of a callback costs that decides nothing (`base`), or a decision adds to it.
    fn decision(&self, callback: &str, what: &str) -> f64 {
        self.ns(&["decision", callback, what])
    }

    /// A function of the kernel's, less the tracer's part.
    fn function(&self, name: &str, what: &str) -> f64 {
        self.ns(&["function", name, what]) - self.ns(&["tracing", "least"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_derived_is_what_such_ways_can_cost() {
        let KernelCosts { model, calls } = *COSTS;
        println!("{model:?}\n{calls:?}");
        // A difference of ways that do not fit together is next to nothing, or more than a whole one. A
        // pipe's round trip has two wake-ups and switches in it, and takes 10 to 30 µs.
        let parts = [
            ("enqueue", model.enqueue, 200..3_000),
            ("dispatch", model.dispatch, 200..3_000),
            ("dispatch_picks", model.dispatch_picks, 100..4_000),
            ("dispatch_keeps", model.dispatch_keeps, 100..4_000),
            (
                "dispatch_picks_contract",
                model.dispatch_picks_contract,
                500..15_000,
            ),
            ("enqueue_preempts", model.enqueue_preempts, 50..3_000),
            ("running_contract", model.running_contract, 50..4_000),
            ("stopping_contract", model.stopping_contract, 10..2_000),
            ("running", model.running, 30..1_500),
            ("stopping", model.stopping, 30..1_500),
            ("init_task", model.init_task, 200..5_000),
            ("enable", model.enable, 30..2_000),
            ("exit_task", model.exit_task, 30..2_000),
            ("schedule", model.schedule, 500..5_000),
            ("wake", model.wake, 500..5_000),
            ("interrupt", model.interrupt, 50..2_500),
            ("timer", model.timer, 100..2_500),
            ("tick", model.tick, 300..6_000),
            ("kick", model.kick, 50..3_000),
            ("ipi", model.ipi, 50..6_000),
            ("preempt", model.preempt, 1..4_000),
            ("pipe.send", calls.pipe.send, 300..3_000),
            ("pipe.receive", calls.pipe.receive, 300..5_000),
            ("socket.send", calls.socket.send, 500..8_000),
            ("socket.receive", calls.socket.receive, 500..8_000),
            ("serve", calls.serve, 1_000..12_000),
            ("sleep", calls.sleep, 300..6_000),
            ("fork", calls.fork, 10_000..200_000),
            ("wait", calls.wait, 500..60_000),
            ("exit", calls.exit, 50_000..400_000),
        ];
        for (name, ns, bounds) in parts {
            assert!(bounds.contains(&ns), "{name}: {ns} ns, not {bounds:?}");
        }
    }

    #[test]
    fn a_round_trip_costs_what_it_was_measured_to() {
        let measured = Measured::parse(FILE);
        let KernelCosts { model, calls } = *COSTS;
        let along = Callbacks::along(&measured, "pipe_round_trip");
        let half = calls.pipe.send + calls.pipe.receive + model.wake + model.schedule;
        let whole_ns = 2.0 * (half as f64 + along.once_each());
        let off_ns = whole_ns - measured.way("pipe_round_trip", "ns");
        assert!(off_ns.abs() < 10.0, "off by {off_ns} ns");
    }

    #[test]
    #[should_panic(expected = "costs.toml lacks path.andante.tick.least: let `make costs` write")]
    fn what_is_not_there_is_named() {
        Measured::parse("[path.andante]\ntick = { ns = 1 }").way("tick", "least");
    }
}
