//! `andante class`: the tree of classes, which is the tree of cgroups.

use std::os::unix::fs::MetadataExt;

use andante_daemon::{Client, ClientError, Request, socket_path};
use andante_sched::class::{ClassInfo, ClassPath, NewClass, Tree};
use andante_sched::doctor::Loaded;
use andante_sched::text::shown;
use andante_sched::{BadPolicy, LeafPolicy};
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output::{self, BOLD, DIM, paint, percent, seconds};
use anyhow::Result;
use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::tree;

/// List, create, remove, weigh, order and fill classes.
///
/// A class is a cgroup (version 2), so systemd's slices, services and containers are classes too.
/// Its weight (1 to 10000, 100 for a new one) says what it gets relative to its siblings, its policy in what
/// order its own tasks have that (`andante class set --help`). These commands work whether or not the scheduler is loaded.
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
    /// How its own tasks are ordered: sfq, deadline:TIME, fifo, rr, rr:TIME, svr4-ts, svr4-rt or linux-2.2
    /// [default: sfq].
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    policy: Option<LeafPolicy>,
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

/// Change a class's weight or policy, also while it runs (QLinux: admin).
///
/// A weight says what the class gets beside its siblings; a policy says in what order its own tasks have that.
#[derive(Args)]
#[command(after_long_help = "\
Policies, for leaves of the tree:
  sfq            in proportion to nice values, as every class has it that was given none
  deadline:TIME  earliest deadline first: a task is due TIME after it has woken, at nice 0; at another nice
                 value as much sooner or later as it weighs more or less. A task that has computed for that long
                 without a pause has missed its deadline, and is due anew
  fifo           in order of arrival, until a task sleeps
  rr, rr:TIME    in turn, TIME each [100ms]
  svr4-ts        UNIX System V Release 4, time sharing, as Solaris 2.2 ran it; nice is the user's priority
  svr4-rt        the same, where nice -1 to -20 are levels 2 to 59 of the class RT
  linux-2.2      the epochs of Linux 2.2

A policy lasts as long as the class, whether or not Andante is loaded. Its clock goes while the class is served:
100 ms of round robin are 100 ms of the class's share. Nothing is learnt of tasks in such a class, for somebody has
said how they are ordered; what was promised to them comes first all the same.

Examples:
  sudo andante class set media --weight 1600
  sudo andante class set build --policy rr:20ms
  sudo andante class set build --policy sfq        (the policy that it had before)")]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["weight", "policy"]))]
struct Set {
    /// The class to change.
    #[arg(value_parser = ClassPath::parse)]
    path: ClassPath,
    /// Its new weight, 1 to 10000.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    weight: Option<i64>,
    /// How its own tasks are ordered from now on: see below.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    policy: Option<LeafPolicy>,
}

/// clap tells the error, which has the list.
fn policy(text: &str) -> Result<LeafPolicy, BadPolicy> {
    text.parse()
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
                let (path, policy) = (create.path.clone(), create.policy);
                create.run(&tree)?;
                if policy.is_some() {
                    tell_policy(&path)?;
                }
                refuse_if_shared(&tree, &path)?;
            }
            Action::Remove(remove) => tree.remove(&remove.path)?,
            Action::Set(set) => {
                set.run(&tree)?;
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
        let policy = info.policy.unwrap_or(LeafPolicy::Sfq);
        let threaded = if info.threaded { " (threaded)" } else { "" };
        output::print(&format!(
            "{}{threaded}\n  weight       {weight}\n  policy       {policy}\n  share asked  {}\n  tasks        {}\n  \
             children     {}\n  CPU time     {}\n",
            paint(BOLD, &info.path),
            asked(&class, online_cpus()),
            info.tasks,
            info.children,
            seconds(info.cpu_us * 1000),
        ))
    }
}

/// CPUs that tasks may be put on.
fn online_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The share that the weights give the class, and the part of it that its tasks can use if that is less: one CPU each.
fn asked(class: &Described, cpus: usize) -> String {
    let asked = percent(class.share_asked).trim_start().to_owned();
    let usable = class.info.tasks as f64 / cpus as f64;
    let leaf = class.info.children == 0 && class.info.tasks > 0;
    match leaf && usable < class.share_asked {
        false => asked,
        true => {
            let most = percent(usable);
            let plural = if class.info.tasks == 1 { "" } else { "s" };
            format!(
                "{asked}, at most {} with {} task{plural} on {cpus} CPUs",
                most.trim_start(),
                class.info.tasks
            )
        }
    }
}

impl Set {
    fn run(&self, tree: &Tree) -> Result<()> {
        if let Some(weight) = self.weight {
            tree.set_weight(&self.path, weight)?;
        }
        if let Some(policy) = self.policy {
            tree.set_policy(&self.path, policy)?;
            tell_policy(&self.path)?;
        }
        Ok(())
    }
}

/// The policy of the class was set: the scheduler is told, if it is loaded. One that is loaded later looks by
/// itself.
fn tell_policy(path: &ClassPath) -> Result<()> {
    let mut client = match Client::connect(&socket_path()) {
        Ok(client) => client,
        Err(ClientError::NoDaemon(_)) => {
            output::note("the policy is kept with the class, and in force once Andante is loaded");
            return Ok(());
        }
        Err(ClientError::Historical(_)) => return Ok(()), // said already
        Err(error) => return Err(error.into()),
    };
    let class = path.to_text();
    client.request(&Request::Policy { class })?;
    Ok(())
}

impl Create {
    fn run(self, tree: &Tree) -> Result<()> {
        let Self {
            weight,
            policy,
            adopt,
            threaded,
            ..
        } = self;
        tree.create(
            &self.path,
            &NewClass {
                weight,
                policy,
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
    let head = format!(
        "{:width$}  WEIGHT  TASKS    ASKED    CPU TIME{}",
        "CLASS",
        match classes.iter().any(|class| class.info.policy.is_some()) {
            true => "  POLICY",
            false => "",
        }
    );
    let mut text = format!("{}\n", paint(DIM, head));
    for ((line, name), class) in lines.iter().zip(&names).zip(classes) {
        let pad = " ".repeat(width - line.width() - name.width());
        let weight = class
            .info
            .weight
            .map_or_else(String::new, |weight| weight.to_string());
        text += &format!(
            "{}{name}{pad}  {weight:>6}  {:>5}  {}  {:>10}{}\n",
            paint(DIM, line),
            class.info.tasks,
            percent(class.share_asked),
            seconds(class.info.cpu_us * 1000),
            class
                .info
                .policy
                .map_or_else(String::new, |policy| format!("  {policy}")),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tasks_of_a_class_cannot_use_is_said() {
        let class = |tasks, children| Described {
            info: ClassInfo {
                path: ClassPath::parse("/film").unwrap(),
                weight: Some(300),
                policy: None,
                tasks,
                children,
                cpu_us: 0,
                threaded: false,
            },
            share_asked: 0.75,
        };
        assert_eq!(asked(&class(1, 0), 1), "75.0 %");
        assert_eq!(asked(&class(3, 0), 4), "75.0 %");
        assert_eq!(asked(&class(0, 0), 4), "75.0 %", "it may get some");
        assert_eq!(
            asked(&class(1, 2), 4),
            "75.0 %",
            "those below have tasks too"
        );
        assert_eq!(
            asked(&class(2, 0), 4),
            "75.0 %, at most 50.0 % with 2 tasks on 4 CPUs"
        );
        assert_eq!(
            asked(&class(1, 0), 4),
            "75.0 %, at most 25.0 % with 1 task on 4 CPUs"
        );
    }
}
