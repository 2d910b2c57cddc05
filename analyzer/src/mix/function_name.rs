//! What people call functions whose names are long.

use crate::flow::without_suffixes;

/// The names of a function of C++ or Rust besides its whole one: without its arguments and what follows them, without the type that a
/// template returns, without template arguments, without Rust's hash, without what compilers add to clones (`.constprop.0`).
pub fn bare_names(name: &str) -> Vec<String> {
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let whole = without_suffixes(name);
    let without_hash = whole.rsplit_once("::h").filter(|(_, hash)| is_hash(hash)).map_or(whole, |(before, _)| before);
    let without_arguments = match outside(without_hash).find(|(_, c)| *c == '(') {
        Some((at, _)) => &without_hash[..at],
        None => without_hash,
    };
    let space = outside(without_arguments).filter(|(_, c)| *c == ' ').last();
    let without_type = match space {
        Some((at, _)) if !without_arguments[..at].ends_with("operator") => &without_arguments[at + 1..],
        _ => without_arguments,
    };
    let mut names: Vec<String> = [whole, without_hash, without_arguments, without_type].map(str::to_owned).to_vec();
    names.push(without_templates(without_type));
    names.retain(|bare| bare != name && !bare.is_empty());
    names.dedup();
    names
}

/// The name without `<..>`, but for a type that begins a name of Rust: `<T as Trait>::f`.
fn without_templates(name: &str) -> String {
    let mut bare = String::new();
    let mut last = 0;
    let mut open = false;
    for (at, c, depth) in depths(name) {
        match c {
            '<' if depth == 0 && !bare_begins(&name[..at]) => {
                bare += &name[last..at];
                open = true;
            }
            '>' if depth == 1 && open => (open, last) = (false, at + 1),
            _ => {}
        }
    }
    // One that is not closed.
    if !open {
        bare += &name[last..];
    }
    bare
}

/// Whether what follows begins a part of a path.
fn bare_begins(before: &str) -> bool {
    before.is_empty() || before.ends_with("::")
}

/// The characters that are in no brackets, opening brackets among them.
fn outside(name: &str) -> impl Iterator<Item = (usize, char)> {
    depths(name).into_iter().filter(|(_, _, depth)| *depth == 0).map(|(at, c, _)| (at, c))
}

/// All characters but those of operators and `(anonymous namespace)`, and in how many brackets each is: an opening bracket is outside of its own,
/// a closing one inside.
fn depths(name: &str) -> Vec<(usize, char, usize)> {
    const OPERATOR: &str = "operator";
    const ANONYMOUS: &str = "(anonymous namespace)";
    let mut found = Vec::new();
    let (mut depth, mut skip_to) = (0_usize, 0);
    for (at, c) in name.char_indices() {
        if at < skip_to {
            continue;
        }
        let rest = &name[at..];
        if rest.starts_with(ANONYMOUS) {
            skip_to = at + ANONYMOUS.len();
            continue;
        }
        let is_in_word = name[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        if let Some(symbols) = rest.strip_prefix(OPERATOR).filter(|_| !is_in_word) {
            let is_symbol = |c: char| "<>=-+*/%^&|~!,".contains(c);
            let of_symbols = symbols.find(|c| !is_symbol(c)).unwrap_or(symbols.len());
            let brackets = ["()", "[]"].iter().any(|brackets| symbols.starts_with(brackets));
            skip_to = at + OPERATOR.len() + if brackets { 2 } else { of_symbols };
            continue;
        }
        match c {
            '(' | '<' | '[' | '{' => {
                found.push((at, c, depth));
                depth += 1;
            }
            ')' | '>' | ']' | '}' => {
                found.push((at, c, depth));
                depth = depth.saturating_sub(1);
            }
            _ => found.push((at, c, depth)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_short_names() {
        for (name, called) in [
            ("matmul(int)", "matmul"),
            ("ns::f(int, std::vector<int> const&) const", "ns::f"),
            ("(anonymous namespace)::Polygon::area() const", "(anonymous namespace)::Polygon::area"),
            ("matmul(int) [clone .cold]", "matmul"),
            ("void sum<int>(int)", "sum"),
            ("void sum<int>(int)", "sum<int>"),
            ("std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector::push_back"),
            ("A::operator()(int) const", "A::operator()"),
            ("A::operator<<(int)", "A::operator<<"),
            ("A::operator bool() const", "A::operator bool"),
            ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"),
            ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
            ("alloc::vec::Vec<T,A>::push", "alloc::vec::Vec::push"),
            ("scale.constprop.0", "scale"),
            ("scale.isra.0.cold", "scale"),
            ("alloc::vec::Vec<T>::push.cold", "alloc::vec::Vec::push"),
            ("core::fmt::write::h0123456789abcdef.llvm.7", "core::fmt::write"),
        ] {
            assert!(bare_names(name).iter().any(|bare| bare == called), "{name}: {:?}", bare_names(name));
        }
        for name in ["main", "<T as core::fmt::Debug>::fmt", "core::ops::{{closure}}", ""] {
            assert_eq!(bare_names(name), [""; 0], "{name}");
        }
        assert!(!bare_names("A::operator bool() const").contains(&"bool".to_owned()));
    }

    /// Names come from files.
    #[test]
    fn no_name_is_too_odd() {
        for name in ["((((", "))))", "<", ">a<b", "operator", "é(ü", "a<b", "f(", "::h", " ", "operator<<é>"] {
            bare_names(name);
        }
    }
}
