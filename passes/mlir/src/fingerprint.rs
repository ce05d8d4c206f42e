//! What a model computes, in one number: the same before a plan is made explicit and after.

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

/// The hash of a value that is not there.
const ABSENT: Hash = [1; 32];

/// 16 hexadecimal digits that say what a function of a module computes; `None` if constants were elided from the text, so
/// that nobody can say.
///
/// Every value is hashed with what it is computed from: operator, attributes, types and operands. Clusters, launches and
/// transfers are looked through; constants are known by their elements, or by the place in a file where these are. What
/// `divi` says about operators (costs, constraints, decisions) does not count, nor do names of nodes, nor does the order of
/// operators. All of them do, also those that nobody reads: one that is lost is noticed.
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
        let returned = hasher.body(block, Looking::ThroughLaunches);
        whole.update((returned.len() as u64).to_le_bytes());
        returned.iter().for_each(|value| whole.update(value));
    }
    hasher.operators.sort_unstable();
    hasher.operators.iter().for_each(|operator| whole.update(operator));
    (!hasher.attributes.is_elided).then(|| short(&whole.finalize()))
}

/// Whether launches stand for what they run: those of the function do, a stage launches nothing.
#[derive(Clone, Copy, PartialEq)]
enum Looking {
    ThroughLaunches,
    AtLaunches,
}

#[derive(Default)]
struct Hasher<'m> {
    functions: FxHashMap<&'m str, Operation<'m>>,
    values: FxHashMap<Value<'m>, Hash>,
    types: FxHashMap<Type<'m>, Hash>,
    attributes: Attributes<'m>,
    /// Every operator that is no constant.
    operators: Vec<Hash>,
    /// How many operators with regions are around.
    depth: usize,
}

impl<'m> Hasher<'m> {
    /// Hashes a block's operators, whose arguments have been; returns what its end hands on.
    fn body(&mut self, block: Block<'m>, looking: Looking) -> Vec<Hash> {
        let mut members = block.operations();
        let end = block.terminator();
        members.retain(|&member| Some(member) != end);
        members.into_iter().for_each(|member| self.operation(member, looking));
        end.map(|end| self.operands(end)).unwrap_or_default()
    }

    fn operands(&self, operation: Operation<'m>) -> Vec<Hash> {
        let hash = |value: &Value<'m>| match value.is_none() {
            // What is absent is so whoever says it.
            true => ABSENT,
            // Only where blocks go in circles can a value be read before it is there.
            false => self.values.get(value).copied().unwrap_or_default(),
        };
        operation.operands().iter().map(hash).collect()
    }

    fn operation(&mut self, operation: Operation<'m>, looking: Looking) {
        let given = self.operands(operation);
        let passed_on = match operation.name() {
            op::TRANSFER => Some(given.clone()),
            op::CLUSTER => operation.blocks().first().map(|&body| self.bound(body, &given, Looking::AtLaunches)),
            op::LAUNCH if looking == Looking::ThroughLaunches => {
                let callee = operation.get(attr::CALLEE);
                let callee = callee.and_then(|name| self.functions.get(name)).map(|&function| function.blocks());
                callee
                    .and_then(|blocks| blocks.first().copied())
                    .map(|body| self.bound(body, &given, Looking::AtLaunches))
            }
            _ => None,
        };
        let handed = match passed_on {
            Some(handed) => handed,
            None => self.operator(operation, &given),
        };
        for (result, hash) in operation.results().into_iter().zip(handed) {
            self.values.insert(result, hash);
        }
    }

    /// A body whose arguments stand for values.
    fn bound(&mut self, body: Block<'m>, given: &[Hash], looking: Looking) -> Vec<Hash> {
        for (argument, &hash) in body.arguments().into_iter().zip(given) {
            self.values.insert(argument, hash);
        }
        self.body(body, looking)
    }

    /// An operator that is itself; returns its results.
    fn operator(&mut self, operation: Operation<'m>, given: &[Hash]) -> Vec<Hash> {
        let hash = self.what(operation, given);
        if !is_constant(operation) {
            self.operators.push(hash);
        }
        let results = operation.results().into_iter().enumerate();
        results.map(|(i, result)| self.hash_of(&format!("result {i}"), &hash, result)).collect()
    }

    /// What an operator does, but for its results' types.
    fn what(&mut self, operation: Operation<'m>, given: &[Hash]) -> Hash {
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
        hash.update((given.len() as u64).to_le_bytes());
        given.iter().for_each(|operand| hash.update(operand));
        self.regions(operation, &mut hash);
        hash.finalize().into()
    }

    /// A value by what it is of something.
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

/// Random operators, and those of which nobody knows what else they do.
fn is_known_by_name(operation: Operation<'_>) -> bool {
    let is_random = operation.op().is_some_and(Op::is_random);
    !operation.is_registered() || operation.results().is_empty() || is_random
}
