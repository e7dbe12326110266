//! Boots the virtual machine, runs a command in it and reports how long that took.
//!
//! ```text
//! cargo run -p andante-vm --example boot -- [--cpus N] [--threads-of-core N] [--cpus-of-cache N]
//!     [--cpus-of-node N] [--image | --system PACKAGE,…] COMMAND [ARGUMENT]…
//! ```

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use andante_vm::{
    Boot, Cache, Event, ImageSpec, Topology, build_image, build_system, find_kernel, find_qemu,
};

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let (mut cpus, mut with_image) = (1, false);
    let mut topology = Topology::default();
    let mut system = None;
    while let Some(option) = arguments.next_if(|argument| argument.starts_with("--")) {
        match option.as_str() {
            "--cpus" => cpus = arguments.next().ok_or("--cpus needs a number")?.parse()?,
            "--threads-of-core" => {
                let threads = arguments.next().ok_or("--threads-of-core needs a number")?;
                topology.threads_of_core = threads.parse()?;
            }
            "--cpus-of-cache" => {
                let cpus = arguments.next().ok_or("--cpus-of-cache needs a number")?;
                topology.cpus_of_cache = cpus.parse()?;
            }
            "--cpus-of-node" => {
                let cpus = arguments.next().ok_or("--cpus-of-node needs a number")?;
                topology.cpus_of_node = cpus.parse()?;
            }
            "--image" => with_image = true,
            "--system" => system = Some(arguments.next().ok_or("--system needs packages")?),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let command: Vec<String> = arguments.collect();
    if command.is_empty() {
        return Err("say which command to run in the virtual machine".into());
    }

    let progress = |line: &str| eprintln!("{line}");
    let cache = Cache::open()?;
    let kernel = find_kernel(&cache, &progress)?;
    let qemu = find_qemu(&cache, cpus, &progress)?;
    let spec = ImageSpec {
        programs: vec!["/bin/sh".into()],
        ..ImageSpec::default()
    };
    let image = match (&system, with_image) {
        (Some(packages), _) => {
            let packages: Vec<&str> = packages
                .split(',')
                .filter(|name| !name.is_empty())
                .collect();
            Some(build_system(&cache, &packages, 256, &progress)?)
        }
        (None, true) => Some(build_image(&cache, &spec, &progress)?),
        (None, false) => None,
    };
    let boot = Boot {
        cpus,
        topology,
        image: image.as_deref(),
        system: system.is_some(),
        memory_mib: 1024,
        saved: Some(&cache),
        ..Boot::of(&kernel, &qemu, &command)
    };
    let started = Instant::now();
    let outcome = boot.run(&mut |event| match event {
        Event::Console(line) => println!("{line}"),
        Event::Progress(line) => eprintln!("progress: {line}"),
        Event::Note(line) => eprintln!("note: {line}"),
    })?;
    eprintln!(
        "exit status {}, {} bytes of output, {} virtual s, {:.1} s on the host",
        outcome.exit_status,
        outcome.output.len(),
        outcome.virtual_s,
        started.elapsed().as_secs_f64()
    );
    Ok(ExitCode::from(outcome.exit_status as u8))
}
