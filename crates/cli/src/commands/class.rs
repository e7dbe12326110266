//! `andante class`: the tree of classes, which is the tree of cgroups.

use std::os::unix::fs::MetadataExt;

use andante_sched::class::{ClassInfo, ClassPath, NewClass, Tree};
use andante_sched::doctor::Loaded;
use andante_sched::text::shown;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::exit::{Refusal, Status};
use crate::output::{self, BOLD, DIM, paint, percent, seconds};
use crate::tree;

/// List, create, remove, weigh and fill classes.
///
/// A class is a cgroup (version 2), so systemd's slices, services and containers are classes too.
/// Its weight (1 to 10000, 100 for a new one) says what it gets relative to its siblings. These
/// commands work whether or not the scheduler is loaded.
#[derive(Args)]
#[command(after_long_help = "\
QLinux's node calls: mknod = create, rmnod = remove, admin = set, move and join = move, \
parse = the path itself.

There are places for 8191 classes; a class takes one, and one more if it has children. A cgroup that finds \
none shares its parent's class: create and set say so and end with status 28, and as soon as others are \
removed it gets its own (`andante status` tells how many share).

Examples:
  sudo andante class create media --weight 800
  sudo andante class create media/film
  sudo andante class move $(pidof mpv) media/film
  andante class list")]
pub struct Class {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    List(List),
    Show(Show),
    Create(Create),
    Remove(Remove),
    Set(Set),
    Move(Move),
}

/// List the classes as a tree.
#[derive(Args)]
#[command(after_help = "Examples:\n  andante class list\n  andante class list /user.slice --json")]
struct List {
    /// Only this class and what is below it.
    #[arg(value_name = "PATH", default_value = "/", value_parser = ClassPath::parse)]
    path: ClassPath,
    /// Show cgroups without the cpu controller too; they are scheduled as part of their parent.
    #[arg(long, short)]
    all: bool,
    /// Print the data as JSON.
    #[arg(long)]
    json: bool,
}

/// Show one class.
#[derive(Args)]
#[command(after_help = "Example:\n  andante class show media/film")]
struct Show {
    /// The class, for example /media/film.
    #[arg(value_parser = ClassPath::parse)]
    path: ClassPath,
    /// Print the data as JSON.
    #[arg(long)]
    json: bool,
}

/// Create a class, and the classes above it that are missing (QLinux: mknod).
///
/// In cgroup v2 a class other than the root holds either tasks or classes. Below a class that holds
/// tasks, say with --adopt that they move into the new class, or with --threaded that they stay.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  sudo andante class create media --weight 800
  sudo andante class create media/film --weight 300
  sudo andante class create --adopt media/film/rest    (media/film's tasks move into it)")]
struct Create {
    /// The class to create.
    #[arg(value_parser = ClassPath::parse)]
    path: ClassPath,
    /// Its weight, 1 to 10000 [default: 100].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    weight: Option<i64>,
    /// Move the tasks of the class above into it.
    #[arg(long, conflicts_with = "threaded")]
    adopt: bool,
    /// Make it threaded, so that the class above keeps its tasks; not possible where memory or io
    /// is controlled.
    #[arg(long)]
    threaded: bool,
}

/// Remove an empty class (QLinux: rmnod).
#[derive(Args)]
#[command(after_help = "Example:\n  sudo andante class remove media/film")]
struct Remove {
    /// The class to remove.
    #[arg(value_parser = ClassPath::parse)]
    path: ClassPath,
}

/// Change a class's weight, also while it runs (QLinux: admin).
#[derive(Args)]
#[command(after_help = "Example:\n  sudo andante class set media --weight 1600")]
struct Set {
    /// The class to change.
    #[arg(value_parser = ClassPath::parse)]
    path: ClassPath,
    /// Its new weight, 1 to 10000.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    weight: i64,
}

/// Move processes, with all their threads, into a class (QLinux: move, join).
#[derive(Args)]
#[command(after_help = "Example:\n  sudo andante class move $(pidof make) build")]
struct Move {
    /// The processes.
    #[arg(value_name = "PID", required = true, num_args = 1..)]
    pids: Vec<i32>,
    /// The class to move them into.
    #[arg(value_parser = ClassPath::parse)]
    path: ClassPath,
}

/// One class with its share, as `--json` prints it.
#[derive(Serialize)]
struct Described {
    #[serde(flatten)]
    info: ClassInfo,
    /// What the weights give it while every class wants to run [ratio].
    share_asked: f64,
}

impl Class {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        let tree = Tree::open()?;
        if let Some(policy) = Loaded::find().and_then(|loaded| loaded.policy()) {
            output::note(&format!(
                "the historical policy {} is in charge: it knows no classes, and their weights do nothing",
                policy.name()
            ));
        }
        match self.action {
            Action::List(list) => list.run(&tree)?,
            Action::Show(show) => show.run(&tree)?,
            Action::Create(create) => {
                let path = create.path.clone();
                create.run(&tree)?;
                refuse_if_shared(&tree, &path)?;
            }
            Action::Remove(remove) => tree.remove(&remove.path)?,
            Action::Set(set) => {
                tree.set_weight(&set.path, set.weight)?;
                refuse_if_shared(&tree, &set.path)?;
            }
            Action::Move(moved) => tree.place(&moved.pids, &moved.path)?,
        }
        Ok(Status::Ok)
    }
}

