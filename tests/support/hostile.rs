//! A program whose names are markup.
#![allow(dead_code)]

use std::path::Path;

use crate::synthetic::{A, AROUND, Burst, C, Recorder, SOURCE, assemble, burst_metadata};

/// A name of everything that could leave its place in a page.
pub const NAME: &str =
    "a</script><script>document.title='HACKED'</script><!--<img src=x onerror=alert(1)>\u{202e}\u{7}'\"&amp;";

/// The path of a recording of it, with such a name, too; `None` (said loudly) without a C compiler.
pub fn recording(folder: &Path) -> Option<String> {
    // An assembler takes no such name: it is put into the table of strings in place of another one.
    let plain = "x".repeat(NAME.len());
    let binary = assemble(folder, "four", &SOURCE.replace("_start", &plain), &["-Wl,-e,0x401000"])?;
    let mut bytes = std::fs::read(&binary).unwrap();
    let at = bytes.windows(plain.len()).position(|window| window == plain.as_bytes()).unwrap();
    bytes[at..at + plain.len()].copy_from_slice(NAME.as_bytes());
    std::fs::write(&binary, bytes).unwrap();
    let mut recorder = Recorder::traced(&binary);
    recorder.burst(&Burst { ip: A, branches: &AROUND, instructions: 60, period: 5_000 });
    recorder.sample(C);
    let file = folder.join("<b>run&.data");
    std::fs::write(&file, recorder.finish(&burst_metadata("nanoseconds"))).unwrap();
    Some(file.to_str().unwrap().to_owned())
}
