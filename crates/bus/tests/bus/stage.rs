// SPDX-License-Identifier: GPL-2.0
//! A bus of one's own, a daemon before a kernel that does as it is told, and the program between them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use andante_daemon::fakes::{FakeKernel, Served, World};
use andante_daemon::{Client, Reply, Request, SessionSeen};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use zbus::Connection;
use zbus::connection::Builder;

/// Long enough for whatever is waited for here.
pub const LONG: Duration = Duration::from_secs(20);
/// A user who is not root.
pub const NOBODY: u32 = 65534;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    System,
    Session,
}

/// A bus, and perhaps a daemon and the program.
pub struct Stage {
    folder: tempfile::TempDir,
    kind: Kind,
    bus: Option<Ends>,
    daemon: Option<Served>,
    pub program: Option<Ends>,
}

/// A program that ends with the test.
pub struct Ends(pub Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Ends {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }

    /// Asks it to end, and waits for that.
    pub fn terminate(mut self) -> ExitStatus {
        kill(Pid::from_raw(self.pid()), Signal::SIGTERM).unwrap();
        self.wait()
    }

    pub fn wait(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < LONG, "it does not end");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// What it has said, once it has ended.
    pub fn said(&mut self) -> String {
        let mut said = String::new();
        let from = self.0.stderr.as_mut().expect("it was piped");
        from.read_to_string(&mut said).unwrap();
        said
    }
}

/// A process of this user's that waits.
pub fn sleeper(uid: u32) -> Ends {
    let mut command = Command::new("sleep");
    command.arg("60");
    if uid != own_uid() {
        command.uid(uid).gid(uid);
    }
    let sleeper = Ends(command.spawn().unwrap());
    // Until then it is a copy of this process.
    let name = format!("/proc/{}/comm", sleeper.pid());
    until("it sleeps", || {
        fs::read_to_string(&name).unwrap() == "sleep\n"
    });
    sleeper
}

pub fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// Whether tests with another user can be made; only root becomes another.
pub fn is_root() -> bool {
    if own_uid() != 0 {
        eprintln!("skipped: only root can ask as another user");
    }
    own_uid() == 0
}

pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !so() {
        assert!(since.elapsed() < LONG, "it never comes to this: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

impl Stage {
    /// A bus; everybody may have every name, but for what `policy` says.
    pub fn new(kind: Kind, policy: &str) -> Self {
        let all = format!(
            "<policy context=\"default\"><allow user=\"*\"/><allow own=\"*\"/><allow send_destination=\"*\"/>\
             <allow receive_sender=\"*\"/>{policy}</policy>"
        );
        let mut stage = Self::bare(kind);
        stage.start_bus(&all);
        stage
    }

    /// A bus of this configuration.
    pub fn configured(kind: Kind, config: impl FnOnce(&Path) -> String) -> Self {
        let mut stage = Self::bare(kind);
        let config = config(stage.folder.path());
        stage.start_bus(&config);
        stage
    }

    fn bare(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Other users come here too.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            folder,
            kind,
            bus: None,
            daemon: None,
            program: None,
        }
    }

    /// The same with a daemon and the program, which has its name.
    pub fn played(kind: Kind) -> Self {
        let mut stage = Self::new(kind, "");
        stage.start_daemon();
        stage.start_program();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the program has left in a file.
    pub fn left(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Leaves a file for the program.
    pub fn leave(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn address(&self) -> String {
        format!("unix:path={}", self.path("bus").display())
    }

    fn start_bus(&mut self, config: &str) {
        let kind = match self.kind {
            Kind::System => "system",
            Kind::Session => "session",
        };
        let config = format!(
            "<busconfig><type>{kind}</type><listen>{}</listen><auth>EXTERNAL</auth>{config}</busconfig>",
            self.address()
        );
        let file = self.path("bus.conf");
        fs::write(&file, config).unwrap();
        let child = Command::new("dbus-daemon")
            .args(["--nofork", "--nopidfile", "--print-address"])
            .arg(format!("--config-file={}", file.display()))
            // For programs that it starts.
            .env("ANDANTE_SOCKET", self.path("andante.sock"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.expect("dbus-daemon is installed (dist/setup.sh test)");
        let mut address = String::new();
        let said = child.stdout.as_mut().unwrap();
        BufReader::new(said).read_line(&mut address).unwrap();
        assert!(address.starts_with("unix:"), "{address}");
        self.bus = Some(Ends(child));
    }

    pub fn end_bus(&mut self) {
        self.bus = None;
    }

    /// A daemon that sees this machine's processes.
    pub fn start_daemon(&mut self) {
        let mut host = World::new(2).host;
        host.has_real_threads = true;
        self.daemon = Some(Served::at(&self.path("andante.sock"), host));
    }

    /// The daemon ends; what it has said to the kernel by then.
    pub fn end_daemon(&mut self) -> FakeKernel {
        self.daemon.take().unwrap().end()
    }

    /// The program, told where everything is.
    pub fn command(&self) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_andante-bus")))
    }

    /// The same of a copy of it.
    pub fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let (option, address) = match self.kind {
            Kind::System => ("--system", "DBUS_SYSTEM_BUS_ADDRESS"),
            Kind::Session => ("--session", "DBUS_SESSION_BUS_ADDRESS"),
        };
        command
            .arg(option)
            .env(address, self.address())
            .env("ANDANTE_SOCKET", self.path("andante.sock"))
            .env("RUNTIME_DIRECTORY", self.folder.path())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the program, and waits until it is ready; what it says of itself to its service manager.
    pub fn start_program(&mut self) -> String {
        let path = self.path("notify");
        let _ = fs::remove_file(&path);
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(LONG)).unwrap();
        let child = self.command().env("NOTIFY_SOCKET", &path).spawn().unwrap();
        self.program = Some(Ends(child));
        let mut said = [0; 4096];
        let length = manager.recv(&mut said).expect("it gets ready");
        String::from_utf8_lossy(&said[..length]).into_owned()
    }

    /// A client of the bus.
    pub async fn client(&self) -> Connection {
        let builder = Builder::address(self.address().as_str()).unwrap();
        builder.build().await.unwrap()
    }

    pub fn sessions(&self) -> Vec<SessionSeen> {
        sessions(&self.path("andante.sock"))
    }
}

fn sessions(path: &Path) -> Vec<SessionSeen> {
    let list = Client::connect(path).unwrap().request(&Request::List {});
    match list.unwrap() {
        Reply::Contracts(list) => list.sessions,
        other => panic!("{other:?}"),
    }
}

/// Does this on a thread of its own, as another user.
pub fn as_user<T: Send>(uid: u32, does: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            // SAFETY: the call by number changes this thread alone, which ends here; it takes three numbers.
            let failed = unsafe { libc::syscall(libc::SYS_setresuid, -1, uid, -1) };
            assert_eq!(failed, 0);
            does()
        });
        other.join().unwrap()
    })
}

/// Waits for it.
pub fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(LONG, future).await.expect("too long") })
}

/// What a method says, or the name of its error and the sentence.
pub async fn call<B, T>(
    bus: &Connection,
    [name, path, interface, method]: [&str; 4],
    body: &B,
) -> Result<T, (String, String)>
where
    B: serde::Serialize + zbus::zvariant::DynamicType,
    T: for<'d> zbus::zvariant::DynamicDeserialize<'d>,
{
    let reply = bus
        .call_method(Some(name), path, Some(interface), method, body)
        .await;
    match reply {
        Ok(reply) => Ok(reply.body().deserialize().unwrap()),
        Err(zbus::Error::MethodError(name, message, _)) => {
            let short = name.as_str().rsplit('.').next().unwrap().to_owned();
            Err((short, message.unwrap_or_default()))
        }
        Err(other) => panic!("{method}: {other}"),
    }
}
