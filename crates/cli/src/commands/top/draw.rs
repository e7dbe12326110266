//! The picture: a headline, the tree with its figures, and a line of keys.

use andante_terminal::output::{bar, percent};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize};
use ratatui::text::{Line, Span, Text};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::super::{contracts, memory};
use super::state::{HISTORY, State};
use crate::network;
use crate::shares::{self, Row};
use crate::tree;

/// Width of the figures between name and bar: weight, running, queued, asked, received, a gap.
const FIGURES: usize = 7 + 5 + 7 + 9 + 9 + 2;
/// Width of what was sent, with a gap, where a device is attached.
const SENT: usize = 9;
/// Least width of the names.
const NAME_MIN: usize = 16;
/// Lines of contracts below their title: half of the usual 24, so that classes have room above.
const MAX_CONTRACT_LINES: usize = 12;
/// Height of a sparkline, from nothing to everything.
const SPARKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Colour of what a class received up to the share it asked for.
const OWN: Color = Color::Green;
/// Colour of what it received beyond that.
const BEYOND: Color = Color::Cyan;

/// Widths of the columns that share what the figures leave.
struct Widths {
    name: usize,
    sent: usize,
    bar: usize,
    history: usize,
}

impl Widths {
    fn of(total: usize, has_network: bool) -> Self {
        let sent = if has_network { SENT } else { 0 };
        let spare = total.saturating_sub(FIGURES + sent + NAME_MIN + 1);
        let bar = (spare * 9 / 20).min(40);
        let history = (spare * 7 / 20).min(HISTORY);
        Self {
            name: NAME_MIN + spare - bar - history,
            sent,
            bar,
            history,
        }
    }
}

/// Draws everything; moves the scroll position so that the selected row is visible.
pub fn draw(frame: &mut Frame, state: &mut State) {
    let [head, columns, body, contracts, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(contract_lines(state, frame.area().width)),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let widths = Widths::of(usize::from(frame.area().width), state.has_network());
    frame.render_widget(headline(state), head);
    frame.render_widget(titles(&widths), columns);
    draw_rows(frame, body, state, &widths);
    frame.render_widget(contract_table(state, frame.area().width), contracts);
    frame.render_widget(footer(state), foot);
}

/// Lines that the contracts take.
pub fn contract_lines(state: &State, width: u16) -> u16 {
    u16::try_from(contract_table(state, width).lines.len()).unwrap_or(u16::MAX)
}

/// The contracts, and what is reserved of memory below them.
fn contract_table(state: &State, width: u16) -> Text<'static> {
    let mut text = contracts_alone(state, width);
    let width = usize::from(width);
    let lines = memory::lines(state.memory(), Some(width));
    let room = (MAX_CONTRACT_LINES / 2).max(MAX_CONTRACT_LINES.saturating_sub(text.lines.len()));
    let shown = lines.len().min(room);
    for (at, line) in lines.iter().take(shown).enumerate() {
        let line = Line::from(cut(line, width));
        text.push_line(if at == 0 { line.dim() } else { line });
    }
    if lines.len() > shown {
        let more = "and more reservations of memory, which `andante reserve --list` shows";
        text.push_line(Line::from(cut(more, width)).dim());
    }
    text
}

/// The contracts, in their order: a title, and a line or more of each. Of those that are not shown is said how many.
fn contracts_alone(state: &State, width: u16) -> Text<'static> {
    let (all, width) = (state.contracts(), usize::from(width));
    if all.is_empty() {
        return Text::default();
    }
    let mut room = MAX_CONTRACT_LINES;
    let mut shown = Vec::new();
    for (lines, row) in contracts::plain(all, width).into_iter().zip(all) {
        // The last line is for what has no room, unless all have.
        let last = usize::from(shown.len() + 1 < all.len());
        if lines.len() + last > room {
            break;
        }
        room -= lines.len();
        shown.push((lines, row));
    }
    let mut text = Text::from(Line::from(contracts::plain_titles(all, width)).dim());
    let left = all.len() - shown.len();
    for (lines, row) in shown {
        for line in lines {
            let line = Line::from(cut(&line, width));
            text.push_line(match row.unplaced {
                true => line.fg(Color::Red),
                false => line,
            });
        }
    }
    if left > 0 {
        let more = format!("and {left} more, which `andante reserve --list` shows");
        text.push_line(Line::from(more).dim());
    }
    text
}

