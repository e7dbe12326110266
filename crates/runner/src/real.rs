//! Real programs: their command lines, and what must happen before they are measured.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use andante_job::LabError;
use andante_programs::assets;
use andante_scenario::choice::Choice;
use andante_scenario::{Clip, Kind, Program, Screen, Workload};
use serde_json::{Value, json};

use super::prepared::Prepared;
use super::process::{CommandLine, Process, last_line};
use super::tuning::Scheduling;
use super::{clock, stop, streams, web};

/// A warm-up playback that takes longer than this has hung [s].
const WARM_UP_TIMEOUT_S: f64 = 120.0;
const POLL: Duration = Duration::from_millis(20);
/// The first port of film servers, above those of usual services.
const FIRST_PORT: usize = 5004;
/// Number of the first X display of a scenario; lower ones may be taken on a host.
const FIRST_DISPLAY: usize = 90;

/// mpv as a user would start it, but with the sound going nowhere and, without a display, the
/// picture too: the output is paced by the clock just the same. An untimed one shows picture after
/// picture as fast as it can, and begins anew at the end.
pub(super) fn mpv(prepared: &Prepared<'_>, program: &Program, extra: &[String]) -> CommandLine {
    let Kind::Mpv {
        clip,
        display,
        stream,
        untimed,
        ..
    } = &program.kind
    else {
        unreachable!("asked for a film only")
    };
    let mut argv = words(&["mpv", "--no-config"]);
    argv.extend(match display {
        None => words(&["--vo=null"]),
        Some(_) => words(&["--vo=x11"]),
    });
    argv.extend(match (untimed, stream) {
        (false, None) => words(&["--ao=null", "--no-input-terminal"]),
        // The description of the stream is complete, so that it need not look at the stream for five seconds. Only
        // with the terminal does it take SIGTERM for a wish, and finish its log.
        (false, Some(_)) => words(&[
            "--ao=null",
            "--demuxer-lavf-probe-info=no",
            "--demuxer-lavf-o=protocol_whitelist=[file,rtp,udp]",
        ]),
        (true, _) => words(&[
            "--untimed",
            "--framedrop=no",
            "--no-audio",
            "--loop-file=inf",
        ]),
    });
    argv.push("--term-osd=no".to_owned());
    argv.extend_from_slice(extra);
    argv.push(match stream {
        None => clip_path(prepared, clip),
        Some(server) => {
            let file = streams::description(&prepared.setup.folder, server);
            file.display().to_string()
        }
    });
    let display = display.as_ref().map(|name| {
        let number = display_number(prepared.workload, name);
        ("DISPLAY", format!(":{number}"))
    });
    CommandLine {
        argv,
        environment: display.into_iter().collect(),
    }
}

/// An X server without a screen to show anything on, for whoever may connect.
pub(super) fn xvfb(workload: &Workload, name: &str, screen: Screen) -> CommandLine {
    let mut argv = words(&["Xvfb"]);
    argv.push(format!(":{}", display_number(workload, name)));
    argv.extend(words(&["-screen", "0"]));
    argv.push(format!("{}x{}x24", screen.width, screen.height));
    // GLX would load graphics drivers, which nobody here draws with.
    argv.extend(words(&[
        "-ac",
        "-noreset",
        "-nolisten",
        "tcp",
        "-extension",
        "GLX",
    ]));
    argv.into()
}

/// jackd with the driver whose card is only a clock. It does not ask for real-time priority, which
/// would put it out of the hands of the scheduler under test; but an expert has it do so, since it makes
/// its threads ordinary ones otherwise.
fn jack(choice: &Choice, program: &Program, [rate_hz, frames]: [u32; 2]) -> CommandLine {
    let mut argv = words(&["jackd", "-n", &program.name]);
    match Scheduling::of(choice, program) {
        Scheduling::Fifo(priority) => {
            argv.extend([
                "--realtime".to_owned(),
                "-P".to_owned(),
                priority.to_string(),
            ]);
        }
        _ => argv.push("--no-realtime".to_owned()),
    }
    argv.extend(words(&["-d", "dummy", "-r", &rate_hz.to_string()]));
    argv.extend(words(&["-p", &frames.to_string()]));
    argv.into()
}

