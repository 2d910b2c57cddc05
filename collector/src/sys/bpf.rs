//! BPF programs of the running kernel: which there are, and what they were compiled to (`bpf(2)`).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::errno::Errno;

// Commands of `bpf(2)`, and where in `struct bpf_prog_info` is what: include/uapi/linux/bpf.h.
const PROG_GET_NEXT_ID: libc::c_int = 11;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const INFO: usize = 192;
const TAG: usize = 8;
const CODE_LENGTH: usize = 16;
const CODE: usize = 24;
const NAME: usize = 64;
const ADDRESSES_NUMBER: usize = 104;
const LENGTHS_NUMBER: usize = 108;
const ADDRESSES: usize = 112;
const LENGTHS: usize = 120;
const TAGS_NUMBER: usize = 180;
const TAGS: usize = 184;
/// Bytes of a tag, and of a name with its NUL.
const TAG_BYTES: usize = 8;
const NAME_BYTES: usize = 16;
/// Bytes of code of a program that are asked for: verified programs have a million instructions at most.
const MOST_CODE: usize = 64 << 20;
/// Functions of a program (`BPF_MAX_SUBPROGS` is 256).
const MOST_FUNCTIONS: usize = 4096;

/// A function of a program, as the processor executes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BpfFunction {
    /// Its first address.
    pub(crate) at: u64,
    /// Its instructions.
    pub(crate) code: Vec<u8>,
    /// What the kernel calls it: `bpf_prog_TAG_NAME`; of names of more than 15 bytes the beginning.
    pub(crate) name: Vec<u8>,
}

