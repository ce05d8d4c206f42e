//! Tests of non-temporal stores to values that GPUs copy.

use super::{PLAIN, Shape, noise};
use crate::{
    cpu::CpuHooks,
    emit::Operation,
    graph::{Graph, Id},
    host::HostModule,
    layout::{Blocked, Halo, Layout, StageLayouts},
    stage::{self, Boundary},
    target::Target,
    testing::{floats, run},
};
use divi_onnx::{Attr, DType, Tensor};

/// Lowers and runs a graph with the given output layouts. Returns the number of kernels with non-temporal stores, and the bytes of the
/// outputs.
fn lower_and_run(
    graph: &Graph,
    inputs: &[Tensor],
    cpu: &str,
    outputs: &[Layout],
    for_gpus: &[bool],
) -> (usize, Vec<Vec<u8>>) {
    let inputs: Vec<&[u8]> = inputs.iter().map(|tensor| &tensor.bytes()[..]).collect();
    let ends = StageLayouts { inputs: vec![Layout::RowMajor; inputs.len()], outputs: outputs.to_vec() };
    let sizes = graph.outputs.iter().zip(outputs).map(|(id, layout)| match layout {
        Layout::Blocked(layout) => layout.elements() as usize * 4,
        Layout::RowMajor | Layout::Unassigned => graph.values[id.0].bytes() as usize,
    });
    let mut streamed = 0;
    let lower = |host: &mut HostModule| {
        let boundary = Boundary { layouts: &ends, is_streamed: for_gpus };
        let lowered = stage::lower(graph.clone(), boundary, &CpuHooks, host, None);
        let text = |function: Operation| {
            let mut text = vec![];
            function.print(&mut |part| text.extend_from_slice(part));
            String::from_utf8(text).unwrap()
        };
        let streams = |text: &String| text.contains("nontemporal") && text.contains("sfence");
        streamed = host.kernels.built().iter().map(|kernel| text(kernel.function)).filter(streams).count();
        lowered.map(|stage| stage.calls).map_err(|error| error.to_string())
    };
    let bytes = run(&Target::named(cpu).unwrap(), false, lower, &inputs, &sizes.collect::<Vec<_>>()).unwrap();
    (streamed, bytes)
}

/// Asserts the number of kernels with non-temporal stores, and that outputs are the same bytes without them.
fn streams(graph: &Graph, inputs: &[Tensor], outputs: &[Layout], expected: usize) {
    let all = vec![true; outputs.len()];
    let (streamed, plain) = (
        lower_and_run(graph, inputs, "x86-64-v4", outputs, &all),
        lower_and_run(graph, inputs, "x86-64-v4", outputs, &vec![false; outputs.len()]),
    );
    assert_eq!((streamed.0, plain.0), (expected, 0));
    assert!(streamed.1 == plain.1);
}

fn has_wide_registers() -> bool {
    Target::named("native").unwrap().lanes == 16
}

#[test]
fn images_that_gpus_copy_are_streamed() {
    for batch in [1, 2] {
        let case = Shape { batch, channels: 3, filters: 48, ..PLAIN };
        let (weights, bias) = (noise(case.weights().iter().product(), 1), noise(case.filters, 2));
        let mut graph = Graph::default();
        let x = graph.input(DType::F32, &[batch, 3, 9, 11]);
        let inputs = [floats(&[batch, 3, 9, 11], &noise(batch * 3 * 99, 4))];
        let inner = case.apply(&mut graph, x, &weights, &bias);
        let image = [batch, 48, 9, 11];
        let window = [("kernel_shape", Attr::Ints(vec![3, 3])), ("pads", Attr::Ints(vec![1; 4]))];
        let pooled = graph.apply("MaxPoolSingleOut", &[inner], &window, DType::F32, &image);
        let gate = graph.apply("Sigmoid", &[inner], &[], DType::F32, &image);
        graph.nodes.last_mut().unwrap().task = 1;
        let twice = [batch, 96, 9, 11];
        let both = graph.apply("Concat", &[inner, inner], &[("axis", Attr::Int(1))], DType::F32, &twice);
        // `inner` is computed with the halo of the pooling, so both outputs of it are copies.
        graph.outputs = vec![pooled, gate, both, inner, inner];
        let layouts = |lanes| {
            let blocked = |shape: &[i64], halo| Layout::Blocked(Blocked::of(shape, lanes, halo).unwrap());
            let around = Halo { top: 1, left: 0, bottom: 2, right: 1, is_negative_infinity: false };
            let [pooled, inner] = [blocked(&image, Halo::NONE); 2];
            [pooled, blocked(&image, around), blocked(&twice, Halo::NONE), inner, inner]
        };
        assert_eq!(lower_and_run(&graph, &inputs, "x86-64-v3", &layouts(8), &[true; 5]).0, 0, "lines are longer");
        if !has_wide_registers() {
            continue;
        }
        // The halo and each operand of the concatenation have a separate kernel; both copies of `inner` share one.
        streams(&graph, &inputs, &layouts(16), 6);
        // Only the output that GPUs read uses non-temporal stores.
        let of_one = |which: usize| {
            let for_gpus: Vec<_> = (0..5).map(|output| output == which).collect();
            lower_and_run(&graph, &inputs, "x86-64-v4", &layouts(16), &for_gpus).0
        };
        assert_eq!([0, 1, 3, 4].map(of_one), [1, 2, 1, 1]);
    }
}

#[test]
fn dense_values_that_gpus_copy_are_streamed() {
    let mut graph = Graph::default();
    let rows = graph.input(DType::F32, &[11, 20]);
    let square = graph.input(DType::F32, &[48, 21]);
    let inputs = [floats(&[11, 20], &noise(220, 5)), floats(&[48, 21], &noise(48 * 21, 6))];
    let right = graph.constant(floats(&[20, 32], &noise(20 * 32, 3)));
    let narrow = graph.constant(floats(&[20, 31], &noise(20 * 31, 4)));
    let row = graph.constant(floats(&[32], &noise(32, 5)));
    let apply = |graph: &mut Graph, op: &str, operands: &[Id], attributes: &[(&str, Attr)], shape: &[i64]| {
        let result = graph.apply(op, operands, attributes, DType::F32, shape);
        // Nodes of different tasks are not fused.
        graph.nodes.last_mut().unwrap().task = result.0;
        result
    };
    let transposed = [("perm", Attr::Ints(vec![1, 0]))];
    let product = apply(&mut graph, "MatMul", &[rows, right], &[], &[11, 32]);
    let lines = [
        apply(&mut graph, "MatMul", &[rows, right], &[], &[11, 32]),
        apply(&mut graph, "Abs", &[square], &[], &[48, 21]),
        apply(&mut graph, "Softplus", &[square], &[], &[48, 21]),
        apply(&mut graph, "Add", &[product, row], &[], &[11, 32]),
        apply(&mut graph, "LayerNormalization", &[product, row, row], &[], &[11, 32]),
        apply(&mut graph, "Transpose", &[square], &transposed, &[21, 48]),
        square,
    ];
    // Rows of these are not aligned to cache lines.
    let others = [
        apply(&mut graph, "MatMul", &[rows, narrow], &[], &[11, 31]),
        apply(&mut graph, "Abs", &[rows], &[], &[11, 20]),
        apply(&mut graph, "Transpose", &[rows], &transposed, &[20, 11]),
    ];
    graph.outputs = [&lines[..], &others].concat();
    if has_wide_registers() {
        streams(&graph, &inputs, &vec![Layout::RowMajor; graph.outputs.len()], lines.len());
    }
}
