//! What programs work on: film clips to play, C sources to compile, files to map.
//!
//! All are made on the machine that runs the laboratory and lie in one folder: `clips/`, `sources/` and
//! `libraries/`.

mod clip;
mod library;
mod sources;
mod streamed;

use std::path::{Path, PathBuf};

use andante_job::LabError;
use andante_scenario::{Kind, Workload};

pub use clip::{SDP_PORTS, clip_file, sdp_file, to_rtp};
pub use library::library_file;
pub use sources::{count_objects, make_command};
pub use streamed::{PLAYER, SERVER, folder as streamed_folder};

/// Where clips and sources lie in the root image; `/andante` itself belongs to the RAM disk.
pub const IN_GUEST: &str = "/srv/andante";

/// What an X server compiles its keyboard map from.
const KEYBOARD_MAPS: &str = "/usr/share/X11/xkb";

/// The driver that jackd loads.
const JACK_DRIVER: &str = "/usr/lib/x86_64-linux-gnu/jack/jack_dummy.so";

/// Programs of this machine that the workload's real programs consist of, with all they run.
pub fn programs(workload: &Workload) -> Result<Vec<PathBuf>, LabError> {
    let mut found = Vec::new();
    for program in workload.programs.iter().filter(|program| program.count > 0) {
        match &program.kind {
            Kind::Mpv { .. } => found.push(tool("mpv", "to play the film", "mpv")?),
            Kind::Xvfb { .. } => {
                const PURPOSE: &str = "as the film's display";
                found.push(tool("Xvfb", PURPOSE, "xvfb")?);
                // It has its keyboard map compiled, by a shell.
                found.push(tool("xkbcomp", PURPOSE, "x11-xkb-utils")?);
                found.push(tool("sh", PURPOSE, "dash")?);
            }
            Kind::Jack { .. } => {
                found.push(tool("jackd", "as sound server", "jackd2")?);
                found.push(tool(JACK_DRIVER, "as sound card", "jackd2")?);
            }
            Kind::JackClient { .. } => {
                found.push(tool("jack_cpu", "as client of the sound server", "jackd2")?);
            }
            Kind::FilmServer { .. } | Kind::FilmPlayer { .. } => streamed::check()?,
            Kind::WebServer { .. } => found.push(tool("nginx", "as web server", "nginx-light")?),
            Kind::Iperf3 { .. } => found.push(measuring("iperf3")?),
            Kind::Ping { .. } => found.push(measuring("ping")?),
            Kind::Curl { .. } => found.push(measuring("curl")?),
            Kind::RtpServer { .. } => found.push(tool("ffmpeg", "to stream the film", "ffmpeg")?),
            Kind::Make { .. } => found.extend(sources::compiler()?),
            Kind::Command { argv, needs } => {
                let purpose = format!("as program {}", program.name);
                let mend = "install it, or correct the scenario";
                for name in argv.iter().take(1).chain(needs) {
                    found.push(find(name).ok_or_else(|| missing(name, &purpose, mend))?);
                }
            }
            _ => {}
        }
        if program.network.is_some() {
            found.push(tool("ip", "to lay the cable between networks", "iproute2")?);
            if workload.cable.rate.is_some() {
                found.push(tool("tc", "to limit what the cable carries", "iproute2")?);
            }
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Programs and libraries that [`make`] has made in `folder`, each with its place in a guest.
pub fn placed(workload: &Workload, folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut programs = workload.programs.iter().filter(|program| program.count > 0);
    match programs.any(|program| streamed::is(&program.kind)) {
        true => streamed::placed(folder, Path::new(IN_GUEST)),
        false => Vec::new(),
    }
}

/// The files that those programs read, each with its place in a guest; `folder` must hold what
/// [`make`] makes.
///
/// # Errors
/// If the compiler fails.
pub fn needed(workload: &Workload, folder: &Path) -> Result<Vec<(PathBuf, PathBuf)>, LabError> {
    let guest = Path::new(IN_GUEST);
    let mut files = Vec::new();
    for program in workload.programs.iter().filter(|program| program.count > 0) {
        if let Some(bytes) = program.kind.library_bytes() {
            files.push((library_file(folder, bytes), library_file(guest, bytes)));
        }
        match &program.kind {
            Kind::RtpServer { clip } => {
                for file in [clip_file, sdp_file] {
                    files.push((file(folder, clip), file(guest, clip)));
                }
            }
            // Its server brings the description.
            Kind::Mpv {
                stream: Some(_), ..
            } => {}
            Kind::Mpv { clip, .. } | Kind::FilmServer { clip } => {
                files.push((clip_file(folder, clip), clip_file(guest, clip)));
            }
            Kind::Xvfb { .. } => {
                let maps = PathBuf::from(KEYBOARD_MAPS);
                files.push((maps.clone(), maps));
            }
            // It asks for the user that it is to be.
            Kind::WebServer { .. } => {
                files.extend(["/etc/passwd", "/etc/group"].map(|name| (name.into(), name.into())));
            }
            Kind::Make { .. } => {
                files.push((folder.join("sources"), guest.join("sources")));
                // Headers of the system keep their place.
                files.extend(
                    sources::headers(folder)?
                        .into_iter()
                        .map(|h| (h.clone(), h)),
                );
            }
            _ => {}
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// Makes everything the workload's programs work on, unless it is in `folder` already.
///
/// # Errors
/// If ffmpeg is missing or fails, or the folder cannot be written.
pub fn make(
    workload: &Workload,
    folder: &Path,
    say: &mut dyn FnMut(String),
) -> Result<(), LabError> {
    for program in workload.programs.iter().filter(|program| program.count > 0) {
        match &program.kind {
            Kind::Mpv { clip, .. } => clip::make(clip, folder, say)?,
            Kind::RtpServer { clip } => clip::describe(clip, folder, say)?,
            Kind::FilmServer { clip } => {
                clip::make(clip, folder, say)?;
                streamed::make(folder, say)?;
            }
            Kind::Make { .. } => sources::write(folder)?,
            _ => {}
        }
        if let Some(bytes) = program.kind.library_bytes() {
            library::make(bytes, folder)?;
        }
    }
    Ok(())
}

/// The program that sets up devices whose requests take time, for a machine that swaps.
///
/// # Errors
/// If it is not installed.
pub fn device_mapper() -> Result<PathBuf, LabError> {
    tool("dmsetup", "for a swap device that takes time", "dmsetup")
}

/// The path of one of the programs by which people measure links.
pub(crate) fn measuring(name: &str) -> Result<PathBuf, LabError> {
    let package = match name {
        "ping" => "iputils-ping",
        named_alike => named_alike,
    };
    tool(name, "to measure the link", package)
}

/// The path of a program that Debian's `package` brings.
pub fn tool(name: &str, purpose: &str, package: &str) -> Result<PathBuf, LabError> {
    find(name).ok_or_else(|| missing(name, purpose, &format!("`apt-get install {package}`")))
}

fn missing(name: &str, purpose: &str, mend: &str) -> LabError {
    let [name, purpose, mend] = [name, purpose, mend].map(str::to_owned);
    LabError::MissingTool {
        name,
        purpose,
        mend,
    }
}

/// Where servers lie, and other programs for root: a user's PATH does not name these on Debian.
const FOR_ROOT: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The program of this name on PATH or among those for root, or at this path.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = if name.contains('/') {
        vec![PathBuf::new()]
    } else {
        let for_root = FOR_ROOT.into_iter().map(PathBuf::from);
        std::env::split_paths(&path).chain(for_root).collect()
    };
    folders
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
