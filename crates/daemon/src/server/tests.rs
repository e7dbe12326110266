// SPDX-License-Identifier: GPL-2.0
//! Clients over a socket: what each gets while others do their worst.

mod floods;
pub mod schema;
mod sessions;
mod spoken;

use std::io::Write;
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
fn nobody_to_ask_is_told_with_its_mend() {
    let error = Client::connect(std::path::Path::new("/no/such/socket")).unwrap_err();
    assert!(error.to_string().contains("sudo andante run"), "{error}");
}