/// A client that comes with jackd and is busy for a part of each period.
fn jack_client(server: &str, load_percent: u32) -> CommandLine {
    let mut argv = words(&["jack_cpu", "-t", "100000", "-c"]);
    argv.push(load_percent.to_string());
    CommandLine {
        argv,
        environment: vec![
            ("JACK_DEFAULT_SERVER", server.to_owned()),
            ("JACK_NO_START_SERVER", "1".to_owned()),
        ],
    }
}

/// Periods, so far, in which jackd's clients or its driver were not done in time: it says so line by
/// line, in its output.
pub(super) fn count_xruns(output: &Path) -> u64 {
    let text = fs::read(output).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let told = |line: &&str| {
        line.starts_with("JackEngine::XRun:") || line.starts_with("JackTimedDriver::Process XRun")
    };
    text.lines().filter(told).count() as u64
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn clip_path(prepared: &Prepared<'_>, clip: &Clip) -> String {
    let file = assets::clip_file(&prepared.setup.assets, clip);
    file.display().to_string()
}

fn display_number(workload: &Workload, name: &str) -> usize {
    FIRST_DISPLAY + workload.place_in_kind(name)
}

impl Prepared<'_> {
    /// Plays the beginning of every film once, so that no measured playback reads a file.
    pub fn warm_up(&self) -> Result<(), LabError> {
        let running = self.workload.programs.iter().filter(|p| p.count > 0);
        for program in running {
            let Kind::Mpv {
                warm_up_s, display, ..
            } = &program.kind
            else {
                continue;
            };
            if *warm_up_s == 0.0 {
                continue;
            }
            let server = display.as_ref().map(|name| self.start_server(name));
            let server = server.transpose()?;
            let played = self.play(program, *warm_up_s);
            if let Some(mut server) = server {
                server.signal(nix::sys::signal::Signal::SIGTERM);
                await_end(&mut server);
            }
            played?;
        }
        Ok(())
    }

    fn play(&self, program: &Program, warm_up_s: f64) -> Result<(), LabError> {
        let fail = |reason| {
            let name = program.name.clone();
            Err(LabError::ProgramFailed { name, reason })
        };
        let folder = self.setup.folder.join(format!("{}.warm-up", program.name));
        let mut once = vec![format!("--length={warm_up_s}")];
        if matches!(program.kind, Kind::Mpv { untimed: true, .. }) {
            once.push("--loop-file=no".to_owned());
        }
        // Of a stream the file that will be sent.
        let mut film = program.clone();
        if let Kind::Mpv { stream, .. } = &mut film.kind {
            *stream = None;
        }
        let mut process = self.spawn(&film, mpv(self, &film, &once), &folder)?;
        await_end(&mut process);
        match &process.ended {
            Some(ended) if ended.success => {}
            Some(ended) => {
                let words = last_line(&process.output).unwrap_or_default();
                return fail(format!("the warm-up ended {}: {words}", ended.how));
            }
            None if stop::requested() => return Err(LabError::Interrupted),
            None => return fail(format!("the warm-up took more than {WARM_UP_TIMEOUT_S} s")),
        }
        // Later readers of this folder look for what was measured.
        let _ = fs::remove_dir_all(&folder);
        Ok(())
    }

    /// Starts the X server `name` and waits until it takes clients.
    fn start_server(&self, name: &str) -> Result<Process, LabError> {
        let mut programs = self.workload.programs.iter();
        let program = programs.find(|program| program.name == name);
        let program = program.expect("checked when it was read");
        let Kind::Xvfb { screen } = program.kind else {
            unreachable!("checked when it was read")
        };
        let folder = self.setup.folder.join(format!("{name}.warm-up"));
        let command = xvfb(self.workload, name, screen);
        let mut process = self.spawn(program, command, &folder)?;
        let socket = format!("/tmp/.X11-unix/X{}", display_number(self.workload, name));
        let timeout_ns = clock::now_ns() + (WARM_UP_TIMEOUT_S * clock::NS_PER_S) as u64;
        while !takes_clients(Path::new(&socket)) {
            if process.reap() || clock::now_ns() > timeout_ns {
                let words = last_line(&process.output).unwrap_or_default();
                return Err(LabError::ProgramFailed {
                    name: name.to_owned(),
                    reason: format!("takes no clients: {words}"),
                });
            }
            if stop::requested() {
                return Err(LabError::Interrupted);
            }
            std::thread::sleep(POLL);
        }
        Ok(process)
    }
}

fn takes_clients(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}

fn await_end(process: &mut Process) {
    let timeout_ns = clock::now_ns() + (WARM_UP_TIMEOUT_S * clock::NS_PER_S) as u64;
    while !process.reap() && clock::now_ns() < timeout_ns && !stop::requested() {
        std::thread::sleep(POLL);
    }
}

