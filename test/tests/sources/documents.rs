//! Documents: paths, links and names in them exist.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Paths that documents name although they do not exist, and why.
const ABSENT: &[(&str, &str)] = &[("passes/planner/src/solvers/round_robin.rs", "file that the guide adds")];

/// Endings of the paths that are checked.
const ENDINGS: &[&str] = &[".rs", ".td", ".md", ".toml", ".txt", "/"];

/// A Markdown file of the repository.
pub(super) struct Document {
    /// Relative to the repository.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl Document {
    pub(super) fn open(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let text = fs::read_to_string(divi_test::repository().join(&path));
        Self { text: text.unwrap_or_else(|error| panic!("{}: {error}", path.display())), path }
    }

    /// Lines outside of fenced blocks, with their numbers.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut is_fenced = false;
        let is_text = move |line: &&str| {
            let is_fence = line.trim_start().starts_with("```");
            is_fenced ^= is_fence;
            !is_fenced && !is_fence
        };
        let mut is_text = is_text;
        self.text.lines().enumerate().filter(move |(_, line)| is_text(line)).map(|(index, line)| (index + 1, line))
    }

    /// Fenced blocks of a language.
    pub(super) fn blocks(&self, language: &str) -> Vec<String> {
        let mut blocks = vec![];
        let mut open: Option<(bool, Vec<&str>)> = None;
        for line in self.text.lines() {
            match (line.trim_start().strip_prefix("```"), &mut open) {
                (Some(name), None) => open = Some((name == language, vec![])),
                (Some(_), Some((is_wanted, lines))) => {
                    if *is_wanted {
                        blocks.push(lines.join("\n") + "\n");
                    }
                    open = None;
                }
                (None, Some((_, lines))) => lines.push(line),
                (None, None) => {}
            }
        }
        blocks
    }

    /// Code spans, with the numbers of their lines and the text between each and the one before.
    pub(super) fn spans(&self) -> Vec<(usize, &str, &str)> {
        let mut spans = vec![];
        for (number, line) in self.lines() {
            let parts: Vec<&str> = line.split('`').collect();
            // Every second part is between backticks; the last one is behind them.
            spans.extend(parts.chunks_exact(2).map(|pair| (number, pair[0], pair[1])));
        }
        spans
    }
}

/// README.md and all documents.
fn documents() -> Vec<Document> {
    let root = divi_test::repository();
    let mut paths = vec![root.join("README.md")];
    collect(&root.join("docs"), &mut paths);
    let relative = |path: PathBuf| path.strip_prefix(root).expect("it was found there").to_owned();
    paths.into_iter().map(|path| Document::open(relative(path))).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).expect("the folder is there").flatten().collect();
    entries.sort_by_key(|entry| entry.file_name());
    for path in entries.into_iter().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
}

/// Returns true if a code span is a path of the repository: not a folder of an example (`bundle/`), a pattern or a placeholder.
fn is_path(span: &str) -> bool {
    let has_folder = span.trim_end_matches('/').contains('/');
    let is_plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c));
    let is_elsewhere = ["/", ".", "target/"].iter().any(|prefix| span.starts_with(prefix));
    has_folder && is_plain && !is_elsewhere && ENDINGS.iter().any(|ending| span.ends_with(ending))
}

/// A path is relative to the repository, to the folder of the document, or to the sources of a crate that the document names.
#[test]
fn paths_in_documents_exist() {
    let root = divi_test::repository();
    let (mut checked, mut missing) = (0, vec![]);
    let mut unused: Vec<&str> = ABSENT.iter().map(|(path, _)| *path).collect();
    for document in documents() {
        let spans = document.spans();
        let crates =
            spans.iter().map(|(.., span)| root.join(span)).filter(|folder| folder.join("Cargo.toml").is_file());
        let mut bases: Vec<PathBuf> = crates.map(|folder| folder.join("src")).collect();
        bases.extend([root.to_owned(), root.join(&document.path).parent().map(Path::to_owned).unwrap_or_default()]);
        for (line, _, span) in spans.into_iter().filter(|(.., span)| is_path(span)) {
            checked += 1;
            // A reader who follows a page creates its files.
            if ABSENT.iter().any(|(path, _)| *path == span) {
                unused.retain(|path| *path != span);
            } else if !bases.iter().any(|base| base.join(span).exists()) {
                missing.push(format!("{}:{line}: {span}", document.path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "paths that do not exist:\n{}", missing.join("\n"));
    assert!(checked > 100, "{checked} paths");
    assert!(unused.is_empty(), "exceptions that no document needs any more: {unused:?}");
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut missing = vec![];
    for document in documents() {
        let folder = divi_test::repository().join(&document.path).parent().map(Path::to_owned).unwrap_or_default();
        for (line, text) in document.lines() {
            for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
                let file = link.split('#').next().unwrap_or_default();
                if !link.contains("://") && !file.is_empty() && !folder.join(file).exists() {
                    missing.push(format!("{}:{line}: {link}", document.path.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "links to files that do not exist:\n{}", missing.join("\n"));
}

/// In `path.rs`: `a`, `b`, the names are of that file.
#[test]
fn names_of_papers_are_in_their_files() {
    let document = Document::open("docs/papers.md");
    let (mut checked, mut missing) = (0, vec![]);
    let mut file: Option<(&str, String)> = None;
    for (line, before, span) in document.spans() {
        if is_path(span) && span.ends_with(".rs") {
            let text = fs::read_to_string(divi_test::repository().join(span)).unwrap_or_default();
            file = Some((span, text));
        } else if let Some((path, text)) = file.as_ref().filter(|_| matches!(before, ": " | ", ")) {
            checked += 1;
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            if !text.split(|c| !is_word(c)).any(|word| word == span) {
                missing.push(format!("docs/papers.md:{line}: {span} in {path}"));
            }
        } else {
            file = None;
        }
    }
    assert!(missing.is_empty(), "names that are not there:\n{}", missing.join("\n"));
    assert!(checked > 60, "{checked} names");
}

#[test]
fn glossary_is_sorted() {
    let document = Document::open("docs/glossary.md");
    let rows = document.lines().filter_map(|(_, line)| line.strip_prefix("| ")).skip(1);
    let terms: Vec<String> = rows.filter_map(|row| Some(row.split(" | ").next()?.to_lowercase())).collect();
    assert!(terms.len() >= 80, "{} terms", terms.len());
    let unsorted: Vec<_> = terms.windows(2).filter(|pair| pair[0] >= pair[1]).collect();
    assert!(unsorted.is_empty(), "{unsorted:?}");
}
