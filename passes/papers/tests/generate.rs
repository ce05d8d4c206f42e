//! Generated problems are well-formed, have the requested shape, and are deterministic.

use divi_papers::generate::{Chain, Kind, Regal, Rwnn, chain, regal, rwnn};
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Objective, Options, Problem, solve};

fn networks() -> Vec<Rwnn> {
    let mut networks = Vec::new();
    for kind in Kind::ALL {
        for (nodes, modules, channels) in [(1, 1, 1), (2, 3, 2), (10, 1, 1), (10, 5, 3), (32, 2, 4)] {
            for strong in [true, false] {
                let inputs = if nodes == 10 { 16 } else { 1 };
                networks.push(Rwnn { kind, nodes, modules, channels, strong, inputs, seed: 3, ..Rwnn::default() });
            }
        }
    }
    networks
}

#[test]
fn networks_are_well_formed() {
    for options in networks() {
        let problem = rwnn(&options).unwrap();
        problem.check().unwrap_or_else(|error| panic!("{options:?}: {error}"));
        let ends = if options.strong { 2 * options.channels } else { 0 };
        assert_eq!(problem.nodes.len(), options.modules * (options.nodes + ends), "{options:?}");
        assert_eq!(Problem::read(&problem.write()).as_ref(), Ok(&problem));
        assert_eq!(rwnn(&options).unwrap().write(), problem.write());
        let objective = if options.inputs > 1 { Objective::Batch } else { Objective::Latency };
        solve(&problem, objective, "heft", &Options::default()).unwrap();
    }
}

#[test]
fn modules_are_connected_by_channels() {
    for options in networks().into_iter().filter(|options| options.modules > 1) {
        let problem = rwnn(&options).unwrap();
        let modules = problem.modules.as_ref().unwrap();
        let module_of = |node: usize| modules.iter().position(|module| module.contains(&node)).unwrap();
        let edges = problem.edges.as_ref().unwrap();
        let between: Vec<(usize, usize)> =
            edges.iter().map(|(from, to)| (module_of(*from), module_of(*to))).filter(|(from, to)| from != to).collect();
        assert!(between.iter().all(|(from, to)| from + 1 == *to), "{options:?}");
        assert_eq!(between.len(), (options.modules - 1) * options.channels, "{options:?}");
        if options.strong {
            // The last nodes of a module are its inputs, followed by its outputs.
            for module in modules {
                let ends = &module[options.nodes..];
                let (inputs, outputs) = ends.split_at(options.channels);
                for node in module {
                    let inside = |edge: &&(usize, usize)| module_of(edge.0) == module_of(edge.1);
                    let read = edges.iter().filter(inside).any(|(_, to)| to == node);
                    let written = edges.iter().filter(inside).any(|(from, _)| from == node);
                    assert_eq!(read, !inputs.contains(node), "{options:?}: node {node}");
                    assert_eq!(written, !outputs.contains(node), "{options:?}: node {node}");
                }
            }
        }
    }
}

#[test]
fn device_speeds_match_the_parameters() {
    let mean = |problem: &Problem, device: usize| {
        let times: Vec<Micros> = problem.nodes.iter().map(|node| node.time[&1][device].unwrap()).collect();
        times.iter().sum::<Micros>() / times.len() as f64
    };
    let large = Rwnn { nodes: 200, modules: 5, ..Rwnn::default() };
    let problem = rwnn(&large).unwrap();
    let (cpu, t4, a100) = (mean(&problem, 0), mean(&problem, 1), mean(&problem, 2));
    assert!((5.0..9.5).contains(&(cpu / a100)), "{}", cpu / a100);
    assert!((1.15..1.4).contains(&(t4 / a100)), "{}", t4 / a100);
    let moving: Micros = problem.nodes.iter().map(|node| node.output.unwrap() / BytesPerMicro(32000.0)).sum();
    let share = moving / problem.nodes.len() as f64 / a100;
    assert!((0.06..0.16).contains(&share), "{share}");
    let dominant = rwnn(&Rwnn { dominant: true, ..large }).unwrap();
    let first = |node: &divi_planner::problem::Node| (0..2).all(|device| node.time[&1][device] > node.time[&1][2]);
    assert!(dominant.nodes.iter().all(first));
    assert!(!problem.nodes.iter().all(first));
}

