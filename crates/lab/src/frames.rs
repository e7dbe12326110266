//! What each frame of a film costs to decode, for the key `work_trace` of scenarios: recorded from
//! ffmpeg, which tells the CPU time of every call of its decoder (`-benchmark_all`).
//!
//! The film is decoded several times on one thread; of each frame the least is taken, since what
//! else the machine does can only add to it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use andante_job::LabError;
use andante_programs::assets;

/// Most times that a film is decoded.
pub const MAX_DECODINGS: u32 = 100;

/// The test film's scenes: ffmpeg's source, and grain. Calm and hectic in turn, as films have them.
const SCENES: [(&str, u32); 8] = [
    ("smptebars", 0),
    ("testsrc2", 12),
    ("mandelbrot", 0),
    ("testsrc", 0),
    ("testsrc2", 30),
    ("smptebars", 6),
    ("mandelbrot", 18),
    ("testsrc2", 0),
];
const SCENE_S: u32 = 8;
const MADE: &str = "64 s at 640x360, 25 frames/s, libx264 medium crf 23, as this command makes it";

/// Decodes the film `decodings` times, 1 to [`MAX_DECODINGS`], or a test film if there is none, and
/// returns the text of a trace: comments, then a CPU time a line [ms], user and system together, in
/// decoding order. `say` is told what is being done.
pub fn record(
    film: Option<&Path>,
    decodings: u32,
    say: &mut dyn FnMut(String),
) -> Result<String, LabError> {
    assert!((1..=MAX_DECODINGS).contains(&decodings));
    let ffmpeg = assets::tool("ffmpeg", "to decode the film", "ffmpeg")?;
    let made = match film {
        Some(film) => {
            std::fs::File::open(film).map_err(|e| no_film(film, e.to_string()))?;
            None
        }
        None => Some(make_film(&ffmpeg, say)?),
    };
    let file = film.unwrap_or_else(|| made.as_ref().map_or(Path::new(""), |made| &made.file));
    let mut least_us: Vec<u64> = Vec::new();
    for decoding in 1..=decodings {
        say(format!("decoding {decoding} of {decodings}"));
        let times_us = decode(&ffmpeg, file)?;
        if decoding == 1 {
            least_us = times_us;
        } else if least_us.len() == times_us.len() {
            let pairs = least_us.iter_mut().zip(times_us);
            pairs.for_each(|(least, us)| *least = us.min(*least));
        } else {
            return Err(no_film(file, "it has not always as many frames".to_owned()));
        }
    }
    let name = match film.and_then(Path::file_name) {
        Some(name) => name.display().to_string(),
        None => MADE.to_owned(),
    };
    Ok(text(&least_us, &version(&ffmpeg), decodings, &name))
}

fn text(times_us: &[u64], version: &str, decodings: u32, film: &str) -> String {
    let mut text = format!(
        "# CPU time of decoding each frame of a film [ms], in decoding order\n\
         # {version}, one thread, least of {decodings}; {}\n\
         # the film: {film}\n",
        std::env::consts::ARCH
    );
    for us in times_us {
        let _ = writeln!(text, "{:.3}", *us as f64 / 1e3);
    }
    text
}

/// CPU time of each frame [µs].
fn decode(ffmpeg: &Path, film: &Path) -> Result<Vec<u64>, LabError> {
    // A path, whatever colons are in it.
    let mut input = OsString::from("file:");
    input.push(film);
    let output = Command::new(ffmpeg)
        .args(["-nostdin", "-hide_banner", "-loglevel", "info"])
        .args(["-benchmark_all", "-threads", "1", "-i"])
        .arg(input)
        .args(["-map", "0:v:0?", "-fps_mode", "passthrough"])
        .args(["-f", "null", "-"])
        .output()
        .map_err(|e| LabError::io("run ffmpeg", e))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(no_film(film, last_line(&output)));
    }
    frame_times(&said).map_err(|reason| no_film(film, reason))
}

fn no_film(film: &Path, reason: String) -> LabError {
    LabError::NoFilm {
        film: film.to_owned(),
        reason,
    }
}

fn last_line(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.unwrap_or("no message").trim();
    match last
        .strip_prefix("file:")
        .and_then(|rest| rest.split_once(": "))
    {
        Some((_, reason)) => reason.to_owned(),
        None => last.to_owned(),
    }
}

