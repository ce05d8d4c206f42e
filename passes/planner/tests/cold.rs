//! Cold starts: plans of small problems against enumeration of all placements, parameter sources and orders; invalid
//! copies are rejected.

#[path = "small/flows.rs"]
mod flows;
#[path = "small/random_problem.rs"]
mod random_problem;
#[path = "small/refusal.rs"]
mod refusal;

use divi_planner::plan::{Limit, Schedule};
use divi_planner::problem::{Cold, Contention, MemoryModel};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Error, Objective, Options, Plan, Problem, solve, verify};
use flows::{On, Step, least_shared};
use random_problem::{Size, problem};
use refusal::refuses;

const SLACK: f64 = 1e-9;

fn options(iterations: u64) -> Options {
    Options { limit: Some(Limit::Iterations(iterations)), ..Options::default() }
}

/// Generates a problem with parameters on the first device; some are resident elsewhere, some can be read remotely.
fn cold(size: &Size, random: &mut Random) -> Problem {
    let mut problem = problem(size, random);
    problem.memory_model = MemoryModel::Static;
    problem.contention = [Contention::Exclusive, Contention::Exclusive, Contention::Off][random.below(3)];
    let (nodes, devices) = (problem.nodes.len(), problem.devices.len());
    let name = |random: &mut Random| ["a", "a", "b"].get(random.below(4)).map(|name| (*name).to_owned());
    problem.bus = Some((0..devices).map(|_| (0..devices).map(|_| name(random)).collect()).collect());
    let direct = |node: usize, random: &mut Random| {
        let time = |device: usize, random: &mut Random| {
            let linked = device == 0 || problem.bandwidth[0][device] != Some(BytesPerMicro::ZERO);
            let own = problem.nodes[node].time[&1][device].filter(|_| linked && random.chance(0.7))?;
            Some(own + Micros(random.below(12) as f64))
        };
        random.chance(0.6).then(|| (0..devices).map(|device| time(device, random)).collect())
    };
    let mut start = Cold::from_host(0);
    if random.chance(0.6) {
        start.direct = Some((0..nodes).map(|node| direct(node, random)).collect());
    }
    if random.chance(0.3) {
        let resident = |random: &mut Random| random.chance(0.4).then(|| random.below(devices));
        start.resident = Some((0..nodes).map(|_| resident(random)).collect());
    }
    problem.cold = Some(start);
    problem
}

/// Operation that takes time on a device, on a bus, or on both.
#[derive(Clone)]
struct Op {
    on: Vec<String>,
    /// Includes the latency of a transfer.
    time: Micros,
    latency: Micros,
    after: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    There,
    Copy,
    Via(usize),
    Direct,
}

struct Everything<'a> {
    problem: &'a Problem,
    cold: &'a Cold,
    best: Micros,
}

