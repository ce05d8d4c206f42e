//! Timeline as an SVG image: one lane per device and link, with a time axis.

use std::fmt::{Result, Write};

use divi_planner::units::{Micros, human_bytes};

use crate::Report;
use crate::palette::{colour, text};
use crate::text::{markup, micros, nice_step, percent, time_unit};
use crate::timeline::Way;

const WIDTH: f64 = 1280.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 64.0;
const DEVICE: f64 = 34.0;
const LINK_ROW: f64 = 10.0;
const MOST_LINK: f64 = 40.0;
const APART: f64 = 8.0;
/// Approximate width of a letter.
const LETTER: f64 = 6.9;
/// Minimum visible width of a bar.
const NARROWEST: f64 = 0.6;

/// Vertical position and height of a lane.
struct Lane {
    top: f64,
    height: f64,
}

struct Canvas<'a> {
    report: &'a Report<'a>,
    /// Devices, then links.
    lanes: Vec<Lane>,
    bottom: f64,
    svg: String,
}

pub(crate) fn draw(report: &Report<'_>) -> String {
    let mut top = TOP;
    let mut lanes = Vec::new();
    let devices = report.timeline.devices.iter().map(|_| DEVICE);
    let links = report.timeline.links.iter().map(|link| (6.0 + LINK_ROW * link.rows as f64).min(MOST_LINK));
    for height in devices.chain(links) {
        lanes.push(Lane { top, height });
        top += height + APART;
    }
    let mut canvas = Canvas { report, lanes, bottom: top, svg: String::new() };
    canvas.write().expect("writing to a string cannot fail");
    canvas.svg
}

