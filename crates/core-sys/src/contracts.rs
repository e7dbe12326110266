//! Contracts and events: `core/contract_run.h` and `core/event.h`.

use std::ptr::NonNull;

use crate::raw::{Raw, allocate, release};
use crate::rule::Rule;

/// A contract, by index. 0 is none.
pub type Contract = u32;

/// What is promised: `struct an_promise`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Promise {
    /// C > 0 [ns].
    pub budget_ns: u64,
    /// T [ns].
    pub period_ns: u64,
    /// D [ns]; 0 for D = T.
    pub deadline_rel_ns: u64,
    /// So many of every `y` periods may be lost; only with [`Promise::WINDOW`].
    pub x: u32,
    /// See `x`.
    pub y: u32,
    /// What kind of server: the constants below.
    pub flags: u32,
    /// Where it runs.
    pub cpu: u32,
}

impl Promise {
    /// Throttled until its next budget, instead of a later deadline.
    pub const HARD: u32 = 1;
    /// Uses what others leave of their budgets.
    pub const RECLAIM: u32 = 1 << 1;
    /// Runs on in idle time, uncharged.
    pub const BORROW: u32 = 1 << 2;
    /// Is forgiven its debts when the CPU has been idle.
    pub const CATCH_UP: u32 = 1 << 3;
    /// DWCS: served C once in every period, but for x of every y.
    pub const WINDOW: u32 = 1 << 4;
    /// DWCS: may run beyond that.
    pub const WORK_CONSERVING: u32 = 1 << 5;
    /// The budget is not enforced: plain EDF.
    pub const EXHAUSTIVE: u32 = 1 << 6;

    /// May this be promised, leaving aside whether there is room for it?
    pub fn is_valid(&self) -> bool {
        // SAFETY: the core only reads the promise.
        unsafe { an_sys_promise_valid(self) }
    }
}

/// A part of a split contract: `struct an_piece`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Piece {
    /// Its budget [ns].
    pub budget_ns: u64,
    /// Its release, since the job's [ns].
    pub offset_ns: u64,
    /// Its deadline, since its release [ns].
    pub window_ns: u64,
    /// Where it runs.
    pub cpu: u32,
    #[doc(hidden)]
    pub pad: u32,
}

/// What became of a contract so far.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Jobs ended, or periods that counted.
    pub deadlines: u64,
    /// Of those too late, or unserved.
    pub misses: u64,
    /// Misses that the window did not allow.
    pub violations: u64,
    /// Times the budget ran out.
    pub exhaustions: u64,
    /// Run under the contract [ns].
    pub service_ns: u64,
    /// Of that in idle time, uncharged [ns].
    pub borrowed_ns: u64,
    /// Of that on what others left [ns].
    pub reclaimed_ns: u64,
}

/// What the event scheduler made of a pick: `struct an_event_decision`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventDecision {
    /// How long, from now on [ns]; `u64::MAX`: no end.
    pub run_ns: u64,
    /// Who runs; 0: best effort.
    pub run: Contract,
    /// Who is to be charged; the core knows who pays. 0: nobody.
    pub charge: Contract,
    /// By which rule; none: as picked.
    pub rule: u32,
    /// Services whose events were delivered, one bit each.
    pub delivered: u32,
}

