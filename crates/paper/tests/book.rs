//! The book of papers is well-formed, stands alone, and shows published beside measured.

use andante_paper::result::{
    Application, Cell, Chart, Check, Column, Content, Curve, Departure, Exhibit, Lane, Mark,
    PaperResult, Published, Row, Samples, Series, Setting, Slot, Table, Timeline, Value,
    ValueContour,
};
use andante_paper::{book, text};
use scraper::{Html, Selector};

const HOSTILE: &str = "<b>bold</b> & \"quoted\"";

fn exhibit(id: &str, content: Content) -> Exhibit {
    Exhibit {
        id: id.into(),
        title: HOSTILE.into(),
        caption: HOSTILE.into(),
        says: "claimed".into(),
        content,
        checks: Vec::new(),
    }
}

fn cell(published: Option<Published>, measured: Option<f64>, mark: Mark) -> Cell {
    Cell {
        published,
        measured,
        missing: measured.is_none().then(|| "nobody was heard".into()),
        mark,
        demand: "within 10 %".into(),
        why: "it was measured well".into(),
        explained: match mark {
            Mark::Explained => "the machine is another one".into(),
            _ => String::new(),
        },
    }
}

fn table() -> Exhibit {
    let number = |value| Some(Published::Number(value));
    let row = |title: &str, cells: Vec<Cell>| Row {
        title: title.into(),
        x: Some(1.0),
        labels: vec![HOSTILE.into()],
        cells,
    };
    let column = |title: &str| Column {
        title: title.into(),
        unit: "ms".into(),
        decimals: Some(1),
    };
    let mut table = exhibit(
        "Table 1",
        Content::Table(Table {
            row_title: "load".into(),
            label_titles: vec!["X".into()],
            columns: vec![column("typing"), column("video")],
            rows: vec![
                row(
                    "none",
                    vec![
                        Cell {
                            demand: "at most that".into(),
                            ..cell(number(38.5), Some(40.0), Mark::Pass)
                        },
                        cell(number(112.0), Some(200.0), Mark::Explained),
                    ],
                ),
                row(
                    "a build",
                    vec![
                        cell(Some(Published::Starved), None, Mark::Pass),
                        cell(number(0.0), None, Mark::Deviation),
                    ],
                ),
            ],
            fold: true,
        }),
    );
    table.checks.push(Check {
        text: format!("typing: {HOSTILE}"),
        mark: Mark::Pass,
        why: "w".into(),
        explained: String::new(),
    });
    table
}

fn figures() -> Vec<Exhibit> {
    let chart = || Chart {
        x_label: "n".into(),
        y_label: HOSTILE.into(),
        log_y: false,
        rows: vec![("one".into(), 1.0), ("two".into(), 2.0)],
        series: vec![Series {
            title: HOSTILE.into(),
            published: vec![Some(3.0), None],
            measured: vec![Some(2.0), Some(0.0)],
        }],
    };
    let nothing = Chart {
        rows: Vec::new(),
        series: Vec::new(),
        ..chart()
    };
    let slot = |label: &str, start_ms: f64| Slot {
        label: label.into(),
        marked: label == "B",
        start_ms,
        length_ms: 10.0,
    };
    let lane = |published: &[&str]| Lane {
        title: HOSTILE.into(),
        from_ms: 0.0,
        to_ms: 20.0,
        published: published.iter().map(|label| slot(label, 0.0)).collect(),
        measured: vec![slot("A", 0.0), slot("<i>", 10.0)],
    };
    let value = |published, measured| Value {
        published,
        measured,
    };
    vec![
        exhibit("Lines", Content::Lines(chart())),
        exhibit(
            "Log",
            Content::Bars(Chart {
                log_y: true,
                ..chart()
            }),
        ),
        exhibit("No lines", Content::Lines(nothing.clone())),
        exhibit("No bars", Content::Bars(nothing)),
        exhibit(
            "Slots",
            Content::Timeline(Timeline {
                slot_ms: Some(10.0),
                lanes: vec![lane(&["A", "B"]), lane(&[])],
            }),
        ),
        exhibit(
            "As it came",
            Content::Timeline(Timeline {
                slot_ms: None,
                lanes: vec![lane(&[])],
            }),
        ),
        exhibit(
            "Contour",
            Content::ValueContour(ValueContour {
                applications: vec![Application {
                    title: HOSTILE.into(),
                    measures: vec!["mean".into(), "sd".into()],
                }],
                settings: vec![Setting {
                    title: HOSTILE.into(),
                    values: vec![vec![value(Some(0.5), Some(7.0)), value(None, Some(0.0))]],
                }],
            }),
        ),
        exhibit(
            "Samples",
            Content::Samples(Samples {
                y_label: "share [%]".into(),
                series: vec![Curve {
                    title: HOSTILE.into(),
                    published: vec![(1.0, 50.0)],
                    measured: vec![(0.5, 40.0), (1.5, 60.0)],
                }],
            }),
        ),
    ]
}

