//! How a class orders its own tasks: `core/policy.h`.

/// Which policy: `enum an_policy_kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum PolicyKind {
    /// Start-time fair queueing over nice weights.
    Sfq = 0,
    /// In order of arrival, until it blocks.
    Fifo = 1,
    /// The same with a quantum.
    RoundRobin = 2,
    /// A model of the stock fair scheduler.
    Fair = 3,
    /// System V Release 4's time-sharing and real-time classes, as Solaris 2.2 ran them.
    Svr4 = 4,
    /// The same with the time-sharing class of Solaris 2.3 and after.
    Svr4New = 5,
    /// Linux 2.2's epochs.
    Linux22 = 6,
}

/// What a task brings to a policy, beside what it does: `core/policy.h`, `struct an_member`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// Weight under the fair policies, from the nice value.
    pub weight: u32,
    /// Nice value, -20 to 19.
    pub nice: i32,
    /// SVR4: what the user asked for, -20 to 20, or the real-time level, 0 to 59. Linux 2.2: the
    /// real-time priority, 1 to 99.
    pub priority: i32,
    /// SVR4: in the real-time class. Linux 2.2: `SCHED_FIFO`.
    pub real_time: bool,
    /// Linux 2.2, real time: `SCHED_RR` instead.
    pub round_robin: bool,
}

impl PolicyKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Sfq,
        Self::Fifo,
        Self::RoundRobin,
        Self::Fair,
        Self::Svr4,
        Self::Svr4New,
        Self::Linux22,
    ];

    /// As scenarios and the command line call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sfq => "sfq",
            Self::Fifo => "fifo",
            Self::RoundRobin => "rr",
            Self::Fair => "fair",
            Self::Svr4 => "svr4",
            Self::Svr4New => "svr4-new",
            Self::Linux22 => "linux-2.2",
        }
    }

    /// The policy of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Why a task that goes on wanting to run leaves service: `enum an_requeue`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Requeue {
    /// Its quantum is over.
    UsedUp = 0,
    /// Another one came before it was.
    Preempted = 1,
}

/// What a policy keeps for all tasks of a class: `struct an_policy` and room to spare.
#[repr(C, align(8))]
#[derive(Debug, Clone)]
pub struct Policy([u64; 16]);

/// What a policy keeps for one task: `struct an_member`, in two cache lines.
#[repr(C, align(64))]
#[derive(Debug, Clone)]
pub struct Member([u64; 16]);

unsafe extern "C" {
    fn an_sys_policy_init(policy: *mut Policy, kind: u32, quantum_ns: u64);
    fn an_sys_member_init(p: *const Policy, member: *mut Member, parameters: *const Parameters);
    fn an_sys_policy_fork(policy: *const Policy, parent: *mut Member, child: *mut Member);
    fn an_sys_member_level(policy: *const Policy, member: *const Member) -> u32;
    fn an_sys_policy_wake(policy: *mut Policy, member: *mut Member) -> u64;
    fn an_sys_policy_serve(policy: *mut Policy, member: *const Member);
    fn an_sys_policy_used(policy: *const Policy, member: *mut Member, ran_ns: u64);
    fn an_sys_policy_quantum_ns(policy: *const Policy, member: *const Member) -> u64;
    fn an_sys_policy_requeue(policy: *mut Policy, member: *mut Member, why: u32) -> u64;
    fn an_sys_policy_block(policy: *const Policy, member: *mut Member);
    fn an_sys_policy_preempts(
        p: *const Policy,
        woken: *const Member,
        serving: *const Member,
    ) -> bool;
    fn an_sys_policy_tick_ns(policy: *const Policy) -> u64;
    fn an_sys_policy_tick(policy: *mut Policy, member: *mut Member) -> bool;
    fn an_sys_policy_age_ns(policy: *const Policy) -> u64;
    fn an_sys_policy_age(policy: *mut Policy, member: *mut Member, queued: bool) -> bool;
    fn an_sys_member_key(member: *const Member) -> u64;
}

