//! The book: every paper a chapter, every table and figure drawn, in one HTML file.
//!
//! It needs nothing but itself: no script, no address outside the file. It opens offline, prints,
//! and follows the reader's choice of light or dark. Everything in it comes from [`PaperResult`]s.

mod chart;
mod mark;
mod table;
mod timeline;

use andante_report::{contour, document};
use andante_simulated as simulator;
use maud::{Markup, html};

use super::result::{Content, Exhibit, Mark, PaperResult, Tally};
use super::terminal::{notes, verdict};
use mark::{class_of, mark};

/// The book of `papers`, in their order, as a whole HTML document.
///
/// Every text in it is escaped.
pub fn html(papers: &[PaperResult]) -> String {
    let title = match papers {
        [one] => format!("{}, run again", one.title),
        _ => "Papers, run again".to_owned(),
    };
    let body = html! {
        header.cover {
            @if papers.len() == 1 { p.kicker { "Andante laboratory · papers, run again" } }
            @else { (cover(papers)) }
            (legend())
        }
        main { @for paper in papers { (chapter(paper)) } }
        footer { (colophon(papers)) }
    };
    document(&title, include_str!("book.css"), body).into_string()
}

/// The title page; a single paper needs none.
fn cover(papers: &[PaperResult]) -> Markup {
    let tally = papers.iter().map(PaperResult::tally);
    let tally = tally.fold(Tally::default(), |sum, one| sum + one);
    html! {
        p.kicker { "Andante laboratory" }
        h1 { "Papers, run again" }
        p.lead {
            (in_words(papers.len())) " papers about scheduling media on a CPU: the experiments that they published, \
            measured again with one policy core in a simulator, and set beside what was published."
        }
        p.verdict-line { (verdict(tally)) "." }
        nav aria-label="Contents" {
            ol.contents {
                @for paper in papers {
                    li {
                        span.year { (paper.year) }
                        div {
                            a href=(format!("#{}", paper.key)) { (paper.title) }
                            p.by { (short_authors(&paper.authors)) " · " (paper.venue) }
                            (strip(paper))
                        }
                    }
                }
            }
        }
    }
}

/// Small numbers as a title page writes them.
fn in_words(number: usize) -> String {
    const WORDS: [&str; 13] = [
        "No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten",
        "Eleven", "Twelve",
    ];
    WORDS
        .get(number)
        .map_or_else(|| number.to_string(), |word| (*word).to_owned())
}

/// What the marks mean.
fn legend() -> Markup {
    html! {
        dl.marks {
            div { dt { (mark(Mark::Pass)) } dd { "as near to the published figure as demanded" } }
            div { dt { (mark(Mark::Explained)) } dd { "not so near, for a reason that is given" } }
            div { dt { (mark(Mark::Deviation)) } dd { "not so near, and nobody knows why" } }
        }
    }
}

/// The first of many authors.
fn short_authors(authors: &[String]) -> String {
    match authors {
        [one] => one.clone(),
        [one, other] => format!("{one}, {other}"),
        [first, ..] => format!("{first} and others"),
        [] => String::new(),
    }
}

/// A square for each figure compared, by its mark.
fn strip(paper: &PaperResult) -> Markup {
    let tally = paper.tally();
    let groups = [
        (Mark::Pass, tally.passed),
        (Mark::Explained, tally.explained),
        (Mark::Deviation, tally.deviations),
    ];
    html! {
        p.strip role="img" aria-label=(verdict(tally)) {
            @for (mark, count) in groups { @for _ in 0..count { i class=(class_of(mark)) {} } }
        }
        p.by { (verdict(tally)) }
    }
}

fn chapter(paper: &PaperResult) -> Markup {
    html! {
        article.chapter id=(paper.key) {
            header {
                p.kicker { (paper.venue) " · " (paper.year) }
                h2.chapter-title { (paper.title) }
                p.authors { (paper.authors.join(", ")) }
            }
            p.lead { (paper.claim.trim()) }
            p.verdict-line { (verdict(paper.tally())) "." }
            @for exhibit in &paper.exhibits { (show(exhibit)) }
            @if !paper.departures.is_empty() {
                section.departures {
                    h3 { "What is not as it was there" }
                    dl {
                        @for departure in &paper.departures {
                            dt { (departure.what.trim()) }
                            dd { (departure.why.trim()) }
                        }
                    }
                }
            }
            @if !paper.stale.is_empty() {
                p.footnote { "Explained, but no deviation any more: " (paper.stale.join("; ")) "." }
            }
        }
    }
}

fn show(exhibit: &Exhibit) -> Markup {
    let says = &exhibit.says;
    let content = match &exhibit.content {
        Content::Table(table) => table::draw(table, says),
        Content::Lines(chart) => chart::lines(chart, exhibit),
        Content::Bars(chart) => chart::bars(chart, exhibit),
        Content::Samples(samples) => chart::samples(samples, exhibit),
        Content::Timeline(timeline) => timeline::draw(timeline, exhibit),
        Content::ValueContour(contour) => contour::draw(contour, Some(says)),
    };
    html! {
        section.exhibit {
            h3 { span.id { (exhibit.id) } " " span { (exhibit.title) } }
            @if folded(exhibit) {
                details { summary { "The figures as a table" } (content) }
            } @else { (content) }
            @if !exhibit.caption.is_empty() { p.caption { (exhibit.caption.trim()) } }
            (reasons(exhibit))
        }
    }
}

/// Whether the exhibit is shown only to those who open it; never when something deviates.
fn folded(exhibit: &Exhibit) -> bool {
    let deviates = exhibit.tally().deviations > 0;
    matches!(&exhibit.content, Content::Table(table) if table.fold) && !deviates
}

/// The checks, and what deviates with the reasons.
fn reasons(exhibit: &Exhibit) -> Markup {
    let notes = notes(exhibit);
    html! {
        @if !notes.is_empty() {
            ul.notes {
                @for note in &notes {
                    li class=(class_of(note.mark)) {
                        @for what in &note.what { p.what { (mark(note.mark)) " " (what) } }
                        @if note.mark != Mark::Pass {
                            p { em { "Wanted because " } (note.why.trim()) }
                            @if !note.explained.is_empty() {
                                p { em { "Deviates because " } (note.explained.trim()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn colophon(papers: &[PaperResult]) -> Markup {
    let keys: Vec<&str> = papers.iter().map(|paper| paper.key.as_str()).collect();
    html! {
        h2 { "To see it again" }
        pre { code { "andante paper " (keys.join(" ")) " --report" } }
        p.footnote {
            "Andante " (simulator::version()) ". All times are virtual: the simulator knows no clock, and \
             gives the same figures everywhere, to the last digit. What each figure is measured by, and \
             how near it must be, stands in papers/KEY/paper.toml."
        }
    }
}
