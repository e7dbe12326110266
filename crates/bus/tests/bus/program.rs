// SPDX-License-Identifier: GPL-2.0
//! How the program begins and ends.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use zbus::fdo::RequestNameFlags;

use super::stage::*;

const REALTIME: &str = "org.freedesktop.RealtimeKit1";

/// It ends at once, with this status and such a sentence.
fn ends(mut command: Command, status: i32, says: &str) {
    let mut program = Ends(command.stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(program.wait().code(), Some(status));
    let said = program.said();
    assert!(said.contains(says), "{said}");
    assert!(status == 2 || said.lines().count() == 1, "{said}");
}

#[test]
fn it_is_ready_when_it_has_the_name_and_ends_when_asked_to() {
    for (kind, name) in [
        (Kind::System, REALTIME),
        (Kind::Session, "com.feralinteractive.GameMode"),
    ] {
        let mut stage = Stage::new(kind, "");
        let said = stage.start_program();
        assert!(said.contains("READY=1"), "{said}");
        assert!(
            said.contains(&format!("STATUS=Answers as {name}.")),
            "{said}"
        );
        let status = stage.program.take().unwrap().terminate();
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn where_there_is_no_bus_it_says_so() {
    let stage = Stage::new(Kind::Session, "");
    let mut command = stage.command();
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/no/such/bus");
    ends(command, 4, "there is no session bus");
    let stage = Stage::new(Kind::System, "");
    let mut command = stage.command();
    command.env("DBUS_SYSTEM_BUS_ADDRESS", "nonsense");
    ends(command, 4, "there is no system bus");
}

#[test]
fn a_wrong_command_line_is_refused() {
    for arguments in [&[][..], &["--system", "--session"], &["--fly"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_andante-bus"));
        command.args(arguments);
        ends(command, 2, "Usage");
    }
}

#[test]
fn it_ends_with_the_bus() {
    let mut stage = Stage::new(Kind::System, "");
    stage.start_program();
    stage.end_bus();
    let mut program = stage.program.take().unwrap();
    assert_eq!(program.wait().code(), Some(1));
    assert!(program.said().contains("the system bus has ended"));
}

#[test]
fn a_bus_that_does_not_let_it_have_the_name_is_told_of() {
    let policy = format!("<deny own=\"{REALTIME}\"/>");
    let stage = Stage::new(Kind::System, &policy);
    ends(stage.command(), 3, "does not let this user have the name");
}

#[test]
fn a_name_that_another_has_is_waited_for() {
    let mut stage = Stage::new(Kind::System, "");
    stage.start_daemon();
    wait_for(async {
        let rtkit = stage.client().await;
        // It would let others take the name, and is not taken it.
        let flags = RequestNameFlags::AllowReplacement.into();
        rtkit
            .request_name_with_flags(REALTIME, flags)
            .await
            .unwrap();
        let said = stage.start_program();
        assert!(said.contains("READY=1"), "{said}");
        let expected = format!("another program's (process {})", std::process::id());
        assert!(said.contains(&expected), "{said}");
        assert!(!rtkit.release_name("no.such.Name").await.unwrap_or(false));
        assert!(
            rtkit.release_name(REALTIME).await.unwrap(),
            "it was its own until now"
        );
        let client = stage.client().await;
        let method = [
            REALTIME,
            "/org/freedesktop/RealtimeKit1",
            REALTIME,
            "MakeThreadRealtime",
        ];
        let outcome = call::<_, ()>(&client, method, &(0_u64, 10_u32)).await;
        outcome.unwrap();
    });
    assert_eq!(stage.sessions().len(), 1);
}

/// What the package installs for the system bus.
fn policy_of_the_package() -> String {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../dist/bus/system.d/andante-bus.conf"
    );
    // As the system bus has it, with what is asked for there by everybody.
    format!(
        "<policy context=\"default\"><allow user=\"*\"/><deny own=\"*\"/><deny send_type=\"method_call\"/>\
         <allow send_destination=\"org.freedesktop.DBus\"/><allow send_type=\"signal\"/>\
         <allow send_requested_reply=\"true\"/><allow receive_type=\"method_call\"/>\
         <allow receive_type=\"method_return\"/><allow receive_type=\"error\"/><allow receive_type=\"signal\"/>\
         </policy><include>{file}</include>"
    )
}

#[test]
fn the_policy_lets_root_answer_and_everybody_ask() {
    if !is_root() {
        return;
    }
    let mut stage = Stage::configured(Kind::System, |_| policy_of_the_package());
    // Where the binary is, other users may not come: so it is copied to where they may.
    let copied = tempfile::tempdir().unwrap();
    let program = copied.path().join("andante-bus");
    std::fs::copy(env!("CARGO_BIN_EXE_andante-bus"), &program).unwrap();
    let readable = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(copied.path(), readable).unwrap();
    let mut command = stage.command_of(&program);
    command.uid(NOBODY).gid(NOBODY);
    ends(command, 3, "does not let this user have the name");
    stage.start_daemon();
    stage.start_program();
    let own = sleeper(NOBODY);
    as_user(NOBODY, || {
        wait_for(async {
            let bus = stage.client().await;
            let path = "/org/freedesktop/RealtimeKit1";
            let method = [REALTIME, path, REALTIME, "MakeThreadRealtimeWithPID"];
            let body = (own.pid() as u64, 0_u64, 10_u32);
            call::<_, ()>(&bus, method, &body).await.unwrap();
        });
    });
    assert_eq!(stage.sessions().len(), 1);
}

#[test]
fn the_first_game_that_asks_starts_it() {
    let mut stage = Stage::configured(Kind::Session, |folder| {
        let name = "com.feralinteractive.GameMode.service";
        let file = format!(
            "{}/../../dist/bus/services/{name}",
            env!("CARGO_MANIFEST_DIR")
        );
        let installed = std::fs::read_to_string(file).unwrap();
        let built = installed.replace(
            "/usr/libexec/andante/andante-bus",
            env!("CARGO_BIN_EXE_andante-bus"),
        );
        assert_ne!(installed, built);
        std::fs::write(folder.join(name), built).unwrap();
        format!(
            "<servicedir>{}</servicedir><policy context=\"default\"><allow user=\"*\"/><allow own=\"*\"/>\
             <allow send_destination=\"*\"/><allow receive_sender=\"*\"/></policy>",
            folder.display()
        )
    });
    stage.start_daemon();
    let game = sleeper(own_uid());
    wait_for(async {
        let bus = stage.client().await;
        let (name, path) = (
            "com.feralinteractive.GameMode",
            "/com/feralinteractive/GameMode",
        );
        let done: i32 = call(&bus, [name, path, name, "RegisterGame"], &game.pid())
            .await
            .unwrap();
        assert_eq!(done, 0);
    });
    assert_eq!(stage.sessions()[0].pid, game.pid());
}

#[test]
fn what_stood_stands_again_if_it_is_started_anew() {
    let mut stage = Stage::played(Kind::Session);
    let (game, other) = (sleeper(own_uid()), sleeper(own_uid()));
    let name = "com.feralinteractive.GameMode";
    let method = [name, "/com/feralinteractive/GameMode", name, "RegisterGame"];
    wait_for(async {
        let bus = stage.client().await;
        for pid in [game.pid(), other.pid()] {
            assert_eq!(call::<_, i32>(&bus, method, &pid).await.unwrap(), 0);
        }
    });
    let status = stage.program.take().unwrap().terminate();
    assert_eq!(status.code(), Some(0));
    until("nothing stands", || stage.sessions().is_empty());
    drop(other);
    stage.start_program();
    until("it stands again", || !stage.sessions().is_empty());
    let seen = stage.sessions();
    assert_eq!(
        seen.iter().map(|one| one.pid).collect::<Vec<_>>(),
        [game.pid()]
    );
    drop(game);
    until("it ends with the game", || stage.sessions().is_empty());
    // One that is killed has kept what stood a second before.
    let (game, kept) = (sleeper(own_uid()), || stage.left("standing.json"));
    wait_for(async {
        let bus = stage.client().await;
        assert_eq!(call::<_, i32>(&bus, method, &game.pid()).await.unwrap(), 0);
    });
    let named = format!("\"process\":{},", game.pid());
    until("it is kept", || kept().contains(&named));
    stage.program = None;
    stage.start_program();
    until("it stands again", || !stage.sessions().is_empty());
    // A file that was not written whole is none.
    stage.program.take().unwrap().terminate();
    stage.leave("standing.json", "[{\"process\":");
    assert!(stage.start_program().contains("READY=1"));
}
