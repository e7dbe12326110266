//! Puts the programs of a scenario into the machine.

use andante_runner as runner;
use andante_scenario::choice::{ByHand, Choice};
use andante_scenario::{Display, Kind, Program, Workload};
use andante_sim::programs::{
    Answerer, Audio, Batch, Beats, Client, ClosedLoop, Connects, Desk, Disk, FORK_NS, Game,
    InSession, Loaded, Loop, Pingpong, Player, Runner, Server as DisplayServer, Sink, Typing,
};
use andante_sim::{
    ClassId, ContractId, Cycle, InstanceId, NS_PER_S, Ns, Program as Sim, Simulation, Spec,
};

use super::{Instance, beats_later_ns, each_from_ms, from_ms, ns, scheduler};

/// What the laboratory takes to load its programs, before the first begins [ns].
pub(super) const LOADING_NS: Ns = NS_PER_S;
/// Between two programs that it loads [ns].
const LOADS_EVERY_NS: Ns = 2_000_000;
/// Between two programs that it tells to begin [ns].
const ORDERS_EVERY_NS: Ns = 100_000;
/// What fits into a pipe and a socket [bytes].
const PIPE_BYTES: u32 = 65_536;

/// Puts the scenario's programs into the machine.
pub(super) struct Starter<'a, 'm> {
    machine: &'m mut dyn Simulation,
    workload: &'a Workload,
    choice: &'a Choice,
    classes: Vec<(String, ClassId)>,
    /// By the number of the instance.
    contracts: &'a [Option<ContractId>],
    begin_ns: Ns,
    loads: bool,
    /// Loads the programs, where the laboratory does that.
    runner: Runner,
    desks: Vec<(String, Desk)>,
    /// Of the instance that is being started: by how much it is later than its program says,
    later_ns: Ns,
    /// when its beats begin,
    beats_ns: Ns,
    /// and what it says in a session.
    session: Option<Cycle>,
}

impl<'a, 'm> Starter<'a, 'm> {
    pub fn new(
        machine: &'m mut dyn Simulation,
        workload: &'a Workload,
        choice: &'a Choice,
        classes: Vec<(String, ClassId)>,
        contracts: &'a [Option<ContractId>],
        begin_ns: Ns,
    ) -> Self {
        let servers = workload
            .programs
            .iter()
            .filter(|program| program.kind == Kind::Server);
        let desks = servers
            .map(|program| {
                (
                    program.name.clone(),
                    Desk::new(machine.channel(PIPE_BYTES, 0)),
                )
            })
            .collect();
        Self {
            machine,
            workload,
            choice,
            classes,
            contracts,
            begin_ns,
            loads: scheduler::loads(workload, choice),
            runner: Runner::default(),
            desks,
            later_ns: 0,
            beats_ns: begin_ns,
            session: None,
        }
    }

