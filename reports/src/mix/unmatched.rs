//! What to say of values of filters that nothing has.

use analyzer::mix::{Dimension, Taxonomies, Unmatched};

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
    fn near_keys_are_proposed() {
        let near = |written| near_key(written, &Taxonomies::default());
        assert_eq!(near("vectorisation").as_deref(), Some("vectorization"));
        assert_eq!(near("operand_size").as_deref(), Some("operand-size"));
        assert_eq!(near("colour"), None);
    }
}
