//! QEMU's monitor: the few commands of its protocol (QMP, one JSON object a line) that saving a machine
//! and going on from there take. It is connected by QEMU's standard input and output.
//!
//! Nothing is said to a machine that runs, but to one that counts or stands still (`receive` of
//! `/init`): what wakes QEMU's main thread while a virtual CPU halts may change the run (crate's head).

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A command is answered at once, or never.
const ANSWERED: Duration = Duration::from_secs(60);
/// How often it is asked how far QEMU is.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// The connection to one QEMU.
#[derive(Debug)]
pub(super) struct Monitor {
    input: ChildStdin,
    lines: Receiver<Value>,
}

/// What went wrong, in a clause.
pub(super) type Refusal = String;

impl Monitor {
    /// Connects to a child whose standard input and output are pipes.
    pub(super) fn connect(child: &mut Child) -> Result<Self, Refusal> {
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.expect("it was started with pipes");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_default();
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let mut monitor = Self { input, lines };
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Has a command carried out, and returns its answer.
    pub(super) fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, Refusal> {
        let order = json!({ "execute": command, "arguments": arguments });
        let failed = |reason: String| format!("{command}: {reason}");
        writeln!(self.input, "{order}").map_err(|e| failed(e.to_string()))?;
        loop {
            let line = self.lines.recv_timeout(ANSWERED).map_err(|e| match e {
                RecvTimeoutError::Timeout => failed("QEMU does not answer".to_owned()),
                RecvTimeoutError::Disconnected => failed("QEMU ended".to_owned()),
            })?;
            if let Some(answer) = line.get("return") {
                return Ok(answer.clone());
            }
            if let Some(error) = line.get("error") {
                return Err(failed(error["desc"].to_string()));
            }
        }
    }

    /// Waits until QEMU has written or read the machine.
    pub(super) fn await_moved(&mut self, deadline: Instant) -> Result<(), Refusal> {
        while Instant::now() < deadline {
            let progress = self.execute("query-migrate", json!({}))?;
            match progress["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => {
                    let reason = progress["error-desc"].as_str();
                    return Err(reason.unwrap_or("QEMU says no reason").to_owned());
                }
                _ => thread::sleep(ASK_EVERY),
            }
        }
        Err("it takes too long".to_owned())
    }
}
