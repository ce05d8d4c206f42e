//! Good plans, broken in one place.

use divi_test::random::Random;

pub(crate) const NAMES: [&str; 8] = [
    "another value",
    "a task at once",
    "a launch at once",
    "a transfer left out",
    "a transfer in no time",
    "operands swapped",
    "a task left out",
    "another operator",
];

/// What can be broken in a plan and in its stages, by name.
pub(crate) fn of(random: &mut Random, planned: &str, outlined: &str) -> Vec<(&'static str, String)> {
    let is_batch = planned.contains("objective = \"batch\"");
    let mut mutants = vec![("another value", longer(planned)), ("another value", longer(outlined))];
    mutants.extend(at_once(random, planned).map(|broken| ("a task at once", broken)));
    mutants.extend(launched_at_once(random, outlined).map(|broken| ("a launch at once", broken)));
    mutants.extend(untransferred(random, outlined).map(|broken| ("a transfer left out", broken)));
    mutants.extend(in_no_time(random, planned, ", end = ", ">").map(|broken| ("a transfer in no time", broken)));
    mutants.extend(in_no_time(random, outlined, "divi.end = ", " :").map(|broken| ("a transfer in no time", broken)));
    // What stages of other batches compute is not known.
    if !is_batch {
        mutants.extend(swapped(random, outlined).map(|broken| ("operands swapped", broken)));
        mutants.extend(left_out(random, planned).map(|broken| ("a task left out", broken)));
        mutants.extend(left_out(random, outlined).map(|broken| ("a task left out", broken)));
        mutants.extend(replaced(random, outlined).map(|broken| ("another operator", broken)));
    }
    mutants
}

/// A plan with a task on another device that supports it, in the stage of that device where there are stages.
pub(crate) fn moved(random: &mut Random, planned: &str) -> Option<String> {
    edit(random, planned, |random, line, lines| {
        let device = between(line, "divi.device = @", ",").or_else(|| between(line, "divi.device = @", "}"))?;
        let others: Vec<&str> = ["cpu0", "gpu0", "gpu1"]
            .into_iter()
            .filter(|other| *other != device && line.contains(&format!("@{other} = {{")))
            .collect();
        let other = *random.choose(Some(&others[..]).filter(|others| !others.is_empty())?);
        let moved = line.replace(&format!("divi.device = @{device}"), &format!("divi.device = @{other}"));
        let Some(stage) = between(line, "divi.stage = ", " :") else { return Some(moved) };
        let there = lines.iter().find(|line| line.contains(&format!("divi.device = @{other}")))?;
        let there = between(there, "divi.stage = ", " :")?;
        Some(moved.replace(&format!("divi.stage = {stage} :"), &format!("divi.stage = {there} :")))
    })
}

/// The text with one line changed, if `change` knows one to change.
fn edit(
    random: &mut Random,
    text: &str,
    change: impl Fn(&mut Random, &str, &[&str]) -> Option<String>,
) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let first = random.below(lines.len());
    for i in 0..lines.len() {
        let at = (first + i) % lines.len();
        if let Some(changed) = change(random, lines[at], &lines) {
            lines[at] = &changed;
            return Some(lines.join("\n"));
        }
    }
    None
}

fn between<'a>(line: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let rest = &line[line.find(from)? + from.len()..];
    Some(&rest[..rest.find(to)?])
}

/// A transfer that says when it ends does so when it starts.
fn in_no_time(random: &mut Random, text: &str, key: &str, after: &str) -> Option<String> {
    edit(random, text, |_, line, _| {
        let end = between(line, key, after)?;
        let start = between(line, "start = ", if after == ">" { "," } else { " :" })?;
        Some(line.replacen(&format!("{key}{end}"), &format!("{key}{start}"), 1))
    })
}

fn longer(text: &str) -> String {
    let value = between(text, ", value = ", " :").expect("plans have values");
    let more = 1.01 * value.parse::<f64>().expect("values are numbers") + 1.0;
    text.replace(&format!(", value = {value} :"), &format!(", value = {more:?} :"))
}

