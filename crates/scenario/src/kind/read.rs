//! Reads what a program does, from its part of a scenario.

use std::path::Path;

use andante_document::{DocumentError, FromNode, Section, Value, suggest};

use super::{Clip, Display, Kind, MAX_AHEAD, Pause, Screen, Seek, WORK_MS};
use crate::memory::read_bytes;
use crate::time::time;

/// The room in Ethernet's 1500 bytes beside the headers of IPv4 and UDP [bytes].
const LARGEST_DATAGRAM: u32 = 1472;

/// The most connections that iperf3 takes (`MAX_STREAMS`).
const MOST_STREAMS: f64 = 128.0;

/// The memory that a program of the laboratory can have [bytes]: a page at least.
const MEMORY_BYTES: std::ops::RangeInclusive<u64> = 4096..=16 << 30;

pub const KINDS: [&str; 33] = [
    "player",
    "typist",
    "game",
    "audio",
    "server",
    "client",
    "sink",
    "sender",
    "loop",
    "batch",
    "disk",
    "reader",
    "crowd",
    "dhrystone",
    "pingpong",
    "waker",
    "memory-player",
    "memory-hog",
    "memory-reader",
    "mpv",
    "xvfb",
    "jack",
    "jack-client",
    "film-server",
    "rtp-server",
    "web-server",
    "web-client",
    "iperf3",
    "ping",
    "curl",
    "film-player",
    "make",
    "command",
];

pub fn read(name: &str, section: &mut Section<'_>) -> Result<Kind, DocumentError> {
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
        "sender" => read_sender(section)?,
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
        "reader" => crate::disk::read_reader(section)?,
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
        "memory-player" => Kind::MemoryPlayer {
            fps: section.number("fps", 30.0, 0.1..=1000.0)?,
            anonymous_bytes: read_memory(section, "anonymous", Some(60 << 20))?,
            library_bytes: match section.node("library") {
                None => 0,
                Some(_) => read_memory(section, "library", None)?,
            },
            wait_s: section.number("wait_s", 0.0, 0.0..=600.0)?,
        },
        "memory-hog" => Kind::MemoryHog {
            bytes: read_memory(section, "size", Some(40 << 20))?,
        },
        "memory-reader" => Kind::MemoryReader {
            library_bytes: read_memory(section, "library", None)?,
        },
        "mpv" => read_mpv(section)?,
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
        "rtp-server" => Kind::RtpServer {
            clip: read_clip(section)?,
        },
        "web-server" => Kind::WebServer {
            page_kb: section.number("page_kb", 10.0, 1.0..=1e5)? as u32,
            gzip: section.get("gzip")?.unwrap_or(false),
        },
        "web-client" => Kind::WebClient {
            server: section.need("server")?,
            connections: section.number("connections", 8.0, 1.0..=1000.0)? as u32,
            gzip: section.get("gzip")?.unwrap_or(false),
        },
        "iperf3" => read_iperf3(section)?,
        "ping" => Kind::Ping {
            every_ms: section.number("every_ms", 1000.0, 1.0..=60_000.0)?,
            bytes: section.number("bytes", 56.0, 16.0..=f64::from(LARGEST_DATAGRAM))? as u32,
        },
        "curl" => Kind::Curl {
            server: section.need("server")?,
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

/// Memory that is touched: at least a page. Without a usual length it must be given.
fn read_memory(
    section: &mut Section<'_>,
    key: &'static str,
    usual: Option<u64>,
) -> Result<u64, DocumentError> {
    let given = read_bytes(section, key)?;
    match given.or(usual) {
        Some(bytes) if MEMORY_BYTES.contains(&bytes) => Ok(bytes),
        Some(_) => Err(section.error(key, "give 4K to 16G")),
        None => {
            let message = format!("`{key}` is missing: give a length of memory, as in \"15M\"");
            Err(section.error("", message))
        }
    }
}

fn read_mpv(section: &mut Section<'_>) -> Result<Kind, DocumentError> {
    let stream: Option<String> = section.get("stream")?;
    let untimed = section.get("untimed")?.unwrap_or(false);
    let pause = match section.node("pause_at_s") {
        None => None,
        Some(_) => {
            section.need::<f64>("pause_for_s")?;
            Some(Pause {
                at_s: section.number("pause_at_s", 0.0, 0.0..=3600.0)?,
                for_s: section.number("pause_for_s", 0.0, 0.1..=3600.0)?,
            })
        }
    };
    if pause.is_none() && section.node("pause_for_s").is_some() {
        let message = "nothing pauses: `pause_at_s` is missing";
        return Err(section.error("pause_for_s", message));
    }
    let seek = match section.node("seek_at_s") {
        None => None,
        Some(_) => {
            section.need::<f64>("seek_to_s")?;
            Some(Seek {
                at_s: section.number("seek_at_s", 0.0, 0.0..=3600.0)?,
                to_s: section.number("seek_to_s", 0.0, 0.0..=3600.0)?,
            })
        }
    };
    if seek.is_none() && section.node("seek_to_s").is_some() {
        let message = "nobody seeks: `seek_at_s` is missing";
        return Err(section.error("seek_to_s", message));
    }
    if (untimed || stream.is_some()) && (pause.is_some() || seek.is_some()) {
        let message =
            "a film that comes as a stream, or that is not timed, has no user who pauses or seeks";
        return Err(section.error("", message));
    }
    Ok(Kind::Mpv {
        clip: read_clip(section)?,
        warm_up_s: section.number("warm_up_s", 1.0, 0.0..=60.0)?,
        display: section.get("display")?,
        stream,
        untimed,
        pause,
        seek,
    })
}

fn read_sender(section: &mut Section<'_>) -> Result<Kind, DocumentError> {
    let by_tcp = section.get("tcp")?.unwrap_or(false);
    // A datagram is not to be divided: its number and time are at its beginning.
    let largest = if by_tcp { 65_536 } else { LARGEST_DATAGRAM };
    let bytes = section.number("bytes", 1400.0, 16.0..=f64::from(largest))?;
    Ok(Kind::Sender {
        bytes: bytes as u32,
        every_ms: section.number("every_ms", 0.0, WORK_MS)?,
        burst: read_bursts(section)?,
        by_tcp,
    })
}

/// One or more numbers of pieces. A family computes them, so they need not be whole.
fn read_bursts(section: &mut Section<'_>) -> Result<Vec<u32>, DocumentError> {
    let bursts: Vec<f64> = section.get("burst")?.unwrap_or_else(|| vec![1.0]);
    if bursts.is_empty() || bursts.iter().any(|burst| !(1.0..=1e4).contains(burst)) {
        let message = "give one or more numbers from 1 to 10000, as in [40, 4, 4, 4]";
        return Err(section.error("burst", message));
    }
    Ok(bursts.into_iter().map(|burst| burst as u32).collect())
}

fn read_iperf3(section: &mut Section<'_>) -> Result<Kind, DocumentError> {
    let rate: Option<String> = section.get("rate")?;
    let rate = rate.map(|text| text.parse()).transpose();
    Ok(Kind::Iperf3 {
        streams: section.number("streams", 1.0, 1.0..=MOST_STREAMS)? as u32,
        by_udp: section.get("udp")?.unwrap_or(false),
        rate: rate.map_err(|why| section.error("rate", why))?,
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
