//! Is it vectorized? Which part of floating-point and vector work is scalar, and how wide the rest is, by function and loop.
//!
//! What an instruction does, and how many operations it is, is said by the taxonomies `vector-work`, `vectorization` and `flops`; the counts are
//! those of a [mix](crate::mix).
//!
//! ```text
//! part     instructions of one kind of work, form and element, and their operations
//! work     the parts of a row, and their sums
//! rows     a mix -> the work of functions or loops, the one with the most scalar operations first
//! ```

mod part;
mod rows;
mod work;

pub use part::{Domain, Form, Part};
pub use rows::{Query, Row, Vectorization, vectorization};
pub use work::Work;
