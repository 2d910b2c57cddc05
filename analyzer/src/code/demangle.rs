//! Names as the source has them.

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Longest demangled name, in bytes. Substitutions let a short mangled name stand for one that fills memory.
const LONGEST: usize = 1 << 14;
/// Nesting that the C++ demangler follows; it recurses.
const DEPTH: u32 = 128;

/// A Rust or C++ name demangled, without hash; any other name as it is. A suffix from `@` on (`@plt`, a symbol version) stays.
pub fn demangle(name: &str) -> String {
    let (mangled, suffix) = name.split_at(name.find('@').unwrap_or(name.len()));
    match rust(mangled).or_else(|| cpp(mangled)) {
        Some(demangled) => demangled + suffix,
        None => name.to_owned(),
    }
}

fn rust(mangled: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(mangled).ok()?;
    let mut text = Limited::default();
    std::fmt::Write::write_fmt(&mut text, format_args!("{name:#}")).ok()?;
    Some(text.0)
}

fn cpp(mangled: &str) -> Option<String> {
    if !mangled.starts_with("_Z") {
        return None;
    }
    let symbol = Symbol::new_with_options(mangled, &ParseOptions::default().recursion_limit(DEPTH)).ok()?;
    let mut text = Limited::default();
    symbol.structured_demangle(&mut text, &DemangleOptions::new().recursion_limit(DEPTH)).ok()?;
    Some(text.0)
}

/// Text that refuses to grow beyond [`LONGEST`].
#[derive(Default)]
struct Limited(String);

impl std::fmt::Write for Limited {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}
