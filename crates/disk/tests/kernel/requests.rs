//! Requests of every kind, over a disk and over files.

use std::path::Path;

use andante_disk::{Attached, DiskError, What, detach, found};

use crate::disks::{Direct, Drawn, PAGE, attached, file_of, run, tmpfs};
use crate::guest::is_inside;

/// What the disk should have.
struct Model {
    bytes: Vec<u8>,
    drawn: Drawn,
}

impl Model {
    fn of(disk: &Direct, len: usize) -> Self {
        Self {
            bytes: disk.read(0, len).to_vec(),
            drawn: Drawn(7),
        }
    }

    /// A place of up to a megabyte and a half, so that some are two requests.
    fn place(&mut self) -> (usize, usize) {
        let pages = (self.bytes.len() / PAGE) as u64;
        let length = 1 + self.drawn.below(384.min(pages - 1));
        let first = self.drawn.below(pages - length);
        (first as usize * PAGE, length as usize * PAGE)
    }

    fn write(&mut self, disk: &Direct) {
        let (at, len) = self.place();
        let seed = self.drawn.below(u64::MAX >> 33);
        let bytes: Vec<u8> = (0..len).map(|i| (i as u64 * 31 + seed) as u8).collect();
        disk.write(at as u64, &bytes).expect("is written");
        self.bytes[at..at + len].copy_from_slice(&bytes);
    }

    fn zero(&mut self, disk: &Direct, discards: bool) {
        let (at, len) = self.place();
        let (offset, bytes) = (at as u64, len as u64);
        let done = match discards {
            true => disk.discard(offset, bytes),
            false => disk.zero(offset, bytes),
        };
        done.expect("is zeroed");
        self.bytes[at..at + len].fill(0);
    }

    fn check(&mut self, disk: &Direct) {
        let (at, len) = self.place();
        assert!(*disk.read(at as u64, len) == self.bytes[at..at + len]);
    }
}

/// Everything that can be asked of a disk. Where it discards, zeroes are read then, as is so in memory.
fn everything(attached: &Attached, backing: &Path, discards: bool) {
    let before = |what| attached.counts().of(what);
    let flushes = before(What::Flush).requests;
    let path = attached.path();
    let (plain, safe) = (Direct::open(&path, 0), Direct::open(&path, libc::O_DSYNC));
    let len = size_of(&plain);
    let mut model = Model::of(&plain, len);
    for turn in 0..120 {
        match turn % 6 {
            0 | 1 => model.write(&plain),
            2 => model.write(&safe),
            3 => model.zero(&plain, false),
            4 if discards => model.zero(&plain, true),
            _ => model.check(&plain),
        }
    }
    plain.0.sync_all().expect("flushes");
    assert!(*plain.read(0, len) == model.bytes[..]);
    drop((plain, safe));
    let counts = What::ALL.map(|what| (what.name(), before(what)));
    println!("{}: {counts:?}", backing.display());
    assert!(before(What::Flush).requests > flushes);
    assert!(before(What::Write).bytes >= 1 << 20);
    assert_eq!(before(What::Discard).requests > 0, discards);
    assert_eq!(attached.counts().errors(), 0);
    // And the backing has it.
    let below = std::fs::read(backing).unwrap();
    assert!(below == model.bytes, "the backing has something else");
}

fn size_of(disk: &Direct) -> usize {
    use std::io::{Seek, SeekFrom};
    (&disk.0).seek(SeekFrom::End(0)).unwrap() as usize
}

#[test]
#[ignore = "needs the virtual machine"]
fn a_disk_and_files_are_read_written_flushed_and_forgotten() {
    if !is_inside("requests::a_disk_and_files_are_read_written_flushed_and_forgotten") {
        return;
    }
    let folder = tmpfs("/tmp/memory");
    let file = folder.join("disk");
    file_of(&file, 16 << 20);
    run("mkfs.ext4", &["-q", "/dev/ram1"]);
    std::fs::create_dir_all("/tmp/ext4").unwrap();
    run(
        "busybox",
        &["mount", "-t", "ext4", "/dev/ram1", "/tmp/ext4"],
    );
    let on_ext4 = Path::new("/tmp/ext4/disk").to_owned();
    file_of(&on_ext4, 8 << 20);
    for (backing, discards) in [
        (Path::new("/dev/ram0"), true),
        (&file, true),
        (&on_ext4, true),
    ] {
        let mut attached = attached(backing).unwrap();
        assert!(!attached.recovered());
        everything(&attached, backing, discards);
        let all = found().unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].device, attached.path());
        assert_eq!(all[0].server, Some(std::process::id() as i32));
        assert_eq!(all[0].note, None, "nobody has written one");
        // Neither again, nor away while it is open.
        let again = crate::disks::attached(backing).err();
        assert!(
            matches!(again, Some(DiskError::Attached { .. })),
            "{again:?}"
        );
        let held = Direct::open(attached.path(), 0);
        let refused = attached.stop();
        assert!(
            matches!(refused, Err(DiskError::InUse { .. })),
            "{refused:?}"
        );
        drop(held);
        attached.stop().unwrap();
        attached.end().unwrap();
        assert!(found().unwrap().is_empty());
    }
    let gone = detach(Path::new("/dev/ublkb0"), false);
    assert!(matches!(gone, Err(DiskError::NotAttached(_))), "{gone:?}");
}
