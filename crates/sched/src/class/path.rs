//! Names of classes.

use std::fmt;

use serde::Serialize;

use super::ClassError;
use crate::text::shown;

/// Where a class is in the tree: `/` for the root, `/media/film` for a class in a class. Bytes that are no
/// UTF-8 stand in it as `\xNN`.
///
/// Ordered by component, so that a sorted list of paths is the tree in depth-first order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassPath(Vec<String>);

impl ClassPath {
    /// Reads a path as a user writes it; the leading `/` may be left out (QLinux: parse).
    ///
    /// # Errors
    /// [`ClassError::BadPath`] for the empty path and for names that a cgroup cannot have.
    pub fn parse(text: &str) -> Result<Self, ClassError> {
        let bad = |why| ClassError::BadPath {
            given: text.to_owned(),
            why,
        };
        if text.is_empty() {
            return Err(bad("it is empty"));
        }
        let names: Vec<_> = text
            .split('/')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        if names.iter().any(|name| name == "." || name == "..") {
            return Err(bad("`.` and `..` have no meaning in it"));
        }
        if names.iter().any(|name| name.contains(['\n', '\0'])) {
            return Err(bad("it contains a line break"));
        }
        if names.iter().any(|name| name.len() > 255) {
            return Err(bad("a name in it is longer than 255 bytes"));
        }
        Ok(Self(names))
    }

    /// The root of the tree.
    pub fn root() -> Self {
        Self(Vec::new())
    }

    /// Whether this is the root of the tree.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The class above; none for the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.split_last().map(|(_, above)| Self(above.to_vec()))
    }

    /// The class called `name` directly below.
    pub fn child(&self, name: &str) -> Self {
        Self(self.0.iter().cloned().chain([name.to_owned()]).collect())
    }

    /// The last component; empty for the root.
    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// The whole of it as it is, for programs.
    pub fn to_text(&self) -> String {
        format!("/{}", self.relative())
    }

    /// Distance from the root.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// The root, then every class on the way down to this one, itself last.
    pub fn ancestry(&self) -> impl Iterator<Item = Self> + '_ {
        (0..=self.0.len()).map(|length| Self(self.0[..length].to_vec()))
    }

    /// The path relative to the directory that is the root.
    pub(super) fn relative(&self) -> String {
        self.0.join("/")
    }
}

/// For people: what a terminal would obey is visible.
impl fmt::Display for ClassPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&shown(&self.to_text()))
    }
}

impl Serialize for ClassPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ClassPath {
        ClassPath::parse(text).unwrap()
    }

    #[test]
    fn slashes_are_normalised() {
        assert_eq!(path("media//film/").to_string(), "/media/film");
        assert_eq!(path("/media/film").name(), "film");
        assert!(path("/").is_root());
        assert_eq!(path("/").to_string(), "/");
    }

    #[test]
    fn dots_and_empty_paths_are_refused() {
        for bad in ["", "..", "/media/../etc", "./film", "a\nb"] {
            assert!(
                matches!(ClassPath::parse(bad), Err(ClassError::BadPath { .. })),
                "{bad:?}"
            );
        }
        assert!(
            ClassPath::parse("/user.slice/..film").is_ok(),
            "dots inside a name are fine"
        );
    }

    #[test]
    fn ancestry_goes_from_the_root_down() {
        let names: Vec<_> = path("/a/b")
            .ancestry()
            .map(|class| class.to_string())
            .collect();
        assert_eq!(names, ["/", "/a", "/a/b"]);
    }

    #[test]
    fn what_a_terminal_obeys_is_shown_and_what_programs_read_is_as_it_is() {
        let odd = path("/a\x1b[31mb");
        assert_eq!(odd.to_string(), "/a\\x1b[31mb");
        assert_eq!(odd.to_text(), "/a\x1b[31mb");
        let error = ClassPath::parse("\x1b/..").unwrap_err().to_string();
        assert!(!error.contains('\x1b'), "{error}");
    }

    #[test]
    fn order_is_depth_first() {
        // By characters `/a-b` would come between `/a` and `/a/c`.
        let mut paths = [path("/a-b"), path("/a/c"), path("/a"), path("/")];
        paths.sort();
        assert_eq!(
            paths.map(|class| class.to_string()),
            ["/", "/a", "/a/c", "/a-b"]
        );
    }
}
