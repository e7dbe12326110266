// SPDX-License-Identifier: GPL-2.0
//! `andante reserve`: contracts for what runs already.

use andante_admission::Size;
use andante_daemon::{Ask, Holder, List, Listed, Reply, Request};
use andante_sched::text::shown;
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output::{self, percent};
use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::contracts::{self, Extras, Rate};
use super::memory::{self, Lend, Wanted};
use crate::live;
use crate::network;

/// Promise CPU time or memory to a process, a thread or a class; list such contracts, and end them.
///
/// A contract promises so much CPU time in every period, come what may: 9ms/33ms. While its holder
/// has budget it runs before everybody without a contract; with the budget used up it runs on the
/// share of its class, beside everybody else, until the next period. The answer is yes, with the CPU
/// it runs on; or no, with who holds the CPUs and the nearest contracts that would do.
///
/// A contract of a process is held by all its threads and those that it starts, not by its child
/// processes. One of a class (a cgroup, by its path) is held by the tasks of that class, whoever
/// they are, but not by those of classes below. It ends with its holder, or with `andante run`.
///
/// With --memory so much memory is there when its class needs it: what the class uses within that is taken in no case,
/// and what it does not use is lent to others until it does. Memory is counted by classes, so that of a process is its
/// class's. It can be asked for alone, or with CPU time: then both are had or none.
///
/// --list has the network's contracts (`andante net reserve`) too, for root, and --release ends them. Such a contract is
/// called by its device and its class, eth0:/film.
#[derive(Args)]
#[command(after_long_help = "\
A fifth of every CPU and of memory is left to everybody without a contract (`andante run --leave`), so a \
contract may have at most 80 % of one. Root and members of the group andante reserve for every process; other \
users for their own, up to a tenth of the machine each and two fifths all together (`andante run \
--user-quota`, `--users-quota`), and not with --soft, which uses more than was asked for. Contracts below a \
class that has one may not add up to more than that, and what runs under them comes out of it too. A \
program that may not use all CPUs gets its contract on one that it may.

The exit status is 0 if it is done, 23 if the answer is no, 24 if what is asked makes no sense.

Examples:
  sudo andante reserve $(pidof mpv) 9ms/33ms
  sudo andante reserve $(pidof mpv) 20ms/33ms --tolerate 1/5   one frame in five may be lost
  sudo andante reserve /media/film 9ms/33ms                    a class, its children's tasks aside
  sudo andante reserve /media/film --memory 200M               memory alone
  sudo andante reserve /media/film --memory 200M --lend 50%    half of what it does not use is kept free
  sudo andante reserve 1240 1ms/3ms --thread --deadline 2ms    one thread, an audio callback
  andante reserve $(pidof mpv) 9ms/33ms --dry-run              what would the answer be?
  andante reserve --list
  sudo andante reserve --release mpv-1234                      or its process, 1234
  sudo andante reserve --release eth0:/film                    one of the network

See also `andante exec --reserve`, which starts a program under a contract, and `andante admit`, \
which plans without touching anything.")]
pub struct Reserve {
    /// Who is to hold it: a process by its id, or a class by its path.
    #[arg(value_name = "PID|TID|CLASS", required_unless_present_any = ["list", "release"])]
    holder: Option<String>,
    /// CPU time and period: 9ms/33ms.
    #[arg(value_name = "BUDGET/PERIOD", required_unless_present_any = ["list", "release", "memory"])]
    rate: Option<Rate>,
    /// How much memory: 200M.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["list", "release"])]
    memory: Option<Size>,
    /// Of the memory that it does not use, the part that others have until it does; the rest is kept free, so that it
    /// has not to wait for it. All of it, if nothing is said.
    #[arg(long, value_name = "PERCENT", requires = "memory")]
    lend: Option<Lend>,
    /// The number is that of one thread, which alone is to hold it.
    #[arg(long)]
    thread: bool,
    #[command(flatten)]
    extras: Extras,
    /// Say what the answer would be; change nothing.
    #[arg(long)]
    dry_run: bool,
    /// List the contracts there are.
    #[arg(long, conflicts_with_all = ["holder", "release"])]
    list: bool,
    /// End a contract: its name, or who holds it, as --list has them.
    #[arg(long, value_name = "NAME|PID|CLASS", conflicts_with = "holder")]
    release: Option<String>,
    /// Print the answer as JSON.
    #[arg(long)]
    json: bool,
}

/// The JSON of `--list`.
#[derive(Serialize)]
struct Lists<'a> {
    #[serde(flatten)]
    cpu: Option<&'a Reply>,
    #[serde(flatten)]
    network: &'a network::Contracts,
}