impl Canvas<'_> {
    fn x(&self, time: Micros) -> f64 {
        let end = self.report.timeline.end;
        LEFT + if end > Micros::ZERO { time / end * (WIDTH - LEFT - RIGHT) } else { 0.0 }
    }

    fn write(&mut self) -> Result {
        let height = self.bottom + 40.0;
        writeln!(
            self.svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">"
        )?;
        writeln!(self.svg, "<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>")?;
        self.write_title()?;
        self.write_axis()?;
        self.write_lanes()?;
        self.write_launches()?;
        self.write_handovers()?;
        self.write_transfers()?;
        writeln!(self.svg, "</svg>")
    }

    fn write_title(&mut self) -> Result {
        let plan = self.report.plan;
        let proof = format!(
            "{} {}, bound {} by {}{}, gap {}",
            plan.objective,
            micros(plan.value),
            micros(plan.bound),
            plan.bound_by,
            plan.bound_remark(),
            percent(plan.gap, 2)
        );
        let title = markup(self.report.title());
        writeln!(
            self.svg,
            "<text x=\"16\" y=\"26\" font-size=\"17\" font-weight=\"600\" fill=\"#1b2430\">{title}</text>"
        )?;
        writeln!(self.svg, "<text x=\"16\" y=\"46\" fill=\"#5a6675\">{}</text>", markup(&proof))
    }

    fn write_axis(&mut self) -> Result {
        let end = self.report.timeline.end;
        let (unit, micros) = time_unit(end);
        let below = self.bottom + 4.0;
        if end > Micros::ZERO {
            let step = nice_step(end / micros, 10.0);
            let mut tick = 0.0;
            for count in 0.. {
                // `tick` is a multiple of the step, not a running sum, which would accumulate rounding errors.
                let x = self.x(tick * micros);
                writeln!(
                    self.svg,
                    "<path d=\"M{x:.1} {} V{below:.1}\" stroke=\"#e3e8ee\"/><text x=\"{x:.1}\" y=\"{:.1}\" \
                     text-anchor=\"middle\" fill=\"#5a6675\">{}</text>",
                    TOP - 4.0,
                    below + 14.0,
                    round(tick)
                )?;
                tick = f64::from(count + 1) * step;
                if tick * micros > end {
                    break;
                }
            }
        }
        let x = LEFT - 12.0;
        writeln!(
            self.svg,
            "<text x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#5a6675\">{unit}</text>",
            below + 14.0
        )
    }

    fn write_lanes(&mut self) -> Result {
        let timeline = &self.report.timeline;
        let devices = timeline.devices.iter().map(|device| (device.name.as_str(), device.bottleneck, "#1b2430"));
        let links = timeline.links.iter().map(|link| (link.name.as_str(), link.bottleneck, "#5a6675"));
        for (lane, (name, bottleneck, ink)) in self.lanes.iter().zip(devices.chain(links)) {
            let mark = if bottleneck { "▸ " } else { "" };
            writeln!(
                self.svg,
                "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{}\" height=\"{:.1}\" fill=\"#f3f5f8\" rx=\"3\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{ink}\">{mark}{}</text>",
                lane.top,
                WIDTH - LEFT - RIGHT,
                lane.height,
                LEFT - 12.0,
                lane.top + lane.height / 2.0 + 4.0,
                markup(&shortened(name, LEFT - 40.0))
            )?;
        }
        Ok(())
    }

    fn write_launches(&mut self) -> Result {
        let labels = self.report.labels();
        for launch in &self.report.timeline.launches {
            let (x, right) = (self.x(launch.start), self.x(launch.end));
            let name = self.report.task_name(launch.task);
            let lane = &self.lanes[launch.device];
            let rows = self.report.timeline.devices[launch.device].rows as f64;
            let hint = format!("{name}: {} to {}", micros(launch.start), micros(launch.end));
            let (top, height) = (lane.top + 2.0, (lane.height - 4.0) / rows);
            bar(&mut self.svg, (x, right, top, height), &format!("fill=\"{}\"", colour(launch.device)), &hint)?;
            let label = shortened(&labels[launch.task], right - x - 8.0);
            if !label.is_empty() {
                let ink = text(launch.device);
                let (x, y) = (x + 4.0, top + height / 2.0 + 4.0);
                writeln!(
                    self.svg,
                    "<text x=\"{x:.2}\" y=\"{y:.1}\" font-size=\"11\" fill=\"{ink}\" pointer-events=\"none\">{}</text>",
                    markup(&label)
                )?;
            }
        }
        Ok(())
    }

    fn write_handovers(&mut self) -> Result {
        for handover in &self.report.timeline.handovers {
            let lane = &self.lanes[handover.device];
            let height = (lane.height - 4.0) / self.report.timeline.devices[handover.device].rows as f64;
            let top = lane.top + 2.0 + height * handover.row as f64;
            let way = match handover.way {
                Way::In => "in",
                Way::Out => "out",
                Way::Spill => "exceeds memory",
            };
            let name = self.report.task_name(handover.task);
            let hint = format!("{way}: {name}, {}", human_bytes(handover.bytes));
            let fill = if handover.way == Way::In { "#aab4c2" } else { "#8a94a3" };
            let (x, right) = (self.x(handover.start), self.x(handover.end));
            bar(&mut self.svg, (x, right, top, height), &format!("fill=\"{fill}\""), &hint)?;
        }
        Ok(())
    }

    fn write_transfers(&mut self) -> Result {
        let timeline = &self.report.timeline;
        for transfer in &timeline.transfers {
            let Some(link) = transfer.link else { continue };
            let lane = &self.lanes[timeline.devices.len() + link];
            let height = (lane.height - 4.0) / timeline.links[link].rows as f64;
            let top = lane.top + 2.0 + height * transfer.row as f64;
            let (from, to) = (&timeline.devices[transfer.from].name, &timeline.devices[transfer.to].name);
            let name = self.report.task_name(transfer.task);
            let hint = format!("{name}, {from} → {to}, {}", human_bytes(transfer.bytes));
            let fill = format!("fill=\"{}\" fill-opacity=\"0.75\"", colour(transfer.from));
            let (x, right) = (self.x(transfer.start), self.x(transfer.end));
            bar(&mut self.svg, (x, right, top, (height - 1.0).max(1.0)), &fill, &hint)?;
        }
        Ok(())
    }
}

/// Draws a bar from left to right and from top down, with a tooltip.
fn bar(svg: &mut String, place: (f64, f64, f64, f64), fill: &str, hint: &str) -> Result {
    let (x, right, top, height) = place;
    // Leaves a gap to the next bar if there is room.
    let width = (right - x - 0.6).max(NARROWEST);
    writeln!(
        svg,
        "<rect x=\"{x:.2}\" y=\"{top:.1}\" width=\"{width:.2}\" height=\"{height:.1}\" {fill}><title>{}</title></rect>",
        markup(hint)
    )
}

/// Formats a tick of the axis without rounding errors.
fn round(tick: f64) -> String {
    format!("{}", (tick * 1e6).round() / 1e6)
}

/// Shortens a name to its end, which distinguishes tasks.
fn shortened(name: &str, width: f64) -> String {
    let fits = (width / LETTER).max(0.0) as usize;
    let letters = name.chars().count();
    if letters <= fits {
        return name.to_owned();
    }
    if fits < 6 {
        return String::new();
    }
    let end: String = name.chars().skip(letters - (fits - 1)).collect();
    format!("…{end}")
}
