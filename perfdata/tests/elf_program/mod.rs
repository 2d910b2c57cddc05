//! A small program, compiled here, and what of it a made-up recording needs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiled program with one hot loop.
pub struct Program {
    pub path: PathBuf,
    pub build_id: Vec<u8>,
    /// The backward conditional jump of the loop in `hot`, and where it goes: addresses as in the file.
    pub jump: (u64, u64),
    /// The executable segment.
    pub text: Segment,
}

/// A loadable segment.
pub struct Segment {
    pub offset: u64,
    pub address: u64,
    pub size: u64,
}

const SOURCE: &str = r#"
#include <stdio.h>
__attribute__((noinline)) unsigned hot(unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; i++) {
    if (i % 3 == 0) sum += i * 7;
    else sum ^= i;
  }
  return sum;
}
int main(int argc, char **argv) {
  (void)argv;
  unsigned r = 0;
  for (int i = 0; i < 1000; i++) r += hot(1000 + argc);
  printf("%u\n", r);
  return 0;
}
"#;

/// What `command` prints, or `None`, loudly, when it is not there.
pub fn run(command: &str, args: &[&str]) -> Option<std::process::Output> {
    match Command::new(command).args(args).envs(testing::LITTLE_LOG).output() {
        Ok(output) => Some(output),
        Err(error) => {
            testing::skip!(Tool, "{command}: {error}");
            None
        }
    }
}

/// Compiles the program; `None`, loudly, without the compiler or binutils.
pub fn compile(directory: &Path, compiler: &str, options: &[&str]) -> Option<Program> {
    let source = directory.join("loop.c");
    std::fs::write(&source, SOURCE).unwrap();
    let path = directory.join("loop-program");
    let mut args = vec![source.to_str()?, "-o", path.to_str()?, "-O1", "-Wl,--build-id"];
    args.extend(options);
    let output = run(compiler, &args)?;
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    let path_text = path.to_str()?;
    let text = |command, args: &[&str]| run(command, args).map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    let disassembly = text("objdump", &["-d", "--no-show-raw-insn", "--disassemble=hot", path_text])?;
    let headers = text("readelf", &["-lnW", path_text])?;
    Some(Program {
        jump: backward_jump(&disassembly),
        text: executable_segment(&headers),
        build_id: build_id(&headers),
        path,
    })
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// The first line like `1173: jne 1152 <hot+0x19>` that goes back.
fn backward_jump(disassembly: &str) -> (u64, u64) {
    let jumps = disassembly.lines().filter_map(|line| {
        let (address, instruction) = line.trim().split_once(":\t")?;
        let mut words = instruction.split_whitespace();
        let mnemonic = words.next()?;
        let target = words.next()?;
        (mnemonic.starts_with('j') && mnemonic != "jmp").then(|| (hex(address), hex(target)))
    });
    jumps.into_iter().find(|(from, to)| to < from).unwrap_or_else(|| panic!("no loop in {disassembly}"))
}

fn executable_segment(headers: &str) -> Segment {
    let line = headers.lines().find(|line| line.contains("LOAD") && line.contains("R E")).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    Segment { offset: hex(words[1]), address: hex(words[2]), size: hex(words[4]) }
}

fn build_id(headers: &str) -> Vec<u8> {
    let text = headers.split("Build ID: ").nth(1).unwrap().split_whitespace().next().unwrap();
    (0..text.len()).step_by(2).map(|at| hex(&text[at..at + 2]) as u8).collect()
}
