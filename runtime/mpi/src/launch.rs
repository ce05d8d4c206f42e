//! Detection of launchers by their environment.

use crate::Error;
use std::{env, path::PathBuf};

/// Environment variable with the path of a binding.
pub(crate) const VARIABLE: &str = "DIVI_MPI_BINDING";

/// Implementation of MPI that a binding is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// Open MPI.
    OpenMpi,
    /// MPICH and implementations with its ABI.
    Mpich,
}

impl Implementation {
    /// Returns the file name of the binding.
    pub fn file(self) -> &'static str {
        match self {
            Self::OpenMpi => "libdivimpi-openmpi.so",
            Self::Mpich => "libdivimpi-mpich.so",
        }
    }
}

/// Launcher that has started this process as a rank of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    launcher: &'static str,
    /// Implementations that the launcher can start, the most probable one first.
    implementations: &'static [Implementation],
}

use Implementation::{Mpich, OpenMpi};

/// Launchers, in the order of detection: that of Open MPI sets `PMIX_RANK`, too. By launcher: the variable that it sets, the
/// variable with the number of ranks, and the implementations that it can start.
const LAUNCHERS: &[(&str, &str, Launch)] = &[
    (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        Launch { launcher: "Open MPI's mpirun", implementations: &[OpenMpi] },
    ),
    (
        "PMI_RANK",
        "PMI_SIZE",
        Launch { launcher: "a launcher with PMI (MPICH's mpirun)", implementations: &[Mpich, OpenMpi] },
    ),
    (
        "PMIX_RANK",
        "SLURM_STEP_NUM_TASKS",
        Launch { launcher: "a launcher with PMIx", implementations: &[OpenMpi, Mpich] },
    ),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", Launch { launcher: "Slurm's srun", implementations: &[OpenMpi, Mpich] }),
];

impl Launch {
    /// Detects the launcher of this process. Returns `None` without one, and for a job with one rank.
    pub fn detect() -> Option<Self> {
        Self::detect_in(|name| env::var(name).ok())
    }

    fn detect_in(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let (_, size, launch) = LAUNCHERS.iter().find(|(rank, size, launch)| {
            // A batch script of Slurm has the number of a rank, too, but is no step of the job.
            variable(rank).is_some() && (launch.launcher != "Slurm's srun" || variable(size).is_some())
        })?;
        (variable(size).as_deref() != Some("1")).then_some(*launch)
    }

    /// Returns the launcher's name.
    pub(crate) fn launcher(&self) -> &'static str {
        self.launcher
    }

    /// Returns the binding: the file named by the user, or the first that exists beside the program or in `../lib`.
    pub(crate) fn binding(&self) -> Result<PathBuf, Error> {
        if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            return Ok(path.into());
        }
        let program = env::current_exe().ok().and_then(|path| path.parent().map(PathBuf::from)).unwrap_or_default();
        let folders = [program.clone(), program.join("../lib")];
        let files = self.implementations.iter().flat_map(|it| folders.iter().map(|folder| folder.join(it.file())));
        let searched: Vec<PathBuf> = files.collect();
        match searched.iter().find(|file| file.is_file()) {
            Some(file) => Ok(file.clone()),
            None => Err(Error::NoBinding { launcher: self.launcher, searched }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(variables: &[(&str, &str)]) -> Option<&'static str> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Launch::detect_in(variable).map(|launch| launch.launcher)
    }

    #[test]
    fn launchers_are_detected_by_their_variables() {
        assert_eq!(detect(&[]), None);
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "0"), ("PMIX_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")];
        assert_eq!(detect(&open_mpi), Some("Open MPI's mpirun"));
        assert_eq!(detect(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]), Some("a launcher with PMI (MPICH's mpirun)"));
        assert_eq!(detect(&[("PMIX_RANK", "1")]), Some("a launcher with PMIx"));
        assert_eq!(detect(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "2")]), Some("Slurm's srun"));
    }

    #[test]
    fn jobs_with_one_rank_need_no_binding() {
        assert_eq!(detect(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")]), None);
        assert_eq!(detect(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None);
        // A batch script.
        assert_eq!(detect(&[("SLURM_PROCID", "0")]), None);
    }
}
