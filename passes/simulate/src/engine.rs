//! Events of one group of hosts: a fixed number of requests is in flight, and a request that ends is followed by the next one.
//!
//! A resource serves the steps of earlier requests first. If a host of the group fails, the requests in flight are lost, and the
//! group continues after the recovery.

use crate::{
    program::Program,
    scenario::Scenario,
    variation::{Factors, Sampler},
};
use divi_runtime::communicator::{BUSY_SLEEP, idle_sleep};
use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

/// Result of a group; times in µs.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Group {
    /// Latencies of completed requests after the warm-up, in the order of completion.
    pub(crate) latencies: Vec<f64>,
    /// Completed requests after the first one, and the time that they took.
    pub(crate) steady: (u64, f64),
    pub(crate) completed: u64,
    pub(crate) lost: u64,
    /// Time of the last event, and time of recoveries.
    pub(crate) end: f64,
    pub(crate) down: f64,
}

/// Instant in µs as the bits of a number that is not negative, which are in the order of such numbers.
type Instant = u64;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A step has ended.
    End { slot: usize, step: usize },
    /// The receiving host notices that a transfer has ended.
    Arrival { slot: usize, step: usize },
    /// A host fails.
    Failure,
    /// The group works again.
    Recovery,
}

/// Request in flight.
#[derive(Clone, Default)]
struct Request {
    number: u64,
    start: f64,
    /// Measured run whose times it has.
    run: usize,
    /// By step: number of predecessors that have not ended.
    waiting_for: Vec<u32>,
    /// Number of steps that have not ended.
    left: usize,
}

/// Queue of a resource: number of the request, step, slot.
#[derive(Clone, Default)]
struct Queue {
    is_busy: bool,
    /// End of the last step, in µs.
    idle_since: f64,
    ready: BinaryHeap<Reverse<(u64, usize, usize)>>,
}

struct Engine<'a> {
    program: &'a Program,
    scenario: &'a Scenario,
    sampler: Sampler<'a>,
    successors: Vec<Vec<usize>>,
    waiting_for: Vec<u32>,
    slots: Vec<Request>,
    queues: Vec<Queue>,
    /// Pending events: instant, number in the order of creation, event.
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    created: u64,
    submitted: u64,
    now: f64,
    /// End of the first request after the warm-up, or after a recovery.
    group: Group,
    first_end: Option<f64>,
    last_end: f64,
}

/// Simulates a group of hosts.
pub(crate) fn run(program: &Program, scenario: &Scenario, factors: &Factors, seed: u64) -> Group {
    let sampler = Sampler::new(program, &scenario.variation, factors, seed);
    let mut successors = vec![vec![]; program.steps.len()];
    for (step, of) in program.steps.iter().enumerate() {
        of.predecessors.iter().for_each(|&before| successors[before].push(step));
    }
    let in_flight = scenario.in_flight.unwrap_or(program.in_flight).min(scenario.requests as usize);
    let mut engine = Engine {
        program,
        scenario,
        sampler,
        successors,
        waiting_for: program.steps.iter().map(|step| step.predecessors.len() as u32).collect(),
        slots: vec![Request::default(); in_flight],
        queues: vec![Queue::default(); program.resources.len()],
        events: BinaryHeap::new(),
        created: 0,
        submitted: 0,
        now: 0.0,
        group: Group::default(),
        first_end: None,
        last_end: 0.0,
    };
    engine.run();
    engine.group
}

