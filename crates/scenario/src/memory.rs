//! `[memory]`: a machine with little memory, and what it swaps to; and what a class has of the memory by the kernel's
//! own settings.
//!
//! ```toml
//! memory_mib = 512                                # of the machine
//!
//! [memory]
//! swap = "1G"                                     # the device that it swaps to
//! page_ms = 4                                     # how long a request to that takes, and one for a file
//!
//! [classes]
//! "/film" = { weight = 300, memory_min = "100M" } # memory_low, memory_high: by hand
//! "/game" = { reserve_memory = "100M", lend_percent = 20 } # under Andante
//! ```

use andante_document::{DocumentError, Node, Section, Value};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// An NVDIMM's length is a multiple of this [MiB].
const SWAP_STEP_MIB: u64 = 2;
/// The most swap [MiB]: what is written there is in the memory of the host.
const MOST_SWAP_MIB: u64 = 16_384;

/// The devices beside the memory of a virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Length of the device that it swaps to [MiB].
    pub swap_mib: u32,
    /// How long a request to that takes, and one to the file system of the programs [ms]; as many as there are at once.
    pub page_ms: u32,
}

/// The memory of a class and all below it, as the kernel's own files of a control group have it [bytes].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassMemory {
    /// Never taken from it (`memory.min`).
    pub min: Option<u64>,
    /// Taken from it when others have nothing left (`memory.low`).
    pub low: Option<u64>,
    /// Beyond this it gives memory back before it gets more (`memory.high`).
    pub high: Option<u64>,
    /// The amount that Andante reserves for it; under other schedulers nothing is.
    pub reserved: Option<Reservation>,
}

/// A reservation of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// How much [bytes].
    pub bytes: u64,
    /// Of what the class does not use, the part that is lent [1/1000]; none: Andante's own.
    pub lend_per_mille: Option<u32>,
}

impl ClassMemory {
    /// Whether the kernel is told anything by hand.
    pub fn any(&self) -> bool {
        let by_hand = Self {
            reserved: None,
            ..*self
        };
        by_hand != Self::default()
    }

    /// Reads it from the table of a class.
    pub(super) fn read(section: &mut Section<'_>) -> Result<Self, DocumentError> {
        Ok(Self {
            min: read_bytes(section, "memory_min")?,
            low: read_bytes(section, "memory_low")?,
            high: read_bytes(section, "memory_high")?,
            reserved: reservation(section)?,
        })
    }
}

fn reservation(section: &mut Section<'_>) -> Result<Option<Reservation>, DocumentError> {
    let bytes = read_bytes(section, "reserve_memory")?;
    let percent = match section.node("lend_percent") {
        Some(_) => Some(section.number("lend_percent", 0.0, 0.0..=100.0)?),
        None => None,
    };
    match (bytes, percent) {
        (None, Some(_)) => {
            Err(section.error("lend_percent", "nothing is reserved: give `reserve_memory`"))
        }
        (None, None) => Ok(None),
        (Some(bytes), percent) => Ok(Some(Reservation {
            bytes,
            lend_per_mille: percent.map(|percent| (percent * 10.0).round() as u32),
        })),
    }
}

/// Reads `[memory]`.
pub(super) fn read(node: Option<&Node>) -> Result<Option<Memory>, DocumentError> {
    let Some(node) = node else { return Ok(None) };
    let mut section = Section::new(node, "memory")?;
    let swap = read_bytes(&mut section, "swap")?;
    let missing = || section.error("", "`swap` is missing: give a length, as in \"1G\"");
    let swap_mib = swap.ok_or_else(missing)? / MIB;
    if !(SWAP_STEP_MIB..=MOST_SWAP_MIB).contains(&swap_mib) {
        return Err(section.error("swap", "give 2M to 16G, as in \"1G\""));
    }
    let memory = Memory {
        swap_mib: swap_mib.next_multiple_of(SWAP_STEP_MIB) as u32,
        page_ms: section.number("page_ms", 4.0, 1.0..=1000.0)? as u32,
    };
    section.finish()?;
    Ok(Some(memory))
}

/// A length of memory, if it is given: a text such as `60M`, or a number of MiB, as a family computes it.
pub(super) fn read_bytes(
    section: &mut Section<'_>,
    key: &'static str,
) -> Result<Option<u64>, DocumentError> {
    let bytes = match section.node(key).map(|node| &node.value) {
        None => return Ok(None),
        Some(Value::Text(text)) => bytes(text),
        Some(Value::Integer(_) | Value::Number(_)) => {
            let mib = section.number(key, 0.0, 0.0..=MOST_SWAP_MIB as f64)?;
            Some((mib * MIB as f64) as u64)
        }
        Some(_) => None,
    };
    let wrong = || section.error(key, "give a length of memory, as in \"60M\": K, M or G");
    bytes.ok_or_else(wrong).map(Some)
}

