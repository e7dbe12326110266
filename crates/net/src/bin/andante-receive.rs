// SPDX-License-Identifier: GPL-2.0
//! Makes a device's packets the work of a class until it is told to end, or its input does; a line of input
//! has it tell what was dropped early.
//!
//! ```text
//! andante-receive DEVICE CGROUP equal|last [driver|ingress|nowhere]
//! andante-receive restore
//! ```

use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;

use andante_net::receive::{self, Hook, How, Order, Receive};

const USAGE: &str = "say DEVICE CGROUP equal|last [driver|ingress|nowhere], or restore";

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
    let (device, class, order, early) = match arguments[..] {
        ["restore"] => {
            println!("restored {}", receive::restore()?.join(" "));
            return Ok(());
        }
        [device, class, order] => (device, class, order, None),
        [device, class, order, early] => (device, class, order, Some(early)),
        _ => return Err(USAGE.into()),
    };
    let order = match order {
        "equal" => Order::Equal,
        "last" => Order::Last,
        _ => return Err(USAGE.into()),
    };
    let early = match early {
        None => None,
        Some("driver") => Some(Hook::Driver),
        Some("ingress") => Some(Hook::Ingress),
        Some("nowhere") => Some(Hook::Nowhere),
        Some(_) => return Err(USAGE.into()),
    };
    let receive = Receive::place(device, Path::new(class), How { order, early })?;
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
