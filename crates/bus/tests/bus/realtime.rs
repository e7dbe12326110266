// SPDX-License-Identifier: GPL-2.0
//! RealtimeKit1, method by method, and by those who should not.

use std::time::{Duration, Instant};

use zbus::Connection;
use zbus::zvariant::OwnedValue;

use super::stage::*;

const NAME: &str = "org.freedesktop.RealtimeKit1";
const PATH: &str = "/org/freedesktop/RealtimeKit1";

type Outcome = Result<(), (String, String)>;

async fn with_pid(bus: &Connection, process: i32, thread: u64, priority: u32) -> Outcome {
    let body = (process as u64, thread, priority);
    call(bus, [NAME, PATH, NAME, "MakeThreadRealtimeWithPID"], &body).await
}

async fn nice_with_pid(bus: &Connection, process: i32, thread: u64, nice: i32) -> Outcome {
    let body = (process as u64, thread, nice);
    call(
        bus,
        [NAME, PATH, NAME, "MakeThreadHighPriorityWithPID"],
        &body,
    )
    .await
}

async fn own(bus: &Connection, thread: u64, priority: u32) -> Outcome {
    call(
        bus,
        [NAME, PATH, NAME, "MakeThreadRealtime"],
        &(thread, priority),
    )
    .await
}

async fn property(bus: &Connection, name: &str) -> i64 {
    let get = [NAME, PATH, "org.freedesktop.DBus.Properties", "Get"];
    let value: OwnedValue = call(bus, get, &(NAME, name)).await.unwrap();
    // Programs take these two types, and no other.
    i64::try_from(&value)
        .or_else(|_| i32::try_from(&value).map(i64::from))
        .unwrap()
}

fn kind(outcome: Outcome) -> String {
    outcome.expect_err("it is refused").0
}

fn me() -> i32 {
    i32::try_from(std::process::id()).unwrap()
}

#[test]
fn threads_that_ask_are_waited_for() {
    let mut stage = Stage::played(Kind::System);
    let other = sleeper(own_uid());
    let tid = nix::unistd::gettid().as_raw();
    wait_for(async {
        let bus = stage.client().await;
        own(&bus, tid as u64, 20).await.unwrap();
        // Zero is the first thread.
        own(&bus, 0, 1).await.unwrap();
        with_pid(&bus, other.pid(), other.pid() as u64, 20)
            .await
            .unwrap();
        let high = [NAME, PATH, NAME, "MakeThreadHighPriority"];
        let outcome: Outcome = call(&bus, high, &(tid as u64, -11)).await;
        outcome.unwrap();
        nice_with_pid(&bus, other.pid(), other.pid() as u64, -15)
            .await
            .unwrap();
        assert_eq!(property(&bus, "RTTimeUSecMax").await, 200_000);
        assert_eq!(property(&bus, "MaxRealtimePriority").await, 20);
        assert_eq!(property(&bus, "MinNiceLevel").await, -15);
    });
    let seen = stage.sessions();
    let audio = |pid| {
        seen.iter()
            .find(|one| one.pid == pid && one.role == "audio")
    };
    assert_eq!(audio(me()).unwrap().threads, 2);
    assert_eq!(audio(other.pid()).unwrap().threads, 1);
    let by = audio(me()).unwrap().asked_by.as_deref();
    assert_eq!(by, Some("andante-bus"));
    let kernel = stage.end_daemon();
    let mut declared: Vec<_> = kernel.declared.keys().copied().collect();
    let mut asked = vec![tid, me(), other.pid()];
    declared.sort_unstable();
    asked.sort_unstable();
    assert_eq!(declared, asked);
}

#[test]
fn what_makes_no_sense_or_is_anothers_is_refused_by_name() {
    let stage = Stage::played(Kind::System);
    let mine = sleeper(own_uid());
    wait_for(async {
        let bus = stage.client().await;
        assert_eq!(kind(own(&bus, 1, 10).await), "AccessDenied");
        assert_eq!(kind(own(&bus, 4_000_000_000, 10).await), "InvalidArgs");
        assert_eq!(kind(own(&bus, u64::MAX, 10).await), "InvalidArgs");
        assert_eq!(
            kind(own(&bus, i32::MAX as u64, 10).await),
            "UnixProcessIdUnknown"
        );
        assert_eq!(kind(own(&bus, 0, 0).await), "InvalidArgs");
        assert_eq!(kind(own(&bus, 0, 21).await), "AccessDenied");
        assert_eq!(kind(own(&bus, 0, u32::MAX).await), "AccessDenied");
        let outcome = with_pid(&bus, me(), mine.pid() as u64, 10).await;
        assert_eq!(kind(outcome), "AccessDenied");
        let outcome = with_pid(&bus, i32::MAX, 0, 10).await;
        assert_eq!(kind(outcome), "UnixProcessIdUnknown");
        assert_eq!(
            kind(nice_with_pid(&bus, me(), 0, -16).await),
            "AccessDenied"
        );
        assert_eq!(kind(nice_with_pid(&bus, me(), 0, 0).await), "InvalidArgs");
        assert_eq!(kind(nice_with_pid(&bus, me(), 0, 20).await), "InvalidArgs");
        let unknown: Outcome = call(&bus, [NAME, PATH, NAME, "MakeThreadSoftRealtime"], &()).await;
        assert_eq!(kind(unknown), "UnknownMethod");
    });
    assert!(stage.sessions().is_empty());
}

