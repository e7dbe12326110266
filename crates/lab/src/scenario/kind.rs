//! What programs do: the kinds, and what each can be told.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::time::time;
use andante_document::{DocumentError, FromNode, Section, Value, suggest};

const WORK_MS: std::ops::RangeInclusive<f64> = 0.0..=60_000.0;
/// Most requests that a display server may be behind.
const MAX_AHEAD: u32 = 65_536;
/// The same on a kernel, where a socket's buffer has room for some 270 small messages.
const MAX_AHEAD_ON_KERNEL: u32 = 128;

/// What a program does. All work is given as time on a CPU at full speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    /// Shows frames periodically.
    Player {
        /// Frames per second.
        fps: f64,
        /// Work per frame [ms], repeated like a group of pictures.
        work_ms: Vec<f64>,
        /// Who draws its frames.
        display: Display,
        /// Whether frames that are a period late are given up.
        drops: bool,
        /// Whether work is CPU time by the thread's own clock, and not a number of instructions.
        by_clock: bool,
    },
    /// Answers key presses.
    Typist {
        /// Mean rate [1/s].
        keys_per_s: f64,
        /// Whether they come at even distances, as of a key held down, and not at random.
        regular: bool,
        /// Work per key [ms], repeated.
        work_ms: Vec<f64>,
        /// From the key to the program [ms], repeated.
        input_ms: Vec<f64>,
        /// No keys after this [s since the measurement began]; none: to its end.
        until_s: Option<f64>,
        /// Seed of the instants.
        seed: u32,
        /// Who draws its answers.
        display: Display,
    },
    /// A game: one thread shows frames periodically, another answers updates from elsewhere.
    Game {
        /// Frames per second.
        fps: f64,
        /// Work per frame [ms], repeated.
        work_ms: Vec<f64>,
        /// Updates, at even distances [1/s].
        updates_per_s: f64,
        /// Work per update [ms].
        update_ms: f64,
    },
    /// Computes sound for every period of a sound card.
    Audio {
        /// Length of a period [samples].
        frames: u32,
        /// Samples per second.
        rate_hz: u32,
        /// Work per period [ms], repeated.
        work_ms: Vec<f64>,
    },
    /// Does for its clients what they ask for, one request after the other.
    Server,
    /// Asks a server, waits for the reply, thinks, asks again (a closed loop).
    Client {
        /// The program of kind `server` that it asks.
        server: String,
        /// Work the server does per request [ms].
        work_ms: f64,
        /// Time between a reply and the next request [ms].
        think_ms: f64,
    },
    /// The sink of events: a player with timed waits, whose frames come due. It says in a session when the
    /// next one comes if its contract has `events`.
    Sink {
        /// Events per second.
        events_per_s: f64,
        /// Each comes up to so much later than its beat [ms].
        jitter_ms: f64,
        /// Work per event [ms], repeated like a group of pictures.
        work_ms: Vec<f64>,
        /// Of the phase and the jitter; of each further instance one more.
        seed: u32,
        /// Whether its latency is to the end of the work, not to its beginning.
        to_end: bool,
    },
    /// Runs without end.
    Loop,
    /// Forks children that compute and exit, one after the other.
    Batch {
        /// Work per child [ms], repeated.
        work_ms: Vec<f64>,
        /// Work of the parent per child [ms] (simulator); none: what forking costs.
        fork_ms: Option<f64>,
    },
    /// Works, waits for its disk, works again; nobody waits for it.
    Disk {
        /// Work between two waits [ms], repeated.
        work_ms: Vec<f64>,
        /// What the disk takes [ms], repeated.
        wait_ms: Vec<f64>,
    },
    /// Threads that begin at once, yield, and end; when the last has, so many again (kernel).
    Crowd {
        /// How many at once.
        threads: u32,
        /// How often each calls `sched_yield()`.
        yields: u32,
    },
    /// A small integer benchmark without end.
    Dhrystone,
    /// Two processes that pass a byte to and fro through pipes.
    Pingpong {
        /// Round trips per sample.
        window: u32,
    },
    /// Sleeps to given instants and measures how late it runs.
    Waker {
        /// Time between the instants [µs].
        interval_us: f64,
    },
    /// Unmodified mpv plays a clip, once if nothing else is said.
    Mpv {
        /// What it plays.
        clip: Clip,
        /// Play the first seconds once before everything else, to fill the caches [s].
        warm_up_s: f64,
        /// The program of kind `xvfb` that draws the pictures; none: nobody does.
        display: Option<String>,
        /// As fast as it can, without sound, over and over until the measurement ends.
        untimed: bool,
    },
    /// A real X server whose screen is memory.
    Xvfb {
        /// What it shows.
        screen: Screen,
    },
    /// The real sound server jackd, with a card that is only a clock.
    Jack {
        /// Length of a period [samples].
        frames: u32,
        /// Samples per second.
        rate_hz: u32,
    },
    /// A real client of jackd that computes.
    JackClient {
        /// The program of kind `jack` that it is a client of.
        server: String,
        /// The part of each period for which it computes [%].
        load_percent: u32,
    },
    /// Streams a film to players: the example `film_server`.
    FilmServer {
        /// What it streams.
        clip: Clip,
    },
    /// Receives a film, decodes and shows it: the example `film_player`.
    FilmPlayer {
        /// The program of kind `film-server` that it asks.
        server: String,
        /// Whether over UDP, and not TCP.
        by_udp: bool,
        /// Frames per second of the server's film.
        fps: u32,
    },
    /// `make` compiles real C files without end.
    Make {
        /// Compilers at once (`-j`).
        jobs: u32,
    },
    /// Any program.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Programs that it starts: a virtual machine has no others.
        needs: Vec<String>,
    },
}

