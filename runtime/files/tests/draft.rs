//! Drafts: replacement, rejection and cleanup.
#![cfg(test)]

use divi_files::{Draft, Inputs, Scratch, check_distinct, check_listed, write};
use std::{
    fs, io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

fn scratch() -> (Scratch, PathBuf) {
    let scratch = Scratch::new("divi-files-tests").unwrap();
    let path = scratch.path().canonicalize().unwrap();
    (scratch, path)
}

/// Writes a folder with the file `new`, replacing a folder that contains nothing but `old` or `new`.
fn write_folder(target: &Path) -> io::Result<()> {
    let draft = Draft::folder(target, |folder| check_listed(folder, ["old", "new"]))?;
    fs::write(draft.path().join("new"), "new")?;
    draft.commit()
}

/// Returns the sorted names in a folder, including hidden ones.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

/// Returns the id of a process that has exited.
fn dead_process() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn folders_are_created_and_replaced() {
    let (_scratch, root) = scratch();
    for target in ["out", "out/", "deep/er/out", "out/."] {
        write_folder(&root.join(target)).unwrap();
    }
    fs::write(root.join("out/old"), "old").unwrap();
    write_folder(&root.join("out")).unwrap();
    assert_eq!(names(&root.join("out")), ["new"]);
    assert_eq!(names(&root), ["deep", "out"]);
}

#[test]
fn foreign_files_are_kept_and_named() {
    let (_scratch, root) = scratch();
    let target = root.join("out");
    fs::create_dir_all(target.join("notes")).unwrap();
    fs::write(target.join("old"), "old").unwrap();
    let error = write_folder(&target).unwrap_err().to_string();
    assert_eq!(error, "'notes' is in it, which divi did not write: move it, or choose another folder");
    assert_eq!(names(&target), ["notes", "old"]);
    assert_eq!(names(&root), ["out"]);
}

#[test]
fn files_added_before_the_commit_are_kept() {
    let (_scratch, root) = scratch();
    let target = root.join("out");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("old"), "old").unwrap();
    let draft = Draft::folder(&target, |folder| check_listed(folder, ["old"])).unwrap();
    fs::write(target.join("thesis"), "mine").unwrap();
    assert!(draft.commit().unwrap_err().to_string().contains("'thesis' is in it"));
    assert_eq!(names(&target), ["old", "thesis"]);
    assert_eq!(names(&root), ["out"]);
}

#[test]
fn targets_that_cannot_be_replaced_are_rejected() {
    let (_scratch, root) = scratch();
    fs::write(root.join("file"), "x").unwrap();
    let refused = |target: &Path| write_folder(target).unwrap_err().to_string();
    assert_eq!(refused(&root.join("file")), "it is a file: name a folder");
    assert!(refused(Path::new(".")).starts_with("it is the working directory or contains it"));
    assert!(refused(Path::new("/")).starts_with("it is the working directory or contains it"));
    assert!(refused(&root.join("file/out")).contains("ot a directory"));
    let refused = |target: &Path| write(target, "x").unwrap_err().to_string();
    assert_eq!(refused(&root), "it is a folder: name a file");
    assert_eq!(refused(&root.join("new/")), "it is not the name of a file");
    assert!(refused(&root.join("none/file")).contains("No such file"));
    assert_eq!(names(&root), ["file"]);
}