impl Everything<'_> {
    fn ways(&self, node: usize, device: usize) -> Vec<Way> {
        let of = &self.problem.nodes[node];
        if of.weight == Bytes::ZERO || self.cold.is_there(node, device) {
            return vec![Way::There];
        }
        let devices = 1..self.problem.devices.len();
        let mut ways = vec![Way::Copy];
        ways.extend(devices.filter(|via| *via != device).map(Way::Via));
        ways.extend(self.cold.direct_time(node, device).map(|_| Way::Direct));
        ways
    }

    fn place(&mut self, chosen: &mut Vec<(usize, Way)>) {
        let node = chosen.len();
        if node == self.problem.nodes.len() {
            let mut groups = self.problem.colocate.iter().flatten();
            let together = groups.all(|group| group.iter().all(|node| chosen[*node].0 == chosen[group[0]].0));
            if let Some(ops) = self.ops(chosen).filter(|_| together && self.fits(chosen)) {
                if self.problem.contention == Contention::Shared {
                    self.best = self.best.min(least_shared(&steps(&ops, chosen)));
                    return;
                }
                let mut ends = vec![None; ops.len()];
                self.order(&ops, &mut ends, &mut Vec::new());
            }
            return;
        }
        for device in 0..self.problem.devices.len() {
            let of = &self.problem.nodes[node];
            if of.pin.is_some_and(|pin| pin != device) || of.time[&1][device].is_none() {
                continue;
            }
            for way in self.ways(node, device) {
                chosen.push((device, way));
                self.place(chosen);
                chosen.pop();
            }
        }
    }

    fn fits(&self, chosen: &[(usize, Way)]) -> bool {
        let results = self.problem.output_bytes();
        self.problem.devices.iter().all(|device| {
            let mut held = Bytes::ZERO;
            for (node, (on, way)) in chosen.iter().enumerate() {
                let of = &self.problem.nodes[node];
                if *on == device.id {
                    held += of.input + results[node] + if *way == Way::Direct { Bytes::ZERO } else { of.weight };
                }
                let is_there = self.cold.is_there(node, device.id);
                held += if *way == Way::Via(device.id) && !is_there { of.weight } else { Bytes::ZERO };
            }
            device.memory.is_none_or(|memory| held <= memory)
        })
    }

    fn bus(&self, from: usize, to: usize) -> Vec<String> {
        let rows = self.problem.bus.as_ref().filter(|_| self.problem.contention != Contention::Off);
        rows.and_then(|rows| rows[from][to].clone()).map(|name| format!("bus {name}")).into_iter().collect()
    }

    /// Returns a transfer after other operations; `None` without a link.
    fn moved(&self, from: usize, to: usize, bytes: Bytes, after: Vec<usize>) -> Option<Op> {
        let bandwidth = self.problem.bandwidth[from][to].unwrap_or(BytesPerMicro::INFINITY);
        let latency = self.problem.link_latency.as_ref().and_then(|rows| rows[from][to]).unwrap_or_default();
        (bandwidth > BytesPerMicro::ZERO).then(|| Op {
            on: self.bus(from, to),
            time: bytes / bandwidth + latency,
            latency,
            after,
        })
    }

    /// Returns one operation per node, then transfers and copies; `None` if a link is missing.
    fn ops(&self, chosen: &[(usize, Way)]) -> Option<Vec<Op>> {
        let host = self.cold.host;
        let mut ops: Vec<Op> = Vec::new();
        for (node, (device, way)) in chosen.iter().enumerate() {
            let direct = self.cold.direct_time(node, *device).filter(|_| *way == Way::Direct);
            let time = direct.or(self.problem.nodes[node].time[&1][*device])?;
            let mut on = vec![format!("device {device}")];
            if direct.is_some() {
                on.extend(self.bus(host, *device));
            }
            ops.push(Op { on, time, latency: Micros::ZERO, after: Vec::new() });
        }
        for tensor in self.problem.all_tensors() {
            let home = chosen[tensor.from].0;
            for to in (0..self.problem.devices.len()).filter(|to| *to != home) {
                let readers: Vec<usize> = tensor.to.iter().copied().filter(|reader| chosen[*reader].0 == to).collect();
                if !readers.is_empty() {
                    let place = ops.len();
                    readers.iter().for_each(|reader| ops[*reader].after.push(place));
                    ops.push(self.moved(home, to, tensor.bytes, vec![tensor.from])?);
                }
            }
            for reader in tensor.to.iter().filter(|reader| chosen[**reader].0 == home) {
                ops[*reader].after.push(tensor.from);
            }
        }
        for (node, (device, way)) in chosen.iter().enumerate() {
            let bytes = self.problem.nodes[node].weight;
            let mut leg = |from: usize, to: usize, after: Vec<usize>| {
                ops.push(self.moved(from, to, bytes, after)?);
                Some(ops.len() - 1)
            };
            let last = match *way {
                Way::There | Way::Direct => continue,
                Way::Copy => leg(host, *device, Vec::new())?,
                Way::Via(via) if self.cold.is_there(node, via) => leg(via, *device, Vec::new())?,
                Way::Via(via) => {
                    let first = leg(host, via, Vec::new())?;
                    leg(via, *device, vec![first])?
                }
            };
            ops[node].after.push(last);
        }
        Some(ops)
    }

    fn order(&mut self, ops: &[Op], ends: &mut Vec<Option<Micros>>, free: &mut Vec<(String, Micros)>) {
        let so_far = ends.iter().flatten().copied().fold(Micros::ZERO, Micros::max);
        if so_far >= self.best {
            return;
        }
        if ends.iter().all(Option::is_some) {
            self.best = so_far;
            return;
        }
        for next in 0..ops.len() {
            let op = &ops[next];
            if ends[next].is_some() || op.after.iter().any(|other| ends[*other].is_none()) {
                continue;
            }
            let ready = op.after.iter().filter_map(|other| ends[*other]).fold(Micros::ZERO, Micros::max);
            let on = if op.time > Micros::ZERO || op.on.iter().any(|name| name.starts_with("device")) {
                &op.on[..]
            } else {
                &[]
            };
            let taken = free.iter().filter(|(name, _)| on.contains(name)).map(|(_, end)| *end).fold(ready, Micros::max);
            let before = free.len();
            free.extend(on.iter().map(|name| (name.clone(), taken + op.time)));
            ends[next] = Some(taken + op.time);
            self.order(ops, ends, free);
            ends[next] = None;
            free.truncate(before);
        }
    }
}

