//! Real files to test on.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::PathBuf;
use std::process::Command;

use testing::{Skip, skip};

/// Programs and libraries of the machine, a program of 2010 with symbols, and this test itself. Says which are absent.
pub fn binaries() -> Vec<PathBuf> {
    let system = [
        "/bin/bash",
        "/usr/bin/perl",
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib/x86_64-linux-gnu/libm.so.6",
        // Of 32 bits: Debian's libc6-i386. Its libc has zeros between instructions, in which objdump loses its way.
        "/lib32/libm.so.6",
    ];
    let (mut there, absent): (Vec<_>, Vec<_>) = system.map(PathBuf::from).into_iter().partition(|path| path.exists());
    for path in absent {
        skip(Skip::Tool, format_args!("there is no {}", path.display()));
    }
    there.extend(testing::hardware_recording("westmere-lbr.binary"));
    there.push(std::env::current_exe().unwrap());
    there
}

/// What a tool prints; `None`, and a loud word, if it is not installed.
pub fn output_of(tool: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    match Command::new(tool).args(arguments).output() {
        Ok(output) => {
            assert!(output.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(output.stdout)
        }
        Err(error) => {
            skip(Skip::Tool, format_args!("{tool}: {error}"));
            None
        }
    }
}
