//! What programs do: the kinds, and what each can be told.

mod read;

use andante_admission::Rate;
use andante_sim::Ns;
use andante_sim::programs::Beats;
use serde::{Deserialize, Serialize};

use crate::disk::{IoClass, ReadPattern};

#[cfg(test)]
pub(super) use read::KINDS;
pub(super) use read::read;

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
    /// Sends to a receiver of its own in the other network.
    Sender {
        /// Of a datagram, or of a piece of a stream [bytes].
        bytes: u32,
        /// From one to the next [ms]; 0: as fast as it can.
        every_ms: f64,
        /// So many each time, one right after the other, repeated like a group of pictures.
        burst: Vec<u32>,
        /// Whether a stream (TCP), and not datagrams (UDP).
        by_tcp: bool,
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
    /// Reads from the scenario's disk (kernel).
    Reader {
        /// When, and where.
        pattern: ReadPattern,
        /// Each time [bytes].
        bytes: u64,
        /// Reads at a time.
        depth: u32,
        /// From the end of one to the begin of the next [ms].
        think_ms: f64,
        /// What it asks of the kernel with `ioprio_set(2)`; none: nothing.
        io_class: Option<IoClass>,
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
    /// Shows frames periodically, for each of which it touches another part of its memory.
    MemoryPlayer {
        /// Frames per second.
        fps: f64,
        /// Memory of its own [bytes].
        anonymous_bytes: u64,
        /// A file that it maps, as a library [bytes]; 0: none.
        library_bytes: u64,
        /// Between having touched all of it and the first frame [s].
        wait_s: f64,
    },
    /// Touches its memory at random, without end.
    MemoryHog {
        /// Memory of its own [bytes].
        bytes: u64,
    },
    /// Maps the file that a player maps as its library, reads it once, and stays.
    MemoryReader {
        /// Of the file [bytes].
        library_bytes: u64,
    },
    /// Unmodified mpv plays a clip, once if nothing else is said.
    Mpv {
        /// What it plays.
        clip: Clip,
        /// Play the first seconds once before everything else, to fill the caches [s].
        warm_up_s: f64,
        /// The program of kind `xvfb` that draws the pictures; none: nobody does.
        display: Option<String>,
        /// The program of kind `rtp-server` whose stream it plays as it comes, until the measurement ends; none: a
        /// file.
        stream: Option<String>,
        /// As fast as it can, without sound, over and over until the measurement ends.
        untimed: bool,
        /// When it is paused by its user.
        pause: Option<Pause>,
        /// When its user goes elsewhere in the film.
        seek: Option<Seek>,
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
    /// Streams a film and its sound to an mpv: unmodified ffmpeg, over RTP.
    RtpServer {
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
    /// Serves a page: unmodified nginx.
    WebServer {
        /// Of the page [kB].
        page_kb: u32,
        /// Whether it is compressed each time for who takes that.
        gzip: bool,
    },
    /// Asks a web server for its page again and again.
    WebClient {
        /// The program of kind `web-server` that it asks.
        server: String,
        /// So many ask at once, each when it has the page before.
        connections: u32,
        /// Whether it takes a compressed one.
        gzip: bool,
    },
    /// Unmodified iperf3: its server sends to its client in the other network.
    Iperf3 {
        /// Connections, or flows of datagrams, at once.
        streams: u32,
        /// Whether datagrams (UDP), and not a stream (TCP).
        by_udp: bool,
        /// Of each; none: as fast as it can.
        rate: Option<Rate>,
    },
    /// Unmodified ping of the host in the other network.
    Ping {
        /// From one request to the next [ms].
        every_ms: f64,
        /// Of a request, without headers [bytes].
        bytes: u32,
    },
    /// Unmodified curl gets a web server's page again and again.
    Curl {
        /// The program of kind `web-server` that it asks.
        server: String,
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

impl Kind {
    /// How many CPUs one instance can use at once; none: as many as there are, or nobody can say.
    pub fn cpus_at_once(&self) -> Option<u32> {
        let and_server =
            |display: &Display| 1 + u32::from(display.work_ms > 0.0 && display.server.is_none());
        match self {
            Self::Player { display, .. } | Self::Typist { display, .. } => {
                Some(and_server(display))
            }
            Self::Audio { .. }
            | Self::Server
            | Self::Client { .. }
            | Self::Sink { .. }
            | Self::Loop
            | Self::Disk { .. }
            | Self::Dhrystone
            | Self::Waker { .. }
            | Self::MemoryPlayer { .. }
            | Self::MemoryHog { .. }
            | Self::MemoryReader { .. } => Some(1),
            // Its threads wait, mostly.
            Self::Reader { depth, .. } => Some(*depth),
            // Two that take turns, mostly.
            Self::Sender { .. }
            | Self::Game { .. }
            | Self::Batch { .. }
            | Self::Pingpong { .. } => Some(2),
            _ => None,
        }
    }
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

/// A pause that the user of a film makes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    /// When [s since the measurement began].
    pub at_s: f64,
    /// For how long [s].
    pub for_s: f64,
}

/// The place from which the user of a film has it go on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Seek {
    /// When [s since the measurement began].
    pub at_s: f64,
    /// Where the film goes on [s since its beginning].
    pub to_s: f64,
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
    pub fn periods_per_s(frames: u32, rate_hz: u32) -> f64 {
        f64::from(rate_hz) / f64::from(frames)
    }

    /// The time between two things that it does at even distances [s], if it does.
    pub fn beat_s(&self) -> Option<f64> {
        match self {
            Self::Player { fps, .. } | Self::Game { fps, .. } | Self::MemoryPlayer { fps, .. } => {
                Some(1.0 / fps)
            }
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
            Self::Sender { every_ms, .. } if *every_ms > 0.0 => Some(every_ms / 1e3),
            Self::Reader {
                pattern: ReadPattern::Periodic { every_ms, .. },
                ..
            } => Some(every_ms / 1e3),
            _ => None,
        }
    }

    /// The instants of events of instance `number` among all of the scenario, from `begin_ns` on; none: it is no
    /// sink. They are the same on a kernel and in the simulator.
    pub fn beats(&self, begin_ns: Ns, number: u32) -> Option<Beats> {
        let Self::Sink {
            events_per_s,
            jitter_ms,
            seed,
            ..
        } = self
        else {
            return None;
        };
        Some(Beats {
            begin_ns,
            rate: *events_per_s,
            jitter_ns: (jitter_ms * 1e6).round() as Ns,
            seed: u64::from(*seed) + u64::from(number),
            resolution_ns: 1,
        })
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
            Self::Sender { .. } => "sender",
            Self::Loop => "loop",
            Self::Batch { .. } => "batch",
            Self::Disk { .. } => "disk",
            Self::Reader { .. } => "reader",
            Self::Crowd { .. } => "crowd",
            Self::Dhrystone => "dhrystone",
            Self::Pingpong { .. } => "pingpong",
            Self::Waker { .. } => "waker",
            Self::MemoryPlayer { .. } => "memory-player",
            Self::MemoryHog { .. } => "memory-hog",
            Self::MemoryReader { .. } => "memory-reader",
            Self::Mpv { .. } => "mpv",
            Self::Xvfb { .. } => "xvfb",
            Self::Jack { .. } => "jack",
            Self::JackClient { .. } => "jack-client",
            Self::FilmServer { .. } => "film-server",
            Self::RtpServer { .. } => "rtp-server",
            Self::WebServer { .. } => "web-server",
            Self::WebClient { .. } => "web-client",
            Self::Iperf3 { .. } => "iperf3",
            Self::Ping { .. } => "ping",
            Self::Curl { .. } => "curl",
            Self::FilmPlayer { .. } => "film-player",
            Self::Make { .. } => "make",
            Self::Command { .. } => "command",
        }
    }

    /// The length of the file that it maps as a library [bytes], if it maps one.
    pub fn library_bytes(&self) -> Option<u64> {
        match self {
            Self::MemoryPlayer { library_bytes, .. } | Self::MemoryReader { library_bytes } => {
                Some(*library_bytes).filter(|bytes| *bytes > 0)
            }
            _ => None,
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

    /// The servers that it cannot do without, and of which kind they must be.
    pub(super) fn asks(&self) -> Vec<(&str, &'static str)> {
        match self {
            Self::Mpv {
                display, stream, ..
            } => {
                let display = display.iter().map(|name| (name.as_str(), "xvfb"));
                let stream = stream.iter().map(|name| (name.as_str(), "rtp-server"));
                display.chain(stream).collect()
            }
            Self::JackClient { server, .. } => vec![(server, "jack")],
            Self::FilmPlayer { server, .. } => vec![(server, "film-server")],
            Self::WebClient { server, .. } | Self::Curl { server } => {
                vec![(server, "web-server")]
            }
            kind => kind
                .server()
                .map(|name| (name, "server"))
                .into_iter()
                .collect(),
        }
    }

    /// Whether it may start other processes.
    pub fn has_children(&self) -> bool {
        !matches!(
            self,
            Self::Player { .. }
                | Self::Typist { .. }
                | Self::Game { .. }
                | Self::Audio { .. }
                | Self::Server
                | Self::Client { .. }
                | Self::Sink { .. }
                | Self::Sender { .. }
                | Self::Loop
                | Self::Disk { .. }
                | Self::Reader { .. }
                | Self::Crowd { .. }
                | Self::Dhrystone
                | Self::Waker { .. }
                | Self::MemoryPlayer { .. }
                | Self::MemoryHog { .. }
                | Self::MemoryReader { .. }
                | Self::FilmServer { .. }
                | Self::RtpServer { .. }
                | Self::WebServer { .. }
                | Self::WebClient { .. }
                | Self::FilmPlayer { .. }
        )
    }

    /// Whether it sends to the other network by itself, and nobody has to be there for it.
    pub fn brings_other_end(&self) -> bool {
        matches!(
            self,
            Self::Sender { .. } | Self::Iperf3 { .. } | Self::Ping { .. }
        )
    }

    /// Whether it comes to an end of its own.
    pub fn ends_by_itself(&self) -> bool {
        matches!(
            self,
            Self::Mpv {
                untimed: false,
                stream: None,
                ..
            } | Self::FilmPlayer { .. }
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
            | Self::Sender { .. }
            | Self::Loop
            | Self::Reader { .. }
            | Self::Crowd { .. }
            | Self::Dhrystone
            | Self::Pingpong { .. }
            | Self::Waker { .. }
            | Self::MemoryPlayer { .. }
            | Self::MemoryHog { .. }
            | Self::MemoryReader { .. }
            | Self::Mpv { .. }
            | Self::Xvfb { .. }
            | Self::Jack { .. }
            | Self::JackClient { .. }
            | Self::FilmServer { .. }
            | Self::RtpServer { .. }
            | Self::WebServer { .. }
            | Self::WebClient { .. }
            | Self::Iperf3 { .. }
            | Self::Ping { .. }
            | Self::Curl { .. }
            | Self::FilmPlayer { .. }
            | Self::Make { .. }
            | Self::Command { .. } => {}
        }
    }

    /// Whether no simulator knows what it does.
    pub fn is_only_on_kernel(&self) -> bool {
        self.is_real()
            || matches!(
                self,
                Self::Crowd { .. }
                    | Self::Reader { .. }
                    | Self::MemoryPlayer { .. }
                    | Self::MemoryHog { .. }
                    | Self::MemoryReader { .. }
                    | Self::WebClient { .. }
                    | Self::Iperf3 { .. }
                    | Self::Ping { .. }
                    | Self::Curl { .. }
            )
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
                | Self::RtpServer { .. }
                | Self::WebServer { .. }
                | Self::FilmPlayer { .. }
                | Self::Make { .. }
                | Self::Command { .. }
        )
    }
}