fn port(workload: &Workload, server: &str) -> String {
    (FIRST_PORT + workload.place_in_kind(server)).to_string()
}

fn film_server(prepared: &Prepared<'_>, program: &Program, clip: &Clip) -> CommandLine {
    let folder = assets::streamed_folder(&prepared.setup.assets);
    let mut argv = vec![folder.join(assets::SERVER).display().to_string()];
    argv.extend(words(&["--address"]));
    argv.push(prepared.networks.address(program.network.as_deref()));
    argv.extend(["--port".to_owned(), port(prepared.workload, &program.name)]);
    argv.push(clip_path(prepared, clip));
    argv.into()
}

/// The player, which says nothing to Andante unless the scenario has it do so.
fn film_player(
    prepared: &Prepared<'_>,
    program: &Program,
    [server, name]: [&str; 2],
    by_udp: bool,
    folder: &Path,
) -> CommandLine {
    let programs = assets::streamed_folder(&prepared.setup.assets);
    let mut argv = vec![programs.join(assets::PLAYER).display().to_string()];
    argv.extend(["--port".to_owned(), port(prepared.workload, server)]);
    argv.extend([
        "--log".to_owned(),
        moments_file(folder).display().to_string(),
    ]);
    if by_udp {
        argv.push("--udp".to_owned());
    }
    let promise = program.contract.as_ref().filter(|c| c.in_session);
    if let Some(contract) = promise {
        let ms = contract.promise.budget_ns as f64 / 1e6;
        argv.extend(["--promise".to_owned(), ms.to_string()]);
    }
    match program.session {
        true => argv.extend(["--name".to_owned(), name.to_owned()]),
        false => argv.push("--plain".to_owned()),
    }
    argv.push(prepared.address_of(server));
    CommandLine {
        argv,
        environment: vec![("LD_LIBRARY_PATH", programs.display().to_string())],
    }
}

/// Where a film player that works in the folder notes when its pictures were shown.
pub(super) fn moments_file(folder: &Path) -> PathBuf {
    folder.join("moments")
}

/// Where an mpv that works in the folder leaves its frame log.
pub(super) fn stats_file(folder: &Path) -> PathBuf {
    folder.join("stats")
}

/// Where an mpv that works in the folder takes commands of its user.
fn commands_socket(folder: &Path) -> PathBuf {
    folder.join("commands")
}

/// An act of the user of a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Command {
    Pause,
    GoOn,
    /// To the place in the film that the scenario names.
    Seek,
}

/// A command that was given to an mpv, and the connection by which it answers. That is kept, since mpv may not have
/// read it yet.
pub(super) struct Told {
    pub command: Command,
    socket: UnixStream,
}

impl Told {
    /// Gives a command to the mpv that works in the folder.
    pub fn give(command: Command, kind: &Kind, folder: &Path) -> io::Result<Self> {
        let mut socket = UnixStream::connect(commands_socket(folder))?;
        socket.write_all(command.lines(kind).as_bytes())?;
        Ok(Self { command, socket })
    }

    /// The time by mpv's clock when it took the command [µs]; none: it has not answered. It has ended, or nobody waits
    /// for it any more.
    pub fn at_us(&mut self) -> Option<u64> {
        self.socket.set_nonblocking(true).ok()?;
        let mut said = Vec::new();
        // All that was read until then is there.
        let _ = self.socket.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        said.lines().find_map(clock_us)
    }
}

/// The answer to the question for the clock; other lines are about the command, or say what mpv does.
fn clock_us(line: &str) -> Option<u64> {
    serde_json::from_str::<Value>(line)
        .ok()?
        .get("data")?
        .as_u64()
}

impl Command {
    /// As mpv's own protocol has it: JSON, a line each. First it is asked for its clock, by which its frame log goes.
    fn lines(self, kind: &Kind) -> String {
        let command = match (self, kind) {
            (Self::Pause, _) => json!(["set_property", "pause", true]),
            (
                Self::Seek,
                Kind::Mpv {
                    seek: Some(seek), ..
                },
            ) => {
                json!(["seek", seek.to_s, "absolute", "exact"])
            }
            (Self::GoOn | Self::Seek, _) => json!(["set_property", "pause", false]),
        };
        let lines = [json!(["get_time_us"]), command];
        lines
            .map(|command| format!("{}\n", json!({ "command": command })))
            .concat()
    }
}