impl Engine<'_> {
    fn run(&mut self) {
        self.schedule_failure();
        self.submit_all();
        let all = self.scenario.requests;
        while self.group.completed + self.group.lost < all {
            let Some(Reverse((now, _, event))) = self.events.pop() else { break };
            self.now = f64::from_bits(now);
            match event {
                Event::End { slot, step } => self.end(slot, step),
                Event::Arrival { slot, step } => self.follow(slot, step),
                Event::Failure => self.fail(),
                Event::Recovery => {
                    self.schedule_failure();
                    self.submit_all();
                }
            }
        }
        self.group.end = self.now;
        self.group.steady.1 = self.last_end - self.first_end.unwrap_or(self.last_end);
    }

    fn schedule(&mut self, after: f64, event: Event) {
        self.created += 1;
        self.events.push(Reverse(((self.now + after).to_bits(), self.created, event)));
    }

    fn schedule_failure(&mut self) {
        let per_micro = self.scenario.failures_per_hour * self.program.hosts as f64 / 3.6e9;
        if per_micro > 0.0 {
            let after = self.sampler.exponential() / per_micro;
            self.schedule(after, Event::Failure);
        }
    }

    /// Loses all requests in flight.
    fn fail(&mut self) {
        self.events.clear();
        self.queues.iter_mut().for_each(|queue| *queue = Queue::default());
        self.group.lost += self.slots.iter().filter(|slot| slot.left > 0).count() as u64;
        self.slots.iter_mut().for_each(|slot| slot.left = 0);
        self.group.down += self.scenario.recovery;
        self.schedule(self.scenario.recovery, Event::Recovery);
    }

    fn submit_all(&mut self) {
        (0..self.slots.len()).for_each(|slot| self.submit(slot));
    }

    /// Submits the next request, if there is one.
    fn submit(&mut self, slot: usize) {
        if self.submitted == self.scenario.requests {
            return;
        }
        let run = self.sampler.run();
        let request = &mut self.slots[slot];
        (request.number, request.start, request.run) = (self.submitted, self.now, run);
        request.left = self.program.steps.len();
        request.waiting_for.clone_from(&self.waiting_for);
        self.submitted += 1;
        for step in 0..self.program.steps.len() {
            if self.waiting_for[step] == 0 {
                self.make_ready(slot, step);
            }
        }
    }

    fn make_ready(&mut self, slot: usize, step: usize) {
        match self.program.steps[step].resource {
            None => self.start(slot, step),
            Some(resource) => {
                let number = self.slots[slot].number;
                self.queues[resource].ready.push(Reverse((number, step, slot)));
                self.serve(resource);
            }
        }
    }

    /// Starts the first step of a queue, if its resource is idle.
    fn serve(&mut self, resource: usize) {
        let queue = &mut self.queues[resource];
        if queue.is_busy {
            return;
        }
        if let Some(Reverse((_, step, slot))) = queue.ready.pop() {
            queue.is_busy = true;
            self.start(slot, step);
        }
    }

    fn start(&mut self, slot: usize, step: usize) {
        let run = self.slots[slot].run;
        let time = self.sampler.time(step, run);
        self.schedule(time, Event::End { slot, step });
    }

    /// Ends a step: first for its successors, because their steps have priority over later requests.
    fn end(&mut self, slot: usize, step: usize) {
        let delay = self.polling_delay(step);
        match delay {
            Some(delay) => self.schedule(delay, Event::Arrival { slot, step }),
            None => self.release(slot, step),
        }
        if let Some(resource) = self.program.steps[step].resource {
            let queue = &mut self.queues[resource];
            (queue.is_busy, queue.idle_since) = (false, self.now);
            self.serve(resource);
        }
        if delay.is_none() {
            self.complete_if_done(slot);
        }
    }

    /// Continues after a transfer that the receiving host has noticed.
    fn follow(&mut self, slot: usize, step: usize) {
        self.release(slot, step);
        self.complete_if_done(slot);
    }

    /// Returns the time in µs until a host notices a transfer from another one; `None` without polling. Its last poll was at any time
    /// within the sleep before.
    fn polling_delay(&mut self, step: usize) -> Option<f64> {
        let (from, to) = self.program.steps[step].link.filter(|_| self.scenario.has_polling)?;
        let [here, there] = [from, to].map(|device| self.program.resources[device].host);
        if here == there {
            return None;
        }
        let queue = &self.queues[to];
        let sleep = match queue.is_busy {
            true => BUSY_SLEEP,
            false => idle_sleep(Duration::from_nanos(((self.now - queue.idle_since).max(0.0) * 1e3) as u64)),
        };
        Some(self.sampler.up_to(sleep.as_secs_f64() * 1e6))
    }

    /// Makes the successors of a step ready whose other predecessors have ended.
    fn release(&mut self, slot: usize, step: usize) {
        self.slots[slot].left -= 1;
        for index in 0..self.successors[step].len() {
            let next = self.successors[step][index];
            self.slots[slot].waiting_for[next] -= 1;
            if self.slots[slot].waiting_for[next] == 0 {
                self.make_ready(slot, next);
            }
        }
    }

    fn complete_if_done(&mut self, slot: usize) {
        if self.slots[slot].left == 0 {
            self.complete(slot);
        }
    }

    fn complete(&mut self, slot: usize) {
        self.group.completed += 1;
        if self.slots[slot].number >= self.scenario.warm_up {
            self.group.latencies.push(self.now - self.slots[slot].start);
            match self.first_end {
                None => self.first_end = Some(self.now),
                Some(_) => self.group.steady.0 += 1,
            }
            self.last_end = self.now;
        }
        self.submit(slot);
    }
}
