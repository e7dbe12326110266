use super::*;
use crate::sysctl::{BOOST, MOVES_LOCKED};

const MIB: u64 = 1 << 20;

/// Folders with the kernel's files in them.
struct Fake {
    folder: tempfile::TempDir,
}

impl Fake {
    fn new(classes: &[&str]) -> Self {
        let fake = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(fake.root()).unwrap();
        fs::write(fake.root().join("cgroup.subtree_control"), "cpu memory\n").unwrap();
        for class in classes {
            fake.make(class);
        }
        fake
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("cgroup")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("run/memory.json")
    }

    fn sysctl(&self) -> Sysctl {
        Sysctl::at(self.folder.path())
    }

    fn make(&self, class: &str) {
        let folder = self.root().join(class);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("memory.min"), "0").unwrap();
        fs::write(folder.join("cgroup.subtree_control"), "cpu memory\n").unwrap();
    }

    fn min(&self, class: &str) -> u64 {
        Cgroup::new(self.root().join(class)).protected().unwrap() / MIB
    }

    fn set(&self, class: &str, mib: u64) {
        Cgroup::new(self.root().join(class))
            .set_protected(mib * MIB)
            .unwrap();
    }

    fn open(&self) -> Protection {
        Protection::open(&self.root(), &self.state(), self.sysctl()).unwrap()
    }
}

fn wanted(all: &[(&str, u64)]) -> BTreeMap<Relative, u64> {
    let one = |(class, mib): &(&str, u64)| (Relative::from(class), mib * MIB);
    all.iter().map(one).collect()
}

#[test]
fn every_class_above_has_what_those_below_need() {
    let fake = Fake::new(&["a", "a/b", "a/c", "d"]);
    let mut protection = fake.open();
    protection
        .set(wanted(&[("a/b", 100), ("a/c", 50)]))
        .unwrap();
    assert_eq!(
        (fake.min("a/b"), fake.min("a/c"), fake.min("a")),
        (100, 50, 150)
    );
    assert_eq!(fake.min("d"), 0);
    assert_eq!(protection.protected_by_others(), 0);
    // One that is reserved itself holds those below it.
    protection.set(wanted(&[("a", 200), ("a/b", 100)])).unwrap();
    assert_eq!(
        (fake.min("a"), fake.min("a/b"), fake.min("a/c")),
        (200, 100, 0)
    );
    protection.set(wanted(&[])).unwrap();
    assert_eq!((fake.min("a"), fake.min("a/b")), (0, 0));
    assert!(!fake.state().exists(), "there is nothing to put back");
}

#[test]
fn what_others_had_set_is_respected_and_put_back() {
    let fake = Fake::new(&["a", "a/unit", "a/film"]);
    fake.set("a", 40);
    fake.set("a/unit", 30);
    let mut protection = fake.open();
    protection
        .set(wanted(&[("a/film", 100), ("a/unit", 10)]))
        .unwrap();
    assert_eq!(fake.min("a/unit"), 30, "it has more already");
    assert_eq!(fake.min("a"), 140);
    assert_eq!(protection.protected_by_others(), 40 * MIB);
    protection.set(wanted(&[("a/unit", 50)])).unwrap();
    assert_eq!((fake.min("a/unit"), fake.min("a")), (50, 60));
    protection.set(wanted(&[])).unwrap();
    assert_eq!(
        (fake.min("a"), fake.min("a/unit"), fake.min("a/film")),
        (40, 30, 0)
    );
}

#[test]
fn a_change_by_somebody_else_is_seen_and_ours_put_on_top() {
    let fake = Fake::new(&["a", "a/film"]);
    let mut protection = fake.open();
    protection.set(wanted(&[("a/film", 100)])).unwrap();
    assert_eq!(protection.look(), []);
    fake.set("a", 20);
    let changed = protection.look();
    assert_eq!(changed.len(), 1);
    assert_eq!((changed[0].set, changed[0].found), (100 * MIB, 20 * MIB));
    assert_eq!(fake.min("a"), 120);
    assert_eq!(protection.look(), [], "it is said once");
    protection.set(wanted(&[])).unwrap();
    assert_eq!(fake.min("a"), 20, "that is theirs");
}

