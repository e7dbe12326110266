//! Class operations on the real cgroup v2 of this machine. They need root and the cpu controller on
//! cgroup v2; without them every test says so and passes.

use std::fs;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use andante_sched::class::{ClassError, ClassPath, NewClass, Tree};

/// A class of its own for one test, removed with everything in it afterwards.
struct Ground {
    tree: Tree,
    path: ClassPath,
    sleepers: Vec<Child>,
}

impl Ground {
    fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let tree = match Tree::open() {
            Ok(tree) => tree,
            Err(error) => return skip(&error),
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("/andante-test-{}-{number}", std::process::id());
        let path = ClassPath::parse(&name).unwrap();
        match tree.create(&path, &NewClass::default()) {
            Ok(_) => Some(Self {
                tree,
                path,
                sleepers: Vec::new(),
            }),
            Err(error @ ClassError::NotPermitted { .. }) => skip(&error),
            Err(error) => panic!("{error}"),
        }
    }

    fn class(&self, name: &str) -> ClassPath {
        ClassPath::parse(&format!("{}/{name}", self.path)).unwrap()
    }

    fn make(&self, name: &str) -> ClassPath {
        let path = self.class(name);
        self.tree.create(&path, &NewClass::default()).unwrap();
        path
    }

    fn sleeper_in(&mut self, path: &ClassPath) -> i32 {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        self.sleepers.push(child);
        self.tree.place(&[pid], path).unwrap();
        pid
    }

    fn kind(&self, path: &ClassPath) -> String {
        let file = self.tree.directory(path).join("cgroup.type");
        fs::read_to_string(file).unwrap().trim().to_owned()
    }
}

fn skip(error: &ClassError) -> Option<Ground> {
    eprintln!("skipped: {error}");
    None
}

impl Drop for Ground {
    fn drop(&mut self) {
        for sleeper in &mut self.sleepers {
            let _ = sleeper.kill();
            let _ = sleeper.wait();
        }
        let classes = self.tree.list(&self.path).unwrap_or_default();
        for class in classes.iter().rev() {
            self.tree.remove(&class.path).unwrap();
        }
    }
}

#[test]
fn a_class_is_made_with_its_parents_weighted_listed_and_removed() {
    let Some(ground) = Ground::new() else { return };
    let leaf = ground.class("a/b");
    let new = NewClass {
        weight: Some(300),
        ..NewClass::default()
    };
    assert_eq!(ground.tree.create(&leaf, &new).unwrap().len(), 2);
    assert_eq!(ground.tree.show(&leaf).unwrap().weight, Some(300));
    ground.make("a/c");
    assert!(
        (ground.tree.share_asked(&leaf).unwrap()
            - 0.75 * ground.tree.share_asked(&ground.class("a")).unwrap())
        .abs()
            < 1e-12
    );
    ground.tree.set_weight(&leaf, 100).unwrap();
    assert_eq!(ground.tree.show(&leaf).unwrap().weight, Some(100));

    let listed: Vec<_> = ground
        .tree
        .list(&ground.path)
        .unwrap()
        .into_iter()
        .map(|class| class.path)
        .collect();
    let expected = [
        ground.path.clone(),
        ground.class("a"),
        leaf.clone(),
        ground.class("a/c"),
    ];
    assert_eq!(listed, expected);

    assert!(matches!(
        ground.tree.create(&leaf, &new),
        Err(ClassError::Exists(_))
    ));
    assert!(matches!(
        ground.tree.remove(&ground.class("a")),
        Err(ClassError::HoldsChildren { count: 2, .. })
    ));
    ground.tree.remove(&leaf).unwrap();
    assert!(matches!(
        ground.tree.remove(&leaf),
        Err(ClassError::Unknown(_))
    ));
}

#[test]
fn a_bad_weight_leaves_nothing_behind() {
    let Some(ground) = Ground::new() else { return };
    let path = ground.class("a/b");
    for weight in [0, 10_001, -5] {
        let new = NewClass {
            weight: Some(weight),
            ..NewClass::default()
        };
        assert!(matches!(
            ground.tree.create(&path, &new),
            Err(ClassError::BadWeight(_))
        ));
        assert!(!ground.tree.exists(&ground.class("a")));
    }
}

