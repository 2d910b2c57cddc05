//! Encodes samples that do not come from the kernel: software-traced and simulated ones.

use crate::chunk::RecordHeader;
use crate::record::MISC_14;
use crate::{Avma, Branch, BranchSampleType, CpuMode, Error, EventAttr, RecordType, SampleFormat, Weight};

/// What a sample to be written holds. What its event does not record is left out; numbers not set are written as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleFields<'a> {
    /// Index of the event among those the writer was created with.
    pub event: usize,
    /// Where the CPU was.
    pub cpu_mode: CpuMode,
    /// The ip is that of the instruction that caused the event.
    pub exact_ip: bool,
    /// Event id, for IDENTIFIER and ID; where 0, the first id of the event.
    pub id: u64,
    /// Instruction pointer that the sample is given.
    pub ip: Avma,
    /// Id of the process that ran.
    pub pid: u32,
    /// Id of the thread that ran.
    pub tid: u32,
    /// Time stamp, ns, on the clock that the recording's other records have.
    pub time: u64,
    /// Address of the data accessed.
    pub addr: Avma,
    /// The event's own id, as in [`crate::Sample::stream_id`].
    pub stream_id: u64,
    /// Number of the CPU that it was taken on.
    pub cpu: u32,
    /// Events this sample stands for.
    pub period: u64,
    /// Call chain with its context markers.
    pub callchain: &'a [u64],
    /// Raw data of the PMU or tracepoint, without their length; padded to whole words.
    pub raw: &'a [u8],
    /// Branch records, newest first.
    pub branches: &'a [Branch],
    /// Hardware index of the newest branch; written only if the event records it.
    pub hw_index: u64,
    /// How costly what was sampled is; the event's format decides how it is written.
    pub weight: Option<Weight>,
    /// Where the data came from.
    pub data_src: u64,
    /// Flags of a hardware transaction (`PERF_TXN_*`).
    pub transaction: u64,
    /// Physical address of the data accessed.
    pub phys_addr: u64,
    /// Id of the thread's control group, as in [`crate::Cgroup::id`].
    pub cgroup: u64,
    /// Size of the data page, bytes.
    pub data_page_size: u64,
    /// Size of the code page, bytes.
    pub code_page_size: u64,
}

/// Fields that only the kernel can fill; samples that have them are written with [`crate::Writer::write_raw`].
const KERNEL_ONLY: SampleFormat = SampleFormat(
    SampleFormat::READ.0
        | SampleFormat::REGS_USER.0
        | SampleFormat::STACK_USER.0
        | SampleFormat::REGS_INTR.0
        | SampleFormat::AUX.0,
);

impl SampleFields<'_> {
    /// `misc` of the record's header: the CPU's mode, and `PERF_RECORD_MISC_EXACT_IP`.
    pub(crate) fn misc(&self) -> u16 {
        self.cpu_mode.to_misc() | if self.exact_ip { MISC_14 } else { 0 }
    }

    /// Appends the whole record, as an event with this attr has it. [`id`](Self::id) must be set.
    ///
    /// # Errors
    /// When the event records what only the kernel can fill, or the record would be longer than 65,535 bytes; `records` is then as it
    /// was.
    pub fn append_record(&self, attr: &EventAttr, records: &mut Vec<u8>) -> Result<(), Error> {
        let start = records.len();
        records.extend([0; RecordHeader::SIZE]);
        let result = self.append(attr, self.id, records).and_then(|()| {
            let length = records.len() - start;
            let too_long = |_| Error::CannotWrite { what: "a sample", reason: format!("it has {length} bytes") };
            u16::try_from(length).map_err(too_long)
        });
        match result {
            Ok(size) => {
                let header = RecordHeader { record_type: RecordType::SAMPLE, misc: self.misc(), size };
                header.write_over(records.get_mut(start..).unwrap_or_default());
            }
            Err(_) => records.truncate(start),
        }
        result.map(drop)
    }

    /// Appends the record's body as an event with this attr has it.
    pub(crate) fn append(&self, attr: &EventAttr, default_id: u64, record: &mut Vec<u8>) -> Result<(), Error> {
        let format = attr.sample_format;
        let refuse = |reason| Error::CannotWrite { what: "a sample", reason };
        let impossible = SampleFormat(format.0 & KERNEL_ONLY.0).union(format.unknown());
        if !impossible.is_empty() {
            return Err(refuse(format!("its event records {impossible}, which only the kernel can fill")));
        }
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let id = if self.id == 0 { default_id } else { self.id };
        let words = |record: &mut Vec<u8>, fields: &[(SampleFormat, u64)]| {
            for &(_, value) in fields.iter().filter(|(field, _)| format.contains(*field)) {
                record.extend(value.to_le_bytes());
            }
        };
        words(
            record,
            &[
                (SampleFormat::IDENTIFIER, id),
                (SampleFormat::IP, self.ip.0),
                (SampleFormat::TID, pair(self.pid, self.tid)),
                (SampleFormat::TIME, self.time),
                (SampleFormat::ADDR, self.addr.0),
                (SampleFormat::ID, id),
                (SampleFormat::STREAM_ID, self.stream_id),
                (SampleFormat::CPU, pair(self.cpu, 0)),
                (SampleFormat::PERIOD, self.period),
            ],
        );
        if format.contains(SampleFormat::CALLCHAIN) {
            record.extend((self.callchain.len() as u64).to_le_bytes());
            record.extend(self.callchain.iter().flat_map(|ip| ip.to_le_bytes()));
        }
        if format.contains(SampleFormat::RAW) {
            let padded = (4 + self.raw.len()).next_multiple_of(8);
            record.extend((padded as u32 - 4).to_le_bytes());
            record.extend(self.raw);
            record.resize(record.len() + padded - 4 - self.raw.len(), 0);
        }
        if format.contains(SampleFormat::BRANCH_STACK) {
            if attr.branch_sample_type.contains(BranchSampleType::COUNTERS) {
                return Err(refuse("its event records branch counters, which only the kernel can fill".to_owned()));
            }
            record.extend((self.branches.len() as u64).to_le_bytes());
            if attr.branch_sample_type.contains(BranchSampleType::HW_INDEX) {
                record.extend(self.hw_index.to_le_bytes());
            }
            for branch in self.branches {
                record.extend_from_slice(&branch.to_bytes());
            }
        }
        let weight = match self.weight {
            Some(Weight::Full(weight)) => weight,
            Some(Weight::Struct { var1, var2, var3 }) => {
                u64::from(var1) | u64::from(var2) << 32 | u64::from(var3) << 48
            }
            None => 0,
        };
        words(
            record,
            &[
                (SampleFormat::WEIGHT, weight),
                (SampleFormat::WEIGHT_STRUCT, weight),
                (SampleFormat::DATA_SRC, self.data_src),
                (SampleFormat::TRANSACTION, self.transaction),
                (SampleFormat::PHYS_ADDR, self.phys_addr),
                (SampleFormat::CGROUP, self.cgroup),
                (SampleFormat::DATA_PAGE_SIZE, self.data_page_size),
                (SampleFormat::CODE_PAGE_SIZE, self.code_page_size),
            ],
        );
        Ok(())
    }
}
