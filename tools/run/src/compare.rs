//! Accuracy of outputs and of results of tasks relative to a reference: those of another bundle, or arrays in files.

use crate::{arguments::Arguments, expected, files, inputs, numbers::numbers};
use divi_npy::npz;
use divi_runtime::{
    Options, Runtime, TensorData, TensorRef,
    bundle::{Bundle, DESCRIPTION, TaskResult, Tensor},
};
use serde_json::{Value, json};
use std::{
    fmt::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Difference between an output and its reference.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    name: String,
    elements: usize,
    /// Largest error relative to the largest finite number of the reference.
    largest: f64,
    /// Mean error relative to that number.
    mean: f64,
    /// Share of the rows (along the last axis) whose largest element is at the same position.
    first: Option<f64>,
    /// Norm of the error relative to the norm of the reference.
    rms: f64,
    /// Part of `rms` that the task of the output adds to the errors of the results that it reads; `None` if that is not asked for.
    added: Option<f64>,
    /// Share of the positions of the five largest elements of a row that are the same, in any order.
    five: Option<f64>,
}

/// Returns the reference of each output, in the order of the outputs; nothing if none is given. With `--by-task`, outputs may have none.
pub(crate) fn reference(
    runtime: &Runtime,
    inputs: &[(String, Arc<TensorData>)],
    arguments: &Arguments,
) -> Result<Vec<Option<TensorData>>, String> {
    let Some(path) = &arguments.compare else { return Ok(vec![]) };
    if arguments.by_task && runtime.bundle().task_results.is_empty() {
        return Err(
            "--by-task: the bundle does not return results of tasks; compile it with divi-opt --mark-outputs".into()
        );
    }
    let found = match () {
        () if path.join(DESCRIPTION).is_file() => outputs_of(path, inputs, arguments)?,
        () if path.is_dir() => {
            let read = |(name, file, described): (&str, PathBuf, &Tensor)| {
                Ok((name.to_owned(), inputs::read(&file, described)?))
            };
            let is_wanted = |(_, file, _): &(&str, PathBuf, &Tensor)| !arguments.by_task || file.is_file();
            expected::files_of(runtime, path).filter(is_wanted).map(read).collect::<Result<_, String>>()?
        }
        () => arrays(runtime, path)?,
    };
    let mut found: Vec<_> = found.into_iter().map(|(name, tensor)| (name, Some(tensor))).collect();
    let mut take = |(name, described): (&str, &Tensor)| {
        let output = found.iter_mut().find(|(known, _)| known == name).and_then(|(_, tensor)| tensor.take());
        let path = path.display();
        let Some(tensor) = output else {
            let missing = || format!("{path}: has no output '{name}'");
            return arguments.by_task.then_some(None).ok_or_else(missing);
        };
        if described.shape != tensor.shape() {
            return Err(format!("{path}: output '{name}' is {}, but that of the bundle {described}", tensor.view()));
        }
        Ok(Some(tensor))
    };
    runtime.outputs().map(&mut take).collect()
}

