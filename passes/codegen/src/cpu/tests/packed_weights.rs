//! Tests of weights that are packed for fast kernels when a bundle runs.

use super::{PLAIN, Shape, near, noise};
use crate::{
    cpu::CpuHooks,
    graph::Graph,
    host::HostModule,
    layout::StageLayouts,
    slow_operators::SlowNode,
    stage::{self, Boundary},
    target::Target,
    testing::floats,
};
use divi_onnx::{Attr, DType};

/// Weights that are inputs and weights that are computed from constants are both packed for the fast kernel.
#[test]
fn computed_weights_are_packed() {
    let cases = [
        Shape { channels: 20, filters: 24, ..PLAIN },
        Shape { channels: 3, filters: 40, strides: (2, 2), ..PLAIN },
        Shape { channels: 24, filters: 24, groups: 24, ..PLAIN },
        Shape { channels: 32, filters: 32, groups: 2, kernel: (1, 1), pads: [0; 4], ..PLAIN },
    ];
    for case in cases {
        let shape = [case.batch, case.channels, case.image.0, case.image.1];
        let weights_shape = case.weights();
        let (input, bias) = (noise(shape.iter().product(), 1), noise(case.filters, 3));
        let weights = noise(weights_shape.iter().product(), 2);
        let expected = case.naive(&input, &weights, &bias);
        for is_constant in [false, true] {
            let mut graph = Graph::default();
            let x = graph.input(DType::F32, &shape);
            let (w, b) = match is_constant {
                true => {
                    let negated: Vec<_> = weights.iter().map(|weight| -weight).collect();
                    let negated = graph.constant(floats(&weights_shape, &negated));
                    let weights = graph.apply("Neg", &[negated], &[], DType::F32, &weights_shape);
                    (weights, graph.constant(floats(&[case.filters], &bias)))
                }
                false => (graph.input(DType::F32, &weights_shape), graph.input(DType::F32, &[case.filters])),
            };
            let y = case.apply_to(&mut graph, x, w, b);
            graph.outputs = vec![y];
            let mut inputs = vec![floats(&shape, &input)];
            if !is_constant {
                inputs.extend([floats(&weights_shape, &weights), floats(&[case.filters], &bias)]);
            }
            for cpu in ["native", "x86-64-v3"] {
                let outputs = graph.run(cpu, &inputs).unwrap();
                near(&outputs[0], &expected, &format!("{case:?} {cpu} constant: {is_constant}"));
            }
            assert_eq!(slow_nodes(&graph), []);
        }
    }
    let (left, right, bias) = (noise(5 * 19, 1), noise(19 * 37, 2), noise(37, 3));
    let mut graph = Graph::default();
    let ids = [[5, 19], [37, 19], [1, 37]].map(|shape| graph.input(DType::F32, &shape));
    let y = graph.apply("Gemm", &ids, &[("transB", Attr::Int(1))], DType::F32, &[5, 37]);
    graph.outputs = vec![y];
    let dot = |row: usize, column: usize| (0..19).map(|i| left[row * 19 + i] * right[column * 19 + i]).sum::<f64>();
    let expected: Vec<_> = (0..5 * 37).map(|i| dot(i / 37, i % 37) + bias[i % 37]).collect();
    let inputs = [floats(&[5, 19], &left), floats(&[37, 19], &right), floats(&[1, 37], &bias)];
    near(&graph.run("native", &inputs).unwrap()[0], &expected, "Gemm");
    assert_eq!(slow_nodes(&graph), []);
    // There is no fast kernel for products of other types.
    let mut graph = Graph::default();
    let x = graph.input(DType::F64, &[4, 4]);
    let y = graph.apply("MatMul", &[x, x], &[], DType::F64, &[4, 4]);
    graph.outputs = vec![y];
    assert_eq!(slow_nodes(&graph).len(), 1);
}

/// Returns the nodes of a graph that are lowered without a fast kernel.
fn slow_nodes(graph: &Graph) -> Vec<SlowNode> {
    let mut host = HostModule::new(&Target::named("native").unwrap(), false);
    let layouts = StageLayouts::row_major(graph.inputs.len(), graph.outputs.len());
    let boundary = Boundary { layouts: &layouts, is_streamed: &vec![false; graph.outputs.len()] };
    stage::lower(graph.clone(), boundary, &CpuHooks, &mut host, None).unwrap().slow
}
