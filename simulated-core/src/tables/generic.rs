//! What stands for cores without a table.

use crate::core::{Core, Times, Units, takes};
use crate::tables::amd::ZEN_4;
use crate::tables::levels;

/// What most of the cores with a table have, or their middle.
pub(crate) const GENERIC: Core = Core {
    width: 4.5,
    window: 256,
    wrong_path: 15.0,
    load: 5.0,
    vector_load: 6.0,
    forward: 5.0,
    units: Units { integer: 4.0, ..ZEN_4.units },
    times: Times { float_multiply: takes(4.0), convert: takes(4.0), cross: takes(3.0), ..ZEN_4.times },
    levels: levels([32, 1024, 2048], [5.0, 14.0, 55.0, 400.0]),
    ..ZEN_4
};
