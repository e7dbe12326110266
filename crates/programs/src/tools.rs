//! The programs by which people measure links, unmodified: iperf3, ping and curl. Each is a child whose words are read as
//! they come; what is counted is what it says, or has received.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, Stdio};

use andante_admission::Rate;
use andante_job::stop;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use super::{Order, Peer, Samples, assets, preallocated, record};
use crate::clock::{NS_PER_S, now_ns, sleep_until};

/// How often is looked whether it is to end, while nothing is heard [ms].
const LOOK_MS: u16 = 100;
const LOOK_NS: u64 = LOOK_MS as u64 * 1_000_000;
/// When to ask a server again that is not there yet [ns].
const AGAIN_NS: u64 = 10_000_000;
/// The first port of iperf3's servers, which is its usual one.
const FIRST_PORT: u32 = 5201;
/// How often iperf3 says what it has received, which is as often as it can [s].
const INTERVAL_S: &str = "0.1";
/// A test that takes a day does not end before it is told to [s].
const A_DAY_S: &str = "86400";
/// More than any curl gets of a page.
const PAGES: &str = "1000000";

/// A child, which ends with this.
struct Tool {
    name: &'static str,
    child: Child,
}

impl Tool {
    /// Starts it, in another network if one is given, with its output to read.
    fn start(name: &'static str, arguments: &[&str], network: Option<&Peer>) -> io::Result<Self> {
        let file = assets::measuring(name).map_err(io::Error::other)?;
        let network = network.map(|peer| File::open(&peer.network)).transpose()?;
        let mut command = Command::new(file);
        // The signal that ends the measurement is for us: the child is told afterwards.
        command
            .args(arguments)
            .env("LC_ALL", "C")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        // SAFETY: only system calls that are safe between fork and exec.
        unsafe {
            command.pre_exec(move || {
                if let Some(network) = &network {
                    setns(network, CloneFlags::CLONE_NEWNET)?;
                }
                // Nothing may be left if this process is killed.
                Ok(prctl::set_pdeathsig(Signal::SIGKILL)?)
            });
        }
        let child = command.spawn()?;
        Ok(Self { name, child })
    }

    fn output(&mut self) -> io::Result<ChildStdout> {
        let taken = self.child.stdout.take();
        taken.ok_or_else(|| io::Error::other(format!("the output of {} is read", self.name)))
    }

