// SPDX-License-Identifier: GPL-2.0
//! A program in Rust that says all that there is to say, on the real daemon and without one.

mod common;

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use andante::{Cycle, Error, Promised, Role, SERVICES, Session, Tell, Terms, Wish, in_ns};
use andante_daemon::{Client, Reply, Request};
use andante_session::FaultKind;

use common::{Served, until};

const PERIOD_NS: u64 = 16_666_667;

fn wish() -> Wish {
    Wish::new(Role::Game, Cycle::every_ns(PERIOD_NS).taking_ns(4_000_000))
}

fn terms(budget_ns: u64) -> Terms {
    Terms {
        budget_ns,
        period_ns: PERIOD_NS,
        deadline_ns: None,
        losses: 0,
        window: 0,
    }
}

fn cycles(thread: &andante::Thread) {
    assert!(matches!(thread.end(), Err(Error::NoCycle)));
    assert!(matches!(thread.begin(1), Err(Error::PastDeadline)));
    let cycle = thread.begin(in_ns(1_000_000_000)).unwrap();
    // The second takes the place of the first, and is ended by its guard.
    assert!(matches!(
        thread.begin_until(in_ns(2_000_000_000)),
        Err(Error::NotEnded)
    ));
    drop(cycle);
    assert!(matches!(thread.end(), Err(Error::NoCycle)));
    thread.report(1_000_000).unwrap();
    thread.surge().unwrap();
}

fn late(thread: &andante::Thread) {
    let cycle = thread.begin(in_ns(1_000_000)).unwrap();
    thread::sleep(Duration::from_millis(2));
    drop(cycle);
    thread.report(7_000_000).unwrap();
}

fn events(thread: &andante::Thread) {
    let sink = thread.sink();
    thread::scope(|scope| {
        scope.spawn(|| sink.raise(2, 0).unwrap());
        scope.spawn(|| sink.raise_now(3, 0).unwrap());
    });
    assert!(thread.is_pending(2).unwrap() && thread.is_pending(3).unwrap());
    assert!(!thread.is_pending(1).unwrap());
    assert!(matches!(sink.raise(SERVICES, 0), Err(Error::NoService(4))));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    thread.subscribe(socket.as_fd(), 1, 30_000).unwrap();
    thread.unsubscribe(socket.as_fd()).unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    let refused = thread.subscribe(file.as_fd(), 1, 0).unwrap_err();
    assert_eq!(refused.kind(), Some(FaultKind::BadTerms));
    assert!(thread.tell(Tell::Descriptor).unwrap().is_some());
    assert!(thread.tell(Tell::Signal(10)).unwrap().is_none());
    thread.tell(Tell::Nothing).unwrap();
}

fn promises(session: &Session) {
    let Promised::Offer(offer) = session.promise(terms(16_000_000)).unwrap() else {
        panic!("four fifths of a CPU are for contracts");
    };
    let nearest = offer.terms.unwrap();
    let granted = session.promise(nearest).unwrap();
    assert!(matches!(granted, Promised::Granted(granted) if granted.terms == nearest));
    let nonsense = session.promise(terms(2 * PERIOD_NS)).unwrap_err();
    assert_eq!(nonsense.kind(), Some(FaultKind::BadTerms));
    assert!(session.next_notice().unwrap().is_none());
    session.withdraw().unwrap();
    session.foreground(true).unwrap();
}

/// One test, since all read the environment.
#[test]
fn a_program_in_rust_says_all_that_there_is_to_say() {
    let served = Served::new();
    // SAFETY: nobody else in this process reads or writes the environment: there is no other test.
    unsafe { std::env::set_var("ANDANTE_SOCKET", &served.socket) };
    let session = Session::open(wish()).unwrap();
    let nobody = session.promise(terms(1_000_000)).unwrap_err();
    assert_eq!(nobody.kind(), Some(FaultKind::NoThread));
    let joined = session.join(None).unwrap();
    let again = session.join(None).unwrap_err();
    assert_eq!(again.kind(), Some(FaultKind::Taken));
    cycles(&joined);
    events(&joined);
    promises(&session);
    thread::scope(|scope| {
        let own = scope.spawn(|| {
            session
                .join(Some(Cycle::default()))
                .map(|thread| cycles(&thread))
        });
        own.join().unwrap().unwrap();
    });
    let unnamed = Wish {
        name: Some("two words".into()),
        ..wish()
    };
    let unnamed = Session::open(unnamed).unwrap_err();
    assert_eq!(unnamed.kind(), Some(FaultKind::BadTerms));
    let newer = Wish {
        version: 2,
        ..wish()
    };
    let newer = Session::open(newer).unwrap_err();
    assert_eq!(newer.kind(), Some(FaultKind::Version));
    assert!(newer.to_string().contains("install"), "{newer}");
    late(&joined);
    let mut client = Client::connect(&served.socket).unwrap();
    let Ok(Reply::Contracts(list)) = client.request(&Request::List {}) else {
        panic!("the daemon does not answer");
    };
    let seen = list.sessions[0].cycles.unwrap();
    // Of the cycles of the thread that joined first; a report is what the program says.
    assert_eq!((seen.begun, seen.late, seen.worked_ns), (4, 2, 7_000_000));
    // The session lasts as long as its thread does.
    drop(session);
    cycles(&joined);
    let socket = served.socket.clone();
    let kernel = served.end();
    assert_eq!(kernel.declared.len(), 1);
    until("it ends", || UnixStream::connect(&socket).is_err());
    cycles(&joined); // without effect
    assert!(matches!(joined.tell(Tell::Descriptor), Err(Error::Lost)));
    assert!(matches!(Session::open(wish()), Err(Error::NoDaemon(at)) if at == socket));
}
