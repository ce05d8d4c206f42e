//! Changes types consistently, above all those of functions and their calls.

use super::Pass;
use crate::ir::{Failure, describe, error};
use divi_dialect::{
    Block, NewOperation, Operation, Value, attr, function_results, function_type, op, reshaped_type, tensor_type_of,
};
use divi_onnx::{Dim, Op, TensorType};
use melior::{ContextRef, ir::Type};
use rustc_hash::FxHashMap;

/// Functions of a module, by index.
pub(super) struct Functions<'m> {
    all: Vec<Function<'m>>,
    by_name: FxHashMap<String, usize>,
}

struct Function<'m> {
    operation: Operation<'m>,
    /// Functions that call or launch it, one entry per call.
    callers: Vec<usize>,
    /// True if another reference requires its type.
    fixed: bool,
    /// True if its arguments take the types of its only call's operands.
    follows: bool,
    /// True if the types of its results were used before they were inferred.
    results_fixed: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Done,
}

impl<'m> Functions<'m> {
    pub(super) fn of(module: Operation<'m>) -> Self {
        let (functions, others): (Vec<_>, Vec<_>) =
            module.children().into_iter().partition(|child| child.name() == op::FUNC);
        let all = functions.iter().map(|&operation| Function {
            operation,
            callers: vec![],
            fixed: false,
            follows: false,
            results_fixed: false,
            state: State::Waiting,
        });
        let name = |operation: &Operation<'_>| operation.symbol_name().unwrap_or_default().to_owned();
        let by_name = functions.iter().enumerate().map(|(i, operation)| (name(operation), i));
        let mut table = Self { all: all.collect(), by_name: by_name.collect() };
        for (i, &function) in functions.iter().enumerate() {
            function.walk(|operation| table.count_references(Some(i), operation));
        }
        for other in others {
            other.walk(|operation| table.count_references(None, operation));
        }
        for i in 0..table.all.len() {
            table.all[i].follows = table.may_follow(i);
        }
        table
    }

    fn count_references(&mut self, caller: Option<usize>, operation: Operation<'_>) {
        let name = operation.name();
        // An entry point refers to a function of any type.
        if name == op::ENTRY_POINT {
            return;
        }
        for (attribute, value) in operation.attributes() {
            let Some(&function) = attr::as_symbol(value).and_then(|symbol| self.by_name.get(symbol)) else { continue };
            let function = &mut self.all[function];
            let is_callee = matches!(name, op::CALL | op::LAUNCH) && attribute == attr::CALLEE.name();
            match caller {
                Some(caller) if is_callee => function.callers.push(caller),
                _ => function.fixed = true,
            }
        }
    }

    fn callee(&self, call: Operation<'_>) -> Option<usize> {
        self.by_name.get(call.get(attr::CALLEE)?).copied()
    }

