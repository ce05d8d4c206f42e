use std::collections::BTreeMap;

use divi_papers::generate::{Rwnn, rwnn};
use divi_planner::Problem;
use divi_planner::problem::{Device, Node};

use super::Layout;

/// Tasks that hand something to each other, on one device.
fn graph(nodes: usize, edges: &[(usize, usize)]) -> Problem {
    let device = Device { id: 0, name: "cpu".to_owned(), memory: None, batch_sizes: vec![1] };
    let mut problem = Problem::new("graph", vec![device], vec![vec![None]]);
    problem.nodes = (0..nodes)
        .map(|id| Node {
            id,
            name: None,
            time: BTreeMap::from([(1, vec![Some(1.0)])]),
            weight: 0.0,
            input: 0.0,
            output: Some(1.0),
            scratch: 0.0,
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
fn a_long_edge_passes_beside_the_tasks_between() {
    let layout = Layout::of(&graph(4, &[(0, 1), (1, 2), (2, 3), (0, 3)]));
    let long = layout.edges.iter().find(|edge| (edge.from, edge.to) == (0, 3)).unwrap();
    assert_eq!(long.bends.len(), 2);
    for (bend, task) in long.bends.iter().zip([1, 2]) {
        assert!((bend - layout.row[task]).abs() > 0.5, "{bend} runs through task {task}");
    }
}

#[test]
fn crossings_go_away() {
    // Two chains whose tasks are numbered the other way round.
    let layout = Layout::of(&graph(4, &[(0, 3), (1, 2)]));
    assert_eq!(layout.row[0] < layout.row[1], layout.row[3] < layout.row[2]);
}

#[test]
fn inputs_stand_before_their_first_reader() {
    let layout = Layout::of(&graph(4, &[(0, 1), (1, 2), (3, 2)]));
    assert_eq!(layout.layer, [0, 1, 2, 1]);
}

#[test]
fn nothing_to_draw_is_no_harm() {
    let layout = Layout::of(&graph(0, &[]));
    assert_eq!((layout.layers, layout.height), (0, 0.0));
}

#[test]
fn edges_lead_forwards_and_tasks_keep_apart() {
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
