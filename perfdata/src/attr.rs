//! `perf_event_attr`: what an event counts and what its samples hold.

use crate::fields::Fields;
use crate::{AttrFlags, BranchSampleType, Error, ReadFormat, SampleFormat};

/// One event of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventDescription {
    /// How it was opened.
    pub attr: EventAttr,
    /// Its name, as given to `perf record -e` where the recording says so, else made from the attr.
    pub name: String,
    /// The kernel's ids of it, one per CPU and thread it was opened on.
    pub ids: Vec<u64>,
}

/// `struct perf_event_attr` of any version, 64 bytes (2.6.31) and longer; fields that the version does not have are 0.
#[derive(Clone, Debug, PartialEq)]
pub struct EventAttr {
    /// `type`: `PERF_TYPE_HARDWARE` 0, `SOFTWARE` 1, `TRACEPOINT` 2, `HW_CACHE` 3, `RAW` 4, `BREAKPOINT` 5, or a PMU's.
    pub kind: u32,
    /// Size of the structure as recorded, bytes.
    pub size: u32,
    /// Which event of that type.
    pub config: u64,
    /// A period in events, or a frequency in samples per second if [`AttrFlags::FREQ`] is set.
    pub sample_period_or_freq: u64,
    /// `sample_type`: which fields a sample has, `PERF_SAMPLE_*`.
    pub sample_format: SampleFormat,
    /// Layout of counter values.
    pub read_format: ReadFormat,
    /// The one-bit fields, and `precise_ip`.
    pub flags: AttrFlags,
    /// Events, or bytes if [`AttrFlags::WATERMARK`] is set.
    pub wakeup_events_or_watermark: u32,
    /// `HW_BREAKPOINT_*`: 1 read, 2 write, 4 execute, or a sum of them; 0 where the event is no breakpoint.
    pub bp_type: u32,
    /// `config1`, or the breakpoint's address.
    pub config1: u64,
    /// `config2`, or the breakpoint's length.
    pub config2: u64,
    /// Which branches are recorded and what of them, `PERF_SAMPLE_BRANCH_*`.
    pub branch_sample_type: BranchSampleType,
    /// Mask of user registers recorded.
    pub sample_regs_user: u64,
    /// Bytes of user stack recorded.
    pub sample_stack_user: u32,
    /// Clock of the time stamps, with [`AttrFlags::USE_CLOCKID`].
    pub clockid: i32,
    /// Mask of registers at the interrupt recorded.
    pub sample_regs_intr: u64,
    /// AUX bytes before a wakeup.
    pub aux_watermark: u32,
    /// Most frames in a call chain.
    pub sample_max_stack: u16,
    /// Reserved by the kernel.
    pub reserved_2: u16,
    /// Most AUX bytes in a sample.
    pub aux_sample_size: u32,
    /// `aux_action` (since 6.13; reserved before).
    pub aux_action: u32,
    /// Data handed to the SIGTRAP handler.
    pub sig_data: u64,
    /// `config3` (since 6.3): what it means is the PMU's matter.
    pub config3: u64,
    /// Bytes of versions newer than this one knows, kept to be written back.
    pub unknown: Vec<u8>,
}

/// The shortest version, `PERF_ATTR_SIZE_VER0`.
pub(crate) const SIZE_VER0: usize = 64;
/// `PERF_ATTR_SIZE_VER7`, the longest that perf 6.1 takes.
pub(crate) const SIZE_VER7: usize = 128;
/// The longest version whose fields are known here, `PERF_ATTR_SIZE_VER8`.
const SIZE_KNOWN: usize = 136;

impl Default for EventAttr {
    fn default() -> Self {
        Self::from_bytes(&[], SIZE_VER7 as u32)
    }
}

