// SPDX-License-Identifier: GPL-2.0
//! GameMode, method by method, and by programs that know nothing of Andante.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::{Command, Stdio};

use zbus::zvariant::{OwnedObjectPath, OwnedValue};
use zbus::{Connection, MatchRule, MessageStream};

use super::stage::*;

const NAME: &str = "com.feralinteractive.GameMode";
const PATH: &str = "/com/feralinteractive/GameMode";

async fn ask<B>(bus: &Connection, method: &str, body: &B) -> i32
where
    B: serde::Serialize + zbus::zvariant::DynamicType,
{
    let answer = call(bus, [NAME, PATH, NAME, method], body).await;
    answer.unwrap_or_else(|error| panic!("{method}: {error:?}"))
}

async fn property(bus: &Connection, path: &str, interface: &str, name: &str) -> OwnedValue {
    let get = [NAME, path, "org.freedesktop.DBus.Properties", "Get"];
    call(bus, get, &(interface, name)).await.unwrap()
}

fn pidfd(pid: i32) -> zbus::zvariant::OwnedFd {
    // SAFETY: the call takes two numbers, and makes a descriptor that nobody else has.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    assert!(fd >= 0);
    // SAFETY: it was just made.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }.into()
}

/// Signals of GameMode, as they come.
async fn signals(bus: &Connection) -> MessageStream {
    let rule = MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .interface(NAME)
        .unwrap()
        .build();
    MessageStream::for_match_rule(rule, bus, None)
        .await
        .unwrap()
}

async fn next(stream: &mut MessageStream) -> (String, i32, OwnedObjectPath) {
    use zbus::export::ordered_stream::OrderedStreamExt;
    let message = stream.next().await.unwrap().unwrap();
    let (game, path) = message.body().deserialize().unwrap();
    let member = message.header().member().unwrap().to_string();
    (member, game, path)
}

#[test]
fn games_are_registered_until_they_are_not_or_end() {
    let stage = Stage::played(Kind::Session);
    let (game, other) = (sleeper(own_uid()), sleeper(own_uid()));
    wait_for(async {
        let bus = stage.client().await;
        let mut heard = signals(&bus).await;
        let pid = game.pid();
        let path = format!("{PATH}/Games/{pid}");
        assert_eq!(ask(&bus, "QueryStatus", &pid).await, 0);
        assert_eq!(ask(&bus, "UnregisterGame", &pid).await, -1);
        assert_eq!(ask(&bus, "RegisterGame", &pid).await, 0);
        let (member, of, object) = next(&mut heard).await;
        assert_eq!(
            (member.as_str(), of, object.as_str()),
            ("GameRegistered", pid, path.as_str())
        );
        assert_eq!(
            ask(&bus, "RegisterGame", &pid).await,
            0,
            "a program that executes another"
        );
        assert_eq!(ask(&bus, "QueryStatus", &pid).await, 2);
        assert_eq!(ask(&bus, "QueryStatus", &other.pid()).await, 1);
        let seen = stage.sessions();
        assert_eq!((seen[0].pid, seen[0].role.as_str()), (pid, "game"));
        assert_eq!(seen[0].name.as_deref(), Some("sleep"));
        let games: Vec<(i32, OwnedObjectPath)> = call(&bus, [NAME, PATH, NAME, "ListGames"], &())
            .await
            .unwrap();
        assert_eq!(games.len(), 1);
        assert_eq!((games[0].0, games[0].1.as_str()), (pid, path.as_str()));
        let count = property(&bus, PATH, NAME, "ClientCount").await;
        assert_eq!(i32::try_from(&count), Ok(1));
        let interface = "com.feralinteractive.GameMode.Game";
        let number = property(&bus, &path, interface, "ProcessId").await;
        assert_eq!(i32::try_from(&number), Ok(pid));
        for name in ["Executable", "Exectuable"] {
            let executed = property(&bus, &path, interface, name).await;
            assert!(String::try_from(executed).unwrap().ends_with("/sleep"));
        }
        assert_eq!(ask(&bus, "RefreshConfig", &()).await, 0);
        assert_eq!(ask(&bus, "UnregisterGame", &pid).await, 0);
        assert_eq!(next(&mut heard).await.0, "GameUnregistered");
        assert_eq!(ask(&bus, "QueryStatus", &pid).await, 0);
        assert!(stage.sessions().is_empty());
        // One that ends, unregistered.
        assert_eq!(ask(&bus, "RegisterGame", &pid).await, 0);
        assert_eq!(next(&mut heard).await.0, "GameRegistered");
        drop(game);
        assert_eq!(next(&mut heard).await.0, "GameUnregistered");
        assert_eq!(ask(&bus, "QueryStatus", &other.pid()).await, 0);
    });
    until("it is gone", || stage.sessions().is_empty());
}

