//! Step curves over a logarithmic time axis, in panels, as SVG.

use std::fmt::Write;

/// Start of the time axis; earlier times are drawn at the left edge.
const FIRST: f64 = 1e-3;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 40.0;
const LEGEND: f64 = 44.0;
const COLOURS: [&str; 6] = ["#7f7f7f", "#e69f00", "#56b4e9", "#cc79a7", "#009e73", "#d55e00"];

pub(super) struct Chart<'a> {
    pub(super) panels: Vec<Panel<'a>>,
    /// End of the time axis.
    pub(super) seconds: f64,
    /// Label of the value axis.
    pub(super) value: &'a str,
}

pub(super) struct Panel<'a> {
    pub(super) title: &'a str,
    pub(super) lines: Vec<Line<'a>>,
    /// Upper bound of all lines.
    pub(super) limit: f64,
}

pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    /// Times and values; each value holds until the next point.
    pub(super) points: Vec<(f64, f64)>,
}

impl Chart<'_> {
    pub(super) fn svg(&self) -> String {
        let columns = self.panels.len().min(2) as f64;
        let rows = (self.panels.len() as f64 / columns).ceil();
        let (width, height) = (columns * (WIDTH + LEFT + 20.0), rows * (HEIGHT + TOP + 46.0) + LEGEND);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        for (index, panel) in self.panels.iter().enumerate() {
            let (column, row) = ((index % 2) as f64, (index / 2) as f64);
            let left = column * (WIDTH + LEFT + 20.0) + LEFT;
            let top = row * (HEIGHT + TOP + 46.0) + TOP;
            let _ = writeln!(text, "<g transform=\"translate({left} {top})\">");
            self.panel(panel, &mut text);
            text += "</g>\n";
        }
        self.legend(height - LEGEND / 2.0, &mut text);
        text + "</svg>\n"
    }

    fn panel(&self, panel: &Panel<'_>, text: &mut String) {
        let values = panel.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
        let least = values.fold(panel.limit, f64::min);
        let margin = (panel.limit - least).max(panel.limit * 0.01) * 0.08;
        let (low, high) = (least - margin, panel.limit + margin);
        let x = |seconds: f64| (seconds.max(FIRST) / FIRST).ln() / (self.seconds / FIRST).ln() * WIDTH;
        let y = |value: f64| (high - value) / (high - low) * HEIGHT;
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"-12\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
            WIDTH / 2.0,
            panel.title
        );
        let _ = writeln!(text, "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#444\"/>");
        let mut tick = FIRST;
        while tick <= self.seconds {
            let at = x(tick);
            let _ = writeln!(text, "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"{HEIGHT}\" stroke=\"#ddd\"/>");
            let _ =
                writeln!(text, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{tick} s</text>", HEIGHT + 16.0);
            tick *= 10.0;
        }
        for step in 0..=4 {
            let value = low + (high - low) * f64::from(step) / 4.0;
            let at = y(value);
            let _ = writeln!(text, "<line x1=\"0\" x2=\"{WIDTH}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#eee\"/>");
            let _ = writeln!(text, "<text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{value:.1}</text>", at + 4.0);
        }
        let middle = HEIGHT / 2.0;
        let _ = writeln!(
            text,
            "<text transform=\"translate(-46 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            self.value
        );
        let limit = y(panel.limit);
        let _ = writeln!(
            text,
            "<line x1=\"0\" x2=\"{WIDTH}\" y1=\"{limit:.1}\" y2=\"{limit:.1}\" stroke=\"#222\" stroke-dasharray=\"6 4\"/>"
        );
        for (line, colour) in panel.lines.iter().zip(COLOURS) {
            let Some(first) = line.points.first() else { continue };
            let mut path = format!("M{:.1} {:.1}", x(first.0), y(first.1));
            for point in &line.points[1..] {
                let _ = write!(path, "H{:.1}V{:.1}", x(point.0), y(point.1));
            }
            let _ = writeln!(text, "<path d=\"{path}H{WIDTH}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
        }
    }

    fn legend(&self, at: f64, text: &mut String) {
        let Some(panel) = self.panels.first() else { return };
        let names = panel.lines.iter().map(|line| line.name).zip(COLOURS).map(|(name, colour)| (name, colour, ""));
        for (index, (name, colour, dash)) in names.chain([("bound", "#222", "6 4")]).enumerate() {
            let left = LEFT + 110.0 * index as f64;
            let _ = writeln!(
                text,
                "<line x1=\"{left}\" x2=\"{}\" y1=\"{at}\" y2=\"{at}\" stroke=\"{colour}\" stroke-width=\"2\" \
                 stroke-dasharray=\"{dash}\"/><text x=\"{}\" y=\"{}\">{name}</text>",
                left + 22.0,
                left + 28.0,
                at + 4.0
            );
        }
    }
}