/// Returns the steps for shared buses: first the launches.
fn steps(ops: &[Op], chosen: &[(usize, Way)]) -> Vec<Step> {
    let step = |(index, op): (usize, &Op)| {
        let on = match chosen.get(index) {
            Some((device, _)) => On::Device(*device),
            None => On::Bus(op.on.first().cloned()),
        };
        Step { on, latency: op.latency, time: op.time - op.latency, after: op.after.clone() }
    };
    ops.iter().enumerate().map(step).collect()
}

fn best(problem: &Problem) -> Option<Micros> {
    let cold = problem.cold.as_ref()?;
    let mut everything = Everything { problem, cold, best: Micros::INFINITY };
    everything.place(&mut Vec::new());
    everything.best.is_finite().then_some(everything.best)
}

/// Returns the number of solved problems, of those for which sortinghat found the optimum, and of failures to find a
/// plan.
fn examine(count: usize, mut next: impl FnMut() -> Problem) -> (usize, usize, usize) {
    let (mut solved, mut found, mut limited) = (0, 0, 0);
    while solved < count {
        let problem = next();
        let best = best(&problem);
        for algorithm in ["sortinghat", "heft", "auto"] {
            match (solve(&problem, Objective::Latency, algorithm, &options(2000)), best) {
                (Ok(plan), Some(best)) => {
                    let text =
                        || format!("{algorithm}: {} and {} of {best}\n{}", plan.value, plan.bound, problem.write());
                    assert!(plan.value >= best * (1.0 - SLACK), "{}", text());
                    assert!(plan.bound <= best * (1.0 + SLACK), "{}", text());
                    assert_eq!(Plan::read(&plan.write()).as_ref(), Ok(&plan));
                    if algorithm == "sortinghat" {
                        solved += 1;
                        found += usize::from(plan.value <= best * (1.0 + SLACK));
                    }
                }
                (Ok(plan), None) => panic!("{algorithm}: {} of nothing\n{}", plan.value, problem.write()),
                (Err(Error::Problem(_)), None) => {}
                (Err(Error::NotFound(_) | Error::Infeasible(_)), _) => limited += usize::from(best.is_some()),
                (Err(error), _) => panic!("{algorithm}: {error}\n{}", problem.write()),
            }
        }
    }
    (solved, found, limited)
}

#[test]
fn against_everything() {
    let mut random = Random::new(1);
    let (solved, found, limited) = examine(40, || cold(&Size { nodes: 3, devices: 3, inputs: 1 }, &mut random));
    assert!(found * 100 >= solved * 95, "{found} of {solved}");
    assert!(limited * 5 <= solved, "{limited} not found of {solved}");
}