/// A task that reads another starts when everything does.
fn at_once(random: &mut Random, planned: &str) -> Option<String> {
    edit(random, planned, |_, line, lines| {
        let start = between(line, "divi.start = ", " :")?;
        let reads = between(line, "\"(", ")")?;
        let same_stage = |other: &str| between(other, "divi.stage = ", " :") == between(line, "divi.stage = ", " :");
        let of_task = |value: &str| {
            let made = format!("{} = \"onnx.", value.trim());
            lines.iter().any(|other| other.trim_start().starts_with(&made) && same_stage(other))
        };
        let broken = line.replace(&format!("divi.start = {start} :"), "divi.start = 0.0 :");
        reads.split(',').any(of_task).then_some(broken)
    })
}

/// A launch that reads what is moved starts when everything does.
fn launched_at_once(random: &mut Random, outlined: &str) -> Option<String> {
    edit(random, outlined, |_, line, lines| {
        let operands = line.contains("divi.launch").then(|| between(line, "(", ")"))??;
        let start = between(line, "divi.start = ", " :")?;
        let is_moved = |value: &str| {
            let made = format!("{} = divi.transfer ", value.trim());
            lines.iter().any(|other| other.trim_start().starts_with(&made))
        };
        let broken = line.replace(&format!("divi.start = {start} :"), "divi.start = 0.0 :");
        operands.split(',').any(is_moved).then_some(broken)
    })
}

/// What was moved is read where it was before: MLIR's own verifier sees that.
fn untransferred(random: &mut Random, outlined: &str) -> Option<String> {
    let transfers: Vec<&str> = outlined.lines().filter(|line| line.contains("= divi.transfer ")).collect();
    let transfer = *random.choose(Some(&transfers[..]).filter(|all| !all.is_empty())?);
    let (after, before) = (transfer.trim().split(' ').next()?, between(transfer, "divi.transfer ", " ")?);
    let lines = outlined.lines().filter(|line| *line != transfer);
    let main = lines.clone().position(|line| line.contains("func.func @main("))?;
    // Names are those of a function only.
    let renamed =
        lines.enumerate().map(|(at, line)| if at > main { rename(line, after, before) } else { line.to_owned() });
    Some(renamed.collect::<Vec<_>>().join("\n"))
}

/// A line with another name for a value.
fn rename(line: &str, from: &str, to: &str) -> String {
    let mut renamed = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(from) {
        let end = at + from.len();
        let is_whole = !rest[end..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        renamed += &rest[..at];
        renamed += if is_whole { to } else { from };
        rest = &rest[end..];
    }
    renamed + rest
}

fn swapped(random: &mut Random, outlined: &str) -> Option<String> {
    edit(random, outlined, |_, line, _| {
        let operands = line.contains("divi.launch").then(|| between(line, "(", ")"))??;
        let mut names: Vec<&str> = operands.split(", ").collect();
        if names.len() < 2 {
            return None;
        }
        names.swap(0, 1);
        Some(line.replacen(operands, &names.join(", "), 1))
    })
}

/// A task with one operand goes, and its readers read that.
fn left_out(random: &mut Random, text: &str) -> Option<String> {
    let is_unary = |line: &&str| {
        ["Relu", "Abs", "Neg", "Exp"].iter().any(|op| line.contains(&format!("= \"onnx.{op}\"(")))
            && line.contains("divi.cost")
    };
    let tasks: Vec<&str> = text.lines().filter(is_unary).collect();
    let task = *random.choose(Some(&tasks[..]).filter(|all| !all.is_empty())?);
    let (after, before) = (task.trim().split(' ').next()?, between(task, "\"(", ")")?);
    let mut inside = false;
    let mut lines = vec![];
    for line in text.lines() {
        if line == task {
            inside = true;
            continue;
        }
        inside &= !line.contains("func.func");
        lines.push(if inside { rename(line, after, before) } else { line.to_owned() });
    }
    Some(lines.join("\n"))
}

fn replaced(random: &mut Random, outlined: &str) -> Option<String> {
    edit(random, outlined, |_, line, _| {
        let (from, to) = [("\"onnx.Relu\"", "\"onnx.Abs\""), ("\"onnx.Add\"", "\"onnx.Sub\"")]
            .into_iter()
            .find(|(from, _)| line.contains(from))?;
        Some(line.replace(from, to))
    })
}
