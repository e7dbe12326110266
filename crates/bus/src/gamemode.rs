// SPDX-License-Identifier: GPL-2.0
//! `com.feralinteractive.GameMode`: what `gamemoderun`, libgamemode and launchers ask for games, and what the
//! desktop's portal passes on for games in sandboxes.
//!
//! GameMode's own daemon changes governors, GPUs and nice values. Here a game is what its user waits for: all of its
//! threads take part in a session of the role `game` until it ends. Nothing else of the machine is changed.
//!
//! Answers are those of gamemoded: 0 for done, -1 for not, and for a status 0 for no game, 1 for another one, and 2
//! for this one. To register twice is to register once, as a program does that executes another.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use andante_session::{Declare, Role};
use zbus::object_server::SignalEmitter;
use zbus::zvariant::{ObjectPath, OwnedFd, OwnedObjectPath};
use zbus::{Connection, fdo, interface};

use crate::process::{executable, pid_of};
use crate::refusal::Refusal;
use crate::spokesman::{Spokesman, Standing};

/// The name on the bus.
pub const NAME: &str = "com.feralinteractive.GameMode";
/// The object.
pub const PATH: &str = "/com/feralinteractive/GameMode";

const DONE: i32 = 0;
const FAILED: i32 = -1;
const NO_GAME: i32 = 0;
const ANOTHER_GAME: i32 = 1;
const THIS_GAME: i32 = 2;

/// Answers.
pub struct GameMode {
    spokesman: Arc<Spokesman>,
}

/// A game that is registered, as an object of its own.
struct Game {
    process: i32,
    executable: String,
}

#[interface(name = "com.feralinteractive.GameMode.Game")]
impl Game {
    #[zbus(property(emits_changed_signal = "const"))]
    async fn process_id(&self) -> i32 {
        self.process
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn executable(&self) -> &str {
        &self.executable
    }

    /// As gamemoded spells it.
    #[zbus(property(emits_changed_signal = "const"))]
    async fn exectuable(&self) -> &str {
        &self.executable
    }
}

#[interface(name = "com.feralinteractive.GameMode")]
impl GameMode {
    async fn register_game(
        &self,
        #[zbus(connection)] bus: &Connection,
        game: i32,
    ) -> fdo::Result<i32> {
        Ok(self.register(bus, game).await?)
    }

    async fn unregister_game(
        &self,
        #[zbus(connection)] bus: &Connection,
        game: i32,
    ) -> fdo::Result<i32> {
        Ok(self.unregister(bus, game).await?)
    }

    async fn query_status(&self, game: i32) -> i32 {
        self.status(game).await
    }

    #[zbus(name = "RegisterGameByPID")]
    async fn register_game_by_pid(
        &self,
        #[zbus(connection)] bus: &Connection,
        game: i32,
        _asked_by: i32,
    ) -> fdo::Result<i32> {
        Ok(self.register(bus, game).await?)
    }

    #[zbus(name = "UnregisterGameByPID")]
    async fn unregister_game_by_pid(
        &self,
        #[zbus(connection)] bus: &Connection,
        game: i32,
        _asked_by: i32,
    ) -> fdo::Result<i32> {
        Ok(self.unregister(bus, game).await?)
    }

    #[zbus(name = "QueryStatusByPID")]
    async fn query_status_by_pid(&self, game: i32, _asked_by: i32) -> i32 {
        self.status(game).await
    }

    #[zbus(name = "RegisterGameByPIDFd")]
    async fn register_game_by_pidfd(
        &self,
        #[zbus(connection)] bus: &Connection,
        game: OwnedFd,
        _asked_by: OwnedFd,
    ) -> fdo::Result<i32> {
        Ok(self.register(bus, number(&game)?).await?)
    }

    #[zbus(name = "UnregisterGameByPIDFd")]
    async fn unregister_game_by_pidfd(
        &self,
        #[zbus(connection)] bus: &Connection,
        game: OwnedFd,
        _asked_by: OwnedFd,
    ) -> fdo::Result<i32> {
        Ok(self.unregister(bus, number(&game)?).await?)
    }