/// The same where copies and transfers share buses; nothing is read from the host, where flows may wait for launches.
#[test]
fn shared_buses_against_everything() {
    let mut random = Random::new(3);
    let (solved, found, limited) = examine(30, || {
        let mut problem = cold(&Size { nodes: 2, devices: 3, inputs: 1 }, &mut random);
        problem.contention = Contention::Shared;
        problem.cold.iter_mut().for_each(|cold| cold.direct = None);
        problem
    });
    assert!(found * 100 >= solved * 95, "{found} of {solved}");
    assert!(limited * 5 <= solved, "{limited} not found of {solved}");
}

/// Plans with shared buses are valid, and no better than their bounds; problems survive writing and reading.
#[test]
fn shared_buses_and_liveness() {
    let mut random = Random::new(2);
    let mut solved = 0;
    while solved < 25 {
        let mut problem = cold(&Size { nodes: 6, devices: 3, inputs: 1 }, &mut random);
        problem.contention = [Contention::Shared, Contention::Exclusive][random.below(2)];
        problem.memory_model = MemoryModel::Liveness;
        assert_eq!(Problem::read(&problem.write()).as_ref(), Ok(&problem));
        match solve(&problem, Objective::Latency, "sortinghat", &options(300)) {
            Ok(plan) => {
                assert_eq!(verify(&problem, &plan).map(|value| value == plan.value), Ok(true));
                assert!(plan.bound <= plan.value * (1.0 + SLACK));
                solved += 1;
            }
            Err(Error::NotFound(_) | Error::Infeasible(_) | Error::Problem(_)) => {}
            Err(error) => panic!("{error}\n{}", problem.write()),
        }
    }
}

/// Two tasks in a chain with parameters, two devices on one bus and a link of their own.
fn chain(contention: &str) -> Problem {
    let text = r#"{"format":"divi-problem/1","name":"chain","contention":"exclusive",
        "devices":[{"id":0,"name":"cpu0","memory":100},{"id":1,"name":"gpu0","memory":60},{"id":2,"name":"gpu1"}],
        "bandwidth":[[null,1,1],[1,null,10],[1,10,null]],"bus":[[null,"pcie","pcie"],[null,null,"nv"],[null,"nv",null]],
        "nodes":[
        {"id":0,"name":"a","time":{"1":[null,5,5]},"weight":20,"input":0,"output":10},
        {"id":1,"name":"b","time":{"1":[null,5,5]},"weight":30,"input":10,"output":0}],
        "edges":[[0,1]],"cold":{"host":0,"direct":[[null,22,22],null]}}"#;
    Problem::read(&text.replace("exclusive", contention)).expect("a problem")
}

#[test]
fn copies_on_one_bus() {
    let problem = chain("exclusive");
    let plan = solve(&problem, Objective::Latency, "sortinghat", &options(2000)).unwrap();
    // Both copies in sequence: 20 + 30, then b runs; a has run by then.
    assert_eq!((plan.value, plan.bound, plan.copies.len()), (Micros(55.0), plan.bound, 2));
    assert!(plan.bound >= Micros(49.9), "{}", plan.bound);
    let mut both = plan.clone();
    let late = both.copies.iter_mut().find(|copy| copy.start > Micros::ZERO).unwrap();
    (late.start, late.end) = (late.start - Micros(5.0), late.end - Micros(5.0));
    refuses(&problem, &both, "is on the bus until");
    let mut early = plan.clone();
    let Schedule::Latency { start, .. } = &mut early.schedule else { panic!("a latency plan") };
    start[1] -= Micros(1.0);
    refuses(&problem, &early, "node 1 (b): starts at 49 on device");
    let mut none = plan.clone();
    none.copies.retain(|copy| copy.node == 0);
    refuses(&problem, &none, "but its parameters are not copied there, and it cannot read them from the host");
    let mut short = plan.clone();
    short.copies[0].end -= Micros(1.0);
    refuses(&problem, &short, "µs");
    let mut twice = plan.clone();
    twice.copies.push(twice.copies[0].clone());
    refuses(&problem, &twice, "has another copy to there");
    let mut unknown = plan.clone();
    (unknown.copies[0].node, unknown.copies[1].to) = (9, 9);
    refuses(&problem, &unknown, "there is no node 9; there are 2");
    refuses(&problem, &unknown, "there is no device 9; there are 3");
    let mut from_nowhere = plan.clone();
    let other = 3 - from_nowhere.copies[0].to;
    from_nowhere.copies[0].via = Some(other);
    refuses(&problem, &from_nowhere, "but the host does not copy the parameters there");
    for hostile in [f64::NAN, f64::INFINITY, -1.0] {
        let mut plan = plan.clone();
        plan.copies[0].start = Micros(hostile);
        assert!(verify(&problem, &plan).is_err());
    }
    let mut warm = problem.clone();
    warm.cold = None;
    let mut other = plan.clone();
    other.problem = warm.hash();
    refuses(&warm, &other, "copies: the problem has no cold start");
    let free = solve(&chain("off"), Objective::Latency, "sortinghat", &options(2000)).unwrap();
    assert_eq!(free.value, Micros(35.0));
}

