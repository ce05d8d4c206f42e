//! Temporary files of interrupted and killed processes. The test binary runs itself as the child process.
#![cfg(test)]

use divi_files::{Draft, Scratch, clean_up_on_signals};
use std::{
    env, fs,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// Number of times that each signal is sent.
const REPETITIONS: usize = 50;

const FOLDER: &str = "DIVI_FILES_FOLDER";

/// Child process: holds two drafts until a signal arrives. Does nothing if the variable is not set.
#[test]
fn process_with_drafts() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else { return };
    clean_up_on_signals().unwrap();
    let bundle = Draft::folder(&folder.join("bundle"), |_| Ok(())).unwrap();
    fs::write(bundle.path().join("code"), "x").unwrap();
    let _file = Draft::file(&folder.join("report")).unwrap();
    fs::write(folder.join("ready"), "").unwrap();
    thread::sleep(Duration::from_secs(60));
}

/// Starts the child process, sends it a signal when it is ready, and returns the names left in its folder.
fn interrupted_by(signal: i32, folder: &Path) -> Vec<String> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "process_with_drafts"]).env(FOLDER, folder).stdout(Stdio::null()).stderr(Stdio::null());
    // A test that runs in the background may have inherited ignored signals, which would stay ignored.
    let reset = move || {
        // SAFETY: restores the default action; installs no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: `signal` is async-signal-safe, so it may be called between fork and exec.
    unsafe { command.pre_exec(reset) };
    let mut child = command.spawn().unwrap();
    while !folder.join("ready").exists() {
        thread::sleep(Duration::from_millis(2));
    }
    // SAFETY: the process is a child that has not been waited for, so its id is not reused.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
    assert_eq!(child.wait().unwrap().signal(), Some(signal));
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn signals_remove_temporary_files_and_terminate_the_process() {
    let signals = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGPIPE];
    // The kernel chooses the thread that receives a signal.
    for signal in signals.into_iter().cycle().take(REPETITIONS * signals.len()) {
        let scratch = Scratch::new("divi-files-signals").unwrap();
        assert_eq!(interrupted_by(signal, scratch.path()), ["ready"]);
    }
}

#[test]
fn the_next_run_removes_leftovers_of_a_killed_process() {
    let scratch = Scratch::new("divi-files-signals").unwrap();
    let left = interrupted_by(libc::SIGKILL, scratch.path());
    assert_eq!(left.len(), 3, "{left:?}");
    drop(Draft::folder(&scratch.path().join("bundle"), |_| Ok(())).unwrap());
    divi_files::write(&scratch.path().join("report"), "x").unwrap();
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
}
