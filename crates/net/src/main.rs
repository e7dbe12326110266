// SPDX-License-Identifier: GPL-2.0
//! Makes the queueing discipline known to the kernel until it is told to end, or its input does.
//!
//! ```text
//! andante-net [DEVICE=BITS_PER_SECOND | DEVICE:CGROUP=BYTES/PERIOD_MS]…
//! ```

use std::ffi::CString;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;
use std::time::Duration;

use andante_net::Discipline;

/// Room for links.
const LINKS: u32 = 16;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("andante-net: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let discipline = Discipline::load(LINKS)?;
    for argument in std::env::args().skip(1) {
        let (device, asked) = argument
            .split_once('=')
            .ok_or_else(|| format!("{argument}: say DEVICE=BITS_PER_SECOND"))?;
        match (device.split_once(':'), asked.split_once('/')) {
            (Some((device, cgroup)), Some((bytes, period_ms))) => discipline.set_promise(
                std::fs::metadata(cgroup)?.ino(),
                index_of(device)?,
                bytes.parse()?,
                Duration::from_millis(period_ms.parse()?),
            )?,
            _ => discipline.set_rate(index_of(device)?, asked.parse::<u64>()? / 8)?,
        }
    }
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn index_of(device: &str) -> Result<u32, Box<dyn std::error::Error>> {
    let name = CString::new(device)?;
    // SAFETY: the pointer is to a string that ends with a 0.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(format!("there is no device {device}").into()),
        index => Ok(index),
    }
}
