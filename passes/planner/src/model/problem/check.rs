//! Input constraints of a problem. All violations are reported, not only the first.

mod edge;
mod links;
mod memory;
mod nodes;

use super::{Domains, Problem};
use crate::model::error::{Error, Finding};
use crate::model::plan::{LaunchRule, Objective};
use crate::model::units::short_number;

/// Maximum number of queued inputs: a plan lists them all.
pub const MOST_INPUTS: u32 = 1 << 20;

impl Problem {
    /// Checks that the problem is well-formed and, as far as can be determined without solving, feasible: for its queued
    /// inputs if there are several, else for one.
    pub fn check(&self) -> Result<(), Error> {
        self.check_form()?;
        self.check_for(self.default_objective())
    }

    /// Returns the default objective: batch for a queue, latency for one input.
    pub fn default_objective(&self) -> Objective {
        if self.inputs > 1 { Objective::Batch } else { Objective::Latency }
    }

    /// Checks that the problem is well-formed, for any objective.
    pub fn check_form(&self) -> Result<(), Error> {
        let mut findings = Vec::new();
        self.check_sizes(&mut findings);
        self.check_devices(&mut findings);
        // The following checks use indices.
        fail(findings)?;
        let mut findings = Vec::new();
        self.check_nodes(&mut findings);
        self.check_edges(&mut findings);
        self.check_groups(&mut findings);
        self.check_machines(&mut findings);
        self.check_views(&mut findings);
        self.check_cold(&mut findings);
        self.check_edge_network(&mut findings);
        fail(findings)?;
        self.topological_order().map_err(|finding| Error::Problem(vec![finding]))?;
        Ok(())
    }

    /// Checks that the objective may have a plan: each task has a device that is linked to its neighbors' and has enough
    /// memory for it. The problem is well-formed. A queue has at most one launch of each task on a device.
    pub fn check_for(&self, objective: Objective) -> Result<(), Error> {
        self.check_under(objective, LaunchRule::One)
    }

    /// Checks the same under a rule for launches.
    pub fn check_under(&self, objective: Objective, launches: LaunchRule) -> Result<(), Error> {
        let most = match objective {
            Objective::Batch => self.inputs,
            Objective::Latency => 1,
            Objective::Pipeline => self.default_batch(),
        };
        self.check_up_to(objective, launches, most)
    }

    /// Checks the same for launches of at most `most` inputs.
    pub(crate) fn check_up_to(&self, objective: Objective, launches: LaunchRule, most: u32) -> Result<(), Error> {
        // Views have machines of their own.
        if objective == Objective::Pipeline && (self.mtpp.is_some() || self.edge.is_some()) {
            return Ok(());
        }
        if self.cold.is_some() {
            // Parameters that are read in the host's memory need no memory on the device.
            return self.relaxed().check_up_to(objective, launches, most);
        }
        let domains = Domains::up_to(self, objective, most);
        if let Some(finding) = domains.contradiction() {
            return Err(Error::Infeasible(vec![finding]));
        }
        let mut findings = Vec::new();
        self.check_batches(objective, launches, &domains, &mut findings);
        self.check_memory(objective, &domains, &mut findings);
        if findings.is_empty() { Ok(()) } else { Err(Error::Infeasible(findings)) }
    }

    fn check_sizes(&self, findings: &mut Vec<Finding>) {
        if self.devices.is_empty() {
            findings.push(Finding::new("devices", "is empty, so nothing can run"));
        }
        if let Some(host) = self.host.filter(|host| *host >= self.devices.len()) {
            let message = format!("is device {host}, but there are {}", self.devices.len());
            findings.push(Finding::new("host", message));
        }
        if self.inputs == 0 || self.inputs > MOST_INPUTS {
            findings
                .push(Finding::new("L", format!("{} queued inputs; at least 1, at most {MOST_INPUTS}", self.inputs)));
        }
        if self.edges.is_some() && self.tensors.is_some() {
            findings.push(Finding::new("tensors", "replaces edges, but both are there"));
        }
    }
}

fn fail(findings: Vec<Finding>) -> Result<(), Error> {
    if findings.is_empty() { Ok(()) } else { Err(Error::Problem(findings)) }
}

/// Maximum time or size; sums of larger ones might overflow.
const MOST: f64 = 1e18;

/// Returns the reason why a number is neither a time nor a size, with the number.
pub(super) fn unfit(value: impl Into<f64>) -> Option<String> {
    let value = value.into();
    let reason = if value.is_nan() {
        "is not a number"
    } else if value.is_infinite() {
        "is infinite"
    } else if value < 0.0 {
        "is negative"
    } else if value > MOST {
        "is too large"
    } else {
        return None;
    };
    Some(format!("{} {reason}", short_number(value)))
}
