//! A small integer benchmark in the spirit of Dhrystone [1]: what system programs of its day spent
//! their time on, namely assignments of records, comparisons of strings, array indexing, branches
//! and calls, and no floating point. It is no port, so its figures compare only with themselves.
//!
//! [1] R. P. Weicker, "Dhrystone: a synthetic systems programming benchmark", CACM 27(10), 1984.

use std::hint::black_box;

use andante_job::stop;

use super::{Order, Samples};
use crate::clock::now_ns;

/// Rounds between two looks at the clock: one iteration.
const ROUNDS: u32 = 100;
const TABLE_LEN: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    Red,
    Green,
    Blue,
}

#[derive(Clone, Copy)]
struct Record {
    colour: Colour,
    number: i32,
    text: [u8; 30],
}

struct State {
    current: Record,
    next: Record,
    row: [i32; TABLE_LEN],
    table: [[i32; TABLE_LEN]; TABLE_LEN],
}

pub(super) fn run(order: &Order) -> Samples {
    let blank = Record {
        colour: Colour::Red,
        number: 0,
        text: *b"ANDANTE'S PROGRAM, 1'ST STRING",
    };
    let mut state = Box::new(State {
        current: blank,
        next: blank,
        row: [0; TABLE_LEN],
        table: [[0; TABLE_LEN]; TABLE_LEN],
    });
    let mut iterations = 0;
    while !stop::requested() {
        for round in 0..ROUNDS {
            play_round(black_box(&mut state), black_box(round as i32));
        }
        iterations += u64::from(order.measures(now_ns()));
    }
    Samples {
        iterations: Some(iterations),
        ..Samples::default()
    }
}

/// One round; returns a number that depends on all of it.
#[inline(never)]
fn play_round(state: &mut State, round: i32) -> i32 {
    let mut text = state.current.text;
    text[20] = b'1' + (round % 2) as u8;
    let differs = first_difference(&text, &state.current.text);
    let mut sum = if differs.is_some_and(|at| at > 2) {
        7
    } else {
        round
    };
    let mut a = 2;
    while a < 3 {
        sum += 5 * a - sum % 11;
        a += 1;
    }
    fill_tables(state, a, sum % 7);
    exchange_records(state, sum);
    for letter in b'A'..=b'C' {
        if colour_of(letter) == state.current.colour {
            sum += i32::from(letter);
        }
    }
    (sum * a) / (state.row[a as usize] + 7).max(1)
}

/// The first place at which two strings differ.
#[inline(never)]
fn first_difference(a: &[u8; 30], b: &[u8; 30]) -> Option<usize> {
    a.iter().zip(b).position(|(x, y)| x != y)
}

#[inline(never)]
fn fill_tables(state: &mut State, index: i32, value: i32) {
    let at = (index + 5) as usize;
    state.row[at] = value;
    state.row[at + 1] = state.row[at];
    state.row[at + 30] = index;
    for column in at..=at + 1 {
        state.table[at][column] = at as i32;
    }
    state.table[at][at - 1] += 1;
    state.table[at + 20][at] = state.row[at];
}

#[inline(never)]
fn exchange_records(state: &mut State, number: i32) {
    state.next = state.current;
    state.next.number = number;
    state.next.colour = match state.current.colour {
        Colour::Red => Colour::Green,
        Colour::Green => Colour::Blue,
        Colour::Blue => Colour::Red,
    };
    std::mem::swap(&mut state.current, &mut state.next);
}

#[inline(never)]
fn colour_of(letter: u8) -> Colour {
    match black_box(letter) {
        b'A' => Colour::Red,
        b'B' => Colour::Green,
        _ => Colour::Blue,
    }
}
