//! Report as one self-contained HTML page: it loads nothing from the network or from other files.

mod data;

use crate::Report;
use crate::text::{markup, script_json};

const STYLE: [&str; 2] = [include_str!("html/page.css"), include_str!("html/panels.css")];
/// Content security policy: nothing may be loaded.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
const BODY: &str = include_str!("html/page.html");
/// Later scripts depend on earlier ones.
const SCRIPTS: [&str; 8] = [
    include_str!("html/base.js"),
    include_str!("html/overview.js"),
    include_str!("html/bars.js"),
    include_str!("html/timeline.js"),
    include_str!("html/folds.js"),
    include_str!("html/graph.js"),
    include_str!("html/transfers.js"),
    include_str!("html/history.js"),
];

pub(crate) fn page(report: &Report<'_>) -> String {
    let title = markup(report.title());
    let data = script_json(&data::of(report));
    let scripts = SCRIPTS.map(|script| format!("<script>\n{script}</script>\n")).concat();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{}</style>\n</head>\n<body>\n{BODY}\
         <script type=\"application/json\" id=\"data\">{data}</script>\n{scripts}</body>\n</html>\n",
        STYLE.concat()
    )
}
