//! What to say of values of filters that nothing has.

use analyzer::mix::Unmatched;

use crate::commands::nearest::nearest;

/// A sentence on a value that nothing has, with the names that are nearest to it.
pub fn sentence(unmatched: &Unmatched) -> String {
    let Unmatched { key, value, existing } = unmatched;
    let nearest = nearest(value, existing);
    let mean = match nearest.as_slice() {
        [] if existing.is_empty() => String::new(),
        [] => format!(" (`hbbp mix --rows {key}` shows what there is)"),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("'{key}={name}'")).collect();
            format!(": did you mean --filter {}?", names.join(" or "))
        }
    };
    format!("nothing has the {key} {value:?}{mean}")
}
