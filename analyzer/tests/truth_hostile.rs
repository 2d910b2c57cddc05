//! Whatever is in a file of instrumentation: an error or a result, never a panic.

use analyzer::BinarySearch;
use analyzer::truth::{Callgrind, ExactCounter, MixFile, Truth};
use proptest::prelude::*;

/// Lines that callgrind writes, about this test program itself.
fn line() -> impl Strategy<Value = String> {
    let this = std::env::current_exe().unwrap().display().to_string();
    let address = prop_oneof![
        any::<u64>().prop_map(|at| format!("{at:#x}")),
        (0..0x40_0000_u64).prop_map(|at| format!("{at:#x}")),
        (0..100_u64).prop_map(|by| format!("+{by}")),
        (0..100_u64).prop_map(|by| format!("-{by}")),
        Just("*".to_string()),
    ];
    let count = prop_oneof![0..1000_u64, any::<u64>()];
    prop_oneof![
        4 => (address.clone(), count.clone()).prop_map(|(at, count)| format!("{at} 0 {count}")),
        1 => (address, count).prop_map(|(at, calls)| format!("cob=???\ncalls={calls} {at} 0")),
        1 => Just(format!("ob=(1) {this}")),
        1 => Just("ob=(1)".to_string()),
        1 => Just("ob=???".to_string()),
        1 => Just("fn=f".to_string()),
        1 => Just("part: 2".to_string()),
        1 => "[ -~]{0,12}",
    ]
}

/// The same file with its right sum at the end, found by asking the reader.
fn with_totals(text: &str) -> String {
    let said = Callgrind::read(format!("{text}\ntotals: 0\n").as_bytes());
    let sum = said.map_or_else(
        |error| error.to_string().split_whitespace().find_map(|word| word.parse::<u64>().ok()).unwrap_or(0),
        |_| 0,
    );
    format!("{text}\ntotals: {sum}\n")
}

proptest! {
    #[test]
    fn of_callgrind(lines in prop::collection::vec(line(), 0..40)) {
        let this = std::env::current_exe().unwrap();
        let head = format!("# callgrind format\npositions: instr line\nevents: Ir\nob={}\nfn=f\n", this.display());
        let text = with_totals(&(head + &lines.join("\n")));
        if let Ok(profile) = Callgrind::read(text.as_bytes()) {
            let counted = profile.total;
            let mut counter = ExactCounter::new(BinarySearch::default());
            counter.add_callgrind(profile);
            if let Ok(truth) = counter.finish() {
                let left_out = truth.left_out.iter().map(|left| left.instructions).fold(0, u64::saturating_add);
                prop_assert!(truth.instructions().saturating_add(left_out) >= counted);
                let mut json = Vec::new();
                truth.write_json(&mut json).unwrap();
                prop_assert_eq!(Truth::read_json(json.as_slice()).unwrap(), truth);
            }
        }
    }

    #[test]
    fn of_the_mix_tool(text in "(BLOCK:|XDIS| EXECUTIONS: [0-9]{1,20}| IMG: /a|# |\\$global-dynamic-counts|\n|:|[0-9a-f]{1,16}|\\*total [0-9]{1,20}| )*") {
        let _ = MixFile::read(text.as_bytes());
    }

    #[test]
    fn of_anything(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Callgrind::read(bytes.as_slice());
        let _ = MixFile::read(bytes.as_slice());
        let _ = Truth::read_json(bytes.as_slice());
    }
}
