// SPDX-License-Identifier: GPL-2.0
//! The examples `film_server` and `film_player` on this machine: films come whole, servers die, strangers talk nonsense.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use common::{Served, Workshop, has, here};

const HERE: &str = "127.0.0.1";
/// What a message begins with, and where its token ends (stream.h).
const HEAD_BYTES: usize = 52;
const PICTURES_PER_S: u64 = 25;

/// The two programs, and where they are.
struct Programs {
    workshop: Workshop,
    server: PathBuf,
    player: PathBuf,
}

impl Programs {
    /// None: what they link with is not installed here, or the flags are not to be had.
    fn compiled(flags: &[&str]) -> Option<Self> {
        if !has("ffmpeg") {
            return None;
        }
        let Some(found) = libraries() else {
            eprintln!("skipped: libavformat-dev, libavcodec-dev or libavutil-dev is not installed");
            return None;
        };
        let workshop = Workshop::new();
        let folder = here().join("examples/distributed");
        let [film, receive] = ["film.c", "receive.c"].map(|name| folder.join(name));
        let mut all = vec!["-std=gnu99"];
        all.extend(flags);
        let server: Vec<&str> = all
            .iter()
            .copied()
            .chain(film.to_str())
            .chain(found.iter().map(String::as_str))
            .collect();
        let server = workshop.try_compile("gcc", &folder.join("film_server.c"), &server);
        all.push(receive.to_str().unwrap());
        all.extend(found.iter().map(String::as_str));
        all.push("-ldl");
        let player = workshop.try_compile("gcc", &folder.join("film_player.c"), &all);
        match (server, player, flags.is_empty()) {
            (Ok(server), Ok(player), _) => Some(Self {
                workshop,
                server,
                player,
            }),
            (Err(said), ..) | (_, Err(said), _) if flags.is_empty() => panic!("{said}"),
            _ => {
                eprintln!("skipped: gcc has no {flags:?} here");
                None
            }
        }
    }

    /// A server of the film that is up.
    fn serve(&self, film: &Path, more: &[&str]) -> Server {
        let port = free_port();
        let mut child = Command::new(&self.server)
            .args(["--address", HERE, "--port", &port.to_string()])
            .args(more)
            .arg(film)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert!(line.starts_with("serving "), "{line}");
        Server {
            child,
            output,
            port,
        }
    }

    fn player(&self, port: u16, more: &[&str]) -> Command {
        let mut command = Command::new(&self.player);
        command
            .args(["--port", &port.to_string()])
            .args(more)
            .arg(HERE)
            .env("ANDANTE_SOCKET", "/nonexistent")
            .env("LD_LIBRARY_PATH", self.workshop.folder())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn plays(&self, port: u16, more: &[&str]) -> Output {
        self.player(port, more).output().unwrap()
    }
}

fn libraries() -> Option<Vec<String>> {
    let output = Command::new("pkg-config")
        .args([
            "--cflags",
            "--libs",
            "libavformat",
            "libavcodec",
            "libavutil",
        ])
        .output()
        .ok()?;
    let flags = String::from_utf8(output.stdout).ok()?;
    let flags = flags.split_whitespace().map(str::to_owned).collect();
    output.status.success().then_some(flags)
}

struct Server {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    port: u16,
}

impl Server {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// What it says at the end.
    fn end(mut self) -> String {
        self.signal(Signal::SIGTERM);
        self.has_ended()
    }