#[test]
fn a_class_with_tasks_is_not_removed() {
    let Some(mut ground) = Ground::new() else {
        return;
    };
    let path = ground.make("a");
    let pid = ground.sleeper_in(&path);
    assert_eq!(ground.tree.class_of(pid), Some(path.clone()));
    assert_eq!(ground.tree.show(&path).unwrap().tasks, 1);
    let refused = ground.tree.remove(&path);
    assert!(matches!(refused, Err(ClassError::HoldsTasks { count: 1, first, .. }) if first == pid));
}

#[test]
fn below_a_class_with_tasks_a_class_must_adopt_them_or_be_threaded() {
    let Some(mut ground) = Ground::new() else {
        return;
    };
    let parent = ground.make("a");
    let pid = ground.sleeper_in(&parent);
    let child = ground.class("a/b");
    let plain = ground.tree.create(&child, &NewClass::default());
    assert!(
        matches!(plain, Err(ClassError::ParentHoldsTasks { count: 1, .. })),
        "{plain:?}"
    );
    assert!(!ground.tree.exists(&child));
    assert_eq!(
        ground.kind(&parent),
        "domain",
        "the refusal must not have changed the parent"
    );

    let adopt = NewClass {
        adopt: true,
        ..NewClass::default()
    };
    ground.tree.create(&child, &adopt).unwrap();
    assert_eq!(ground.tree.class_of(pid), Some(child));
    assert_eq!(ground.tree.show(&parent).unwrap().tasks, 0);
    assert!(matches!(
        ground.tree.place(&[pid], &parent),
        Err(ClassError::InnerClass(_))
    ));
}

#[test]
fn threaded_classes_let_their_parent_keep_its_tasks() {
    let Some(mut ground) = Ground::new() else {
        return;
    };
    let parent = ground.make("a");
    let stays = ground.sleeper_in(&parent);
    let child = ground.class("a/b");
    let threaded = NewClass {
        threaded: true,
        weight: Some(50),
        ..NewClass::default()
    };
    ground.tree.create(&child, &threaded).unwrap();
    let goes = ground.sleeper_in(&child);
    assert_eq!(ground.tree.class_of(stays), Some(parent.clone()));
    assert_eq!(ground.tree.class_of(goes), Some(child));
    let (inner, sibling) = (ground.tree.show(&parent).unwrap(), ground.make("a/c"));
    assert_eq!((inner.tasks, inner.threaded), (1, true));
    assert_eq!(
        ground.kind(&sibling),
        "threaded",
        "siblings follow, or they could hold nothing"
    );
}

#[test]
fn a_threaded_class_is_refused_beside_populated_ordinary_ones() {
    let Some(mut ground) = Ground::new() else {
        return;
    };
    let ordinary = ground.make("a");
    ground.sleeper_in(&ordinary);
    let threaded = NewClass {
        threaded: true,
        ..NewClass::default()
    };
    let refused = ground.tree.create(&ground.class("b"), &threaded);
    assert!(
        matches!(refused, Err(ClassError::NotThreaded(_))),
        "{refused:?}"
    );
    assert!(!ground.tree.exists(&ground.class("b")));
}

#[test]
fn moving_is_all_or_nothing() {
    let Some(mut ground) = Ground::new() else {
        return;
    };
    let (from, to) = (ground.make("from"), ground.make("to"));
    let pid = ground.sleeper_in(&from);
    let kernel_thread = ground.tree.place(&[pid, 2], &to);
    assert!(
        matches!(kernel_thread, Err(ClassError::KernelThread { pid: 2, name })
        if name == "kthreadd")
    );
    assert!(matches!(
        ground.tree.place(&[pid, i32::MAX], &to),
        Err(ClassError::NoProcess(_))
    ));
    assert_eq!(ground.tree.class_of(pid), Some(from));
    let unknown = ground.class("nowhere");
    assert!(matches!(
        ground.tree.place(&[pid], &unknown),
        Err(ClassError::Unknown(_))
    ));
    ground.tree.place(&[pid], &to).unwrap();
    assert_eq!(ground.tree.class_of(pid), Some(to));
}

#[test]
fn the_root_keeps_its_place() {
    let Some(ground) = Ground::new() else { return };
    let root = ClassPath::root();
    assert!(matches!(
        ground.tree.remove(&root),
        Err(ClassError::IsRoot { .. })
    ));
    assert!(matches!(
        ground.tree.set_weight(&root, 100),
        Err(ClassError::IsRoot { .. })
    ));
}
