//! The schedulers in `bpf/`, compiled natively with a model of the kernel around each (`kernel/`), as
//! shared objects of which every machine loads a copy of one.
//!
//! The object is one machine: its state is in the object's own variables, as that of the real
//! scheduler is in those of the BPF object. So each machine has an object of its own, loaded from
//! memory, and any number of them run beside each other.

use std::ffi::c_int;
use std::io::Write;
use std::os::fd::AsRawFd;

use andante_core_sys::{Kept, Piece, Promise};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::object::Object;

/// `kernel/sim.h`.
pub(crate) mod raw {
    /// `struct sim_options`.
    #[repr(C)]
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Options {
        pub cpus: u32,
        pub load: u32,
        pub shared_budget: u32,
        pub trace: u32,
        pub tick_ns: u64,
        pub quantum_ns: u64,
        pub in_class_wake_ns: u64,
        pub contract_bound: u32,
        pub learn_bound: u32,
        pub bindings: u32,
        pub domain_cpus: u32,
        pub policy_kind: u32,
        pub nice_is_real_time: u32,
        pub threads_of_core: u32,
        pub cpus_of_cache: u32,
        pub cpus_of_node: u32,
        pub events: u32,
        pub event_options: u32,
    }

    /// `struct sim_learnt`.
    #[repr(C)]
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Learnt {
        /// How many there are.
        pub held: u64,
        /// Times that one was not made for want of room.
        pub refused: u64,
        /// Those that made room for others.
        pub gave_way: u64,
    }

    /// `struct sim_costs`: instructions that ways through the kernel take.
    #[repr(C)]
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Costs {
        pub enqueue: u64,
        pub enqueue_preempts: u64,
        pub dispatch: u64,
        pub dispatch_picks: u64,
        pub dispatch_keeps: u64,
        pub dispatch_picks_contract: u64,
        pub running: u64,
        pub running_contract: u64,
        pub stopping: u64,
        pub stopping_contract: u64,
        pub init_task: u64,
        pub enable: u64,
        pub exit_task: u64,
        pub schedule: u64,
        pub wake: u64,
        pub interrupt: u64,
        pub timer: u64,
        pub tick: u64,
        pub kick: u64,
        pub ipi: u64,
        pub preempt: u64,
        pub level: u64,
        pub change: u64,
        pub migration: u64,
    }

    /// `struct sim_event`.
    #[repr(C)]
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Event {
        pub kind: u32,
        pub cpu: u32,
        pub task: u32,
        pub pad: u32,
        pub token: u64,
    }

    /// `enum sim_event_kind`.
    pub const UNTIL: u32 = 0;
    pub const STEP: u32 = 1;
    pub const TIMER: u32 = 2;
    pub const EJECTED: u32 = 3;

    /// `struct sim_run`.
    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    pub struct Run {
        pub start_ns: u64,
        pub length_ns: u64,
        pub cpu: u32,
        pub task: u32,
        pub reason: u32,
        pub pad: u32,
    }

    /// `struct sim_task`.
    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    pub struct Task {
        pub cgroup: u32,
        pub nice: i32,
        pub real_time: u32,
        pub flags: u32,
        pub affinity: [u64; 4],
        pub process_of: u32,
        pub pad: u32,
    }

    /// `struct sim_stats`.
    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    pub struct Stats {
        pub switches: u64,
        pub wakeups: u64,
        pub interrupts: u64,
        pub dispatches: u64,
        pub enqueues: u64,
        pub reason: [u8; 64],
        pub message: [u8; 192],
    }
}

