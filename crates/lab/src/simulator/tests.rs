use super::*;
use crate::scenario::Scenario;

/// The only case of a scenario, under Andante.
fn simulated(text: &str) -> SchedulerResult {
    simulated_under(&Choice::Andante, text)
}

fn simulated_under(choice: &Choice, text: &str) -> SchedulerResult {
    let text = format!("title = 'x'\n{text}");
    let mut scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
    simulate(&scenario.cases.remove(0).workload, choice).unwrap()
}

/// Nine of ten slots are to be had where 5 % are left to others, and just as many are needed; of the default
/// of 20 % windows would be violated.
#[test]
fn contracts_have_what_the_scenario_leaves_them() {
    let result = simulated(
        "duration_s = 4\n[contracts]\nleave_percent = 5\n\
         [programs.half]\nclass = '/'\nkind = 'loop'\ncount = 3\n\
         contract = { kind = 'dwcs', tolerate = '1/2', budget_ms = 3, period_ms = 30 }\n\
         [programs.quarter]\nclass = '/'\nkind = 'loop'\ncount = 3\n\
         contract = { kind = 'dwcs', tolerate = '1/4', budget_ms = 3, period_ms = 30 }\n\
         [programs.eighth]\nclass = '/'\nkind = 'loop'\ncount = 6\n\
         contract = { kind = 'dwcs', tolerate = '1/8', budget_ms = 3, period_ms = 30 }",
    );
    for program in result.programs {
        assert_eq!(program.violations, Some(0), "{}", program.name);
    }
}

/// Each of two domains has a tree of its own, and the weights hold over both.
#[test]
fn weights_hold_over_domains() {
    let result = simulated(
        "cpus = 2\ndomain_cpus = 1\nduration_s = 3\n[classes]\n'/a' = 100\n'/b' = 300\n\
         [programs.a]\nclass = '/a'\nkind = 'loop'\ncount = 2\n\
         [programs.b]\nclass = '/b'\nkind = 'loop'\ncount = 3",
    );
    let share = result.classes[0].share_received;
    assert!((share - 0.25).abs() < 0.02, "{share}");
}

/// A client that is there before its server tries until that listens, and is answered from then on.
#[test]
fn a_client_waits_for_its_server() {
    let result = simulated(
        "duration_s = 3\nwarmup_s = 0\n[programs.film]\nclass = '/'\nkind = 'player'\nfps = 30\n\
         work_ms = 2\ndisplay_ms = 1\nserver = 'x'\ndrops = false\n\
         [programs.x]\nclass = '/'\nkind = 'server'\nstart_s = 1",
    );
    let film = &result.programs[0];
    let shown_ms = film.shown_ms[0];
    assert!((1_000.0..1_100.0).contains(&shown_ms), "{shown_ms}");
    // It begins with the frame of that instant, thirty of ninety late; the last may be shown after the end.
    assert!(film.frames >= Some(58), "{:?}", film.frames);
}

/// Under first in, first out the first of two loops has the CPU for good; the watchdog waits for the other.
#[test]
fn it_is_told_when_the_kernel_lets_the_scheduler_go() {
    let text = "duration_s = 60\n[programs.loops]\nclass = '/'\nkind = 'loop'\ncount = 2";
    let fifo = Choice::of_kernel(andante_sim::PolicyKind::Fifo);
    let reason = simulated_under(&fifo, text).ejected.unwrap_or_default();
    assert!(reason.contains("stall"), "{reason}");
    assert_eq!(simulated(text).ejected, None);
}
