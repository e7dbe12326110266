//! Where scenarios and what comes with them are found, and results written.

use std::path::{Path, PathBuf};

use andante_document::closest;
use andante_scenario::Scenario;

use crate::{LabError, RunOptions};

/// The scenario that is asked for, with the cases that are, and its file.
pub fn load(options: &RunOptions) -> Result<(PathBuf, Scenario), LabError> {
    let file = find(&options.scenario)?;
    let mut scenario = Scenario::load(&file, &options.set)?;
    if !options.cases.is_empty() {
        keep_cases(&mut scenario, &options.cases)?;
    }
    Ok((file, scenario))
}

/// Names and files of the scenarios that come with Andante.
pub fn known_scenarios() -> Vec<(String, PathBuf)> {
    toml_files(&folders("scenarios"))
}

/// Names and files of everything in TOML in `folders`, by name; of one name the first.
pub fn toml_files(folders: &[PathBuf]) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for entry in folders
        .iter()
        .flat_map(std::fs::read_dir)
        .flatten()
        .flatten()
    {
        let file = entry.path();
        let name = file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        if file
            .extension()
            .is_some_and(|extension| extension == "toml")
            && let Some(name) = name
            && !found.iter().any(|(known, _)| *known == name)
        {
            found.push((name, file));
        }
    }
    found.sort();
    found
}

/// Folders called `name`: here, beside or above this binary, and where they are installed with it.
pub fn folders(name: &str) -> Vec<PathBuf> {
    let here = std::env::current_dir().ok();
    let binary = std::env::current_exe().ok();
    let above = |path: &PathBuf| {
        path.ancestors()
            .skip(1)
            .map(Path::to_owned)
            .collect::<Vec<_>>()
    };
    here.into_iter()
        .chain(binary.iter().flat_map(above))
        .flat_map(|folder| [folder.join(name), folder.join("share/andante").join(name)])
        .filter(|folder| folder.is_dir())
        .collect()
}

/// The way out where nothing is found that comes with Andante, as where only its programs were installed.
pub fn none_here(what: &str) -> String {
    format!(
        "give the path of {what}; those that come with Andante are found from within its source, and where `make install` \
         or the package andante-lab has put them"
    )
}

/// The file of a scenario given by path or by name.
pub fn find(name: &str) -> Result<PathBuf, LabError> {
    let path = PathBuf::from(name);
    if path.is_file() {
        return Ok(path);
    }
    let known = known_scenarios();
    if let Some((_, file)) = known.iter().find(|(known, _)| known == name) {
        return Ok(file.clone());
    }
    let families = toml_files(&folders("scenarios/families"));
    Err(LabError::NoScenario {
        name: name.to_owned(),
        hint: match families.iter().any(|(family, _)| family == name) {
            true => format!(
                "it is a family: `andante lab sweep {name}` draws from it, and `--draw 1/0` runs one draw"
            ),
            false => hint(name, &known, "andante lab list"),
        },
    })
}

/// The way out where nothing is called `name`: the one of `known` that it probably is, or what lists them.
pub fn hint(name: &str, known: &[(String, PathBuf)], lists: &str) -> String {
    match closest(name, known.iter().map(|(known, _)| known.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => none_here("a TOML file"),
        None => format!("`{lists}` lists them; or give the path of a TOML file"),
    }
}

/// Keeps the cases of these names.
///
/// # Errors
/// If there is none of one of them.
pub fn keep_cases(scenario: &mut Scenario, wanted: &[String]) -> Result<(), LabError> {
    let names: Vec<String> = scenario
        .cases
        .iter()
        .filter_map(|case| case.name.clone())
        .collect();
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(name)) {
        // Another number is another case, and no misspelling.
        let words = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
        let near = closest(unknown, names.iter().map(String::as_str));
        let near = near.filter(|near| words(near) != words(unknown));
        let hint = match (near, names.is_empty()) {
            (Some(near), _) => format!("did you mean the case `{near}`?"),
            (None, true) => "the scenario has no cases".to_owned(),
            (None, false) => format!("its cases are: {}", names.join(", ")),
        };
        return Err(LabError::NoScenario {
            name: format!("{}/{unknown}", scenario.key),
            hint,
        });
    }
    scenario
        .cases
        .retain(|case| case.name.as_ref().is_some_and(|name| wanted.contains(name)));
    Ok(())
}

/// Writes a file, and makes its folder if there is none.
///
/// # Errors
/// If it cannot be written.
pub fn write_file(file: &Path, content: &[u8]) -> Result<(), LabError> {
    let folder = file.parent().expect("a result lies in a folder");
    std::fs::create_dir_all(folder).map_err(|e| LabError::file("create", folder, e))?;
    std::fs::write(file, content).map_err(|e| LabError::file("write", file, e))
}

/// The scheduler's binary, `andante`, found from the laboratory's: beside it, or where the one is in `bin` and
/// the other in `libexec/andante`.
///
/// # Errors
/// If it is in neither place.
pub fn andante_of(lab: &Path) -> Result<PathBuf, LabError> {
    let folder = lab.parent().unwrap_or(Path::new(""));
    let places = [folder.join("andante"), folder.join("../../bin/andante")];
    let found = places.into_iter().find(|file| file.is_file());
    found.ok_or_else(|| LabError::MissingTool {
        name: "andante".to_owned(),
        purpose: "to put the scheduler in charge".to_owned(),
        mend: "install the package andante, or run `make` in the source tree".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_near_another_is_taken_for_it() {
        let known =
            ["film-loops", "film-make", "shares"].map(|name| (name.to_owned(), PathBuf::new()));
        let of = |name: &str| hint(name, &known, "andante lab list");
        assert_eq!(of("film-lops"), "did you mean `film-loops`?");
        assert_eq!(of("flim-make"), "did you mean `film-make`?");
        assert!(of("orchestra").starts_with("`andante lab list` lists them"));
        assert!(hint("x", &[], "").starts_with("give the path of a TOML file"));
        let text = "title = 'x'\nduration_s = 1\n[programs.x]\nclass = '/'\nkind = 'loop'\n\
                    [cases.alone]\n[cases.together]\n";
        let mut scenario = Scenario::parse("x.toml", text, &[]).unwrap();
        let mut refused = |name: &str| {
            let error = keep_cases(&mut scenario, &[name.to_owned()]);
            error.unwrap_err().to_string()
        };
        let near = refused("togther");
        assert!(
            near.ends_with("did you mean the case `together`?"),
            "{near}"
        );
        let other = refused("alone2");
        assert!(other.ends_with("its cases are: alone, together"), "{other}");
        let far = refused("noise");
        assert!(far.ends_with("its cases are: alone, together"), "{far}");
    }

    #[test]
    fn the_scheduler_is_found_from_the_laboratory() {
        let prefix = tempfile::tempdir().unwrap();
        let file = |path: &str| {
            let file = prefix.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            file
        };
        let lab = file("libexec/andante/andante-lab");
        let missing = andante_of(&lab).unwrap_err().to_string();
        assert!(missing.contains("package andante"), "{missing}");
        let installed = file("bin/andante");
        let same = |found: PathBuf, file: &Path| {
            assert_eq!(found.canonicalize().unwrap(), file.canonicalize().unwrap());
        };
        same(andante_of(&lab).unwrap(), &installed);
        let beside = file("libexec/andante/andante");
        same(andante_of(&lab).unwrap(), &beside);
    }
}
