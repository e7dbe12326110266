// SPDX-License-Identifier: GPL-2.0
//! Speaks for programs at the daemon's socket, over one connection, and remembers what stands: when the daemon has
//! gone and comes back, as when the scheduler is loaded anew, everything is said again. So it is when this program is
//! started anew, if its service manager keeps a folder for it (`RuntimeDirectory=`): most programs ask only once.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use andante_session::{Answer, Declare, FaultKind, Request, Role, VERSION, greeted};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, Notify};

use crate::process::{Watched, started};
use crate::refusal::Refusal;
use crate::wire::Wire;

/// How soon what stands is kept, however much of it there is and however often it changes.
const KEPT: Duration = Duration::from_secs(1);
/// Threads of a process of which those that have ended are looked for; and again with twice as many as are left.
/// So a request looks at two on average, whose files take some 10 µs each.
const MANY: usize = 16;
/// How often the daemon is looked for while there is something to say again.
const AGAIN: Duration = Duration::from_secs(1);

/// Speaks for programs.
pub struct Spokesman {
    path: PathBuf,
    verbose: bool,
    inner: Mutex<Inner>,
    /// There may be something to keep now.
    stirred: Notify,
    /// There may be something to save.
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    wire: Option<Wire>,
    stands: Vec<Stands>,
    /// Of what was noted last.
    number: u64,
    /// Where what stands is kept for who comes after this program.
    kept: Option<PathBuf>,
    /// Something has changed since that was written.
    unsaved: bool,
}

/// Something stands for a process as long as it is there.
pub struct Standing {
    /// Of what stands: another process of the same number has another.
    pub number: u64,
    /// The process, by its number.
    pub pid: i32,
    /// The process.
    pub process: Watched,
}

/// What stands for a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stands {
    #[serde(skip)]
    number: u64,
    process: i32,
    /// When it was started, if we may see that.
    since: Option<u64>,
    role: Role,
    user: Option<u32>,
    /// Threads, with when they were started, if we may see that; none: all.
    threads: Option<Vec<(i32, Option<u64>)>>,
    /// With so many of them, those that have ended are looked for.
    many: usize,
}

impl Stands {
    fn is(&self, process: i32, role: Role) -> bool {
        self.process == process && self.role == role
    }

    /// The requests that say it. A thread that has ended is left out, and one that may have: its number may be
    /// another one's.
    fn said_again(&self) -> Vec<Declare> {
        let declare = |thread| Declare {
            process: self.process,
            thread,
            role: self.role,
            user: self.user,
        };
        let Some(threads) = &self.threads else {
            return vec![declare(None)];
        };
        let is_there = |(tid, since): &&(i32, Option<u64>)| {
            since.is_some() && started(self.process, *tid) == *since
        };
        let there = threads.iter().filter(is_there);
        there.map(|(tid, _)| declare(Some(*tid))).collect()
    }
}

impl Spokesman {
    /// One who speaks at this socket, and says nothing yet.
    pub fn new(path: &Path, verbose: bool) -> Self {
        Self {
            path: path.to_owned(),
            verbose,
            inner: Mutex::default(),
            stirred: Notify::new(),
            changed: Notify::new(),
        }
    }

    /// Keeps what stands in this file from now on. What is there already stands again, of processes that have not
    /// ended: each is to be watched.
    pub async fn keep_in(&self, file: PathBuf) -> Vec<Standing> {
        let mut inner = self.inner.lock().await;
        let before = fs::read(&file).unwrap_or_default();
        let before: Vec<Stands> = serde_json::from_slice(&before).unwrap_or_default();
        let mut standing = Vec::new();
        for stands in before {
            // Opened first: if it is still the same afterwards, it is the one that was meant.
            let watched = Watched::open(stands.process);
            let is_there =
                stands.since.is_some() && started(stands.process, stands.process) == stands.since;
            let (true, Ok(process)) = (is_there, watched) else {
                continue;
            };
            inner.number += 1;
            let (number, pid) = (inner.number, stands.process);
            standing.push(Standing {
                number,
                pid,
                process,
            });
            inner.stands.push(Stands { number, ..stands });
        }
        inner.kept = Some(file);
        standing
    }