/// Puts the decoder's calls together to frames. ffmpeg asks it several times for each packet (with
/// it, and whether there is more), always as often, and now and then once more at the end.
fn frame_times(said: &str) -> Result<Vec<u64>, String> {
    let mut calls_us: Vec<u64> = Vec::new();
    let mut frames = 0;
    for line in said.split(['\n', '\r']) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["bench:", user, "user", system, "sys", _, "real", what, ..] = words[..]
            && what == "decode_video"
        {
            let us = |text: &str| text.parse::<u64>().map_err(|_| format!("`{line}`"));
            calls_us.push(us(user)? + us(system)?);
        }
        if let Some(rest) = line.trim_start().strip_prefix("frame=") {
            let number = rest.split_whitespace().next();
            frames = number.and_then(|n| n.parse().ok()).unwrap_or(frames);
        }
    }
    if frames == 0 {
        return Err("it has no pictures".to_owned());
    }
    let calls = calls_us.len() / frames;
    if calls == 0 {
        return Err(format!(
            "ffmpeg tells of {} calls of the decoder for {frames} frames",
            calls_us.len()
        ));
    }
    let each = calls_us.chunks_exact(calls).take(frames);
    Ok(each.map(|calls| calls.iter().sum()).collect())
}

fn version(ffmpeg: &Path) -> String {
    let output = Command::new(ffmpeg).arg("-version").output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let words: Vec<String> = said
        .unwrap_or_default()
        .split_whitespace()
        .take(3)
        .map(str::to_owned)
        .collect();
    words.join(" ")
}

/// The test film, until it is dropped.
struct Film {
    file: PathBuf,
}

impl Drop for Film {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn make_film(ffmpeg: &Path, say: &mut dyn FnMut(String)) -> Result<Film, LabError> {
    say("encoding a film of 64 s".to_owned());
    let name = format!("andante-film-{}.mkv", std::process::id());
    let film = Film {
        file: std::env::temp_dir().join(name),
    };
    let output = Command::new(ffmpeg)
        .args(["-nostdin", "-v", "error", "-filter_complex"])
        .arg(scenes())
        .args(["-map", "[film]", "-c:v", "libx264", "-preset", "medium"])
        .args(["-crf", "23", "-bf", "3", "-g", "100", "-threads", "1", "-y"])
        .arg(&film.file)
        .output()
        .map_err(|e| LabError::io("run ffmpeg", e))?;
    match output.status.success() {
        true => Ok(film),
        false => Err(LabError::io(
            "encode the film with ffmpeg",
            std::io::Error::other(last_line(&output)),
        )),
    }
}

/// The filter that makes the scenes and joins them.
fn scenes() -> String {
    let mut graph = String::new();
    let mut joined = String::new();
    for (number, (source, grain)) in SCENES.iter().enumerate() {
        let _ = write!(
            graph,
            "{source}=size=640x360:rate=25,trim=duration={SCENE_S},setpts=PTS-STARTPTS,\
             noise=alls={grain}:allf=t,format=yuv420p[s{number}];"
        );
        let _ = write!(joined, "[s{number}]");
    }
    format!("{graph}{joined}concat=n={}:v=1[film]", SCENES.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
bench:      337 user      233 sys     1406 real decode_video 0.0 \n\
bench:       30 user        0 sys      432 real decode_video 0.0 \n\
bench:       22 user       15 sys       38 real encode_video 0.0 \n\
frame=    1 fps=0.0 q=-0.0 size=N/A time=00:00:00.04\rbench: 100 user 8 sys 9 real decode_video 0.0\n\
bench:        1 user        1 sys        1 real decode_video 0.0 \n\
bench:        5 user        0 sys        1 real decode_video 0.0 \n\
frame=    2 fps=0.0 q=-0.0 Lsize=N/A time=00:00:02.00\n";

    #[test]
    fn a_frame_is_all_calls_of_the_decoder_for_it() {
        assert_eq!(frame_times(SAID), Ok(vec![600, 110]));
    }

    #[test]
    fn what_cannot_be_put_together_is_refused() {
        assert_eq!(frame_times(""), Err("it has no pictures".to_owned()));
        let said = "bench: 1 user 1 sys 1 real decode_video 0.0\nframe= 2 fps=0";
        assert!(frame_times(said).unwrap_err().contains("1 calls"));
    }

    #[test]
    fn the_text_is_a_trace() {
        let text = text(&[600, 110], "ffmpeg version 5", 3, "film.mkv");
        assert!(text.contains("ffmpeg version 5, one thread, least of 3"));
        assert!(
            text.ends_with("# the film: film.mkv\n0.600\n0.110\n"),
            "{text}"
        );
    }
}
