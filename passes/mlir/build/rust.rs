//! Generates the Rust side of the passes: structs, and the functions that C++ calls.

use crate::records::{OptionType, Pass, PassOption, Scalar};
use std::fmt::Write;

/// Number of arguments above which clippy's `too_many_arguments` fires.
const MANY_ARGUMENTS: usize = 7;

/// Generates the structs of options and statistics, for `src/declared.rs`.
pub(crate) fn declarations(passes: &[Pass]) -> String {
    passes.iter().map(declaration).collect()
}

fn declaration(pass: &Pass) -> String {
    let Pass { name, argument, summary, .. } = pass;
    let fields: Vec<_> = pass.options.iter().map(field).collect();
    let body = if fields.is_empty() { ";".to_owned() } else { format!(" {{\n{}}}", fields.concat()) };
    let mut out = format!("/// `{argument}`: {summary}.\n#[derive(Debug)]\npub(crate) struct {name}{body}\n\n");
    if pass.statistics.is_empty() {
        return out;
    }
    let (mut fields, mut values) = (String::new(), vec![]);
    for statistic in &pass.statistics {
        let field = snake_case(&statistic.name);
        // Writing to a String cannot fail.
        let _ = writeln!(fields, "    #[doc = {:?}]\n    pub {field}: u64,", statistic.description);
        values.push(format!("self.{field}"));
    }
    let (count, values) = (values.len(), values.join(", "));
    let _ = write!(
        out,
        "/// Statistics of `{argument}`.\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub struct {name}Statistics \
         {{\n{fields}}}\n\nimpl {name}Statistics {{\n    /// Values in the order of `td/Passes.td`.\n    pub(crate) fn \
         values(&self) -> [u64; {count}] {{\n        [{values}]\n    }}\n}}\n\n"
    );
    out
}

fn field(option: &PassOption) -> String {
    let r#type = match option.r#type {
        OptionType::Scalar(scalar) => scalar.name().to_owned(),
        OptionType::Optional(scalar) => format!("Option<{}>", scalar.name()),
        OptionType::Text => "String".to_owned(),
        OptionType::Path => "std::path::PathBuf".to_owned(),
        OptionType::Texts => "Vec<String>".to_owned(),
    };
    let name = snake_case(&option.name);
    format!("    #[doc = {:?}]\n    pub(crate) {name}: {type},\n", option.description)
}

impl Scalar {
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Integer => "i64",
            Self::Real => "f64",
        }
    }
}

/// Generates the functions `diviRun…`, for `src/ffi.rs`. [`crate::cpp`] declares them with the same arguments.
pub(crate) fn entry_points(passes: &[Pass]) -> String {
    passes.iter().map(entry_point).collect()
}

fn entry_point(pass: &Pass) -> String {
    let name = &pass.name;
    let mut arguments = vec!["module: MlirOperation".to_owned()];
    arguments.extend(pass.options.iter().flat_map(option_arguments));
    let fields: Vec<_> = pass.options.iter().map(|option| conversion(option) + ",\n").collect();
    let fields = if fields.is_empty() { String::new() } else { format!(" {{\n{}        }}", fields.concat()) };
    let (mut setup, mut call) = ("", "pass.run(module)?".to_owned());
    if pass.uses_session {
        arguments.push("session: *mut Session".to_owned());
        setup = "// SAFETY: the driver's session, if there is one, outlives the call and has no other user during it.\n        \
                 let session = unsafe { session.as_mut() };\n        ";
        call = "pass.run(module, session)?".to_owned();
    }
    if pass.writes_text {
        // Such a pass has no statistics: `records` rejects both at once.
        arguments.extend(["sink: Option<Sink>".to_owned(), "stream: *mut c_void".to_owned()]);
        call = format!("write_text(module, &pass.output, sink, stream, &{call})?");
    }
    if !pass.statistics.is_empty() {
        arguments.push(format!("statistics: *mut [u64; {}]", pass.statistics.len()));
        call = format!(
            "let counted = {call};\n        // SAFETY: the caller has room for all statistics.\n        unsafe {{ \
             *statistics = counted.values() }}"
        );
    }
    let allowed = match arguments.len() > MANY_ARGUMENTS {
        true => "#[allow(clippy::too_many_arguments, reason = \"one argument per option\")]\n",
        false => "",
    };
    let arguments = arguments.join(", ");
    format!(
        "{allowed}#[unsafe(no_mangle)]\nunsafe extern \"C\" fn diviRun{name}({arguments}) -> bool {{\n    run(module, |module| {{\n        \
         let pass = {name}{fields};\n        {setup}{call};\n        Ok(())\n    }})\n}}\n\n"
    )
}

fn option_arguments(option: &PassOption) -> Vec<String> {
    let name = snake_case(&option.name);
    match option.r#type {
        OptionType::Scalar(scalar) => vec![format!("{name}: {}", scalar.name())],
        OptionType::Optional(scalar) => vec![format!("{name}: *const {}", scalar.name())],
        OptionType::Text | OptionType::Path => vec![format!("{name}: MlirStringRef")],
        OptionType::Texts => vec![format!("{name}: *const MlirStringRef"), format!("{name}_length: usize")],
    }
}

/// Returns the initializer of a field from the arguments of its option.
fn conversion(option: &PassOption) -> String {
    let name = snake_case(&option.name);
    let value = match option.r#type {
        OptionType::Scalar(_) => return format!("            {name}"),
        OptionType::Optional(_) => format!("{name}.as_ref().copied()"),
        OptionType::Text => format!("text({name}).to_owned()"),
        OptionType::Path => format!("path({name}).to_owned()"),
        OptionType::Texts => format!("texts({name}, {name}_length)"),
    };
    format!("            // SAFETY: the option outlives the call.\n            {name}: unsafe {{ {value} }}")
}

/// Converts `maxClusterOps` to `max_cluster_ops`.
fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