/// The display server of a program, a process of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Display {
    /// Its work per frame or key [ms]; 0: there is none.
    pub work_ms: f64,
    /// The program, of kind `server`, that it is; none: one of its own.
    pub server: Option<String>,
    /// How often a player waits for it for each frame, the first time for its work.
    pub exchanges: u32,
    /// How many requests it may be behind, the program not waiting for it; 0: the program waits for
    /// every answer.
    pub ahead: u32,
}

impl Display {
    /// There is none.
    pub const NONE: Self = Self {
        work_ms: 0.0,
        server: None,
        exchanges: 1,
        ahead: 0,
    };
}

/// What a program says in a session that it does again and again [s]; none: it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cycle {
    /// From one piece of work to the next.
    pub period_s: Option<f64>,
    /// The most CPU time that one takes.
    pub budget_s: Option<f64>,
}

/// The screen of an X server [pixels].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Screen {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

/// A film clip, made from these figures.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Clip {
    /// Picture width [pixels].
    pub width: u32,
    /// Picture height [pixels].
    pub height: u32,
    /// Frames per second.
    pub fps: u32,
    /// Length [s].
    pub length_s: u32,
}

impl Clip {
    /// Number of frames of the whole clip.
    pub fn frames(&self) -> u64 {
        u64::from(self.fps) * u64::from(self.length_s)
    }
}

impl Kind {
    /// Periods of a sound card per second.
    pub(crate) fn periods_per_s(frames: u32, rate_hz: u32) -> f64 {
        f64::from(rate_hz) / f64::from(frames)
    }

    /// The time between two things that it does at even distances [s], if it does.
    pub(crate) fn beat_s(&self) -> Option<f64> {
        match self {
            Self::Player { fps, .. } | Self::Game { fps, .. } => Some(1.0 / fps),
            Self::FilmPlayer { fps, .. } => Some(1.0 / f64::from(*fps)),
            Self::Audio {
                frames, rate_hz, ..
            } => Some(1.0 / Self::periods_per_s(*frames, *rate_hz)),
            Self::Typist {
                keys_per_s,
                regular: true,
                ..
            } => Some(1.0 / keys_per_s),
            Self::Waker { interval_us } => Some(interval_us / 1e6),
            Self::Sink { events_per_s, .. } => Some(1.0 / events_per_s),
            _ => None,
        }
    }

