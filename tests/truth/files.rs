//! Files made elsewhere, and files that are not what they should be.

use std::path::Path;

use crate::{executions, support, synthetic};

/// The program of four blocks, ten times around: A 10 (6 of them on to B), B 6, C 4, D 10. Pin's blocks overlap: C runs into D.
fn mix_file(binary: &Path) -> String {
    let image = binary.display();
    let mut text =
        "# Mix output version 14\n# Intel(R) SDE version: 9.33.0 external\n# EMIT_TOP_BLOCK_STATS FOR TID 0\n"
            .to_string();
    let block = |text: &mut String, index: u64, start: u64, bytes: u64, addresses: &[u64], executions: u64| {
        let instructions = executions * addresses.len() as u64;
        *text += &format!(
            "BLOCK: {index:5}   PC: {start:016x}   ICOUNT: {instructions:6}   EXECUTIONS: {executions:6}   #BYTES: {bytes}   \
             PCT: 1.00   CUMLPCT: 1.00   FN: _start   IMG: {image}\n"
        );
        addresses.iter().for_each(|at| *text += &format!("XDIS {at:016x}: BASE     90          nop\n"));
        *text += "\n";
    };
    let a: Vec<u64> = (synthetic::A..=synthetic::A_JNE).collect();
    block(&mut text, 0, synthetic::A, 22, &a, 10);
    let b: Vec<u64> = (synthetic::B..=synthetic::B_JMP).collect();
    block(&mut text, 1, synthetic::B, 5, &b, 6);
    let c_and_d: Vec<u64> = (synthetic::C..=synthetic::D_JMP).collect();
    block(&mut text, 2, synthetic::C, 5, &c_and_d, 4);
    block(&mut text, 3, synthetic::D, 3, &[synthetic::D, synthetic::D_JMP], 6);
    text += "# END_TOP_BLOCK_STATS\n# EMIT_GLOBAL_DYNAMIC_STATS   EMIT# 1\n#\n# $global-dynamic-counts\n#\n";
    text + "*isa-ext-BASE 262\nJMP 16\nJNZ 10\nNOP 236\n*total 262\n# END_GLOBAL_DYNAMIC_STATS\n"
}

#[test]
fn overlapping_blocks_of_sde_are_added_up() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let file = folder.path().join("sde-mix-out.txt");
    std::fs::write(&file, mix_file(&binary)).unwrap();
    let truth = folder.path().join("truth.json");
    let output = support::run(&["truth", "-o", truth.to_str().unwrap(), "--from", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&truth).unwrap()).unwrap();
    let counts: Vec<(u64, u64)> = executions(&document, &binary).into_iter().collect();
    assert_eq!(counts, [(synthetic::A, 10), (synthetic::B, 6), (synthetic::C, 4), (synthetic::D, 10)]);
    assert_eq!(document["instructions"], 262);
    assert_eq!(document["head"]["mnemonics"]["jne"], 10);
}

#[test]
fn what_is_no_such_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let check = |text: &str, what: &str| {
        std::fs::write(&file, text).unwrap();
        let output = support::run(&["truth", "-o", "/dev/null", "--from", file.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(what), "{said}");
    };
    check("nonsense", "it begins neither like a file of callgrind");
    check("PERFILE2", "is a recording; --from reads files of callgrind");
    check(r#"{"schema":"hbbp-blocks/1","source":"truth"}"#, "is a truth of `hbbp truth`; --from reads");
    check(
        "# callgrind format\nversion: 1\npositions: instr line\nevents: Ir\n\nob=/a\n0x1 0 5\n",
        "it ends without `totals:`",
    );
    check("# callgrind format\npositions: line\nevents: Ir\ntotals: 5\n", "--dump-instr=yes");
    check("# callgrind format\npositions: instr\nevents: Ir\ntotals: 0\n", "no instruction was counted");
    check("# Mix output version 14\n", "it has no counts under");
    let output = support::run(&["truth", "--from", "/no/such/file"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("/no/such/file"), "{said}");
}
