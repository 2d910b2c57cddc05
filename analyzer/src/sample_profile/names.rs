//! The names by which compilers look functions up.

/// Whose names a profile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// LLVM takes `.llvm.` and `.part.` with a number off the end, and leaves others (`FunctionSamples::getCanonicalFnName`):
    /// names of `-funique-internal-linkage-names` (`f.__uniq.123`) stay.
    Llvm,
    /// GCC takes off all from the first dot (`get_original_name` in auto-profile.cc), and knows a name only once.
    Gcc,
}

impl Names {
    /// The name to look up, of the name of a symbol.
    pub fn of(self, symbol: &str) -> &str {
        let name = symbol.split('@').next().unwrap_or(symbol); // `@plt`, or a version.
        match self {
            Self::Llvm => without_number(without_number(name, ".llvm."), ".part."),
            Self::Gcc => match name.find('.') {
                Some(dot) if dot > 0 => &name[..dot],
                _ => name,
            },
        }
    }
}

/// Without the suffix, if what follows it is the last part of the name.
fn without_number<'name>(name: &'name str, suffix: &str) -> &'name str {
    match name.rfind(suffix) {
        Some(at) if name.rfind('.') == Some(at + suffix.len() - 1) => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llvm_keeps_what_its_loader_compares() {
        let of = |name| Names::Llvm.of(name);
        assert_eq!(of("_Z1fv"), "_Z1fv");
        assert_eq!(of("f.llvm.123"), "f");
        assert_eq!(of("f.part.0"), "f");
        assert_eq!(of("f.__uniq.5.llvm.123"), "f.__uniq.5");
        assert_eq!(of("f.__uniq.5"), "f.__uniq.5");
        assert_eq!(of("f.llvm.123.cold"), "f.llvm.123.cold");
        assert_eq!(of("f.constprop.0"), "f.constprop.0");
        assert_eq!(of("malloc@plt"), "malloc");
        assert_eq!(of("memcpy@@GLIBC_2.14"), "memcpy");
    }

    #[test]
    fn gcc_keeps_what_is_before_the_first_dot() {
        let of = |name| Names::Gcc.of(name);
        assert_eq!(of("f.isra.0.cold"), "f");
        assert_eq!(of("_ZN1fE"), "_ZN1fE");
        assert_eq!(of(".text"), ".text");
    }
}
