//! What is typed to keep some rows.

use analyzer::mix::{Filter, FilterError, Key, Taxonomies};

/// Reads comparisons as `--filter` takes them, with `;` between them. What is no comparison is a part of a function's name, with `*` for any text; in small
/// letters it stands for capitals, too.
///
/// # Errors
/// What is wrong with one of them, in words.
pub fn filters(text: &str, taxonomies: &Taxonomies) -> Result<Vec<Filter>, String> {
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    let filter = |part: &str| match Filter::read(part, taxonomies) {
        Err(error) if matches!(error, FilterError::NoOperator(_)) || is_of_name(part) => {
            Filter::read(&format!("function~{}", part_of_name(part)), taxonomies)
        }
        read => read,
    };
    parts.map(|part| filter(part).map_err(|error| error.to_string())).collect()
}

/// Whether no key can be meant: `~Vec`, `std::vector<int>`, `f(int)=0`.
fn is_of_name(part: &str) -> bool {
    part.contains("::") || part.contains('(') || !part.starts_with(char::is_alphabetic)
}

/// A regular expression of all names that have this part.
fn part_of_name(part: &str) -> String {
    let mut pattern = if is_any_case(part) { "(?i)".to_owned() } else { String::new() };
    let any = part.chars().map(|c| if c == '*' { ".*".to_owned() } else { escaped(c) });
    pattern.extend(any);
    pattern
}

/// The comparison that a value of a key passes, and no other value, as it is typed.
pub fn only(key: &Key, value: &str) -> String {
    if !value.contains([',', '*', ';']) {
        return format!("{key}={value}");
    }
    let any = value.chars().map(|c| if c == ';' { ".".to_owned() } else { escaped(c) });
    format!("{key}~^{}$", any.collect::<String>())
}

fn escaped(c: char) -> String {
    if r"\.+*?()|[]{}^$#&-~".contains(c) { format!("\\{c}") } else { c.to_string() }
}

/// Whether a text that is looked for stands for capitals, too.
pub fn is_any_case(text: &str) -> bool {
    !text.chars().any(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use analyzer::mix::Dimension;

    use super::*;

    #[test]
    fn names_are_found_by_a_part_and_values_by_comparisons() {
        let keeps = |text: &str, value: &str| {
            let filters = filters(text, &Taxonomies::default()).unwrap();
            filters.iter().all(|filter| filter.keeps(value))
        };
        assert!(keeps("mat", "la::MatMul(int)") && !keeps("Mat", "matmul"));
        assert!(keeps("m*(int, c", "mul(int, char)") && !keeps("m.l", "mul"));
        assert!(keeps("~Vec[0]\\{", "std::~Vec[0]\\{}"));
        assert!(keeps("std::vec<int", "std::Vec<int>"));
        assert!(keeps("", "anything") && keeps(" ; ", "anything"));
        assert!(keeps("mat; function!~long", "matmul(int)") && !keeps("mat; function!~long", "matmul(long)"));
        assert!(keeps("基本", "x基本块"));
        for value in ["a", "f(int, char*)", "a;b", "[unreadable]", "x=~y", "基,本", r"#&-~^$|+?.(){}[]\\/!,*"] {
            let only = only(&Dimension::Function.into(), value);
            assert!(keeps(&only, value) && !keeps(&only, "other") && !keeps(&only, &format!("{value}!")), "{only}");
        }
        let wrong = |text: &str| filters(text, &Taxonomies::default()).unwrap_err();
        assert!(wrong("colour=red").contains("there is no key"), "{}", wrong("colour=red"));
        assert!(wrong("mat; mnemonic~[").contains("unclosed"), "{}", wrong("mat; mnemonic~["));
    }
}
