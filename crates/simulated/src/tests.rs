use andante_scenario::Scenario;

use super::*;

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

/// What its class used in each second that ten readings of a second tell of [CPUs].
fn in_seconds(result: &SchedulerResult, class: usize) -> Vec<f64> {
    let samples = &result.classes[class].samples;
    let per_second = samples.windows(11);
    per_second
        .map(|second| (second[10] - second[0]) as f64 / 1e9)
        .collect()
}

/// Quotas are exact within 1 % over each second: on one CPU and on four, beside others or not, in one tree
/// or in several, under a contract for more, and from the second after a change on.
#[test]
fn quotas_hold_in_every_second() {
    let loops = "duration_s = 6\nsample_ms = 100\n[classes]\n'/free' = 100\n\
                 [programs.free]\nclass = '/free'\nkind = 'loop'\n\
                 [programs.limited]\nclass = '/limited'\nkind = 'loop'\n";
    let limit = |quota: &str| format!("[classes.'/limited']\n{quota}\n");
    let fifth = limit("max = '20ms/100ms'");
    let contract = "contract = { kind = 'cbs', budget_ms = 50, period_ms = 100 }\n";
    for (text, cpus) in [
        (format!("{loops}count = 4\n{fifth}"), 0.2),
        (format!("{loops}{contract}{fifth}"), 0.2),
        (format!("cpus = 4\n{loops}count = 8\n{fifth}"), 0.2),
        (
            format!(
                "cpus = 4\n{loops}count = 8\n{}",
                limit("max = '250ms/100ms'")
            ),
            2.5,
        ),
        (
            format!(
                "cpus = 4\ndomain_cpus = 2\n{loops}count = 8\n{}",
                limit("max = '150ms/50ms'")
            ),
            3.0,
        ),
        (
            format!("{loops}{}", limit("max = '3ms/10ms'\nburst = '3ms'")),
            0.3,
        ),
    ] {
        let result = simulated(&text);
        let class = result
            .classes
            .iter()
            .position(|class| class.path == "/limited");
        // The last readings are of programs that end.
        let seconds = in_seconds(&result, class.unwrap());
        for used in &seconds {
            assert!((used / cpus - 1.0).abs() < 0.01, "{text}\n{seconds:?}");
        }
    }
    let later = "max = '20ms/100ms'\nlater = [{ at_s = 2, max = '60ms/100ms' }]";
    let result = simulated(&format!("{loops}count = 4\n{}", limit(later)));
    let class = result
        .classes
        .iter()
        .position(|class| class.path == "/limited");
    let seconds = in_seconds(&result, class.unwrap());
    // Beside the other class it has half.
    let (before, after) = (seconds[8], seconds[25]);
    assert!((before - 0.2).abs() < 0.002, "{seconds:?}");
    assert!((after - 0.5).abs() < 0.005, "{seconds:?}");
}

