//! Report of a recovery from the death of a rank.

use divi_runtime::Recovery;
use std::io::{self, Write};

/// Prints a recovery as one line.
pub(crate) fn report(recovery: &Recovery) {
    // Nothing can be done about an error of standard error.
    let _ = io::stderr().write_all(line(recovery).as_bytes());
}

fn line(recovery: &Recovery) -> String {
    let Recovery { problem, node, ranks, repeated, duration, tasks_computed_otherwise } = recovery;
    let count = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let outputs = match &tasks_computed_otherwise[..] {
        [] => "outputs keep their bits, as all tasks run the same kernels".to_owned(),
        [first, ..] => format!(
            "outputs may differ by rounding (1e-5), as other kernels compute {}: '{first}'{}",
            count(tasks_computed_otherwise.len(), "task"),
            if tasks_computed_otherwise.len() > 1 { ", …" } else { "" },
        ),
    };
    format!(
        "divi-run: warning: {problem}; continued after {:.3} s with the plan without node {node}, on {}; repeated {}; {outputs}\n",
        duration.as_secs_f64(),
        count(*ranks, "rank"),
        count(*repeated, "request"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_line_names_the_rank_and_the_accuracy() {
        let recovery = |tasks: &[&str]| Recovery {
            problem: "rank 2 has failed (host 'a', stage 's')".into(),
            node: 2,
            ranks: 1,
            repeated: 3,
            duration: Duration::from_millis(120),
            tasks_computed_otherwise: tasks.iter().map(|&task| task.to_owned()).collect(),
        };
        let start = "divi-run: warning: rank 2 has failed (host 'a', stage 's'); continued after 0.120 s with the plan without \
                     node 2, on 1 rank; repeated 3 requests; ";
        assert_eq!(
            line(&recovery(&[])),
            format!("{start}outputs keep their bits, as all tasks run the same kernels\n")
        );
        assert_eq!(
            line(&recovery(&["a", "b"])),
            format!("{start}outputs may differ by rounding (1e-5), as other kernels compute 2 tasks: 'a', …\n")
        );
    }
}
