// SPDX-License-Identifier: GPL-2.0
//! Prints the experiment's table: `cargo run --release -p andante-admission --example table [SETS]`.

use andante_admission::experiment::{Parameters, Table};

fn main() {
    let mut parameters = Parameters::default();
    if let Some(sets) = std::env::args().nth(1) {
        parameters.sets = sets.parse().expect("the number of sets per point");
    }
    print!("{}", Table::draw(parameters));
}
