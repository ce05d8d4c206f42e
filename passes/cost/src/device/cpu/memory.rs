//! Detection of the memory that this process may use.

use crate::{device::detect::text, system::units::Bytes};
use std::path::Path;

/// Returns the machine's memory, or the limit of a cgroup if that is less.
pub(super) fn of_this_machine() -> Option<Bytes> {
    let total = total(&text("/proc/meminfo")?)?;
    let groups = text("/proc/self/cgroup").unwrap_or_default();
    Some(Bytes(limits(&groups).fold(total, u64::min)))
}

/// Returns `MemTotal` of `/proc/meminfo`, which is in KiB, in bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024).filter(|bytes| *bytes > 0)
}

/// Returns the memory limits of the cgroups (v1 or v2) of this process. In a container a cgroup's directory may be mounted as
/// the root, which is therefore included.
fn limits(groups: &str) -> impl Iterator<Item = u64> {
    let folders = groups.lines().flat_map(folders);
    folders.filter_map(|(file, folder)| limit(&text(Path::new(&folder).join(file))?))
}

/// Returns the directories whose cgroups limit memory, for a line of `/proc/self/cgroup`, with the name of the limit's file.
fn folders(line: &str) -> Vec<(&'static str, String)> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (file, root) = match controllers {
        "" => ("memory.max", "/sys/fs/cgroup"),
        _ if controllers.split(',').any(|controller| controller == "memory") => {
            ("memory.limit_in_bytes", "/sys/fs/cgroup/memory")
        }
        _ => return Vec::new(),
    };
    // Limits of ancestors apply too.
    Path::new(path).ancestors().map(|path| (file, format!("{root}{}", path.display()))).collect()
}

/// Parses a limit. `max` means none; version 1 uses a number larger than any memory.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read() {
        assert_eq!(total("MemTotal:       24682740 kB\nMemFree: 1 kB\n"), Some(24682740 * 1024));
        for garbled in ["", "MemTotal: kB", "MemTotal: 0 kB", "MemTotal: 18446744073709551615 kB", "MemTotal: 5 MB"] {
            assert_eq!(total(garbled), None, "{garbled}");
        }
    }

    #[test]
    fn cgroups_and_ancestors_limit_memory() {
        let unified: Vec<_> =
            ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"].map(|f| ("memory.max", f.to_owned())).into();
        assert_eq!(folders("0::/a/b"), unified);
        assert_eq!(folders("4:memory:/x")[0], ("memory.limit_in_bytes", "/sys/fs/cgroup/memory/x".to_owned()));
        assert_eq!(folders("7:cpu,cpuacct:/x"), []);
        assert_eq!(folders("nonsense"), []);
        assert_eq!((limit("max\n"), limit("1048576\n"), limit("0"), limit("-1")), (None, Some(1 << 20), None, None));
    }
}
