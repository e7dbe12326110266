//! `network = "here"`: programs in one of two networks that a cable joins, as on two machines.

use andante_document::{DocumentError, Section};

use super::{Kind, Program, check_name};

/// A cable has two ends, and whoever asks a server is at one of them, or in the machine's own network as the
/// server is.
pub(super) fn check(programs: &[Program], root: &Section<'_>) -> Result<(), DocumentError> {
    let running = || programs.iter().filter(|program| program.count > 0);
    let named = networks(programs);
    for name in &named {
        check_name(name).map_err(|message| root.error("programs", message))?;
    }
    if !named.is_empty() && named.len() != 2 {
        let message = format!(
            "{} networks: a cable joins two of them, so name two, or none",
            named.len()
        );
        return Err(root.error("programs", message));
    }
    for player in running() {
        let Kind::FilmPlayer { server, fps, .. } = &player.kind else {
            continue;
        };
        let mut servers = running().filter(|program| program.name == *server);
        let Some((server, Kind::FilmServer { clip })) = servers.next().map(|s| (s, &s.kind)) else {
            continue;
        };
        let name = &player.name;
        if clip.fps != *fps {
            let message = format!(
                "program `{name}` has `fps = {fps}`, its server {}",
                clip.fps
            );
            return Err(root.error("programs", message));
        }
        if player.network.is_some() != server.network.is_some() {
            let message = format!("`network` of program `{name}`, or of its server, is missing");
            return Err(root.error("programs", message));
        }
    }
    Ok(())
}

/// The networks of programs that run, as they come first.
pub fn networks(programs: &[Program]) -> Vec<&str> {
    let mut names = Vec::new();
    let running = programs.iter().filter(|program| program.count > 0);
    for name in running.filter_map(|program| program.network.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    fn read(player: &str) -> Result<Scenario, String> {
        let text = format!(
            "title = 'x'\nduration_s = 1\n\
             [programs.server]\nclass = '/'\nkind = 'film-server'\nfps = 25\nnetwork = 'there'\n\
             [programs.player]\nclass = '/'\nkind = 'film-player'\nserver = 'server'\n{player}\n"
        );
        Scenario::parse("x.toml", &text, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_cable_joins_two_networks() {
        let scenario = read("fps = 25\nnetwork = 'here'").unwrap();
        let programs = &scenario.cases[0].workload.programs;
        let mut names = super::networks(programs);
        names.sort_unstable();
        assert_eq!(names, ["here", "there"]);
        let refused = |player: &str, why: &str| {
            let error = read(player).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused(
            "fps = 25\nnetwork = 'there'",
            "1 networks: a cable joins two",
        );
        refused("fps = 30\nnetwork = 'here'", "its server 25");
        refused("fps = 25\nnetwork = 'a b'", "is no name");
    }
}
