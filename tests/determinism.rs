//! The same recording gives the same bytes, whatever the number of threads.

mod support;

#[test]
fn output_does_not_depend_on_the_number_of_threads() {
    let (Some(recording), Some(binary)) =
        (support::recording("westmere-lbr.perf.data"), support::recording("westmere-lbr.binary"))
    else {
        return;
    };
    let replace = format!("test.binary={}", binary.display());
    for command in [vec!["blocks"], vec!["mix"], vec!["mix", "--rows", "thread,function", "--columns", "category"]] {
        for format in ["json", "csv", "table"] {
            let print = |threads: &str| {
                let mut arguments = command.clone();
                arguments.extend(["-i", recording.to_str().unwrap(), "--binary", &replace]);
                arguments.extend(["--format", format, "--threads", threads]);
                support::stdout(&arguments)
            };
            let one = print("1");
            for threads in ["2", "3", "16"] {
                assert_eq!(one, print(threads), "{command:?} with {threads} threads");
            }
        }
    }
}