/// The network's contracts that may be meant by this.
fn meant(which: &str) -> Result<Vec<network::Contract>> {
    let contracts = network::Contracts::now(None)?;
    // So no contract of the CPU is called, unless somebody has given it such a name.
    if contracts.unseen.is_some() && which.contains(":/") {
        andante_net::seen()?;
    }
    Ok(contracts.called(which))
}

/// Whether no contract of the CPU is meant, or there is none.
fn is_unknown(error: &anyhow::Error) -> bool {
    let status = andante_terminal::exit::status_of(error);
    matches!(status, Status::UnknownContract | Status::NotLoaded)
}

/// The command that ends each of these.
fn commands(contracts: &[network::Contract]) -> String {
    let command =
        |one: &network::Contract| format!("`andante reserve --release {}`", shown(&one.name));
    let commands: Vec<_> = contracts.iter().map(command).collect();
    commands.join(" or ")
}

/// The contracts, the network's and those that were learnt of this user's threads below them, and what he may
/// still reserve.
fn listed(list: &List, network: &[network::Contract]) -> String {
    let mut lines = contracts::lines(&contracts::between(None, list));
    lines.extend(contracts::network_lines(network));
    let learnt = live::status()
        .map(|status| status.learnt)
        .unwrap_or_default();
    let learnt = contracts::learnt_between(None, (list.now_ns, &learnt));
    lines.extend(learnt.iter().map(contracts::LearntRow::line));
    let memory = list.memory.as_ref().map_or_else(String::new, |seen| {
        memory::table(&memory::rows(None, seen), output::columns())
    });
    let mut table = match lines.is_empty() {
        true if memory.is_empty() => "there are no contracts\n".to_owned(),
        true => String::new(),
        false => contracts::table(&lines, output::columns()),
    };
    if !memory.is_empty() {
        if !table.is_empty() {
            table.push('\n');
        }
        table += &memory;
        table += &list.memory.as_ref().map_or_else(String::new, memory::notes);
    }
    let uid = nix::unistd::getuid();
    if uid.is_root() || in_group() {
        return table;
    }
    format!("{table}{}\n", quota(list, uid.as_raw()))
}

/// Whether this user is in the group `andante`, whose members may reserve without quota.
fn in_group() -> bool {
    let group = nix::unistd::Group::from_name("andante").ok().flatten();
    let groups = nix::unistd::getgroups().unwrap_or_default();
    group.is_some_and(|group| groups.contains(&group.gid))
}

/// What a user without privilege holds of what he may.
fn quota(list: &List, uid: u32) -> String {
    let cpus = list.machine.cpus.len().max(1) as f64;
    let part = |held: &Listed| held.terms.budget_ns as f64 / held.terms.period_ns as f64 / cpus;
    let of = |wanted: &dyn Fn(&Listed) -> bool| -> f64 {
        let held = list.contracts.iter().filter(|held| wanted(held));
        // A sum of nothing would be -0.
        held.map(part).fold(0.0, std::ops::Add::add)
    };
    let per_mille = |part: u32| f64::from(part) / 1000.0;
    format!(
        "You hold {} of the machine, and may hold {}; all users without privilege hold {}, and may hold {}.",
        percent(of(&|held| held.uid == uid)).trim_start(),
        percent(per_mille(list.machine.user_quota_per_mille)).trim_start(),
        percent(of(&|held| held.uid != 0)).trim_start(),
        percent(per_mille(list.machine.users_quota_per_mille)).trim_start(),
    )
}

impl Reserve {
    /// Asks, and tells the answer.
    pub fn run(self) -> Result<Status> {
        if self.list {
            return self.list();
        }
        if let Some(which) = &self.release {
            return self.release(which);
        }
        // Nonsense is told before anything is reserved.
        let request = self.rate.map(|rate| self.request(rate)).transpose()?;
        let memory = match self.memory {
            Some(size) => {
                let reply = self.ask_memory(size)?;
                if !matches!(reply, Reply::MemoryReserved(_)) || request.is_none() {
                    return self.tell(None, &reply);
                }
                Some(reply)
            }
            None => None,
        };
        let Some(request) = request else {
            unreachable!("clap requires one of both");
        };
        let reply = contracts::ask(&request);
        if !matches!(reply, Ok(Reply::Reserved(_))) && !self.dry_run {
            self.take_back(memory.as_ref());
        }
        let reply = reply?;
        if let Some(memory) = memory.filter(|_| matches!(reply, Reply::Reserved(_))) {
            self.tell(None, &memory)?;
        }
        self.tell(Some(&request), &reply)
    }