/// Fails if the class, though it is made and weighed, has no room of its own in the scheduler: nobody should
/// find that out by its share. Who may not look is told nothing.
fn refuse_if_shared(tree: &Tree, path: &ClassPath) -> Result<()> {
    let id = std::fs::metadata(tree.directory(path)).map(|found| found.ino());
    let shares = |id: u64| andante_sched::shares_class(id).unwrap_or(false);
    if !id.is_ok_and(shares) {
        return Ok(());
    }
    let message = format!(
        "the weight of class {path} is set, but it shares its parent's class: all {} places for classes are \
         taken; remove cgroups that nobody needs, and it gets its own within seconds",
        andante_sched::MAX_CLASSES
    );
    Err(Refusal::new(Status::NoRoom, message).into())
}

impl List {
    fn run(self, tree: &Tree) -> Result<()> {
        let mut classes = Vec::new();
        for info in tree.list(&self.path)? {
            if self.all || info.weight.is_some() || info.path == self.path {
                let share_asked = tree.share_asked(&info.path)?;
                classes.push(Described { info, share_asked });
            }
        }
        if self.json {
            output::print_json(&classes)
        } else {
            output::print(&render(&classes))
        }
    }
}

impl Show {
    fn run(self, tree: &Tree) -> Result<()> {
        let info = tree.show(&self.path)?;
        let class = Described {
            share_asked: tree.share_asked(&self.path)?,
            info,
        };
        if self.json {
            return output::print_json(&class);
        }
        let info = &class.info;
        let weight = info
            .weight
            .map_or_else(|| "none".into(), |weight| weight.to_string());
        let threaded = if info.threaded { " (threaded)" } else { "" };
        output::print(&format!(
            "{}{threaded}\n  weight       {weight}\n  share asked  {}\n  tasks        {}\n  \
             children     {}\n  CPU time     {}\n",
            paint(BOLD, &info.path),
            percent(class.share_asked).trim_start(),
            info.tasks,
            info.children,
            seconds(info.cpu_us * 1000),
        ))
    }
}

impl Create {
    fn run(self, tree: &Tree) -> Result<()> {
        let Self {
            weight,
            adopt,
            threaded,
            ..
        } = self;
        tree.create(
            &self.path,
            &NewClass {
                weight,
                adopt,
                threaded,
            },
        )?;
        Ok(())
    }
}

fn render(classes: &[Described]) -> String {
    let depths: Vec<_> = classes
        .iter()
        .map(|class| class.info.path.depth())
        .collect();
    let lines = tree::lines(&depths);
    let names: Vec<_> = classes
        .iter()
        .enumerate()
        // The first is where the listing starts: say in full what it is.
        .map(|(at, class)| match at {
            0 => class.info.path.to_string(),
            _ => shown(class.info.path.name()).into_owned(),
        })
        .collect();
    let width = |(line, name): (&String, &String)| line.width() + name.width();
    let width = lines
        .iter()
        .zip(&names)
        .map(width)
        .max()
        .unwrap_or(0)
        .max(5);
    let head = format!("{:width$}  WEIGHT  TASKS    ASKED    CPU TIME", "CLASS");
    let mut text = format!("{}\n", paint(DIM, head));
    for ((line, name), class) in lines.iter().zip(&names).zip(classes) {
        let pad = " ".repeat(width - line.width() - name.width());
        let weight = class
            .info
            .weight
            .map_or_else(String::new, |weight| weight.to_string());
        text += &format!(
            "{}{name}{pad}  {weight:>6}  {:>5}  {}  {:>10}\n",
            paint(DIM, line),
            class.info.tasks,
            percent(class.share_asked),
            seconds(class.info.cpu_us * 1000),
        );
    }
    text
}