    /// Says that a thread, or all threads, of a process are waited for. If nothing was said of it before as this, the
    /// process, to be watched: when it has ended, [`Spokesman::forget`] it.
    ///
    /// # Errors
    /// Why nothing is said.
    pub async fn declare(&self, asked: Declare) -> Result<Option<Standing>, Refusal> {
        let mut inner = self.inner.lock().await;
        // Opened first: if it is still there afterwards, it is the one that the daemon has seen.
        let watched = Watched::open(asked.process).ok();
        self.stirred.notify_one();
        match inner
            .ask(&self.path, &Request::Declare(asked.clone()))
            .await?
        {
            Answer::Declared(_) => {}
            // Its program says itself what it does: what was asked for is so.
            Answer::Error(fault) if fault.kind == FaultKind::Taken => return Ok(None),
            other => return Err(refused(other)),
        }
        if self.verbose {
            println!("{}", described(&asked));
        }
        let noted = inner.note(&asked);
        self.changed.notify_one();
        let pid = asked.process;
        let standing = |(number, process)| Standing {
            number,
            pid,
            process,
        };
        Ok(noted.zip(watched).map(standing))
    }

    /// What was said of the process as this does not stand any more; whether it did.
    ///
    /// # Errors
    /// Andante is not there; nothing stands then either.
    pub async fn retract(&self, process: i32, role: Role) -> Result<bool, Refusal> {
        let mut inner = self.inner.lock().await;
        if !inner.forget(|one| one.is(process, role)) {
            return Ok(false);
        }
        self.changed.notify_one();
        let answer = inner
            .ask(&self.path, &Request::Retract { process, role })
            .await?;
        match answer {
            Answer::Done {} => Ok(true),
            // It has just ended.
            Answer::Error(fault) if fault.kind == FaultKind::NoSession => Ok(true),
            other => Err(refused(other)),
        }
    }

    /// The process has ended, as the daemon finds out itself. Whether this stood until now.
    pub async fn forget(&self, number: u64) -> bool {
        self.changed.notify_one();
        self.inner.lock().await.forget(|one| one.number == number)
    }

    /// Nothing stands any more.
    ///
    /// # Errors
    /// Andante is not there; nothing stands then either.
    pub async fn retract_all(&self) -> Result<(), Refusal> {
        let mut inner = self.inner.lock().await;
        self.changed.notify_one();
        let stood = std::mem::take(&mut inner.stands);
        inner.unsaved = true;
        for Stands { process, role, .. } in stood {
            inner
                .ask(&self.path, &Request::Retract { process, role })
                .await?;
        }
        Ok(())
    }

    /// Processes of which something stands as this.
    pub async fn of_role(&self, role: Role) -> Vec<i32> {
        let inner = self.inner.lock().await;
        let of_role = inner.stands.iter().filter(|one| one.role == role);
        of_role.map(|one| one.process).collect()
    }

    /// Saves what stands when it has changed. Never ends.
    pub async fn remember(&self) {
        loop {
            self.changed.notified().await;
            tokio::time::sleep(KEPT).await;
            self.save().await;
        }
    }

    /// Saves what stands now.
    pub async fn save(&self) {
        self.inner.lock().await.save();
    }

    /// Says everything again when the daemon has gone and come back. Never ends.
    pub async fn keep(&self) {
        loop {
            let (wire, idle) = {
                let inner = self.inner.lock().await;
                (inner.wire.clone(), inner.stands.is_empty())
            };
            match wire {
                Some(wire) => tokio::select! {
                    () = wire.stirs() => self.inner.lock().await.look(&wire),
                    // There may be another connection by now.
                    () = self.stirred.notified() => {}
                },
                None if idle => self.stirred.notified().await,
                None => {
                    let connected = self.inner.lock().await.connected(&self.path).await;
                    if connected.is_err() {
                        tokio::time::sleep(AGAIN).await;
                    }
                }
            }
        }
    }
}

