//! The probe on small hand-made BTF, and on the running kernel's where there is one.

use super::*;

/// Writes BTF: types in order, ids from 1 on; see the kernel's Documentation/bpf/btf.rst.
#[derive(Default)]
struct Writer {
    types: Vec<u8>,
    strings: Vec<u8>,
    last_id: u32,
}

const PTR: u32 = 2;
const STRUCT: u32 = 4;
const CONST: u32 = 10;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const DECL_TAG: u32 = 17;

impl Writer {
    fn string(&mut self, text: &str) -> u32 {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        let offset = self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        offset
    }

    fn add(&mut self, name: &str, kind: u32, vlen: u32, size_or_type: u32, extra: &[u32]) -> u32 {
        let name = if name.is_empty() {
            0
        } else {
            self.string(name)
        };
        for word in [name, kind << 24 | vlen, size_or_type].iter().chain(extra) {
            self.types.extend_from_slice(&word.to_le_bytes());
        }
        self.last_id += 1;
        self.last_id
    }

    /// A function with one parameter of the given type (0: none).
    fn function(&mut self, name: &str, parameter: u32, tagged: bool) {
        let aux = self.string("aux");
        let prototype = match parameter {
            0 => self.add("", FUNC_PROTO, 0, 0, &[]),
            parameter => self.add("", FUNC_PROTO, 1, 0, &[aux, parameter]),
        };
        let function = self.add(name, FUNC, 0, prototype, &[]);
        if tagged {
            self.add("bpf_kfunc", DECL_TAG, 0, function, &[u32::MAX]);
        }
    }

    fn finish(self) -> Vec<u8> {
        let mut btf = vec![0x9f, 0xeb, 1, 0];
        let lengths = (self.types.len() as u32, self.strings.len() as u32);
        for word in [24, 0, lengths.0, lengths.0, lengths.1] {
            btf.extend_from_slice(&u32::to_le_bytes(word));
        }
        btf.extend(self.types);
        btf.extend(self.strings);
        btf
    }
}

/// A kernel with sched_ext (or not), a good `scx_bpf_now` and, as `function` says, `scx_bpf_kick_cpu`.
fn kernel(sched_ext: bool, function: impl FnOnce(&mut Writer, u32)) -> Vec<u8> {
    let mut writer = Writer::default();
    if sched_ext {
        writer.add("sched_ext_ops", STRUCT, 0, 0, &[]);
    }
    let aux = writer.add("bpf_prog_aux", STRUCT, 0, 0, &[]);
    let aux = writer.add("", CONST, 0, aux, &[]);
    let aux = writer.add("", PTR, 0, aux, &[]);
    writer.function("scx_bpf_now", 0, true);
    function(&mut writer, aux);
    writer.finish()
}

/// The verdict on the bytes; that on a file of them must be the same.
fn probed(btf: &[u8], kfuncs: &[&str]) -> Result<BtfVerdict, BtfError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, btf).unwrap();
    let (verdict, of_file) = (probe(btf, kfuncs), probe_file(file.path(), kfuncs));
    assert_eq!(verdict.as_ref().ok(), of_file.as_ref().ok());
    verdict
}

const ASKED: &[&str] = &["scx_bpf_now", "scx_bpf_kick_cpu"];

#[test]
fn a_tagged_function_with_its_twin_is_usable() {
    let btf = kernel(true, |writer, aux| {
        writer.function("scx_bpf_kick_cpu", 0, true);
        writer.function("scx_bpf_kick_cpu_impl", aux, false);
    });
    let verdict = probed(&btf, ASKED).unwrap();
    assert!(verdict.usable, "{verdict:?}");
    assert_eq!(verdict.reason(), None);
}

#[test]
fn a_lost_tag_is_recognised_even_on_a_function_not_asked_for() {
    let btf = kernel(true, |writer, aux| {
        writer.function("scx_bpf_kick_cpu", aux, false);
    });
    let verdict = probed(&btf, ASKED).unwrap();
    assert!(!verdict.usable);
    assert_eq!(verdict.missing, ["scx_bpf_kick_cpu"]);
    assert_eq!(verdict.broken, ["scx_bpf_kick_cpu"]);
    assert!(!probed(&btf, &["scx_bpf_now"]).unwrap().usable);
}

#[test]
fn an_absent_function_is_named() {
    let verdict = probed(&kernel(true, |_, _| {}), ASKED).unwrap();
    assert_eq!(verdict.reason().unwrap(), "it lacks scx_bpf_kick_cpu");
    assert!(verdict.broken.is_empty());
}

#[test]
fn a_kernel_without_sched_ext_is_not_usable() {
    let verdict = probed(&kernel(false, |_, _| {}), &[]).unwrap();
    assert!(!verdict.usable && !verdict.has_sched_ext);
}

#[test]
fn damaged_btf_is_an_error() {
    assert!(probed(b"not BTF", &[]).is_err());
}

#[test]
fn the_running_kernel_can_be_probed() {
    // Not every machine has it, and what it says is not ours to decide; it must only be readable.
    let file = Path::new("/sys/kernel/btf/vmlinux");
    if let Ok(btf) = std::fs::read(file) {
        let read = probe(&btf, ESSENTIAL_KFUNCS).unwrap();
        assert_eq!(read, probe_file(file, ESSENTIAL_KFUNCS).unwrap());
    }
}
