//! The machine's own package sources, and new ones derived from them.
//!
//! apt reads two formats, both described in sources.list(5): one source per line, and deb822
//! stanzas. Both are turned into stanzas here, so that a derived source keeps the mirror, the
//! keyring and every other option of its model.

use std::path::Path;
use std::{fs, io};

/// Fields that say what is fetched, and are replaced in a derived source; all others say how.
const WHAT: [&str; 6] = [
    "Types",
    "URIs",
    "Suites",
    "Components",
    "Targets",
    "Enabled",
];

/// One package source: the fields of its deb822 stanza, values with their continuation lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    fields: Vec<(String, String)>,
}

impl Source {
    fn field(&self, name: &str) -> &str {
        self.fields
            .iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map_or("", |(_, value)| value)
    }

    fn lists(&self, field: &str, word: &str) -> bool {
        self.field(field).split_whitespace().any(|w| w == word)
    }

    /// Whether binary packages of the suite's main component come from here.
    fn offers(&self, suite: &str) -> bool {
        !self.field("Enabled").eq_ignore_ascii_case("no")
            && self.lists("Types", "deb")
            && self.lists("Components", "main")
            && self.lists("Suites", suite)
    }

    /// A stanza for the main component of other suites on the same mirror.
    pub(crate) fn derive(&self, suites: &[String]) -> String {
        let mut stanza = format!(
            "Types: deb\nURIs: {}\nSuites: {}\nComponents: main\nTargets: Packages\n",
            self.field("URIs"),
            suites.join(" ")
        );
        for (name, value) in &self.fields {
            if !WHAT.iter().any(|what| what.eq_ignore_ascii_case(name)) {
                stanza.push_str(&format!("{name}: {value}\n"));
            }
        }
        stanza
    }
}

/// The first source that carries one of the suites; suites are tried in order.
pub(crate) fn archive<'a>(sources: &'a [Source], suites: &[&str]) -> Option<&'a Source> {
    suites
        .iter()
        .find_map(|suite| sources.iter().find(|source| source.offers(suite)))
}

/// Reads a `.sources` file: stanzas of `Field: value`, parted by blank lines.
fn parse_deb822(text: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.lines().chain([""]) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            if !fields.is_empty() {
                sources.push(Source {
                    fields: std::mem::take(&mut fields),
                });
            }
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push('\n');
                value.push_str(line);
            }
        } else if let Some((name, value)) = line.split_once(':') {
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }
    sources
}

/// Reads a `.list` file: `deb [option=value …] uri suite component …` on each line.
fn parse_one_line(text: &str) -> Vec<Source> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Source> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let (kind, rest) = line.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let mut fields = vec![
        ("Types".to_owned(), kind.to_owned()),
        ("URIs".to_owned(), words.next()?.to_owned()),
        ("Suites".to_owned(), words.next()?.to_owned()),
        ("Components".to_owned(), words.collect::<Vec<_>>().join(" ")),
    ];
    for option in options.split_whitespace() {
        let (name, value) = option.split_once('=')?;
        fields.push((deb822_name(name).to_owned(), value.replace(',', " ")));
    }
    Some(Source { fields })
}

/// Options whose names differ between the formats by more than case.
fn deb822_name(option: &str) -> &str {
    match option {
        "arch" => "Architectures",
        "lang" => "Languages",
        "target" => "Targets",
        same => same,
    }
}

/// Every source in the given list file and folder, as apt would read them. Files that are not
/// there count as empty.
pub(crate) fn read(list: &Path, parts: &Path) -> io::Result<Vec<Source>> {
    let mut sources = match fs::read_to_string(list) {
        Ok(text) => parse_one_line(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut files: Vec<_> = match fs::read_dir(parts) {
        Ok(entries) => entries
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    files.sort();
    for file in files {
        let parse = match file.extension().and_then(|e| e.to_str()) {
            Some("list") => parse_one_line,
            Some("sources") => parse_deb822,
            _ => continue,
        };
        sources.extend(parse(&fs::read_to_string(&file)?));
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEB822: &str = "\
# the main archive
Types: deb deb-src
URIs: http://mirror.example.org/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBGB

Enabled: no
Types: deb
URIs: http://other.example.org/debian
Suites: trixie
Components: main
";

    #[test]
    fn deb822_stanzas_keep_their_options_when_derived() {
        let sources = parse_deb822(DEB822);
        assert_eq!(sources.len(), 2);
        let derived = archive(&sources, &["bookworm"])
            .unwrap()
            .derive(&["unstable".into()]);
        assert_eq!(
            derived,
            "Types: deb\nURIs: http://mirror.example.org/debian\nSuites: unstable\n\
             Components: main\nTargets: Packages\n\
             Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBGB\n"
        );
        assert!(archive(&sources, &["trixie"]).is_none(), "disabled");
    }

    #[test]
    fn one_line_sources_keep_their_options_when_derived() {
        let sources = parse_one_line(
            "deb-src http://mirror.example.org/debian sid main\n\
             deb [ signed-by=/k.gpg arch=amd64,i386 ] http://mirror.example.org/debian sid main # x\n\
             deb http://security.example.org sid/updates contrib\n\n# deb nothing\n",
        );
        assert_eq!(sources.len(), 3);
        let derived = archive(&sources, &["bookworm", "sid"])
            .unwrap()
            .derive(&["stable-backports".into(), "unstable".into()]);
        assert_eq!(
            derived,
            "Types: deb\nURIs: http://mirror.example.org/debian\n\
             Suites: stable-backports unstable\nComponents: main\nTargets: Packages\n\
             signed-by: /k.gpg\nArchitectures: amd64 i386\n"
        );
    }

    #[test]
    fn folders_are_read_like_apt_does() {
        let folder = tempfile::tempdir().unwrap();
        let parts = folder.path();
        fs::write(parts.join("a.sources"), DEB822).unwrap();
        fs::write(parts.join("b.list"), "deb http://b.example.org sid main\n").unwrap();
        fs::write(parts.join("c.list.disabled"), "deb http://c sid main\n").unwrap();
        let sources = read(&parts.join("absent.list"), parts).unwrap();
        assert_eq!(sources.len(), 3);
        assert!(
            read(Path::new("/nowhere"), Path::new("/nowhere"))
                .unwrap()
                .is_empty()
        );
    }
}
