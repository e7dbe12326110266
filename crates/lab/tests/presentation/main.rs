//! What people see of a result: the terminal table, the HTML report, the trace and the schema of
//! the JSON, all from the same made-up runs.

mod book;
mod fixture;
mod html;
mod schema;
mod table;
mod trace;
