//! Heat maps over two logarithmic axes, with lines of constant ratio, as SVG.

use std::fmt::Write;

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 86.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
const LEGEND: f64 = 26.0;
/// Width of the color bar.
const BAR: f64 = 12.0;
/// Viridis color map, from low to high; monotonic in lightness.
const COLOURS: [(f64, f64, f64); 5] =
    [(68.0, 1.0, 84.0), (59.0, 82.0, 139.0), (33.0, 145.0, 140.0), (94.0, 201.0, 98.0), (253.0, 231.0, 37.0)];

pub(crate) struct Map<'a> {
    pub(crate) panels: Vec<Panel<'a>>,
    pub(crate) x: Axis<'a>,
    pub(crate) y: Axis<'a>,
    pub(crate) lines: Vec<Line<'a>>,
    /// Labels, each at a ratio, across the middle.
    pub(crate) labels: Vec<(&'a str, f64)>,
    /// Coordinates of the network itself, drawn if visible.
    pub(crate) here: (f64, f64),
}

pub(crate) struct Panel<'a> {
    pub(crate) title: &'a str,
    /// Rows from the lowest y up, each from the lowest x up; positive.
    pub(crate) values: Vec<Vec<f64>>,
}

/// An axis between two powers of ten.
pub(crate) struct Axis<'a> {
    pub(crate) title: &'a str,
    pub(crate) from: i32,
    pub(crate) to: i32,
}

/// All points with x = `ratio` · y.
pub(crate) struct Line<'a> {
    pub(crate) name: String,
    pub(crate) ratio: f64,
    pub(crate) colour: &'a str,
}

impl Axis<'_> {
    /// Returns the position of a value on the axis, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        (value.log10() - f64::from(self.from)) / f64::from(self.to - self.from)
    }
}

