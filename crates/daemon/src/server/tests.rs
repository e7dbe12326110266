// SPDX-License-Identifier: GPL-2.0
//! Clients over a socket: what each gets while others do their worst.

mod floods;
pub mod schema;
mod sessions;
mod spoken;

use std::io::{BufRead, Write};
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::books::fakes::{FakeKernel, World};
use crate::client::{Client, ClientError};
use crate::protocol::Holder;

/// Serves until the client is done.
fn with_daemon<T: Send + 'static>(
    client: impl FnOnce(&std::path::Path) -> T + Send + 'static,
) -> T {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut host = World::new(2).host;
    host.process(100, "mpv", &[]);
    let uid = nix::unistd::geteuid().as_raw();
    host.change(100).uids = [uid; 3];
    let socket = Socket::bind(&path).unwrap();
    let mut daemon = Daemon::new(socket, Settings::default(), host).unwrap();
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || done.send(client(&path)));
    let mut kernel = FakeKernel::default();
    loop {
        daemon.turn(&mut kernel, Duration::from_millis(20));
        match is_done.try_recv() {
            Ok(outcome) => return outcome,
            Err(mpsc::TryRecvError::Empty) => {}
            Err(gone) => panic!("the client failed: {gone}"),
        }
    }
}

#[test]
fn clients_are_answered_whatever_others_do() {
    let (reserved, again, list) = with_daemon(|path| {
        // These say nothing, something else, and half a request.
        let _silent = UnixStream::connect(path).unwrap();
        let mut strange = UnixStream::connect(path).unwrap();
        strange.write_all(b"{\"op\":\"fly\"}\n{\"op\"").unwrap();
        let mut client = Client::connect(path).unwrap();
        let ask = Request::Reserve(World::ask_for(Holder::Process(100), 1, 20));
        let reserved = client.request(&ask);
        let again = client.request(&ask);
        (reserved, again, client.request(&Request::List {}))
    });
    assert!(matches!(reserved, Ok(Reply::Reserved(_))), "{reserved:?}");
    let Err(ClientError::Fault(fault)) = again else {
        panic!("{again:?}");
    };
    assert_eq!(fault.kind, FaultKind::Taken);
    assert!(matches!(list, Ok(Reply::Contracts(list)) if list.contracts.len() == 1));
}

#[test]
fn memory_is_answered_beside_contracts() {
    let folder = tempfile::tempdir().unwrap();
    let cgroups = folder.path().join("cgroup");
    let film = cgroups.join("film");
    std::fs::create_dir_all(&film).unwrap();
    for (file, text) in [
        (cgroups.join("cgroup.controllers"), "cpu memory"),
        (cgroups.join("cgroup.subtree_control"), "cpu memory"),
        (film.join("memory.min"), "0"),
        (film.join("memory.max"), "max"),
    ] {
        std::fs::write(file, text).unwrap();
    }
    let uid = nix::unistd::geteuid().as_raw();
    let mut world = World::new(1);
    world.class("/film", uid);
    world.host.root = cgroups.clone();
    world.host.process(100, "mpv", &[]);
    world.host.change(100).uids = [uid; 3];
    let memory = Reservations::new(
        crate::memory::MemorySettings {
            user_quota_per_mille: 500,
            users_quota_per_mille: 500,
            ..Default::default()
        },
        crate::memory::Place {
            root: cgroups,
            kept: folder.path().join("memory.json"),
            right: folder.path().join("memory.lock"),
            keeper: ["sh", "-c", "cat >/dev/null"].map(Into::into).to_vec(),
            machine: andante_memory::machine::Machine::now,
            sysctl: andante_memory::sysctl::Sysctl::at(folder.path()),
        },
    );
    let path = folder.path().join("socket");
    let socket = Socket::bind(&path).unwrap();
    let daemon = Daemon::new(socket, Settings::default(), world.host).unwrap();
    let mut daemon = daemon.with_memory(memory);
    let client = thread::spawn(move || {
        let mut stream = std::io::BufReader::new(UnixStream::connect(&path).unwrap());
        let mut said: Vec<serde_json::Value> = Vec::new();
        for line in [
            r#"{"op":"ask_memory","holder":{"class":"/film"},"bytes":9007199254740992}"#,
            r#"{"op":"reserve_memory","holder":{"class":"/film"},"bytes":4194304,"lend_per_mille":800}"#,
            r#"{"op":"reserve_memory","holder":{"class":"/film"},"bytes":4194304,"lend":800}"#,
            r#"{"op":"wake","pid":100}"#,
            r#"{"op":"list"}"#,
            r#"{"op":"release","which":"/film"}"#,
            r#"{"op":"release","which":"/film"}"#,
        ] {
            writeln!(stream.get_mut(), "{line}").unwrap();
            let mut answer = String::new();
            stream.read_line(&mut answer).unwrap();
            said.push(serde_json::from_str(&answer).unwrap());
        }
        said
    });
    let mut kernel = FakeKernel::default();
    while !client.is_finished() {
        daemon.turn(&mut kernel, Duration::from_millis(20));
    }
    let said = client.join().unwrap();
    assert!(said[0]["memory_refused"]["most"].is_u64(), "{}", said[0]);
    assert_eq!(said[1]["memory_reserved"]["class"], "/film");
    assert_eq!(said[2]["error"]["kind"], "bad_request");
    assert_eq!(said[3]["woken"]["pid"], 100);
    let listed = &said[4]["contracts"]["memory"]["reservations"][0];
    assert_eq!(listed["lend_per_mille"], 800);
    assert_eq!(said[5]["released"]["name"], "/film");
    assert_eq!(said[6]["error"]["kind"], "no_contract");
}

#[test]
fn nobody_to_ask_is_told_with_its_mend() {
    let error = Client::connect(std::path::Path::new("/no/such/socket")).unwrap_err();
    assert!(error.to_string().contains("sudo andante run"), "{error}");
}
