// SPDX-License-Identifier: GPL-2.0
//! A machine and a kernel that do as they are told.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use andante_sched::class::ClassPath;
use andante_sched::contracts::{
    CallError, ClassLeaf, Contract, ContractName, HeldBy, MAX_CONTRACTS, MAX_SPLITS, Piece, Promise,
};
use andante_sched::explained::Explained;
use andante_sched::session::{Calls, Declared, Source, ToldBy};
use andante_sched::{LeafPolicy, PolicyError, Seen, Snapshot, StateError};

use crate::books::{Books, Caller, Settings};
use crate::host::{ClassFacts, CpuMask, Host, Thread, thread_now, threads_now};
use crate::kernel::Kernel;
use crate::protocol::{Ask, Holder, List, Refused, Reply, Request, Reserved};
use crate::server::{Daemon, Socket};
use crate::terms::Terms;

pub const MS: u64 = 1_000_000;
pub const USER: Caller = Caller {
    uid: 1000,
    account: 1000,
    privileged: false,
};
pub const ROOT: Caller = Caller {
    uid: 0,
    account: 0,
    privileged: true,
};

/// A contract that was made.
pub struct Made {
    pub name: ContractName,
    pub promise: Promise,
    pub held_by: HeldBy,
    pub pieces: Vec<Piece>,
    pub bound: Vec<i32>,
    pub around: Option<ContractName>,
}

/// A kernel that keeps what it is told.
#[derive(Default)]
pub struct FakeKernel {
    pub made: Vec<Made>,
    /// Of these some were learnt, of such threads.
    pub learnt: BTreeMap<u32, i32>,
    /// Threads that wake in a rhythm, each with the length of a beat [ns].
    pub rhythms: BTreeMap<i32, u32>,
    /// Threads that have exited, whatever the machine says.
    pub dead: Vec<i32>,
    /// Leaves by cgroup.
    pub leaves: BTreeMap<u64, ClassLeaf>,
    /// Cgroups without a class of their own, for which there is room now.
    pub sharing: usize,
    /// By cgroup; and cgroups that have children.
    pub policies: BTreeMap<u64, LeafPolicy>,
    pub inner: Vec<u64>,
    /// The declarations about threads.
    pub declared: BTreeMap<i32, Declared>,
    /// Whether fast calls are heard, and the sinks that it was asked to look at.
    pub hears_calls: bool,
    pub looked_at: Vec<(u32, u64)>,
    /// What was subscribed to sockets, and was not any more.
    pub subscribed: Vec<Option<Source>>,
    pub hears_sources: bool,
    /// How sinks are told of their events, and at whose word.
    pub told: BTreeMap<u32, (ToldBy, u32)>,
    uses: u32,
}

/// A daemon before a machine and a kernel that do as they are told, in a thread of its own.
pub struct Served {
    stop: mpsc::Sender<()>,
    thread: thread::JoinHandle<FakeKernel>,
}

