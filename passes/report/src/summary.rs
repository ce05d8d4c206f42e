//! Summary for the terminal, as text and as JSON.

use std::collections::BTreeSet;

use divi_planner::units::{Bytes, Micros, human_bytes};
use serde_json::{Value, json};

use crate::palette::rgb;
use crate::text::{counted, micros, percent};
use crate::timeline::{DeviceUse, Launch, LinkUse, StageCost, ports};
use crate::{Report, Timeline};

const DIM: &str = "2";
const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

/// Maximum number of links that are named; those that transfer the most bytes.
const MOST_LINKS: usize = 4;
/// Largest gap that counts as closed: rounding in solvers and sums.
const CLOSED: f64 = 1e-6;

/// Text with the parameters of its ANSI escape sequence.
struct Cell {
    text: String,
    code: String,
}

impl Cell {
    fn plain(text: impl Into<String>) -> Self {
        Self::coloured(text, "")
    }

    fn coloured(text: impl Into<String>, code: impl Into<String>) -> Self {
        Self { text: text.into(), code: code.into() }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }

    fn print(&self, colours: bool) -> String {
        if colours && !self.code.is_empty() && !self.text.is_empty() {
            format!("\x1b[{}m{}\x1b[0m", self.code, self.text)
        } else {
            self.text.clone()
        }
    }
}

pub(crate) fn text(report: &Report<'_>, colours: bool) -> String {
    let mut rows = vec![heading(report)];
    rows.extend((0..report.timeline.devices.len()).map(|device| row(report, device)));
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut lines = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate().filter(|(_, (_, width))| **width > 0) {
            let blanks = " ".repeat(width - cell.width());
            // Names and remarks are aligned left, numbers right.
            let left = column == 0 || column == columns - 1;
            let (before, after) = if left { (String::new(), blanks) } else { (blanks, String::new()) };
            let apart = if line.is_empty() { "" } else { "  " };
            line.push_str(&format!("{apart}{before}{}{after}", cell.print(colours)));
        }
        lines.push_str(line.trim_end());
        lines.push('\n');
    }
    lines.push_str(&value(report, colours));
    lines.push_str(&transfers(&report.timeline));
    lines
}

fn heading(report: &Report<'_>) -> Vec<Cell> {
    let operators = if has_operators(report) { "ops" } else { "" };
    let words = ["device", "tasks", "", operators, "", "busy", "", "idle", "memory", "", ""];
    words.map(|word| Cell::coloured(word, DIM)).into()
}

fn row(report: &Report<'_>, index: usize) -> Vec<Cell> {
    let timeline = &report.timeline;
    let device = &timeline.devices[index];
    let of_time =
        |time: Micros| if timeline.end > Micros::ZERO { percent(time / timeline.end, 1) } else { String::new() };
    let [red, green, blue] = rgb(index);
    let mut cells = vec![
        Cell::coloured(&device.name, format!("38;2;{red};{green};{blue}")),
        Cell::plain(device.tasks.to_string()),
        Cell::plain(percent(device.share, 1)),
    ];
    if has_operators(report) {
        let share = operator_share(report, index);
        cells.extend([Cell::plain(operators(report, index).to_string()), Cell::plain(percent(share, 1))]);
    } else {
        cells.extend([Cell::plain(""), Cell::plain("")]);
    }
    cells.extend([Cell::plain(micros(device.busy)), Cell::plain(of_time(device.busy))]);
    cells.push(Cell::plain(if timeline.end > Micros::ZERO { of_time(device.idle) } else { micros(device.idle) }));
    cells.push(Cell::plain(human_bytes(device.memory.counted)));
    let (of, full) = match device.memory.capacity {
        Some(capacity) if capacity > Bytes::ZERO => {
            let share = device.memory.counted / capacity;
            (format!("of {} ({})", human_bytes(capacity), percent(share, 1)), share > 1.0 + 1e-9)
        }
        _ => (String::new(), false),
    };
    cells.push(Cell::coloured(of, if full { RED } else { "" }));
    cells.push(Cell::coloured(remark(device), if device.bottleneck { YELLOW } else { "" }));
    cells
}

/// Returns the stages of a device, and a note if it is the bottleneck.
fn remark(device: &DeviceUse) -> String {
    let stages: Vec<String> = device.stages.iter().map(usize::to_string).collect();
    let mut remarks = Vec::new();
    match stages.as_slice() {
        [] => {}
        [stage] => remarks.push(format!("stage {stage}")),
        _ => remarks.push(format!("stages {}", stages.join(", "))),
    }
    if device.bottleneck {
        remarks.push("bottleneck".to_owned());
    }
    remarks.join(", ")
}

