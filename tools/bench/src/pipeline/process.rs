//! Resource usage of this process, from Linux's procfs.

use std::fs;

/// Clock ticks per second in procfs (USER_HZ).
const TICKS: f64 = 100.0;
/// Minimum duration of a measurement, in seconds: a hundred ticks give a resolution of one percent.
const ENOUGH: f64 = 1.0;

/// Returns the processor seconds of a run, over all threads: the mean of enough repetitions.
pub(super) fn processor_seconds(mut run: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    let start = processor_time()?;
    let mut runs = 0;
    loop {
        run()?;
        runs += 1;
        let spent = processor_time()? - start;
        if spent >= ENOUGH {
            return Ok(spent / f64::from(runs));
        }
    }
}

/// Returns the user and system time of all threads so far, including terminated ones, in seconds.
fn processor_time() -> Result<f64, String> {
    const FILE: &str = "/proc/self/stat";
    let text = fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))?;
    ticks(&text).map(|ticks| ticks as f64 / TICKS).ok_or_else(|| format!("{FILE}: missing times"))
}

/// Sums the 14th and 15th field; the second is the program's name in parentheses, which may contain spaces.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, kernel): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + kernel)
}

/// Resets the peak of resident memory, if the kernel supports it.
pub(super) fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Returns the peak resident memory, in bytes.
pub(super) fn peak_memory() -> Result<f64, String> {
    const FILE: &str = "/proc/self/status";
    let text = fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
    let kilobytes: Option<f64> = line.and_then(|number| number.trim().parse().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024.0).ok_or_else(|| format!("{FILE}: missing VmHWM"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "42 (a ) b) R 1 2 3 4 5 6 7 8 9 10 120 34 0 0 20 0 4 0 99";
        assert_eq!(ticks(stat), Some(154));
        assert_eq!(ticks("42 (a) R 1 2"), None);
    }

    #[test]
    fn time_passes_and_memory_is_used() {
        let mut sum = 0_u64;
        let seconds = processor_seconds(|| {
            sum = (0..1_000_000).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
            Ok(())
        });
        assert!((1e-6..1.0).contains(&seconds.unwrap()));
        forget_peak();
        let before = peak_memory().unwrap();
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(peak_memory().unwrap() >= before.max(block.len() as f64));
    }
}
