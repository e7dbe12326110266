//! `andante doctor`: what this machine has and lacks.

use andante_sched::doctor::{Check, Need, Obstacle, Report, examine};
use andante_sched::told;
use andante_terminal::exit::Status;
use andante_terminal::output::{self, BAD, BOLD, DIM, GOOD, MEND, paint};
use anyhow::Result;
use clap::Args;

/// Say whether this machine can run Andante, and what to mend if not.
#[derive(Args)]
#[command(after_long_help = "\
The exit status is 0 if `andante run` can load the scheduler here, and otherwise that of the first \
thing in its way, the very status `andante run` would refuse with (see `andante --help`).

Examples:
  sudo andante doctor
  andante doctor --json | jq '.checks[] | select(.found | not)'")]
pub struct Doctor {
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Looks and tells.
    pub fn run(self) -> Result<Status> {
        let mut report = examine();
        report
            .checks
            .extend(andante_net::doctor::examine().into_iter().map(of_network));
        if let Ok(root) = andante_sched::class::cgroup_root() {
            let found = andante_memory::doctor::examine(&root);
            report.checks.extend(found.into_iter().map(of_memory));
        }
        if self.json {
            output::print_json(&report)?;
        } else {
            output::print(&render(&report))?;
        }
        let obstacle = report.first_obstacle().and_then(|check| check.obstacle);
        Ok(obstacle.map_or(Status::Ok, Status::from))
    }
}

/// It stands in the way of nothing but `andante net attach`, which says so itself.
fn of_network(finding: andante_net::doctor::Finding) -> Check {
    Check {
        title: finding.title,
        need: Need::Network,
        found: finding.found,
        detail: finding.detail,
        mend: finding.mend,
        obstacle: None,
    }
}

/// It stands in the way of nothing but `andante reserve --memory`, which says so itself.
fn of_memory(finding: andante_memory::doctor::Finding) -> Check {
    Check {
        title: finding.title,
        need: Need::Memory,
        found: finding.found,
        detail: finding.detail,
        mend: finding.mend,
        obstacle: None,
    }
}

fn render(report: &Report) -> String {
    let mut text = format!("{} {}\n", paint(DIM, "kernel"), paint(BOLD, &report.kernel));
    for (need, title) in [
        (Need::Scheduler, "scheduler"),
        (Need::Laboratory, "laboratory"),
        (Need::Memory, "memory"),
        (Need::Network, "network"),
    ] {
        text += &format!("\n{}\n", paint(BOLD, title));
        for check in report.checks.iter().filter(|check| check.need == need) {
            text += &line(check);
        }
    }
    for warning in told::warnings(&report.untold) {
        text += &format!("\n{}\n", paint(MEND, warning));
    }
    text + "\n" + &verdict(report) + "\n"
}

fn line(check: &Check) -> String {
    let mark = if check.found {
        paint(GOOD, "✓")
    } else {
        paint(BAD, "✗")
    };
    let mut text = format!("  {mark} {:<24}  {}\n", check.title, check.detail);
    if let Some(mend) = &check.mend {
        text += &format!("    {:<24}  {}\n", "", paint(MEND, format!("→ {mend}")));
    }
    text
}

fn verdict(report: &Report) -> String {
    let laboratory = if report.laboratory_can_run {
        "`andante lab run` works nevertheless: it brings a kernel of its own."
    } else {
        "`andante lab run` brings a kernel of its own and will work once the laboratory's programs \
         are installed."
    };
    match report.first_obstacle().and_then(|check| check.obstacle) {
        None => paint(GOOD, "Andante can run here: sudo andante run"),
        Some(Obstacle::NotRoot) => paint(
            MEND,
            "Andante can run here, but only root may load it: sudo andante run",
        ),
        Some(Obstacle::OtherScheduler) => paint(
            MEND,
            "Andante could run here if no other sched_ext scheduler were loaded.",
        ),
        Some(_) => format!(
            "{} {laboratory}",
            paint(BAD, "This machine cannot run Andante.")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(obstacle: Option<Obstacle>) -> Report {
        let check = Check {
            title: "sched_ext",
            need: Need::Scheduler,
            found: obstacle.is_none(),
            detail: "what was seen".into(),
            mend: obstacle.map(|_| "what to do".into()),
            obstacle,
        };
        let scheduler_can_run = check.found;
        let (kernel, checks) = ("6.12.1".into(), vec![check]);
        Report {
            kernel,
            untold: Vec::new(),
            scheduler_can_run,
            laboratory_can_run: true,
            checks,
        }
    }

    #[test]
    fn a_missing_feature_shows_its_mend_and_points_to_the_laboratory() {
        let text = render(&report(Some(Obstacle::NoSchedExt)));
        assert!(text.contains("→ what to do"), "{text}");
        assert!(text.contains("cannot run Andante"), "{text}");
        assert!(
            text.contains("`andante lab run` works nevertheless"),
            "{text}"
        );
    }

    #[test]
    fn a_healthy_machine_is_told_the_next_step() {
        assert!(render(&report(None)).contains("sudo andante run"));
    }
}
