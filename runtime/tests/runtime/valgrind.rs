//! The tests again under valgrind: memory that is misused or lost.

use std::process::Command;

/// These compile, fork or only wait, or test what is not the runtime's own code.
const SKIPPED: &[&str] = &["valgrind", "files::", "refusals::", "mutants"];

fn run(tool: &[&str]) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("valgrind is not installed (tools/setup installs it): nothing is tested");
        return;
    }
    let mut command = Command::new("valgrind");
    command.args(tool).args(["--quiet", "--error-exitcode=9", "--fair-sched=yes"]);
    command.arg(std::env::current_exe().unwrap()).args(["--test-threads=1", "--quiet", "--nocapture"]);
    SKIPPED.iter().for_each(|skipped| {
        command.args(["--skip", skipped]);
    });
    let output = command.env("DIVI_REQUESTS", "100").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

#[test]
fn memory_is_used_well() {
    run(&["--tool=memcheck", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
}
