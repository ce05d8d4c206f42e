//! What the integer program proposes, on cases that can be thought through.

use super::program;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::Objective;
use crate::model::problem::Problem;
use crate::solvers::contention::{Choice, Job, Model, Simulator, Way, each_once, extend_first_to_end, jobs};
use crate::testing::{Rwnn, rwnn};

/// What is proposed for a whole problem as one piece, and what it and a greedy start take.
fn propose(problem: &Problem, see: impl Fn(&Model<'_>, &Choice)) -> (f64, f64) {
    let instance = Instance::new(&problem.relaxed_without_memory(), Objective::Latency).unwrap();
    let model = Model::new(problem, Objective::Latency, &instance, &each_once(&instance));
    let launches: Vec<usize> = instance.order().to_vec();
    let mut choice = Choice::empty(&model);
    extend_first_to_end(&model, &mut choice, &mut Simulator::new(&model), &launches, &[]).unwrap();
    choice.order = jobs(&model, &launches);
    let proposed = program::plan(&model, &choice, 0, &launches, 1, &Options::default()).unwrap();
    see(&model, &proposed);
    (Simulator::of(&model, &proposed).value, Simulator::of(&model, &choice).value)
}

/// Two tasks with parameters, a device that reads their results; the devices on buses of their own.
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
        assert_eq!((choice.way[0], choice.way[1]), (Way::Copy, Way::Copy));
    });
    assert!((106.0..108.5).contains(&value), "{value}");
}

/// The second device computes far too slowly, and hands parameters on.
#[test]
fn parameters_are_handed_on() {
    let mut problem = two_tasks("5,500");
    problem.nodes[0].time.insert(1, vec![None, Some(5.0), Some(500.0)]);
    let (value, _) = propose(&problem, |_, choice| {
        assert_eq!((choice.device[0], choice.device[1]), (1, 1));
        let ways = [choice.way[0], choice.way[1]];
        assert!(ways.contains(&Way::Via(2)) && ways.contains(&Way::Copy), "{ways:?}");
    });
    assert!(value < 120.0, "{value}");
}

/// What is read from the host is worth it where little is read.
#[test]
fn parameters_are_read_where_they_are() {
    let mut problem = two_tasks("5,5");
    problem.bus.iter_mut().for_each(|rows| rows[0][2] = Some("pcie0".to_owned()));
    let mut cold = crate::model::problem::Cold::from_host(0);
    cold.direct = Some(vec![Some(vec![None, Some(6.0), Some(6.0)]), None, None]);
    problem.cold = Some(cold);
    let (value, _) = propose(&problem, |_, choice| assert_eq!(choice.way[0], Way::Direct));
    assert!(value <= 113.0, "{value}");
}

/// Whatever it proposes can be done, in an order that holds.
#[test]
fn proposals_can_be_done() {
    for seed in 0..4 {
        let size = Rwnn { nodes: 3, communication: 0.5, seed, ..Rwnn::default() };
        let mut problem = rwnn(&size).unwrap();
        problem.nodes.iter_mut().for_each(|node| node.weight = 1e7 * (1 + node.id) as f64);
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
