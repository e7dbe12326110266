//! What people see of a result: the terminal table, the HTML report and the trace, all from the same
//! made-up runs.

mod fixture;
mod html;
mod layout;
mod table;
mod trace;
