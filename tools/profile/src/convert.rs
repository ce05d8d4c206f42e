//! `divi-profile convert`.

use crate::{
    device::{kind_of_tables, kinds},
    files,
};
use divi_cost::device::Kind;
use divi_cost::pytorch::{Models, Operators, Remark, transfers};

/// Convert a table that was measured with PyTorch to a profile (divi-profile/1)
///
/// A table of copies between host and device becomes links of a system description. Operators that have no form
/// in ONNX are listed on stderr.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Convert {
    /// Table to convert
    #[arg(value_name = "TABLE.json")]
    table: String,
    /// Device of the table whose times are converted; by default the GPU
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
        } else if Models::read(&text).is_ok() {
            return Err(format!("{file}: has times of whole models, which no profile has: give it to fit --graphs"));
        } else {
            let table = Operators::read(&text, kind).map_err(wrong)?;
            say(&table);
            table.profile().to_json()
        };
        files::write(self.output.as_deref(), &converted)
    }
}

/// Says what is left out and what is assumed, once for each model, operator and reason.
fn say(table: &Operators) {
    for model in &table.models {
        let remarks = [(&model.left_out, "left out, "), (&model.assumed, "")];
        for (remarks, verb) in remarks {
            for (index, Remark { node, op, text }) in remarks.iter().enumerate() {
                let is_same = |other: &&Remark| (&other.op, &other.text) == (op, text);
                if remarks[..index].iter().any(|other| is_same(&other)) {
                    continue;
                }
                let more = match remarks.iter().filter(is_same).count() {
                    1 => String::new(),
                    count => format!(" and {} more", count - 1),
                };
                eprintln!("divi-profile: {}: '{node}' ({op}){more}: {verb}{text}", model.name);
            }
        }
    }
}