/// Constructed plans: a second hop over another device, and parameters that are read from the host.
#[test]
fn ways_of_parameters() {
    let problem = chain("shared");
    let copy = |node, to, via, start, end| {
        let (start, end) = (Micros(start), Micros(end));
        divi_planner::plan::ParameterCopy { node, to, via, start, end }
    };
    let schedule =
        Schedule::Latency { device: vec![1, 1], start: [0.0, 33.0].map(Micros).to_vec(), makespan: Micros(38.0) };
    let mut plan = solve(&problem, Objective::Latency, "heft", &Options::default()).unwrap();
    (plan.schedule, plan.value, plan.transfers) = (schedule, Micros(38.0), Vec::new());
    (plan.bound, plan.gap) = (Micros::ZERO, 1.0);
    // a reads 20 bytes of parameters in 22; b's 30 are copied to the other device, and from there in 3.
    plan.copies = vec![copy(1, 2, None, 0.0, 30.0), copy(1, 1, Some(2), 30.0, 33.0)];
    refuses(
        &problem,
        &plan,
        "bus pcie: the flow between 0 and 30 takes 50 µs with the whole bandwidth: 20 µs too long",
    );
    let schedule =
        Schedule::Latency { device: vec![1, 1], start: [0.0, 53.0].map(Micros).to_vec(), makespan: Micros(58.0) };
    (plan.schedule, plan.value) = (schedule, Micros(58.0));
    plan.copies = vec![copy(1, 2, None, 20.0, 50.0), copy(1, 1, Some(2), 50.0, 53.0)];
    assert_eq!(verify(&problem, &plan), Ok(Micros(58.0)));
    plan.copies[1].start = Micros(49.0);
    refuses(&problem, &plan, "starts at 49, but device 2 (gpu1) has the parameters at 50");
    plan.copies[1].start = Micros(50.0);
    // Read from the host, a's parameters take no memory: 10 and 10 and 30 are 50.
    let tight = |memory: f64| {
        let (mut problem, mut plan) = (problem.clone(), plan.clone());
        problem.devices[1].memory = Some(Bytes(memory));
        plan.problem = problem.hash();
        verify(&problem, &plan)
    };
    assert_eq!(tight(50.0), Ok(Micros(58.0)));
    assert!(tight(49.0).unwrap_err().to_string().contains("device 1 (gpu0): needs 50 bytes, has 49 bytes"));
}