    /// What its work is like, as it can say of itself in a session; none: it says nothing.
    pub fn cycle(&self) -> Option<Cycle> {
        let largest = |work_ms: &[f64]| work_ms.iter().copied().fold(0.0, f64::max) / 1e3;
        match self {
            Self::Player { work_ms, .. }
            | Self::Game { work_ms, .. }
            | Self::Audio { work_ms, .. } => Some(Cycle {
                period_s: self.beat_s(),
                budget_s: Some(largest(work_ms)),
            }),
            Self::Typist { .. } | Self::Waker { .. } | Self::Sink { .. } => Some(Cycle::default()),
            // It finds out its period by itself.
            Self::FilmPlayer { .. } => Some(Cycle::default()),
            _ => None,
        }
    }

    /// The kind's name in scenarios and results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Player { .. } => "player",
            Self::Typist { .. } => "typist",
            Self::Game { .. } => "game",
            Self::Audio { .. } => "audio",
            Self::Server => "server",
            Self::Client { .. } => "client",
            Self::Sink { .. } => "sink",
            Self::Loop => "loop",
            Self::Batch { .. } => "batch",
            Self::Disk { .. } => "disk",
            Self::Crowd { .. } => "crowd",
            Self::Dhrystone => "dhrystone",
            Self::Pingpong { .. } => "pingpong",
            Self::Waker { .. } => "waker",
            Self::Mpv { .. } => "mpv",
            Self::Xvfb { .. } => "xvfb",
            Self::Jack { .. } => "jack",
            Self::JackClient { .. } => "jack-client",
            Self::FilmServer { .. } => "film-server",
            Self::FilmPlayer { .. } => "film-player",
            Self::Make { .. } => "make",
            Self::Command { .. } => "command",
        }
    }

    /// The program of kind `server` that it asks.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Player { display, .. } | Self::Typist { display, .. } => {
                display.server.as_deref()
            }
            Self::Client { server, .. } => Some(server),
            _ => None,
        }
    }

    /// The server that it cannot do without, and of which kind that must be.
    pub(super) fn asks(&self) -> Option<(&str, &'static str)> {
        match self {
            Self::Mpv { display, .. } => Some((display.as_deref()?, "xvfb")),
            Self::JackClient { server, .. } => Some((server, "jack")),
            Self::FilmPlayer { server, .. } => Some((server, "film-server")),
            kind => Some((kind.server()?, "server")),
        }
    }

    /// Whether it may start other processes.
    pub(crate) fn has_children(&self) -> bool {
        !matches!(
            self,
            Self::Player { .. }
                | Self::Typist { .. }
                | Self::Game { .. }
                | Self::Audio { .. }
                | Self::Server
                | Self::Client { .. }
                | Self::Sink { .. }
                | Self::Loop
                | Self::Disk { .. }
                | Self::Crowd { .. }
                | Self::Dhrystone
                | Self::Waker { .. }
                | Self::FilmServer { .. }
                | Self::FilmPlayer { .. }
        )
    }

    /// Whether it comes to an end of its own.
    pub(crate) fn ends_by_itself(&self) -> bool {
        matches!(
            self,
            Self::Mpv { untimed: false, .. } | Self::FilmPlayer { .. }
        )
    }

    /// What it asks for that only the simulator has, in words, if there is any such thing.
    pub fn only_simulated(&self) -> Option<&'static str> {
        let given = |asked: bool, what| asked.then_some(what);
        match self {
            Self::Player { display, .. } | Self::Typist { display, .. } => {
                given(display.ahead > MAX_AHEAD_ON_KERNEL, "`ahead` above 128")
            }
            Self::Batch { fork_ms, .. } => given(fork_ms.is_some(), "`fork_ms`"),
            _ => None,
        }
    }

    /// Makes every piece of its work `factor` times as long; times that pass without work stay.
    pub(super) fn scale_work(&mut self, factor: f64) {
        let mut scale = |list: &mut [f64]| list.iter_mut().for_each(|ms| *ms *= factor);
        match self {
            Self::Player {
                work_ms, display, ..
            }
            | Self::Typist {
                work_ms, display, ..
            } => {
                scale(work_ms);
                scale(std::slice::from_mut(&mut display.work_ms));
            }
            Self::Game {
                work_ms, update_ms, ..
            } => {
                scale(work_ms);
                scale(std::slice::from_mut(update_ms));
            }
            Self::Client { work_ms, .. } => scale(std::slice::from_mut(work_ms)),
            Self::Sink { work_ms, .. }
            | Self::Audio { work_ms, .. }
            | Self::Disk { work_ms, .. } => {
                scale(work_ms);
            }
            Self::Batch { work_ms, fork_ms } => {
                scale(work_ms);
                fork_ms.as_mut().map(std::slice::from_mut).map(&mut scale);
            }
            Self::Server
            | Self::Loop
            | Self::Crowd { .. }
            | Self::Dhrystone
            | Self::Pingpong { .. }
            | Self::Waker { .. }
            | Self::Mpv { .. }
            | Self::Xvfb { .. }
            | Self::Jack { .. }
            | Self::JackClient { .. }
            | Self::FilmServer { .. }
            | Self::FilmPlayer { .. }
            | Self::Make { .. }
            | Self::Command { .. } => {}
        }
    }

    /// Whether no simulator knows what it does.
    pub(crate) fn is_only_on_kernel(&self) -> bool {
        self.is_real() || matches!(self, Self::Crowd { .. })
    }

    /// Whether it needs programs and files of a whole system, not only this binary.
    pub fn is_real(&self) -> bool {
        matches!(
            self,
            Self::Mpv { .. }
                | Self::Xvfb { .. }
                | Self::Jack { .. }
                | Self::JackClient { .. }
                | Self::FilmServer { .. }
                | Self::FilmPlayer { .. }
                | Self::Make { .. }
                | Self::Command { .. }
        )
    }
}

