//! The views on recordings that are in the repository, drawn.
