//! Launches of lowered operators, without a GPU.

use super::{CudaHooks, launch};
use crate::{
    graph::Graph,
    host::HostModule,
    kernels::Kernels,
    layout::StageLayouts,
    lowering::Simt,
    stage::{self, Boundary},
    target::Target,
};
use divi_onnx::{Attr, DType};
use divi_runtime::bundle::Call;

/// Lowers an operator with one result of the type and shape of its first input. Returns its calls, and the text of its kernels.
fn lower(op: &str, inputs: &[(DType, &[i64])], attributes: &[(&str, Attr)]) -> (Vec<Call>, String) {
    let mut graph = Graph::default();
    let operands: Vec<_> = inputs.iter().map(|&(dtype, shape)| graph.input(dtype, shape)).collect();
    graph.outputs = vec![graph.apply(op, &operands, attributes, inputs[0].0, inputs[0].1)];
    let layouts = StageLayouts::row_major(inputs.len(), 1);
    let boundary = Boundary { layouts: &layouts, is_streamed: &[false] };
    let mut host = HostModule::new(&Target::named("x86-64-v3").unwrap(), false);
    let mut kernels = Kernels::simt();
    let simt = Simt { kernels: &mut kernels, payload: launch::payload };
    let stage = stage::lower(graph, boundary, &CudaHooks, &mut host, Some(simt)).unwrap();
    let mut text = vec![];
    kernels.built().iter().for_each(|kernel| kernel.function.print(&mut |part| text.extend_from_slice(part)));
    (stage.calls.calls, String::from_utf8(text).unwrap())
}

/// Updates along the first axis may go to the same element, so threads split the other axes.
#[test]
fn scattered_elements_do_not_race() {
    let extents = |shape: &[i64], axis| {
        let inputs = [(DType::F32, shape), (DType::I64, shape), (DType::F32, shape)];
        let attributes = [("axis", Attr::Int(axis)), ("reduction", Attr::Str("add".into()))];
        let (calls, _) = lower("ScatterElements", &inputs, &attributes);
        calls.iter().map(|call| call.extent).collect::<Vec<_>>()
    };
    // The first call copies the bytes of the data.
    assert_eq!(extents(&[64, 3, 5], 0), [64 * 15 * 4, 15]);
    assert_eq!(extents(&[64], 0), [64 * 4, 1]);
    assert_eq!(extents(&[64, 3, 5], 1), [64 * 15 * 4, 64]);
}

/// The maximum of a row is computed without the assumption that no element is NaN. Exponentials use the assumption for clamping, and
/// select NaN afterwards.
#[test]
fn softmax_does_not_assume_numbers() {
    let assumptions = |op: &str, shape: &[i64]| {
        let (_, text) = lower(op, &[(DType::F32, shape)], &[]);
        text.lines().filter(|line| line.contains("maximumf") && line.contains("nnan")).count()
    };
    let of_exp = assumptions("Exp", &[8, 64]);
    assert!(of_exp > 0);
    // Rows by a block of threads each have two exponentials, short rows one.
    assert_eq!((assumptions("Softmax", &[8, 64]), assumptions("Softmax", &[8, 16])), (2 * of_exp, of_exp));
}
