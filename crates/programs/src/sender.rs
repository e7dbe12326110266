//! A sender and its receiver: two threads, each in one of the two networks that a cable joins. What is sent
//! carries when it was, by the clock that both read.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use andante_job::stop;
use nix::sched::{CloneFlags, setns};

use super::{Order, Peer, Samples, preallocated, record};
use crate::clock::{now_ns, sleep_until};

/// No more arrivals than this are timed [1/s].
const MOST_PER_S: f64 = 50_000.0;
/// Number and time at the beginning of each piece [bytes].
const HEAD: usize = 16;
/// When nothing has come for so long after the last was sent, nothing will: the longest queue, 1000 packets at a
/// megabit per second, takes twelve times this, and then goes on coming.
const SILENCE: Duration = Duration::from_millis(500);

/// The traffic to send.
pub(super) struct Sending {
    /// Of a datagram, or of a piece of a stream [bytes].
    pub bytes: u32,
    /// From one to the next [ns]; 0: as fast as it can.
    pub every_ns: u64,
    /// So many each time, repeated; at least one.
    pub burst: Vec<u32>,
    pub by_tcp: bool,
}

/// The receiver's part.
struct Arrivals<'a> {
    order: &'a Order,
    pieces: u64,
    bytes: u64,
    /// Of those that were sent in the measurement.
    of_measured: u64,
    latency_ns: Vec<f64>,
}

impl<'a> Arrivals<'a> {
    fn new(order: &'a Order) -> Self {
        Self {
            order,
            pieces: 0,
            bytes: 0,
            of_measured: 0,
            latency_ns: preallocated(order.capacity(MOST_PER_S), f64::NAN),
        }
    }

    fn arrived(&mut self, piece: &[u8]) {
        let at_ns = now_ns();
        let sent_ns = u64::from_ne_bytes(piece[8..HEAD].try_into().expect("eight bytes"));
        self.of_measured += u64::from(self.order.measures(sent_ns));
        if self.order.measures(at_ns) {
            self.pieces += 1;
            self.bytes += piece.len() as u64;
            record(&mut self.latency_ns, (at_ns - sent_ns) as f64);
        }
    }
}

/// Sends until SIGTERM. The latency is from the call that sends a piece to the one that has received it.
pub(super) fn run(order: &Order, sending: &Sending) -> io::Result<Samples> {
    let peer = order.other_end()?;
    let (port, ports) = mpsc::channel();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| match sending.by_tcp {
            true => receive_stream(order, peer, sending, port),
            false => receive_datagrams(order, peer, sending, port, &done),
        });
        let sent = match ports.recv() {
            Ok(port) => send(order, sending, (&peer.address, port)),
            // It says why it has none.
            Err(_) => Ok(0),
        };
        done.store(true, Ordering::Relaxed);
        let arrivals = receiver.join().expect("the receiver does not panic")?;
        Ok(Samples {
            iterations: Some(arrivals.pieces),
            received_bytes: Some(arrivals.bytes),
            lost: Some(sent?.saturating_sub(arrivals.of_measured)),
            latency_ns: arrivals.latency_ns,
            ..Samples::default()
        })
    })
}

/// Sends until SIGTERM; how many pieces in the measurement.
fn send(order: &Order, sending: &Sending, to: (&str, u16)) -> io::Result<u64> {
    if sending.by_tcp {
        let mut stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        let measured = send_by(order, sending, |piece| stream.write_all(piece))?;
        stream.shutdown(Shutdown::Write)?;
        return Ok(measured);
    }
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect(to)?;
    send_by(order, sending, |piece| {
        match socket
            .send(piece)
            .map_err(|error| (error.raw_os_error(), error))
        {
            // A queue had no room for it: it is lost, as others are that were taken and dropped.
            Err((Some(libc::ENOBUFS), _)) => Ok(()),
            // The signal that ends it.
            Err((Some(libc::EINTR), _)) => Ok(()),
            sent => sent.map(drop).map_err(|(_, error)| error),
        }
    })
}

/// Writes piece after piece when it is time; how many in the measurement.
fn send_by(
    order: &Order,
    sending: &Sending,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let mut piece = vec![0; sending.bytes as usize];
    let mut next_ns = first_beat_ns(order.begin_ns, sending.every_ns);
    let mut measured = 0;
    let mut bursts = sending.burst.iter().cycle();
    let mut left = 0;
    for number in 0_u64.. {
        if left == 0 {
            left = *bursts.next().expect("there is one at least");
            next_ns += if number > 0 { sending.every_ns } else { 0 };
        }
        left -= 1;
        while sending.every_ns > 0 && now_ns() < next_ns && !stop::requested() {
            sleep_until(next_ns);
        }
        if stop::requested() {
            break;
        }
        let at_ns = now_ns();
        piece[..8].copy_from_slice(&number.to_ne_bytes());
        piece[8..HEAD].copy_from_slice(&at_ns.to_ne_bytes());
        write(&piece)?;
        measured += u64::from(order.measures(at_ns));
    }
    Ok(measured)
}

/// The first beat from now on; one is at the beginning of the measurement.
fn first_beat_ns(begin_ns: u64, every_ns: u64) -> u64 {
    let now_ns = now_ns();
    let ahead = begin_ns.saturating_sub(now_ns).checked_div(every_ns);
    match ahead {
        Some(beats) if begin_ns > now_ns => begin_ns - beats * every_ns,
        _ => now_ns,
    }
}

/// Puts this thread into the receiver's network.
fn enter(peer: &Peer) -> io::Result<()> {
    let network = File::open(&peer.network)?;
    Ok(setns(network, CloneFlags::CLONE_NEWNET)?)
}

fn receive_datagrams<'a>(
    order: &'a Order,
    peer: &Peer,
    sending: &Sending,
    port: mpsc::Sender<u16>,
    done: &AtomicBool,
) -> io::Result<Arrivals<'a>> {
    enter(peer)?;
    let socket = UdpSocket::bind((peer.address.as_str(), 0))?;
    socket.set_read_timeout(Some(SILENCE))?;
    let mut arrivals = Arrivals::new(order);
    let mut piece = vec![0; sending.bytes as usize];
    // The sender waits for it.
    let _ = port.send(socket.local_addr()?.port());
    loop {
        match socket.recv(&mut piece) {
            Ok(length) if length >= HEAD => arrivals.arrived(&piece[..length]),
            Ok(_) => {}
            Err(error) if is_silence(&error) => {
                if done.load(Ordering::Relaxed) {
                    return Ok(arrivals);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    [Interrupted, TimedOut, WouldBlock].contains(&error.kind())
}

fn receive_stream<'a>(
    order: &'a Order,
    peer: &Peer,
    sending: &Sending,
    port: mpsc::Sender<u16>,
) -> io::Result<Arrivals<'a>> {
    enter(peer)?;
    let listener = TcpListener::bind((peer.address.as_str(), 0))?;
    let mut arrivals = Arrivals::new(order);
    let mut piece = vec![0; sending.bytes as usize];
    let _ = port.send(listener.local_addr()?.port());
    // The sender's connection is the only one that there will be.
    let (mut stream, _) = listener.accept()?;
    loop {
        match stream.read_exact(&mut piece) {
            Ok(()) => arrivals.arrived(&piece),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(arrivals),
            Err(error) => return Err(error),
        }
    }
}
