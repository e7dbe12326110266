//! The terminal table, as it is printed.

use andante_lab::table::render;

use crate::fixture;

#[test]
fn a_film_as_a_table() {
    print!("{}", render(&[fixture::film()], 100, true));
    print!("{}", render(&fixture::latencies(), 100, false));
    print!("{}", render(&[fixture::tree()], 60, false));
    print!("{}", render(&[fixture::awkward()], 80, false));
    print!("{}", render(&fixture::sweep()[..2], 80, false));
}
