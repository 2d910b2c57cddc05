//! Zen 2 to Zen 5.

use crate::core::{Core, Renaming, Times, Units, keeps, takes};
use crate::tables::levels;

/// As `benches/core-latencies` measured it. Where that and the manual differ, it is the former: mixes that no unit holds up run at 5.5 to 7.7
/// instructions per cycle, not 8. The errors of the training programs are the same within a tenth for 6.5 and 7, and grow below; with a window of
/// 200 they are the same. Of the third level others
/// left 2 to 15 MiB on the servers that were seen; two, with the second level, is what is taken where nobody measured.
pub(crate) const ZEN_5: Core = Core {
    width: 6.5,
    window: 448,
    wrong_path: 14.0,
    taken: 0.25,
    load: 4.0,
    vector_load: 6.0,
    forward: 6.0,
    renames_memory: Renaming::Always,
    from_sum: 1.0,
    loads: 3.0,
    vector_loads: 2.0,
    stores: 2.0,
    units: Units {
        integer: 5.0,
        multiply: 2.0,
        divide: 1.0,
        vector: 4.0,
        vector_multiply: 2.0,
        vector_shift: 2.0,
        float_add: 2.0,
        vector_divide: 1.0,
    },
    shares_ports: false,
    times: Times {
        multiply: takes(3.0),
        divide: keeps(11.0, 6.0),
        divide_64: keeps(14.0, 8.0),
        lock: keeps(18.0, 18.0),
        vector: takes(2.0),
        vector_multiply: takes(3.0),
        vector_shift: takes(2.0),
        float_add: takes(2.0),
        float_multiply: takes(3.0),
        multiply_add: takes(4.0),
        float_divide: keeps(11.0, 5.0),
        square_root: keeps(14.0, 7.0),
        float_divide_64: keeps(13.0, 5.0),
        square_root_64: keeps(20.0, 9.0),
        convert: takes(3.0),
        compare_to_flags: takes(4.0),
        cross: takes(4.0),
        crypto: takes(3.0),
        repeat: keeps(20.0, 4.0),
        repeat_bytes: keeps(20.0, 4.0),
    },
    levels: levels([48, 1024, 2048], [4.0, 14.0, 50.0, 570.0]),
};

/// Instructions of vectors take one cycle, sums of floating point numbers three to every unit; six instructions come in a cycle.
pub(crate) const ZEN_4: Core = Core {
    width: 5.0,
    window: 320,
    wrong_path: 13.0,
    vector_load: 7.0,
    from_sum: 0.0,
    units: Units { integer: 4.0, multiply: 1.0, ..ZEN_5.units },
    times: Times {
        vector: takes(1.0),
        vector_shift: takes(1.0),
        float_add: takes(3.0),
        float_divide: keeps(11.0, 3.0),
        square_root: keeps(15.0, 5.0),
        float_divide_64: keeps(13.0, 5.0),
        square_root_64: keeps(21.0, 9.0),
        crypto: takes(4.0),
        ..ZEN_5.times
    },
    levels: levels([32, 1024, 2048], [4.0, 14.0, 50.0, 450.0]),
    ..ZEN_5
};

/// A smaller window and second level.
pub(crate) const ZEN_3: Core = Core { window: 256, levels: levels([32, 512, 2048], [4.0, 12.0, 46.0, 400.0]), ..ZEN_4 };

/// Two loads and one store in a cycle, a slow divider, longer pipelines.
pub(crate) const ZEN_2: Core = Core {
    window: 224,
    wrong_path: 18.0,
    forward: 7.0,
    loads: 2.0,
    stores: 1.0,
    times: Times {
        divide: keeps(17.0, 17.0),
        divide_64: keeps(25.0, 25.0),
        multiply_add: takes(5.0),
        float_divide: keeps(10.0, 5.0),
        square_root: keeps(14.0, 7.0),
        float_divide_64: keeps(13.0, 6.0),
        square_root_64: keeps(20.0, 10.0),
        ..ZEN_3.times
    },
    levels: levels([32, 512, 2048], [4.0, 12.0, 39.0, 350.0]),
    ..ZEN_3
};
