//! The film: a clip encoded on this machine, as a film is: H.264 with B frames, and AAC sound.
//!
//! The sound matters: a player without it may stretch the film instead of dropping frames.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use andante_job::LabError;
use andante_scenario::Clip;

use super::tool;

/// Raised when the same figures give another film, so that older files are not taken for it.
const EDITION: u32 = 2;

/// A packet of a stream, without UDP's headers [bytes]: what most networks carry, tunnels too.
const PACKET: u32 = 1200;

/// Where the clip lies below the folder of assets.
pub fn clip_file(assets: &Path, clip: &Clip) -> PathBuf {
    let Clip {
        width,
        height,
        fps,
        length_s,
    } = clip;
    assets.join("clips").join(format!(
        "{width}x{height}-{fps}fps-{length_s}s-{EDITION}.mkv"
    ))
}

/// Encodes the clip unless it is there.
pub fn make(clip: &Clip, assets: &Path, say: &mut dyn FnMut(String)) -> Result<(), LabError> {
    let file = clip_file(assets, clip);
    if file.exists() {
        return Ok(());
    }
    say(format!(
        "encoding the film, {} s at {}x{}",
        clip.length_s, clip.width, clip.height
    ));
    by_ffmpeg(&arguments(clip), &file)
}

/// Has ffmpeg write a file, whose name is the last argument.
fn by_ffmpeg(arguments: &[String], file: &Path) -> Result<(), LabError> {
    let ffmpeg = tool("ffmpeg", "to make the film clip", "ffmpeg")?;
    let folder = file.parent().expect("a clip lies in a folder");
    fs::create_dir_all(folder).map_err(|e| LabError::file("create", folder, e))?;
    // Written beside and renamed, so that no other run finds half a film.
    let name = file.file_name().expect("it is a file").to_string_lossy();
    let staged = folder.join(format!(".{}.{name}", std::process::id()));
    let output = Command::new(ffmpeg)
        .args(arguments)
        .arg(&staged)
        .output()
        .map_err(|e| LabError::io("run ffmpeg", e))?;
    if !output.status.success() {
        let _ = fs::remove_file(&staged);
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("no message").to_owned();
        return Err(LabError::io(
            "encode the film with ffmpeg",
            std::io::Error::other(last),
        ));
    }
    fs::rename(&staged, file).map_err(|e| LabError::file("write", file, e))
}

/// The description of a clip's stream for its player (SDP, RFC 8866), with ports and an address of nobody.
pub fn sdp_file(assets: &Path, clip: &Clip) -> PathBuf {
    clip_file(assets, clip).with_extension("sdp")
}

/// The ports of picture and sound in that description: the service that throws away what it gets, and an unassigned
/// one.
pub const SDP_PORTS: [u16; 2] = [9, 10];

/// Writes that description, and the clip, unless they are there.
pub fn describe(clip: &Clip, assets: &Path, say: &mut dyn FnMut(String)) -> Result<(), LabError> {
    make(clip, assets, say)?;
    let file = sdp_file(assets, clip);
    if file.exists() {
        return Ok(());
    }
    // It is known when the first packets are sent.
    let input = clip_file(assets, clip).display().to_string();
    let begin = [
        "-hide_banner",
        "-loglevel",
        "error",
        "-y",
        "-t",
        "0.1",
        "-i",
    ];
    let mut arguments: Vec<String> = begin.map(str::to_owned).into();
    arguments.push(input);
    arguments.extend(to_rtp("127.0.0.1", SDP_PORTS));
    arguments.push("-sdp_file".to_owned());
    by_ffmpeg(&arguments, &file)
}

/// Tells ffmpeg to send picture and sound as they are, by RTP.
pub fn to_rtp(address: &str, ports: [u16; 2]) -> Vec<String> {
    let tracks = ["0:v", "0:a"].into_iter().zip(ports);
    let words = tracks.flat_map(|(track, port)| {
        let to = format!("rtp://{address}:{port}?pkt_size={PACKET}");
        ["-map", track, "-c", "copy", "-f", "rtp", &to].map(str::to_owned)
    });
    words.collect()
}

/// A picture full of motion, edges and a little grain, so that decoding it is real work; one
/// encoder thread and no version strings, so that the same ffmpeg always makes the same file.
fn arguments(clip: &Clip) -> Vec<String> {
    let Clip {
        width,
        height,
        fps,
        length_s,
    } = clip;
    let picture = format!(
        "testsrc2=size={width}x{height}:rate={fps}:duration={length_s},noise=alls=9:allf=t"
    );
    // The sound outlasts the picture: mpv ends when it has, and may leave out the last frame.
    let sound_s = f64::from(*length_s) + 0.5;
    let sound = format!("sine=frequency=330:beep_factor=4:sample_rate=48000:duration={sound_s}");
    let gop = (fps * 4).to_string();
    let words = [
        "-hide_banner",
        "-loglevel",
        "error",
        "-y",
        "-f",
        "lavfi",
        "-i",
        &picture,
        "-f",
        "lavfi",
        "-i",
        &sound,
        "-c:v",
        "libx264",
        "-preset",
        "medium",
        "-crf",
        "23",
        "-bf",
        "3",
        "-g",
        &gop,
        "-pix_fmt",
        "yuv420p",
        "-threads",
        "1",
        "-c:a",
        "aac",
        "-b:a",
        "128k",
        "-ac",
        "2",
        "-fflags",
        "+bitexact",
        "-flags:v",
        "+bitexact",
        "-flags:a",
        "+bitexact",
    ];
    words.map(str::to_owned).into()
}
