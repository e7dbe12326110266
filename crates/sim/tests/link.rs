//! A link, in virtual time.

use andante_sim::link::{Received, Sender, rate, send, shares};
use andante_sim::{NS_PER_MS, NS_PER_S, Packets};

/// Ten Mbit/s [bytes/s].
const RATE: u64 = 1_250_000;

fn sender(class: u32, payload: u32, every_us: u64) -> Sender {
    Sender::usual(class, payload, every_us * 1000)
}

fn ten_seconds(link: &mut Packets, senders: &[Sender]) -> Vec<Received> {
    send(link, senders, 2 * NS_PER_S, 12 * NS_PER_S)
}

/// a: x 100 and y 300, both in a = 100; b 100; c 300; and a film whose share is three eighths.
#[test]
fn bytes_are_shared_by_weights_in_a_tree() {
    let mut link = Packets::new(RATE, 1514);
    let a = link.create(Packets::ROOT, 100).unwrap();
    let [x, y] = [100, 300].map(|weight| link.create(a, weight).unwrap());
    let [b, c, film] = [100, 300, 300].map(|w| link.create(Packets::ROOT, w).unwrap());
    let senders = [
        sender(x, 1400, 400),
        sender(y, 1400, 400),
        sender(b, 1400, 400),
        sender(c, 700, 400),
        sender(film, 1000, 10_000),
    ];
    let received = ten_seconds(&mut link, &senders);
    for (share, wanted) in shares(&received[..4]).iter().zip([0.05, 0.15, 0.2, 0.6]) {
        assert!((share - wanted).abs() < 0.001, "{share} is not {wanted}");
    }
    let sent = rate(&received, 10 * NS_PER_S) / RATE as f64;
    assert!((0.999..=1.001).contains(&sent), "{sent} of the link");
    assert_eq!(received[4].lost, 0);
    assert!(
        received[4].delay_ns(0.99) <= 1_500_000,
        "{:?}",
        received[4].delay_ns(0.99)
    );
}

/// A promised packet waits for one that was begun.
#[test]
fn a_promise_is_kept_beside_floods() {
    let mut link = Packets::new(RATE, 1514);
    let film = link.create(Packets::ROOT, 1).unwrap();
    let mut senders = vec![sender(film, 1000, 10_000)];
    for _ in 0..5 {
        let flood = link.create(Packets::ROOT, 1000).unwrap();
        senders.push(sender(flood, 1472, 1000));
    }
    assert!(link.promise(film, 1100, 10 * NS_PER_MS, 0));
    let received = ten_seconds(&mut link, &senders);
    assert_eq!(received[0].lost, 0);
    assert!(received[0].delay_ns(1.0) <= 1_250_000);
}