impl Policy {
    /// A policy for a class without tasks. `quantum_ns` [ns] is what round robin and start-time
    /// fair queueing give in one go.
    pub fn new(kind: PolicyKind, quantum_ns: u64) -> Self {
        let mut policy = Self([0; 16]);
        // SAFETY: the storage is as large and as aligned as the core asserts.
        unsafe { an_sys_policy_init(&mut policy, kind as u32, quantum_ns) };
        policy
    }

    /// A task enters the class, asleep.
    pub fn join(&self, parameters: &Parameters) -> Member {
        let mut member = Member([0; 16]);
        // SAFETY: as in `new`; the core reads the parameters and keeps no reference.
        unsafe { an_sys_member_init(self, &mut member, parameters) };
        member
    }

    /// The child has just joined; the parent, in service and of this class, forked it.
    pub fn fork(&self, parent: &mut Member, child: &mut Member) {
        // SAFETY: all are initialised storage of the core's types.
        unsafe { an_sys_policy_fork(self, parent, child) }
    }

    /// Its priority among all, more is served first; 0 where the policy knows no levels.
    pub fn level(&self, member: &Member) -> u32 {
        // SAFETY: both are initialised storage of the core's types.
        unsafe { an_sys_member_level(self, member) }
    }

    /// It wants to run; returns its key.
    pub fn wake(&mut self, member: &mut Member) -> u64 {
        // SAFETY: both are initialised storage of the core's types; so below.
        unsafe { an_sys_policy_wake(self, member) }
    }

    /// It had the least key and is put into service.
    pub fn serve(&mut self, member: &Member) {
        // SAFETY: see `wake`.
        unsafe { an_sys_policy_serve(self, member) }
    }

    /// In service, it has run for so long since the last such call [ns].
    pub fn used(&self, member: &mut Member, ran_ns: u64) {
        // SAFETY: see `wake`.
        unsafe { an_sys_policy_used(self, member, ran_ns) }
    }

    /// How long it may run in one go [ns].
    pub fn quantum_ns(&self, member: &Member) -> u64 {
        // SAFETY: see `wake`.
        unsafe { an_sys_policy_quantum_ns(self, member) }
    }

    /// It leaves service and goes on wanting to run; returns its key.
    pub fn requeue(&mut self, member: &mut Member, why: Requeue) -> u64 {
        // SAFETY: see `wake`.
        unsafe { an_sys_policy_requeue(self, member, why as u32) }
    }

    /// It leaves service and wants to run no more.
    pub fn block(&self, member: &mut Member) {
        // SAFETY: see `wake`.
        unsafe { an_sys_policy_block(self, member) }
    }

    /// Should the one just queued take the CPU of the one in service?
    pub fn preempts(&self, woken: &Member, serving: &Member) -> bool {
        // SAFETY: see `wake`.
        unsafe { an_sys_policy_preempts(self, woken, serving) }
    }

    /// Time between two clock interrupts that it accounts by [ns], or 0.
    pub fn tick_ns(&self) -> u64 {
        // SAFETY: see `wake`.
        unsafe { an_sys_policy_tick_ns(self) }
    }

    /// The clock strikes while the task is in service: true if its quantum is over.
    pub fn tick(&mut self, member: &mut Member) -> bool {
        // SAFETY: see `wake`.
        unsafe { an_sys_policy_tick(self, member) }
    }

    /// Time between two ageings [ns], or 0.
    pub fn age_ns(&self) -> u64 {
        // SAFETY: see `wake`.
        unsafe { an_sys_policy_age_ns(self) }
    }

    /// It has waited or slept for another `age_ns`: true if its key changed.
    pub fn age(&mut self, member: &mut Member, queued: bool) -> bool {
        // SAFETY: see `wake`.
        unsafe { an_sys_policy_age(self, member, queued) }
    }
}

impl Member {
    /// Its place among the queued, the least first.
    pub fn key(&self) -> u64 {
        // SAFETY: initialised storage of the core's type.
        unsafe { an_sys_member_key(self) }
    }
}
