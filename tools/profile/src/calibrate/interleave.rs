//! Interleaved rounds: each network runs once per round, so that all of them see the same states of the machine.
//!
//! Other load only ever slows runs down, for seconds or minutes. The time of each task is therefore its minimum over all rounds: the
//! time on the machine at its fastest during the measurement, which is the same state for all networks.

use super::median;
use std::time::Duration;

/// Minimum number of rounds, whatever the time limit.
const LEAST_ROUNDS: usize = 3;

/// Relative distance from the minimum that counts as close.
const CLOSE: f64 = 0.05;
/// Minimum number of rounds that are close to the minimum, itself included, on a quiet machine.
const WITNESSES: usize = 3;
/// Median slowdown of rounds from which a machine is not quiet.
const SLOW: f64 = 1.1;

/// Network that is measured in bursts of runs.
pub(super) trait Burst {
    /// Runs a few times and returns the times.
    fn run(&mut self) -> Result<Times, String>;
}

/// Times of a network, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Times {
    pub(super) tasks: Vec<f64>,
    /// Time of a whole run.
    pub(super) whole: f64,
}

/// Result of the rounds.
#[derive(Debug, PartialEq)]
pub(super) struct Measured {
    /// Minima of each network.
    pub(super) minima: Vec<Times>,
    /// Times of whole runs, by round and network.
    wholes: Vec<Vec<f64>>,
}

/// Times of rounds relative to the fastest ones. The time of a round is the median over the networks, each relative to its minimum.
#[derive(Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) rounds: usize,
    pub(super) median: f64,
    pub(super) largest: f64,
    /// Number of networks that are close to their minimum in too few rounds.
    pub(super) unconfirmed: usize,
}

/// Measures all networks in rounds until another round would exceed the time limit. `elapsed` returns the time since the start, `notify`
/// is called with it after each round.
pub(super) fn interleave(
    networks: &mut [impl Burst],
    limit: Duration,
    elapsed: impl Fn() -> Duration,
    notify: impl Fn(Duration),
) -> Result<Measured, String> {
    let mut rounds = Measured { minima: vec![], wholes: vec![] };
    let (mut end, mut longest) = (elapsed(), Duration::ZERO);
    while rounds.wholes.len() < LEAST_ROUNDS || end + longest <= limit {
        let round = networks.iter_mut().map(Burst::run).collect::<Result<Vec<_>, _>>()?;
        rounds.add(round);
        let start = std::mem::replace(&mut end, elapsed());
        longest = longest.max(end.saturating_sub(start));
        notify(end);
    }
    Ok(rounds)
}

impl Measured {
    fn add(&mut self, round: Vec<Times>) {
        self.wholes.push(round.iter().map(|times| times.whole).collect());
        if self.minima.is_empty() {
            self.minima = round;
            return;
        }
        for (minima, times) in self.minima.iter_mut().zip(round) {
            minima.whole = minima.whole.min(times.whole);
            minima.tasks.iter_mut().zip(times.tasks).for_each(|(least, time)| *least = least.min(time));
        }
    }

    /// Returns how far the rounds are apart.
    pub(super) fn spread(&self) -> Spread {
        let slowdowns = |round: &Vec<f64>| {
            median(round.iter().zip(&self.minima).map(|(whole, minima)| whole / minima.whole).collect()).unwrap_or(1.0)
        };
        let rounds: Vec<f64> = self.wholes.iter().map(slowdowns).collect();
        let is_confirmed = |network: &usize| {
            let close = |round: &&Vec<f64>| round[*network] <= (1.0 + CLOSE) * self.minima[*network].whole;
            self.wholes.iter().filter(close).count() >= WITNESSES
        };
        Spread {
            rounds: rounds.len(),
            largest: rounds.iter().copied().fold(1.0, f64::max),
            median: median(rounds).unwrap_or(1.0),
            unconfirmed: (0..self.minima.len()).filter(|network| !is_confirmed(network)).count(),
        }
    }
}