#[test]
fn read_only_folders_are_errors() {
    let (_scratch, root) = scratch();
    let parent = root.join("parent");
    fs::create_dir(&parent).unwrap();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o555)).unwrap();
    // Permissions do not apply to the superuser.
    if fs::write(parent.join("probe"), "").is_err() {
        assert!(write_folder(&parent.join("out")).unwrap_err().to_string().contains("ermission denied"));
        assert!(write(&parent.join("out"), "x").unwrap_err().to_string().contains("ermission denied"));
    }
    fs::write(root.join("old"), "").unwrap();
    assert!(write_folder(&parent).unwrap_err().to_string().starts_with("it is read-only"));
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn links_are_kept_and_their_targets_replaced() {
    let (_scratch, root) = scratch();
    fs::create_dir(root.join("real")).unwrap();
    fs::write(root.join("real/old"), "old").unwrap();
    symlink("real", root.join("link")).unwrap();
    write_folder(&root.join("link")).unwrap();
    write_folder(&root.join("link/")).unwrap();
    assert!(fs::symlink_metadata(root.join("link")).unwrap().is_symlink());
    assert_eq!(names(&root.join("real")), ["new"]);
    fs::write(root.join("file"), "old").unwrap();
    fs::set_permissions(root.join("file"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("file", root.join("to_file")).unwrap();
    symlink("absent", root.join("to_absent")).unwrap();
    write(&root.join("to_file"), "new").unwrap();
    write(&root.join("to_absent"), "new").unwrap();
    assert_eq!(fs::read(root.join("file")).unwrap(), b"new");
    assert_eq!(fs::metadata(root.join("file")).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read(root.join("absent")).unwrap(), b"new");
    symlink("b", root.join("a")).unwrap();
    symlink("a", root.join("b")).unwrap();
    write(&root.join("a"), "x").unwrap_err();
}

#[test]
fn devices_are_written_directly() {
    write(Path::new("/dev/null"), "x").unwrap();
    write(Path::new("/dev/stderr"), "").unwrap();
    assert!(Path::new("/dev/null").exists());
}

#[test]
fn leftovers_of_dead_processes_are_removed() {
    let (_scratch, root) = scratch();
    let (dead, alive) = (dead_process(), std::os::unix::process::parent_id());
    fs::create_dir(root.join(format!(".out.{dead}.tmp"))).unwrap();
    fs::write(root.join(format!(".out.{dead}.tmp/large")), "x").unwrap();
    fs::create_dir(root.join(format!(".out.{dead}-1.tmp"))).unwrap();
    // Temporary names of a live process, of another target, and of other programs.
    let others =
        [format!(".out.{alive}.tmp"), format!(".other.{dead}.tmp"), ".out.x.tmp".into(), format!(".out.{dead}.bak")];
    others.iter().for_each(|name| fs::create_dir(root.join(name)).unwrap());
    write_folder(&root.join("out")).unwrap();
    let mut expected: Vec<_> = others.iter().cloned().chain(["out".to_owned()]).collect();
    expected.sort();
    assert_eq!(names(&root), expected);
}

#[test]
fn a_folder_that_was_moved_aside_is_restored() {
    let (_scratch, root) = scratch();
    let old = root.join(format!(".out.{}.old", dead_process()));
    fs::create_dir(&old).unwrap();
    fs::write(old.join("thesis"), "mine").unwrap();
    assert!(write_folder(&root.join("out")).unwrap_err().to_string().contains("'thesis' is in it"));
    assert_eq!(names(&root.join("out")), ["thesis"]);
}

#[test]
fn dropped_drafts_leave_nothing() {
    let (_scratch, root) = scratch();
    let first = Draft::file(&root.join("out")).unwrap();
    let second = Draft::file(&root.join("out")).unwrap();
    assert_ne!(first.path(), second.path());
    drop((first, second, Draft::folder(&root.join("folder"), |_| Ok(())).unwrap()));
    assert_eq!(names(&root), [""; 0]);
    let long = "n".repeat(250);
    write(&root.join(&long), "x").unwrap();
    assert_eq!(names(&root), [long]);
}

#[test]
fn outputs_do_not_replace_inputs() {
    let (_scratch, root) = scratch();
    fs::create_dir(root.join("model")).unwrap();
    fs::write(root.join("model/weights"), "x").unwrap();
    fs::hard_link(root.join("model/weights"), root.join("hard")).unwrap();
    symlink("model/weights", root.join("soft")).unwrap();
    symlink("model", root.join("link")).unwrap();
    let mut inputs = Inputs::default();
    inputs.add("the weights", &root.join("model/weights"));
    inputs.add("the plan", &root.join("absent"));
    for same in ["model/weights", "hard", "soft", "link/weights", "model/../soft", "absent"] {
        assert!(inputs.check_file(&root.join(same)).unwrap_err().contains(" itself: "), "{same}");
    }
    inputs.check_file(&root.join("model/other")).unwrap();
    inputs.check_folder(&root.join("none")).unwrap();
    for folder in ["model", "link", "model/", ".", "model/."] {
        assert!(inputs.check_folder(&root.join(folder)).unwrap_err().contains("it contains the weights"), "{folder}");
    }
    inputs.add("the bundle", &root.join("model"));
    assert!(inputs.check_file(&root.join("link/trace")).unwrap_err().contains("it is in the bundle"));
    let (a, b) = (root.join("soft"), root.join("hard"));
    let error = check_distinct(&[("-o", &a), ("--report", &b)]).unwrap_err();
    assert!(error.starts_with("-o and --report both write"));
    check_distinct(&[("-o", Path::new("/dev/null")), ("--report", Path::new("/dev/null"))]).unwrap();
}
