//! Changing types so that all that has to agree goes on agreeing: functions and their calls above all.

use super::Pass;
use crate::ir::{
    Failure, arguments_of, attribute, blocks, describe, error, operands, operation_name, operations, reshaped_type,
    results, string_attribute, text, type_of, uses, walk,
};
use divi_dialect::tensor_type_of;
use divi_onnx::{Dim, Op, TensorType};
use melior::{Context, StringRef, ir::Type};
use mlir_sys::*;
use rustc_hash::FxHashMap;

/// The functions of a module, by index.
pub(super) struct Functions {
    all: Vec<Function>,
    by_name: FxHashMap<String, usize>,
}

struct Function {
    operation: MlirOperation,
    /// The functions that call or launch it, once a call.
    callers: Vec<usize>,
    /// Something refers to it that insists on its type.
    fixed: bool,
    /// Its arguments take the types of its only call's operands.
    follows: bool,
    /// Something has relied on the types of its results before they were inferred.
    results_fixed: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Done,
}

impl Functions {
    pub(super) fn of(module: MlirOperation) -> Self {
        let (functions, others): (Vec<_>, Vec<_>) =
            blocks(module).into_iter().flat_map(operations).partition(|&op| operation_name(op) == "func.func");
        let all = functions.iter().map(|&operation| Function {
            operation,
            callers: vec![],
            fixed: false,
            follows: false,
            results_fixed: false,
            state: State::Waiting,
        });
        let name = |&operation| attribute(operation, "sym_name").and_then(string_attribute).unwrap_or_default();
        let by_name = functions.iter().enumerate().map(|(i, operation)| (name(operation).to_owned(), i));
        let mut table = Self { all: all.collect(), by_name: by_name.collect() };
        for (i, &function) in functions.iter().enumerate() {
            walk(function, &mut |operation| table.count_references(Some(i), operation));
        }
        for other in others {
            walk(other, &mut |operation| table.count_references(None, operation));
        }
        for i in 0..table.all.len() {
            table.all[i].follows = table.may_follow(i);
        }
        table
    }

    fn count_references(&mut self, caller: Option<usize>, operation: MlirOperation) {
        let name = operation_name(operation);
        // An entry point names a function, whatever its type is.
        if name == "onnx.EntryPoint" {
            return;
        }
        // SAFETY: the operation is alive, and the index is below the count.
        let attributes =
            unsafe { (0..mlirOperationGetNumAttributes(operation)).map(|i| mlirOperationGetAttribute(operation, i)) };
        for named in attributes {
            // SAFETY: a name lives as long as its context.
            let attribute = unsafe { text(mlirIdentifierStr(named.name)) };
            let Some(function) = self.named(named.attribute) else { continue };
            let function = &mut self.all[function];
            match (caller, name, attribute) {
                (Some(caller), "func.call" | "divi.launch", "callee") => function.callers.push(caller),
                _ => function.fixed = true,
            }
        }
    }

    fn named(&self, symbol: MlirAttribute) -> Option<usize> {
        // SAFETY: the attribute is alive, and its text lives as long as its context.
        let name =
            unsafe { mlirAttributeIsAFlatSymbolRef(symbol).then(|| text(mlirFlatSymbolRefAttrGetValue(symbol)))? };
        self.by_name.get(name).copied()
    }

    fn callee(&self, call: MlirOperation) -> Option<usize> {
        self.named(attribute(call, "callee")?)
    }

    /// Whether a function has a body, one call, no other users, and does not call itself by way of others.
    fn may_follow(&self, index: usize) -> bool {
        let mut function = &self.all[index];
        let visibility = attribute(function.operation, "sym_visibility").and_then(string_attribute);
        if function.fixed || visibility != Some("private") || blocks(function.operation).is_empty() {
            return false;
        }
        for _ in 0..self.all.len() {
            match function.callers[..] {
                [caller] => function = &self.all[caller],
                [] => return !self.all[index].callers.is_empty(),
                _ => return self.all[index].callers.len() == 1,
            }
        }
        false
    }

    /// Whether a call's operands may change their types.
    pub(super) fn follow_call(&self, call: MlirOperation) -> bool {
        self.callee(call).is_some_and(|callee| self.all[callee].follows)
    }
}

