//! Conversion of EfficientMIP graphs to problems.

use divi_papers::convert::{Conversion, convert};
use divi_planner::units::{Bytes, BytesPerMicro, Micros};

const GRAPH: &str = r#"{"maxSizePerFPGA": 1000.0, "maxFPGAs": 2, "maxCPUs": 8,
"nodes": [
{"id": 7, "name": "a", "supportedOnFpga": 1, "cpuLatency": 6.96, "fpgaLatency": 0.696, "isBackwardNode": false, "colorClass": 3, "size": 10.0},
{"id": 2, "supportedOnFpga": false, "cpuLatency": 1.5, "fpgaLatency": 0, "isBackwardNode": 0, "colorClass": 3, "layerId": 4},
{"id": 5, "name": "c", "supportedOnFpga": true, "cpuLatency": 2, "fpgaLatency": 0.1234, "isBackwardNode": 0, "size": 5}],
"edges": [{"sourceId": 2, "destId": 5, "cost": 0.5}, {"sourceId": 7, "destId": 2, "cost": 1.953125, "size": 99},
{"sourceId": 7, "destId": 5, "cost": 1.953125}]}"#;

fn conversion() -> Conversion {
    Conversion { name: "graph".to_owned(), cpus: None, colocate: true }
}

#[test]
fn graphs_become_problems() {
    let problem = convert(GRAPH, &conversion()).unwrap();
    let names: Vec<&str> = problem.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["acc0", "acc1", "cpu0"]);
    assert_eq!(problem.devices[0].memory, Some(Bytes(1000.0)));
    assert_eq!(problem.devices[2].memory, None);
    assert_eq!(problem.bandwidth[0], [None, Some(BytesPerMicro(0.5)), Some(BytesPerMicro(1.0))]);
    assert_eq!(problem.bandwidth[2], [Some(BytesPerMicro(1.0)), Some(BytesPerMicro(1.0)), None]);
    assert_eq!(problem.nodes[0].time[&1], [Some(Micros(696.0)), Some(Micros(696.0)), Some(Micros(6960.0))]);
    assert_eq!(problem.nodes[1].time[&1], [None, None, Some(Micros(1500.0))]);
    assert_eq!(problem.nodes[2].time[&1], [Some(Micros(123.0)), Some(Micros(123.0)), Some(Micros(2000.0))]);
    assert_eq!(problem.nodes[0].output, Some(Bytes(1953.0)));
    assert_eq!(problem.nodes[2].output, Some(Bytes::ZERO));
    assert_eq!(problem.nodes[0].weight, Bytes(10.0));
    assert_eq!(problem.edges, Some(vec![(0, 1), (0, 2), (1, 2)]));
    assert_eq!(problem.colocate, Some(vec![vec![0, 1]]));
    assert_eq!(problem.mtpp.as_ref().unwrap().work, [696.0, 0.0, 123.0].map(Micros));
    assert_eq!(problem.mtpp.as_ref().unwrap().k, [2]);
}

#[test]
fn options_set_cpus_and_colocation() {
    let loose = convert(GRAPH, &Conversion { colocate: false, cpus: Some(2), ..conversion() }).unwrap();
    assert_eq!(loose.colocate, None);
    assert_eq!(loose.devices.len(), 4);
}

#[test]
fn invalid_graphs_are_rejected() {
    let says = |old: &str, new: &str| {
        assert!(GRAPH.contains(old));
        convert(&GRAPH.replacen(old, new, 1), &conversion()).unwrap_err().to_string()
    };
    assert!(says("\"id\": 2", "\"id\": 7").contains("nodes[1]: id 7 is already used by nodes[0]"));
    assert!(says("\"destId\": 2", "\"destId\": 3").contains("edges[1]: unknown node id 3"));
    assert!(
        says("\"destId\": 5, \"cost\": 1.953125", "\"destId\": 5, \"cost\": 2")
            .contains("edges[2]: costs 2, but another edge of node 7 costs 1.953125")
    );
    assert!(says("\"cpuLatency\": 6.96", "\"cpuLatency\": \"6\"").contains("nodes[0].cpuLatency: invalid type"));
    assert!(says("\"supportedOnFpga\": 1", "\"supportedOnFpga\": \"yes\"").contains("expected true, false, 1 or 0"));
    assert!(says("\"sourceId\": 7, \"destId\": 2", "\"sourceId\": 5, \"destId\": 2").contains("has a cycle"));
    assert!(says("\"maxFPGAs\": 2", "\"maxFPGAs\": 200000").contains("at most 1024 in all"));
}