#[test]
fn problems_depend_on_the_seed_only() {
    let of_seed = |seed: u64| rwnn(&Rwnn { seed, ..Rwnn::default() }).unwrap();
    assert_ne!(of_seed(1).nodes, of_seed(2).nodes);
    // A change of these hashes changes every generated problem.
    assert_eq!(of_seed(1).hash(), "sha256:aaee140855b5db28f4516d5081432786adad9ac9d9f71aed244960c90a025391");
    assert_eq!(
        regal(&Regal::default()).unwrap().hash(),
        "sha256:f4bd0e3d31d823b6869727361f496b89bdd57a513a70abd82a3fb9721a6c9c00"
    );
}

#[test]
fn sparse_graphs_may_be_large() {
    let of = |kind| regal(&Regal { kind, nodes: 20_001, seed: 1 });
    assert_eq!(of(Kind::BarabasiAlbert).unwrap().nodes.len(), 20_001);
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::BarabasiAlbert) {
        let says = of(kind).unwrap_err().to_string();
        assert_eq!(says, "nodes is 20001; it must be at least 1 and at most 20000");
    }
}

#[test]
fn graphs_have_the_pipeline_view() {
    for kind in Kind::ALL {
        let options = Regal { kind, nodes: 120, seed: 5 };
        let problem = regal(&options).unwrap();
        problem.check().unwrap();
        let view = problem.mtpp.as_ref().unwrap();
        assert_eq!(view.work.len(), 120);
        assert!(view.work.iter().all(|work| *work >= Micros::ZERO));
        let outputs: Bytes = problem.nodes.iter().map(|node| node.output.unwrap()).sum();
        assert!((45.0..55.0).contains(&(outputs.0 / 120.0)));
        assert!(problem.edges.as_ref().unwrap().len() > 150, "{kind:?}");
    }
}

#[test]
fn sizes_out_of_range_are_rejected() {
    let says = |options: Rwnn| rwnn(&options).unwrap_err().to_string();
    assert_eq!(says(Rwnn { nodes: 0, ..Rwnn::default() }), "nodes is 0; it must be at least 1 and at most 1000000");
    assert_eq!(says(Rwnn { channels: 11, ..Rwnn::default() }), "channels is 11; it must be at least 1 and at most 10");
    let talking = |communication: f64| says(Rwnn { communication, ..Rwnn::default() });
    assert_eq!(talking(-1.0), "ccr is -1; it must be from 0 to 1000000");
    assert_eq!(talking(f64::NAN), "ccr is NaN; it must be from 0 to 1000000");
    assert_eq!(talking(1e300), "ccr is 1e300; it must be from 0 to 1000000");
}

#[test]
fn chains_have_the_edge_view() {
    for (layers, machines, splits) in [(49, 4, 3), (12, 2, 1), (200, 6, 5)] {
        let options = Chain { layers, machines, splits, improvement: 1e-3, ..Chain::default() };
        let problem = chain(&options).unwrap();
        problem.check().unwrap();
        assert_eq!(Problem::read(&problem.write()).as_ref(), Ok(&problem));
        assert_eq!(chain(&options).unwrap().write(), problem.write());
        assert_ne!(chain(&Chain { seed: 2, ..options.clone() }).unwrap().nodes, problem.nodes);
        let view = problem.edge.as_ref().unwrap();
        assert_eq!((view.flops.len(), view.edge_bytes.len(), view.rate.len()), (layers, layers - 1, machines));
        assert_eq!(view.splits, Some(splits as u32));
        // The paper's first ratio: smallest value (bytes) / total work (operations).
        let (work, smallest) =
            (view.flops.iter().sum::<f64>(), view.edge_bytes.iter().copied().fold(Bytes::INFINITY, Bytes::min));
        assert!((smallest.0 / work / options.improvement - 1.0).abs() < 1e-6);
    }
}

#[test]
fn infeasible_chains_are_rejected() {
    let says = |options: Chain| chain(&options).unwrap_err().to_string();
    assert_eq!(says(Chain { layers: 1, ..Chain::default() }), "layers is 1; it must be at least 2 and at most 100000");
    assert_eq!(says(Chain { splits: 4, ..Chain::default() }), "splits is 4; it must be at least 1 and at most 3");
    assert_eq!(says(Chain { rate: f64::NAN, ..Chain::default() }), "rate is NaN; it must be from 1e-3 to 1e9");
    assert_eq!(says(Chain { optimal: 0.0, ..Chain::default() }), "the optimal ratio is 0; it must be from 1e-9 to 1e3");
    assert!(says(Chain { layers: 4, ..Chain::default() }).contains("try another seed, or more layers"));
    assert!(says(Chain { complexity: 1e-3, ..Chain::default() }).contains("must not get smaller"));
}
