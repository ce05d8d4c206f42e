//! `divi-mark-outputs`: returns results of tasks as outputs of the model, to compare them with those of another bundle.

use crate::{
    declared::{MarkOutputs, MarkOutputsStatistics},
    ir::{Failure, error, type_of_body},
    tasks::{Tasks, entry, is_work, members, reads, task_name},
};
use divi_cost::pattern::matches;
use divi_dialect::{NewOperation, Operation, Value, attr};
use divi_onnx::operators::CostClass;
use melior::ir::Attribute;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Name of a result in the attributes of a function.
const NAME: &str = "onnx.name";

//===----------------------------------------------------------------------===//
// --divi-mark-outputs
//===----------------------------------------------------------------------===//

impl MarkOutputs {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<MarkOutputsStatistics, Failure> {
        let tasks = Tasks::of(entry(module)?)?;
        let mut outputs = Outputs::of(&tasks);
        let before = outputs.values.len();
        for &task in &tasks.operations {
            outputs.task(task, &self.tasks);
        }
        let num_marked = (outputs.values.len() - before) as u64;
        if num_marked == 0 {
            let message = format!(
                "no task with a floating-point result that is not an output has a name like '{}'; --cost-table lists the tasks",
                self.tasks
            );
            error(module, &message);
            return Err(Failure);
        }
        outputs.return_from(tasks.function);
        Ok(MarkOutputsStatistics { num_marked })
    }
}

/// Outputs of the model, in the order of the returned values.
struct Outputs<'m> {
    values: Vec<Value<'m>>,
    /// Index of each output of the model; the first one for a value that is returned several times.
    known: FxHashMap<Value<'m>, usize>,
    /// Names of the outputs that were added.
    names: Vec<String>,
    taken: FxHashSet<String>,
    /// Indices of the outputs that an output is computed from without others between; `None` if it is not the result of a task.
    computed_from: Vec<Option<BTreeSet<usize>>>,
    /// Indices of the outputs that a value is, or is computed from without others between.
    nearest: FxHashMap<Value<'m>, BTreeSet<usize>>,
}

impl<'m> Outputs<'m> {
    fn of(tasks: &Tasks<'m>) -> Self {
        let values = tasks.returned.clone();
        let name = |i| tasks.function.signature_attribute(attr::RES_ATTRS, i, NAME).and_then(attr::as_string);
        Self {
            known: values.iter().enumerate().rev().map(|(index, &value)| (value, index)).collect(),
            names: vec![],
            taken: (0..values.len()).filter_map(name).map(str::to_owned).collect(),
            computed_from: vec![None; values.len()],
            nearest: FxHashMap::default(),
            values,
        }
    }

    /// Adds the results of a task whose names match a pattern.
    fn task(&mut self, task: Operation<'m>, pattern: &str) {
        let read: BTreeSet<usize> =
            reads(task).iter().filter_map(|value| self.nearest.get(value)).flatten().copied().collect();
        let is_view = members(task).iter().all(|member| member.op().is_some_and(|op| op.class() == CostClass::View));
        for (number, result) in task.results().into_iter().enumerate() {
            let name = result_name(task, number);
            let is_float = result.tensor_type().is_some_and(|ty| ty.dtype.is_float());
            let index = match self.known.get(&result) {
                None if !is_view && is_float && matches(pattern, &name) => Some(self.add(result, &name)),
                known => known.copied(),
            };
            let nearest = match index {
                Some(index) => {
                    self.computed_from[index] = Some(read.clone());
                    BTreeSet::from([index])
                }
                None => read.clone(),
            };
            self.nearest.insert(result, nearest);
        }
    }

    /// Adds an output with a name that no other one has. Returns its index.
    fn add(&mut self, value: Value<'m>, name: &str) -> usize {
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
        self.names.extend(candidates.find(|name| self.taken.insert(name.clone())));
        self.values.push(value);
        self.computed_from.push(None);
        self.values.len() - 1
    }

    /// Makes a function return the outputs.
    fn return_from(&self, function: Operation<'m>) {
        let context = function.context();
        let blocks = function.blocks();
        let Some((&body, terminator)) = blocks.first().and_then(|body| Some((body, body.terminator()?))) else {
            return;
        };
        let new =
            NewOperation { operands: &self.values, ..NewOperation::new(terminator.name(), terminator.location()) };
        new.create().insert_before(terminator);
        terminator.erase();
        let before = function.get(attr::RES_ATTRS).unwrap_or_default();
        let first_added = self.values.len() - self.names.len();
        let attributes: Vec<Attribute<'m>> = (0..self.values.len())
            .map(|index| {
                let known = before.get(index).and_then(|&entries| attr::as_dictionary(entries)).unwrap_or_default();
                // An earlier run of the pass may have left an older list.
                let mut entries: Vec<_> =
                    known.into_iter().filter(|(key, _)| *key != attr::COMPUTED_FROM.name()).collect();
                let added = index.checked_sub(first_added).map(|added| &self.names[added]);
                entries.extend(added.map(|name| (NAME, attr::string(context, name))));
                let list = self.computed_from[index].as_ref();
                let list = list.map(|list| list.iter().map(|&index| index as i64).collect::<Vec<_>>());
                entries.extend(list.map(|list| (attr::COMPUTED_FROM.name(), attr::integers(context, &list))));
                attr::dictionary(context, &entries)
            })
            .collect();
        function.set(attr::RES_ATTRS, &attributes);
        function.set(attr::FUNCTION_TYPE, type_of_body(context, body));
    }
}

/// Returns the name of a result: that of the last convolution or product of its task, which `--precision-exclude` takes, or of the last
/// operator. Views and conversions give no names, so that results of several precisions have the same name.
fn result_name(task: Operation<'_>, number: usize) -> String {
    let members = members(task);
    let is_converted =
        |member: Operation<'_>| member.op().is_some_and(|op| matches!(op.class(), CostClass::Conv | CostClass::MatMul));
    let last = |is_named: &dyn Fn(Operation<'_>) -> bool| {
        members.iter().rfind(|&&member| is_named(member)).and_then(|member| member.get(attr::NODE_NAME))
    };
    let name = last(&is_converted).or_else(|| last(&|member| is_work(member))).unwrap_or_else(|| task_name(task));
    match task.results().len() {
        0 | 1 => name.to_owned(),
        _ => format!("{name}:{number}"),
    }
}
