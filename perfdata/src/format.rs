//! The bit sets of `perf_event_attr` that decide what a record holds (`include/uapi/linux/perf_event.h`).

use crate::flag_set::flag_set;

flag_set! {
    /// What a sample record holds: `perf_event_attr.sample_type`, the `PERF_SAMPLE_*` bits.
    SampleFormat {
        /// Instruction pointer: where the event overflowed, or some instructions later.
        IP = 0,
        /// Process and thread id.
        TID = 1,
        /// Time stamp, ns, on the kernel's own clock or the one that `clockid` names.
        TIME = 2,
        /// Address of the data accessed.
        ADDR = 3,
        /// Values of the event's counter, or of its group's, laid out by [`ReadFormat`].
        READ = 4,
        /// Call chain: instruction pointers, the innermost first.
        CALLCHAIN = 5,
        /// Id of the event; of the group's leader for inherited events.
        ID = 6,
        /// Number of the CPU that it was taken on.
        CPU = 7,
        /// Period of this sample.
        PERIOD = 8,
        /// Stream id: the event's own id, even when inherited.
        STREAM_ID = 9,
        /// Raw data of the PMU or tracepoint.
        RAW = 10,
        /// Branch records, the newest first, chosen by [`BranchSampleType`].
        BRANCH_STACK = 11,
        /// User-space registers, those of the mask `sample_regs_user`.
        REGS_USER = 12,
        /// A piece of the user-space stack.
        STACK_USER = 13,
        /// Weight as one number of 64 bits: on x86 the latency of a memory access, CPU cycles.
        WEIGHT = 14,
        /// Where the data came from.
        DATA_SRC = 15,
        /// Event id as the first word of the sample, the last of every other record.
        IDENTIFIER = 16,
        /// Flags of hardware transactions and the code of an abort, `PERF_TXN_*`.
        TRANSACTION = 17,
        /// Registers at the interrupt.
        REGS_INTR = 18,
        /// Physical address of the data accessed.
        PHYS_ADDR = 19,
        /// A piece of AUX data.
        AUX = 20,
        /// Id of the thread's control group, as [`crate::Cgroup`] records name it.
        CGROUP = 21,
        /// Size of the data page.
        DATA_PAGE_SIZE = 22,
        /// Size of the code page.
        CODE_PAGE_SIZE = 23,
        /// Weight as three numbers of 32, 16 and 16 bits; [`Self::WEIGHT`] cannot be set with it.
        WEIGHT_STRUCT = 24,
    }
}

flag_set! {
    /// What the counter values of `READ` records and `PERF_SAMPLE_READ` hold: `perf_event_attr.read_format`.
    ReadFormat {
        /// Time the event was enabled, ns.
        TOTAL_TIME_ENABLED = 0,
        /// Time the event was counting, ns.
        TOTAL_TIME_RUNNING = 1,
        /// Event id of each value.
        ID = 2,
        /// The values of the whole group.
        GROUP = 3,
        /// Samples lost, per value.
        LOST = 4,
    }
}

flag_set! {
    /// Which branches are recorded and what about them: `perf_event_attr.branch_sample_type`.
    BranchSampleType {
        /// Branches whose target is in user space.
        USER = 0,
        /// Branches whose target is in the kernel.
        KERNEL = 1,
        /// Branches whose target is in the hypervisor.
        HV = 2,
        /// Any taken branch.
        ANY = 3,
        /// Any call.
        ANY_CALL = 4,
        /// Any return.
        ANY_RETURN = 5,
        /// Indirect calls.
        IND_CALL = 6,
        /// Transaction aborts.
        ABORT_TX = 7,
        /// Only inside transactions.
        IN_TX = 8,
        /// Only outside transactions.
        NO_TX = 9,
        /// Conditional branches.
        COND = 10,
        /// The stack of calls that have not returned.
        CALL_STACK = 11,
        /// Indirect jumps.
        IND_JUMP = 12,
        /// Direct calls.
        CALL = 13,
        /// No prediction flags.
        NO_FLAGS = 14,
        /// No cycle counts.
        NO_CYCLES = 15,
        /// The branch type is recorded.
        TYPE_SAVE = 16,
        /// Each sample carries the hardware index of the newest entry.
        HW_INDEX = 17,
        /// The privilege level of the source is recorded.
        PRIV_SAVE = 18,
        /// A word of event counts for each branch follows the entries (since Linux 6.8).
        COUNTERS = 19,
    }
}

flag_set! {
    /// The one-bit fields of `perf_event_attr` (`precise_ip` has two bits: see [`crate::EventAttr::precise_ip`]).
    AttrFlags {
        /// The event does not count until it is enabled.
        DISABLED = 0,
        /// Threads and processes that start later inherit the event.
        INHERIT = 1,
        /// Must always be on the PMU.
        PINNED = 2,
        /// Sole user of the PMU.
        EXCLUSIVE = 3,
        /// Does not count in user space.
        EXCLUDE_USER = 4,
        /// Does not count in the kernel.
        EXCLUDE_KERNEL = 5,
        /// Does not count in the hypervisor.
        EXCLUDE_HV = 6,
        /// Does not count when idle.
        EXCLUDE_IDLE = 7,
        /// MMAP records tell of executable mappings.
        MMAP = 8,
        /// COMM records tell of names of threads.
        COMM = 9,
        /// The period field is a frequency.
        FREQ = 10,
        /// A thread that inherited the event and ends leaves its counts in a READ record.
        INHERIT_STAT = 11,
        /// Next exec enables it.
        ENABLE_ON_EXEC = 12,
        /// Records fork and exit.
        TASK = 13,
        /// The wakeup field is a watermark in bytes.
        WATERMARK = 14,
        /// Low bit of `precise_ip`.
        PRECISE_IP_0 = 15,
        /// High bit of `precise_ip`.
        PRECISE_IP_1 = 16,
        /// Records data mappings as well.
        MMAP_DATA = 17,
        /// Records other than samples carry a [`crate::SampleId`].
        SAMPLE_ID_ALL = 18,
        /// Does not count in the host.
        EXCLUDE_HOST = 19,
        /// Does not count in the guest.
        EXCLUDE_GUEST = 20,
        /// No kernel part in call chains.
        EXCLUDE_CALLCHAIN_KERNEL = 21,
        /// No user part in call chains.
        EXCLUDE_CALLCHAIN_USER = 22,
        /// Mappings are recorded as MMAP2.
        MMAP2 = 23,
        /// COMM records say whether an exec made them.
        COMM_EXEC = 24,
        /// The clock is `clockid`.
        USE_CLOCKID = 25,
        /// SWITCH records tell of context switches.
        CONTEXT_SWITCH = 26,
        /// The ring is written backwards.
        WRITE_BACKWARD = 27,
        /// NAMESPACES records tell of the namespaces of threads.
        NAMESPACES = 28,
        /// Records kernel symbols that come and go.
        KSYMBOL = 29,
        /// Records BPF programs that come and go.
        BPF_EVENT = 30,
        /// Output goes to the AUX area.
        AUX_OUTPUT = 31,
        /// CGROUP records tell of new control groups.
        CGROUP = 32,
        /// Records changes of kernel text.
        TEXT_POKE = 33,
        /// MMAP2 records carry build ids.
        BUILD_ID = 34,
        /// Only threads of the process inherit it.
        INHERIT_THREAD = 35,
        /// An exec removes the event from the thread.
        REMOVE_ON_EXEC = 36,
        /// Sends SIGTRAP on overflow.
        SIGTRAP = 37,
    }
}
