//! Where the file lies. On a network file system SQLite's locks do not hold between machines, nor does its shared
//! memory: two owners of one record would be possible.

use std::path::Path;

/// The name of the network file system that `file` lies or would lie on, if it does.
#[cfg(target_os = "linux")]
pub(super) fn network(file: &Path) -> Option<&'static str> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // A path that cannot be looked at cannot be opened either; opening it says why.
    let found = rustix::fs::statfs(file).or_else(|_| rustix::fs::statfs(folder)).ok()?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the numbers have 32 bits everywhere")]
    network_name(found.f_type as u32)
}

/// Other systems have no portable way to ask.
#[cfg(not(target_os = "linux"))]
pub(super) fn network(_: &Path) -> Option<&'static str> {
    None
}

/// By the number that `statfs(2)` reports. FUSE is not among them: it is a local disk as often as not.
#[cfg(target_os = "linux")]
fn network_name(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0x517B | 0xFE53_4D42 => "SMB",
        0xFF53_4D42 => "CIFS",
        0x0102_1997 => "9P",
        0x00C3_6400 => "Ceph",
        0x5346_414F | 0x6B41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0BD0_0BD0 => "Lustre",
        0x0116_1970 => "GFS2",
        0x7461_636F => "OCFS2",
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_and_local_ones_pass() {
        for (magic, name) in [(0x6969, "NFS"), (0xFF53_4D42, "CIFS"), (0xFE53_4D42, "SMB"), (0x0102_1997, "9P")] {
            assert_eq!(network_name(magic), Some(name));
        }
        const LOCAL: [u32; 6] = [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630, 0x6573_5546];
        for magic in LOCAL {
            assert_eq!(network_name(magic), None, "{magic:x}: ext, xfs, btrfs, tmpfs, overlayfs, FUSE");
        }
        assert_eq!(network(Path::new("not-there-yet.db")), None, "the folder answers for a file that is not there");
    }
}
