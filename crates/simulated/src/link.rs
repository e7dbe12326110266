//! The cable of a scenario: what its senders bring to the other end, by the link's own simulation. Sending takes
//! no time of a CPU there, so that senders and other programs do not hold each other up.

use std::collections::HashMap;

use andante_job::LabError;
use andante_programs::Samples;
use andante_scenario::choice::Choice;
use andante_scenario::{Discipline, Kind, Program, Workload};
use andante_sim::link::{self, Fifo, FqCodel, HEADERS, Queue, Received, Sender};
use andante_sim::{NS_PER_S, Ns, Packets};

use super::{beats_later_ns, ns};

/// The largest packet of Ethernet [bytes].
const LARGEST: u32 = 1514;

/// Refuses what only a kernel has.
pub(super) fn check(workload: &Workload, choice: &Choice) -> Result<(), LabError> {
    let only = |what: String| Err(LabError::OnlyOnKernel { what });
    for program in senders(workload) {
        let name = &program.name;
        match program.kind {
            Kind::Sender { by_tcp: true, .. } => {
                return only(format!(
                    "program `{name}` sends by TCP, which is not simulated"
                ));
            }
            Kind::Sender { every_ms, .. } if every_ms <= 0.0 => {
                return only(format!(
                    "program `{name}` sends as fast as it can (`every_ms` is missing)"
                ));
            }
            _ => {}
        }
        if workload.cable.rate.is_none() {
            return only("a cable without a rate is as fast as a machine".to_owned());
        }
    }
    let cake = workload.cable.discipline.under(choice) == Discipline::Cake;
    match cake && senders(workload).next().is_some() {
        true => only("`discipline = \"cake\"` is not simulated".to_owned()),
        false => Ok(()),
    }
}

fn senders(workload: &Workload) -> impl Iterator<Item = &Program> {
    let running = workload.programs.iter().filter(|program| program.count > 0);
    running.filter(|program| matches!(program.kind, Kind::Sender { .. }))
}

/// The samples of each instance of the workload between `begin_ns` and `end_ns`; none of a program that is no sender.
pub(super) fn arrivals(
    workload: &Workload,
    choice: &Choice,
    begin_ns: Ns,
    end_ns: Ns,
) -> Vec<Option<Samples>> {
    let mut networks: Vec<_> = senders(workload).map(|program| &program.network).collect();
    networks.dedup();
    let mut samples: Vec<Option<Samples>> = workload.instances().map(|_| None).collect();
    for network in networks {
        let mut end = End::of(workload, choice);
        let mut numbers = HashMap::new();
        let mut sending = Vec::new();
        for (place, program) in workload.instances().enumerate() {
            let number = numbers
                .entry(&program.name)
                .and_modify(|n| *n += 1)
                .or_insert(1);
            if program.network == *network
                && let Some(sender) = end.sender(program, *number, begin_ns)
            {
                sending.push((place, sender));
            }
        }
        let all: Vec<Sender> = sending.iter().map(|(_, sender)| sender.clone()).collect();
        let received = link::send(&mut *end.queue, &all, begin_ns, end_ns);
        for ((place, sender), received) in sending.iter().zip(&received) {
            samples[*place] = Some(as_left(sender, received));
        }
    }
    samples
}

/// One end of the cable, or the router's.
struct End<'a> {
    queue: Box<dyn Queue>,
    router: bool,
    classes: HashMap<&'a str, u32>,
}

impl<'a> End<'a> {
    fn of(workload: &'a Workload, choice: &Choice) -> Self {
        let rate = workload.cable.rate.expect("checked before").bytes();
        let mut classes = HashMap::from([("/", Packets::ROOT)]);
        let queue: Box<dyn Queue> = match workload.cable.discipline.under(choice) {
            Discipline::Fifo => Box::new(Fifo::new(rate)),
            Discipline::FqCodel => Box::new(FqCodel::new(rate)),
            Discipline::Own | Discipline::Cake => unreachable!("refused before"),
            Discipline::Andante => {
                let mut link = Packets::new(rate, LARGEST);
                for class in &workload.classes {
                    let made = link.create(classes[class.parent()], class.weight);
                    classes.insert(&class.path, made.expect("there is room for a scenario's"));
                }
                for contract in &workload.cable.contracts {
                    let terms = contract.link;
                    let leaf = classes[&*contract.class];
                    let promised = link.promise(leaf, terms.bytes, terms.period_ns, 0);
                    assert!(promised, "there is room for a scenario's contracts");
                }
                Box::new(link)
            }
        };
        Self {
            queue,
            router: workload.cable.router,
            classes,
        }
    }

    fn sender(&self, program: &Program, number: u32, begin_ns: Ns) -> Option<Sender> {
        let Kind::Sender {
            bytes,
            every_ms,
            ref burst,
            ..
        } = program.kind
        else {
            return None;
        };
        let every_ns = ns(every_ms / 1e3);
        let at = |at_s: f64| (begin_ns as f64 + at_s * NS_PER_S as f64).max(0.0) as Ns;
        let start_ns = program.start_s.map_or(0, at);
        // A beat is at the beginning of the measurement.
        let beat_ns = (begin_ns + beats_later_ns(program, number)) % every_ns;
        let class = self.classes.get(&*program.class);
        let class = class.copied().unwrap_or(Packets::ROOT);
        let usual = Sender::usual(class, bytes, every_ns);
        let usual = match self.router {
            false => usual,
            // A packet that has left its host is of no socket any more: it is of no class, and holds no sender back.
            true => Sender {
                class: Packets::ROOT,
                room: u64::MAX,
                ..usual
            },
        };
        Some(Sender {
            burst: burst.clone(),
            first_ns: start_ns.saturating_sub(beat_ns).next_multiple_of(every_ns) + beat_ns,
            until_ns: program.stop_s.map_or(Ns::MAX, at),
            ..usual
        })
    }
}

/// The samples that the program would have left on a kernel.
fn as_left(sender: &Sender, received: &Received) -> Samples {
    let arrived = received.delays_ns.len() as u64;
    Samples {
        iterations: Some(arrived),
        received_bytes: Some(arrived * u64::from(sender.bytes - HEADERS)),
        lost: Some(received.lost),
        latency_ns: received.delays_ns.iter().map(|ns| *ns as f64).collect(),
        ..Samples::default()
    }
}