fn headline(state: &State) -> Text<'static> {
    let title = Line::from(vec![
        " Andante ".bold().reversed(),
        format!("  {}", state.title()).dim(),
    ]);
    let mut figures = String::new();
    if let (Some(snapshot), Some(root)) = (state.latest(), state.rows().first()) {
        figures = format!(
            "{} {}, {} used, {} running, {} queued, up {}",
            snapshot.cpus,
            if snapshot.cpus == 1 { "CPU" } else { "CPUs" },
            percent(root.share_received).trim_start(),
            root.class.running,
            root.class.queued,
            uptime(snapshot.now_ns)
        );
    }
    Text::from(vec![title, Line::from(figures)])
}

fn titles(widths: &Widths) -> Line<'static> {
    let &Widths {
        name,
        sent,
        bar,
        history,
    } = widths;
    let titles = format!(
        "{:name$} WEIGHT  RUN QUEUED    ASKED RECEIVED{:>sent$}  {:bar$} {:history$}",
        "CLASS",
        if sent > 0 { "SENT" } else { "" },
        "",
        if history < 7 { "" } else { "HISTORY" }
    );
    Line::from(titles).dim()
}

fn draw_rows(frame: &mut Frame, area: Rect, state: &mut State, widths: &Widths) {
    let height = usize::from(area.height).max(1);
    let selected = state.selected();
    state.scroll = state
        .scroll
        .clamp(selected.saturating_sub(height - 1), selected);
    let rows = state.rows();
    let depths: Vec<_> = rows.iter().map(|row| row.class.depth as usize).collect();
    let drawn = tree::lines(&depths);
    let visible = rows
        .iter()
        .zip(drawn)
        .enumerate()
        .skip(state.scroll)
        .take(height);
    for ((at, (row, lines)), line_area) in visible.zip(area.rows()) {
        let line = row_line(state, row, &lines, widths, at == selected);
        frame.render_widget(line, line_area);
    }
}

/// A selected one has its text reversed, but not the bar: of that the other end would light up.
fn row_line(
    state: &State,
    row: &Row,
    lines: &str,
    widths: &Widths,
    is_selected: bool,
) -> Line<'static> {
    let class = &row.class;
    let room = widths.name.saturating_sub(lines.width());
    let weight = shares::weight(class);
    let (width, sent) = (widths.sent, state.sent(row));
    let sent = match width {
        0 => String::new(),
        _ if sent == 0 => format!("{:>width$}", "-"),
        _ => format!("{:>width$}", network::rate(sent)),
    };
    let figures = format!(
        " {weight:>6} {:>4} {:>6}  {}  {}{sent}",
        class.running,
        class.queued,
        percent(class.share_asked),
        percent(row.share_received)
    );
    let name = match row.quota() {
        Some(quota) => fit(&format!("{} ({quota})", row.name()), room),
        None => fit(&row.name(), room),
    };
    let text = [lines.to_owned().dim(), Span::raw(name), Span::raw(figures)];
    let mut spans = if is_selected {
        text.map(Stylize::reversed).to_vec()
    } else {
        text.to_vec()
    };
    spans.push(Span::raw("  "));
    spans.extend(marked_bar(row, widths.bar));
    spans.push(Span::raw(" "));
    spans.push(sparkline(state, row, widths.history).fg(Color::Blue));
    Line::from(spans)
}

/// The share received as a bar, with a mark where the share asked ends. What lies beyond the mark
/// was left over by others.
fn marked_bar(row: &Row, width: usize) -> Vec<Span<'static>> {
    let filled = fit(&bar(row.share_received, width), width);
    if row.class.depth == 0 || width == 0 {
        return vec![Span::raw(filled).fg(OWN)];
    }
    let mark = (row.class.share_asked * width as f64).round() as usize;
    let mark = mark.clamp(1, width) - 1;
    let part = |from: usize, to: usize| -> String { filled.chars().take(to).skip(from).collect() };
    // On the filled part the mark is a gap, elsewhere a line.
    let sign = match filled.chars().nth(mark) {
        Some('█') => Span::raw("┃").fg(Color::Black).bg(OWN),
        _ => Span::raw("│"),
    };
    vec![
        Span::raw(part(0, mark)).fg(OWN),
        sign,
        Span::raw(part(mark + 1, width)).fg(BEYOND),
    ]
}