#[test]
fn launchers_register_others_by_number_or_descriptor() {
    let stage = Stage::played(Kind::Session);
    let (game, launcher) = (sleeper(own_uid()), sleeper(own_uid()));
    wait_for(async {
        let bus = stage.client().await;
        let by_number = (game.pid(), launcher.pid());
        assert_eq!(ask(&bus, "RegisterGameByPID", &by_number).await, 0);
        assert_eq!(ask(&bus, "QueryStatusByPID", &by_number).await, 2);
        assert_eq!(stage.sessions()[0].pid, game.pid());
        let by_fd = || (pidfd(game.pid()), pidfd(launcher.pid()));
        assert_eq!(ask(&bus, "QueryStatusByPIDFd", &by_fd()).await, 2);
        assert_eq!(ask(&bus, "UnregisterGameByPID", &by_number).await, 0);
        assert_eq!(ask(&bus, "RegisterGameByPIDFd", &by_fd()).await, 0);
        assert_eq!(stage.sessions()[0].pid, game.pid());
        assert_eq!(ask(&bus, "UnregisterGameByPIDFd", &by_fd()).await, 0);
        assert!(stage.sessions().is_empty());
        let file = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let files: (zbus::zvariant::OwnedFd, zbus::zvariant::OwnedFd) =
            (file().into(), file().into());
        let refused = call::<_, i32>(&bus, [NAME, PATH, NAME, "RegisterGameByPIDFd"], &files).await;
        assert_eq!(refused.unwrap_err().0, "InvalidArgs");
        let nobody = call::<_, i32>(&bus, [NAME, PATH, NAME, "RegisterGame"], &i32::MAX).await;
        assert_eq!(nobody.unwrap_err().0, "UnixProcessIdUnknown");
    });
}

#[test]
fn a_program_runs_unmodified_under_gamemoderun() {
    let stage = Stage::played(Kind::Session);
    let game = Command::new("/usr/games/gamemoderun")
        .args(["sleep", "60"])
        .env("DBUS_SESSION_BUS_ADDRESS", stage.address())
        .stderr(Stdio::piped())
        .spawn();
    let game = Ends(game.expect("gamemode is installed (dist/setup.sh test)"));
    // Before it executes `sleep` the process is `gamemoderun` and `env`, which register too.
    until("it is seen", || {
        let seen = stage.sessions();
        seen.iter()
            .any(|one| one.pid == game.pid() && one.role == "game" && one.threads == 1)
    });
    drop(game);
    until("it ends with it", || stage.sessions().is_empty());
}

/// The program asks itself, by the library that games are linked with.
#[test]
fn libgamemode_is_answered() {
    let stage = Stage::played(Kind::Session);
    let asks = "\
import ctypes, threading, time
library = ctypes.CDLL('libgamemode.so.0')
assert library.real_gamemode_query_status() == 0
assert library.real_gamemode_request_start() == 0
assert library.real_gamemode_query_status() == 2
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
input()
assert library.real_gamemode_request_end() == 0
assert library.real_gamemode_query_status() == 0
input()
";
    let game = Command::new("python3")
        .args(["-c", asks])
        .env("DBUS_SESSION_BUS_ADDRESS", stage.address())
        .stdin(Stdio::piped())
        .spawn();
    let mut game = Ends(game.expect("python3 is installed (dist/setup.sh test)"));
    let threads = || stage.sessions().first().map(|one| one.threads);
    until("its later thread takes part too", || threads() == Some(2));
    use std::io::Write;
    let mut input = game.0.stdin.take().unwrap();
    input.write_all(b"\n").unwrap();
    until("it is not a game any more", || threads().is_none());
    input.write_all(b"\n").unwrap();
    assert!(game.wait().success());
}

#[test]
fn without_the_daemon_games_are_told_so_and_start_all_the_same() {
    let mut stage = Stage::new(Kind::Session, "");
    stage.start_program();
    let game = Command::new("/usr/games/gamemoderun")
        .arg("true")
        .env("DBUS_SESSION_BUS_ADDRESS", stage.address())
        .stderr(Stdio::piped())
        .spawn();
    let mut game = Ends(game.expect("gamemode is installed (dist/setup.sh test)"));
    assert!(game.wait().success());
    let said = game.said();
    assert!(said.contains("Andante is not in charge"), "{said}");
}

#[test]
fn games_are_said_again_to_a_daemon_that_comes_back() {
    let mut stage = Stage::played(Kind::Session);
    let game = sleeper(own_uid());
    wait_for(async {
        let bus = stage.client().await;
        assert_eq!(ask(&bus, "RegisterGame", &game.pid()).await, 0);
    });
    stage.end_daemon();
    stage.start_daemon();
    until("it is said again", || !stage.sessions().is_empty());
    assert_eq!(stage.sessions()[0].pid, game.pid());
}
