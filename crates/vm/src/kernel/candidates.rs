//! Which kernels a package archive offers, told by the names of the packages alone.

use super::Kind;
use crate::apt::Release;

/// Kernels older than this lack parts of sched_ext that any scheduler over cgroups needs, so it is
/// not worth downloading them for a look.
const OLDEST: [u64; 2] = [6, 16];

/// Packages that may hold `vmlinuz`, best first: Debian from 6.19 on, then up to 6.18 and Ubuntu.
/// A kernel is published unsigned some days before it is signed; for a virtual machine both serve.
const IMAGE_PREFIXES: [&str; 4] = [
    "linux-binary-",
    "linux-binary-unsigned-",
    "linux-image-",
    "linux-image-unsigned-",
];

/// One kernel that could be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// As `uname -r` says it.
    pub release: String,
    /// The package that holds `vmlinuz`.
    pub image: String,
    /// The packages that hold the modules and the configuration, if the image does not.
    pub others: Vec<String>,
}

/// The flavour whose drivers suit a virtual machine best, as the ending of a kernel's release.
fn flavour(distribution: &str, kind: Kind) -> &'static str {
    match (distribution, kind) {
        ("ubuntu", Kind::Common) => "-generic",
        ("ubuntu", Kind::RealTime) => "-realtime",
        (_, Kind::Common) => "-cloud-amd64",
        (_, Kind::RealTime) => "-rt-amd64",
    }
}

/// The suites in which new kernels appear. Debian's mirrors carry these under their role's name
/// too, which does not change with every release.
pub(super) fn suites(release: &Release) -> Vec<String> {
    match release.id.as_str() {
        "ubuntu" => vec![
            "devel".to_owned(),
            format!("{}-updates", release.codename),
            release.codename.clone(),
        ],
        _ => vec!["unstable".to_owned(), "stable-backports".to_owned()],
    }
}

/// The kernels of this kind among the package names, newest first.
pub(super) fn candidates(names: &[String], distribution: &str, kind: Kind) -> Vec<Candidate> {
    let flavour = flavour(distribution, kind);
    let mut releases: Vec<&str> = names
        .iter()
        .flat_map(|name| IMAGE_PREFIXES.map(|prefix| name.strip_prefix(prefix)))
        .flatten()
        .filter(|release| release.ends_with(flavour))
        .filter(|release| release.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|release| version(release, flavour)[..] >= OLDEST[..])
        .collect();
    releases.sort_by_key(|release| (version(release, flavour), *release));
    releases.dedup();
    let exists = |name: &String| names.contains(name);
    releases
        .into_iter()
        .rev()
        .filter_map(|release| {
            let image = IMAGE_PREFIXES
                .map(|prefix| format!("{prefix}{release}"))
                .into_iter()
                .find(exists)?;
            let mut others: Vec<String> = ["linux-modules-", "linux-base-"]
                .map(|prefix| format!("{prefix}{release}"))
                .into_iter()
                .filter(exists)
                .collect();
            if others.is_empty() {
                // Debian 6.19 to 7.1: modules lie beside the binary, in the image package.
                others.push(format!("linux-image-{release}"));
                others.retain(|name| exists(name) && *name != image);
            }
            Some(Candidate {
                release: release.to_owned(),
                image,
                others,
            })
        })
        .collect()
}

/// The numbers of a release in order, for comparing: 7.2.13+deb14-cloud-amd64 is 7, 2, 13, 14.
fn version(release: &str, flavour: &str) -> Vec<u64> {
    release
        .trim_end_matches(flavour)
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn debian_kernels_come_newest_first_with_the_packages_they_need() {
        let names = names(&[
            "linux-image-6.12.95+deb12-cloud-amd64",
            "linux-image-6.18.15+deb13-cloud-amd64",
            "linux-image-7.0.13+deb13-cloud-amd64",
            "linux-binary-7.0.13+deb13-cloud-amd64",
            "linux-base-7.2.9+deb13-cloud-amd64",
            "linux-binary-7.2.9+deb13-cloud-amd64",
            "linux-binary-unsigned-7.2.9+deb13-cloud-amd64",
            "linux-image-7.2.9+deb13-cloud-amd64",
            "linux-modules-7.2.9+deb13-cloud-amd64",
            "linux-binary-unsigned-7.2.13+deb14-cloud-amd64",
            "linux-modules-7.2.13+deb14-cloud-amd64",
            "linux-image-7.2.13+deb14-cloud-amd64-dbg",
            "linux-image-cloud-amd64",
            "linux-image-7.2.13+deb14-amd64",
        ]);
        let found = candidates(&names, "debian", Kind::Common);
        let releases: Vec<_> = found.iter().map(|c| c.release.as_str()).collect();
        assert_eq!(
            releases,
            [
                "7.2.13+deb14-cloud-amd64",
                "7.2.9+deb13-cloud-amd64",
                "7.0.13+deb13-cloud-amd64",
                "6.18.15+deb13-cloud-amd64"
            ]
        );
        assert!(found[0].image.starts_with("linux-binary-unsigned-7.2.13"));
        assert!(found[1].image.starts_with("linux-binary-7.2.9"));
        assert_eq!(
            found[1].others,
            [
                "linux-modules-7.2.9+deb13-cloud-amd64",
                "linux-base-7.2.9+deb13-cloud-amd64"
            ]
        );
        assert_eq!(found[2].others, ["linux-image-7.0.13+deb13-cloud-amd64"]);
        assert!(found[3].others.is_empty());
    }

    #[test]
    fn real_time_kernels_are_found_when_they_are_asked_for() {
        let names = names(&[
            "linux-binary-7.2.13+deb14-cloud-amd64",
            "linux-binary-7.2.13+deb14-rt-amd64",
            "linux-modules-7.2.13+deb14-rt-amd64",
            "linux-image-6.18.15+deb13-rt-amd64",
            "linux-image-6.1.0-47-rt-amd64",
        ]);
        let found = candidates(&names, "debian", Kind::RealTime);
        let releases: Vec<_> = found.iter().map(|c| c.release.as_str()).collect();
        assert_eq!(
            releases,
            ["7.2.13+deb14-rt-amd64", "6.18.15+deb13-rt-amd64"]
        );
        assert_eq!(found[0].others, ["linux-modules-7.2.13+deb14-rt-amd64"]);
        assert!(candidates(&names, "ubuntu", Kind::RealTime).is_empty());
    }

    #[test]
    fn ubuntu_kernels_are_recognised() {
        let names = names(&[
            "linux-image-6.14.0-15-generic",
            "linux-image-6.17.0-5-generic",
            "linux-image-unsigned-6.17.0-14-generic",
            "linux-modules-6.17.0-5-generic",
            "linux-modules-6.17.0-14-generic",
        ]);
        let found = candidates(&names, "ubuntu", Kind::Common);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].image, "linux-image-unsigned-6.17.0-14-generic");
        assert_eq!(found[1].others, ["linux-modules-6.17.0-5-generic"]);
    }
}