    fn ask_memory(&self, size: Size) -> Result<Reply> {
        let Some(holder) = &self.holder else {
            unreachable!("clap requires it without --list and --release");
        };
        let lend = self.lend.unwrap_or_default();
        let ask = Wanted { size, lend }.of(self.holder(holder)?, None);
        memory::ask(ask, self.dry_run)
    }

    /// With no CPU time there is to be no memory either.
    fn take_back(&self, memory: Option<&Reply>) {
        if let Some(Reply::MemoryReserved(memory)) = memory {
            let which = memory.class.clone();
            if let Err(error) = contracts::ask(&Request::Release { which }) {
                let class = shown(&memory.class);
                output::warn(&format!(
                    "the memory of {class} stays reserved ({error}): `andante reserve --release {class}`"
                ));
            }
        }
    }

    /// The answer; to a request of CPU time, if it is one to that.
    fn tell(&self, request: Option<&Request>, reply: &Reply) -> Result<Status> {
        let status = match reply {
            Reply::Refused(_) | Reply::MemoryRefused(_) => Status::ContractRefused,
            _ => Status::Ok,
        };
        if self.json {
            output::print_json(reply)?;
            return Ok(status);
        }
        output::print(&match (reply, request) {
            (Reply::Reserved(answer), _) => contracts::reserved(answer),
            (Reply::MemoryReserved(answer), _) => memory::reserved(answer),
            (Reply::MemoryRefused(answer), _) => memory::refused(answer),
            (Reply::Refused(answer), Some(Request::Reserve(ask) | Request::Ask(ask))) => {
                contracts::refused(answer, &ask.terms.contract("asked"))
            }
            _ => String::new(),
        })?;
        Ok(status)
    }

    /// The network's contracts need no `andante run`: without it they are all that is listed.
    fn list(&self) -> Result<Status> {
        let network = network::Contracts::now(None)?;
        let found = network.all();
        let reply = contracts::ask(&Request::List {});
        let cpu = reply.as_ref().ok();
        match cpu {
            None if found.is_empty() && network.unseen.is_none() => {}
            _ if self.json => output::print_json(&Lists {
                cpu,
                network: &network,
            })?,
            Some(Reply::Contracts(list)) => {
                output::print(&(listed(list, found) + &network.why_unseen()))?;
            }
            _ => output::print(&contracts::network_alone(&network))?,
        }
        reply.map(|_| Status::Ok)
    }

    /// One of the CPU first; what is none of those may be one of the network, which needs no `andante run`.
    fn release(&self, which: &str) -> Result<Status> {
        let request = Request::Release {
            which: which.to_owned(),
        };
        let (reply, left) = match contracts::ask(&request) {
            Ok(reply) => (reply, meant(which).unwrap_or_default()),
            Err(error) if is_unknown(&error) => match &meant(which)?[..] {
                [] => return Err(error),
                [one] => {
                    one.release()?;
                    let name = one.name.clone();
                    (Reply::Released { name }, Vec::new())
                }
                several => {
                    let message = format!(
                        "`{}` has contracts of several devices: {} ends one",
                        shown(which),
                        commands(several)
                    );
                    return Err(Refusal::new(Status::ContractExists, message).into());
                }
            },
            Err(error) => return Err(error),
        };
        if self.json {
            output::print_json(&reply)?;
        } else if let Reply::Released { name } = &reply {
            output::print(&format!("{} is released\n", shown(name)))?;
        }
        if !left.is_empty() {
            let commands = commands(&left);
            output::note(&format!(
                "what it is promised of the network stays: {commands} ends that"
            ));
        }
        Ok(Status::Ok)
    }

    fn request(&self, rate: Rate) -> Result<Request> {
        let Some(holder) = &self.holder else {
            unreachable!("clap requires it without --list and --release");
        };
        let ask = Ask {
            terms: self.extras.terms(rate)?,
            holder: self.holder(holder)?,
            name: self.extras.name.clone(),
        };
        Ok(if self.dry_run {
            Request::Ask(ask)
        } else {
            Request::Reserve(ask)
        })
    }

    fn holder(&self, text: &str) -> Result<Holder> {
        Ok(match (text.parse(), self.thread) {
            (Ok(tid), true) => Holder::Thread(tid),
            (Ok(pid), false) => Holder::Process(pid),
            (Err(_), false) => Holder::Class(text.to_owned()),
            (Err(_), true) => {
                let message = format!("`{text}` is no number of a thread: `ps -eL` shows them");
                return Err(Refusal::new(Status::Usage, message).into());
            }
        })
    }
}