    fn has_ended(&mut self) -> String {
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut errors).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}{errors}");
        said + &errors
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, or a test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody has, of TCP and of UDP.
fn free_port() -> u16 {
    loop {
        let tcp = TcpListener::bind((HERE, 0)).unwrap();
        let port = tcp.local_addr().unwrap().port();
        if UdpSocket::bind((HERE, port)).is_ok() {
            return port;
        }
    }
}

/// A film of so many seconds.
fn film(length_s: u64) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("films");
        std::fs::create_dir_all(&folder).unwrap();
        folder
    });
    let file = folder.join(format!("{length_s}.mkv"));
    if file.exists() {
        return file;
    }
    let picture = format!("testsrc2=size=160x90:rate={PICTURES_PER_S}:duration={length_s}");
    // Several tests make it at a time, each for itself first.
    let id = format!("{:?}", thread::current().id());
    let staged = folder.join(format!(
        "{}-{}.mkv",
        std::process::id(),
        id.replace(['(', ')'], "")
    ));
    let made = Command::new("ffmpeg")
        .args([
            "-hide_banner",
            "-loglevel",
            "error",
            "-y",
            "-f",
            "lavfi",
            "-i",
            &picture,
        ])
        .args([
            "-c:v", "libx264", "-bf", "2", "-g", "25", "-pix_fmt", "yuv420p",
        ])
        .arg(&staged)
        .status();
    assert!(made.unwrap().success());
    std::fs::rename(&staged, &file).unwrap();
    file
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The figures of a player that has ended well.
fn figures(output: &Output) -> Value {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// What a player or server says that has ended in failure.
fn complaint(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    text(&output.stderr)
}

#[test]
fn films_come_whole_over_tcp_and_udp() {
    let Some(programs) = Programs::compiled(&[]) else {
        return;
    };
    let served = Served::new();
    let mut server = programs.serve(&film(2), &["--players", "4"]);
    let players: Vec<(&str, Child)> = [&["--json"][..], &["--json", "--udp"]]
        .into_iter()
        .flat_map(|more| [("plain", more), ("session", more)])
        .map(|(with, more)| {
            let mut player = programs.player(server.port, more);
            match with {
                "plain" => player.arg("--plain"),
                _ => player.env("ANDANTE_SOCKET", &served.socket),
            };
            (with, player.spawn().unwrap())
        })
        .collect();
    for (with, player) in players {
        let told = figures(&player.wait_with_output().unwrap());
        assert_eq!(told["andante"], with, "{told}");
        assert_eq!(told["decoded"], 2 * PICTURES_PER_S, "{told}");
        assert_eq!(told["complete"], true, "{told}");
        let count = |what: &str| told[what].as_u64().unwrap();
        assert_eq!(count("shown") + count("dropped"), count("decoded"));
        let strange = ["packets_lost", "packets_broken", "nonsense"].map(count);
        assert_eq!(strange, [0, 0, 0], "{told}");
    }
    let said = server.has_ended();
    assert!(said.starts_with("4 players have been served; 0 "), "{said}");
    served.end();
}

#[test]
fn each_picture_is_told_of() {
    let Some(programs) = Programs::compiled(&[]) else {
        return;
    };
    let server = programs.serve(&film(1), &[]);
    let log = programs.workshop.folder().join("log");
    let shown = programs.workshop.folder().join("shown");
    let (log, shown) = (log.to_str().unwrap(), shown.to_str().unwrap());
    let output = programs.plays(server.port, &["--each", "--log", log, "--out", shown]);
    assert!(output.status.success());
    assert!(text(&output.stdout).starts_with("25 pictures decoded of 25, "));
    assert_eq!(text(&output.stderr).matches(": due at ").count(), 25);
    let log = std::fs::read_to_string(log).unwrap();
    let moments: Vec<Vec<u64>> = log
        .lines()
        .map(|line| line.split(' ').map(|n| n.parse().unwrap()).collect())
        .collect();
    assert_eq!(moments.len(), 25);
    for pair in moments.windows(2) {
        let period_ns = 1_000_000_000 / PICTURES_PER_S;
        // The file's times are in ms.
        assert!(
            (pair[1][0] - pair[0][0]).abs_diff(period_ns) <= 1_000_000,
            "{pair:?}"
        );
    }
    // None is shown before its time, or before it is there.
    let sound = |m: &Vec<u64>| m[2] == 0 || (m[2] >= m[0] && m[2] >= m[1]);
    assert!(moments.iter().all(sound), "{log}");
    let shown = std::fs::read(shown).unwrap();
    assert!(
        shown.starts_with(b"YUV4MPEG2 W160 H90 "),
        "{:?}",
        &shown[..64]
    );
    server.end();
}

#[test]
fn a_player_whose_server_dies_says_so() {
    let Some(programs) = Programs::compiled(&[]) else {
        return;
    };
    let film = film(30);
    for (how, words) in [(&[][..], "the server "), (&["--udp"], "connection refused")] {
        let mut server = programs.serve(&film, &[]);
        let mut player = programs.player(server.port, &["--each"]);
        let mut player = player.args(how).spawn().unwrap();
        let mut told = BufReader::new(player.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("picture 3: ") {
            assert!(told.read_line(&mut said).unwrap() > 0, "{said}");
        }
        server.child.kill().unwrap();
        told.read_to_string(&mut said).unwrap();
        assert_eq!(player.wait().unwrap().code(), Some(1));
        let last = said.lines().last().unwrap();
        assert!(
            last.starts_with("film_player: ") && last.contains(words),
            "{last}"
        );
    }
}

#[test]
fn both_end_when_they_are_told_to() {
    let Some(programs) = Programs::compiled(&[]) else {
        return;
    };
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut server = programs.serve(&film(30), &[]);
        let mut player = programs.player(server.port, &["--udp", "--json", "--each"]);
        let mut player = player.spawn().unwrap();
        let mut line = String::new();
        let mut told = BufReader::new(player.stderr.take().unwrap());
        while !line.contains("picture 0: ") {
            assert!(told.read_line(&mut line).unwrap() > 0, "{line}");
        }
        kill(Pid::from_raw(player.id() as i32), signal).unwrap();
        let told = figures(&player.wait_with_output().unwrap());
        assert_eq!(told["complete"], false, "{told}");
        server.signal(signal);
        assert!(server.has_ended().starts_with("1 players"));
    }
}

#[test]
fn mistakes_are_told_in_a_sentence() {
    let Some(programs) = Programs::compiled(&[]) else {
        return;
    };
    let serve = |arguments: &[&str]| {
        Command::new(&programs.server)
            .args(arguments)
            .output()
            .unwrap()
    };
    let said = complaint(&serve(&["/nonexistent/film.mkv"]));
    assert_eq!(
        said,
        "film_server: /nonexistent/film.mkv cannot be opened: No such file or directory\n"
    );
    let said = complaint(&serve(&[concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/Cargo.toml"
    )]));
    assert!(said.contains("Cargo.toml"), "{said}");
    let server = programs.serve(&film(1), &[]);
    let port = server.port.to_string();
    let said = complaint(&serve(&[
        "--address",
        HERE,
        "--port",
        &port,
        film(1).to_str().unwrap(),
    ]));
    assert!(
        said.contains("Address already in use") && said.contains("--port"),
        "{said}"
    );
    server.end();
    let nobody = free_port();
    let said = complaint(&programs.plays(nobody, &[]));
    assert!(
        said.contains("nobody serves at 127.0.0.1, port") && said.contains("refused"),
        "{said}"
    );
    let said = complaint(&programs.plays(nobody, &["--udp"]));
    assert!(said.contains("nobody serves there"), "{said}");
    for wrong in [
        &["--store", "soon"][..],
        &["--promise", "-1"],
        &["--unknown"],
        &["a", "b"],
    ] {
        assert_eq!(
            programs.plays(nobody, wrong).status.code(),
            Some(2),
            "{wrong:?}"
        );
    }
    for program in [&programs.server, &programs.player] {
        let help = Command::new(program).arg("--help").output().unwrap();
        assert!(help.status.success() && text(&help.stdout).contains("film_server film.mkv &"));
    }
}

