//! What to say of values of filters that nothing has.

use analyzer::mix::{Dimension, Taxonomies, UNREADABLE, Unmatched, Values};

use crate::nearest::{did_you_mean, nearest};
use crate::{Argument, Arguments};

/// A sentence on a value that nothing has, with the names that are nearest to it.
pub fn sentence(unmatched: &Unmatched, arguments: &dyn Arguments) -> String {
    let Unmatched { key, value, is_comparison, existing } = unmatched;
    let values = arguments.values_of(key.as_str());
    if *is_comparison {
        return format!("nothing has {key}{value} (`{values}` shows what there is)");
    }
    let filter = arguments.name(Argument::Filter);
    // What no instruction can have is another mistake than what none has here.
    if let Some(Values::Words(words)) = key.dimension().map(Dimension::values)
        && !value.contains('*')
        && value != UNREADABLE
        && !words.contains(&value.as_str())
        && nearest(value, existing).is_empty()
    {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mean = did_you_mean(value, &words, filter, &values, |name| format!("{key}={name}"));
        return format!("{key} is never {value:?}{mean}");
    }
    let mean = did_you_mean(value, existing, filter, &values, |name| format!("{key}={name}"));
    format!("nothing has the {key} {value:?}{mean}")
}

/// The key that is nearest to what somebody wrote, if one is near.
pub fn near_key(written: &str, taxonomies: &Taxonomies) -> Option<String> {
    let keys = Dimension::ALL.iter().map(|key| key.as_str());
    let names: Vec<String> =
        keys.chain(taxonomies.iter().map(|taxonomy| taxonomy.name.as_str())).map(str::to_owned).collect();
    nearest(written, &names).first().map(|name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_a_key_never_has_is_told_from_one_that_nothing_has() {
        struct Words;
        impl Arguments for Words {
            fn name(&self, _: Argument) -> &'static str {
                "--filter"
            }
            fn values_of(&self, key: &str) -> String {
                format!("hbbp mix --rows {key}")
            }
        }
        let check = |value: &str, text: &str| {
            let existing = vec!["base".to_owned(), "sse2".to_owned()];
            let (key, value) = (Dimension::Isa.into(), value.to_owned());
            assert_eq!(sentence(&Unmatched { key, value, is_comparison: false, existing }, &Words), text);
        };
        check("avx", "nothing has the isa \"avx\" (`hbbp mix --rows isa` shows what there is)");
        check("sse22", "nothing has the isa \"sse22\": did you mean --filter 'isa=sse2'?");
        check("avxx", "isa is never \"avxx\": did you mean --filter 'isa=avx' or 'isa=avx2'?");
        check("colour", "isa is never \"colour\" (`hbbp mix --rows isa` shows what there is)");
    }

    #[test]
    fn near_keys_are_proposed() {
        let near = |written| near_key(written, &Taxonomies::default());
        assert_eq!(near("vectorisation").as_deref(), Some("vectorization"));
        assert_eq!(near("operand_size").as_deref(), Some("operand-size"));
        assert_eq!(near("colour"), None);
    }
}