#[test]
fn users_ask_for_their_own_processes() {
    if !is_root() {
        return;
    }
    let stage = Stage::played(Kind::System);
    let (of_root, of_nobody) = (sleeper(0), sleeper(NOBODY));
    as_user(NOBODY, || {
        wait_for(async {
            let bus = stage.client().await;
            let outcome = with_pid(&bus, of_root.pid(), 0, 10).await;
            assert_eq!(kind(outcome), "AccessDenied");
            with_pid(&bus, of_nobody.pid(), 0, 10).await.unwrap();
            // This process is root's, whoever asks in it.
            assert_eq!(kind(own(&bus, 0, 10).await), "AccessDenied");
            for method in ["ResetKnown", "ResetAll", "Exit"] {
                let outcome: Outcome = call(&bus, [NAME, PATH, NAME, method], &()).await;
                assert_eq!(kind(outcome), "AccessDenied", "{method}");
            }
        });
    });
    let seen = stage.sessions();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].pid, seen[0].uid), (of_nobody.pid(), NOBODY));
}

#[test]
fn root_ends_it_all() {
    if !is_root() {
        return;
    }
    let mut stage = Stage::played(Kind::System);
    let sleeper = sleeper(NOBODY);
    wait_for(async {
        let bus = stage.client().await;
        for method in ["ResetKnown", "ResetAll", "Exit"] {
            with_pid(&bus, sleeper.pid(), 0, 10).await.unwrap();
            assert_eq!(stage.sessions().len(), 1, "{method}");
            let outcome: Outcome = call(&bus, [NAME, PATH, NAME, method], &()).await;
            outcome.unwrap();
            until("nothing stands", || stage.sessions().is_empty());
        }
    });
    assert_eq!(stage.program.take().unwrap().wait().code(), Some(0));
}

#[test]
fn nothing_is_left_of_a_process_that_ends() {
    let mut stage = Stage::played(Kind::System);
    let first = sleeper(own_uid());
    let pid = first.pid();
    wait_for(async {
        let bus = stage.client().await;
        with_pid(&bus, pid, 0, 10).await.unwrap();
        assert_eq!(stage.sessions().len(), 1);
        drop(first);
        until("it is gone", || stage.sessions().is_empty());
        // Nor is it said of again to a daemon that comes later.
        stage.end_daemon();
        stage.start_daemon();
        own(&bus, 0, 10).await.unwrap();
    });
    let seen = stage.sessions();
    assert_eq!(seen.iter().map(|one| one.pid).collect::<Vec<_>>(), [me()]);
}

#[test]
fn the_daemon_may_go_and_come_back() {
    let mut stage = Stage::new(Kind::System, "");
    stage.start_program();
    wait_for(async {
        let bus = stage.client().await;
        let (kind, message) = own(&bus, 0, 10).await.expect_err("nobody is there");
        assert_eq!(kind, "ServiceUnknown");
        assert!(message.contains("systemctl start andante"), "{message}");
        stage.start_daemon();
        own(&bus, 0, 10).await.unwrap();
        assert_eq!(stage.end_daemon().declared.len(), 1);
        let (kind, _) = own(&bus, 0, 10).await.expect_err("nobody is there");
        assert_eq!(kind, "ServiceUnknown");
        stage.start_daemon();
    });
    // What stood is said again, though nobody asks.
    until("it is said again", || !stage.sessions().is_empty());
    assert_eq!(stage.sessions()[0].pid, me());
}

#[test]
fn who_asks_a_thousand_times_keeps_nobody_waiting() {
    if !is_root() {
        return;
    }
    let stage = Stage::played(Kind::System);
    let (of_root, of_nobody) = (sleeper(0), sleeper(NOBODY));
    let (worst, refused) = std::thread::scope(|scope| {
        let flood = scope.spawn(|| as_user(NOBODY, || flood(&stage, of_nobody.pid())));
        let mut worst = Duration::ZERO;
        wait_for(async {
            let bus = stage.client().await;
            while !flood.is_finished() {
                let since = Instant::now();
                with_pid(&bus, of_root.pid(), 0, 10).await.unwrap();
                worst = worst.max(since.elapsed());
            }
        });
        (worst, flood.join().unwrap())
    });
    eprintln!("a thousand requests at once: {refused} refused, others waited {worst:?} at most");
    assert!(refused >= 500, "{refused}");
    // Two cores, perhaps with other tests on them, and a build that was not made to be quick.
    assert!(worst < Duration::from_secs(2), "{worst:?}");
    assert_eq!(stage.sessions().len(), 2);
    // Later he is answered again.
    std::thread::sleep(Duration::from_millis(1100));
    as_user(NOBODY, || {
        wait_for(async {
            let bus = stage.client().await;
            with_pid(&bus, of_nobody.pid(), 0, 10).await.unwrap();
        });
    });
}

/// A thousand requests, before any is answered; how many are refused for that.
fn flood(stage: &Stage, process: i32) -> usize {
    wait_for(async {
        let bus = stage.client().await;
        let asked = (0..1000).map(|_| {
            let bus = bus.clone();
            tokio::spawn(async move { with_pid(&bus, process, 0, 10).await })
        });
        let asked: Vec<_> = asked.collect();
        let mut refused = 0;
        for one in asked {
            if let Err((kind, _)) = one.await.unwrap() {
                assert_eq!(kind, "LimitsExceeded");
                refused += 1;
            }
        }
        refused
    })
}
