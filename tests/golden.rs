//! What people see, byte by byte. `INSTA_UPDATE=always cargo test --test golden` takes a wanted change over.

mod support;

fn check(name: &str, arguments: &[&str]) {
    let (Some(recording), Some(binary)) =
        (support::recording("westmere-lbr.perf.data"), support::recording("westmere-lbr.binary"))
    else {
        return;
    };
    let replace = format!("test.binary={}", binary.display());
    let mut all = arguments.to_vec();
    all.extend(["-i", recording.to_str().unwrap(), "--binary", &replace]);
    insta::assert_snapshot!(name, support::stdout(&all));
}

#[test]
fn mix_by_mnemonic() {
    check("mix_by_mnemonic", &["mix"]);
}

#[test]
fn mix_as_a_pivot() {
    check("mix_as_a_pivot", &["mix", "--rows", "isa,category", "--columns", "memory"]);
}

#[test]
fn mix_by_function_csv() {
    check("mix_by_function_csv", &["mix", "--rows", "module,function", "--format", "csv", "--top", "20"]);
}

#[test]
fn blocks_table() {
    check("blocks_table", &["blocks", "--top", "25"]);
}

#[test]
fn blocks_json() {
    check("blocks_json", &["blocks", "--top", "3", "--format", "json"]);
}