    pub fn start_all(mut self) -> Vec<Instance<'a>> {
        let mut instances = Vec::new();
        for program in &self.workload.programs {
            for number in 1..=program.count {
                let id = self.machine.instance();
                self.start(program, number, id);
                let name = match program.count {
                    1 => program.name.clone(),
                    _ => format!("{}.{number}", program.name),
                };
                instances.push(Instance {
                    program,
                    name,
                    id,
                    later_ns: beats_later_ns(program, number),
                });
            }
        }
        if !self.runner.is_empty() {
            // Its number is none of a program's.
            let id = self.machine.instance();
            let spec = Spec::of(ClassId(0));
            self.machine.start(0, id, spec, Box::new(self.runner));
        }
        instances
    }

    fn start(&mut self, program: &Program, number: u32, id: InstanceId) {
        let at = |at_s: f64| ((self.begin_ns as f64) + at_s * NS_PER_S as f64).max(0.0) as Ns;
        self.later_ns = ns(program.later_s(number));
        self.beats_ns = self.begin_ns + beats_later_ns(program, number);
        let cycle = program.kind.cycle().filter(|_| program.session);
        self.session = cycle.map(|cycle| {
            let period_ns = cycle.period_s.map_or(0, ns);
            Cycle {
                period_ns,
                deadline_ns: period_ns,
                budget_ns: cycle.budget_s.map_or(0, ns),
            }
        });
        let start_ns = program.start_s.map_or(0, at);
        let (suspend, resume, stop) = (
            program.suspend_s.map(at),
            program.resume_s.map(at),
            program.stop_s.map(at),
        );
        let path = class_of(self.choice, program);
        let class = self.classes.iter().find(|(known, _)| *known == path);
        let spec = Spec {
            class: class.expect("checked when it was read").1,
            nice: nice_of(self.choice, program),
            fifo: fifo_of(self.choice, program),
            affinity: match &program.affinity {
                None => u64::MAX,
                Some(cpus) => cpus.iter().fold(0, |mask, cpu| mask | 1 << cpu),
            },
            priority: program.priority,
            contract: match &program.contract {
                // All of the class hold it, and none by itself.
                Some(contract) if contract.held_by_class => None,
                _ => self.contracts.get(id.0 as usize).copied().flatten(),
            },
        };
        if let Some(contract) = &program.contract {
            let resolution_ns = self.workload.simulator.costs.timer_resolution_ns.max(1);
            let instants: Vec<Ns> = contract
                .event_ns
                .iter()
                .map(|at_ns| (self.begin_ns + at_ns).next_multiple_of(resolution_ns))
                .collect();
            self.machine.raise(id, Box::new(instants.into_iter()));
        }
        self.start_kind(program, id, start_ns, spec);
        if let Some(at_ns) = suspend {
            self.machine.suspend(at_ns, id);
        }
        if let Some(at_ns) = resume {
            self.machine.resume(at_ns, id);
        }
        if let Some(at_ns) = stop {
            self.machine.kill(at_ns, id);
        }
    }

    /// A program as the laboratory starts it. On a kernel it is loaded, and gets its order: those that
    /// begin with the warm-up are loaded before that.
    fn begins(&mut self, start_ns: Ns, id: InstanceId, spec: Spec, program: Box<dyn Sim>) {
        let program: Box<dyn Sim> = match self.session {
            None => program,
            Some(cycle) => Box::new(InSession::new(program, cycle)),
        };
        if !self.loads {
            return self
                .machine
                .start(start_ns + self.later_ns, id, spec, program);
        }
        let number = Ns::from(id.0);
        let (load_ns, order_ns) = match start_ns {
            0 => (
                number * LOADS_EVERY_NS,
                LOADING_NS + number * ORDERS_EVERY_NS,
            ),
            _ => (start_ns, start_ns),
        };
        let loaded = Loaded::new(program, order_ns + self.later_ns, 1.0);
        self.runner.load(load_ns, id, spec, Box::new(loaded));
    }

    /// A program that has its work shown by a server, which it has to find first.
    fn asks(&self, server: Option<&String>, program: Box<dyn Sim>) -> Box<dyn Sim> {
        match server {
            Some(name) if self.loads => Box::new(Connects::new(program, self.desk(name))),
            _ => program,
        }
    }

    fn start_kind(&mut self, program: &Program, id: InstanceId, start_ns: Ns, spec: Spec) {
        let at = (start_ns, id);
        match &program.kind {
            Kind::Player { .. } => self.start_player(&program.kind, at, spec),
            Kind::Typist { .. } => self.start_typist(&program.kind, at, spec),
            Kind::Sink { .. } => self.start_sink(program, at, spec),
            Kind::Game { .. } => self.start_game(&program.kind, at, spec),
            Kind::Audio {
                frames,
                rate_hz,
                work_ms,
            } => {
                let per_s = Kind::periods_per_s(*frames, *rate_hz);
                let audio = Audio::new(self.beats_ns, per_s, each_from_ms(work_ms));
                self.begins(start_ns, id, spec, Box::new(audio));
            }
            Kind::Server => {
                let server = DisplayServer::new(self.desk(&program.name));
                self.begins(start_ns, id, spec, Box::new(server));
            }
            Kind::Client {
                server,
                work_ms,
                think_ms,
            } => {
                let answer = self.machine.channel(PIPE_BYTES, 0);
                let asks = self.desk(server).client(answer, from_ms(*work_ms));
                let client = Box::new(ClosedLoop::new(asks, from_ms(*think_ms)));
                let client = self.asks(Some(server), client);
                self.begins(start_ns, id, spec, client);
            }
            Kind::Waker { interval_us } => {
                let waker = Answerer::waker(self.beats_ns, (interval_us * 1e3) as Ns);
                self.begins(start_ns, id, spec, Box::new(waker));
            }
            Kind::Batch { work_ms, fork_ms } => {
                let batch = Batch::new(each_from_ms(work_ms), fork_ms.map_or(FORK_NS, from_ms));
                self.begins(start_ns, id, spec, Box::new(batch));
            }
            Kind::Disk { work_ms, wait_ms } => {
                let disk = Disk::new(each_from_ms(work_ms), each_from_ms(wait_ms));
                self.begins(start_ns, id, spec, Box::new(disk));
            }
            Kind::Pingpong { window } => {
                let (to, from) = (
                    self.machine.channel(PIPE_BYTES, 0),
                    self.machine.channel(PIPE_BYTES, 0),
                );
                let plays = |from, to, serves| {
                    let plays = Pingpong::new(from, to, serves, *window);
                    match self.loads {
                        true => plays.without_pipe_costs(),
                        false => plays,
                    }
                };
                let (serves, answers) = (plays(from, to, true), plays(to, from, false));
                self.begins(start_ns, id, spec.clone(), Box::new(serves));
                self.begins(start_ns, id, spec, Box::new(answers));
            }
            Kind::Loop | Kind::Dhrystone => self.begins(start_ns, id, spec, Box::new(Loop)),
            // It has no task: see `link`.
            Kind::Sender { .. } => {}
            kind => {
                debug_assert!(kind.is_only_on_kernel());
                unreachable!("refused before anything is simulated")
            }
        }
    }

    fn start_player(&mut self, kind: &Kind, (start_ns, id): (Ns, InstanceId), spec: Spec) {
        let Kind::Player {
            fps,
            work_ms,
            display,
            drops,
            by_clock,
        } = kind
        else {
            unreachable!("asked for a player");
        };
        let client = self.client(display, (start_ns, id, &spec));
        let player = Player::new(self.beats_ns, *fps, each_from_ms(work_ms), client)
            .exchanges(display.exchanges);
        let player = match drops {
            true => player,
            false => player.never_dropping(),
        };
        let player = match by_clock {
            true => player.by_clock(),
            false => player,
        };
        let asked = display.server.as_ref().filter(|_| display.work_ms > 0.0);
        let player = self.asks(asked, Box::new(player));
        self.begins(start_ns, id, spec, player);
    }

    fn start_typist(&mut self, kind: &Kind, (start_ns, id): (Ns, InstanceId), spec: Spec) {
        let Kind::Typist {
            keys_per_s,
            regular,
            work_ms,
            input_ms,
            until_s,
            seed,
            display,
        } = kind
        else {
            unreachable!("asked for a typist");
        };
        let typing = Typing {
            keys_per_s: *keys_per_s,
            regular: *regular,
            seed: *seed,
            input_ns: each_from_ms(input_ms),
            work_ns: each_from_ms(work_ms),
            until_ns: until_s.map_or(Ns::MAX, |at_s| self.beats_ns + ns(at_s)),
        };
        let client = self.client(display, (start_ns, id, &spec));
        let typist = Answerer::typist(self.beats_ns, typing, client);
        let asked = display.server.as_ref().filter(|_| display.work_ms > 0.0);
        let typist = self.asks(asked, Box::new(typist));
        self.begins(start_ns, id, spec, typist);
    }

    fn start_game(&mut self, kind: &Kind, (start_ns, id): (Ns, InstanceId), spec: Spec) {
        let Kind::Game {
            fps,
            work_ms,
            updates_per_s,
            update_ms,
            ..
        } = kind
        else {
            unreachable!("asked for a game");
        };
        let updates = Typing {
            keys_per_s: *updates_per_s,
            regular: true,
            seed: 1,
            input_ns: vec![0],
            work_ns: vec![from_ms(*update_ms)],
            until_ns: Ns::MAX,
        };
        let frames = Player::new(self.beats_ns, *fps, each_from_ms(work_ms), None);
        let updates = Answerer::typist(self.beats_ns, updates, None);
        let game = match self.session {
            None => Game::new(frames, updates),
            Some(_) => {
                let updates = InSession::new(updates, Cycle::default());
                Game::new(frames, updates.waiting_for_events())
            }
        };
        self.begins(start_ns, id, spec, Box::new(game));
    }

    fn start_sink(&mut self, program: &Program, (start_ns, id): (Ns, InstanceId), spec: Spec) {
        let Kind::Sink {
            work_ms, to_end, ..
        } = &program.kind
        else {
            unreachable!("asked for a sink");
        };
        // As on a kernel, where it has to be loaded first; an ideal machine has it from the beginning.
        let begin_ns = match self.loads {
            true => self.beats_ns,
            false => start_ns,
        };
        let beats = Beats {
            resolution_ns: self.workload.simulator.costs.timer_resolution_ns,
            ..program.kind.beats(begin_ns, id.0).expect("a sink has some")
        };
        let mut sink = Sink::new(beats.instants(), each_from_ms(work_ms), *to_end);
        let events = program.contract.as_ref().is_some_and(|c| c.events);
        match self.choice {
            Choice::Servers if events => self.machine.raise(id, Box::new(beats.instants())),
            _ if self.session.is_some() => sink = sink.telling(),
            _ => {}
        }
        self.begins(start_ns, id, spec, Box::new(sink));
    }

    fn desk(&self, name: &str) -> Desk {
        let desk = self.desks.iter().find(|(known, _)| known == name);
        desk.expect("checked when it was read").1.clone()
    }

    /// How a program has a frame or a key drawn: by the server it names, by one of its own if it
    /// names none, not at all if that takes no work.
    fn client(
        &mut self,
        display: &Display,
        (start_ns, id, spec): (Ns, InstanceId, &Spec),
    ) -> Option<Client> {
        let work_ns = ns(display.work_ms / 1e3);
        if work_ns == 0 {
            return None;
        }
        let answer = self.machine.channel(PIPE_BYTES, display.ahead);
        let desk = match &display.server {
            Some(name) => self.desk(name),
            None => {
                let desk = Desk::new(self.machine.channel(PIPE_BYTES, 0));
                let server = DisplayServer::new(desk.clone());
                self.begins(start_ns, id, spec.clone(), Box::new(server));
                desk
            }
        };
        let client = desk.client(answer, work_ns);
        let client = match display.server {
            Some(_) => client,
            None => client.of_its_own(),
        };
        Some(match display.ahead {
            0 => client,
            _ => client.ahead(),
        })
    }
}

/// What an expert gives the program under this choice, or what it has by itself.
fn nice_of(choice: &Choice, program: &Program) -> i32 {
    match (choice, &program.tuned) {
        (Choice::ByHand(ByHand::Nice), Some(tuned)) => tuned.nice,
        // The model's SCHED_IDLE is one more nice value (`kernel/model.h`).
        _ if program.sched_idle => 20,
        _ => program.nice,
    }
}

/// The path of the class that it runs in.
fn class_of(choice: &Choice, program: &Program) -> String {
    match (choice, &program.tuned) {
        (Choice::ByHand(ByHand::Weight), Some(_)) => runner::own_class(program),
        _ => program.class.clone(),
    }
}

fn fifo_of(choice: &Choice, program: &Program) -> u32 {
    match (choice, &program.tuned) {
        (Choice::ByHand(ByHand::Fifo), Some(tuned)) => tuned.fifo as u32,
        _ => 0,
    }
}
