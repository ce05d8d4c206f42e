//! Load bounds for devices of different speeds, by Lagrangian multipliers.
//!
//! Give each device `u` a share `s_u`, all shares together one. A task costs at least `min_u s_u t_u` of shared time
//! wherever it runs, and by time `T` the devices together offer `Σ s_u (T − free_u)`. So whatever the shares, a set of
//! tasks cannot be done before its shared work fits. With the right shares this is the linear relaxation of the
//! assignment, at the price of a sum.

use crate::model::units::Micros;

/// Steps of the ascent to the best shares.
const STEPS: usize = 200;

/// One choice of shares.
#[derive(Clone, Debug)]
pub(crate) struct Multiplier {
    /// By device.
    pub(crate) share: Vec<f64>,
    /// By task: the shared time that it costs at least.
    pub(crate) work_us: Vec<Micros>,
    /// By task: the device where it costs that.
    home: Vec<usize>,
    /// The tasks that the shares were chosen for, in topological order.
    pub(crate) window: std::ops::Range<usize>,
}

impl Multiplier {
    /// The shares that make the work of some tasks heaviest: projected steps towards the devices that would have most
    /// of it.
    pub(crate) fn new(time_us: &[Micros], devices: usize, window: std::ops::Range<usize>) -> Self {
        let rows = || time_us.chunks(devices);
        let mut share = vec![1.0 / devices as f64; devices];
        let mut best = (0.0, share.clone());
        let mut step = 0.5;
        let mut load = vec![0.0; devices];
        for round in 0..STEPS {
            load.fill(0.0);
            for row in &mut rows().skip(window.start).take(window.len()) {
                if let Some((device, _)) = cheapest(row, &share) {
                    load[device] += row[device];
                }
            }
            let total: f64 = load.iter().zip(&share).map(|(load, share)| load * share).sum();
            if total <= 0.0 {
                break;
            }
            if total > best.0 {
                best = (total, share.clone());
            }
            for (share, load) in share.iter_mut().zip(&load) {
                *share *= (step * (load / total - 1.0)).clamp(-1.0, 1.0).exp();
            }
            let sum: f64 = share.iter().sum();
            share.iter_mut().for_each(|share| *share /= sum);
            if round % 8 == 7 {
                step *= 0.8;
            }
        }
        let share = best.1;
        let (home, work_us) = rows().map(|row| cheapest(row, &share).unwrap_or((0, 0.0))).unzip();
        Self { share, work_us, home, window }
    }

    /// Multipliers for the whole and for stretches of it, because what is left to do changes along a schedule.
    pub(crate) fn family(time_us: &[Micros], devices: usize) -> Vec<Self> {
        let tasks = time_us.len() / devices;
        let mut windows: Vec<_> = std::iter::once(0..tasks).collect();
        let mut length = if tasks <= 48 { tasks / 2 } else { 48 };
        while length >= 8 {
            let stride = if tasks <= 48 { length } else { length / 2 };
            let mut start = 0;
            while start < tasks {
                windows.push(start..tasks.min(start + length));
                start += stride;
            }
            length /= 2;
        }
        windows.into_iter().map(|window| Self::new(time_us, devices, window)).collect()
    }

    /// What a task costs at least when it cannot start on some devices.
    #[inline]
    pub(crate) fn work_left(&self, task: usize, starts_us: &[Micros], times_us: &[Micros]) -> Micros {
        if starts_us[self.home[task]].is_finite() {
            return self.work_us[task];
        }
        let mut least = f64::INFINITY;
        for (device, start) in starts_us.iter().enumerate() {
            if start.is_finite() {
                least = least.min(self.share[device] * times_us[device]);
            }
        }
        least
    }

    /// The same shares with the tasks in reverse.
    pub(crate) fn reversed(&self) -> Self {
        let tasks = self.work_us.len();
        Self {
            share: self.share.clone(),
            work_us: self.work_us.iter().rev().copied().collect(),
            home: self.home.iter().rev().copied().collect(),
            window: tasks - self.window.end..tasks - self.window.start,
        }
    }
}

/// Where a task costs least shared time, and how much.
fn cheapest(times_us: &[Micros], share: &[f64]) -> Option<(usize, f64)> {
    let costs = times_us.iter().zip(share).map(|(time, share)| time * share).enumerate();
    costs.filter(|(device, _)| times_us[*device].is_finite()).min_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_reach_the_linear_relaxation() {
        // Two tasks at home on a device each, and one that halves nicely: 6 on either.
        let times = [2.0, 9.0, 9.0, 2.0, 6.0, 6.0];
        let multiplier = Multiplier::new(&times, 2, 0..3);
        let total: f64 = multiplier.work_us.iter().sum();
        assert!((total - 5.0).abs() < 1e-3, "{total}");
        assert!((multiplier.share.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_run_does_not_count() {
        let times = [f64::INFINITY, 4.0, f64::INFINITY, 4.0];
        let multiplier = Multiplier::new(&times, 2, 0..2);
        assert!(multiplier.work_us.iter().sum::<f64>() > 7.9);
    }
}
