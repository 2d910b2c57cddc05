//! The running kernel's memory where there is no `/proc/kcore`: a program of BPF copies it (`bpf_probe_read_kernel`, bpf-helpers(7)). Nothing in the
//! kernel calls the program: it is executed once for each page, by `BPF_PROG_TEST_RUN`.

use std::os::fd::{AsRawFd, OwnedFd};

use super::bpf::{call, open};
use crate::errno::Errno;

// Commands, types and instructions: include/uapi/linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP_ELEM: libc::c_int = 1;
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const MAP_TYPE_ARRAY: u64 = 2;
const PROG_TYPE_RAW_TRACEPOINT: u64 = 17;
/// Of the first half of a constant of 64 bits: its `imm` is a map, and the constant the address of the map's first value.
const PSEUDO_MAP_VALUE: u8 = 2;
const PROBE_READ_KERNEL: i32 = 113;
/// The helper is for programs that are licensed so, among others.
const LICENCE: &std::ffi::CStr = c"Dual MIT/GPL";
/// Bytes that are read at once.
pub(crate) const PAGE: usize = 4096;
/// `ENOTSUPP`, which is no error of programs: kernels before 5.10 do not execute programs of this type.
const UNSUPPORTED: Errno = Errno(524);

/// Reads the kernel's memory.
#[derive(Debug)]
pub(crate) struct KernelMemory {
    program: OwnedFd,
    /// A map of one value, where the program puts what it reads.
    room: OwnedFd,
}

impl KernelMemory {
    /// Loads the program.
    ///
    /// # Errors
    /// What `bpf` answered: EPERM without `CAP_SYS_ADMIN` or both of `CAP_BPF` and `CAP_PERFMON`, or where lockdown lets nobody read memory; EINVAL
    /// where it is the verifier that refuses that, or does not know the helper (before 5.5); EOPNOTSUPP before 5.10; ENOSYS without BPF. Until 5.10
    /// the map counts to RLIMIT_MEMLOCK (EPERM).
    pub(crate) fn open() -> Result<Self, Errno> {
        // map_type, key_size; value_size, max_entries.
        let room = open(MAP_CREATE, &mut [MAP_TYPE_ARRAY | 4 << 32, PAGE as u64 | 1 << 32])?;
        let program = program(room.as_raw_fd());
        // prog_type, insn_cnt; insns; license; and nothing else.
        let kind = PROG_TYPE_RAW_TRACEPOINT | (program.len() as u64) << 32;
        let program = open(PROG_LOAD, &mut [kind, program.as_ptr() as u64, LICENCE.as_ptr() as u64, 0, 0, 0])?;
        let memory = KernelMemory { program, room };
        match memory.run(0, 0) {
            // Nothing is at 0. The first kernels with the helper look for a lockdown when it is called.
            Ok(answer) => match Errno(answer.saturating_neg()) {
                why if why.is_permission() => Err(why),
                _ => Ok(memory),
            },
            Err(UNSUPPORTED) => Err(Errno::EOPNOTSUPP),
            Err(why) => Err(why),
        }
    }

    /// Fills `bytes`, at most [`PAGE`], with those at an address.
    ///
    /// # Errors
    /// What the program answered: EFAULT if nothing is mapped at one of the addresses.
    pub(crate) fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        match self.run(at, bytes.len())? {
            0 => {}
            answer => return Err(Errno(answer.saturating_neg())),
        }
        let (key, mut value) = (0_u32, [0_u8; PAGE]);
        let room = self.room.as_raw_fd() as u64;
        // map_fd; key; value; flags.
        call(MAP_LOOKUP_ELEM, &mut [room, (&raw const key) as u64, value.as_mut_ptr() as u64, 0])?;
        let read = value.get(..bytes.len()).ok_or(Errno::EINVAL)?;
        bytes.copy_from_slice(read);
        Ok(())
    }

    /// Executes the program. Returns its answer: 0, or a negated error.
    fn run(&self, at: u64, size: usize) -> Result<i32, Errno> {
        let arguments = [at, size as u64];
        // prog_fd, retval; data_size_in, data_size_out; data_in; data_out; repeat, duration; ctx_size_in, ctx_size_out; ctx_in; ctx_out; flags,
        // cpu.
        let context = (&raw const arguments) as u64;
        let mut words = [self.program.as_raw_fd() as u64, 0, 0, 0, 0, size_of_val(&arguments) as u64, context, 0, 0];
        call(PROG_TEST_RUN, &mut words)?;
        Ok((words[0] >> 32) as u32 as i32)
    }
}

/// Instructions: copies as many bytes as the second argument says from the address in the first one to the value of the map.
fn program(room: i32) -> [u64; 8] {
    // Opcode; destination and source; offset; constant.
    let instruction = |opcode: u8, (to, from): (u8, u8), offset: i16, constant: i32| {
        let [low, high] = offset.to_le_bytes();
        let [a, b, c, d] = constant.to_le_bytes();
        u64::from_le_bytes([opcode, to | from << 4, low, high, a, b, c, d])
    };
    [
        instruction(0x79, (3, 1), 0, 0),                   // r3 = *(u64 *)(r1 + 0)
        instruction(0x79, (2, 1), 8, 0),                   // r2 = *(u64 *)(r1 + 8)
        instruction(0xb7, (0, 0), 0, -libc::E2BIG),        // r0 = -E2BIG
        instruction(0x25, (2, 0), 3, PAGE as i32),         // if r2 > PAGE, end
        instruction(0x18, (1, PSEUDO_MAP_VALUE), 0, room), // r1 = the value of the map
        0,                                                 // (second half of the constant)
        instruction(0x85, (0, 0), 0, PROBE_READ_KERNEL),   // r0 = bpf_probe_read_kernel(r1, r2, r3)
        instruction(0x95, (0, 0), 0, 0),                   // end
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the kernel lets this process read its memory: the same bytes come again, in one piece or two, and what is not mapped is an error.
    #[test]
    fn memory_is_read_where_the_kernel_allows_it() {
        let memory = match KernelMemory::open() {
            Ok(memory) => memory,
            Err(why) => return testing::skip!(Privileges, "BPF may not read the kernel's memory: {why}"),
        };
        let list = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let text = list.lines().find_map(|line| line.strip_suffix(" T _text"));
        let Some(at) = text.and_then(|at| u64::from_str_radix(at, 16).ok()).filter(|at| *at != 0) else {
            return testing::skip!(Privileges, "/proc/kallsyms does not say where the kernel is");
        };
        let (mut whole, mut half) = ([0; PAGE], [0; PAGE / 2]);
        memory.read(at, &mut whole).unwrap();
        memory.read(at + PAGE as u64 / 2, &mut half).unwrap();
        assert!(whole.iter().any(|byte| *byte != 0) && whole.ends_with(&half));
        assert!(memory.read(0x1000, &mut half).is_err(), "memory of programs");
        assert_eq!(memory.read(u64::MAX - 0xffff_ffff, &mut half).err(), Some(Errno(libc::EFAULT)));
        assert_eq!(memory.read(at, &mut [0; PAGE + 1]).err(), Some(Errno(libc::E2BIG)));
    }
}
