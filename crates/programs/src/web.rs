//! The client of a web server: connections that ask for its page again and again, each when it has the one before.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use andante_job::stop;
use ureq::Agent;

use super::{Order, Samples, preallocated, record};
use crate::clock::{now_ns, sleep_until};

/// No more pages than this are timed, of one connection [1/s].
const MOST_PER_S: f64 = 5_000.0;
/// When to ask a server again that is not there yet.
const AGAIN_NS: u64 = 10_000_000;
/// A page that takes longer is none: then its server has gone.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Asks until SIGTERM. The latency is from asking for a page to having it.
pub(super) fn run(order: &Order, connections: u32, gzip: bool) -> io::Result<Samples> {
    let url = order.page()?;
    let bytes = AtomicU64::new(0);
    let all: Vec<io::Result<Vec<f64>>> = std::thread::scope(|scope| {
        let ask = || scope.spawn(|| connection(order, url, gzip, &bytes));
        let threads: Vec<_> = (0..connections).map(|_| ask()).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join();
        (threads.into_iter())
            .map(|thread| join(thread).expect("a connection does not panic"))
            .collect()
    });
    let latency_ns: Vec<f64> = all.into_iter().collect::<io::Result<Vec<_>>>()?.concat();
    Ok(Samples {
        iterations: Some(latency_ns.len() as u64),
        received_bytes: Some(bytes.into_inner()),
        latency_ns,
        ..Samples::default()
    })
}

fn connection(order: &Order, url: &str, gzip: bool, bytes: &AtomicU64) -> io::Result<Vec<f64>> {
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .build()
        .into();
    let mut latency_ns = preallocated(order.capacity(MOST_PER_S), f64::NAN);
    let mut page = Vec::new();
    let mut heard = false;
    while !stop::requested() {
        let asked_ns = now_ns();
        page.clear();
        match get(&agent, url, gzip, &mut page) {
            Ok(()) => heard = true,
            Err(_) if stop::requested() => break,
            // Both are told to begin at once.
            Err(ureq::Error::Io(error))
                if !heard && error.kind() == io::ErrorKind::ConnectionRefused =>
            {
                sleep_until(asked_ns + AGAIN_NS);
                continue;
            }
            Err(error) => return Err(io::Error::other(format!("{url}: {error}"))),
        }
        let at_ns = now_ns();
        if order.measures(at_ns) {
            bytes.fetch_add(page.len() as u64, Ordering::Relaxed);
            record(&mut latency_ns, (at_ns - asked_ns) as f64);
        }
    }
    Ok(latency_ns)
}

fn get(agent: &Agent, url: &str, gzip: bool, page: &mut Vec<u8>) -> Result<(), ureq::Error> {
    let mut request = agent.get(url);
    if gzip {
        request = request.header("Accept-Encoding", "gzip");
    }
    let mut reply = request.call()?;
    io::copy(&mut reply.body_mut().as_reader(), page)?;
    Ok(())
}