unsafe extern "C" {
    fn an_sys_contracts_size() -> usize;
    fn an_sys_contracts_init(contracts: *mut Raw, options: u32);
    fn an_sys_promise_valid(promise: *const Promise) -> bool;
    fn an_sys_contract_create(contracts: *mut Raw, promise: *const Promise) -> Contract;
    fn an_sys_contract_wake(contracts: *mut Raw, contract: Contract, now_ns: u64) -> u32;
    fn an_sys_contract_sleep(contracts: *mut Raw, contract: Contract, now_ns: u64);
    fn an_sys_contract_next_job(cs: *mut Raw, c: Contract, released_ns: u64, now_ns: u64) -> u32;
    fn an_sys_contract_charge(cs: *mut Raw, c: Contract, ran_ns: u64, now_ns: u64) -> u32;
    fn an_sys_contracts_due(contracts: *mut Raw, cpu: u32) -> u64;
    fn an_sys_contracts_expire(cs: *mut Raw, cpu: u32, now_ns: u64, kick: *mut u64) -> u64;
    fn an_sys_contracts_pick(
        contracts: *mut Raw,
        cpu: u32,
        now_ns: u64,
        background: bool,
        rule: *mut u32,
    ) -> Contract;
    fn an_sys_contract_run_ns(contracts: *mut Raw, contract: Contract, now_ns: u64) -> u64;
    fn an_sys_contract_preempts(contracts: *mut Raw, woken: Contract, running: Contract) -> u32;
    fn an_sys_contract_cpu(contracts: *mut Raw, contract: Contract) -> u32;
    fn an_sys_contract_kept(contracts: *mut Raw, contract: Contract, kept: *mut Kept);
    fn an_sys_event_raise(
        cs: *mut Raw,
        sink: Contract,
        service: u32,
        at_ns: u64,
        now_ns: u64,
    ) -> bool;
    fn an_sys_events_due(cs: *mut Raw, cpu: u32) -> u64;
    fn an_sys_event_coordinate(
        contracts: *mut Raw,
        cpu: u32,
        selected: Contract,
        now_ns: u64,
        decision: *mut EventDecision,
    );
    fn an_sys_task_server_update(cs: *mut Raw, cpu: u32, base_ns: u64, now_ns: u64) -> bool;
}

/// All contracts of a machine.
#[derive(Debug)]
pub struct Contracts {
    raw: NonNull<Raw>,
}

// SAFETY: plain data without ties to a thread; all changes go through `&mut`.
unsafe impl Send for Contracts {}

macro_rules! calls {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $call:ident;)*) => {
        $($(#[$about])*
        pub fn $name(&mut self $(, $argument: $type)*) $(-> $result)? {
            // SAFETY: `raw` is initialised, and nobody else refers to it during the call.
            unsafe { $call(self.raw.as_ptr() $(, $argument)*) }
        })*
    };
}

impl Contracts {
    /// Precedence of 1999: window constraint before deadline.
    pub const WINDOW_FIRST: u32 = 1;
    /// Ties to the lower index.
    pub const TIE_INDEX: u32 = 1 << 1;
    /// Rule a for every C of extra service too.
    pub const EXTRA_COUNTS: u32 = 1 << 2;
    /// Event rule 4 as printed, with >.
    pub const EVENT_STRICT: u32 = 1 << 3;
    /// Without event rule 2.
    pub const EVENT_NO_RULE_2: u32 = 1 << 4;
    /// Without event rule 3.
    pub const EVENT_NO_RULE_3: u32 = 1 << 5;
    /// Without event rule 4.
    pub const EVENT_NO_RULE_4: u32 = 1 << 6;
    /// Without event rule 5.
    pub const EVENT_NO_RULE_5: u32 = 1 << 7;
    /// Events as published: nobody pays, and of rule 4 only who makes way is asked.
    pub const EVENT_AS_PUBLISHED: u32 = 1 << 8;
    /// Services whose events a contract can wait for at a time.
    pub const SERVICES: u32 = 4;
    /// CPUs that can have contracts.
    pub const CPUS: usize = 64;

    /// No contracts. `options` are the constants above.
    pub fn new(options: u32) -> Self {
        // SAFETY: the core says how much it needs, and initialises it.
        unsafe {
            let raw = allocate(an_sys_contracts_size());
            an_sys_contracts_init(raw.as_ptr(), options);
            Self { raw }
        }
    }

    /// A new contract, asleep; none if it may not be promised, or there is no room. Admission is
    /// the caller's.
    pub fn create(&mut self, promise: &Promise) -> Option<Contract> {
        // SAFETY: see `calls`; the core only reads the promise.
        let contract = unsafe { an_sys_contract_create(self.raw.as_ptr(), promise) };
        (contract != 0).then_some(contract)
    }

    /// It has something to run, and had nothing.
    pub fn wake(&mut self, contract: Contract, now_ns: u64) -> Rule {
        // SAFETY: see `calls`.
        Rule(unsafe { an_sys_contract_wake(self.raw.as_ptr(), contract, now_ns) })
    }

