//! What a scenario takes from other files: another scenario that it varies, and recorded times.

use std::path::{Path, PathBuf};

use andante_document::{DocumentError, FromNode, Node, Value};

/// The key that names another scenario.
const BASE: &str = "base";
/// Whether its cases are taken too.
const BASE_CASES: &str = "base_cases";

/// `document`, laid over the scenario that its `base` names, if it names one; and the files that it
/// is read from besides its own, as paths from that one's folder. Cases of the same name are laid over
/// each other, unless the base's are left out; `[[expect]]` tables replace all of the base's.
pub(super) fn with_base(file: &str, document: Node) -> Result<(Node, Vec<PathBuf>), DocumentError> {
    let (document, base) = laid_over_base(file, document, &Node::overlay)?;
    let mut files: Vec<_> = base.into_iter().collect();
    collect_traces(&document, &mut files);
    files.sort();
    files.dedup();
    Ok((document, files))
}

/// `document`, laid by `lay` over the one that its `base` names, and the file of that one.
pub fn laid_over_base(
    file: &str,
    mut document: Node,
    lay: &dyn Fn(&mut Node, &Node),
) -> Result<(Node, Option<PathBuf>), DocumentError> {
    let Some(node) = document.remove(BASE) else {
        return Ok((document, None));
    };
    let mut base = read_base(file, &node)?;
    if let Some(cases) = document.remove(BASE_CASES) {
        match bool::from_node(&cases) {
            Some(true) => {}
            Some(false) => drop(base.remove("cases")),
            None => return Err(cases.origin.error(BASE_CASES, "give true or false")),
        }
    }
    lay(&mut base, &document);
    Ok((base, path(&node)))
}

fn read_base(file: &str, node: &Node) -> Result<Node, DocumentError> {
    let fail = |message: String| Err(node.origin.error(BASE, message));
    let Some(name) = String::from_node(node).filter(|name| !name.contains('/')) else {
        return fail("give the name of a scenario file in the same folder".to_owned());
    };
    let path = Path::new(file).with_file_name(&name);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return fail(format!("{}: cannot be read: {error}", path.display())),
    };
    let mut base = Node::parse(&path.display().to_string(), &text)?;
    match base.remove(BASE) {
        None => Ok(base),
        Some(_) => fail(format!("`{name}` has a base itself: name that one")),
    }
}

/// Every `work_trace` of the document.
pub fn collect_traces(node: &Node, files: &mut Vec<PathBuf>) {
    let Value::Table(entries) = &node.value else {
        return;
    };
    for (key, node) in entries {
        if key == "work_trace" {
            files.extend(path(node));
        }
        collect_traces(node, files);
    }
}

fn path(node: &Node) -> Option<PathBuf> {
    String::from_node(node).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use std::path::{Path, PathBuf};

    const BASE: &str = r#"
title = "The base"
duration_s = 5
[programs.film]
class = "/"
kind = "player"
work_ms = [8, 4]
display_ms = 2
[programs.hog]
class = "/"
kind = "batch"
work_ms = 6
per_cpu = true
[cases.few]
programs.hog.count = 2
[[expect]]
measure = "late"
program = "film"
max = 0
"#;

    fn load(folder: &Path, name: &str, text: &str) -> Result<Scenario, String> {
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        Scenario::load(&file, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_scenario_varies_another() {
        let folder = tempfile::tempdir().unwrap();
        load(folder.path(), "base.toml", BASE).unwrap();
        let text = "title = \"Two CPUs\"\nbase = \"base.toml\"\ncpus = 2\nwork_scale = 0.5\n\
                    [cases.more]\nprograms.hog.count = 8\n";
        let scenario = load(folder.path(), "two.toml", text).unwrap();
        assert_eq!(
            (scenario.key.as_str(), scenario.title.as_str()),
            ("two", "Two CPUs")
        );
        assert_eq!(scenario.beside, [PathBuf::from("base.toml")]);
        assert_eq!(scenario.expectations.len(), 1);
        let [few, more] = &scenario.cases[..] else {
            panic!("{:?}", scenario.cases)
        };
        let text =
            "title = \"Other cases\"\nbase = \"base.toml\"\nbase_cases = false\n[cases.more]\n";
        let other = load(folder.path(), "other.toml", text).unwrap();
        let names: Vec<_> = other
            .cases
            .iter()
            .map(|case| case.name.as_deref())
            .collect();
        assert_eq!(names, [Some("more")]);
        assert_eq!(few.workload.cpus, 2);
        assert_eq!(few.workload.programs[1].count, 4);
        assert_eq!(more.workload.programs[1].count, 16);
        let kind = format!("{:?}", few.workload.programs[0].kind);
        assert!(kind.contains("work_ms: [4.0, 2.0]"), "{kind}");
        assert!(kind.contains("work_ms: 1.0"), "{kind}");
        let kind = format!("{:?}", few.workload.programs[1].kind);
        assert!(kind.contains("work_ms: [3.0]"), "{kind}");
    }

    #[test]
    fn mistakes_name_the_file_they_are_in() {
        let folder = tempfile::tempdir().unwrap();
        let two = |key: &str| {
            load(
                folder.path(),
                "two.toml",
                &format!("title = \"x\"\n{key}\n"),
            )
        };
        let error = two("base = \"absent.toml\"").unwrap_err();
        assert!(
            error.contains("two.toml:2: base: ") && error.contains("absent.toml: cannot be read")
        );
        assert!(
            two("base = \"../base.toml\"")
                .unwrap_err()
                .contains("same folder")
        );

        load(folder.path(), "base.toml", BASE).unwrap();
        let error = two("base = \"base.toml\"\nbase_cases = 1").unwrap_err();
        assert!(error.contains("two.toml:3: base_cases: "), "{error}");
        let error = two("base = \"base.toml\"\nprograms.hog.cuont = 3").unwrap_err();
        assert!(error.contains("two.toml:3: programs.hog.cuont"), "{error}");
        load(
            folder.path(),
            "wrong.toml",
            &BASE.replace("per_cpu", "per_cup"),
        )
        .unwrap_err();
        let error = two("base = \"wrong.toml\"").unwrap_err();
        assert!(
            error.contains("wrong.toml:13: programs.hog.per_cup"),
            "{error}"
        );
        two("base = \"base.toml\"").unwrap();
        let chain = load(
            folder.path(),
            "three.toml",
            "title = \"y\"\nbase = \"two.toml\"",
        );
        assert!(chain.unwrap_err().contains("has a base itself"));
    }

    #[test]
    fn real_work_cannot_be_scaled() {
        let text = "title = \"x\"\nduration_s = 1\nwork_scale = 2\n\
                    [programs.build]\nclass = \"/\"\nkind = \"make\"\n";
        let error = Scenario::parse("x.toml", text, &[])
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("x.toml:3: work_scale: "), "{error}");
    }
}
