//! Whether a program is one of 32 bits.

use std::fs::File;
use std::io::Read;

use crate::sys::process::{Mapping, each_mapping, proc_path};

/// Bytes up to the machine and with it.
const HEAD: usize = 20;

/// Whether a process executes an ELF file for i386. Programs for x32 have code of 64 bits.
pub(crate) fn is_32_bit_process(process: u32) -> bool {
    // Whoever serves the file may not answer: it is opened only where the process has no address of more than 32 bits.
    let is_low = |map: Mapping| map.end <= 1 << 32 || map.path == b"[vsyscall]";
    each_mapping(process).all(is_low) && File::open(proc_path(process).join("exe")).is_ok_and(is_32_bit_program)
}

/// Whether a file is an ELF file for i386.
pub(crate) fn is_32_bit_program(mut file: File) -> bool {
    let mut head = [0; HEAD];
    file.read_exact(&mut head).is_ok() && is_of_i386(&head)
}

/// Whether an ELF file that begins so is for i386.
pub(crate) fn is_of_i386(begin: &[u8]) -> bool {
    const ELFCLASS32: &[u8] = b"\x7fELF\x01";
    const EM_386: [u8; 2] = [3, 0];
    begin.starts_with(ELFCLASS32) && begin.get(HEAD - EM_386.len()..HEAD) == Some(&EM_386)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    #[test]
    fn the_machine_decides_and_not_the_class_alone() {
        for (class, machine, expected) in [(1, 3, true), (1, 62, false), (2, 62, false), (2, 3, false)] {
            let mut file = tempfile::tempfile().unwrap();
            let head = [&b"\x7fELF"[..], &[class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, machine, 0]].concat();
            file.write_all(&head).unwrap();
            file.rewind().unwrap();
            assert_eq!(is_32_bit_program(file), expected, "{class} {machine}");
        }
        assert!(!is_32_bit_process(std::process::id()));
    }
}