pub(super) const KINDS: [&str; 22] = [
    "player",
    "typist",
    "game",
    "audio",
    "server",
    "client",
    "sink",
    "loop",
    "batch",
    "disk",
    "crowd",
    "dhrystone",
    "pingpong",
    "waker",
    "mpv",
    "xvfb",
    "jack",
    "jack-client",
    "film-server",
    "film-player",
    "make",
    "command",
];

pub(super) fn read(name: &str, section: &mut Section<'_>) -> Result<Kind, DocumentError> {
    Ok(match name {
        "player" => Kind::Player {
            fps: section.number("fps", 30.0, 0.1..=1000.0)?,
            drops: section.get("drops")?.unwrap_or(true),
            by_clock: section.get("work_by_clock")?.unwrap_or(false),
            work_ms: read_frame_work(section)?,
            display: Display {
                exchanges: section.number("exchanges", 1.0, 1.0..=1000.0)? as u32,
                ..read_display(section)?
            },
        },
        "typist" => Kind::Typist {
            keys_per_s: section.number("keys_per_s", 8.0, 0.01..=1000.0)?,
            regular: section.get("regular")?.unwrap_or(false),
            work_ms: read_times(section, "work_ms", Some(1.0))?,
            input_ms: read_times(section, "input_ms", Some(0.0))?,
            until_s: time(section, "until_s", 0.0)?,
            seed: section.get("seed")?.unwrap_or(1),
            display: read_display(section)?,
        },
        "game" => Kind::Game {
            fps: section.number("fps", 60.0, 0.1..=1000.0)?,
            work_ms: read_times(section, "work_ms", None)?,
            updates_per_s: section.number("updates_per_s", 30.0, 0.01..=1000.0)?,
            update_ms: section.number("update_ms", 0.2, WORK_MS)?,
        },
        "audio" => read_audio(section)?,
        "server" => Kind::Server,
        "client" => Kind::Client {
            server: section.need("server")?,
            work_ms: section.number("work_ms", 1.0, WORK_MS)?,
            think_ms: section.number("think_ms", 0.0, WORK_MS)?,
        },
        "sink" => Kind::Sink {
            events_per_s: section.number("events_per_s", 10.0, 0.01..=1000.0)?,
            jitter_ms: section.number("jitter_ms", 0.0, WORK_MS)?,
            work_ms: read_times(section, "work_ms", None)?,
            seed: section.get("seed")?.unwrap_or(1),
            to_end: section.get("to_end")?.unwrap_or(false),
        },
        "loop" => Kind::Loop,
        "batch" => Kind::Batch {
            work_ms: read_times(section, "work_ms", Some(10.0))?,
            fork_ms: match section.get::<f64>("fork_ms")? {
                None => None,
                Some(_) => Some(section.number("fork_ms", 0.0, WORK_MS)?),
            },
        },
        "disk" => Kind::Disk {
            work_ms: read_times(section, "work_ms", Some(3.0))?,
            wait_ms: read_times(section, "wait_ms", Some(2.0))?,
        },
        "crowd" => Kind::Crowd {
            threads: section.number("threads", 1000.0, 1.0..=20_000.0)? as u32,
            yields: section.number("yields", 0.0, 0.0..=1e6)? as u32,
        },
        "dhrystone" => Kind::Dhrystone,
        "pingpong" => Kind::Pingpong {
            window: section.number("window", 1000.0, 1.0..=1e6)? as u32,
        },
        "waker" => Kind::Waker {
            interval_us: section.number("interval_us", 1e4, 10.0..=1e8)?,
        },
        "mpv" => Kind::Mpv {
            clip: read_clip(section)?,
            warm_up_s: section.number("warm_up_s", 1.0, 0.0..=60.0)?,
            display: section.get("display")?,
            untimed: section.get("untimed")?.unwrap_or(false),
        },
        "xvfb" => {
            let (width, height) = read_size(section)?.unwrap_or((1280, 720));
            let screen = Screen { width, height };
            Kind::Xvfb { screen }
        }
        "jack" => {
            let (frames, rate_hz) = read_period(section)?;
            Kind::Jack { frames, rate_hz }
        }
        "jack-client" => Kind::JackClient {
            server: section.need("server")?,
            load_percent: (section.number("load", 0.25, 0.01..=0.99)? * 100.0).round() as u32,
        },
        "film-server" => Kind::FilmServer {
            clip: read_clip(section)?,
        },
        "film-player" => Kind::FilmPlayer {
            server: section.need("server")?,
            by_udp: section.get("udp")?.unwrap_or(false),
            fps: section.number("fps", 30.0, 1.0..=240.0)? as u32,
        },
        "make" => Kind::Make {
            jobs: section.number("jobs", 8.0, 1.0..=1000.0)? as u32,
        },
        "command" => {
            let argv: Vec<String> = section.need("argv")?;
            if argv.is_empty() {
                return Err(section.error("argv", "names no program"));
            }
            let needs = section.get("needs")?.unwrap_or_default();
            Kind::Command { argv, needs }
        }
        wrong => {
            let hint = suggest(wrong, KINDS.into_iter());
            return Err(section.error("kind", format!("unknown kind `{wrong}`{hint}")));
        }
    })
}