impl EventAttr {
    /// Reads an attr whose size is its `size` field's (64 when that is 0, as the first kernels left it).
    ///
    /// # Errors
    /// [`Error::AttrSize`] when `bytes` or the size field are shorter than 64, or `bytes` shorter than the size field.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse_event(0, bytes)
    }

    pub(crate) fn parse_event(index: usize, bytes: &[u8]) -> Result<Self, Error> {
        let room = bytes.len() as u64;
        let stated = match bytes.get(4..8) {
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            _ => return Err(Error::AttrSize { index, size: 0, room }),
        };
        let size = if stated == 0 { SIZE_VER0 } else { stated as usize };
        let own = bytes.get(..size).filter(|own| own.len() >= SIZE_VER0);
        let own = own.ok_or(Error::AttrSize { index, size: size as u64, room })?;
        Ok(Self::from_bytes(own, size as u32))
    }

    fn from_bytes(mut bytes: &[u8], size: u32) -> Self {
        let b = &mut bytes;
        let word = |b: &mut &[u8]| u64::from_le_bytes(take(b));
        let half = |b: &mut &[u8]| u32::from_le_bytes(take(b));
        let quarter = |b: &mut &[u8]| u16::from_le_bytes(take(b));
        let kind = half(b);
        let _size = half(b);
        Self {
            kind,
            size,
            config: word(b),
            sample_period_or_freq: word(b),
            sample_format: SampleFormat(word(b)),
            read_format: ReadFormat(word(b)),
            flags: AttrFlags(word(b)),
            wakeup_events_or_watermark: half(b),
            bp_type: half(b),
            config1: word(b),
            config2: word(b),
            branch_sample_type: BranchSampleType(word(b)),
            sample_regs_user: word(b),
            sample_stack_user: half(b),
            clockid: half(b) as i32,
            sample_regs_intr: word(b),
            aux_watermark: half(b),
            sample_max_stack: quarter(b),
            reserved_2: quarter(b),
            aux_sample_size: half(b),
            aux_action: half(b),
            sig_data: word(b),
            config3: word(b),
            unknown: b.to_vec(),
        }
    }

    /// The structure as the kernel lays it out, [`Self::size`] bytes (never fewer than 64): what [`Self::parse`] reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_sized_bytes((self.size as usize).clamp(SIZE_VER0, SIZE_KNOWN + self.unknown.len()))
    }

    /// The structure cut or padded with zeros to `size` bytes, saying so in its size field.
    pub(crate) fn to_sized_bytes(&self, size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SIZE_KNOWN + self.unknown.len());
        bytes.extend(self.kind.to_le_bytes());
        bytes.extend((size as u32).to_le_bytes());
        for word in [
            self.config,
            self.sample_period_or_freq,
            self.sample_format.0,
            self.read_format.0,
            self.flags.0,
            u64::from(self.wakeup_events_or_watermark) | u64::from(self.bp_type) << 32,
            self.config1,
            self.config2,
            self.branch_sample_type.0,
            self.sample_regs_user,
            u64::from(self.sample_stack_user) | u64::from(self.clockid as u32) << 32,
            self.sample_regs_intr,
            u64::from(self.aux_watermark) | u64::from(self.sample_max_stack) << 32 | u64::from(self.reserved_2) << 48,
            u64::from(self.aux_sample_size) | u64::from(self.aux_action) << 32,
            self.sig_data,
            self.config3,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(&self.unknown);
        bytes.resize(size, 0);
        bytes
    }

    /// The length the structure needs so that no field is lost: 128, or more if a later field is set.
    pub(crate) fn needed_size(&self) -> usize {
        let bytes = self.to_sized_bytes(SIZE_KNOWN + self.unknown.len());
        let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        used.next_multiple_of(8).max(SIZE_VER7)
    }

    /// Events between samples; `None` when a frequency was asked for.
    pub fn sample_period(&self) -> Option<u64> {
        (!self.flags.contains(AttrFlags::FREQ)).then_some(self.sample_period_or_freq)
    }

    /// Samples a second asked for; `None` when the period is fixed.
    pub fn sample_freq(&self) -> Option<u64> {
        self.flags.contains(AttrFlags::FREQ).then_some(self.sample_period_or_freq)
    }

    /// Whether records other than samples end with a [`crate::SampleId`].
    pub fn sample_id_all(&self) -> bool {
        self.flags.contains(AttrFlags::SAMPLE_ID_ALL)
    }

    /// Whether the kernel is left out.
    pub fn exclude_kernel(&self) -> bool {
        self.flags.contains(AttrFlags::EXCLUDE_KERNEL)
    }

    /// Whether user space is left out.
    pub fn exclude_user(&self) -> bool {
        self.flags.contains(AttrFlags::EXCLUDE_USER)
    }

    /// Whether the hypervisor is left out.
    pub fn exclude_hv(&self) -> bool {
        self.flags.contains(AttrFlags::EXCLUDE_HV)
    }

    /// Whether children inherit the event.
    pub fn inherit(&self) -> bool {
        self.flags.contains(AttrFlags::INHERIT)
    }

    /// How precise the ip was asked to be: 0 any skid, 1 constant skid, 2 no skid asked, 3 no skid required.
    pub fn precise_ip(&self) -> u8 {
        ((self.flags.0 >> 15) & 3) as u8
    }

    /// Whether samples carry branch records.
    pub fn has_branch_stack(&self) -> bool {
        self.sample_format.contains(SampleFormat::BRANCH_STACK)
    }

    /// Reads the attrs of an array whose entries are `entry_size` long.
    pub(crate) fn parse_entry(fields: &mut Fields<'_>, index: usize, entry_size: u64) -> Result<Self, Error> {
        let entry = fields.items(1, entry_size, "event")?;
        Self::parse_event(index, entry)
    }
}

