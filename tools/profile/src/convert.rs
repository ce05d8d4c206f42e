//! `divi-profile convert`.

use crate::{
    device::{kind_of_tables, kinds},
    files,
};
use divi_cost::device::Kind;
use divi_cost::pytorch::{NetworkTimes, Note, Operators, transfers};

/// Convert a table measured with PyTorch to a profile (divi-profile/1)
///
/// A table of copies between host and device becomes links of a system description. Operators without an ONNX
/// equivalent are listed on stderr.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Convert {
    /// Table to convert
    #[arg(value_name = "TABLE.json")]
    table: String,
    /// Device of the table to convert; by default the GPU
    #[arg(long, value_name = "KIND", value_parser = kinds())]
    device: Option<Kind>,
    /// File for the profile, instead of stdout
    #[arg(short, value_name = "FILE")]
    output: Option<String>,
}

impl Convert {
    pub(crate) fn run(self) -> Result<(), String> {
        let file = &self.table;
        files::check([&file[..]], &[("-o", self.output.as_deref())])?;
        let text = files::read(file)?;
        let kind = self.device.unwrap_or_else(kind_of_tables);
        let wrong = |error: divi_cost::json::Error| format!("{file}: {error}");
        let converted = if transfers::recognizes(&text) {
            let links = transfers::read(&text).map_err(wrong)?;
            links.iter().map(|link| link.to_toml("cpu0", "gpu0")).collect::<Vec<_>>().join("\n")
        } else if NetworkTimes::read(&text).is_ok() {
            return Err(format!("{file}: contains times of whole models, not of operators; pass it to fit --graphs"));
        } else {
            let table = Operators::read(&text, kind).map_err(wrong)?;
            report(&table);
            table.profile().to_json()
        };
        files::write(self.output.as_deref(), &converted)
    }
}

/// Reports omissions and assumptions, once for each model, operator and reason.
fn report(table: &Operators) {
    for model in &table.models {
        let notes = [(&model.skipped, "left out, "), (&model.assumptions, "")];
        for (notes, verb) in notes {
            for (index, Note { node, op, text }) in notes.iter().enumerate() {
                let is_same = |other: &&Note| (&other.op, &other.text) == (op, text);
                if notes[..index].iter().any(|other| is_same(&other)) {
                    continue;
                }
                let more = match notes.iter().filter(is_same).count() {
                    1 => String::new(),
                    count => format!(" and {} more", count - 1),
                };
                eprintln!("divi-profile: {}: '{node}' ({op}){more}: {verb}{text}", model.name);
            }
        }
    }
}