/// One or more times; without a default, they must be given.
fn read_times(
    section: &mut Section<'_>,
    key: &'static str,
    default_ms: Option<f64>,
) -> Result<Vec<f64>, DocumentError> {
    let given: Option<Vec<f64>> = match default_ms {
        None => Some(section.need(key)?),
        Some(_) => section.get(key)?,
    };
    let times_ms = given.unwrap_or_else(|| default_ms.into_iter().collect());
    if times_ms.is_empty() || times_ms.iter().any(|ms| !WORK_MS.contains(ms)) {
        return Err(section.error(key, "give one or more times from 0 to 60000"));
    }
    Ok(times_ms)
}

fn read_display(section: &mut Section<'_>) -> Result<Display, DocumentError> {
    Ok(Display {
        work_ms: section.number("display_ms", 0.0, WORK_MS)?,
        server: section.get("server")?,
        exchanges: 1,
        ahead: section.number("ahead", 0.0, 0.0..=f64::from(MAX_AHEAD))? as u32,
    })
}

/// Sound: `work_ms` per period, or `load`, the part of each period that the work takes.
fn read_audio(section: &mut Section<'_>) -> Result<Kind, DocumentError> {
    let (frames, rate_hz) = read_period(section)?;
    let period_ms = f64::from(frames) / f64::from(rate_hz) * 1e3;
    let load = section.number("load", 0.25, 0.0..=10.0)?;
    Ok(Kind::Audio {
        frames,
        rate_hz,
        work_ms: read_times(section, "work_ms", Some(load * period_ms))?,
    })
}

