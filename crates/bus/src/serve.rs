// SPDX-License-Identifier: GPL-2.0
//! On one of the two buses: has the name, or waits for it, until the end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use enumflags2::BitFlags;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::timeout;
use zbus::connection::Builder;
use zbus::fdo::{self, RequestNameReply};
use zbus::names::BusName;
use zbus::{Connection, fdo::DBusProxy};

use crate::Status;
use crate::gamemode::{self, GameMode};
use crate::realtime::{self, Realtime};
use crate::spokesman::Spokesman;

/// How long answers that are under way are waited for at the end; one takes some milliseconds.
const UNDER_WAY: Duration = Duration::from_millis(200);

/// Which bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The machine's.
    System,
    /// The user's.
    Session,
}

impl Kind {
    fn bus(self) -> &'static str {
        match self {
            Self::System => "system bus",
            Self::Session => "session bus",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::System => realtime::NAME,
            Self::Session => gamemode::NAME,
        }
    }
}

/// Why it has ended.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// Nobody listens where the bus is said to be.
    #[error("there is no {bus} ({cause}): {mend}")]
    NoBus {
        /// Which.
        bus: &'static str,
        /// What failed.
        cause: Box<zbus::Error>,
        /// What to do.
        mend: &'static str,
    },
    /// The bus's policy says no.
    #[error(
        "the {bus} does not let this user have the name {name}: run this as root or as the user `andante`, with \
         the policy file of the package"
    )]
    NotPermitted {
        /// Which.
        bus: &'static str,
        /// The name.
        name: &'static str,
    },
    /// It was there, and is not any more.
    #[error("the {0} has ended: start this again when it is back")]
    BusGone(&'static str),
    /// The bus says something else.
    #[error("the bus fails: {0}")]
    Bus(#[from] zbus::Error),
    /// The machine lacks something.
    #[error("no requests can be waited for: {0}")]
    Machine(#[from] std::io::Error),
}

impl End {
    /// The exit status.
    pub fn status(&self) -> Status {
        match self {
            Self::NoBus { .. } => Status::NoBus,
            Self::NotPermitted { .. } => Status::NotPermitted,
            Self::BusGone(_) | Self::Bus(_) | Self::Machine(_) => Status::Failed,
        }
    }
}

/// Answers until SIGTERM or ^C.
///
/// # Errors
/// Why it cannot, or not any more.
pub fn run(kind: Kind, socket: &Path, verbose: bool) -> Result<(), End> {
    // Every process that something stands for is watched by a descriptor.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(kind, socket, verbose))
}

async fn serve(kind: Kind, socket: &Path, verbose: bool) -> Result<(), End> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let spokesman = Arc::new(Spokesman::new(socket, verbose));
    let leave = Arc::new(Notify::new());
    let bus = connect(kind, &spokesman, &leave).await?;
    if let Some(folder) = std::env::var_os("RUNTIME_DIRECTORY") {
        let file = Path::new(&folder).join("standing.json");
        for standing in spokesman.keep_in(file).await {
            match kind {
                Kind::System => realtime::watch(&spokesman, standing),
                Kind::Session => gamemode::watch(&spokesman, &bus, standing).await,
            }
        }
    }
    let outcome = tokio::select! {
        outcome = answer(kind, &bus) => outcome,
        () = spokesman.keep() => Ok(()),
        () = spokesman.remember() => Ok(()),
        () = leave.notified() => Ok(()),
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
    };
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    spokesman.save().await;
    if outcome.is_ok() {
        // Answers that are under way are given. Who waits for a game to end holds the connection until it does.
        let _ = bus.release_name(kind.name()).await;
        let _ = timeout(UNDER_WAY, bus.graceful_shutdown()).await;
    }
    outcome
}

async fn connect(
    kind: Kind,
    spokesman: &Arc<Spokesman>,
    leave: &Arc<Notify>,
) -> Result<Connection, End> {
    let spokesman = Arc::clone(spokesman);
    let built = match kind {
        Kind::System => {
            let realtime = Realtime::new(spokesman, Arc::clone(leave));
            Builder::system().and_then(|builder| builder.serve_at(realtime::PATH, realtime))
        }
        Kind::Session => {
            let gamemode = GameMode::new(spokesman);
            Builder::session().and_then(|builder| builder.serve_at(gamemode::PATH, gamemode))
        }
    };
    let no_bus = |cause| End::NoBus {
        bus: kind.bus(),
        cause: Box::new(cause),
        mend: match kind {
            Kind::System => {
                "install and start dbus, or say with DBUS_SYSTEM_BUS_ADDRESS where it listens"
            }
            Kind::Session => {
                "run this in a desktop's session, under `dbus-run-session`, or say with DBUS_SESSION_BUS_ADDRESS \
                 where it listens"
            }
        },
    };
    built.map_err(no_bus)?.build().await.map_err(no_bus)
}

/// Takes the name, or waits for it, and answers until the bus is gone.
async fn answer(kind: Kind, bus: &Connection) -> Result<(), End> {
    let name = kind.name();
    // No flag: it is taken from nobody, waited for, and kept.
    let reply = bus.request_name_with_flags(name, BitFlags::empty()).await;
    let refused = |error: zbus::Error| match &error {
        zbus::Error::MethodError(kind_of, ..) if kind_of.as_str().ends_with(".AccessDenied") => {
            let bus = kind.bus();
            End::NotPermitted { bus, name }
        }
        _ => End::Bus(error),
    };
    let status = match reply.map_err(refused)? {
        RequestNameReply::InQueue | RequestNameReply::Exists => {
            let owner = owner(bus, name).await.unwrap_or_default();
            let status = format!(
                "{name} is another program's{owner}, which answers what is asked: this one does as soon as that one \
                 has ended"
            );
            eprintln!("{status}");
            status
        }
        _ => format!("Answers as {name}."),
    };
    let _ = sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
    bus.closed().await;
    Err(End::BusGone(kind.bus()))
}

/// Which process has the name, in words.
async fn owner(bus: &Connection, name: &str) -> fdo::Result<String> {
    let name = BusName::try_from(name.to_owned()).map_err(zbus::Error::from)?;
    let pid = DBusProxy::new(bus)
        .await?
        .get_connection_unix_process_id(name)
        .await?;
    Ok(format!(" (process {pid})"))
}