/// What the model of the stock scheduler does not enforce is refused, not ignored.
#[test]
fn quotas_are_refused_where_nobody_enforces_them() {
    let text = "title = 'x'\nduration_s = 1\n[classes.'/limited']\nmax = '20ms/100ms'\n\
                [programs.limited]\nclass = '/limited'\nkind = 'loop'";
    let mut scenario = Scenario::parse("x.toml", text, &[]).unwrap();
    let workload = scenario.cases.remove(0).workload;
    let refused = scheduler::check(&workload, &Choice::Eevdf).unwrap_err();
    assert!(refused.to_string().contains("/limited"), "{refused}");
    assert!(scheduler::check(&workload, &Choice::Andante).is_ok());
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

/// Of two floods each has what its weight says, and a film's packets wait no longer than for one that was begun and one
/// more, where fq_codel has them wait for one of each flood; in one queue they wait for all that is in it.
#[test]
fn a_cable_carries_by_weights() {
    let text = |discipline: &str| {
        format!(
            "duration_s = 2\n[network]\nrate = '10mbit'\ndiscipline = '{discipline}'\n\
             [classes]\n'/a' = 100\n'/b' = 300\n'/film' = 100\n\
             [programs.a]\nclass = '/a'\nkind = 'sender'\nevery_ms = 0.5\nnetwork = 'here'\n\
             [programs.b]\nclass = '/b'\nkind = 'sender'\nevery_ms = 0.6\nnetwork = 'here'\n\
             [programs.film]\nclass = '/film'\nkind = 'sender'\nbytes = 1000\nevery_ms = 10\n\
             network = 'here'"
        )
    };
    let of = |result: &SchedulerResult, place: usize| {
        let program = &result.programs[place];
        (
            program.goodput_share.unwrap(),
            program.latency_us.unwrap().p99,
        )
    };
    let own = simulated(&text("own"));
    let ratio = of(&own, 1).0 / of(&own, 0).0;
    assert!((2.9..=3.1).contains(&ratio), "{ratio}");
    let film_us = of(&own, 2).1;
    assert!(film_us <= 2_500.0, "{film_us}");
    let flows = simulated_under(&Choice::Stock, &text("own"));
    let ratio = of(&flows, 1).0 / of(&flows, 0).0;
    assert!((0.97..=1.03).contains(&ratio), "{ratio}");
    assert!(of(&flows, 2).1 <= 3_000.0, "{:?}", of(&flows, 2));
    let one = simulated_under(&Choice::Stock, &text("fifo"));
    assert!(of(&one, 2).1 >= 100_000.0, "{:?}", of(&one, 2));
}

/// A router knows no classes: floods of two weights are alike there, and a film's packets wait as little as in a class of
/// its own. No socket holds a sender back whose packets wait there.
#[test]
fn a_router_has_flows_take_turns() {
    let text = "duration_s = 2\n[network]\nrate = '10mbit'\nrouter = true\n\
                [classes]\n'/a' = 100\n'/b' = 300\n\
                [programs.a]\nclass = '/a'\nkind = 'sender'\nevery_ms = 0.5\nnetwork = 'here'\n\
                [programs.b]\nclass = '/b'\nkind = 'sender'\nevery_ms = 0.6\nnetwork = 'here'\n\
                [programs.film]\nclass = '/'\nkind = 'sender'\nbytes = 1000\nevery_ms = 10\n\
                network = 'here'";
    let result = simulated(text);
    let of = |place: usize| &result.programs[place];
    let ratio = of(1).goodput_share.unwrap() / of(0).goodput_share.unwrap();
    assert!((0.97..=1.03).contains(&ratio), "{ratio}");
    let film_us = of(2).latency_us.unwrap().p99;
    assert!(film_us <= 2_500.0, "{film_us}");
    // A socket has room for 92 packets, which are 0.2 s beside as many of the other's.
    let flood_us = of(0).latency_us.unwrap().p50;
    assert!(flood_us >= 400_000.0, "{flood_us}");
    assert_eq!(of(2).lost, Some(0));
}

#[test]
fn a_disk_is_refused() {
    let text = "title = 'x'\nduration_s = 1\n[disk]\nkind = 'hdd'\nsize = '1G'\n\
                [programs.x]\nclass = '/'\nkind = 'loop'\n";
    let mut scenario = Scenario::parse("x.toml", text, &[]).unwrap();
    let job = Job {
        case: scenario.cases.remove(0),
        choice: Choice::Andante,
        perturbation: None,
    };
    let error = check(&job).unwrap_err().to_string();
    assert!(
        error.contains("has no disk") && error.contains("--on vm"),
        "{error}"
    );
}

/// Nothing of it is simulated, so that nobody is to take its figures for those of a machine with little memory.
#[test]
fn what_is_about_memory_is_refused() {
    let refused = |keys: &str| {
        let text = format!(
            "title = 'x'\nduration_s = 1\n{keys}\n[programs.x]\nclass = '/'\nkind = 'loop'\n"
        );
        let mut scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
        let job = Job {
            case: scenario.cases.remove(0),
            choice: Choice::Andante,
            perturbation: None,
        };
        check(&job).map_err(|error| error.to_string())
    };
    assert_eq!(refused(""), Ok(()));
    for keys in [
        "[memory]\nswap = '1G'",
        "[classes]\n'/a' = { memory_high = '9M' }",
        "[programs.y]\nclass = '/'\nkind = 'loop'\nlock = true",
    ] {
        let error = refused(keys).unwrap_err();
        assert!(
            error.contains("has no memory") && error.contains("--on vm"),
            "{error}"
        );
    }
}