    /// Returns true if a private function has a body, one call and no other references, and is not part of a recursion.
    fn may_follow(&self, index: usize) -> bool {
        let mut function = &self.all[index];
        if function.fixed || !function.operation.is_private() || function.operation.blocks().is_empty() {
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

    /// Returns true if a call's operands may change their types.
    pub(super) fn follow_call(&self, call: Operation<'_>) -> bool {
        self.callee(call).is_some_and(|callee| self.all[callee].follows)
    }
}

impl<'m> Pass<'m> {
    pub(super) fn all_functions(&mut self) -> Result<(), Failure> {
        // Functions that take the types of a call are inferred with it; the others, unless already called, first.
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

    fn function(&mut self, index: usize, call: Option<Operation<'m>>) -> Result<(), Failure> {
        let function = &mut self.functions.all[index];
        function.state = State::Running;
        let operation = function.operation;
        let (follows, open) = (function.follows, !function.fixed && function.callers.is_empty());
        if let Some(&entry) = operation.blocks().first() {
            match call {
                Some(call) if follows => self.propagate(&call.operands(), &entry.arguments())?,
                _ => self.arguments(operation, &entry.arguments(), open)?,
            }
            self.body(operation)?;
            self.update_function_type(index, entry)?;
        }
        self.functions.all[index].state = State::Done;
        Ok(())
    }

    /// Sets the types of a call's results to those that its callee returns.
    pub(super) fn call(&mut self, call: Operation<'m>) -> Result<(), Failure> {
        let Some(callee) = self.functions.callee(call) else { return Ok(()) };
        match self.functions.all[callee].state {
            State::Waiting => self.function(callee, Some(call))?,
            State::Running => self.functions.all[callee].results_fixed = true,
            State::Done => {}
        }
        let types = declared_results(self.functions.all[callee].operation);
        call.results().into_iter().zip(types).try_for_each(|(result, r#type)| self.set_type(result, r#type))
    }

    /// Updates a function's type from its arguments and returned values.
    fn update_function_type(&mut self, index: usize, entry: Block<'m>) -> Result<(), Failure> {
        let Function { operation: function, fixed, results_fixed, .. } = self.functions.all[index];
        let terminators = function.blocks().into_iter().filter_map(Block::terminator);
        let returns: Vec<_> = terminators.filter(|end| matches!(end.name(), op::RETURN | "onnx.Return")).collect();
        let mut types = declared_results(function);
        if !fixed && !results_fixed {
            for (i, r#type) in types.iter_mut().enumerate() {
                let mut returned = returns.iter().filter_map(|&end| end.operands().get(i).copied()).map(Value::r#type);
                if let Some(first) = returned.next() {
                    *r#type = returned.try_fold(first, |a, b| join(self.context, a, b)).unwrap_or(*r#type);
                }
            }
        }
        for &end in returns.iter().filter(|&&end| end.name() == op::RETURN) {
            for (i, (value, &r#type)) in end.operands().into_iter().zip(&types).enumerate() {
                if value.r#type() != r#type {
                    let cast = self.cast(value, r#type, end, i)?.insert_before(end);
                    end.set_operand(i, cast.result(0));
                }
            }
        }
        let arguments: Vec<_> = entry.arguments().into_iter().map(Value::r#type).collect();
        let r#type = function_type(self.context, &arguments, &types);
        function.set(attr::FUNCTION_TYPE, attr::type_attribute(r#type));
        Ok(())
    }

    /// Sets the shape of a value, and keeps the rest of its type.
    pub(super) fn set_shape(&mut self, value: Value<'m>, ty: &TensorType) -> Result<(), Failure> {
        self.set_type(value, reshaped_type(self.context, value.r#type(), ty))
    }

    /// Sets the type of a value. Users that require the old type get it through an Identity.
    pub(super) fn set_type(&mut self, value: Value<'m>, r#type: Type<'m>) -> Result<(), Failure> {
        let before = value.r#type();
        if before == r#type {
            return Ok(());
        }
        let strict: Vec<_> = value.uses().into_iter().filter(|&(user, _)| !self.follows(user)).collect();
        value.set_type(r#type);
        self.statistics.num_inferred += 1;
        let Some(&(user, index)) = strict.first() else { return Ok(()) };
        let cast = self.cast(value, before, user, index)?;
        // At the start of the argument's block, or right after the operation that defines the value, it dominates all
        // uses of the value.
        if let Some(owner) = value.defining_op() {
            cast.insert_after(owner);
        } else if let Some(block) = value.argument_block() {
            cast.insert_at(block, 0);
        }
        for (user, index) in strict {
            user.set_operand(index, cast.result(0));
        }
        Ok(())
    }

    /// Returns true if an operation accepts other operand types, by its verifier or because the pass updates it.
    pub(super) fn follows(&self, user: Operation<'_>) -> bool {
        match user.name() {
            op::CLUSTER | op::TRANSFER | op::YIELD | op::RETURN => true,
            op::LAUNCH | op::CALL => self.functions.follow_call(user),
            name => name.starts_with("onnx."),
        }
    }

    /// Creates an Identity that generalizes a value's type to the one that an operand of `user` requires. The caller
    /// inserts it.
    fn cast(
        &self,
        value: Value<'m>,
        before: Type<'m>,
        user: Operation<'m>,
        index: usize,
    ) -> Result<Operation<'m>, Failure> {
        let now = value.r#type();
        let compatible = tensor_type_of(now).zip(tensor_type_of(before)).and_then(|(now, before)| now.unify(&before));
        if compatible.is_none() {
            let user_name = describe(user);
            error(user, &format!("{user_name} requires {before} as operand {index}, which new shapes make {now}"));
            return Err(Failure);
        }
        let identity = NewOperation::new(Op::Identity.operation_name(), user.location());
        Ok(NewOperation { operands: &[value], results: &[before], ..identity }.create())
    }
}

fn declared_results(function: Operation<'_>) -> Vec<Type<'_>> {
    function.get(attr::FUNCTION_TYPE).and_then(attr::as_type).map(function_results).unwrap_or_default()
}

/// Returns the most precise type that generalizes two types; `None` if they are not tensors of the same element type.
fn join<'m>(context: ContextRef<'m>, a: Type<'m>, b: Type<'m>) -> Option<Type<'m>> {
    if a == b {
        return Some(a);
    }
    let (x, y) = (tensor_type_of(a)?, tensor_type_of(b)?);
    let shape = match (x.shape, y.shape) {
        (Some(x), Some(y)) if x.len() == y.len() => {
            Some(x.into_iter().zip(y).map(|(x, y)| if x == y { x } else { Dim::Unknown }).collect())
        }
        _ => None,
    };
    (x.dtype == y.dtype).then(|| reshaped_type(context, a, &TensorType { dtype: x.dtype, shape }))
}