impl Map<'_> {
    pub(crate) fn svg(&self) -> String {
        let (across, high) = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM);
        let (width, height) = (across * self.panels.len() as f64, high + LEGEND);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <clipPath id=\"inside\"><rect width=\"{WIDTH}\" height=\"{HEIGHT}\"/></clipPath>\n"
        );
        for (index, panel) in self.panels.iter().enumerate() {
            let left = across * index as f64 + LEFT;
            let _ = writeln!(text, "<g transform=\"translate({left} {TOP})\">");
            self.panel(panel, &mut text);
            text += "</g>\n";
        }
        self.legend(high, &mut text);
        text + "</svg>\n"
    }

    fn panel(&self, panel: &Panel<'_>, text: &mut String) {
        let all = || panel.values.iter().flatten().copied().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        let share = |value: f64| if high > low { (value / low).ln() / (high / low).ln() } else { 1.0 };
        let down = HEIGHT / panel.values.len() as f64;
        for (row, values) in panel.values.iter().enumerate() {
            let across = WIDTH / values.len() as f64;
            let y = HEIGHT - down * (row as f64 + 1.0);
            for (column, value) in values.iter().enumerate() {
                let x = across * column as f64;
                // Adjacent cells overlap slightly to avoid visible gaps.
                let _ = writeln!(
                    text,
                    "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{}\"/>",
                    (across + 0.5).min(WIDTH - x),
                    (down + 0.5).min(HEIGHT - y),
                    colour(share(*value))
                );
            }
        }
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"-12\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
            WIDTH / 2.0,
            panel.title
        );
        self.axes(text);
        self.lines(text);
        bar(low, high, text);
    }

    fn axes(&self, text: &mut String) {
        for power in self.x.from..=self.x.to {
            let at = self.x.place(10_f64.powi(power)) * WIDTH;
            let _ = writeln!(
                text,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{HEIGHT}\" y2=\"{}\" stroke=\"#444\"/>",
                HEIGHT + 4.0
            );
            let _ = writeln!(
                text,
                "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                HEIGHT + 17.0,
                10_f64.powi(power)
            );
        }
        for power in self.y.from..=self.y.to {
            let at = (1.0 - self.y.place(10_f64.powi(power))) * HEIGHT;
            let _ = writeln!(text, "<line x1=\"-4\" x2=\"0\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#444\"/>");
            let _ = writeln!(
                text,
                "<text x=\"-8\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                at + 4.0,
                10_f64.powi(power)
            );
        }
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(-46 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            WIDTH / 2.0,
            HEIGHT + 36.0,
            self.x.title,
            HEIGHT / 2.0,
            self.y.title
        );
    }

    fn lines(&self, text: &mut String) {
        text.push_str("<g clip-path=\"url(#inside)\">\n");
        let at = |x: f64, y: f64| (self.x.place(x) * WIDTH, (1.0 - self.y.place(y)) * HEIGHT);
        for line in self.lines.iter().filter(|line| line.ratio > 0.0 && line.ratio.is_finite()) {
            let (low, high) = (10_f64.powi(self.y.from), 10_f64.powi(self.y.to));
            let ((x1, y1), (x2, y2)) = (at(line.ratio * low, low), at(line.ratio * high, high));
            let _ = writeln!(
                text,
                "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{}\" stroke-width=\"2.5\" \
                 stroke-dasharray=\"7 4\"/>",
                line.colour
            );
        }
        let middle = f64::from(self.x.from + self.x.to + self.y.from + self.y.to) / 2.0;
        for (label, ratio) in self.labels.iter().filter(|(_, ratio)| *ratio > 0.0 && ratio.is_finite()) {
            let (x, y) = at(10_f64.powf((middle + ratio.log10()) / 2.0), 10_f64.powf((middle - ratio.log10()) / 2.0));
            let _ = writeln!(
                text,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"20\" font-weight=\"bold\" fill=\"white\" \
                 stroke=\"#222\" stroke-width=\"3\" paint-order=\"stroke\">{label}</text>",
                y + 7.0
            );
        }
        let (x, y) = at(self.here.0, self.here.1);
        if x.is_finite() && y.is_finite() {
            let _ = writeln!(
                text,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"white\" stroke=\"black\" stroke-width=\"2\"/>"
            );
        }
        let _ = writeln!(text, "</g>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#444\"/>");
    }

    fn legend(&self, top: f64, text: &mut String) {
        let y = top + LEGEND / 2.0;
        for (index, line) in self.lines.iter().enumerate() {
            let x = LEFT + 290.0 * index as f64;
            let _ = writeln!(
                text,
                "<line x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{}\" stroke-width=\"2.5\" \
                 stroke-dasharray=\"7 4\"/><text x=\"{}\" y=\"{}\">{}</text>",
                x + 30.0,
                line.colour,
                x + 36.0,
                y + 4.0,
                line.name
            );
        }
        let x = LEFT + 290.0 * self.lines.len() as f64;
        let _ = writeln!(
            text,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"5\" fill=\"white\" stroke=\"black\" stroke-width=\"2\"/>\
             <text x=\"{}\" y=\"{}\">this network</text>",
            x + 10.0,
            y + 4.0
        );
    }
}

/// Draws the color bar next to the panel.
fn bar(low: f64, high: f64, text: &mut String) {
    let steps = 60;
    for step in 0..steps {
        let share = (f64::from(step) + 0.5) / f64::from(steps);
        let y = HEIGHT * (1.0 - f64::from(step + 1) / f64::from(steps));
        let _ = writeln!(
            text,
            "<rect x=\"{}\" y=\"{y:.2}\" width=\"{BAR}\" height=\"{:.2}\" fill=\"{}\"/>",
            WIDTH + 10.0,
            (HEIGHT / f64::from(steps) + 0.5).min(HEIGHT - y),
            colour(share)
        );
    }
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let value = low * (high / low).powf(share);
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{:.1}\">{}</text>",
            WIDTH + 14.0 + BAR,
            HEIGHT * (1.0 - share) + 4.0,
            short(value)
        );
    }
}

/// Formats a number with up to three digits.
fn short(value: f64) -> String {
    match value {
        value if !value.is_finite() => "-".to_owned(),
        value if !(1e-2..1e5).contains(&value) => format!("{value:.1e}"),
        value if value < 10.0 => format!("{value:.2}"),
        value => format!("{value:.0}"),
    }
}

fn colour(share: f64) -> String {
    let last = (COLOURS.len() - 1) as f64;
    let place = (if share.is_finite() { share } else { 0.0 }).clamp(0.0, 1.0) * last;
    let index = (place as usize).min(COLOURS.len() - 2);
    let (from, to, part) = (COLOURS[index], COLOURS[index + 1], place - index as f64);
    let mixed = |from: f64, to: f64| (from + (to - from) * part).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mixed(from.0, to.0), mixed(from.1, to.1), mixed(from.2, to.2))
}