impl Inner {
    /// Lets go of a connection that is over, if it is still this one.
    fn look(&mut self, wire: &Wire) {
        self.wire.take_if(|own| own.is(wire) && own.is_over());
    }

    /// The connection; a new one says all that stands.
    async fn connected(&mut self, path: &Path) -> Result<Wire, Refusal> {
        if let Some(wire) = &self.wire {
            return Ok(wire.clone());
        }
        let gone = |error| gone(path, &error);
        let wire = Wire::connect(path).await.map_err(gone)?;
        let hello = Request::Hello { version: VERSION };
        greeted(wire.ask(&hello).await.map_err(gone)?).map_err(|fault| match fault.kind {
            // As if nobody were there: programs go on without.
            FaultKind::Version => Refusal::Gone(fault.message),
            _ => Refusal::Refused(fault),
        })?;
        for stands in &self.stands {
            for asked in stands.said_again() {
                // What is refused now has ended, or is more than its user may have.
                wire.ask(&Request::Declare(asked)).await.map_err(gone)?;
            }
        }
        self.wire = Some(wire.clone());
        Ok(wire)
    }

    /// Asks the daemon; a second time if it has gone since it was last asked, and is back.
    async fn ask(&mut self, path: &Path, request: &Request) -> Result<Answer, Refusal> {
        let was_there = self.wire.is_some();
        let wire = self.connected(path).await?;
        let error = match wire.ask(request).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        self.wire = None;
        if !was_there || error.kind() == std::io::ErrorKind::TimedOut {
            return Err(gone(path, &error));
        }
        let wire = self.connected(path).await?;
        let answer = wire.ask(request).await;
        answer.map_err(|error| {
            self.wire = None;
            gone(path, &error)
        })
    }

    /// Remembers it; its number, if nothing stood of the process as this.
    fn note(&mut self, asked: &Declare) -> Option<u64> {
        let Declare { process, role, .. } = *asked;
        let since = started(process, process);
        let is_it = |one: &Stands| one.is(process, role);
        // Of another process, which has just ended.
        self.forget(|one| is_it(one) && one.since != since);
        let known = self.stands.iter().position(is_it);
        let at = known.unwrap_or_else(|| {
            self.number += 1;
            self.stands.push(Stands {
                number: self.number,
                process,
                since,
                role,
                user: asked.user,
                threads: Some(Vec::new()),
                many: MANY,
            });
            self.stands.len() - 1
        });
        let stands = &mut self.stands[at];
        let seen = |tid| (tid, started(process, tid));
        match (asked.thread, &mut stands.threads) {
            (None, threads) => *threads = None,
            (Some(tid), Some(threads)) => {
                threads.retain(|one| one.0 != tid);
                if threads.len() >= stands.many {
                    threads.retain(|one| one.1.is_none() || seen(one.0) == *one);
                    stands.many = MANY.max(2 * threads.len());
                }
                threads.push(seen(tid));
            }
            (Some(_), None) => {}
        }
        let number = stands.number;
        self.unsaved = true;
        known.is_none().then_some(number)
    }

    fn forget(&mut self, meant: impl Fn(&Stands) -> bool) -> bool {
        let before = self.stands.len();
        self.stands.retain(|one| !meant(one));
        let stood = self.stands.len() < before;
        if stood {
            self.unsaved = true;
        }
        stood
    }

    /// Whoever comes after this program finds what stands now, or what stood before.
    fn save(&mut self) {
        let Some(file) = self.kept.as_ref().filter(|_| self.unsaved) else {
            return;
        };
        let new = file.with_extension("new");
        let text = serde_json::to_vec(&self.stands).unwrap_or_default();
        let saved = fs::write(&new, text).and_then(|()| fs::rename(&new, file));
        if let Err(error) = saved {
            eprintln!(
                "what was asked for is not remembered if this program is started anew, {} cannot be written: {error}",
                file.display()
            );
            self.kept = None;
        }
        self.unsaved = false;
    }
}