/// Random numbers, the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// What lies between a server and its player over UDP: is given each datagram for the player, and says what
/// comes there in its place.
type Way = fn(&mut Random, &[u8]) -> Vec<Vec<u8>>;

/// Between a server's port and a player.
struct Between {
    port: u16,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Between {
    fn new(server: u16, way: Way) -> Self {
        let socket = UdpSocket::bind((HERE, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let stranger = UdpSocket::bind((HERE, 0)).unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let told = ends.clone();
        let thread = thread::spawn(move || {
            let mut random = Random(88_172_645_463_325_252);
            let server = SocketAddr::from(([127, 0, 0, 1], server));
            let mut player = None;
            let mut datagram = [0; 2048];
            while !told.load(Ordering::Relaxed) {
                let Ok((bytes, from)) = socket.recv_from(&mut datagram) else {
                    continue;
                };
                if from != server {
                    player = Some(from);
                    // Nor does the server mind nonsense.
                    let count = random.below(100);
                    let _ = socket.send_to(&random.bytes(count), server);
                    let _ = socket.send_to(&datagram[..bytes], server);
                    continue;
                }
                let Some(player) = player else { continue };
                for one in way(&mut random, &datagram[..bytes]) {
                    let _ = socket.send_to(&one, player);
                    // The same from somebody else, whom the player does not hear.
                    let _ = stranger.send_to(&one, player);
                }
            }
        });
        Self { port, ends, thread }
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// Everything comes, among noise: doubled, cut off, and with another's token.
fn noise(random: &mut Random, datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut token = datagram.to_vec();
    token[8 + random.below(8)] ^= 1 << random.below(8);
    let cut = datagram[..random.below(HEAD_BYTES)].to_vec();
    let count = random.below(1500);
    let junk = random.bytes(count);
    vec![junk, cut, token, datagram.to_vec(), datagram.to_vec()]
}

/// Some packets are missing.
fn loss(random: &mut Random, datagram: &[u8]) -> Vec<Vec<u8>> {
    let is_packet = datagram[4] == 3;
    match is_packet && random.below(8) == 0 {
        true => Vec::new(),
        false => vec![datagram.to_vec()],
    }
}

/// Every second one is damaged anywhere but in what identifies it, and the true one may come before or after.
fn damage(random: &mut Random, datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut damaged = datagram.to_vec();
    for _ in 0..1 + random.below(4) {
        let fields = [4, 16, 20, 24, 28, 32, 40, 48];
        let at = match random.below(2) {
            0 => fields[random.below(fields.len())] + random.below(4),
            _ => 16 + random.below(damaged.len() - 16),
        };
        let last = damaged.len() - 1;
        damaged[at.min(last)] = random.next() as u8;
    }
    match random.below(4) {
        0 => vec![damaged, datagram.to_vec()],
        1 => vec![datagram.to_vec(), damaged],
        2 => vec![damaged],
        _ => vec![datagram.to_vec()],
    }
}

/// Programs that notice what C lets pass, where gcc has that.
fn watched() -> Option<Programs> {
    Programs::compiled(&["-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
}

#[test]
fn nonsense_is_counted_and_no_picture_is_lost_by_it() {
    let Some(programs) = watched() else { return };
    let server = programs.serve(&film(2), &[]);
    let between = Between::new(server.port, noise);
    let told = figures(&programs.plays(between.port, &["--udp", "--json"]));
    between.end();
    assert_eq!(told["decoded"], 2 * PICTURES_PER_S, "{told}");
    assert_eq!(told["packets_lost"], 0, "{told}");
    assert!(
        told["nonsense"].as_u64() >= Some(2 * PICTURES_PER_S),
        "{told}"
    );
    server.end();
}

#[test]
fn lost_packets_are_counted_and_the_film_goes_on() {
    let Some(programs) = watched() else { return };
    let server = programs.serve(&film(2), &[]);
    let between = Between::new(server.port, loss);
    let told = figures(&programs.plays(between.port, &["--udp", "--json"]));
    between.end();
    let count = |what: &str| told[what].as_u64().unwrap();
    assert!(count("packets_lost") > 0, "{told}");
    assert!(count("decoded") > PICTURES_PER_S, "{told}");
    assert!(count("decoded") <= 2 * PICTURES_PER_S, "{told}");
    assert_eq!(told["complete"], true, "{told}");
    server.end();
}

#[test]
fn damaged_packets_do_no_harm() {
    let Some(programs) = watched() else { return };
    let server = programs.serve(&film(2), &[]);
    let between = Between::new(server.port, damage);
    let output = programs.plays(between.port, &["--udp", "--json"]);
    between.end();
    let said = text(&output.stderr);
    // It may have been told that this is another film altogether; but it ends in order.
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}: {said}",
        output.status
    );
    assert!(
        !said.contains("Sanitizer") && !said.contains("runtime error"),
        "{said}"
    );
    server.end();
}

#[test]
fn nonsense_over_tcp_is_told_of_and_does_the_server_no_harm() {
    let Some(programs) = watched() else { return };
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let odd = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        // The player may have gone before it has all.
        let _ = stream.write_all(&Random(1).bytes(4096));
    });
    let said = complaint(&programs.plays(port, &[]));
    odd.join().unwrap();
    assert!(said.contains("this is no film_server"), "{said}");

    let server = programs.serve(&film(1), &[]);
    for count in [0, 1, HEAD_BYTES - 1, HEAD_BYTES, 10_000] {
        let mut stream = TcpStream::connect((HERE, server.port)).unwrap();
        let _ = stream.write_all(&Random(2).bytes(count));
    }
    let told = figures(&programs.plays(server.port, &["--json"]));
    assert_eq!(told["decoded"], PICTURES_PER_S, "{told}");
    server.end();
}
