//! `sessions`: who says through Andante's library what it does, of the programs that do not say whether they do.

use andante_document::{DocumentError, Section, suggest};

use super::Program;

/// The key.
const KEY: &str = "sessions";

/// Those that open a session if nothing else is said of them.
#[derive(Debug, Default)]
pub(super) enum Sessions {
    /// Nobody.
    #[default]
    None,
    /// All that can.
    All,
    /// Those of these kinds.
    Kinds(Vec<String>),
}

impl Sessions {
    /// Whether a program of this kind, which can open one, does.
    pub fn of(&self, kind: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Kinds(kinds) => kinds.iter().any(|known| known == kind),
        }
    }
}

/// Reads `sessions = true`, or `sessions = ["player", "audio"]`.
pub(super) fn read(root: &mut Section<'_>) -> Result<Sessions, DocumentError> {
    if root.node(KEY).is_none() {
        return Ok(Sessions::None);
    }
    if let Ok(given) = root.get::<bool>(KEY) {
        return Ok(match given {
            Some(true) => Sessions::All,
            _ => Sessions::None,
        });
    }
    match root.get::<Vec<String>>(KEY) {
        Ok(kinds) => Ok(Sessions::Kinds(kinds.unwrap_or_default())),
        Err(_) => Err(root.error(KEY, "give true or false, or a list of kinds of programs")),
    }
}

/// Refuses what nobody is meant by.
pub(super) fn check(
    sessions: &Sessions,
    programs: &[Program],
    root: &Section<'_>,
) -> Result<(), DocumentError> {
    let able = programs.iter().filter(|p| p.kind.cycle().is_some());
    let mut able: Vec<&str> = able.map(|program| program.kind.name()).collect();
    able.sort_unstable();
    able.dedup();
    match sessions {
        Sessions::None => Ok(()),
        Sessions::All if able.is_empty() => Err(root.error(KEY, "no program here opens any")),
        Sessions::All => Ok(()),
        Sessions::Kinds(kinds) => match kinds.iter().find(|kind| !able.contains(&kind.as_str())) {
            None => Ok(()),
            Some(kind) => {
                let hint = suggest(kind, able.into_iter());
                let message = format!("no program of kind `{kind}` here opens any{hint}");
                Err(root.error(KEY, message))
            }
        },
    }
}
