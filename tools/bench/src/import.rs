//! `divi-bench import`: import compared with `onnx.load` + `onnx.shape_inference` in Python.
//!
//! Both are timed inside their process, as medians of warm runs, so that startup does not count. divi does more work: it
//! folds shape arithmetic and builds a module.

use crate::python;
use divi_passes::import::{Options, Source, import};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

const BASELINE: &str = include_str!("import_baseline.py");

/// The largest graphs in `test/models`; their weights are missing.
const GRAPHS: &[&str] = &["openllama_3b_1x128", "gpt2_large_1x128", "vit_b_16", "densenet121"];

/// Models that are also measured with embedded weights, as exporters write them.
const EMBEDDED: &[&str] = &["resnet50", "bert_base_128"];

const REPEATS: usize = 15;

struct Row {
    name: String,
    path: PathBuf,
    repeats: usize,
}

/// Compare import with onnx.load and onnx.shape_inference in Python
#[derive(clap::Args)]
pub(crate) struct Import {
    /// Models to import; by default the largest of test/models
    #[arg(value_name = "MODEL.onnx")]
    models: Vec<String>,
}

impl Import {
    pub(crate) fn run(self) -> Result<(), String> {
        let given = || self.models.iter().map(|path| given(path)).collect();
        let rows = if self.models.is_empty() { defaults()? } else { given() };
        println!("{:<34} {:>10} {:>12} {:>12} {:>8}", "model", "file", "onnx (ms)", "divi (ms)", "ratio");
        for row in &rows {
            let path = row.path.to_str().ok_or("paths must be UTF-8")?;
            let printed = python::run(BASELINE, &[&row.repeats.to_string(), path])?;
            let baseline: f64 = printed
                .split_whitespace()
                .map(|word| word.parse::<f64>().map_err(|_| format!("the baseline printed '{word}'")))
                .sum::<Result<f64, _>>()?;
            let ours = measure(&row.path, row.repeats.max(5))?.as_secs_f64();
            let size = fs::metadata(&row.path).map_err(|error| error.to_string())?.len() as f64 / 1e6;
            println!(
                "{:<34} {:>7.1} MB {:>12.2} {:>12.2} {:>7.1}x",
                row.name,
                size,
                baseline * 1e3,
                ours * 1e3,
                baseline / ours
            );
        }
        Ok(())
    }
}

fn given(path: &str) -> Row {
    Row { name: path.to_owned(), path: path.into(), repeats: REPEATS }
}

fn defaults() -> Result<Vec<Row>, String> {
    let model = |name: &str| PathBuf::from(format!("test/models/{name}.onnx"));
    let mut rows = vec![];
    for name in EMBEDDED {
        let path = PathBuf::from(format!("target/bench/{name}_weights.onnx"));
        if !path.exists() {
            fs::create_dir_all("target/bench").map_err(|error| error.to_string())?;
            let (out, source) = (path.to_string_lossy(), model(name));
            python::run(BASELINE, &["--embed", &out, &source.to_string_lossy()])?;
        }
        rows.push(Row { name: format!("{name}, weights inside"), path, repeats: 3 });
    }
    rows.extend(GRAPHS.iter().map(|name| Row { name: (*name).to_owned(), path: model(name), repeats: REPEATS }));
    Ok(rows)
}

/// Returns the median time of an import into a new context.
fn measure(path: &Path, repeats: usize) -> Result<Duration, String> {
    let mut samples = vec![];
    for _ in 0..=repeats {
        let context = divi_passes::new_context();
        let start = Instant::now();
        let source = Source::open(path).map_err(|error| error.to_string())?;
        let module = import(&context, &source, &Options::default()).map_err(|error| error.to_string())?;
        samples.push(start.elapsed());
        drop(module);
    }
    // The first run is a warm-up.
    samples.remove(0);
    samples.sort();
    Ok(samples[samples.len() / 2])
}
