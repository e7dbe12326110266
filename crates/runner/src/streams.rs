//! Films that ffmpeg streams to an mpv, over RTP: the ports of each, and what the player is told of them.

use std::fs;
use std::path::{Path, PathBuf};

use andante_job::LabError;
use andante_programs::assets;
use andante_scenario::{Clip, Kind, Program, Workload, players_of};

use super::prepared::Prepared;
use super::process::CommandLine;

/// The first port, above those of film servers.
const FIRST_PORT: u16 = 6004;
/// Picture and sound have two each: RTP's own and RTCP's after it.
const PORTS: u16 = 4;

/// Ports of picture and sound, by the server's place among its kind.
fn ports(workload: &Workload, server: &str) -> [u16; 2] {
    let first = FIRST_PORT + PORTS * workload.place_in_kind(server) as u16;
    [first, first + 2]
}

/// Where the player of a server's stream is.
fn player_address(prepared: &Prepared<'_>, server: &str) -> String {
    let mut players = players_of(&prepared.workload.programs, server);
    let player = players.next().expect("checked when it was read");
    prepared.address_of(&player.name)
}

/// ffmpeg, which sends the film as fast as it is to be played.
pub(super) fn server(prepared: &Prepared<'_>, program: &Program, clip: &Clip) -> CommandLine {
    let mut argv: Vec<String> = ["ffmpeg", "-nostdin", "-loglevel", "error", "-re", "-i"]
        .map(str::to_owned)
        .into();
    let file = assets::clip_file(&prepared.setup.assets, clip);
    argv.push(file.display().to_string());
    let to = player_address(prepared, &program.name);
    argv.extend(assets::to_rtp(&to, ports(prepared.workload, &program.name)));
    argv.into()
}

/// The file that the player of this server's stream opens.
pub(super) fn description(folder: &Path, server: &str) -> PathBuf {
    folder.join(format!("{server}.sdp"))
}

/// Writes all of those.
pub(super) fn describe(prepared: &Prepared<'_>) -> Result<(), LabError> {
    let running = prepared.workload.programs.iter().filter(|p| p.count > 0);
    for program in running {
        let Kind::RtpServer { clip } = &program.kind else {
            continue;
        };
        let usual = assets::sdp_file(&prepared.setup.assets, clip);
        let text = fs::read_to_string(&usual).map_err(|e| LabError::file("read", &usual, e))?;
        let file = description(&prepared.setup.folder, &program.name);
        let address = player_address(prepared, &program.name);
        let text = addressed(&text, &address, ports(prepared.workload, &program.name));
        fs::write(&file, text).map_err(|e| LabError::file("write", &file, e))?;
    }
    Ok(())
}

/// The description with the address and the ports of a player.
fn addressed(usual: &str, address: &str, ports: [u16; 2]) -> String {
    let line = |line: &str| {
        let media = ["m=video", "m=audio"].into_iter().zip(ports);
        let mut media = media.zip(assets::SDP_PORTS).map(|((of, port), usual)| {
            let rest = line
                .strip_prefix(of)?
                .trim_start()
                .strip_prefix(&usual.to_string())?;
            Some(format!("{of} {port}{rest}\n"))
        });
        match line.strip_prefix("c=IN IP4 ") {
            Some(_) => format!("c=IN IP4 {address}\n"),
            None => media
                .find_map(|line| line)
                .unwrap_or_else(|| format!("{line}\n")),
        }
    };
    // ffmpeg says so on top when it is asked on a terminal.
    usual
        .lines()
        .filter(|line| *line != "SDP:")
        .map(line)
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_player_is_told_its_own_ports() {
        let usual = "v=0\nc=IN IP4 127.0.0.1\nm=video 9 RTP/AVP 96\na=rtpmap:96 H264/90000\nm=audio 10 RTP/AVP 97\n";
        let told = super::addressed(usual, "10.77.0.2", [6004, 6006]);
        let wanted = "v=0\nc=IN IP4 10.77.0.2\nm=video 6004 RTP/AVP 96\na=rtpmap:96 H264/90000\nm=audio 6006 RTP/AVP 97\n";
        assert_eq!(told, wanted);
    }
}