/// The latest shares, newest at the right.
fn sparkline(state: &State, row: &Row, width: usize) -> Span<'static> {
    let height = |share: f64| SPARKS[(share.clamp(0.0, 1.0) * 8.0).ceil() as usize];
    let mut sparks: Vec<_> = state.history(row).rev().take(width).map(height).collect();
    sparks.resize(width, ' ');
    Span::raw(sparks.into_iter().rev().collect::<String>())
}

fn footer(state: &State) -> Line<'static> {
    if let Some(message) = state.message() {
        return Line::from(message.to_owned()).bold();
    }
    let keys = [
        ("↑↓", "select".to_owned()),
        ("+-", "weight".to_owned()),
        ("s", format!("sort: {}", state.sort().name())),
        ("a", "idle ones".to_owned()),
        ("space", "pause".to_owned()),
        ("q", "quit".to_owned()),
    ];
    let spans = keys
        .into_iter()
        .flat_map(|(key, does)| [key.bold(), format!(" {does}   ").dim()]);
    Line::from(spans.collect::<Vec<_>>())
}

/// `text` cut or padded to exactly `width` columns.
fn fit(text: &str, width: usize) -> String {
    let spaces = |used: usize| " ".repeat(width.saturating_sub(used));
    let text = cut(text, width);
    format!("{text}{}", spaces(text.width()))
}

/// `text` of at most `width` columns; what is more is cut, which is shown.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for character in text.chars() {
        if cut.width() + character.width().unwrap_or(0) + 1 > width {
            break;
        }
        cut.push(character);
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

