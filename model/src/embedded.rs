//! Models that come with the program.

use crate::{Model, SourcePair};

/// The model that comes with the program for sources of this kind, made by `training-data/make`.
pub fn embedded(pair: SourcePair) -> Option<Model> {
    let json = match pair {
        SourcePair::Software => include_str!("../models/software.json"),
        SourcePair::Hardware | SourcePair::Simulated => return None,
    };
    Model::read(json.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_models_are_models_for_their_kind() {
        let model = Model::read(include_bytes!("../models/software.json")).unwrap();
        assert_eq!(model.pair, SourcePair::Software);
        assert_eq!(embedded(SourcePair::Software), Some(model));
    }
}
