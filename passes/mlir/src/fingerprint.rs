//! Fingerprint of a model's computation, which is the same before and after a plan is outlined.

mod constant;
mod region;
#[cfg(test)]
mod tests;

use crate::{decisions::short, tasks::is_constant};
use constant::Attributes;
use divi_dialect::{Block, Operation, Value, attr, op};
use divi_onnx::Op;
use melior::ir::Type;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

type Hash = [u8; 32];

/// Hash of an absent value.
const ABSENT: Hash = [1; 32];

/// Returns 16 hexadecimal digits that identify the computation of a function; `None` if constants were elided from the
/// text.
///
/// The hash of a value includes all it is computed from: operator, attributes, types and operands. Clusters, launches
/// and transfers are transparent; constants are identified by their elements, or by their location in a file.
/// Attributes of `divi` (costs, constraints, decisions), node names and the order of operators are not included. All
/// operators are included, even those without uses, so that a lost operator changes the fingerprint.
pub(crate) fn fingerprint<'m>(module: Operation<'m>, function: Operation<'m>) -> Option<String> {
    let functions = module.children().into_iter().filter(|operation| operation.name() == op::FUNC);
    let named = functions.filter_map(|function| Some((function.symbol_name()?, function)));
    let mut hasher = Hasher { functions: named.collect(), ..Hasher::default() };
    let mut whole = Sha256::new();
    for block in function.blocks() {
        for (i, argument) in block.arguments().into_iter().enumerate() {
            let hash = hasher.hash_of(&format!("argument {i}"), &[], argument);
            hasher.values.insert(argument, hash);
        }
        let returned = hasher.body(block, LaunchMode::Inline);
        whole.update((returned.len() as u64).to_le_bytes());
        returned.iter().for_each(|value| whole.update(value));
    }
    hasher.operators.sort_unstable();
    hasher.operators.iter().for_each(|operator| whole.update(operator));
    (!hasher.attributes.is_elided).then(|| short(&whole.finalize()))
}

/// Treatment of launches: those of the entry function are replaced by the stage they run; a stage contains none.
#[derive(Clone, Copy, PartialEq)]
enum LaunchMode {
    Inline,
    Opaque,
}

#[derive(Default)]
struct Hasher<'m> {
    functions: FxHashMap<&'m str, Operation<'m>>,
    values: FxHashMap<Value<'m>, Hash>,
    types: FxHashMap<Type<'m>, Hash>,
    attributes: Attributes<'m>,
    /// Hash of every operator that is not a constant.
    operators: Vec<Hash>,
    /// Number of enclosing operators with regions.
    depth: usize,
}

impl<'m> Hasher<'m> {
    /// Hashes the operators of a block, whose arguments have hashes already. Returns the hashes of the terminator's
    /// operands.
    fn body(&mut self, block: Block<'m>, launch_mode: LaunchMode) -> Vec<Hash> {
        let mut members = block.operations();
        let end = block.terminator();
        members.retain(|&member| Some(member) != end);
        members.into_iter().for_each(|member| self.operation(member, launch_mode));
        end.map(|end| self.operands(end)).unwrap_or_default()
    }

    fn operands(&self, operation: Operation<'m>) -> Vec<Hash> {
        let hash = |value: &Value<'m>| match value.is_none() {
            // All absent values are equal.
            true => ABSENT,
            // Only in a cycle of blocks can a value be used before it has a hash.
            false => self.values.get(value).copied().unwrap_or_default(),
        };
        operation.operands().iter().map(hash).collect()
    }

    fn operation(&mut self, operation: Operation<'m>, launch_mode: LaunchMode) {
        let operands = self.operands(operation);
        let forwarded = match operation.name() {
            op::TRANSFER => Some(operands.clone()),
            op::CLUSTER => operation.blocks().first().map(|&body| self.bound(body, &operands, LaunchMode::Opaque)),
            op::LAUNCH if launch_mode == LaunchMode::Inline => {
                let callee = operation.get(attr::CALLEE);
                let callee = callee.and_then(|name| self.functions.get(name)).map(|&function| function.blocks());
                callee
                    .and_then(|blocks| blocks.first().copied())
                    .map(|body| self.bound(body, &operands, LaunchMode::Opaque))
            }
            _ => None,
        };
        let results = match forwarded {
            Some(results) => results,
            None => self.operator(operation, &operands),
        };
        for (result, hash) in operation.results().into_iter().zip(results) {
            self.values.insert(result, hash);
        }
    }

    /// Hashes a body whose arguments have the hashes of `operands`.
    fn bound(&mut self, body: Block<'m>, operands: &[Hash], launch_mode: LaunchMode) -> Vec<Hash> {
        for (argument, &hash) in body.arguments().into_iter().zip(operands) {
            self.values.insert(argument, hash);
        }
        self.body(body, launch_mode)
    }

    /// Hashes an operator that is not transparent. Returns the hashes of its results.
    fn operator(&mut self, operation: Operation<'m>, operands: &[Hash]) -> Vec<Hash> {
        let hash = self.what(operation, operands);
        if !is_constant(operation) {
            self.operators.push(hash);
        }
        let results = operation.results().into_iter().enumerate();
        results.map(|(i, result)| self.hash_of(&format!("result {i}"), &hash, result)).collect()
    }

    /// Hashes an operator without the types of its results.
    fn what(&mut self, operation: Operation<'m>, operands: &[Hash]) -> Hash {
        let name = operation.name();
        let mut hash = Sha256::new();
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        for (key, attribute) in operation.attributes() {
            if !attr::is_divi(key) && (key != attr::NODE_NAME.name() || is_known_by_name(operation)) {
                hash.update((key.len() as u64).to_le_bytes());
                hash.update(key);
                hash.update(self.attributes.hash(attribute));
            }
        }
        hash.update((operands.len() as u64).to_le_bytes());
        operands.iter().for_each(|operand| hash.update(operand));
        self.regions(operation, &mut hash);
        hash.finalize().into()
    }

    /// Hashes a value by its role and its owner's hash.
    fn hash_of(&mut self, role: &str, of: &[u8], value: Value<'m>) -> Hash {
        let r#type = value.r#type();
        let type_hash = self.types.entry(r#type).or_insert_with(|| constant::printed_type(r#type));
        let mut hash = Sha256::new();
        hash.update((role.len() as u64).to_le_bytes());
        hash.update(role);
        hash.update(of);
        hash.update(type_hash);
        hash.finalize().into()
    }
}

/// Returns true for random operators and for those that may have side effects, whose node names are part of the hash.
fn is_known_by_name(operation: Operation<'_>) -> bool {
    let is_random = operation.op().is_some_and(Op::is_random);
    !operation.is_registered() || operation.results().is_empty() || is_random
}
