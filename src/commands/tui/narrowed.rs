//! What is typed to keep some rows.

use analyzer::mix::{Filter, FilterError, Taxonomies};

/// Reads comparisons as `--filter` takes them, with `;` between them. What is no comparison is a part of a function's name, with `*` for any text; in small
/// letters it stands for capitals, too.
///
/// # Errors
/// What is wrong with one of them, in words.
pub fn filters(text: &str, taxonomies: &Taxonomies) -> Result<Vec<Filter>, String> {
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    let filter = |part: &str| match Filter::read(part, taxonomies) {
        Err(FilterError::NoOperator(_)) => Filter::read(&format!("function~{}", part_of_name(part)), taxonomies),
        read => read,
    };
    parts.map(|part| filter(part).map_err(|error| error.to_string())).collect()
}

/// A regular expression of all names that have this part.
fn part_of_name(part: &str) -> String {
    let mut pattern = if is_any_case(part) { "(?i)".to_owned() } else { String::new() };
    for c in part.chars() {
        match c {
            '*' => pattern += ".*",
            c if r"\.+?()|[]{}^$#&-~".contains(c) => pattern.extend(['\\', c]),
            c => pattern.push(c),
        }
    }
    pattern
}

/// Whether a text that is looked for stands for capitals, too.
pub fn is_any_case(text: &str) -> bool {
    !text.chars().any(char::is_uppercase)
}

#[cfg(test)]
mod tests {
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
        assert!(keeps("", "anything") && keeps(" ; ", "anything"));
        assert!(keeps("mat; function!~long", "matmul(int)") && !keeps("mat; function!~long", "matmul(long)"));
        assert!(keeps("基本", "x基本块"));
        let wrong = |text: &str| filters(text, &Taxonomies::default()).unwrap_err();
        assert!(wrong("colour=red").contains("there is no key"), "{}", wrong("colour=red"));
        assert!(wrong("mat; mnemonic~[").contains("unclosed"), "{}", wrong("mat; mnemonic~["));
    }
}
