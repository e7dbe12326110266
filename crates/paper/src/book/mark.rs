//! The mark of a figure, as the style sheet has it.

use maud::{Markup, html};

use crate::result::Mark;
use crate::terminal::sign;

pub(super) fn mark(mark: Mark) -> Markup {
    html! { span class=(format!("mark {}", class_of(mark))) { (sign(mark)) } }
}

pub(super) fn class_of(mark: Mark) -> &'static str {
    match mark {
        Mark::Shown => "shown",
        Mark::Pass => "pass",
        Mark::Explained => "explained",
        Mark::Deviation => "deviation",
    }
}
