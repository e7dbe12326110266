// SPDX-License-Identifier: GPL-2.0
//! Makes the queueing discipline known to the kernel until it is told to end, or its input does.
//!
//! ```text
//! andante-net [DEVICE=BITS_PER_SECOND]…
//! ```

use std::ffi::CString;
use std::io::Read;
use std::process::ExitCode;

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
    let mut rates = Vec::new();
    for argument in std::env::args().skip(1) {
        let (device, bits) = argument
            .split_once('=')
            .ok_or_else(|| format!("{argument}: say DEVICE=BITS_PER_SECOND"))?;
        rates.push((index_of(device)?, bits.parse::<u64>()? / 8));
    }
    let discipline = Discipline::load(LINKS)?;
    for (ifindex, rate) in rates {
        discipline.set_rate(ifindex, rate)?;
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