    /// Tells `heard` what it says, until SIGTERM.
    fn follow(&mut self, mut heard: impl FnMut(&[u8])) -> io::Result<()> {
        let mut output = self.output()?;
        let mut piece = [0; 65_536];
        while !stop::requested() {
            if !says_something(&output)? {
                continue;
            }
            match output.read(&mut piece) {
                Ok(0) => return Err(self.too_early()),
                Ok(length) => heard(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn tell(&self, signal: Signal) {
        // It may just have ended; then there is nothing to signal.
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// An error for one that has ended by itself.
    fn too_early(&mut self) -> io::Error {
        let how = match self.child.wait() {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("with status {code}"),
                (None, signal) => format!("by signal {}", signal.unwrap_or(0)),
            },
            Err(error) => error.to_string(),
        };
        io::Error::other(format!("{} ended early {how}", self.name))
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether there is something to read, after so long at most as is looked.
fn says_something(output: &ChildStdout) -> io::Result<bool> {
    let mut fds = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::from(LOOK_MS)) {
        Ok(ready) => Ok(ready > 0),
        Err(nix::Error::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// iperf3's server sends from here, and its client receives in the other network (`--reverse`): so the one that is
/// told to end, and says when that was, is the one that knows what came.
pub(super) fn iperf3(
    order: &Order,
    streams: u32,
    by_udp: bool,
    rate: Option<Rate>,
) -> io::Result<Samples> {
    let peer = order.other_end()?;
    let port = (FIRST_PORT + order.number).to_string();
    let serve = ["--server", "--one-off", "--forceflush", "--interval", "0"];
    let serve = [&serve[..], &["--port", &port]].concat();
    let mut server = Tool::start("iperf3", &serve, None)?;
    let lines = BufReader::new(server.output()?).lines();
    let mut listening = false;
    // It says no more until the test ends.
    for line in lines.map_while(Result::ok) {
        listening = line.contains("listening");
        if listening {
            break;
        }
    }
    if !listening {
        return Err(server.too_early());
    }
    let streams = streams.to_string();
    let bits = rate.map_or(0, Rate::bits).to_string();
    let mut ask = vec![
        "--client",
        &peer.from,
        "--port",
        &port,
        "--reverse",
        "--json",
    ];
    ask.extend(["--parallel", &streams, "--bitrate", &bits]);
    ask.extend(["--time", A_DAY_S, "--interval", INTERVAL_S]);
    ask.extend(by_udp.then_some("--udp"));
    let mut client = Tool::start("iperf3", &ask, Some(peer))?;
    while !stop::requested() && client.child.try_wait()?.is_none() {
        sleep_until(now_ns() + LOOK_NS);
    }
    let told_ns = now_ns();
    client.tell(Signal::SIGTERM);
    let mut said = Vec::new();
    client.output()?.read_to_end(&mut said)?;
    if !stop::requested() {
        let why = serde_json::from_slice(&said)
            .ok()
            .and_then(|said: Said| said.error);
        return Err(why.map_or_else(|| client.too_early(), io::Error::other));
    }
    let said: Said = serde_json::from_slice(&said).map_err(|error| {
        io::Error::other(format!("what iperf3 says is not understood: {error}"))
    })?;
    Ok(said.measured(order, told_ns))
}

/// The report of iperf3 at its end, as far as it is of interest here.
#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    intervals: Vec<Interval>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Interval {
    sum: Sum,
}

/// Of all streams in an interval.
#[derive(Deserialize)]
struct Sum {
    /// Since the test began [s].
    start: f64,
    end: f64,
    bytes: f64,
    /// Of datagrams.
    lost_packets: Option<f64>,
}

impl Said {
    /// The part in the measurement of a test that ended at `told_ns`. Bytes are spread over their interval.
    fn measured(&self, order: &Order, told_ns: u64) -> Samples {
        let length_s = self.intervals.last().map_or(0.0, |last| last.sum.end);
        // When something was in the test, as others have it.
        let at_s = |s: f64| told_ns as f64 / NS_PER_S - length_s + s;
        let [begin_s, end_s] = [order.begin_ns, order.end_ns].map(|ns| ns as f64 / NS_PER_S);
        let measured = |sum: &Sum| {
            let within_s = at_s(sum.end).min(end_s) - at_s(sum.start).max(begin_s);
            (within_s / (sum.end - sum.start)).clamp(0.0, 1.0)
        };
        let of = |what: &dyn Fn(&Sum) -> f64| -> u64 {
            let sums = self.intervals.iter().map(|interval| &interval.sum);
            let sums = sums.filter(|sum| sum.end > sum.start);
            sums.map(|sum| what(sum) * measured(sum))
                .sum::<f64>()
                .round() as u64
        };
        let datagrams = self
            .intervals
            .iter()
            .any(|one| one.sum.lost_packets.is_some());
        Samples {
            received_bytes: Some(of(&|sum| sum.bytes)),
            lost: datagrams.then(|| of(&|sum| sum.lost_packets.unwrap_or(0.0))),
            ..Samples::default()
        }
    }
}

/// ping of the other network's host. The latency is the round trip, as it says.
pub(super) fn ping(order: &Order, every_ms: f64, bytes: u32) -> io::Result<Samples> {
    let peer = order.other_end()?;
    let every_s = (every_ms / 1e3).to_string();
    let bytes = bytes.to_string();
    // It also says so each time when no answer has come yet: then it is never silent.
    let arguments = ["-n", "-O", "-i", &every_s, "-s", &bytes, &peer.address];
    let mut ping = Tool::start("ping", &arguments, None)?;
    let mut answers = Answers {
        order,
        numbers: None,
        latency_ns: preallocated(order.capacity(1e3 / every_ms), f64::NAN),
        missing: 0,
    };
    let mut line = Vec::new();
    ping.follow(|piece| {
        let at_ns = now_ns();
        for byte in piece {
            match byte {
                b'\n' => {
                    answers.heard(&String::from_utf8_lossy(&line), at_ns);
                    line.clear();
                }
                byte => line.push(*byte),
            }
        }
    })?;
    Ok(answers.samples())
}

struct Answers<'a> {
    order: &'a Order,
    /// Of the first and the last request whose answer came in the measurement.
    numbers: Option<[u64; 2]>,
    latency_ns: Vec<f64>,
    /// So often there was none yet when the next request was sent.
    missing: u64,
}

impl Answers<'_> {
    fn heard(&mut self, line: &str, at_ns: u64) {
        if !self.order.measures(at_ns) {
            return;
        }
        let after = |key: &str| {
            let words = line.split(key).nth(1)?;
            words.split_whitespace().next()
        };
        let number = after("icmp_seq=").and_then(|word| word.parse().ok());
        let ms = after("time=").and_then(|word| word.parse::<f64>().ok());
        match (number, ms) {
            (Some(number), Some(ms)) => {
                let first = self.numbers.map_or(number, |[first, _]| first);
                self.numbers = Some([first, number]);
                record(&mut self.latency_ns, ms * 1e6);
            }
            (Some(_), None) => self.missing += 1,
            _ => {}
        }
    }

    fn samples(self) -> Samples {
        let came = self.latency_ns.len() as u64;
        // An answer may only have been late; one is lost if later ones came.
        let lost = match self.numbers {
            Some([first, last]) => (last + 1).saturating_sub(first + came),
            None => self.missing,
        };
        Samples {
            iterations: Some(came),
            lost: Some(lost),
            latency_ns: self.latency_ns,
            ..Samples::default()
        }
    }
}

/// curl gets a web server's page again and again, over one connection.
pub(super) fn curl(order: &Order) -> io::Result<Samples> {
    let url = order.page()?;
    await_server(url);
    // It takes a range for as many addresses, and no server of files looks behind the question mark.
    let pages = format!("{url}?[1-{PAGES}]");
    let arguments = ["--silent", "--show-error", "--fail", "--no-buffer", &pages];
    let mut curl = Tool::start("curl", &arguments, None)?;
    let mut received = 0;
    curl.follow(|piece| {
        if order.measures(now_ns()) {
            received += piece.len() as u64;
        }
    })?;
    Ok(Samples {
        received_bytes: Some(received),
        ..Samples::default()
    })
}

/// Waits until the server takes connections, or until it is to end; both are told to begin at once.
fn await_server(url: &str) {
    let host = url.trim_start_matches("http://").split('/').next();
    let there = |host| TcpStream::connect(host).is_ok();
    while !stop::requested() && !host.is_some_and(there) {
        sleep_until(now_ns() + AGAIN_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A measurement from 10 s to 12 s.
    fn order() -> Order {
        let order = serde_json::json!({
            "name": "x", "number": 0, "kind": "Loop", "begin_ns": 10_000_000_000_u64,
            "end_ns": 12_000_000_000_u64, "steps_per_ms": 1.0, "out": "", "server": null,
            "session": null, "url": null, "peer": null,
            "library": null, "lock": false,
        });
        serde_json::from_value(order).unwrap()
    }

    #[test]
    fn what_iperf3_received_outside_the_measurement_does_not_count() {
        // A test from 9.5 s to 12.5 s, which was told to end then.
        let said = r#"{ "intervals": [
            { "sum": { "start": 0, "end": 1, "bytes": 1000, "lost_packets": 2 } },
            { "sum": { "start": 1, "end": 2, "bytes": 100, "lost_packets": 3 } },
            { "sum": { "start": 2, "end": 3, "bytes": 10, "lost_packets": 0 } }
        ], "error": "interrupt - the client has terminated" }"#;
        let said: Said = serde_json::from_str(said).unwrap();
        let samples = said.measured(&order(), 12_500_000_000);
        assert_eq!(samples.received_bytes, Some(605));
        assert_eq!(samples.lost, Some(4));
    }

    fn answers(lines: &[(&str, u64)]) -> Samples {
        let order = order();
        let mut answers = Answers {
            order: &order,
            numbers: None,
            latency_ns: preallocated(16, f64::NAN),
            missing: 0,
        };
        for (line, at_ms) in lines {
            answers.heard(line, at_ms * 1_000_000);
        }
        answers.samples()
    }

    #[test]
    fn what_ping_says_is_counted() {
        let samples = answers(&[
            ("PING 10.77.0.2 (10.77.0.2) 56(84) bytes of data.", 9_000),
            (
                "64 bytes from 10.77.0.2: icmp_seq=1 ttl=64 time=0.886 ms",
                9_990,
            ),
            (
                "64 bytes from 10.77.0.2: icmp_seq=2 ttl=64 time=0.5 ms",
                10_000,
            ),
            ("no answer yet for icmp_seq=3", 10_020),
            (
                "64 bytes from 10.77.0.2: icmp_seq=3 ttl=64 time=12 ms",
                10_022,
            ),
            ("no answer yet for icmp_seq=4", 10_030),
            (
                "64 bytes from 10.77.0.2: icmp_seq=5 ttl=64 time=0.5 ms",
                10_040,
            ),
            (
                "64 bytes from 10.77.0.2: icmp_seq=6 ttl=64 time=0.5 ms",
                12_001,
            ),
        ]);
        assert_eq!(samples.latency_ns, [500_000.0, 12_000_000.0, 500_000.0]);
        assert_eq!((samples.iterations, samples.lost), (Some(3), Some(1)));
        let silent = answers(&[("no answer yet for icmp_seq=3", 10_020)]);
        assert_eq!((silent.iterations, silent.lost), (Some(0), Some(1)));
    }
}
