//! Replacement of a folder by another.

use std::{
    ffi::CString,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// Callback that rejects a folder that must not be replaced.
pub(crate) type Check<'a> = &'a dyn Fn(&Path) -> io::Result<()>;

/// Exchanges the folders `new` and `target`. If `check` rejects the old contents of `target`, the exchange is undone.
///
/// Atomic if the file system supports `RENAME_EXCHANGE`. Otherwise `target` does not exist for a moment, during which the old
/// folder is at `aside`.
pub(crate) fn replace(new: &Path, target: &Path, aside: &Path, check: Check<'_>) -> io::Result<()> {
    match exchange(new, target) {
        Ok(()) => check(new).inspect_err(|_| {
            // Another process added a file after the caller's check: restore the folder.
            let _ = exchange(new, target);
        }),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::ENOTSUP)) => {
            replace_in_steps(new, target, aside, check)
        }
        Err(error) => Err(error),
    }
}

fn replace_in_steps(new: &Path, target: &Path, aside: &Path, check: Check<'_>) -> io::Result<()> {
    fs::rename(target, aside)?;
    let outcome = check(aside).and_then(|()| fs::rename(new, target));
    if outcome.is_err() {
        fs::rename(aside, target)?;
        return outcome;
    }
    fs::rename(aside, new)
}

fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
    let (a, b) = (text(a)?, text(b)?);
    // SAFETY: both strings outlive the call.
    let code = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            a.as_ptr(),
            libc::AT_FDCWD,
            b.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the path to which the old folder is moved if the file system does not support `RENAME_EXCHANGE`.
pub(crate) fn aside(target: &Path) -> PathBuf {
    target.with_file_name(crate::temporary::name_of(target.file_name().unwrap_or_default(), 0, crate::temporary::OLD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    fn folders() -> (Scratch, [PathBuf; 3]) {
        let scratch = Scratch::new("divi-rename").unwrap();
        let [new, target, aside] = ["new", "target", "aside"].map(|name| scratch.path().join(name));
        for folder in [&new, &target] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("name"), folder.file_name().unwrap().as_bytes()).unwrap();
        }
        (scratch, [new, target, aside])
    }

    #[test]
    fn both_methods_exchange_folders() {
        for method in [replace, replace_in_steps] {
            let (_scratch, [new, target, aside]) = folders();
            method(&new, &target, &aside, &|_| Ok(())).unwrap();
            assert_eq!(fs::read(target.join("name")).unwrap(), b"new");
            assert_eq!(fs::read(new.join("name")).unwrap(), b"target");
            assert!(!aside.exists());
        }
    }

    #[test]
    fn a_rejected_replacement_is_undone() {
        for method in [replace, replace_in_steps] {
            let (_scratch, [new, target, aside]) = folders();
            method(&new, &target, &aside, &|_| Err(io::Error::other("no"))).unwrap_err();
            assert_eq!(fs::read(target.join("name")).unwrap(), b"target");
            assert!(!aside.exists());
        }
    }
}