/// The command line of an instance of a real program that works in the folder; none of a synthetic one.
pub(super) fn command(
    prepared: &Prepared<'_>,
    program: &Program,
    name: &str,
    folder: &Path,
) -> Option<CommandLine> {
    Some(match &program.kind {
        Kind::Mpv { pause, seek, .. } => {
            let mut more = vec![format!("--dump-stats={}", stats_file(folder).display())];
            if pause.is_some() || seek.is_some() {
                let socket = commands_socket(folder);
                more.push(format!("--input-ipc-server={}", socket.display()));
            }
            mpv(prepared, program, &more)
        }
        Kind::Xvfb { screen } => xvfb(prepared.workload, &program.name, *screen),
        Kind::Jack { frames, rate_hz } => jack(prepared.choice, program, [*rate_hz, *frames]),
        Kind::JackClient {
            server,
            load_percent,
        } => jack_client(server, *load_percent),
        Kind::FilmServer { clip } => film_server(prepared, program, clip),
        Kind::WebServer { .. } => web::server(folder),
        Kind::RtpServer { clip } => streams::server(prepared, program, clip),
        Kind::FilmPlayer { server, by_udp, .. } => {
            film_player(prepared, program, [server, name], *by_udp, folder)
        }
        Kind::Make { jobs } => assets::make_command(&prepared.setup.assets, *jobs).into(),
        Kind::Command { argv, .. } => argv.clone().into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use andante_scenario::Scenario;

    #[test]
    fn what_jackd_says_of_xruns_is_counted() {
        let said = "JACK server starting in non-realtime mode\n\
                    JackTimedDriver::Process XRun = 28 usec\n\
                    JackEngine::XRun: client = jack-cpu was not finished, state = Running\n\
                    JackAudioDriver::ProcessGraphAsyncMaster: Process error\n";
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), said).unwrap();
        assert_eq!(count_xruns(file.path()), 2);
        assert_eq!(count_xruns(Path::new("/nowhere")), 0);
    }

    #[test]
    fn a_film_is_told_what_to_do_in_the_words_of_mpv() {
        let text = "title = 'x'\nduration_s = 1\n[programs.film]\nclass = '/'\nkind = 'mpv'\n\
                    seek_at_s = 2\nseek_to_s = 4.5\n";
        let scenario = Scenario::parse("x.toml", text, &[]).unwrap();
        let kind = &scenario.cases[0].workload.programs[0].kind;
        let told = |command: Command| {
            let lines = command.lines(kind);
            let lines: Vec<_> = lines.lines().map(str::to_owned).collect();
            assert_eq!(lines[0], "{\"command\":[\"get_time_us\"]}");
            lines[1].clone()
        };
        assert_eq!(
            told(Command::Pause),
            "{\"command\":[\"set_property\",\"pause\",true]}"
        );
        assert_eq!(
            told(Command::GoOn),
            "{\"command\":[\"set_property\",\"pause\",false]}"
        );
        assert_eq!(
            told(Command::Seek),
            "{\"command\":[\"seek\",4.5,\"absolute\",\"exact\"]}"
        );
    }

    #[test]
    fn mpv_says_what_its_clock_is_among_other_things() {
        let said = [
            "{\"event\":\"pause\"}",
            "{\"data\":3021345,\"request_id\":0,\"error\":\"success\"}",
            "{\"request_id\":0,\"error\":\"success\"}",
        ];
        assert_eq!(said.map(clock_us), [None, Some(3_021_345), None]);
    }

    #[test]
    fn x_servers_have_displays_of_their_own() {
        let text = "title = 'x'\nduration_s = 1\n\
                    [programs.a]\nclass = '/'\nkind = 'xvfb'\n\
                    [programs.hog]\nclass = '/'\nkind = 'loop'\n\
                    [programs.b]\nclass = '/'\nkind = 'xvfb'\nsize = '640x480'\n";
        let scenario = Scenario::parse("x.toml", text, &[]).unwrap();
        let workload = &scenario.cases[0].workload;
        let Kind::Xvfb { screen } = workload.programs[2].kind else {
            panic!("it is an X server")
        };
        let command = xvfb(workload, "b", screen);
        let expected = ["Xvfb", ":91", "-screen", "0", "640x480x24"];
        assert_eq!(command.argv[..5], expected);
        assert_eq!(display_number(workload, "a"), 90);
    }
}