/// Runs another bundle on the same inputs and returns its outputs.
fn outputs_of(
    folder: &Path,
    inputs: &[(String, Arc<TensorData>)],
    arguments: &Arguments,
) -> Result<Vec<(String, TensorData)>, String> {
    let fail = |error: divi_runtime::Error| format!("--compare {}: {error}", folder.display());
    let (threads, allowed_paths) = (arguments.threads, arguments.allowed_paths.clone());
    let choices = arguments.choices.clone();
    let options = Options { threads, allowed_paths, choices, ..Options::default() };
    let runtime = Runtime::load(folder, options).map_err(fail)?;
    let inputs: Vec<(&str, TensorRef<'_>)> = inputs.iter().map(|(name, tensor)| (&name[..], tensor.view())).collect();
    runtime.run(&inputs).map_err(fail)
}

/// Reads the arrays of a NumPy archive that have the names of outputs.
fn arrays(runtime: &Runtime, path: &Path) -> Result<Vec<(String, TensorData)>, String> {
    let all = runtime.outputs().map(|(_, tensor)| inputs::file_bytes(tensor));
    let all = all.fold(inputs::MOST_HEADER_BYTES, u64::saturating_add);
    let described = |name: &str| runtime.outputs().find(|(known, _)| *known == name).map(|(_, tensor)| tensor);
    let may_read = |name: &str, bytes: u64| match described(name) {
        None => Err(format!("the model has no output '{name}'")),
        Some(tensor) if bytes > inputs::file_bytes(tensor) => {
            Err(format!("it has {bytes} bytes, more than any file of {tensor}"))
        }
        Some(_) => Ok(()),
    };
    npz::read_bounded(&files::read(path, all)?, may_read).map_err(|reason| format!("{}: {reason}", path.display()))
}

/// Returns the difference of each output from its reference, or `None` if it has none.
pub(crate) fn compare(
    reference: &[Option<TensorData>],
    outputs: &[(String, TensorData)],
) -> Result<Vec<Option<Difference>>, String> {
    let one = |((name, output), reference): (&(String, TensorData), &Option<TensorData>)| {
        let Some(reference) = reference else { return Ok(None) };
        match (numbers(output.view()), numbers(reference.view())) {
            (Some(found), Some(wanted)) => Ok(Some(difference(name, &found, &wanted, output.shape()))),
            _ => Err(format!("--compare: output '{name}' is {}: its elements are no numbers", output.view())),
        }
    };
    outputs.iter().zip(reference).map(one).collect()
}

/// Returns the differences of results of tasks, those that add most first, from the differences of all outputs.
pub(crate) fn by_task(task_results: &[TaskResult], differences: &[Option<Difference>]) -> Vec<Difference> {
    let rms = |&output: &usize| differences[output].as_ref().map(|difference| difference.rms);
    let added = |TaskResult { output, computed_from }: &TaskResult| {
        let difference = differences[*output].clone()?;
        let read = computed_from.iter().filter_map(rms).fold(0.0, f64::max);
        // Squares of independent errors add up. Infinite errors of operands are not added again.
        let added = if difference.rms > read { (difference.rms.powi(2) - read.powi(2)).sqrt() } else { 0.0 };
        Some(Difference { added: Some(added), ..difference })
    };
    let mut found: Vec<_> = task_results.iter().filter_map(added).collect();
    found.sort_by(|a, b| b.added.unwrap_or(0.0).total_cmp(&a.added.unwrap_or(0.0)));
    found
}

/// Number of largest elements that are compared.
const FIRST_FIVE: usize = 5;

fn difference(name: &str, found: &[f64], wanted: &[f64], shape: &[u64]) -> Difference {
    let finite = wanted.iter().map(|number| number.abs()).filter(|number| number.is_finite());
    let scale = finite.fold(0.0, f64::max);
    let error = |(&found, &wanted): (&f64, &f64)| match (found - wanted).abs() / scale {
        _ if found == wanted || found.is_nan() && wanted.is_nan() => 0.0,
        error if error.is_nan() => f64::INFINITY,
        error => error,
    };
    let errors = || found.iter().zip(wanted).map(error);
    let squares = wanted.iter().filter(|number| number.is_finite()).map(|number| (number / scale).powi(2));
    let rms = match errors().map(|error| error.powi(2)).sum::<f64>() {
        0.0 => 0.0,
        sum => (sum / squares.sum::<f64>()).sqrt(),
    };
    let width = shape.last().map_or(1, |&width| usize::try_from(width).unwrap_or(usize::MAX)).max(1);
    let share = |count: usize| {
        let rows = found.chunks_exact(width).zip(wanted.chunks_exact(width));
        let is_ranked = width > count && !found.is_empty();
        let same = |(found, wanted)| {
            let found = largest(found, count);
            largest(wanted, count).iter().filter(|position| found.contains(position)).count()
        };
        is_ranked.then(|| rows.map(same).sum::<usize>() as f64 / (found.len() / width * count) as f64)
    };
    Difference {
        name: name.to_owned(),
        elements: found.len(),
        largest: errors().fold(0.0, f64::max),
        mean: errors().sum::<f64>() / found.len().max(1) as f64,
        rms: if rms.is_nan() { f64::INFINITY } else { rms },
        added: None,
        first: share(1),
        five: share(FIRST_FIVE),
    }
}

/// Returns the positions of the largest elements of a row; the first of equal ones.
fn largest(row: &[f64], count: usize) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..row.len()).collect();
    let order = |&a: &usize, &b: &usize| row[b].total_cmp(&row[a]).then(a.cmp(&b));
    positions.select_nth_unstable_by(count - 1, order);
    positions.truncate(count);
    positions
}