#[test]
fn a_process_that_was_killed_leaves_what_puts_it_back() {
    let fake = Fake::new(&["a", "a/film"]);
    fake.set("a", 10);
    let mut protection = fake.open();
    protection.set(wanted(&[("a/film", 100)])).unwrap();
    assert_eq!(fake.min("a"), 110);
    drop(protection); // a kill runs no code either
    assert_eq!(fake.min("a/film"), 100);
    fake.open();
    assert_eq!((fake.min("a"), fake.min("a/film")), (10, 0));
    assert!(!fake.state().exists());
}

#[test]
fn a_class_that_cannot_hand_on_keeps_nothing_else_from_being_put_back() {
    let fake = Fake::new(&["a", "a/b", "d"]);
    let mut protection = fake.open();
    protection.set(wanted(&[("d", 50)])).unwrap();
    // As a class that processes are in directly: the kernel takes no word.
    let control = fake.root().join("a/cgroup.subtree_control");
    fs::remove_file(&control).unwrap();
    fs::create_dir(&control).unwrap();
    let both = wanted(&[("a/b", 30), ("d", 50)]);
    assert!(protection.set(both).is_err());
    assert_eq!(fake.min("d"), 50);
    drop(protection); // killed
    fake.open();
    assert_eq!((fake.min("a"), fake.min("a/b"), fake.min("d")), (0, 0, 0));
    assert!(!fake.state().exists());
}

#[test]
fn settings_of_the_kernel_are_others_as_long_as_something_is_reserved() {
    let fake = Fake::new(&["a"]);
    let write = |name: &str, value: &str| fs::write(fake.folder.path().join(name), value).unwrap();
    let are = |moves: &str, boost: &str| {
        let is = |name: &str| fs::read_to_string(fake.folder.path().join(name)).unwrap();
        assert_eq!((is(MOVES_LOCKED), is(BOOST)), (moves.into(), boost.into()));
    };
    write(MOVES_LOCKED, "1\n");
    write(BOOST, "15000\n");
    let mut protection = fake.open();
    are("1\n", "15000\n");
    protection.set(wanted(&[("a", 100)])).unwrap();
    are("0", "0");
    drop(protection); // killed
    fake.open();
    are("1", "15000");
    // Somebody has chosen the one before, and chooses another meanwhile.
    write(MOVES_LOCKED, "0");
    let mut protection = fake.open();
    protection.set(wanted(&[("a", 100)])).unwrap();
    write(BOOST, "5000");
    protection.set(wanted(&[])).unwrap();
    are("0", "5000");
    assert!(!fake.state().exists());
}

#[test]
fn a_class_that_is_gone_is_forgotten_and_another_of_its_name_is_another() {
    let fake = Fake::new(&["a", "a/film", "a/other"]);
    let mut protection = fake.open();
    protection.set(wanted(&[("a/film", 100)])).unwrap();
    fs::rename(fake.root().join("a/film"), fake.root().join("gone")).unwrap();
    fake.make("a/film");
    fake.set("a/film", 7);
    protection.set(wanted(&[("a/other", 30)])).unwrap();
    assert_eq!(fake.min("a/film"), 7, "it was never ours");
    assert_eq!((fake.min("a"), fake.min("a/other")), (30, 30));
}

#[test]
fn classes_count_memory_apart_as_long_as_that_is_needed() {
    let fake = Fake::new(&["a", "a/film"]);
    let control = fake.root().join("a/cgroup.subtree_control");
    fs::write(&control, "cpu\n").unwrap();
    fs::remove_file(fake.root().join("a/film/memory.min")).unwrap();
    let mut protection = fake.open();
    protection.set(wanted(&[("a/film", 100)])).unwrap();
    assert_eq!(fs::read_to_string(&control).unwrap(), "+memory");
    fs::write(&control, "cpu memory\n").unwrap(); // as the kernel would
    protection.set(wanted(&[])).unwrap();
    assert_eq!(fs::read_to_string(&control).unwrap(), "-memory");
    // With a limit of somebody's below, it stays.
    fs::write(&control, "cpu\n").unwrap();
    protection.set(wanted(&[("a/film", 100)])).unwrap();
    fs::write(&control, "cpu memory\n").unwrap();
    fs::write(fake.root().join("a/film/memory.max"), "4096\n").unwrap();
    protection.set(wanted(&[])).unwrap();
    assert_eq!(fs::read_to_string(&control).unwrap(), "cpu memory\n");
}

#[test]
fn a_file_that_makes_no_sense_is_as_none() {
    let fake = Fake::new(&["a"]);
    fs::create_dir_all(fake.state().parent().unwrap()).unwrap();
    fs::write(fake.state(), "{\"classes\":{").unwrap();
    fake.open();
}