impl Served {
    /// Listens at this path from now on.
    pub fn at(path: &Path, host: FakeHost) -> Self {
        let socket = Socket::bind(path).unwrap();
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut daemon = Daemon::new(socket, Settings::default(), host).unwrap();
            let mut kernel = FakeKernel::default();
            while stopped.try_recv().is_err() {
                daemon.turn(&mut kernel, Duration::from_millis(5));
            }
            // Requests that were sent before the end are seen to.
            for _ in 0..20 {
                daemon.turn(&mut kernel, Duration::from_millis(1));
            }
            kernel
        });
        Self { stop, thread }
    }

    /// The kernel, as the daemon has left it.
    pub fn end(self) -> FakeKernel {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

impl FakeKernel {
    pub fn only(&self) -> &Made {
        assert_eq!(self.made.len(), 1);
        &self.made[0]
    }

    fn find(&mut self, name: ContractName) -> Result<&mut Made, CallError> {
        let found = self.made.iter_mut().find(|made| made.name == name);
        found.ok_or(CallError::Ended)
    }
}

impl Kernel for FakeKernel {
    fn create(
        &mut self,
        promise: &Promise,
        held_by: HeldBy,
        pieces: &[Piece],
    ) -> Result<ContractName, CallError> {
        let class_has_one = matches!(held_by, HeldBy::Class(_))
            && self.made.iter().any(|made| made.held_by == held_by);
        if class_has_one {
            return Err(CallError::ClassHasOne);
        }
        let split = |made: &&Made| !made.pieces.is_empty();
        let splits = self.made.iter().filter(split).count();
        if self.made.len() >= MAX_CONTRACTS || (!pieces.is_empty() && splits >= MAX_SPLITS) {
            return Err(CallError::NoRoom);
        }
        self.uses += 1;
        let name = ContractName::from_raw(self.uses);
        self.made.push(Made {
            name,
            promise: *promise,
            held_by,
            pieces: pieces.to_vec(),
            bound: Vec::new(),
            around: None,
        });
        Ok(name)
    }

    fn move_to(&mut self, name: ContractName, cpu: u32) -> Result<(), CallError> {
        self.find(name)?.promise.cpu = cpu;
        Ok(())
    }

    fn remove(&mut self, name: ContractName) -> Result<(), CallError> {
        self.find(name)?;
        self.made.retain(|made| made.name != name);
        Ok(())
    }

    fn nest(&mut self, name: ContractName, around: Option<ContractName>) -> Result<(), CallError> {
        self.find(name)?.around = around;
        Ok(())
    }

    fn unbind(&mut self, tid: i32) -> Result<(), CallError> {
        for made in &mut self.made {
            made.bound.retain(|bound| *bound != tid);
        }
        self.made
            .retain(|made| !made.bound.is_empty() || !holds_threads(made));
        Ok(())
    }

    fn declare(&mut self, tid: i32, declared: Option<Declared>) -> Result<(), CallError> {
        if self.dead.contains(&tid) {
            return Err(CallError::NoThread);
        }
        if declared.is_some() && self.declared.contains_key(&tid) {
            return Err(CallError::InSession);
        }
        match declared {
            Some(declared) => self.declared.insert(tid, declared),
            None => self.declared.remove(&tid),
        };
        Ok(())
    }

    fn share_page(&mut self, tid: i32, page: *const u8) -> Result<(), CallError> {
        assert!(!page.is_null());
        match self.dead.contains(&tid) {
            true => Err(CallError::NoThread),
            false => Ok(()),
        }
    }

    fn hear_calls(&mut self, on: bool) -> Calls {
        self.hears_calls = on;
        Calls {
            fast: on,
            general: true,
        }
    }

    /// Any descriptor will do.
    fn call_program(&self) -> Option<OwnedFd> {
        Some(std::fs::File::open("/dev/null").ok()?.into())
    }

    fn look(&mut self, sink: u32, deliver_ns: u64) -> Result<(), CallError> {
        self.looked_at.push((sink, deliver_ns));
        Ok(())
    }

    /// Any descriptor will do.
    fn tell(
        &mut self,
        sink: u32,
        by: Option<ToldBy>,
        uid: u32,
    ) -> Result<Option<OwnedFd>, CallError> {
        self.told.remove(&sink);
        let Some(by) = by else {
            return Ok(None);
        };
        self.told.insert(sink, (by, uid));
        let both = std::fs::OpenOptions::new().read(true).write(true).clone();
        let ring = both.open("/dev/zero"); // which can be mapped
        Ok(ring.ok().filter(|_| by == ToldBy::Ring).map(OwnedFd::from))
    }

    fn subscribe(
        &mut self,
        _socket: BorrowedFd<'_>,
        source: Option<Source>,
    ) -> Result<(), CallError> {
        self.subscribed.push(source);
        self.hears_sources = true;
        Ok(())
    }

    fn hear_no_sources(&mut self) {
        self.hears_sources = false;
    }

    fn bind(&mut self, tid: i32, name: ContractName) -> Result<(), CallError> {
        if self.dead.contains(&tid) {
            return Err(CallError::NoThread);
        }
        for made in &mut self.made {
            made.bound.retain(|bound| *bound != tid);
        }
        self.find(name)?.bound.push(tid);
        // One that its last thread has left ends.
        self.made
            .retain(|made| made.name == name || !made.bound.is_empty() || !holds_threads(made));
        Ok(())
    }

    fn sweep(&mut self) -> Result<(), CallError> {
        Ok(())
    }

    fn own_classes(&mut self, most: usize) -> usize {
        let given = self.sharing.min(most);
        self.sharing -= given;
        given
    }

    fn set_policy(&mut self, cgroup_id: u64, policy: LeafPolicy) -> Result<(), PolicyError> {
        if self.inner.contains(&cgroup_id) {
            return Err(PolicyError::Inner);
        }
        self.policies.insert(cgroup_id, policy);
        Ok(())
    }

    fn contracts(&self) -> Vec<Contract> {
        let contract = |made: &Made| Contract {
            name: made.name,
            promise: made.promise,
            learnt: self.learnt.contains_key(&made.name.raw()),
            thread: self.learnt.get(&made.name.raw()).copied(),
            threads: made.bound.len() as u32,
            cpu: made.promise.cpu,
            service_ns: 0,
            extra_ns: 0,
            reclaimed_ns: 0,
            deadlines: 0,
            misses: 0,
            violations: 0,
            exhaustions: 0,
        };
        self.made.iter().map(contract).collect()
    }

    fn seen(&self) -> Result<Seen, StateError> {
        Ok(Seen {
            snapshot: Snapshot {
                now_ns: 1,
                cpus: 2,
                domains: 1,
                classes: Vec::new(),
            },
            sharing: None,
            learnt_room: None,
            counters: BTreeMap::from([("picks".to_owned(), 7)]),
        })
    }

    fn explained(&self, _: i32) -> Result<Option<Vec<Explained>>, StateError> {
        Ok(Some(Vec::new()))
    }

    fn rhythm_ns(&self, tid: i32) -> Option<u32> {
        self.rhythms.get(&tid).copied()
    }

    fn class_leaf(&self, cgroup_id: u64) -> Option<ClassLeaf> {
        self.leaves.get(&cgroup_id).copied()
    }
}

fn holds_threads(made: &Made) -> bool {
    !matches!(made.held_by, HeldBy::Class(_))
}

/// A machine of some CPUs.
pub struct FakeHost {
    pub online: Vec<u32>,
    threads: BTreeMap<i32, Thread>,
    /// Whether threads of the machine that this runs on are there as well.
    pub has_real_threads: bool,
    classes: BTreeMap<String, ClassFacts>,
    members: BTreeMap<i32, String>,
    /// What is kept with the cgroups.
    pub policies: BTreeMap<String, LeafPolicy>,
    /// A thread that the first process to be looked at has from the second look on.
    pub starts_when_looked_at: Cell<Option<i32>>,
    hidden: Cell<Option<i32>>,
    /// The folder of the root class.
    pub root: PathBuf,
}

impl FakeHost {
    /// A process of root's in the root class.
    pub fn process(&mut self, pid: i32, name: &str, more_threads: &[i32]) {
        for tid in [pid].into_iter().chain(more_threads.iter().copied()) {
            let thread = Thread {
                tid,
                pid,
                name: name.to_owned(),
                started: tid as u64 * 7,
                uids: [0; 3],
                kernel_thread: false,
                realtime: false,
                allowed: CpuMask::MAX,
            };
            self.threads.insert(tid, thread);
        }
    }

    /// A thread, to be changed.
    pub fn change(&mut self, tid: i32) -> &mut Thread {
        self.threads.get_mut(&tid).expect("it was made")
    }

    /// Puts a process into a class.
    pub fn place(&mut self, pid: i32, class: &str) {
        self.members.insert(pid, class.to_owned());
    }

    pub fn exit(&mut self, pid: i32) {
        self.threads.retain(|_, thread| thread.pid != pid);
    }

    /// Removes the cgroup; the kernel has not looked yet.
    pub fn remove_class(&mut self, path: &str) {
        self.classes.remove(path).expect("it was made");
    }

    pub fn class_facts(&mut self, path: &str) -> &mut ClassFacts {
        self.classes.get_mut(path).expect("it was made")
    }
}

impl Host for FakeHost {
    fn online_cpus(&self) -> Vec<u32> {
        self.online.clone()
    }

    fn thread(&self, tid: i32) -> Option<Thread> {
        let real = || self.has_real_threads.then(|| thread_now(tid)).flatten();
        self.threads.get(&tid).cloned().or_else(real)
    }

    fn threads(&self, pid: i32, most: usize) -> Vec<i32> {
        let threads = self.threads.values().filter(|thread| thread.pid == pid);
        let mut tids: Vec<_> = threads.map(|thread| thread.tid).collect();
        if self.has_real_threads && tids.is_empty() {
            tids = threads_now(pid, most);
        }
        tids.extend(self.hidden.get());
        if let Some(tid) = self.starts_when_looked_at.take() {
            self.hidden.set(Some(tid));
        }
        tids.truncate(most);
        tids
    }

    fn affinity(&self, tid: i32) -> Option<CpuMask> {
        self.thread(tid).map(|thread| thread.allowed)
    }

    fn class_of(&self, tid: i32) -> Option<ClassPath> {
        let path = self.members.get(&tid).map_or("/", String::as_str);
        ClassPath::parse(path).ok()
    }

    fn class(&self, path: &ClassPath) -> Option<ClassFacts> {
        self.classes.get(&path.to_text()).copied()
    }

    fn folder(&self, path: &ClassPath) -> PathBuf {
        let below = path.to_text();
        self.root.join(below.trim_start_matches('/'))
    }

    fn policy(&self, path: &ClassPath) -> Option<LeafPolicy> {
        self.policies.get(&path.to_text()).copied()
    }

    fn policies(&self) -> Vec<(u64, LeafPolicy)> {
        let id = |path: &String| self.classes.get(path).map(|class| class.cgroup_id);
        let all = self.policies.iter();
        all.filter_map(|(path, policy)| Some((id(path)?, *policy)))
            .collect()
    }
}

/// Books, kernel and machine.
pub struct World {
    pub host: FakeHost,
    pub kernel: FakeKernel,
    pub books: Books,
}

impl World {
    /// A machine of so many CPUs, with the usual settings.
    pub fn new(cpus: u32) -> Self {
        let host = FakeHost {
            online: (0..cpus).collect(),
            threads: BTreeMap::new(),
            has_real_threads: false,
            classes: BTreeMap::new(),
            members: BTreeMap::new(),
            policies: BTreeMap::new(),
            starts_when_looked_at: Cell::new(None),
            hidden: Cell::new(None),
            root: PathBuf::new(),
        };
        let books = Books::new(Settings::default(), &host).unwrap();
        Self {
            host,
            kernel: FakeKernel::default(),
            books,
        }
    }

    /// Makes a class that this user owns, and its leaf.
    pub fn class(&mut self, path: &str, owner_uid: u32) {
        let cgroup_id = 1000 + self.host.classes.len() as u64;
        let facts = ClassFacts {
            cgroup_id,
            owner_uid,
            allowed: CpuMask::MAX,
        };
        self.host.classes.insert(path.to_owned(), facts);
        let leaf = ClassLeaf {
            index: cgroup_id as u32,
            has_children: false,
        };
        self.kernel.leaves.insert(cgroup_id, leaf);
    }

    /// Plain terms [ms].
    pub fn ask_for(holder: Holder, budget_ms: u64, period_ms: u64) -> Ask {
        Ask {
            holder,
            terms: Terms::new(budget_ms * MS, period_ms * MS),
            name: None,
        }
    }

    pub fn answer(&mut self, request: &Request) -> Reply {
        self.answer_to(ROOT, request)
    }

    pub fn answer_to(&mut self, caller: Caller, request: &Request) -> Reply {
        let (kernel, host) = (&mut self.kernel, &self.host);
        self.books.answer(kernel, host, caller, request, 0)
    }

    pub fn try_reserve(&mut self, holder: Holder, budget_ms: u64, period_ms: u64) -> Reply {
        self.answer(&Request::Reserve(Self::ask_for(
            holder, budget_ms, period_ms,
        )))
    }

    /// Reserves for a process; it is admitted.
    pub fn reserve(&mut self, pid: i32, budget_ms: u64, period_ms: u64) -> Reserved {
        match self.try_reserve(Holder::Process(pid), budget_ms, period_ms) {
            Reply::Reserved(reserved) => *reserved,
            reply => panic!("{reply:?}"),
        }
    }

    /// Reserves for a process; it is refused.
    pub fn refused(&mut self, pid: i32, budget_ms: u64, period_ms: u64) -> Refused {
        match self.try_reserve(Holder::Process(pid), budget_ms, period_ms) {
            Reply::Refused(refused) => *refused,
            reply => panic!("{reply:?}"),
        }
    }

    pub fn release(&mut self, which: &str) -> Reply {
        let which = which.to_owned();
        self.answer(&Request::Release { which })
    }

    pub fn list(&mut self) -> List {
        match self.answer(&Request::List {}) {
            Reply::Contracts(list) => *list,
            reply => panic!("{reply:?}"),
        }
    }

    /// A look, as every second.
    pub fn look(&mut self) {
        self.books.refresh(&mut self.kernel, &self.host);
    }
}