impl Spread {
    /// Returns a note if the rounds disagree.
    pub(super) fn note(&self) -> Option<String> {
        let Self { median, largest, unconfirmed, .. } = self;
        if *median < SLOW && *unconfirmed == 0 {
            return None;
        }
        let minima = match unconfirmed {
            0 => String::new(),
            1 => format!(", and 1 network was close to its minimum in fewer than {WITNESSES} rounds"),
            count => format!(", and {count} networks were close to their minima in fewer than {WITNESSES} rounds"),
        };
        Some(format!(
            "note: the machine was not quiet: the median round took {median:.2} times the minimum, the slowest {largest:.2} times\
             {minima}; calibrate again when nothing else runs"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// Machine with a clock, whose runs take longer at some times.
    struct Machine {
        now: Cell<f64>,
        /// Slowdown at a time in seconds.
        slowdown: fn(f64) -> f64,
        /// Names of the networks in the order of their bursts.
        order: RefCell<String>,
    }

    /// Network whose bursts take 100 times as long as its tasks.
    struct Network<'a> {
        name: char,
        tasks: Vec<f64>,
        machine: &'a Machine,
    }

    impl Burst for Network<'_> {
        fn run(&mut self) -> Result<Times, String> {
            let machine = self.machine;
            machine.order.borrow_mut().push(self.name);
            let factor = (machine.slowdown)(machine.now.get());
            let whole = self.tasks.iter().sum::<f64>() * factor;
            machine.now.set(machine.now.get() + 100.0 * whole / 1e6);
            Ok(Times { tasks: self.tasks.iter().map(|task| task * factor).collect(), whole })
        }
    }

    fn measure(seconds: f64, slowdown: fn(f64) -> f64) -> (Measured, f64, String) {
        let machine = Machine { now: Cell::new(0.0), slowdown, order: RefCell::default() };
        let network = |name, tasks: &[f64]| Network { name, tasks: tasks.to_vec(), machine: &machine };
        // A burst takes 0.1 s, 0.4 s and 0.5 s.
        let mut networks = [network('a', &[1000.0]), network('b', &[1500.0, 2500.0]), network('c', &[5000.0])];
        let elapsed = || Duration::from_secs_f64(machine.now.get());
        let rounds = interleave(&mut networks, Duration::from_secs_f64(seconds), elapsed, |_| ()).unwrap();
        (rounds, machine.now.get(), machine.order.take())
    }

    fn minima() -> Vec<Times> {
        let times = |tasks: &[f64]| Times { tasks: tasks.to_vec(), whole: tasks.iter().sum() };
        vec![times(&[1000.0]), times(&[1500.0, 2500.0]), times(&[5000.0])]
    }

    #[test]
    fn networks_take_turns_until_the_limit() {
        let (rounds, end, order) = measure(5.5, |_| 1.0);
        assert_eq!((order, rounds.minima.clone()), ("abc".repeat(5), minima()));
        assert!((end - 5.0).abs() < 1e-6, "{end}");
        let quiet = Spread { rounds: 5, median: 1.0, largest: 1.0, unconfirmed: 0 };
        assert_eq!((rounds.spread(), quiet.note()), (quiet, None));
        // A round that would exceed the limit is not started; without time there are still three.
        let (rounds, end, _) = measure(20.0, |now| if now < 4.0 { 3.0 } else { 1.0 });
        assert!(end > 17.0 && end <= 20.0, "{end}");
        assert_eq!(rounds.minima, minima());
        assert_eq!(measure(0.0, |_| 1.0).2, "abc".repeat(3));
    }

    /// A machine that is slow for seconds at a time, whichever network runs then.
    #[test]
    fn slow_states_of_the_machine_do_not_count() {
        let (rounds, _, _) = measure(60.0, |now| if now % 10.0 < 4.0 { 2.5 } else { 1.0 });
        assert_eq!(rounds.minima, minima());
        let spread = rounds.spread();
        assert_eq!((spread.largest, spread.unconfirmed), (2.5, 0), "{spread:?}");
        assert!(spread.median < SLOW && spread.note().is_none(), "{spread:?}");
    }

    #[test]
    fn disagreement_is_reported() {
        let (rounds, _, _) = measure(30.0, |now| if now < 1.9 { 1.0 } else { 1.8 });
        let spread = rounds.spread();
        assert_eq!((spread.unconfirmed, rounds.minima), (3, minima()));
        let note = spread.note().unwrap();
        let start =
            "note: the machine was not quiet: the median round took 1.80 times the minimum, the slowest 1.80 times, ";
        assert!(note.starts_with(start), "{note}");
        assert!(note.contains(" 3 networks were close to their minima in fewer than 3 rounds; "), "{note}");
    }

    #[test]
    fn errors_end_the_measurement() {
        struct Broken;
        impl Burst for Broken {
            fn run(&mut self) -> Result<Times, String> {
                Err("broken".to_owned())
            }
        }
        let outcome = interleave(&mut [Broken], Duration::ZERO, || Duration::ZERO, |_| ());
        assert_eq!(outcome, Err("broken".to_owned()));
    }
}
