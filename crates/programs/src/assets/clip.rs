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
    let ffmpeg = tool("ffmpeg", "to make the film clip", "ffmpeg")?;
    say(format!(
        "encoding the film, {} s at {}x{}",
        clip.length_s, clip.width, clip.height
    ));
    let folder = file.parent().expect("a clip lies in a folder");
    fs::create_dir_all(folder).map_err(|e| LabError::file("create", folder, e))?;
    // Written beside and renamed, so that no other run finds half a film.
    let staged = folder.join(format!(".{}.mkv", std::process::id()));
    let output = Command::new(ffmpeg)
        .args(arguments(clip))
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
    fs::rename(&staged, &file).map_err(|e| LabError::file("write", &file, e))
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