fn value(report: &Report<'_>, colours: bool) -> String {
    let plan = report.plan;
    let cost = match report.timeline.cost {
        Some(StageCost::Overlap) => " (overlap)",
        Some(StageCost::Serial) | None => "",
    };
    let value = Cell::coloured(format!("{}{cost} {}", plan.objective, micros(plan.value)), BOLD);
    let closed = plan.gap <= CLOSED && plan.proof.is_verified();
    let gap = Cell::coloured(format!("gap {}", percent(plan.gap, 2)), if closed { GREEN } else { YELLOW });
    let bound = micros(plan.bound);
    let by = if plan.bound_by.is_empty() { String::new() } else { format!(" by {}", plan.bound_by) };
    let remark = plan.bound_remark();
    let costs = report.about.costs.as_ref().map_or_else(String::new, |source| format!(", {source} costs"));
    format!("{}, bound {bound}{by}{remark}, {}{costs}\n", value.print(colours), gap.print(colours))
}

fn transfers(timeline: &Timeline) -> String {
    let all = counted(timeline.transfers.len(), "transfer");
    if timeline.transfers.is_empty() {
        return format!("{all}\n");
    }
    let mut links: Vec<&LinkUse> = timeline.links.iter().collect();
    links.sort_by(|a, b| b.bytes.total_cmp(&a.bytes));
    let mut shown: Vec<String> = links
        .iter()
        .take(MOST_LINKS)
        .map(|link| format!("{}: {}, {}", link.name, link.transfers, human_bytes(link.bytes)))
        .collect();
    shown.extend((links.len() > MOST_LINKS).then(|| format!("and {} more links", links.len() - MOST_LINKS)));
    let links = if shown.is_empty() { String::new() } else { format!(" ({})", shown.join("; ")) };
    format!("{all}, {}{links}\n", human_bytes(timeline.transferred()))
}

fn has_operators(report: &Report<'_>) -> bool {
    !report.about.operators.is_empty()
}

/// Returns a device's share of all operators, counted once for each input.
fn operator_share(report: &Report<'_>, device: usize) -> f64 {
    let runs = |launch: &Launch| {
        let operators = report.about.operators.get(launch.task).copied().unwrap_or(0);
        operators * launch.inputs.len()
    };
    let launches = &report.timeline.launches;
    let all: usize = launches.iter().map(runs).sum();
    let here: usize = launches.iter().filter(|launch| launch.device == device).map(runs).sum();
    if all > 0 { here as f64 / all as f64 } else { 0.0 }
}

/// Returns the number of operators in a device's tasks; a task split over several devices counts on each.
fn operators(report: &Report<'_>, device: usize) -> usize {
    let launches = report.timeline.launches.iter();
    let here: BTreeSet<usize> = launches.filter(|launch| launch.device == device).map(|launch| launch.task).collect();
    here.iter().filter_map(|task| report.about.operators.get(*task)).sum()
}

pub(crate) fn json(report: &Report<'_>) -> Value {
    let (plan, timeline) = (report.plan, &report.timeline);
    let devices: Vec<Value> = (0..timeline.devices.len()).map(|device| device_json(report, device)).collect();
    let links: Vec<Value> = timeline
        .links
        .iter()
        .map(|link| {
            json!({
                "name": link.name, "transfers": link.transfers, "bytes": link.bytes, "busy": link.busy,
                "bottleneck": link.bottleneck,
            })
        })
        .collect();
    json!({
        "title": report.title(),
        "objective": plan.objective.name(),
        "algorithm": plan.algorithm,
        "value": plan.value,
        "bound": plan.bound,
        "bound_by": plan.bound_by,
        "proof": plan.proof.name(),
        "verified_bound": plan.verified_bound,
        "gap": plan.gap,
        "costs": report.about.costs,
        "tasks": ports(report.problem).iter().filter(|port| !**port).count(),
        "pipeline_cost": timeline.cost.map(StageCost::name),
        "devices": devices,
        "links": links,
        "transfers": {"count": timeline.transfers.len(), "bytes": timeline.transferred()},
    })
}

fn device_json(report: &Report<'_>, index: usize) -> Value {
    let device = &report.timeline.devices[index];
    let kind = Some(report.device_kind(index)).filter(|kind| !kind.is_empty());
    json!({
        "name": device.name,
        "kind": kind,
        "tasks": device.tasks,
        "share": device.share,
        "operators": has_operators(report).then(|| operators(report, index)),
        "busy": device.busy,
        "idle": device.idle,
        "memory": {
            "weights": device.memory.weights, "peak": device.memory.peak, "counted": device.memory.counted,
            "capacity": device.memory.capacity,
        },
        "stages": device.stages,
        "bottleneck": device.bottleneck,
    })
}
