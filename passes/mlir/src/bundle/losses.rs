//! Programs for the loss of a node, from the nested modules of a plan.

use super::{constants::Constants, steps, support};
use crate::ir::{Failure, error};
use divi_codegen::program::Loss;
use divi_dialect::{Operation, attr, op};

/// Builds the programs of the nested modules, in their order.
pub(super) fn programs(module: Operation<'_>, model: &str, constants: &Constants<'_>) -> Result<Vec<Loss>, Failure> {
    let nested = module.children().into_iter().filter(|child| child.name() == op::MODULE);
    let plans = nested.filter_map(|nested| Some((nested, nested.get(attr::WITHOUT)?)));
    let program = |(nested, node): (Operation<'_>, i64)| {
        let node = usize::try_from(node).map_err(|_| {
            error(nested, &format!("is a plan without node {node}, which does not exist"));
            Failure
        })?;
        if let Some(reason) = nested.get(attr::REASON) {
            return Ok(Loss { node, program: Err(reason.to_owned()) });
        }
        support::check_stages(nested)?;
        Ok(Loss { node, program: Ok(steps::program(nested, model, constants)?) })
    };
    plans.map(program).collect()
}
