//! Problems of the repository: read, checked, written and read again.

use std::fs;
use std::path::{Path, PathBuf};

use divi_planner::units::Micros;
use divi_planner::{Instance, Objective, Problem};

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/problems");
    let mut files: Vec<PathBuf> = ["rwnn", "batch", "regal", "msr"]
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).expect("a folder of problems"))
        .map(|entry| entry.expect("a problem").path())
        .collect();
    files.sort();
    assert!(files.len() > 60);
    files
}

#[test]
fn problems_survive_writing() {
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        let problem = Problem::read(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        problem.check().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let again = Problem::read(&problem.write()).unwrap();
        assert_eq!(again, problem, "{}", file.display());
        assert_eq!(again.write(), problem.write());
        assert_eq!(again.hash(), problem.hash());
    }
}

#[test]
fn instances_agree_with_problems() {
    for file in files() {
        let problem = Problem::read(&fs::read_to_string(&file).unwrap()).unwrap();
        let objective = if problem.inputs > 1 { Objective::Batch } else { Objective::Latency };
        let instance = Instance::new(&problem, objective).unwrap();
        assert_eq!((instance.tasks(), instance.devices()), (problem.nodes.len(), problem.devices.len()));
        for (task, node) in problem.nodes.iter().enumerate() {
            for (size, times) in &node.time {
                for (device, time) in times.iter().enumerate() {
                    assert_eq!(instance.time_at(task, device, *size), *time);
                }
            }
        }
        let mut position = vec![0; instance.tasks()];
        for (place, task) in instance.order().iter().enumerate() {
            position[*task] = place;
        }
        for &(from, to) in problem.edges.iter().flatten() {
            assert!(position[from] < position[to]);
            assert!(instance.successors(from).iter().any(|arc| arc.task == to && arc.tensor == from));
            assert!(instance.predecessors(to).iter().any(|arc| arc.task == from && arc.tensor == from));
        }
        if problem.devices.len() > 1 {
            let bandwidth = problem.bandwidth[0][1].unwrap();
            let expected = problem.nodes[0].output.unwrap() / bandwidth;
            assert_eq!(instance.transfer(0, 0, 1), expected);
            assert_eq!(instance.transfer(0, 1, 1), Micros::ZERO);
        }
    }
}