/// Takes a field off the front of the structure; what of it the structure is too short for is 0.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let mut field = [0; N];
    field.iter_mut().zip(*bytes).for_each(|(to, from)| *to = *from);
    *bytes = bytes.get(N..).unwrap_or_default();
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that differ from their neighbours, with the size field set.
    fn attr_bytes(size: u32, len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..len).map(|i| (i * 7 + 1) as u8).collect();
        bytes[4..8].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    #[test]
    fn every_version_round_trips() {
        for size in (64..=200).step_by(8) {
            let bytes = attr_bytes(size, size as usize);
            assert_eq!(EventAttr::parse(&bytes).unwrap().to_bytes(), bytes, "size {size}");
        }
    }

    #[test]
    fn fields_are_where_the_kernel_puts_them() {
        let bytes = attr_bytes(136, 136);
        let attr = EventAttr::parse(&bytes).unwrap();
        let at = |offset: usize, len: usize| {
            let mut value = [0; 8];
            value[..len].copy_from_slice(&bytes[offset..offset + len]);
            u64::from_le_bytes(value)
        };
        assert_eq!(u64::from(attr.kind), at(0, 4));
        assert_eq!(attr.sample_format.0, at(24, 8));
        assert_eq!(attr.flags.0, at(40, 8));
        assert_eq!(u64::from(attr.bp_type), at(52, 4));
        assert_eq!(attr.branch_sample_type.0, at(72, 8));
        assert_eq!(attr.sample_regs_user, at(80, 8));
        assert_eq!(u64::from(attr.sample_stack_user), at(88, 4));
        assert_eq!(attr.sample_regs_intr, at(96, 8));
        assert_eq!(u64::from(attr.sample_max_stack), at(108, 2));
        assert_eq!(u64::from(attr.aux_sample_size), at(112, 4));
        assert_eq!(attr.config3, at(128, 8));
    }

    #[test]
    fn size_zero_is_the_first_version() {
        let attr = EventAttr::parse(&attr_bytes(0, 96)).unwrap();
        assert_eq!((attr.size, attr.config2, attr.branch_sample_type.0), (64, 0, 0));
    }

    #[test]
    fn impossible_sizes_are_refused_with_their_values() {
        let message = |bytes: &[u8]| EventAttr::parse(bytes).unwrap_err().to_string();
        assert!(message(&attr_bytes(63, 64)).contains("63 bytes long"));
        assert!(message(&attr_bytes(u32::MAX, 64)).contains("its entry has 64"));
        assert!(message(&[0; 3]).contains("its entry has 3"));
    }
}
