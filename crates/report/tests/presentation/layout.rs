//! Where things stand on the page: labels beside what they are labels of, and nothing wider than the page.

use andante_report::html;
use scraper::{ElementRef, Html, Selector};

use crate::fixture;

fn all<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).unwrap()).collect()
}

fn percent(element: &ElementRef, attribute: &str) -> f64 {
    let text = element.attr(attribute).unwrap();
    text.trim_end_matches('%').parse().unwrap()
}

/// A table may be as wide as it likes in a box that moves; the first cell of each row stays there.
#[test]
fn wide_tables_have_a_box_of_their_own() {
    let page = Html::parse_document(&html(&[fixture::film()], &fixture::checks()));
    let tables = all(&page, "table").len();
    assert!(tables >= 3);
    assert_eq!(all(&page, ".scroll > table").len(), tables);
    let style: String = all(&page, "style")[0].text().collect();
    let sticky = style
        .lines()
        .find(|line| line.starts_with(".scroll tr > :first-child"));
    assert!(
        sticky.is_some_and(|rule| rule.contains("position: sticky") && rule.contains("left: 0"))
    );
    for row in all(&page, ".scroll tbody tr:not(.block)") {
        let first = row.children().find_map(ElementRef::wrap).unwrap();
        assert_eq!(first.value().name(), "th", "a row without a label");
    }
}

/// The share asked may be far from what was received: the figure stands by the bar all the same, and only a
/// mark that is close goes between.
#[test]
fn a_figure_stands_beside_its_bar() {
    let mut tree = fixture::tree();
    for class in tree.schedulers.iter_mut().flat_map(|s| &mut s.classes) {
        (class.share_received, class.share_asked) = match class.path.as_str() {
            "/s1" => (0.05, 0.75),
            "/s2" => (0.74, 0.75),
            _ => (class.share_received, class.share_asked),
        };
    }
    let page = Html::parse_document(&html(&[tree], &[]));
    let groups = all(&page, ".room > .bars");
    assert_eq!(groups.len(), 4);
    let ends = |group: &ElementRef| {
        let of = |selector: &str, attribute: &str| -> Vec<f64> {
            let selector = Selector::parse(selector).unwrap();
            let found = group.select(&selector);
            found.map(|one| percent(&one, attribute)).collect()
        };
        (of("rect", "width"), of(".value", "x"), of(".asked", "x1"))
    };
    let (bars, figures, asked) = ends(&groups[0]);
    assert_eq!(bars, figures, "far from the mark at {asked:?}");
    let (bars, figures, asked) = ends(&groups[3]);
    assert!(bars[0] < asked[0]);
    assert_eq!(figures, [asked[0]; 2], "behind the mark, which is close");
    // Labels are text of the page, which can go on in a second line.
    assert_eq!(all(&page, ".room > .bar-label").len(), 4);
    assert!(all(&page, ".bars .label").is_empty());
}