macro_rules! calls {
    (
        safe { $($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)* }
        unsafe { $($by_pointer:ident: fn($($its_arg:ty),*) $(-> $its_ret:ty)?;)* }
    ) => {
        /// The object's functions, see `kernel/sim.h`: what numbers they are given is checked by the
        /// model, which ends the process if it is none of its own; pointers are used during the call
        /// only.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct Calls {
            $(pub $name: extern "C" fn($($arg),*) $(-> $ret)?,)*
            $(pub $by_pointer: unsafe extern "C" fn($($its_arg),*) $(-> $its_ret)?,)*
        }

        impl Calls {
            /// Those of this object; the name of one that it lacks.
            pub fn of(library: &Library) -> Result<Self, String> {
                // SAFETY: the names and types are those of `kernel/sim.h`; the tests call each.
                unsafe {
                    Ok(Self {
                        $($name: *library
                            .get(concat!("sim_", stringify!($name)).as_bytes())
                            .map_err(|_| concat!("sim_", stringify!($name)))?,)*
                        $($by_pointer: *library
                            .get(concat!("sim_", stringify!($by_pointer)).as_bytes())
                            .map_err(|_| concat!("sim_", stringify!($by_pointer)))?,)*
                    })
                }
            }
        }
    };
}

calls! {
    safe {
        now_ns: fn() -> u64;
        cgroup: fn(u32, u32) -> u32;
        cgroup_idle: fn(u32, u32);
        policy: fn(u32, u32, u64, u32) -> c_int;
        cgroup_bandwidth: fn(u32, u64, u64, u64);
        wake_new: fn(u32);
        wake: fn(u32, u32);
        block: fn(u32);
        exiting: fn(u32);
        executes: fn(u32, u32);
        exit: fn(u32);
        kill: fn(u32);
        stop: fn(u32, u32);
        work: fn(u32, u64);
        spend: fn(u64);
        timer: fn(u64, u64);
        interrupt: fn(u64, u32, u64);
        steal: fn(u32, u64);
        socket: fn(u32, u32) -> u32;
        data_ready: fn(u32);
        received: fn(u32);
        used_ns: fn(u32) -> u64;
        worked_ns: fn(u32) -> u64;
        idle_ns: fn() -> u64;
        stolen_ns: fn() -> u64;
        contract_bind: fn(u32, u32) -> c_int;
        declare: fn(u32, u64, u64, u64) -> c_int;
        raise: fn(u32, u32, u64);
        cycle: fn(u32, u64);
        contract_sweep: fn() -> c_int;
        event_raise: fn(u32, u32, u64) -> c_int;
        cgroup_remove: fn(u32) -> c_int;
        class: fn(u32) -> c_int;
        classes_shared: fn() -> u32;
    }
    unsafe {
        begin: fn(*const raw::Options, *const raw::Costs);
        run: fn(u64, *mut raw::Event);
        fork: fn(*const raw::Task) -> u32;
        runs: fn(*mut u32) -> *const raw::Run;
        stats: fn() -> *const raw::Stats;
        contract_create: fn(*const Promise, *const Piece, u32, c_int) -> u32;
        contract_kept: fn(u32, *mut Kept);
        contracts_learnt: fn(*mut raw::Learnt);
    }
}

/// A machine's object. Its functions may be called from one thread at a time.
pub(crate) struct Shell {
    calls: Calls,
    _library: Library,
    // Kept open while it is loaded, so closed last: the loader tells objects by the names of their
    // files, and the number of an open file is nobody else's.
    _file: std::fs::File,
}

impl Shell {
    /// A new one, with everything in it zero.
    pub fn load(object: Object) -> Self {
        let file = rustix::fs::memfd_create("andante", rustix::fs::MemfdFlags::CLOEXEC);
        let mut file = std::fs::File::from(file.expect("there is memory for a file"));
        file.write_all(object.bytes())
            .expect("there is memory for the object");
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: what the object runs when it is loaded and unloaded is nothing.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let library = library.expect("the object links against libc alone");
        Self {
            calls: Calls::of(&library).expect("the object has all of sim.h"),
            _library: library,
            _file: file,
        }
    }
}

impl std::ops::Deref for Shell {
    type Target = Calls;

    fn deref(&self) -> &Calls {
        &self.calls
    }
}

impl std::fmt::Debug for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shell")
    }
}
