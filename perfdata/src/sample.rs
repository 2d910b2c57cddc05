//! A sample: what the kernel noted when an event overflowed.

use crate::words::U64s;
use crate::{Avma, BranchStack, ReadValues};

/// One `PERF_RECORD_SAMPLE`. A field is `None` when the event does not record it. Borrows from the record.
///
/// The mode the CPU was in is in the record's header: [`crate::RawRecord::cpu_mode`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// Index of the event in [`crate::Recording::events`].
    pub event: usize,
    /// Event id, first word of the sample.
    pub identifier: Option<u64>,
    /// Instruction pointer: that of the event if [`crate::RawRecord::exact_ip`], else of some instructions later.
    pub ip: Option<Avma>,
    /// Id of the process that ran; 0 for the idle one.
    pub pid: Option<u32>,
    /// Id of the thread that ran.
    pub tid: Option<u32>,
    /// Time stamp, ns unless [`crate::EventAttr::clockid`] says otherwise.
    pub time: Option<u64>,
    /// Address of the data accessed.
    pub addr: Option<Avma>,
    /// Event id; of the group's leader for inherited events.
    pub id: Option<u64>,
    /// The event's own id.
    pub stream_id: Option<u64>,
    /// Number of the CPU that it was taken on.
    pub cpu: Option<u32>,
    /// Events this sample stands for.
    pub period: Option<u64>,
    /// Values of the event's counter, or of its group's.
    pub read: Option<ReadValues<'a>>,
    /// Call chain with its context markers (`PERF_CONTEXT_*`, numbers above -4096).
    pub callchain: Option<U64s<'a>>,
    /// Raw data, padding included.
    pub raw: Option<&'a [u8]>,
    /// Branch records, newest first.
    pub branch_stack: Option<BranchStack<'a>>,
    /// Registers of user space, also of a sample in the kernel.
    pub user_regs: Option<Registers<'a>>,
    /// A piece of the user-space stack.
    pub user_stack: Option<UserStack<'a>>,
    /// How costly what was sampled is, by the hardware.
    pub weight: Option<Weight>,
    /// Where the data came from (`union perf_mem_data_src`).
    pub data_src: Option<u64>,
    /// Flags of a hardware transaction, and in the upper 32 bits the code of its abort (`PERF_TXN_*`).
    pub transaction: Option<u64>,
    /// Registers at the interrupt.
    pub intr_regs: Option<Registers<'a>>,
    /// Physical address of the data accessed.
    pub phys_addr: Option<u64>,
    /// Id of the thread's control group, as in [`crate::Cgroup::id`].
    pub cgroup: Option<u64>,
    /// Size of the data page, bytes.
    pub data_page_size: Option<u64>,
    /// Size of the code page, bytes.
    pub code_page_size: Option<u64>,
    /// A piece of AUX data.
    pub aux: Option<&'a [u8]>,
}

/// The registers that the event records, with the values they had.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Registers<'a> {
    /// `PERF_SAMPLE_REGS_ABI_*`: 0 none (a kernel thread), 1 32-bit, 2 64-bit.
    pub abi: u64,
    /// Which registers were asked for: bit n is `enum perf_event_x86_regs` n.
    pub mask: u64,
    /// The values, lowest bit of the mask first; empty when `abi` is 0.
    pub values: U64s<'a>,
}

impl Registers<'_> {
    /// The value of register number `register`, where recorded.
    pub fn get(&self, register: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(register)?;
        if self.mask & bit == 0 {
            return None;
        }
        self.values.get((self.mask & (bit - 1)).count_ones() as usize)
    }
}

/// A copy of the top of the user-space stack.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct UserStack<'a> {
    /// The bytes, from the stack pointer on.
    pub data: &'a [u8],
    /// How many of them the kernel could really read.
    pub dyn_size: u64,
}

/// How costly what was sampled is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// One number (`PERF_SAMPLE_WEIGHT`): on x86 the latency of a memory access, CPU cycles.
    Full(u64),
    /// Three numbers (`PERF_SAMPLE_WEIGHT_STRUCT`): on x86 memory latency, instruction latency, retire latency.
    Struct {
        /// `var1_dw`: on x86 the latency of a memory access, CPU cycles.
        var1: u32,
        /// `var2_w`: on x86 the latency of the instruction, CPU cycles.
        var2: u16,
        /// `var3_w`: on x86 the cycles from the retirement before to this one.
        var3: u16,
    },
}
