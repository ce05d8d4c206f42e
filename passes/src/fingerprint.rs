//! What a model computes, in one number: the same before a plan is made explicit and after.

mod constant;
mod region;
#[cfg(test)]
mod tests;

use crate::{
    decisions::short,
    ir::{
        arguments_of, attribute, blocks, op_of, operands, operation_name, operations, results, string_attribute,
        symbol_attribute, text, type_of,
    },
    tasks::is_constant,
};
use constant::Attributes;
use divi_dialect::node::is_none;
use divi_onnx::Op;
use mlir_sys::*;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::ffi::c_void;

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
pub(crate) fn fingerprint(module: MlirOperation, function: MlirOperation) -> Option<String> {
    let functions = blocks(module).into_iter().flat_map(operations).filter(|&op| operation_name(op) == "func.func");
    let named = |function| Some((attribute(function, "sym_name").and_then(string_attribute)?, function));
    let mut hasher = Hasher { functions: functions.filter_map(named).collect(), ..Hasher::default() };
    let mut whole = Sha256::new();
    for block in blocks(function) {
        for (i, argument) in arguments_of(block).into_iter().enumerate() {
            let hash = hasher.hash_of(&format!("argument {i}"), &[], argument);
            hasher.values.insert(argument.ptr, hash);
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
struct Hasher<'a> {
    functions: FxHashMap<&'a str, MlirOperation>,
    values: FxHashMap<*const c_void, Hash>,
    types: FxHashMap<*const c_void, Hash>,
    attributes: Attributes,
    /// Every operator that is no constant.
    operators: Vec<Hash>,
    /// How many operators with regions are around.
    depth: usize,
}

impl Hasher<'_> {
    /// Hashes a block's operators, whose arguments have been; returns what its end hands on.
    fn body(&mut self, block: MlirBlock, looking: Looking) -> Vec<Hash> {
        let mut members = operations(block);
        // SAFETY: the block is alive.
        let end = unsafe { mlirBlockGetTerminator(block) };
        // SAFETY: both operations are alive.
        members.retain(|&member| end.ptr.is_null() || !unsafe { mlirOperationEqual(member, end) });
        members.into_iter().for_each(|member| self.operation(member, looking));
        if end.ptr.is_null() { vec![] } else { self.operands(end) }
    }

    fn operands(&self, operation: MlirOperation) -> Vec<Hash> {
        let hash = |value: &MlirValue| match is_none(*value) {
            // What is absent is so whoever says it.
            true => ABSENT,
            // Only where blocks go in circles can a value be read before it is there.
            false => self.values.get(&value.ptr).copied().unwrap_or_default(),
        };
        operands(operation).iter().map(hash).collect()
    }

    fn operation(&mut self, operation: MlirOperation, looking: Looking) {
        let given = self.operands(operation);
        let passed_on = match operation_name(operation) {
            "divi.transfer" => Some(given.clone()),
            "divi.cluster" => blocks(operation).first().map(|&body| self.bound(body, &given, Looking::AtLaunches)),
            "divi.launch" if looking == Looking::ThroughLaunches => {
                let callee = attribute(operation, "callee").and_then(symbol_attribute);
                let callee = callee.and_then(|name| self.functions.get(name)).map(|&function| blocks(function));
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
        for (result, hash) in results(operation).into_iter().zip(handed) {
            self.values.insert(result.ptr, hash);
        }
    }

    /// A body whose arguments stand for values.
    fn bound(&mut self, body: MlirBlock, given: &[Hash], looking: Looking) -> Vec<Hash> {
        for (argument, &hash) in arguments_of(body).into_iter().zip(given) {
            self.values.insert(argument.ptr, hash);
        }
        self.body(body, looking)
    }

    /// An operator that is itself; returns its results.
    fn operator(&mut self, operation: MlirOperation, given: &[Hash]) -> Vec<Hash> {
        let hash = self.what(operation, given);
        if !is_constant(operation) {
            self.operators.push(hash);
        }
        let results = results(operation).into_iter().enumerate();
        results.map(|(i, result)| self.hash_of(&format!("result {i}"), &hash, result)).collect()
    }

    /// What an operator does, but for its results' types.
    fn what(&mut self, operation: MlirOperation, given: &[Hash]) -> Hash {
        let name = operation_name(operation);
        let mut hash = Sha256::new();
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        // SAFETY: the operation is alive, and the index is below the count.
        let named =
            unsafe { (0..mlirOperationGetNumAttributes(operation)).map(|i| mlirOperationGetAttribute(operation, i)) };
        for named in named {
            // SAFETY: a name lives as long as its context.
            let key = unsafe { text(mlirIdentifierStr(named.name)) };
            if !key.starts_with("divi.") && (key != "onnx_node_name" || is_known_by_name(operation)) {
                hash.update((key.len() as u64).to_le_bytes());
                hash.update(key);
                hash.update(self.attributes.hash(named.attribute));
            }
        }
        hash.update((given.len() as u64).to_le_bytes());
        given.iter().for_each(|operand| hash.update(operand));
        self.regions(operation, &mut hash);
        hash.finalize().into()
    }

    /// A value by what it is of something.
    fn hash_of(&mut self, role: &str, of: &[u8], value: MlirValue) -> Hash {
        let r#type = type_of(value);
        let type_hash = self.types.entry(r#type.ptr).or_insert_with(|| constant::printed_type(r#type));
        let mut hash = Sha256::new();
        hash.update((role.len() as u64).to_le_bytes());
        hash.update(role);
        hash.update(of);
        hash.update(type_hash);
        hash.finalize().into()
    }
}

/// Random operators, and those of which nobody knows what else they do.
fn is_known_by_name(operation: MlirOperation) -> bool {
    // SAFETY: the operation is alive, and so is its context.
    let is_registered = unsafe {
        let context = mlirOperationGetContext(operation);
        mlirContextIsRegisteredOperation(context, mlirIdentifierStr(mlirOperationGetName(operation)))
    };
    let is_random = op_of(operation).is_some_and(Op::is_random);
    !is_registered || results(operation).is_empty() || is_random
}
