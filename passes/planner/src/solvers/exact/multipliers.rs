//! Load bounds for devices of different speeds, by Lagrangian multipliers.
//!
//! Each device `u` has a share `s_u`; the shares add up to one. A task costs at least `min_u s_u t_u` of weighted time
//! on any device, and by time `T` the devices together offer `Σ s_u (T − free_u)`. So for any shares, a set of tasks
//! cannot end before its weighted work fits. The best shares give the bound of the linear relaxation of the assignment,
//! at the cost of a sum.

use crate::model::units::Micros;

/// Steps of the subgradient ascent to the best shares.
const STEPS: usize = 200;

/// One vector of shares.
#[derive(Clone, Debug)]
pub(crate) struct Multiplier {
    /// By device.
    pub(crate) share: Vec<f64>,
    /// By task: minimum weighted time.
    pub(crate) work_us: Vec<Micros>,
    /// By task: device with the minimum weighted time.
    home: Vec<usize>,
    /// Range of tasks, in topological order, that the shares were optimized for.
    pub(crate) window: std::ops::Range<usize>,
}

impl Multiplier {
    /// Maximizes the weighted work of a range of tasks by multiplicative subgradient steps.
    pub(crate) fn new(time_us: &[Micros], devices: usize, window: std::ops::Range<usize>) -> Self {
        let rows = || time_us.chunks(devices);
        let mut share = vec![1.0 / devices as f64; devices];
        let mut best = (Micros::ZERO, share.clone());
        let mut step = 0.5;
        let mut load = vec![Micros::ZERO; devices];
        for round in 0..STEPS {
            load.fill(Micros::ZERO);
            for row in &mut rows().skip(window.start).take(window.len()) {
                if let Some((device, _)) = cheapest(row, &share) {
                    load[device] += row[device];
                }
            }
            let total: Micros = load.iter().zip(&share).map(|(load, share)| *load * *share).sum();
            if total <= Micros::ZERO {
                break;
            }
            if total > best.0 {
                best = (total, share.clone());
            }
            for (share, load) in share.iter_mut().zip(&load) {
                *share *= (step * (*load / total - 1.0)).clamp(-1.0, 1.0).exp();
            }
            let sum: f64 = share.iter().sum();
            share.iter_mut().for_each(|share| *share /= sum);
            if round % 8 == 7 {
                step *= 0.8;
            }
        }
        let share = best.1;
        let (home, work_us) = rows().map(|row| cheapest(row, &share).unwrap_or((0, Micros::ZERO))).unzip();
        Self { share, work_us, home, window }
    }

    /// Returns multipliers for all tasks and for windows of them, because the remaining work changes along a schedule.
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

    /// Returns the minimum weighted time of a task that is excluded from some devices.
    #[inline]
    pub(crate) fn work_left(&self, task: usize, starts_us: &[Micros], times_us: &[Micros]) -> Micros {
        if starts_us[self.home[task]].is_finite() {
            return self.work_us[task];
        }
        let mut least = Micros::INFINITY;
        for (device, start) in starts_us.iter().enumerate() {
            if start.is_finite() {
                least = least.min(self.share[device] * times_us[device]);
            }
        }
        least
    }

    /// Returns the same shares with the tasks reversed.
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

/// Returns the device with the least weighted time of a task, and that time.
fn cheapest(times_us: &[Micros], share: &[f64]) -> Option<(usize, Micros)> {
    let costs = times_us.iter().zip(share).map(|(time, share)| *time * *share).enumerate();
    costs.filter(|(device, _)| times_us[*device].is_finite()).min_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_reach_the_linear_relaxation() {
        // Two tasks that prefer different devices, and one that takes 6 on either.
        let times = [2.0, 9.0, 9.0, 2.0, 6.0, 6.0].map(Micros);
        let multiplier = Multiplier::new(&times, 2, 0..3);
        let total: Micros = multiplier.work_us.iter().sum();
        assert!((total.0 - 5.0).abs() < 1e-3, "{total}");
        assert!((multiplier.share.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn unsupported_devices_do_not_count() {
        let times = [f64::INFINITY, 4.0, f64::INFINITY, 4.0].map(Micros);
        let multiplier = Multiplier::new(&times, 2, 0..2);
        assert!(multiplier.work_us.iter().sum::<Micros>() > Micros(7.9));
    }
}
