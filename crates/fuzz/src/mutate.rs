// SPDX-License-Identifier: GPL-2.0
//! Changes to texts that leave most of them readable: random bytes do not get beyond a parser.

/// Random numbers that a seed brings back: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
pub struct Random(pub u64);

impl Random {
    /// The next.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 … bound - 1.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound.max(1) as u64) as usize
    }
}

/// Values that readers are known to stumble over.
const ODD: [&str; 20] = [
    "0",
    "-1",
    "1",
    "64",
    "65535",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "0.0",
    "1e308",
    "-0.5",
    "inf",
    "nan",
    "\"\"",
    "\"/\"",
    "\"1/5\"",
    "[]",
    "{}",
    "true",
    "\"\u{fe}\u{0301}\"",
];

/// The text, with one to four changes: lines or words left out, doubled, taken from `other`, values
/// made odd, a byte changed.
pub fn mutate(random: &mut Random, text: &[u8], other: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..=random.below(4) {
        text = change(random, &text, other);
    }
    text
}

fn change(random: &mut Random, text: &[u8], other: &[u8]) -> Vec<u8> {
    let by_lines = random.below(2) == 0;
    let split = |text: &[u8]| -> Vec<Vec<u8>> {
        let ends = |byte: &u8| match by_lines {
            true => *byte == b'\n',
            false => !byte.is_ascii_alphanumeric() && !b"_\"./-".contains(byte),
        };
        text.split_inclusive(ends).map(<[u8]>::to_vec).collect()
    };
    let mut parts = split(text);
    let theirs = split(other);
    let at = random.below(parts.len());
    match random.below(6) {
        _ if parts.is_empty() => return other.to_vec(),
        0 => drop(parts.remove(at)),
        1 => parts.insert(random.below(parts.len()), parts[at].clone()),
        2 if !theirs.is_empty() => parts[at] = theirs[random.below(theirs.len())].clone(),
        3 if !theirs.is_empty() => parts.insert(at, theirs[random.below(theirs.len())].clone()),
        4 => parts[at] = odd(random, &parts[at]),
        _ => {
            let byte = random.below(parts[at].len());
            parts[at][byte] = random.number() as u8;
        }
    }
    parts.concat()
}

/// An odd value in place of this one; of a line `key = value`, of its value.
fn odd(random: &mut Random, part: &[u8]) -> Vec<u8> {
    let value = ODD[random.below(ODD.len())].as_bytes();
    let key = part.iter().position(|byte| *byte == b'=');
    let kept = key.map_or(0, |at| at + 1);
    let end = &part[part.len() - 1..];
    [&part[..kept], value, end].concat()
}
