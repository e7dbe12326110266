//! `andante-lab`: the laboratory, of which everything is in the library beside.

use std::process::ExitCode;

fn main() -> ExitCode {
    andante_lab::main()
}