#[test]
fn invalid_cold_starts() {
    let wrong = |replace: (&str, &str), expected: &str| {
        let text = chain("exclusive").write().replacen(replace.0, replace.1, 1);
        let message = Problem::read(&text).and_then(|problem| divi_planner::check(&problem)).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    wrong(("\"host\": 0", "\"host\": 3"), "cold.host: is device 3, but there are 3");
    wrong(("\"host\": 0", "\"host\": 0, \"resident\": [1]"), "cold.resident: has 1 entries, but there are 2 nodes");
    wrong(("\"host\": 0", "\"host\": 0, \"resident\": [7, null]"), "cold.resident[0]: is device 7, but there are 3");
    wrong(("[null, 22, 22]", "[null, 22]"), "cold.direct[0]: has 2 entries, but there are 3 devices");
    wrong(("[null, 22, 22]", "[null, 4, 22]"), "cold.direct[0][1]: is 4, less than with its parameters there: 5");
    wrong(("[null, 22, 22]", "[null, -1, 22]"), "cold.direct[0][1]: -1 is negative");
    wrong(("[null, 5, 5]", "[null, 5]"), "node 0 (a): time[\"1\"] has 2 entries, but there are 3 devices");
    wrong(("[null, 1, 1]", "[null, 1]"), "bandwidth[0]");
    wrong(("[null, 22, 22]", "[9, 22, 22]"), "cold.direct[0][0]: the device does not run one input of it");
    let mut queued = chain("exclusive");
    queued.inputs = 2;
    let error = solve(&queued, Objective::Batch, "heft", &Options::default()).unwrap_err();
    assert!(error.to_string().contains("a cold start is for one input"), "{error}");
}

#[test]
fn a_second_start_is_warmer() {
    let mut problem = chain("exclusive");
    problem.cold = None;
    let cold = problem.cold_start();
    let direct = cold.cold.as_ref().and_then(|cold| cold.direct.clone()).unwrap();
    assert_eq!(direct[0], Some(vec![None, Some(Micros(20.0)), Some(Micros(20.0))]));
    // A task that reads a part of its parameters takes the longer of that transfer and its own time.
    let lookups = problem.cold_start_reading(0, |node| if node.id == 0 { Bytes(7.0) } else { Bytes(1.0) });
    let direct_of = |node: usize| lookups.cold.as_ref().and_then(|cold| cold.direct_time(node, 1));
    assert_eq!((direct_of(0), direct_of(1)), (Some(Micros(7.0)), Some(Micros(5.0))));
    let mut cold = cold;
    cold.cold = Some(Cold::from_host(0));
    let first = solve(&cold, Objective::Latency, "sortinghat", &options(2000)).unwrap();
    let mut values = vec![first.value];
    for share in [0.0, 0.7, 1.0] {
        let warm = cold.still_warm(&first, share);
        values.push(solve(&warm, Objective::Latency, "sortinghat", &options(2000)).unwrap().value);
    }
    assert_eq!(values[0], values[1]);
    assert!(values.windows(2).all(|two| two[0] >= two[1]) && values[3] < values[0], "{values:?}");
}

/// The last two share a device, on which only the first of them would fit.
#[test]
fn groups_that_fit_nowhere_but_on_the_host() {
    let problem = Problem::read(
        r#"{"format":"divi-problem/1","name":"group","memory_model":"static",
        "devices":[{"id":0,"name":"cpu"},{"id":1,"name":"gpu0","memory":0},{"id":2,"name":"gpu1","memory":4.8}],
        "bandwidth":[[null,4,4],[4,null,2],[1,2,null]],"colocate":[[1,2]],
        "nodes":[
        {"id":0,"time":{"1":[5,10,5]},"weight":4,"input":0,"output":1},
        {"id":1,"time":{"1":[15,10,1]},"weight":12,"input":0,"output":1},
        {"id":2,"time":{"1":[5,2,2]},"weight":0,"input":0,"output":4}],
        "edges":[[0,2],[1,2]]}"#,
    )
    .expect("a problem");
    for algorithm in ["auto", "sortinghat", "heft", "single", "met"] {
        let plan = solve(&problem.cold_start(), Objective::Latency, algorithm, &options(200)).unwrap();
        let places = plan.schedule.places(3);
        assert_eq!((&places[1], &places[2]), (&vec![0], &vec![0]), "{algorithm}");
    }
}