fn gone(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::Gone(format!(
        "Andante is not in charge, nobody answers at {} ({error}): `sudo systemctl start andante`, then ask again",
        path.display()
    ))
}

fn refused(answer: Answer) -> Refusal {
    match answer {
        Answer::Error(fault) => Refusal::Refused(fault),
        other => Refusal::Gone(format!("Andante says what nobody understands: {other:?}")),
    }
}

fn described(asked: &Declare) -> String {
    let Declare { process, role, .. } = asked;
    let threads = match asked.thread {
        Some(tid) => format!("thread {tid} of process {process}"),
        None => format!("process {process}"),
    };
    let user = asked
        .user
        .map_or(String::new(), |user| format!(", user {user}"));
    format!("{threads}{user}: {}", role.name())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn asked(process: i32, thread: Option<i32>) -> Declare {
        Declare {
            process,
            thread,
            role: Role::Audio,
            user: None,
        }
    }

    #[test]
    fn what_stands_is_said_again_but_not_of_those_that_have_ended() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut inner = Inner::default();
        assert_eq!(inner.note(&asked(own, Some(own))), Some(1));
        assert_eq!(inner.note(&asked(own, Some(own))), None);
        // No thread of this process.
        assert_eq!(inner.note(&asked(own, Some(1))), None);
        assert_eq!(inner.stands[0].said_again(), [asked(own, Some(own))]);
        // Another thread under the number.
        if let Some(threads) = &mut inner.stands[0].threads {
            threads[0].1 = Some(1);
        }
        assert_eq!(inner.stands[0].said_again(), []);
        assert_eq!(inner.note(&asked(own, None)), None);
        assert_eq!(inner.stands[0].said_again(), [asked(own, None)]);
        // Another process under the number.
        inner.stands[0].since = Some(1);
        assert_eq!(inner.note(&asked(own, None)), Some(2));
        assert_eq!(inner.stands.len(), 1);
        assert!(!inner.forget(|one| one.number == 1) && inner.forget(|one| one.number == 2));
    }

    #[test]
    fn threads_that_have_ended_are_forgotten_with_time() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut inner = Inner::default();
        for tid in 1..1000 {
            inner.note(&asked(own, Some(tid)));
            // As if it had been there when it asked.
            for one in inner.stands[0].threads.iter_mut().flatten() {
                one.1 = Some(1);
            }
        }
        let kept = inner.stands[0].threads.as_ref().unwrap().len();
        assert!(kept <= MANY, "{kept}");
    }

    #[tokio::test]
    async fn without_a_daemon_there_is_a_sentence_with_its_mend() {
        let spokesman = Spokesman::new(Path::new("/no/such/socket"), false);
        let own = i32::try_from(std::process::id()).unwrap();
        let Err(Refusal::Gone(message)) = spokesman.declare(asked(own, None)).await else {
            panic!("nobody is there");
        };
        assert!(message.contains("systemctl start andante"), "{message}");
        assert!(spokesman.of_role(Role::Audio).await.is_empty());
        assert_eq!(spokesman.retract(own, Role::Audio).await, Ok(false));
    }

    /// It would take what is said for something else.
    #[tokio::test]
    async fn a_daemon_of_another_version_is_asked_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let other = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(&stream).lines();
            lines.next().unwrap().unwrap();
            (&stream)
                .write_all(b"{\"hello\":{\"version\":7}}\n")
                .unwrap();
            lines.next().is_none()
        });
        let spokesman = Spokesman::new(&path, false);
        let own = i32::try_from(std::process::id()).unwrap();
        let Err(Refusal::Gone(message)) = spokesman.declare(asked(own, None)).await else {
            panic!("it speaks version 7");
        };
        assert!(
            message.contains("version 7: install the program"),
            "{message}"
        );
        drop(spokesman);
        assert!(other.join().unwrap(), "it was asked nevertheless");
    }
}