/// Returns the differences of results of tasks as a table, with a line about those without a reference.
pub(crate) fn table_by_task(differences: &[Difference], bundle: &Bundle) -> String {
    let width = differences.iter().map(|difference| difference.name.len()).max().unwrap_or(0).max("task".len());
    let mut text =
        format!("{:width$} {:>10} {:>10} {:>10} {:>10}\n", "task", "elements", "max error", "rms error", "added");
    for Difference { name, elements, largest, rms, added, .. } in differences {
        let added = added.unwrap_or(0.0);
        let _ = writeln!(text, "{name:width$} {elements:>10} {largest:>10.1e} {rms:>10.1e} {added:>10.1e}");
    }
    let names = bundle.task_results.iter().map(|result| &bundle.outputs[result.output].name[..]);
    let missing: Vec<_> = names.filter(|name| !differences.iter().any(|difference| difference.name == *name)).collect();
    if !missing.is_empty() {
        let _ = writeln!(text, "without a reference: {}", missing.join(", "));
    }
    text
}

/// Returns the differences as a table.
pub(crate) fn table(differences: &[Difference]) -> String {
    let Some(width) = differences.iter().map(|difference| difference.name.len()).max() else { return String::new() };
    let width = width.max("output".len());
    let mut text = format!(
        "{:width$} {:>10} {:>10} {:>10} {:>8} {:>8}\n",
        "output", "elements", "max error", "mean", "top-1", "top-5"
    );
    for Difference { name, elements, largest, mean, first, five, .. } in differences {
        let percent =
            |share: &Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        let (first, five) = (percent(first), percent(five));
        let _ = writeln!(text, "{name:width$} {elements:>10} {largest:>10.1e} {mean:>10.1e} {first:>8} {five:>8}");
    }
    text
}

/// Returns the differences for `--json`.
pub(crate) fn as_json(differences: &[Difference]) -> Value {
    let one = |Difference { name, elements, largest, mean, rms, added, first, five }: &Difference| {
        let mut one = json!({
            "output": name,
            "elements": elements,
            "max_error": largest,
            "mean_error": mean,
            "rms_error": rms,
            "top1": first,
            "top5": five,
        });
        if let Some(added) = added {
            one["added_error"] = json!(added);
        }
        one
    };
    differences.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::{by_task, difference};
    use divi_runtime::bundle::TaskResult;

    #[test]
    fn errors_are_relative_to_the_largest_number() {
        let found = difference("y", &[1.0, -4.0, 2.0], &[1.5, -4.0, 2.0], &[3]);
        assert_eq!((found.largest, found.mean, found.first, found.five), (0.125, 0.125 / 3.0, Some(1.0), None));
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        let equal = difference("y", &[nan, infinity, 1.0], &[nan, infinity, 1.0], &[3, 1]);
        assert_eq!((equal.largest, equal.first), (0.0, None));
        assert_eq!(difference("y", &[nan, 1.0], &[1.0, 1.0], &[]).largest, infinity);
        assert_eq!(difference("y", &[1e-30], &[0.0], &[1]).largest, infinity);
        assert_eq!(difference("y", &[], &[], &[0, 4]).mean, 0.0);
    }

    /// A chain of three tasks; the second one has no reference.
    #[test]
    fn tasks_add_errors_to_those_of_their_operands() {
        let one = |name: &str, error: f64| Some(difference(name, &[3.0 + error, 4.0], &[3.0, 4.0], &[2]));
        let differences = [one("c", 5.0), one("a", 4.0), None];
        let task = |output, computed_from: &[usize]| TaskResult { output, computed_from: computed_from.to_vec() };
        let found = by_task(&[task(0, &[1, 2]), task(1, &[]), task(2, &[1])], &differences);
        let found = found.iter().map(|it| format!("{} {:.3} {:.3}", it.name, it.rms, it.added.unwrap()));
        assert_eq!(found.collect::<Vec<_>>(), ["a 0.800 0.800", "c 1.000 0.600"]);
        let infinite = [one("b", f64::INFINITY), one("a", f64::INFINITY)];
        let found = by_task(&[task(0, &[1]), task(1, &[])], &infinite);
        let found: Vec<_> = found.iter().map(|it| (&it.name[..], it.added)).collect();
        assert_eq!(found, [("a", Some(f64::INFINITY)), ("b", Some(0.0))]);
    }

    #[test]
    fn ranks_are_compared_by_row() {
        let wanted = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let found = [3.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        let both = difference("y", &found, &wanted, &[2, 6]);
        assert_eq!((both.first, both.five), (Some(1.0), Some(0.8)));
    }
}
