// SPDX-License-Identifier: GPL-2.0
//! Makes a device's packets the work of a class until it is told to end, or its input does; a line of input
//! has it tell what was dropped early.
//!
//! ```text
//! andante-receive DEVICE CGROUP equal|last
//! andante-receive restore
//! ```

use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;

use andante_net::receive::{self, Order, Receive};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("andante-receive: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (device, class, order) = match arguments[..] {
        ["restore"] => {
            println!("restored {}", receive::restore()?.join(" "));
            return Ok(());
        }
        [device, class, "equal"] => (device, class, Order::Equal),
        [device, class, "last"] => (device, class, Order::Last),
        _ => return Err("say DEVICE CGROUP equal|last, or restore".into()),
    };
    let receive = Receive::place(device, Path::new(class), order)?;
    println!("ready {}", receive.hook().name());
    for line in std::io::stdin().lock().lines() {
        line?;
        receive.keep()?;
        for drops in receive.drops()? {
            println!("dropped {} {}", drops.cgroup_id, drops.packets);
        }
        println!("told");
    }
    Ok(())
}