/// `60M` and the like; powers of 1024, as the kernel's own files take them.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let units = [("K", KIB), ("M", MIB), ("G", KIB * MIB)];
    let (digits, unit) = units
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::{ClassMemory, Memory, bytes};
    use crate::{Kind, Scenario, Workload};

    fn read(top: &str, film: &str) -> Result<Workload, String> {
        let text = format!(
            "title = 'x'\nduration_s = 1\n{top}\n\
             [programs.film]\nclass = '/'\nkind = 'memory-player'\nanonymous = '60M'\n{film}\n\
             [programs.hog]\nclass = '/'\nkind = 'memory-hog'\nsize = '40M'\n"
        );
        let scenario = Scenario::parse("x.toml", &text, &[]).map_err(|error| error.to_string());
        scenario.map(|mut scenario| scenario.cases.remove(0).workload)
    }

    #[test]
    fn lengths_are_those_of_the_kernel() {
        assert_eq!(bytes("60M"), Some(60 << 20));
        assert_eq!(bytes("1G"), Some(1 << 30));
        for wrong in ["60", "60MB", "-1M", "M", "99999999999999G"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_machine_with_little_memory_is_read() {
        let workload = read(
            "[memory]\nswap = '1G'\n[classes]\n'/film' = { memory_min = '100M' }",
            "library = '15M'\nlock = true",
        )
        .unwrap();
        let memory = Memory {
            swap_mib: 1024,
            page_ms: 4,
        };
        assert_eq!(workload.memory, Some(memory));
        let min = ClassMemory {
            min: Some(100 << 20),
            ..ClassMemory::default()
        };
        assert_eq!(workload.classes[0].memory, min);
        let film = &workload.programs[0];
        assert!(film.lock && film.needs_system() && film.kind.is_only_on_kernel());
        assert_eq!(film.kind.library_bytes(), Some(15 << 20));
        assert_eq!(
            workload.programs[1].kind,
            Kind::MemoryHog { bytes: 40 << 20 }
        );
        assert!(workload.needs_memory_controller());
        let plain = read("", "").unwrap();
        assert!(plain.memory.is_none() && !plain.needs_memory_controller());
        assert!(!plain.programs[0].needs_system(), "it maps no file");
    }

    #[test]
    fn a_film_has_a_user_who_pauses_it_and_goes_elsewhere() {
        let film = |keys: &str| {
            let text = format!(
                "title = 'x'\nduration_s = 1\n[programs.film]\nclass = '/'\nkind = 'mpv'\n{keys}\n"
            );
            let scenario = Scenario::parse("x.toml", &text, &[]);
            let scenario = scenario.map_err(|error| error.to_string())?;
            Ok(scenario.cases[0].workload.programs[0].kind.clone())
        };
        let keys = "pause_at_s = 3\npause_for_s = 6\nseek_at_s = 10\nseek_to_s = 1.5";
        let Ok(Kind::Mpv { pause, seek, .. }) = film(keys) else {
            panic!("it is a film")
        };
        assert_eq!(
            pause.map(|pause| (pause.at_s, pause.for_s)),
            Some((3.0, 6.0))
        );
        assert_eq!(seek.map(|seek| (seek.at_s, seek.to_s)), Some((10.0, 1.5)));
        let refused = |keys: &str, why: &str| {
            let error: String = film(keys).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused("pause_at_s = 3", "`pause_for_s` is missing");
        refused("pause_for_s = 3", "`pause_at_s` is missing");
        refused("seek_to_s = 3", "`seek_at_s` is missing");
        refused(
            "untimed = true\nseek_at_s = 1\nseek_to_s = 2",
            "has no user who pauses",
        );
        refused("lock = true", "a real program locks its memory itself");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |top: &str, film: &str, why: &str| {
            let error = read(top, film).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused("[memory]\npage_ms = 4", "", "`swap` is missing");
        refused("[memory]\nswap = '1GB'", "", "K, M or G");
        refused("[memory]\nswap = '64G'", "", "2M to 16G");
        refused("[memory]\nswap = '1G'\npage_ms = 0", "", "out of range");
        refused("[classes]\n'/x' = { memory_min = true }", "", "K, M or G");
        refused("", "library = '0M'", "4K");
    }
}