/// A sound card's period [samples], and how many samples there are in a second.
fn read_period(section: &mut Section<'_>) -> Result<(u32, u32), DocumentError> {
    section.need::<u32>("frames")?;
    let frames = section.number("frames", 0.0, 16.0..=8192.0)? as u32;
    let rate_hz = section.number("rate_hz", 48_000.0, 8_000.0..=192_000.0)? as u32;
    Ok((frames, rate_hz))
}

/// The work of a player's frames: `work_ms`, or what was recorded of a film.
fn read_frame_work(section: &mut Section<'_>) -> Result<Vec<f64>, DocumentError> {
    let Some(trace) = section.node("work_trace") else {
        return read_times(section, "work_ms", None);
    };
    let file: String = section.need("work_trace")?;
    // Beside the scenario, wherever that is read from.
    let folder = Path::new(&trace.origin.file).parent();
    let path = folder.unwrap_or(Path::new("")).join(&file);
    let fail = |section: &Section<'_>, message: String| {
        section.error("work_trace", format!("{}: {message}", path.display()))
    };
    let text = std::fs::read_to_string(&path)
        .map_err(|error| fail(section, format!("cannot be read: {error}")))?;
    let scale = section.number("work_scale", 1.0, 0.001..=1000.0)?;
    let mut work_ms = parse_trace(&text).map_err(|message| fail(section, message))?;
    for ms in &mut work_ms {
        *ms *= scale;
    }
    let first = section.number("work_first", 0.0, 0.0..=1e6)? as usize % work_ms.len();
    work_ms.rotate_left(first);
    Ok(work_ms)
}

/// A number [ms] a line; `#` begins a comment.
fn parse_trace(text: &str) -> Result<Vec<f64>, String> {
    let mut work_ms = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let ms = line.parse().ok().filter(|ms| (0.0..=60_000.0).contains(ms));
        work_ms.push(
            ms.ok_or_else(|| format!("line {}: `{line}` is no time from 0 to 60000", number + 1))?,
        );
    }
    match work_ms.is_empty() {
        true => Err("has no frame".to_owned()),
        false => Ok(work_ms),
    }
}

fn read_clip(section: &mut Section<'_>) -> Result<Clip, DocumentError> {
    let mut clip = Clip {
        width: 640,
        height: 360,
        fps: 30,
        length_s: 12,
    };
    if let Some(size) = read_size(section)? {
        (clip.width, clip.height) = size;
    }
    clip.fps = section.number("fps", 30.0, 1.0..=240.0)? as u32;
    clip.length_s = section.number("length_s", 12.0, 1.0..=600.0)? as u32;
    Ok(clip)
}

/// `size = "WIDTHxHEIGHT"` [pixels], if it is given.
fn read_size(section: &mut Section<'_>) -> Result<Option<(u32, u32)>, DocumentError> {
    let Some(size) = section.node("size") else {
        return Ok(None);
    };
    let pixels = match &size.value {
        Value::Text(_) => String::from_node(size),
        _ => None,
    };
    let parsed = pixels
        .as_deref()
        .and_then(|text| text.split_once('x'))
        .and_then(|(w, h)| {
            Some((w.parse().ok()?, h.parse().ok()?)).filter(|(w, h): &(u32, u32)| {
                (16..=4096).contains(w) && (16..=4096).contains(h) && w % 2 == 0 && h % 2 == 0
            })
        });
    match parsed {
        Some(size) => Ok(Some(size)),
        None => Err(section.error(
            "size",
            "give even WIDTHxHEIGHT from 16 to 4096, e.g. \"640x360\"",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_trace;

    #[test]
    fn a_trace_is_a_number_a_line() {
        assert_eq!(parse_trace("# ms\n1.5\n\n 2 \n").unwrap(), [1.5, 2.0]);
        assert!(parse_trace("# nothing\n").is_err());
        let error = parse_trace("1\n1,5\n").unwrap_err();
        assert!(error.starts_with("line 2: `1,5`"), "{error}");
        assert!(parse_trace("-1\n").is_err());
    }
}