fn paper(key: &str, exhibits: Vec<Exhibit>) -> PaperResult {
    PaperResult {
        key: key.into(),
        title: HOSTILE.into(),
        authors: vec!["A. One".into(), "B. Two".into(), "C. Three".into()],
        venue: HOSTILE.into(),
        year: 1993,
        claim: HOSTILE.into(),
        departures: vec![Departure {
            what: HOSTILE.into(),
            why: HOSTILE.into(),
        }],
        exhibits,
        stale: vec![HOSTILE.into()],
    }
}

/// The book, parsed; fails if it is not well-formed or refers to anything outside itself.
fn parse(papers: &[PaperResult]) -> Html {
    let text = book::html(papers);
    let page = Html::parse_document(&text);
    let errors = page.errors.clone();
    assert_eq!(
        errors,
        Vec::<&str>::new(),
        "the parser had to mend the page"
    );
    for outside in ["://", "url(", "@import", "<script", "<link", "src="] {
        assert!(!text.contains(outside), "the page contains {outside}");
    }
    for wrong in ["NaN", "inf%", "<b>"] {
        assert!(!text.contains(wrong), "the page contains {wrong}");
    }
    page
}

fn texts(page: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    page.select(&selector)
        .map(|element| element.text().collect())
        .collect()
}

#[test]
fn every_exhibit_is_drawn_and_every_text_escaped() {
    let exhibits: Vec<Exhibit> = std::iter::once(table()).chain(figures()).collect();
    let count = exhibits.len();
    let page = parse(&[paper("one", exhibits), paper("two", vec![table()])]);
    assert_eq!(texts(&page, ".chapter").len(), 2);
    assert_eq!(texts(&page, ".exhibit").len(), count + 1);
    assert_eq!(texts(&page, ".chapter .chapter-title")[0], HOSTILE);
    assert_eq!(texts(&page, ".contents li").len(), 2);
    let ids = |selector: &str, attribute: &str| -> Vec<String> {
        let selector = Selector::parse(selector).unwrap();
        page.select(&selector)
            .filter_map(|element| element.attr(attribute).map(str::to_owned))
            .collect()
    };
    assert_eq!(ids(".contents a", "href"), ["#one", "#two"]);
    assert_eq!(ids(".chapter", "id"), ["one", "two"]);
    let titles = texts(&page, "svg[role=img] > title");
    assert_eq!(
        titles.len(),
        texts(&page, "svg[role=img]").len(),
        "every picture has words"
    );
    // Of the two slots of the lane that is compared, the second is another's.
    assert_eq!(texts(&page, ".slot.differs").len(), 1);
    assert_eq!(texts(&page, ".lane").len(), 3);
    assert_eq!(texts(&page, ".contour rect").len(), 3);
}

#[test]
fn published_stands_below_measured_and_deviations_are_explained() {
    let page = parse(&[paper("one", vec![table()])]);
    assert_eq!(
        texts(&page, ".compared .measured"),
        ["40.0✓", "200.0≈", "-✓", "-✗"]
    );
    assert_eq!(
        texts(&page, ".compared .published"),
        ["≤ 38.5× 1.039", "112.0× 1.786", "-", "0.0"]
    );
    assert_eq!(
        texts(&page, ".strip").len(),
        0,
        "one paper needs no contents"
    );
    let verdicts = texts(&page, ".chapter .verdict-line");
    assert_eq!(
        verdicts,
        ["3 of 5 figures compared hold, 1 deviate for a known reason, 1 without one."]
    );
    let notes = texts(&page, ".notes li");
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[0].contains("none, video: 200.0 ms, wanted 112.0 ms (within 10 %)"));
    assert!(notes[0].contains("Deviates because the machine is another one"));
    assert!(notes[1].contains("a build, video: nobody was heard, wanted 0.0 ms"));
    // What deviates is never folded away.
    assert_eq!(texts(&page, ".exhibit details").len(), 0);
    let mut good = table();
    if let Content::Table(table) = &mut good.content {
        table.rows.pop();
    }
    assert_eq!(
        texts(&parse(&[paper("one", vec![good])]), ".exhibit details").len(),
        1
    );
    assert!(texts(&page, "pre")[0].contains("andante paper one --report"));
}

#[test]
fn the_terminal_says_the_same_in_plain_text() {
    let mut exhibits = vec![table()];
    exhibits.extend(figures());
    let text = text(&paper("one", exhibits), 80, false);
    assert!(!text.contains('\u{1b}'), "colours were not asked for");
    for line in [
        "claimed     ≤ 38.5     112.0",
        "measured    40.0 ✓   200.0 ≈",
        "ratio     × 1.039   × 1.786",
        "✗ a build, video: nobody was heard, wanted 0.0 ms (within 10 %)",
        "wanted because: it was measured well",
        "deviates because: the machine is another one",
        "claimed    A B*",
        "one: 3 of 5 figures compared hold, 1 deviate for a known reason, 1 without one",
    ] {
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            squeezed(&text).contains(&squeezed(line)),
            "{line}\nin\n{text}"
        );
    }
    let coloured = andante_paper::text(&paper("one", vec![table()]), 80, true);
    assert!(coloured.contains("\u{1b}["));
}
