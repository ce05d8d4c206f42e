//! `divi-profile convert`.

use crate::{USAGE, arguments::Arguments, files};
use divi_cost::fit::Kind;
use divi_cost::pytorch::{Models, Operators, transfers};

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let arguments = Arguments::read(arguments, &["o", "device"])?;
    if arguments.is_help {
        return files::write(None, USAGE);
    }
    let [file] = &arguments.files[..] else { return Err("convert needs one table (see --help)".to_owned()) };
    let text = files::read(file)?;
    let kind = arguments.kind()?.unwrap_or(Kind::Cuda);
    let wrong = |error: divi_cost::json::Error| format!("{file}: {error}");
    let converted = if transfers::recognizes(&text) {
        let links = transfers::read(&text).map_err(wrong)?;
        links.iter().map(|link| link.to_toml("cpu0", "gpu0")).collect::<Vec<_>>().join("\n")
    } else if Models::read(&text).is_ok() {
        return Err(format!("{file}: has times of whole models, which no profile has: give it to fit --graphs"));
    } else {
        let table = Operators::read(&text, kind).map_err(wrong)?;
        say_left_out(&table);
        table.profile().to_json()
    };
    files::write(arguments.option("o"), &converted)
}

/// Says what is left out, once for each model, operator and reason.
fn say_left_out(table: &Operators) {
    for model in &table.models {
        let mut said: Vec<(&str, &str)> = vec![];
        for left_out in &model.left_out {
            let reason = (&left_out.op[..], &left_out.why[..]);
            if said.contains(&reason) {
                continue;
            }
            said.push(reason);
            let same = model.left_out.iter().filter(|other| (&other.op[..], &other.why[..]) == reason);
            let nodes: Vec<&str> = same.map(|other| &other.node[..]).collect();
            let more = if nodes.len() > 1 { format!(" and {} more", nodes.len() - 1) } else { String::new() };
            let (op, why) = reason;
            eprintln!("divi-profile: {}: '{}' ({op}){more} left out: {why}", model.name, nodes[0]);
        }
    }
}