    #[zbus(name = "QueryStatusByPIDFd")]
    async fn query_status_by_pidfd(&self, game: OwnedFd, _asked_by: OwnedFd) -> fdo::Result<i32> {
        Ok(self.status(number(&game)?).await)
    }

    /// There is no configuration that could have changed.
    async fn refresh_config(&self) -> i32 {
        DONE
    }

    async fn list_games(&self) -> Vec<(i32, OwnedObjectPath)> {
        let games = self.spokesman.of_role(Role::Game).await;
        games
            .into_iter()
            .map(|game| (game, path_of(game)))
            .collect()
    }

    #[zbus(property)]
    async fn client_count(&self) -> i32 {
        let games = self.spokesman.of_role(Role::Game).await;
        i32::try_from(games.len()).unwrap_or(i32::MAX)
    }

    #[zbus(signal)]
    async fn game_registered(
        emitter: &SignalEmitter<'_>,
        game: i32,
        path: ObjectPath<'_>,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn game_unregistered(
        emitter: &SignalEmitter<'_>,
        game: i32,
        path: ObjectPath<'_>,
    ) -> zbus::Result<()>;
}

impl GameMode {
    /// One who speaks so.
    pub fn new(spokesman: Arc<Spokesman>) -> Self {
        Self { spokesman }
    }

    async fn register(&self, bus: &Connection, game: i32) -> Result<i32, Refusal> {
        let asked = Declare {
            process: game,
            thread: None,
            role: Role::Game,
            user: None,
        };
        if let Some(standing) = self.spokesman.declare(asked).await? {
            watch(&self.spokesman, bus, standing).await;
        }
        Ok(DONE)
    }

    async fn unregister(&self, bus: &Connection, game: i32) -> Result<i32, Refusal> {
        let stood = self.spokesman.retract(game, Role::Game).await;
        if let Ok(false) = stood {
            return Ok(FAILED);
        }
        is_no_more(bus, game).await;
        stood.map(|_| DONE)
    }

    async fn status(&self, game: i32) -> i32 {
        let games = self.spokesman.of_role(Role::Game).await;
        match games.contains(&game) {
            true => THIS_GAME,
            false if games.is_empty() => NO_GAME,
            false => ANOTHER_GAME,
        }
    }
}

/// The game is there for those who want to know, until it ends.
pub async fn watch(spokesman: &Arc<Spokesman>, bus: &Connection, standing: Standing) {
    let game = standing.pid;
    let executable = executable(game).to_string_lossy().into_owned();
    let object = Game {
        process: game,
        executable,
    };
    // A game that was registered stays so, whoever hears of it.
    let _ = bus.object_server().at(path_of(game), object).await;
    let _ = told(bus, game, true).await;
    let (spokesman, bus) = (Arc::clone(spokesman), bus.clone());
    tokio::spawn(async move {
        standing.process.ended().await;
        if spokesman.forget(standing.number).await {
            is_no_more(&bus, game).await;
        }
    });
}

async fn is_no_more(bus: &Connection, game: i32) {
    let _ = bus.object_server().remove::<Game, _>(path_of(game)).await;
    let _ = told(bus, game, false).await;
}

/// Those who want to know hear that a game is registered, or not any more.
async fn told(bus: &Connection, game: i32, registered: bool) -> zbus::Result<()> {
    let object = bus.object_server().interface::<_, GameMode>(PATH).await?;
    let emitter = object.signal_emitter();
    let path = path_of(game);
    match registered {
        true => GameMode::game_registered(emitter, game, path.as_ref()).await?,
        false => GameMode::game_unregistered(emitter, game, path.as_ref()).await?,
    }
    object.get().await.client_count_changed(emitter).await
}

fn path_of(game: i32) -> OwnedObjectPath {
    let path = format!("{PATH}/Games/{game}");
    ObjectPath::from_string_unchecked(path).into()
}

fn number(game: &OwnedFd) -> Result<i32, Refusal> {
    let gone = || {
        Refusal::Nonsense("this is no descriptor of a process that is there (pidfd_open)".into())
    };
    pid_of(&game.as_raw_fd()).ok_or_else(gone)
}
