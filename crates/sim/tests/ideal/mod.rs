//! An ideal kernel under the scheduler that users run: nothing takes time but programs.
#![allow(dead_code, reason = "each test file uses a part")]

use andante_sim::{
    ClassId, ContractId, Coordination, Costs, Hardware, InCharge, InstanceId, Kernel, NS_PER_MS,
    Ns, Program, Promise, Ran, Settings, Simulation, Spec,
};

pub const ROOT: ClassId = ClassId(0);
/// The service that a class gets at a pick, as users have it [ns].
pub const QUANTUM_NS: Ns = 2 * NS_PER_MS;

/// With nothing learnt, and as much promised as is asked for: tests say what is to be.
pub fn kernel(cpus: usize, quantum_ns: Ns, costs: Costs) -> Kernel {
    let hardware = Hardware {
        cpus,
        ..Hardware::ideal(costs)
    };
    Kernel::new(&hardware, andante(quantum_ns), 0..Ns::MAX)
}

/// The same with the usual quantum, without a trace, and with fewer ticks: for long runs.
pub fn untraced(cpus: usize) -> Kernel {
    let hardware = Hardware {
        cpus,
        tick_ns: 4 * NS_PER_MS,
        ..Hardware::ideal(Costs::default())
    };
    Kernel::new(&hardware, andante(QUANTUM_NS), 0..0)
}

/// One CPU with coordinated events, but for the rules left out.
pub fn with_events(left_out: u32) -> Kernel {
    let InCharge::Andante(settings) = andante(QUANTUM_NS) else {
        unreachable!("it is");
    };
    let in_charge = InCharge::Andante(Settings {
        events: Some(Coordination {
            left_out,
            task_server: true,
        }),
        ..settings
    });
    Kernel::new(&Hardware::ideal(Costs::default()), in_charge, 0..Ns::MAX)
}

fn andante(quantum_ns: Ns) -> InCharge {
    InCharge::Andante(Settings {
        quantum_ns,
        in_class_wake_ns: 200_000,
        contract_bound: 1024,
        learn_bound: 0,
        bindings: false,
        events: None,
    })
}

pub fn start(m: &mut dyn Simulation, spec: Spec, program: impl Program + 'static) -> InstanceId {
    let instance = m.instance();
    m.start(0, instance, spec, Box::new(program));
    instance
}

/// An ordinary task under a contract, in the root class.
pub fn under(contract: ContractId) -> Spec {
    Spec {
        contract: Some(contract),
        ..Spec::of(ROOT)
    }
}

/// A server's promise.
pub fn server(budget_ns: Ns, period_ns: Ns, flags: u32, cpu: u32) -> Promise {
    Promise {
        budget_ns,
        period_ns,
        flags,
        cpu,
        ..Promise::default()
    }
}

/// The name of the task that had the CPU in each unit of time; idle units are dots.
pub fn order(runs: &[Ran], names: &[&str], unit_ns: Ns) -> String {
    let mut order = String::new();
    let mut at_ns = 0;
    for run in runs {
        for _ in 0..(run.start_ns - at_ns) / unit_ns {
            order.push('.');
        }
        for _ in 0..run.length_ns.div_ceil(unit_ns) {
            order.push_str(names[run.task.0 as usize]);
        }
        at_ns = run.start_ns + run.length_ns;
    }
    order
}
