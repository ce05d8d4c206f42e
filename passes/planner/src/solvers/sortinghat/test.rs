//! Proposals of the integer program in cases with known solutions.

use super::program;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::Objective;
use crate::model::problem::Problem;
use crate::model::units::{Bytes, Micros};
use crate::solvers::contention::{Choice, Job, Model, Route, Simulator, each_once, extend_earliest_finish, jobs};
use crate::testing::{Rwnn, rwnn};

/// Returns the makespans of the proposal for a whole problem as one piece, and of the greedy start.
fn propose(problem: &Problem, inspect: impl Fn(&Model<'_>, &Choice)) -> (Micros, Micros) {
    let instance = Instance::new(&problem.relaxed_without_memory(), Objective::Latency).unwrap();
    let model = Model::new(problem, Objective::Latency, &instance, &each_once(&instance));
    let launches: Vec<usize> = instance.order().to_vec();
    let mut choice = Choice::empty(&model);
    extend_earliest_finish(&model, &mut choice, &mut Simulator::new(&model), &launches, &[]).unwrap();
    choice.order = jobs(&model, &launches);
    let proposed = program::plan(&model, &choice, 0, &launches, 1, &Options::default()).unwrap();
    inspect(&model, &proposed);
    (Simulator::of(&model, &proposed).value, Simulator::of(&model, &choice).value)
}

/// Two tasks with parameters, and one that reads their results; each device has its own bus.
fn two_tasks(second_times: &str) -> Problem {
    let text = format!(
        r#"{{"format":"divi-problem/1","name":"two","contention":"exclusive",
        "devices":[{{"id":0,"name":"cpu"}},{{"id":1,"name":"gpu0"}},{{"id":2,"name":"gpu1"}}],
        "bandwidth":[[null,1,1],[1,null,20],[1,20,null]],
        "bus":[[null,"pcie0","pcie1"],["up0",null,"nv01"],["up1","nv10",null]],
        "nodes":[
        {{"id":0,"time":{{"1":[null,5,5]}},"weight":100,"input":0,"output":1}},
        {{"id":1,"time":{{"1":[null,{second_times}]}},"weight":100,"input":0,"output":1}},
        {{"id":2,"time":{{"1":[1,1,1]}},"weight":0,"input":2,"output":1}}],
        "edges":[[0,2],[1,2]],"cold":{{"host":0}}}}"#
    );
    Problem::read(&text).expect("a problem")
}

#[test]
fn both_buses_are_used() {
    let (value, _) = propose(&two_tasks("5,5"), |model, choice| {
        assert_eq!(model.devices, 3);
        assert_ne!(choice.device[0], choice.device[1]);
        assert_eq!((choice.route[0], choice.route[1]), (Route::Copy, Route::Copy));
    });
    assert!((106.0..108.5).contains(&value.0), "{value}");
}

/// Tests that a device that computes too slowly forwards parameters.
#[test]
fn parameters_are_forwarded() {
    let mut problem = two_tasks("5,500");
    problem.nodes[0].time.insert(1, vec![None, Some(Micros(5.0)), Some(Micros(500.0))]);
    let (value, _) = propose(&problem, |_, choice| {
        assert_eq!((choice.device[0], choice.device[1]), (1, 1));
        let routes = [choice.route[0], choice.route[1]];
        assert!(routes.contains(&Route::Via(2)) && routes.contains(&Route::Copy), "{routes:?}");
    });
    assert!(value < Micros(120.0), "{value}");
}

/// Tests that parameters are read from the host if few bytes are read.
#[test]
fn parameters_are_read_from_the_host() {
    let mut problem = two_tasks("5,5");
    problem.bus.iter_mut().for_each(|rows| rows[0][2] = Some("pcie0".to_owned()));
    let mut cold = crate::model::problem::Cold::from_host(0);
    cold.direct = Some(vec![Some(vec![None, Some(Micros(6.0)), Some(Micros(6.0))]), None, None]);
    problem.cold = Some(cold);
    let (value, _) = propose(&problem, |_, choice| assert_eq!(choice.route[0], Route::Direct));
    assert!(value <= Micros(113.0), "{value}");
}

/// Tests that proposals are complete and topologically ordered.
#[test]
fn proposals_are_feasible() {
    for seed in 0..4 {
        let size = Rwnn { nodes: 3, communication: 0.5, seed, ..Rwnn::default() };
        let mut problem = rwnn(&size).unwrap();
        problem.nodes.iter_mut().for_each(|node| node.weight = Bytes(1e7 * (1 + node.id) as f64));
        let problem = problem.cold_start();
        let (value, greedy) = propose(&problem, |model, choice| {
            let mut done = vec![false; model.launches.len()];
            for job in &choice.order {
                let Job::Run(launch) = *job else { continue };
                let arcs = model.predecessors(launch as usize);
                assert!(arcs.iter().all(|arc| model.of_task[arc.task].iter().all(|maker| done[*maker])));
                done[launch as usize] = true;
            }
            assert!(done.iter().all(|done| *done));
        });
        assert!(value <= greedy * 2.0, "{value} after {greedy}");
    }
}
