//! Contracts as published, with coordinated events: golden schedules.

mod ideal;

use andante_sim::programs::Loop;
use andante_sim::{
    ContractId, Costs, InstanceId, Machine, NS_PER_MS, Ns, Promise, Scheduler, ServerOptions,
    Servers, Spec,
};
use ideal::{ROOT, order, server};

const MS: Ns = NS_PER_MS;

fn servers(coordinated: bool, task_server_ns: Ns) -> Servers {
    let options = ServerOptions {
        contracts: 0,
        coordinated,
        task_server_ns,
    };
    Servers::new(1, MS, options)
}

fn machine(servers: Servers) -> Machine<Servers> {
    Machine::new(1, Costs::default(), servers, 0..Ns::MAX)
}

/// algorithms 3.3, scenario I: T1 1/2 T 4, T2 1/4 T 2, C 1; best effort takes the rest.
#[test]
fn a_dwcs_schedule_and_an_event() {
    let run = |coordinated: bool| {
        let mut servers = servers(coordinated, 0);
        let t1 = servers.create(&window(1, 2, 4), true).unwrap();
        let t2 = servers.create(&window(1, 4, 2), true).unwrap();
        let mut m = machine(servers);
        start_loops(&mut m, &[Some(t1), Some(t2), None]);
        m.run_until(8 * MS);
        order(m.trace().runs(), &["1", "2", "b"], MS)
    };
    assert_eq!(run(false), "212b212b");
    assert_eq!(run(true).len(), 8);
}

/// Figure 4(a) of ECalls on the machine: T1 has an event at 3 slots, when best effort would run.
#[test]
fn an_event_from_elsewhere_brings_its_sink_forward() {
    let mut scheduler = servers(true, 0);
    let t1 = scheduler.create(&window(1, 2, 4), false).unwrap();
    let t2 = scheduler.create(&window(1, 4, 2), false).unwrap();
    let mut m = machine(scheduler);
    let instance = start_loops(&mut m, &[Some(t1), Some(t2), None]);
    m.raise(instance, [3 * MS].into_iter());
    m.run_until(8 * MS);
    assert_eq!(order(m.trace().runs(), &["1", "2", "b"], MS), "2121212b");
    let delivered = m.scheduler_mut().delivered(t1).unwrap();
    assert_eq!((delivered.raised, delivered.swaps()), (1, 1));
    assert_eq!(delivered.by_rule, [0, 1, 0, 0, 0]);
}

/// With no event and no best effort the task server forfeits its slots: nobody waits for them.
#[test]
fn a_task_server_that_nobody_uses_takes_no_time() {
    let mut scheduler = servers(true, MS);
    let t1 = scheduler.create(&window(1, 2, 3), false).unwrap();
    let t2 = scheduler.create(&window(1, 4, 3), false).unwrap();
    scheduler.start_task_servers(0);
    let mut m = machine(scheduler);
    start_loops(&mut m, &[Some(t1), Some(t2)]);
    m.run_until(9 * MS);
    assert_eq!(order(m.trace().runs(), &["1", "2"], MS), "21.21.21");
    for id in [t1, t2] {
        assert_eq!(m.scheduler_mut().kept(id).unwrap().misses, 0);
    }
}

/// One slot of 1 ms in `period` of them, x of y lost.
fn window(x: u32, y: u32, period: Ns) -> Promise {
    Promise {
        x,
        y,
        ..server(MS, period * MS, Promise::WINDOW, 0)
    }
}

fn start_loops(m: &mut Machine<Servers>, under: &[Option<ContractId>]) -> InstanceId {
    let instance = m.instance();
    for contract in under {
        let spec = Spec {
            contract: *contract,
            ..Spec::of(ROOT)
        };
        m.start(0, instance, spec, Loop);
    }
    instance
}