    /// Its job has ended, and the next arrived at `released_ns` while it was in service.
    pub fn next_job(&mut self, contract: Contract, released_ns: u64, now_ns: u64) -> Rule {
        // SAFETY: see `calls`.
        Rule(unsafe { an_sys_contract_next_job(self.raw.as_ptr(), contract, released_ns, now_ns) })
    }

    /// It ran for `ran_ns` until `now_ns`: with anything but [`Rule::NONE`] pick again.
    pub fn charge(&mut self, contract: Contract, ran_ns: u64, now_ns: u64) -> Rule {
        // SAFETY: see `calls`.
        Rule(unsafe { an_sys_contract_charge(self.raw.as_ptr(), contract, ran_ns, now_ns) })
    }

    /// Does what is due on a CPU; adds the CPUs to look at to `kick`. Returns when to come again.
    pub fn expire(&mut self, cpu: usize, now_ns: u64, kick: &mut u64) -> u64 {
        // SAFETY: see `calls`.
        unsafe { an_sys_contracts_expire(self.raw.as_ptr(), cpu as u32, now_ns, kick) }
    }

    /// The contract to run on a CPU, and why. With `background`, exhausted ones too that may use
    /// idle time.
    pub fn pick(&mut self, cpu: usize, now_ns: u64, background: bool) -> Option<(Contract, Rule)> {
        let mut rule = 0;
        // SAFETY: see `calls`.
        let contract = unsafe {
            an_sys_contracts_pick(self.raw.as_ptr(), cpu as u32, now_ns, background, &mut rule)
        };
        (contract != 0).then_some((contract, Rule(rule)))
    }

    /// Should the woken contract take the CPU of the running one (none: of something without)?
    pub fn preempts(&mut self, woken: Contract, running: Option<Contract>) -> bool {
        // SAFETY: see `calls`.
        unsafe { an_sys_contract_preempts(self.raw.as_ptr(), woken, running.unwrap_or(0)) != 0 }
    }

    /// What runs on a CPU instead of the pick, and who is charged.
    pub fn coordinate(
        &mut self,
        cpu: usize,
        selected: Option<Contract>,
        now_ns: u64,
    ) -> EventDecision {
        let mut decision = EventDecision::default();
        let selected = selected.unwrap_or(0);
        // SAFETY: see `calls`; the decision lives during the call.
        unsafe {
            an_sys_event_coordinate(
                self.raw.as_ptr(),
                cpu as u32,
                selected,
                now_ns,
                &mut decision,
            );
        }
        decision
    }

    /// What became of it so far.
    pub fn kept(&mut self, contract: Contract) -> Kept {
        let mut kept = Kept::default();
        // SAFETY: see `calls`.
        unsafe { an_sys_contract_kept(self.raw.as_ptr(), contract, &mut kept) };
        kept
    }

    calls! {
        /// Its job has ended, and it has nothing more to run. It has been charged.
        sleep(contract: Contract, now_ns: u64) = an_sys_contract_sleep;
        /// When `expire` is to be called next for this CPU [ns].
        due(cpu: u32) -> u64 = an_sys_contracts_due;
        /// How long it may run until something about it changes [ns].
        run_ns(contract: Contract, now_ns: u64) -> u64 = an_sys_contract_run_ns;
        /// It has an event of this service at `at_ns`; false: it is no sink, for it has no window.
        raise(contract: Contract, service: u32, at_ns: u64, now_ns: u64) -> bool = an_sys_event_raise;
        /// When the first event of this CPU may be delivered [ns]: an instant to pick at.
        events_due(cpu: u32) -> u64 = an_sys_events_due;
        /// Gives the CPU its task server, or fits it to what there is; false: nothing is left for one.
        update_task_server(cpu: u32, base_ns: u64, now_ns: u64) -> bool = an_sys_task_server_update;
        /// Where it runs, or its present piece.
        cpu(contract: Contract) -> u32 = an_sys_contract_cpu;
    }
}

impl Drop for Contracts {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this size.
        unsafe { release(self.raw, an_sys_contracts_size()) }
    }
}
