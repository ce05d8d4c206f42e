//! Valid plans with one error introduced.

use divi_test::random::Random;

/// Names of the mutations.
pub(crate) const NAMES: [&str; 10] = [
    "wrong value",
    "task starts at zero",
    "launch starts at zero",
    "transfer removed",
    "transfer takes no time",
    "operands swapped",
    "task removed",
    "operator replaced",
    "batch removed",
    "batch repeated",
];

/// Returns mutants of a plan and of its stages, by name of the mutation.
pub(crate) fn of(random: &mut Random, planned: &str, outlined: &str) -> Vec<(&'static str, String)> {
    let is_batch = planned.contains("divi.batches");
    let mut mutants = vec![("wrong value", longer(planned)), ("wrong value", longer(outlined))];
    mutants.extend(at_once(random, planned).map(|broken| ("task starts at zero", broken)));
    mutants.extend(launched_at_once(random, outlined).map(|broken| ("launch starts at zero", broken)));
    mutants.extend(untransferred(random, outlined).map(|broken| ("transfer removed", broken)));
    mutants.extend(in_no_time(random, planned, ", end = ", ">").map(|broken| ("transfer takes no time", broken)));
    mutants.extend(in_no_time(random, outlined, "divi.end = ", " :").map(|broken| ("transfer takes no time", broken)));
    mutants.extend(with_batch(random, planned, |_| "").map(|broken| ("batch removed", broken)));
    mutants.extend(with_batch(random, planned, |batch| batch).map(|broken| ("batch repeated", broken)));
    // The contents of stages with other batch sizes are not verified.
    if !is_batch {
        mutants.extend(swapped(random, outlined).map(|broken| ("operands swapped", broken)));
        mutants.extend(left_out(random, planned).map(|broken| ("task removed", broken)));
        mutants.extend(left_out(random, outlined).map(|broken| ("task removed", broken)));
        mutants.extend(replaced(random, outlined).map(|broken| ("operator replaced", broken)));
    }
    mutants
}

/// Moves a task to another device that supports it, and into that device's stage if there are stages.
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

/// Changes one line of a text, the first for which `change` returns one.
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

/// Adds the result of `add` to the list of a task's batches, in the place of its first batch or, if not empty, before it.
fn with_batch(random: &mut Random, planned: &str, add: impl Fn(&str) -> &str) -> Option<String> {
    edit(random, planned, |_, line, _| {
        let batch = format!("{}>", between(line, "divi.batches = [", ">")?);
        let added = add(&batch);
        let (old, new) = match added.is_empty() {
            true if line.contains(&format!("{batch}, ")) => (format!("{batch}, "), String::new()),
            true => (batch, String::new()),
            false => (batch.clone(), format!("{added}, {batch}")),
        };
        Some(line.replacen(&old, &new, 1))
    })
}

/// Sets the end of a transfer to its start.
fn in_no_time(random: &mut Random, text: &str, key: &str, after: &str) -> Option<String> {
    edit(random, text, |_, line, _| {
        let end = between(line, key, after)?;
        let start = between(line, "start = ", if after == ">" { "," } else { " :" })?;
        Some(line.replacen(&format!("{key}{end}"), &format!("{key}{start}"), 1))
    })
}

/// Increases the plan's value.
fn longer(text: &str) -> String {
    let value = between(text, ", value = ", " :").expect("plans have values");
    let more = 1.01 * value.parse::<f64>().expect("values are numbers") + 1.0;
    text.replace(&format!(", value = {value} :"), &format!(", value = {more:?} :"))
}

/// Sets the start of a task with predecessors to zero.
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

/// Sets the start of a launch with transferred operands to zero.
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

/// Removes a transfer: its result is replaced by its operand, which the operation verifiers detect.
fn untransferred(random: &mut Random, outlined: &str) -> Option<String> {
    let transfers: Vec<&str> = outlined.lines().filter(|line| line.contains("= divi.transfer ")).collect();
    let transfer = *random.choose(Some(&transfers[..]).filter(|all| !all.is_empty())?);
    let (after, before) = (transfer.trim().split(' ').next()?, between(transfer, "divi.transfer ", " ")?);
    let lines = outlined.lines().filter(|line| *line != transfer);
    let main = lines.clone().position(|line| line.contains("func.func @main("))?;
    // SSA names are local to a function.
    let renamed =
        lines.enumerate().map(|(at, line)| if at > main { rename(line, after, before) } else { line.to_owned() });
    Some(renamed.collect::<Vec<_>>().join("\n"))
}

/// Renames a value in a line.
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

/// Removes a task with one operand, which replaces its result.
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
