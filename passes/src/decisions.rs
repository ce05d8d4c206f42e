//! What a plan decided, and what for, in one number each: whether somebody has changed it since is seen from that.

use crate::ir::{array_attribute, attribute, integer_attribute, symbol_attribute};
use divi_dialect::BatchAttribute;
use divi_planner::Problem;
use melior::ir::Attribute;
use mlir_sys::*;
use sha2::{Digest, Sha256};

/// 16 hexadecimal digits that say which task runs where: the device, the stage and the batches of each, in the order of the
/// IR. When they start is no part of it: that follows, and an edited plan has other starts anyway.
pub(crate) fn fingerprint(tasks: &[MlirOperation]) -> String {
    let mut hash = Sha256::new();
    for &task in tasks {
        hash.update(decision(task));
        // No name of a symbol in MLIR's text has a zero byte in it.
        hash.update([0]);
    }
    short(&hash.finalize())
}

/// 16 hexadecimal digits that say what a bound is proven for: times, sizes, devices, links, constraints, and what a pipeline
/// counts.
pub(crate) fn problem(problem: &Problem, pipeline_cost: Option<&str>, shared_devices: bool) -> String {
    let mut hash = Sha256::new();
    hash.update(problem.hash());
    hash.update(format!(" {} {shared_devices}", pipeline_cost.unwrap_or("serial")));
    short(&hash.finalize())
}

/// The first 64 bits of a hash, as plans write them.
pub(crate) fn short(digest: &[u8]) -> String {
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn decision(task: MlirOperation) -> String {
    let device = attribute(task, "divi.device").and_then(symbol_attribute).unwrap_or_default();
    let stage = attribute(task, "divi.stage").and_then(integer_attribute);
    let mut batches: Vec<(Vec<i64>, &str)> = attribute(task, "divi.batches")
        .and_then(array_attribute)
        .unwrap_or_default()
        .into_iter()
        // SAFETY: the attribute lives as long as its context.
        .filter_map(|batch| BatchAttribute::from_attribute(unsafe { Attribute::from_raw(batch) }))
        .map(|batch| (batch.inputs(), batch.device()))
        .collect();
    // They are written by start, which may change.
    batches.sort();
    format!("{device:?} {stage:?} {batches:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ir::set_attribute,
        tasks::{Tasks, entry},
    };
    use divi_dialect::new_context;
    use melior::{Context, ir::Module};

    const PLANNED: &str = r#"
        divi.device @cpu0 {kind = "cpu", memory = 1000 : i64}
        divi.device @gpu0 {kind = "cuda", memory = 1000 : i64}
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = "onnx.Relu"(%x) {divi.device = @gpu0, divi.start = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
          %1 = "onnx.Abs"(%0) {divi.batches = [#divi.batch<@cpu0, start = 2.0, inputs = [0]>,
                                               #divi.batch<@gpu0, start = 3.0, inputs = [1, 2]>]}
            : (tensor<4xf32>) -> tensor<4xf32>
          return %1 : tensor<4xf32>
        }"#;

    fn with(module: &Module<'_>, task: usize, name: &str, value: &str, context: &Context) -> String {
        let tasks =
            Tasks::of(entry(module.as_operation().to_raw()).expect("has a main")).expect("has tasks").operations;
        if !name.is_empty() {
            let value = Attribute::parse(context, value).expect("is an attribute");
            set_attribute(tasks[task], name, melior::ir::AttributeLike::to_raw(&value));
        }
        fingerprint(&tasks)
    }

    #[test]
    fn decisions_count_and_starts_do_not() {
        let context = new_context();
        let after = |task, name, value| {
            let module = Module::parse(&context, PLANNED).expect("is a module");
            with(&module, task, name, value, &context)
        };
        let before = after(0, "", "");
        assert_eq!(before.len(), 16);
        assert_eq!(before, after(0, "divi.start", "7.0 : f64"));
        let later = "[#divi.batch<@gpu0, start = 0.0, inputs = [1, 2]>, #divi.batch<@cpu0, start = 9.0, inputs = [0]>]";
        assert_eq!(before, after(1, "divi.batches", later));
        let moved = "[#divi.batch<@cpu0, start = 2.0, inputs = [0, 1]>, #divi.batch<@gpu0, start = 3.0, inputs = [2]>]";
        let changed = [
            after(0, "divi.device", "@cpu0"),
            after(0, "divi.stage", "0 : i64"),
            after(1, "divi.device", "@gpu0"),
            after(1, "divi.batches", moved),
        ];
        for (i, other) in changed.iter().enumerate() {
            assert_ne!(&before, other);
            assert!(!changed[..i].contains(other));
        }
    }

    #[test]
    fn the_number_is_the_same_everywhere() {
        let context = new_context();
        let module = Module::parse(&context, PLANNED).expect("is a module");
        assert_eq!(with(&module, 0, "", "", &context), "4e750319530f304f");
    }
}
