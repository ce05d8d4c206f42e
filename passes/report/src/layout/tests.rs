//! Tests of the graph layout.
use std::collections::BTreeMap;

use divi_papers::generate::{Rwnn, rwnn};
use divi_planner::Problem;
use divi_planner::problem::{Device, Node};
use divi_planner::units::{Bytes, Micros};

use super::Layout;

/// Builds a graph of tasks on one device.
fn graph(nodes: usize, edges: &[(usize, usize)]) -> Problem {
    let device = Device { id: 0, name: "cpu".to_owned(), memory: None, batch_sizes: vec![1] };
    let mut problem = Problem::new("graph", vec![device], vec![vec![None]]);
    problem.nodes = (0..nodes)
        .map(|id| Node {
            id,
            name: None,
            time: BTreeMap::from([(1, vec![Some(Micros(1.0))])]),
            weight: Bytes::ZERO,
            input: Bytes::ZERO,
            output: Some(Bytes(1.0)),
            scratch: Bytes::ZERO,
            pin: None,
            module: None,
        })
        .collect();
    problem.edges = Some(edges.to_vec());
    problem
}

#[test]
fn a_chain_is_straight() {
    let layout = Layout::of(&graph(3, &[(0, 1), (1, 2)]));
    assert_eq!(layout.layer, [0, 1, 2]);
    assert_eq!(layout.row, [0.0, 0.0, 0.0]);
    assert_eq!(layout.layers, 3);
    assert_eq!(layout.height, 0.0);
}

#[test]
fn a_long_edge_passes_beside_intermediate_tasks() {
    let layout = Layout::of(&graph(4, &[(0, 1), (1, 2), (2, 3), (0, 3)]));
    let long = layout.edges.iter().find(|edge| (edge.from, edge.to) == (0, 3)).unwrap();
    assert_eq!(long.bends.len(), 2);
    for (bend, task) in long.bends.iter().zip([1, 2]) {
        assert!((bend - layout.row[task]).abs() > 0.5, "{bend} runs through task {task}");
    }
}

#[test]
fn crossings_are_removed() {
    // Two chains whose tasks are numbered in opposite order.
    let layout = Layout::of(&graph(4, &[(0, 3), (1, 2)]));
    assert_eq!(layout.row[0] < layout.row[1], layout.row[3] < layout.row[2]);
}

#[test]
fn inputs_are_placed_before_their_first_consumer() {
    let layout = Layout::of(&graph(4, &[(0, 1), (1, 2), (3, 2)]));
    assert_eq!(layout.layer, [0, 1, 2, 1]);
}

#[test]
fn an_empty_graph_has_an_empty_layout() {
    let layout = Layout::of(&graph(0, &[]));
    assert_eq!((layout.layers, layout.height), (0, 0.0));
}

#[test]
fn edges_lead_forward_and_tasks_do_not_overlap() {
    for seed in 0..8 {
        let problem = rwnn(&Rwnn { nodes: 20, modules: 6, channels: 3, seed, ..Rwnn::default() }).unwrap();
        let layout = Layout::of(&problem);
        for edge in &layout.edges {
            assert!(layout.layer[edge.from] < layout.layer[edge.to]);
            assert_eq!(edge.bends.len(), layout.layer[edge.to] - layout.layer[edge.from] - 1);
        }
        let mut places: Vec<(usize, f64)> = layout.layer.iter().copied().zip(layout.row.iter().copied()).collect();
        places.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        for pair in places.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            assert!(pair[1].1 - pair[0].1 >= 0.9, "{pair:?}");
        }
        assert!(layout.row.iter().all(|row| (0.0..=layout.height).contains(row)));
    }
}