/// The program with the next id after `id`; `None` after the last.
///
/// # Errors
/// What `bpf` answered: without `CAP_SYS_ADMIN` EPERM.
pub(crate) fn next_program(id: u32) -> Result<Option<u32>, Errno> {
    let mut words = [u64::from(id), 0];
    match call(PROG_GET_NEXT_ID, &mut words) {
        Ok(_) => Ok(Some((words[0] >> 32) as u32)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The functions of a program; none if the kernel interprets it.
///
/// # Errors
/// What `bpf` answered: ENOENT if there is no such program (any more), without `CAP_SYS_ADMIN` EPERM. EACCES where the kernel hides code and
/// addresses (`kernel.kptr_restrict`).
pub(crate) fn bpf_program(id: u32) -> Result<Vec<BpfFunction>, Errno> {
    let program = open(PROG_GET_FD_BY_ID, &mut [u64::from(id), 0])?;
    let mut info = Info::default();
    info.ask(&program)?;
    let number = |info: &Info, at: usize, most: usize| (info.half(at) as usize).min(most);
    let mut code = vec![0_u8; number(&info, CODE_LENGTH, MOST_CODE)];
    let mut addresses = vec![0_u64; number(&info, ADDRESSES_NUMBER, MOST_FUNCTIONS)];
    let mut lengths = vec![0_u32; number(&info, LENGTHS_NUMBER, MOST_FUNCTIONS)];
    let mut tags = vec![[0_u8; TAG_BYTES]; number(&info, TAGS_NUMBER, MOST_FUNCTIONS)];
    let mut full = Info::default();
    full.offer((CODE_LENGTH, CODE), code.len(), code.as_mut_ptr().cast());
    full.offer((ADDRESSES_NUMBER, ADDRESSES), addresses.len(), addresses.as_mut_ptr().cast());
    full.offer((LENGTHS_NUMBER, LENGTHS), lengths.len(), lengths.as_mut_ptr().cast());
    full.offer((TAGS_NUMBER, TAGS), tags.len(), tags.as_mut_ptr().cast());
    full.ask(&program)?;
    // The kernel takes the pointers away of what it hides.
    if !code.is_empty() && (full.word(CODE) == 0 || full.word(ADDRESSES) == 0) {
        return Err(Errno::EACCES);
    }
    let whole = [full.word(TAG).to_le_bytes()];
    let tags = if tags.is_empty() { &whole[..] } else { &tags };
    let name = full.bytes(NAME, NAME_BYTES);
    let mut rest = code.as_slice();
    let functions = addresses.iter().zip(&lengths).zip(tags.iter().chain(std::iter::repeat(&whole[0])));
    Ok(functions
        .enumerate()
        .map_while(|(number, ((at, length), tag))| {
            let (code, after) = rest.split_at_checked(*length as usize)?;
            rest = after;
            Some(BpfFunction { at: *at, code: code.to_vec(), name: function_name(tag, number, &name) })
        })
        .filter(|function| function.at != 0)
        .collect())
}

/// Functions that a program calls have no name of their own here.
fn function_name(tag: &[u8; TAG_BYTES], number: usize, program: &[u8]) -> Vec<u8> {
    let mut name = b"bpf_prog_".to_vec();
    name.extend(tag.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
    let own = if number == 0 { program } else { b"F" };
    if !own.is_empty() {
        name.push(b'_');
        name.extend(own);
    }
    name
}

/// `struct bpf_prog_info`. What older kernels do not know of it stays 0.
#[derive(Default)]
struct Info([u64; INFO / 8]);

impl Info {
    /// Fills it in.
    fn ask(&mut self, program: &OwnedFd) -> Result<(), Errno> {
        // bpf_fd, info_len; info.
        let lengths = u64::from(program.as_raw_fd() as u32) | (INFO as u64) << 32;
        call(OBJ_GET_INFO_BY_FD, &mut [lengths, self.0.as_mut_ptr() as u64]).map(drop)
    }

    /// There is room for so many of these.
    fn offer(&mut self, (number_at, pointer_at): (usize, usize), number: usize, room: *mut u8) {
        self.0[number_at / 8] |= (number as u64) << (number_at % 8 * 8);
        self.0[pointer_at / 8] = if number == 0 { 0 } else { room as u64 };
    }

    fn word(&self, at: usize) -> u64 {
        self.0[at / 8]
    }

    fn half(&self, at: usize) -> u32 {
        (self.word(at) >> (at % 8 * 8)) as u32
    }

    /// The bytes up to a NUL.
    fn bytes(&self, at: usize, most: usize) -> Vec<u8> {
        let bytes = self.0[at / 8..(at + most) / 8].iter().flat_map(|word| word.to_le_bytes());
        bytes.take_while(|byte| *byte != 0).collect()
    }
}

/// `bpf(2)` with the first words of its attributes: a command that returns a descriptor.
pub(super) fn open<const N: usize>(command: libc::c_int, attributes: &mut [u64; N]) -> Result<OwnedFd, Errno> {
    let fd = call(command, attributes)?;
    // SAFETY: the system call has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `bpf(2)` with the first words of its attributes.
pub(super) fn call<const N: usize>(command: libc::c_int, attributes: &mut [u64; N]) -> Result<i32, Errno> {
    // SAFETY: the kernel reads and writes as many bytes as are given. What attributes point to is as long as they or their command say, and so is
    // what that points to; all of it lives longer than the call.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size_of::<[u64; N]>() as libc::c_ulong)
    };
    if result < 0 { Err(Errno::last()) } else { Ok(result as i32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_kernel() {
        let tag = [0x6d, 0xee, 0xf7, 0x35, 0x7e, 0x7b, 0x45, 0x30];
        let name = |number, program: &[u8]| String::from_utf8(function_name(&tag, number, program)).unwrap();
        assert_eq!(name(0, b"count"), "bpf_prog_6deef7357e7b4530_count");
        assert_eq!(name(0, b""), "bpf_prog_6deef7357e7b4530");
        assert_eq!(name(1, b"count"), "bpf_prog_6deef7357e7b4530_F");
    }

    #[test]
    fn lengths_and_pointers_are_where_the_kernel_has_them() {
        let mut info = Info::default();
        info.offer((LENGTHS_NUMBER, LENGTHS), 7, 0x1000 as *mut u8);
        info.offer((TAGS_NUMBER, TAGS), 9, 0x2000 as *mut u8);
        assert_eq!((info.half(LENGTHS_NUMBER), info.half(ADDRESSES_NUMBER), info.word(LENGTHS)), (7, 0, 0x1000));
        assert_eq!((info.half(TAGS_NUMBER), info.word(TAGS)), (9, 0x2000));
    }

    /// Whatever there is here: each program of the list can be asked for, or has ended meanwhile.
    #[test]
    fn programs_of_this_machine_have_code_or_an_error() {
        let mut id = 0;
        while let Ok(Some(next)) = next_program(id) {
            assert!(next > id);
            id = next;
            let Ok(functions) = bpf_program(id) else { continue };
            for function in functions {
                assert!(function.at >> 63 == 1 && !function.code.is_empty(), "{function:?}");
            }
        }
        assert_ne!(bpf_program(u32::MAX).err(), None);
    }
}
