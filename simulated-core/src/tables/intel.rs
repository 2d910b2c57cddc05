//! Skylake to Golden Cove, and Gracemont.

use crate::core::{Core, Renaming, Times, Units, keeps, takes};
use crate::tables::levels;

/// Four instructions in a cycle, vectors on three of the four ports of general registers, one store.
pub(crate) const SKYLAKE: Core = Core {
    width: 3.5,
    window: 224,
    wrong_path: 16.0,
    taken: 0.25,
    load: 5.0,
    vector_load: 6.0,
    forward: 4.0,
    renames_memory: Renaming::Never,
    from_sum: 0.0,
    loads: 2.0,
    vector_loads: 2.0,
    stores: 1.0,
    units: Units {
        integer: 4.0,
        multiply: 1.0,
        divide: 1.0,
        vector: 3.0,
        vector_multiply: 2.0,
        vector_shift: 2.0,
        float_add: 2.0,
        vector_divide: 1.0,
    },
    shares_ports: true,
    times: Times {
        multiply: takes(3.0),
        divide: keeps(26.0, 6.0),
        divide_64: keeps(42.0, 24.0),
        lock: keeps(18.0, 18.0),
        vector: takes(1.0),
        vector_multiply: takes(5.0),
        vector_shift: takes(1.0),
        float_add: takes(4.0),
        float_multiply: takes(4.0),
        multiply_add: takes(4.0),
        float_divide: keeps(11.0, 3.0),
        square_root: keeps(12.0, 3.0),
        float_divide_64: keeps(14.0, 4.0),
        square_root_64: keeps(18.0, 6.0),
        convert: takes(4.0),
        compare_to_flags: takes(3.0),
        cross: takes(2.0),
        crypto: takes(4.0),
        repeat: keeps(20.0, 4.0),
        repeat_bytes: keeps(20.0, 4.0),
    },
    levels: levels([32, 1024, 2048], [5.0, 14.0, 68.0, 350.0]),
};

/// Five instructions in a cycle, two stores, a faster divider.
pub(crate) const ICE_LAKE: Core = Core {
    width: 4.0,
    window: 352,
    wrong_path: 17.0,
    stores: 2.0,
    times: Times { divide: keeps(12.0, 6.0), divide_64: keeps(15.0, 10.0), crypto: takes(3.0), ..SKYLAKE.times },
    levels: levels([48, 1280, 2560], [5.0, 14.0, 70.0, 350.0]),
    ..SKYLAKE
};

/// Six instructions in a cycle, three loads, five ports of general registers; some loads of what was just stored get it at once.
pub(crate) const GOLDEN_COVE: Core = Core {
    width: 5.0,
    window: 512,
    forward: 6.0,
    renames_memory: Renaming::OfOneLoad,
    loads: 3.0,
    vector_loads: 3.0,
    units: Units { integer: 5.0, ..SKYLAKE.units },
    times: Times {
        float_add: takes(2.0),
        // Nothing else executes meanwhile.
        repeat: keeps(34.0, 34.0 * 5.0),
        repeat_bytes: keeps(10.0, 10.0 * 5.0),
        ..ICE_LAKE.times
    },
    levels: levels([48, 2048, 4096], [5.0, 15.0, 75.0, 400.0]),
    ..ICE_LAKE
};

/// Five instructions in a cycle, vectors on three ports of their own, products of floating point numbers and sums in one that take six cycles.
pub(crate) const GRACEMONT: Core = Core {
    width: 4.0,
    window: 256,
    wrong_path: 14.0,
    load: 4.0,
    forward: 5.0,
    stores: 2.0,
    units: Units { vector_shift: 1.0, ..SKYLAKE.units },
    shares_ports: false,
    times: Times {
        multiply: takes(5.0),
        divide: keeps(12.0, 6.0),
        divide_64: keeps(16.0, 10.0),
        float_add: takes(3.0),
        multiply_add: takes(6.0),
        float_divide: keeps(13.0, 6.0),
        square_root: keeps(14.0, 7.0),
        float_divide_64: keeps(15.0, 10.0),
        square_root_64: keeps(20.0, 13.0),
        cross: takes(3.0),
        repeat: SKYLAKE.times.repeat,
        repeat_bytes: SKYLAKE.times.repeat_bytes,
        ..GOLDEN_COVE.times
    },
    levels: levels([32, 2048, 4096], [4.0, 17.0, 70.0, 400.0]),
    ..SKYLAKE
};