impl Pass<'_> {
    pub(super) fn all_functions(&mut self) -> Result<(), Failure> {
        // Those that follow a call come when that does; the others, if nothing has called them yet, now.
        for following in [false, true] {
            for i in 0..self.functions.all.len() {
                let function = &self.functions.all[i];
                if function.follows == following && function.state == State::Waiting {
                    self.function(i, None)?;
                }
            }
        }
        Ok(())
    }

    fn function(&mut self, index: usize, call: Option<MlirOperation>) -> Result<(), Failure> {
        let function = &mut self.functions.all[index];
        function.state = State::Running;
        let operation = function.operation;
        let (follows, open) = (function.follows, !function.fixed && function.callers.is_empty());
        if let Some(&entry) = blocks(operation).first() {
            match call {
                Some(call) if follows => self.hand_on(&operands(call), &arguments_of(entry))?,
                _ => self.arguments(operation, &arguments_of(entry), open)?,
            }
            self.body(operation)?;
            self.update_function_type(index, entry)?;
        }
        self.functions.all[index].state = State::Done;
        Ok(())
    }

    /// A call's results have the types that its callee returns.
    pub(super) fn call(&mut self, call: MlirOperation) -> Result<(), Failure> {
        let Some(callee) = self.functions.callee(call) else { return Ok(()) };
        match self.functions.all[callee].state {
            State::Waiting => self.function(callee, Some(call))?,
            State::Running => self.functions.all[callee].results_fixed = true,
            State::Done => {}
        }
        let types = declared_results(self.functions.all[callee].operation);
        results(call).into_iter().zip(types).try_for_each(|(result, r#type)| self.set_type(result, r#type))
    }

    /// A function's type is that of its arguments and of what it returns.
    fn update_function_type(&mut self, index: usize, entry: MlirBlock) -> Result<(), Failure> {
        let Function { operation: function, fixed, results_fixed, .. } = self.functions.all[index];
        // SAFETY: the blocks are alive.
        let terminators = blocks(function).into_iter().map(|block| unsafe { mlirBlockGetTerminator(block) });
        let returns: Vec<_> = terminators
            .filter(|end| !end.ptr.is_null() && matches!(operation_name(*end), "func.return" | "onnx.Return"))
            .collect();
        let mut types = declared_results(function);
        if !fixed && !results_fixed {
            for (i, r#type) in types.iter_mut().enumerate() {
                let mut returned = returns.iter().filter_map(|&end| operands(end).get(i).copied()).map(type_of);
                if let Some(first) = returned.next() {
                    *r#type = returned.try_fold(first, |a, b| join(self.context, a, b)).unwrap_or(*r#type);
                }
            }
        }
        for &end in returns.iter().filter(|&&end| operation_name(end) == "func.return") {
            for (i, (value, &r#type)) in operands(end).into_iter().zip(&types).enumerate() {
                // SAFETY: everything is alive; the block takes ownership of the Identity.
                unsafe {
                    if !mlirTypeEqual(type_of(value), r#type) {
                        let cast = self.cast(value, r#type, end, i as isize)?;
                        mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(end), end, cast);
                        mlirOperationSetOperand(end, i as isize, mlirOperationGetResult(cast, 0));
                    }
                }
            }
        }
        let arguments: Vec<_> = arguments_of(entry).into_iter().map(type_of).collect();
        // SAFETY: function and types are alive, and the lists outlive the call.
        unsafe {
            let r#type = mlirFunctionTypeGet(
                self.context.to_raw(),
                arguments.len() as isize,
                arguments.as_ptr(),
                types.len() as isize,
                types.as_ptr(),
            );
            let name = StringRef::new("function_type").to_raw();
            mlirOperationSetAttributeByName(function, name, mlirTypeAttrGet(r#type));
        }
        Ok(())
    }

    /// Gives a value a shape; its type stays as it is otherwise.
    pub(super) fn set_shape(&mut self, value: MlirValue, ty: &TensorType) -> Result<(), Failure> {
        self.set_type(value, reshaped_type(self.context, type_of(value), ty))
    }

    /// Gives a value a type. What insists on the type that it had gets that, by way of an Identity.
    pub(super) fn set_type(&mut self, value: MlirValue, r#type: MlirType) -> Result<(), Failure> {
        let before = type_of(value);
        // SAFETY: both types are alive.
        if unsafe { mlirTypeEqual(before, r#type) } {
            return Ok(());
        }
        let insisting: Vec<_> = uses(value).into_iter().filter(|&(user, _)| !self.follows(user)).collect();
        // SAFETY: value and type are alive.
        unsafe { mlirValueSetType(value, r#type) };
        self.statistics.num_inferred += 1;
        let Some(&(user, index)) = insisting.first() else { return Ok(()) };
        let cast = self.cast(value, before, user, index)?;
        // SAFETY: everything is alive; the Identity comes first in the argument's block or right behind the operation
        // that defines the value, so it is before all that uses the value.
        unsafe {
            if mlirValueIsABlockArgument(value) {
                mlirBlockInsertOwnedOperation(mlirBlockArgumentGetOwner(value), 0, cast);
            } else {
                let owner = mlirOpResultGetOwner(value);
                mlirBlockInsertOwnedOperationAfter(mlirOperationGetBlock(owner), owner, cast);
            }
            for (user, index) in insisting {
                mlirOperationSetOperand(user, index, mlirOperationGetResult(cast, 0));
            }
        }
        Ok(())
    }

    /// Whether an operation goes along with its operands' types, by its verifier or because the pass updates it.
    pub(super) fn follows(&self, user: MlirOperation) -> bool {
        match operation_name(user) {
            "divi.cluster" | "divi.transfer" | "divi.yield" | "func.return" => true,
            "divi.launch" | "func.call" => self.functions.follow_call(user),
            name => name.starts_with("onnx."),
        }
    }

    /// An Identity that forgets of a value's shape what an operand of `user` must not say. The caller inserts it.
    fn cast(
        &self,
        value: MlirValue,
        r#type: MlirType,
        user: MlirOperation,
        index: isize,
    ) -> Result<MlirOperation, Failure> {
        // SAFETY: the types are alive.
        let (now, before) = unsafe { (Type::from_raw(type_of(value)), Type::from_raw(r#type)) };
        let compatible = tensor_type_of(now).zip(tensor_type_of(before)).and_then(|(now, before)| now.unify(&before));
        if compatible.is_none() {
            let user_name = describe(user);
            error(user, &format!("{user_name} insists on {before} as operand {index}, which new shapes make {now}"));
            return Err(Failure);
        }
        // SAFETY: everything belongs to one context and outlives the call.
        unsafe {
            let location = mlirOperationGetLocation(user);
            let mut state = mlirOperationStateGet(StringRef::new(Op::Identity.operation_name()).to_raw(), location);
            mlirOperationStateAddOperands(&mut state, 1, &value);
            mlirOperationStateAddResults(&mut state, 1, &r#type);
            Ok(mlirOperationCreate(&mut state))
        }
    }
}

fn declared_results(function: MlirOperation) -> Vec<MlirType> {
    let Some(attribute) = attribute(function, "function_type") else { return vec![] };
    // SAFETY: a function's type is a function type, and indices are below the count.
    unsafe {
        let r#type = mlirTypeAttrGetValue(attribute);
        (0..mlirFunctionTypeGetNumResults(r#type)).map(|i| mlirFunctionTypeGetResult(r#type, i)).collect()
    }
}

/// The type that says what two types both say; `None` if they are not both tensors of the same elements.
fn join(context: &Context, a: MlirType, b: MlirType) -> Option<MlirType> {
    // SAFETY: the types are alive.
    let (same, x, y) =
        unsafe { (mlirTypeEqual(a, b), tensor_type_of(Type::from_raw(a)), tensor_type_of(Type::from_raw(b))) };
    if same {
        return Some(a);
    }
    let (x, y) = (x?, y?);
    let shape = match (x.shape, y.shape) {
        (Some(x), Some(y)) if x.len() == y.len() => {
            Some(x.into_iter().zip(y).map(|(x, y)| if x == y { x } else { Dim::Unknown }).collect())
        }
        _ => None,
    };
    (x.dtype == y.dtype).then(|| reshaped_type(context, a, &TensorType { dtype: x.dtype, shape }))
}
