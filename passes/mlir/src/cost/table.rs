//! `divi-print-costs`: prints the costs of a module as a table.

use super::{
    memory,
    read::{Costs, TaskCost, read},
};
use crate::{
    declared::PrintCosts,
    ir::{Failure, error},
};
use divi_cost::Bytes;
use divi_dialect::Operation;
use std::fmt::Write;

/// Format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns: the most expensive tasks, at the smallest batch size.
    Text,
    /// Comma-separated values: every task, every batch size.
    Csv,
}

//===----------------------------------------------------------------------===//
// --divi-print-costs
//===----------------------------------------------------------------------===//

/// Returns the cost table of a module. The text format has at most `limit` tasks (0: all).
pub fn print_costs(module: Operation<'_>, format: Format, limit: usize) -> Result<String, Failure> {
    let costs = read(module)?;
    Ok(match format {
        Format::Text => text_table(&costs, limit),
        Format::Csv => csv(&costs),
    })
}

/// Formats rows of cells as columns, the first two left-aligned and the others right-aligned.
fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (i, cell) in row.iter().enumerate() {
            let width = width(i).unwrap_or(0);
            let gap = if i == 0 { "" } else { "  " };
            // Writing to a String cannot fail.
            let _ = if i < 2 { write!(line, "{gap}{cell:<width$}") } else { write!(line, "{gap}{cell:>width$}") };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Escapes control characters of a name.
fn printable(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

fn kilobytes(task: &TaskCost<'_>) -> f64 {
    [task.input_bytes, task.output_bytes, task.weight_bytes].map(|bytes| bytes as f64).iter().sum::<f64>() / 1e3
}

/// Formats a number with about four digits.
fn short(value: f64) -> String {
    // An empty sum is -0.
    match value + 0.0 {
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.3}"),
    }
}

fn text_table(costs: &Costs<'_>, limit: usize) -> String {
    let best = |row: usize| costs.best(row).unwrap_or(0.0);
    let mut order: Vec<usize> = (0..costs.tasks.len()).collect();
    order.sort_by(|&a, &b| best(b).total_cmp(&best(a)).then(a.cmp(&b)));
    let shown = if limit == 0 { order.len() } else { limit.min(order.len()) };
    let total: f64 = (0..costs.tasks.len()).map(best).sum();

    let mut header: Vec<String> = ["task", "kind", "share", "MFLOP", "kB"].map(String::from).into();
    for device in &costs.devices {
        header.push(format!("{} (us)", device.name));
        header.push("bound".into());
    }
    let mut rows = vec![header];
    for &i in &order[..shown] {
        let task = &costs.tasks[i];
        let mut row = vec![
            printable(task.name),
            printable(task.kind),
            format!("{:.1}%", if total > 0.0 { 100.0 * best(i) / total } else { 0.0 }),
            short(task.flops as f64 / 1e6),
            short(kilobytes(task)),
        ];
        for device in 0..costs.devices.len() {
            row.push(costs.first(i, device).map_or("-".into(), short));
            row.push(task.bounds[device].unwrap_or("").to_owned());
        }
        rows.push(row);
    }
    let mut sum = vec![
        format!("all {} tasks", costs.tasks.len()),
        String::new(),
        String::new(),
        short(costs.tasks.iter().map(|task| task.flops as f64).sum::<f64>() / 1e6),
        short(costs.tasks.iter().map(kilobytes).sum()),
    ];
    for device in 0..costs.devices.len() {
        let times: Option<f64> = (0..costs.tasks.len()).map(|i| costs.first(i, device)).sum();
        sum.push(times.map_or("-".into(), short));
        sum.push(String::new());
    }
    rows.push(sum);
    let mut table = columns(&rows);
    for device in &costs.devices {
        let batch = device.batch_sizes.first().copied().unwrap_or(1);
        let peak = memory::peak(costs, batch);
        // Writing to a String cannot fail.
        let _ =
            write!(table, "{}: batch {batch}, all tasks take {peak} of {}", device.name, Bytes(device.memory_bytes));
        if let Some(sources) = &device.sources {
            let counts = sources.iter().enumerate().map(|(index, (source, count))| {
                let unit = if index == 0 { " tasks" } else { "" };
                format!("{count}{unit} {}", source.name())
            });
            let _ = write!(table, "; {}", counts.collect::<Vec<_>>().join(", "));
        }
        table.push('\n');
    }
    table
}

fn csv(costs: &Costs<'_>) -> String {
    let mut out = String::from("task,kind,flops,input_bytes,output_bytes,weight_bytes,scratch_bytes");
    for device in &costs.devices {
        // Writing to a String cannot fail.
        let _ = write!(out, ",{}_bound", device.name);
        for batch in &device.batch_sizes {
            let _ = write!(out, ",{}_batch_{batch}_us", device.name);
        }
    }
    out.push('\n');
    for (i, task) in costs.tasks.iter().enumerate() {
        let _ = write!(
            out,
            "{},{},{},{},{},{},{}",
            quoted(task.name),
            quoted(task.kind),
            task.flops,
            task.input_bytes,
            task.output_bytes,
            task.weight_bytes,
            task.scratch_bytes
        );
        for (d, device) in costs.devices.iter().enumerate() {
            let _ = write!(out, ",{}", task.bounds[d].unwrap_or(""));
            for &batch in &device.batch_sizes {
                out.push(',');
                if let Some(micros) = costs.at(i, d, batch) {
                    let _ = write!(out, "{micros}");
                }
            }
        }
        out.push('\n');
    }
    out
}

/// Returns a field of comma-separated values, quoted if necessary.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.into() }
}

impl PrintCosts {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<String, Failure> {
        let fail = |message: String| {
            error(module, &message);
            Failure
        };
        let format = match self.format.as_str() {
            "text" => Format::Text,
            "csv" => Format::Csv,
            other => return Err(fail(format!("format is '{other}': it must be text or csv"))),
        };
        let limit = usize::try_from(self.limit)
            .map_err(|_| fail(format!("limit is {}: it must not be negative (0 shows every task)", self.limit)))?;
        print_costs(module, format, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let row = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            columns(&[row(&["task", "kind", "us"]), row(&["a", "relu", "1.5"]), row(&["µ", "b", "10.25"])]),
            "task  kind     us\na     relu    1.5\nµ     b     10.25\n"
        );
    }

    #[test]
    fn fields_are_quoted_if_necessary() {
        assert_eq!([quoted("a/b"), quoted("a,b"), quoted("a\"b")], ["a/b", "\"a,b\"", "\"a\"\"b\""]);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([short(0.5), short(12.34), short(1234.5)], ["0.500", "12.3", "1234"]);
    }
}
