//! Everything this crate asks of the kernel through pointers: the only folder with unsafe code.

#![allow(unsafe_code)]

mod bpf;
mod child;
pub(crate) mod control_group;
mod cpu_clock;
mod event;
mod inherited;
mod inode;
mod kernel_memory;
mod measuring_child;
mod memory;
mod mounts;
mod page_tables;
pub(crate) mod process;
mod program_class;
mod ptrace;
mod registers;
mod regular_file;
mod remote;
mod restartable_sequences;
mod ring;
mod sharing_child;
mod signals;
mod thread;

pub(crate) use bpf::{BpfFunction, bpf_program, next_program};
pub(crate) use child::{StoppedChild, c_strings, is_executable};
pub use cpu_clock::children_time;
pub(crate) use cpu_clock::{cpu_time, own_cpu_time, thread_cpu_time, tick, try_timer};
pub(crate) use event::{EventFd, Scope};
pub(crate) use inherited::{allocate_from_one_arena, is_ignored};
pub use inherited::{
    allocate_in_large_steps, ignore_file_size_signal, ignore_interrupts, raise_limits, with_inherited,
};
pub(crate) use inode::inode_generation;
pub(crate) use kernel_memory::KernelMemory;
pub(crate) use measuring_child::{Measuring, MeasuringChild};
pub(crate) use memory::{
    can_be_executed, copy_memory, copy_own_page, is_same_file, read_memory, read_pages, write_code, write_memory,
};
pub(crate) use mounts::{Mounts, Server};
pub(crate) use page_tables::{PageTables, comes_alone};
pub(crate) use program_class::{is_32_bit_process, is_32_bit_program, is_of_i386};
#[cfg(feature = "simulated-pmu")]
pub(crate) use ptrace::single_step;
pub(crate) use ptrace::{
    Report, detach, event_message, interrupt, listen, next_report, register, resume, seize, set_options, set_register,
    set_signal_mask, signal_info, signal_mask, waiting_signal,
};
pub(crate) use registers::{RegisterArea, ThreadRegisters, USER_CS_64};
pub(crate) use regular_file::{Seen, is_file_of, is_of_overlay, open_regular, seen, seen_at};
pub(crate) use remote::{HeldThread, share_memory};
pub(crate) use restartable_sequences::section_of_sequences;
pub(crate) use ring::Ring;
pub(crate) use signals::{
    POLL_HUP, POLL_IN, SignalFd, SignalInfo, WaitSet, Waiting, queue_signal, realtime_signal, wake_waiting_thread,
};
pub(crate) use thread::{own_thread, policy, set_policy};
