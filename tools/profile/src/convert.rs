//! `divi-profile convert`.

use crate::{
    USAGE,
    arguments::{Arguments, kind_of_tables},
    files,
};
use divi_cost::pytorch::{Models, Operators, Remark, transfers};

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let arguments = Arguments::read(arguments, &["o", "device"])?;
    if arguments.is_help {
        return files::write(None, USAGE);
    }
    let [file] = &arguments.files[..] else { return Err("convert needs one table (see --help)".to_owned()) };
    arguments.check_outputs(&["o"], &[])?;
    let text = files::read(file)?;
    let kind = arguments.kind()?.unwrap_or_else(kind_of_tables);
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
    files::write(arguments.option("o"), &converted)
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
