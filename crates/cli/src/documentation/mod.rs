//! README, the guides and the book say nothing that is not so: what can be looked up is looked up. Commands are
//! parsed by the parser of the binary, paths, functions and links must lead to something.

mod commands;
mod names;
mod pages;

use std::path::{Path, PathBuf};

use pages::{Page, all, below, normal, top};

fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// A page that is not there, beside README.
fn made_up(text: &str) -> Page {
    Page {
        path: PathBuf::from("docs/made-up.md"),
        text: text.to_owned(),
    }
}

#[test]
fn every_command_that_is_shown_parses() {
    let pages = all();
    let shown = pages.iter().flat_map(Page::code);
    let ours = shown.filter(|code| code.text.contains("andante ")).count();
    assert!(
        ours > 100,
        "only {ours} commands found: are pages read as they should be?"
    );
    none(
        &pages
            .iter()
            .flat_map(commands::complaints)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn every_path_and_function_that_is_named_is_there() {
    none(&all().iter().flat_map(names::complaints).collect::<Vec<_>>());
}

#[test]
fn every_link_leads_somewhere() {
    let pages = all();
    let links: usize = pages.iter().map(|page| page.links().len()).sum();
    assert!(
        links > 100,
        "only {links} links found: are pages read as they should be?"
    );
    none(&pages.iter().flat_map(names::links).collect::<Vec<_>>());
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let pages = all();
    let listed = |of: &str| -> Vec<PathBuf> {
        let page = pages
            .iter()
            .find(|page| page.path == Path::new(of))
            .unwrap();
        let links = page.links();
        links.iter().map(|(_, link)| page.beside(link)).collect()
    };
    let (summary, decisions) = (listed("docs/SUMMARY.md"), listed("docs/decisions/index.md"));
    for path in below(&top().join("docs"), "md") {
        if path == Path::new("docs/SUMMARY.md") {
            continue;
        }
        let path = normal(&path);
        assert!(
            summary.contains(&path),
            "docs/SUMMARY.md lacks {}",
            path.display()
        );
        let decision = path.starts_with("docs/decisions") && !path.ends_with("index.md");
        assert!(
            !decision || decisions.contains(&path),
            "docs/decisions/index.md lacks {}",
            path.display()
        );
    }
}

#[test]
fn guides_stay_short() {
    for page in all() {
        let guide = ["README.md", "ARCHITECTURE.md"]
            .iter()
            .any(|p| page.path == Path::new(p));
        let lines = page.text.lines().count();
        assert!(
            !guide || lines < 150,
            "{} has {lines} lines",
            page.path.display()
        );
    }
}

#[test]
fn a_decision_has_all_of_its_parts() {
    for page in all() {
        if !page.path.starts_with("docs/decisions") || page.path.ends_with("index.md") {
            continue;
        }
        for part in ["Context", "Choice", "Rejected", "Command", "Commit"] {
            let lacks = !page.text.contains(&format!("\n**{part}.** "));
            assert!(!lacks, "{} lacks its {part}", page.path.display());
        }
    }
}

#[test]
fn wrong_commands_are_found() {
    for wrong in [
        "    andante lab run film-make --fast",
        "    sudo andante runn",
        "    andante reserve --list --perhaps   # a comment",
        "    andante lab run no-such-scenario",
        "    andante lab run film-make --draw 1/1",
        "    andante lab sweep film-make",
        "    andante paper nobody99",
        "    andante exec --reserve 9ms/33ms",
        "    andante run --leave nothing",
        "    make no-such-target",
        "    make race NOSUCH=4",
        "    make kernel-test TEST=no_such_test",
        "    cargo test -p andante-nothing",
        "Say `andante run --no-such-option`.",
        "Say `andante lab run
no-such-scenario`.",
        "The option `--no-such-option` does it.",
    ] {
        let found = commands::complaints(&made_up(wrong));
        assert_eq!(found.len(), 1, "{wrong}: {found:?}");
    }
}

#[test]
fn right_commands_are_let_pass() {
    let right = "
    sudo andante exec --class film --weight 300 -- mpv film.mkv
    andante admit contracts.toml --json | jq '.contracts[]'   # and so on
    sudo andante reserve $(pidof mpv) 20ms/33ms --tolerate 1/5
    ANDANTE_KERNEL=6.18 andante lab run shares --set 'duration_s = 60'
    andante lab run desktop --draw 1/17 --on sim

The part is that of `andante run --leave`, `make vm-desktop` runs one, `--soft` is for root.
";
    none(&commands::complaints(&made_up(right)));
}

#[test]
fn wrong_paths_functions_and_links_are_found() {
    let found = names::complaints(&made_up(
        "In `core/no_such.h`, `dist/no-such.sh` and `an_no_such()`.",
    ));
    assert_eq!(found.len(), 3, "{found:?}");
    none(&names::complaints(&made_up(
        "In `core/tag.h`, `papers/KEY/paper.toml`, `an_pick()`.",
    )));
    for wrong in [
        "[a](no-such.md)",
        "[a](../README.md)",
        "[a](README.md)",
        "[a](contracts.md#no-such-heading)",
        "[a](#no-such-heading)",
        "{{#include ../no-such.md}}",
    ] {
        let found = names::links(&made_up(wrong));
        assert_eq!(found.len(), 1, "{wrong}: {found:?}");
    }
    none(&names::links(&made_up(
        "# Some words\n[a](contracts.md#the-answer) [b](#some-words)",
    )));
}
