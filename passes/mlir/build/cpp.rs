//! Generates the C++ side of the passes: classes that call Rust, and constructors for drivers.

use crate::records::{OptionType, Pass, PassOption, Scalar};

/// Generates the declarations of constructors that `mlir-tblgen` does not emit, for `cpp/Passes.h`.
pub(crate) fn constructors(passes: &[Pass]) -> String {
    passes.iter().filter_map(|pass| Some(format!("{};\n", constructor(pass)?.0))).collect()
}

/// Generates the classes of the passes, for `cpp/Passes.cpp`.
pub(crate) fn classes(passes: &[Pass]) -> String {
    let declarations: String =
        passes.iter().map(|pass| format!("bool diviRun{}({});\n", pass.name, parameters(pass))).collect();
    let bases: String =
        passes.iter().map(|pass| format!("#define GEN_PASS_DEF_{}\n", pass.name.to_uppercase())).collect();
    let classes: String = passes.iter().map(class).collect();
    let constructors: String =
        passes.iter().filter_map(constructor).map(|(head, body)| format!("{head} {{\n{body}}}\n\n")).collect();
    format!(
        "extern \"C\" {{\n{declarations}}}\n\nnamespace divi {{\n{bases}#include \"Passes.h.inc\"\n\nnamespace \
         {{\n{classes}}} // namespace\n\n{constructors}}} // namespace divi\n"
    )
}

/// Returns the C++ parameters of a pass's Rust function. [`crate::rust`] defines it with the same ones.
fn parameters(pass: &Pass) -> String {
    let mut parameters = vec!["MlirOperation module".to_owned()];
    parameters.extend(pass.options.iter().map(|PassOption { name, r#type, .. }| match r#type {
        OptionType::Scalar(scalar) => format!("{} {name}", scalar.cpp_name()),
        OptionType::Optional(scalar) => format!("const {} *{name}", scalar.cpp_name()),
        OptionType::Text | OptionType::Path => format!("MlirStringRef {name}"),
        OptionType::Texts => format!("const MlirStringRef *{name}, size_t {name}Length"),
    }));
    if pass.uses_session {
        parameters.push("DiviSession *session".to_owned());
    }
    if pass.writes_text {
        parameters.push("DiviSink sink, void *stream".to_owned());
    }
    if !pass.statistics.is_empty() {
        parameters.push("uint64_t *statistics".to_owned());
    }
    parameters.join(", ")
}

fn class(pass: &Pass) -> String {
    let name = &pass.name;
    let mut members = match pass.has_optional() {
        // An option assigned by a driver always has a value, so `isParsed` distinguishes the `unset` value.
        true => format!(
            "  {name}() = default;\n  explicit {name}({name}Options options) : {name}Base(std::move(options)), \
             isParsed(false) {{}}\n  bool isParsed = true;\n"
        ),
        false => format!("  using {name}Base::{name}Base;\n"),
    };
    let mut arguments = vec!["wrap(this->getOperation().getOperation())".to_owned()];
    arguments.extend(pass.options.iter().map(argument));
    if pass.uses_session {
        members += "  DiviSession *session = nullptr;\n";
        arguments.push("session".to_owned());
    }
    if pass.writes_text {
        members += "  llvm::raw_ostream *stream = nullptr;\n";
        arguments.push("stream ? appendToStream : nullptr, stream".to_owned());
    }
    let (mut before, mut after) = (String::new(), String::new());
    if !pass.statistics.is_empty() {
        before = format!("    uint64_t diviStatistics[{}] = {{}};\n", pass.statistics.len());
        arguments.push("diviStatistics".to_owned());
    }
    for (i, statistic) in pass.statistics.iter().enumerate() {
        after += &format!("    this->{} += diviStatistics[{i}];\n", statistic.name);
    }
    if pass.is_read_only {
        after += "    markAllAnalysesPreserved();\n";
    }
    let arguments = arguments.join(", ");
    format!(
        "struct {name} : impl::{name}Base<{name}> {{\n{members}  void runOnOperation() override {{\n{before}    if \
         (!diviRun{name}({arguments}))\n      signalPassFailure();\n{after}  }}\n}};\n\n"
    )
}

fn argument(option: &PassOption) -> String {
    let PassOption { name, default, .. } = option;
    match option.r#type {
        OptionType::Scalar(_) => format!("this->{name}"),
        OptionType::Optional(_) => format!("given(this->{name}, isParsed, {default})"),
        OptionType::Text | OptionType::Path => format!("wrap(StringRef(this->{name}))"),
        OptionType::Texts => format!("wrapAll(this->{name}).data(), this->{name}.size()"),
    }
}

/// Returns head and body of the constructor that takes the objects a driver shares with a pass.
fn constructor(pass: &Pass) -> Option<(String, String)> {
    let name = &pass.name;
    let mut shared = vec![];
    if pass.uses_session {
        shared.push(("DiviSession *", "session"));
    }
    if pass.writes_text {
        shared.push(("llvm::raw_ostream *", "stream"));
    }
    if shared.is_empty() {
        return None;
    }
    let parameters: String = shared.iter().map(|(r#type, name)| format!(", {type}{name}")).collect();
    let assignments: String = shared.iter().map(|(_, name)| format!("  pass->{name} = {name};\n")).collect();
    Some((
        format!("std::unique_ptr<::mlir::Pass> create{name}({name}Options options{parameters})"),
        format!("  auto pass = std::make_unique<{name}>(std::move(options));\n{assignments}  return pass;\n"),
    ))
}

impl Scalar {
    fn cpp_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Integer => "int64_t",
            Self::Real => "double",
        }
    }
}
