//! What `andante` and `andante-lab` have in common on a terminal: what they leave with ([`exit`]), what
//! they write ([`output`]), and the pages made of their command lines ([`pages`]).

pub mod exit;
mod journal;
pub mod output;
pub mod pages;
