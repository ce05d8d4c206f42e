//! Implementations of MPI for tests of ranks, shared by `divi-run` and `divi-profile`.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Output},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

/// Time limit of a job: a job that takes longer hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Installed implementation of MPI, with its binding.
pub(crate) struct Mpi {
    pub(crate) mpirun: PathBuf,
    pub(crate) options: &'static [&'static str],
    pub(crate) binding: PathBuf,
    /// Binding that sends messages of more than 600 bytes in parts.
    pub(crate) binding_of_parts: PathBuf,
    /// True for Open MPI with fault tolerance (ULFM).
    pub(crate) is_fault_tolerant: bool,
}

/// Returns the implementations that are installed: Open MPI from PyPI in the virtual environment of the tests, Open MPI and
/// MPICH as Debian's packages, and another one whose programs `DIVI_MPICC` and `DIVI_MPIRUN` name.
pub(crate) fn implementations() -> &'static [Mpi] {
    static ALL: OnceLock<Vec<Mpi>> = OnceLock::new();
    ALL.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let venv = root.join(".venv/bin");
        // More ranks than cores, and root in containers.
        const OPEN_MPI: &[&str] = &["--allow-run-as-root", "--oversubscribe"];
        let variable = |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_default());
        let candidates = [
            (venv.join("mpicc"), venv.join("mpirun"), OPEN_MPI),
            ("/usr/bin/mpicc.openmpi".into(), "/usr/bin/mpirun.openmpi".into(), OPEN_MPI),
            ("/usr/bin/mpicc.mpich".into(), "/usr/bin/mpirun.mpich".into(), &[][..]),
            (variable("DIVI_MPICC"), variable("DIVI_MPIRUN"), &[][..]),
        ];
        let mut found = vec![];
        for (index, (mpicc, mpirun, options)) in candidates.into_iter().enumerate() {
            if !mpicc.exists() || !mpirun.exists() {
                continue;
            }
            let build = |name: &str, flags: &str| {
                let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mpi-{index}-{name}"));
                let mut command = Command::new(root.join("tools/mpi-binding"));
                let built =
                    command.arg("--mpicc").arg(&mpicc).arg("-o").arg(&folder).env("CFLAGS", flags).output().unwrap();
                assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
                PathBuf::from(String::from_utf8(built.stdout).unwrap().trim())
            };
            let (binding, binding_of_parts) = (build("default", ""), build("parts", "-DPART=600"));
            found.push(Mpi { mpirun, options, binding, binding_of_parts, is_fault_tolerant: index == 0 });
        }
        if found.is_empty() {
            eprintln!("skipped: no implementation of MPI is installed (run tools/setup)");
        }
        found
    })
}

/// Waits for a job, for at most [`LIMIT`].
pub(crate) fn finish(mut job: Child) -> Output {
    let start = Instant::now();
    while job.try_wait().unwrap().is_none() {
        if start.elapsed() > LIMIT {
            let _ = job.kill();
            panic!("the job hangs: {:?}", job.wait_with_output());
        }
        thread::sleep(Duration::from_millis(5));
    }
    job.wait_with_output().unwrap()
}