fn uptime(now_ns: u64) -> String {
    let minutes = now_ns / 60_000_000_000;
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes:02} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::buffer::Cell;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};
    use ratatui::style::Modifier;

    use super::super::state::tests::{
        state, state_with_contract, state_with_contracts, state_with_network,
    };
    use super::*;

    fn screen(state: &mut State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let cells = terminal.backend().buffer().content();
        let text = |line: &[Cell]| line.iter().map(|cell| cell.symbol()).collect();
        cells.chunks(usize::from(width)).map(text).collect()
    }

    #[test]
    fn the_tree_fits_a_small_terminal() {
        let lines = screen(&mut state(), 80, 24);
        assert!(
            lines[1].contains("1 CPU, 100.0 % used, 0 running, 5 queued"),
            "{}",
            lines[0]
        );
        assert!(lines[4].starts_with("├─ a"), "{}", lines[4]);
        assert!(lines[5].starts_with("│  └─ x"), "{}", lines[5]);
        assert!(lines[6].contains(" 75.0 %   75.0 %  █"), "{}", lines[6]);
        assert!(
            lines[3].ends_with('█'),
            "the newest share stands at the edge: {}",
            lines[3]
        );
        assert!(lines[23].contains("q quit"), "{}", lines[23]);
    }

    #[test]
    fn contracts_stand_below_the_classes() {
        let mut state = state_with_contract();
        let lines = screen(&mut state, 90, 24);
        assert!(lines[21].starts_with("CONTRACT  HOLDER"), "{}", lines[21]);
        assert!(lines[22].starts_with("mpv-7     mpv (7)"), "{}", lines[22]);
        assert!(lines[22].contains(" 25.0 % "), "{}", lines[22]);
        assert!(lines[23].contains("q quit"), "{}", lines[23]);
    }

    /// 4,000 bytes in 4 µs of `/a` and as many below it; 0.1 of the own ones are by contract.
    #[test]
    fn what_was_sent_stands_beside_what_was_received() {
        let lines = screen(&mut state_with_network(), 80, 24);
        let end = |line: &str, what: &str| {
            let at = line.find(what).unwrap() + what.len();
            line[..at].width()
        };
        for (line, sent) in [(3, "16gbit"), (4, "16gbit"), (5, "8gbit")] {
            assert_eq!(
                end(&lines[2], " SENT"),
                end(&lines[line], sent),
                "{lines:?}"
            );
        }
        assert!(lines[21].starts_with("CONTRACT"), "{lines:?}");
        assert!(
            lines[22].starts_with("eth0:/a   /a      2mbit/10ms"),
            "{}",
            lines[22]
        );
        assert!(lines[22].contains(" 800mbit "), "{}", lines[22]);
        let without = screen(&mut state(), 80, 24);
        assert!(!without[2].contains("SENT"), "{}", without[2]);
    }

    /// Nine contracts of classes far down in the tree take two lines each: five have room, and classes above them.
    #[test]
    fn long_contracts_are_whole_and_leave_room_for_classes() {
        let lines = screen(&mut state_with_contracts(9), 80, 24);
        let rows: Vec<_> = lines.iter().map(|line| line.trim_end()).collect();
        assert!(rows[3].starts_with("/ "), "{lines:#?}");
        assert!(rows[11].starts_with("CONTRACT"), "{lines:#?}");
        let name = "eth0:/user.slice/user-1000.slice/call0  /user.slice/user-1000.slice/call0";
        assert_eq!(rows[12], name);
        let used = |line: &str, what: &str| line[..line.find(what).unwrap()].width() + what.len();
        assert_eq!(
            used(rows[13], " 800kbit"),
            used(rows[11], " USED"),
            "{lines:#?}"
        );
        assert_eq!(rows[22], "and 4 more, which `andante reserve --list` shows");
        // All of six have, in twelve lines.
        let lines = screen(&mut state_with_contracts(6), 80, 24);
        assert!(lines[10].starts_with("CONTRACT"), "{lines:#?}");
        assert!(!lines.concat().contains(" more, "), "{lines:#?}");
    }

    #[test]
    fn columns_stand_under_their_titles() {
        let lines = screen(&mut state(), 80, 24);
        let end = |line: &str, what: &str| {
            let at = line.find(what).unwrap() + what.len();
            line[..at].width()
        };
        assert_eq!(end(&lines[2], "WEIGHT"), end(&lines[6], " 300"));
        assert_eq!(end(&lines[2], "ASKED"), end(&lines[6], "75.0 %"));
    }

    #[test]
    fn the_selected_row_is_scrolled_into_view() {
        let mut state = state();
        for _ in 0..3 {
            state.press(KeyEvent::from(KeyCode::Down));
        }
        let lines = screen(&mut state, 80, 6);
        assert!(lines[3].contains("x "), "{}", lines[3]);
        assert!(lines[4].starts_with("└─ b"), "{}", lines[4]);
    }

    #[test]
    fn the_text_of_the_selected_row_is_reversed_and_the_bar_is_not() {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &mut state())).unwrap();
        let cells = terminal.backend().buffer().content();
        let is_reversed = |cell: &Cell| cell.modifier.contains(Modifier::REVERSED);
        let lines: Vec<_> = cells.chunks(80).collect();
        let bar = lines[3].iter().position(|cell| cell.symbol() == "█");
        let (text, bar) = lines[3].split_at(bar.expect("a bar") - 2);
        assert!(text.iter().all(is_reversed));
        assert!(!bar.iter().any(is_reversed));
        assert!(!lines[4].iter().any(is_reversed));
    }

    #[test]
    fn nothing_breaks_on_a_tiny_terminal() {
        for (width, height) in [(1, 1), (10, 3), (40, 5), (300, 80)] {
            screen(&mut state(), width, height);
        }
    }

    #[test]
    fn long_names_are_cut_to_their_column() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("ab", 4), "ab  ");
        assert_eq!(fit("映画館", 4).width(), 4);
        assert_eq!(fit("ab", 0), "");
    }

    #[test]
    fn uptimes_are_short() {
        assert_eq!(uptime(5 * 60_000_000_000), "5 min");
        assert_eq!(uptime(65 * 60_000_000_000), "1 h 05 min");
        assert_eq!(uptime(1500 * 60_000_000_000), "1 d 1 h");
    }
}
