//! Every field of a sample, alone, in pairs and in any combination, where the kernel puts it.
//!
//! The encoder here follows `perf_output_sample()` of Linux 6.12 and shares nothing with the crate.

mod by_hand;

use by_hand::{Attr, open, record, with_only_record, words};
use perfdata::{
    Avma, Branch, BranchFlags, ReadFormat, ReadValue, ReadValues, Recording, Registers, Sample, SampleFormat as F,
    Weight,
};
use proptest::prelude::*;

/// Everything a sample can hold, whether its event records it or not.
#[derive(Clone, Debug)]
struct Values {
    attr: Attr,
    ip: u64,
    pid: u32,
    tid: u32,
    time: u64,
    addr: u64,
    id: u64,
    stream_id: u64,
    cpu: u32,
    period: u64,
    time_enabled: u64,
    time_running: u64,
    counters: Vec<ReadValue>,
    callchain: Vec<u64>,
    raw: Vec<u8>,
    hw_index: u64,
    branches: Vec<[u64; 3]>,
    branch_counters: Vec<u64>,
    user_abi: u64,
    user_regs: Vec<u64>,
    stack: Vec<u8>,
    dyn_size: u64,
    weight: u64,
    data_src: u64,
    transaction: u64,
    intr_abi: u64,
    intr_regs: Vec<u64>,
    phys_addr: u64,
    cgroup: u64,
    data_page_size: u64,
    code_page_size: u64,
    aux: Vec<u8>,
}

const HW_INDEX: u64 = 1 << 17;
const COUNTERS: u64 = 1 << 19;

/// How long the fields of variable length are.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    counters: usize,
    callchain: usize,
    raw_words: usize,
    branches: usize,
    stack_words: usize,
    aux_words: usize,
    abi: u64,
}

const LENGTHS: Lengths =
    Lengths { counters: 3, callchain: 4, raw_words: 2, branches: 3, stack_words: 5, aux_words: 2, abi: 2 };

impl Values {
    /// Numbers that all differ, so that none can be taken for another.
    fn new(attr: Attr, lengths: Lengths) -> Self {
        let mut last = 0x0123_4567_89ab_cdef_u64;
        let mut next = || {
            last = last.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            last
        };
        let mut many = |count: usize| (0..count).map(|_| next()).collect::<Vec<_>>();
        let group = attr.read_format & ReadFormat::GROUP.0 != 0;
        let counter_count = if group { lengths.counters } else { 1 };
        let flag = |format: u64, bit: ReadFormat, value: u64| (format & bit.0 != 0).then_some(value);
        let counters = many(counter_count * 3);
        let counters = counters.chunks(3).map(|c| ReadValue {
            value: c[0],
            id: flag(attr.read_format, ReadFormat::ID, c[1]),
            lost: flag(attr.read_format, ReadFormat::LOST, c[2]),
        });
        let regs = |mask: u64| if lengths.abi == 0 { 0 } else { mask.count_ones() as usize };
        let branches = many(lengths.branches * 3);
        Self {
            counters: counters.collect(),
            callchain: many(lengths.callchain),
            // The size word before it makes whole words of it.
            raw: words(&many(lengths.raw_words)).into_iter().skip(4).collect(),
            branches: branches.chunks(3).map(|b| [b[0], b[1], b[2]]).collect(),
            branch_counters: many(lengths.branches),
            user_regs: many(regs(attr.regs_user)),
            intr_regs: many(regs(attr.regs_intr)),
            stack: words(&many(lengths.stack_words)),
            aux: words(&many(lengths.aux_words)),
            user_abi: lengths.abi,
            intr_abi: lengths.abi,
            dyn_size: if lengths.stack_words == 0 { 0 } else { next() },
            ip: next(),
            pid: next() as u32,
            tid: next() as u32,
            time: next(),
            addr: next(),
            id: next(),
            stream_id: next(),
            cpu: next() as u32,
            period: next(),
            time_enabled: next(),
            time_running: next(),
            hw_index: next(),
            weight: next(),
            data_src: next(),
            transaction: next(),
            phys_addr: next(),
            cgroup: next(),
            data_page_size: next(),
            code_page_size: next(),
            attr,
        }
    }

    fn has(&self, field: F) -> bool {
        self.attr.sample_type & field.0 != 0
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |values: &[u64]| out.extend(words(values));
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        for (field, value) in [
            (F::IDENTIFIER, self.id),
            (F::IP, self.ip),
            (F::TID, pair(self.pid, self.tid)),
            (F::TIME, self.time),
            (F::ADDR, self.addr),
            (F::ID, self.id),
            (F::STREAM_ID, self.stream_id),
            (F::CPU, pair(self.cpu, 0xdead)),
            (F::PERIOD, self.period),
        ] {
            if self.has(field) {
                put(&[value]);
            }
        }
        if self.has(F::READ) {
            out.extend(self.encode_read());
        }
        if self.has(F::CALLCHAIN) {
            out.extend(words(&[self.callchain.len() as u64]));
            out.extend(words(&self.callchain));
        }
        if self.has(F::RAW) {
            out.extend((self.raw.len() as u32).to_le_bytes());
            out.extend(&self.raw);
        }
        if self.has(F::BRANCH_STACK) {
            out.extend(words(&[self.branches.len() as u64]));
            if self.attr.branch_sample_type & HW_INDEX != 0 {
                out.extend(words(&[self.hw_index]));
            }
            self.branches.iter().for_each(|branch| out.extend(words(branch)));
            if self.attr.branch_sample_type & COUNTERS != 0 {
                out.extend(words(&self.branch_counters));
            }
        }
        if self.has(F::REGS_USER) {
            out.extend(words(&[self.user_abi]));
            out.extend(words(&self.user_regs));
        }
        if self.has(F::STACK_USER) {
            out.extend(words(&[self.stack.len() as u64]));
            if !self.stack.is_empty() {
                out.extend(&self.stack);
                out.extend(words(&[self.dyn_size]));
            }
        }
        for (field, value) in [
            (F::WEIGHT, self.weight),
            (F::WEIGHT_STRUCT, self.weight),
            (F::DATA_SRC, self.data_src),
            (F::TRANSACTION, self.transaction),
        ] {
            if self.has(field) {
                out.extend(words(&[value]));
            }
        }
        if self.has(F::REGS_INTR) {
            out.extend(words(&[self.intr_abi]));
            out.extend(words(&self.intr_regs));
        }
        for (field, value) in [
            (F::PHYS_ADDR, self.phys_addr),
            (F::CGROUP, self.cgroup),
            (F::DATA_PAGE_SIZE, self.data_page_size),
            (F::CODE_PAGE_SIZE, self.code_page_size),
        ] {
            if self.has(field) {
                out.extend(words(&[value]));
            }
        }
        if self.has(F::AUX) {
            out.extend(words(&[self.aux.len() as u64]));
            out.extend(&self.aux);
        }
        out
    }

    /// `perf_output_read()`.
    fn encode_read(&self) -> Vec<u8> {
        let has = |bit: ReadFormat| self.attr.read_format & bit.0 != 0;
        let mut out = Vec::new();
        let times =
            [(ReadFormat::TOTAL_TIME_ENABLED, self.time_enabled), (ReadFormat::TOTAL_TIME_RUNNING, self.time_running)];
        let times = times.into_iter().filter(|(bit, _)| has(*bit)).map(|(_, time)| time);
        let rest = |counter: &ReadValue| counter.id.into_iter().chain(counter.lost).collect::<Vec<_>>();
        if has(ReadFormat::GROUP) {
            out.push(self.counters.len() as u64);
            out.extend(times);
            for counter in &self.counters {
                out.push(counter.value);
                out.extend(rest(counter));
            }
        } else {
            out.push(self.counters[0].value);
            out.extend(times);
            out.extend(rest(&self.counters[0]));
        }
        words(&out)
    }

    fn check(&self) {
        let mut attr = self.attr.clone();
        attr.ids = vec![self.id];
        let recording = open(&[attr], &[record(9, 2, &self.encode())]);
        with_only_record(&recording, |raw| self.compare(&recording.sample(raw).unwrap()));
        self.check_cut_short(&recording);
    }

    fn compare(&self, sample: &Sample<'_>) {
        let if_has = |field, value| self.has(field).then_some(value);
        assert_eq!(sample.event, 0);
        assert_eq!(sample.identifier, if_has(F::IDENTIFIER, self.id));
        assert_eq!(sample.ip, if_has(F::IP, self.ip).map(Avma));
        assert_eq!(sample.pid, self.has(F::TID).then_some(self.pid));
        assert_eq!(sample.tid, self.has(F::TID).then_some(self.tid));
        assert_eq!(sample.time, if_has(F::TIME, self.time));
        assert_eq!(sample.addr, if_has(F::ADDR, self.addr).map(Avma));
        assert_eq!(sample.id, if_has(F::ID, self.id));
        assert_eq!(sample.stream_id, if_has(F::STREAM_ID, self.stream_id));
        assert_eq!(sample.cpu, self.has(F::CPU).then_some(self.cpu));
        assert_eq!(sample.period, if_has(F::PERIOD, self.period));
        assert_eq!(sample.read.is_some(), self.has(F::READ));
        if let Some(read) = &sample.read {
            self.compare_read(read);
        }
        let chain = sample.callchain.map(|chain| chain.iter().collect::<Vec<_>>());
        assert_eq!(chain.as_ref(), self.has(F::CALLCHAIN).then_some(&self.callchain));
        assert_eq!(sample.raw, self.has(F::RAW).then_some(&self.raw[..]));
        assert_eq!(sample.branch_stack.is_some(), self.has(F::BRANCH_STACK));
        self.compare_branches(sample);
        self.compare_registers(sample.user_regs, F::REGS_USER, self.user_abi, self.attr.regs_user, &self.user_regs);
        let stack = sample.user_stack.map(|stack| (stack.data, stack.dyn_size));
        assert_eq!(stack, self.has(F::STACK_USER).then_some((&self.stack[..], self.dyn_size)));
        let (var1, var2, var3) = (self.weight as u32, (self.weight >> 32) as u16, (self.weight >> 48) as u16);
        let weight = self.has(F::WEIGHT).then_some(Weight::Full(self.weight));
        let weight = weight.or(self.has(F::WEIGHT_STRUCT).then_some(Weight::Struct { var1, var2, var3 }));
        assert_eq!(sample.weight, weight);
        assert_eq!(sample.data_src, if_has(F::DATA_SRC, self.data_src));
        assert_eq!(sample.transaction, if_has(F::TRANSACTION, self.transaction));
        self.compare_registers(sample.intr_regs, F::REGS_INTR, self.intr_abi, self.attr.regs_intr, &self.intr_regs);
        assert_eq!(sample.phys_addr, if_has(F::PHYS_ADDR, self.phys_addr));
        assert_eq!(sample.cgroup, if_has(F::CGROUP, self.cgroup));
        assert_eq!(sample.data_page_size, if_has(F::DATA_PAGE_SIZE, self.data_page_size));
        assert_eq!(sample.code_page_size, if_has(F::CODE_PAGE_SIZE, self.code_page_size));
        assert_eq!(sample.aux, self.has(F::AUX).then_some(&self.aux[..]));
    }

    fn compare_read(&self, read: &ReadValues<'_>) {
        let if_has = |bit: ReadFormat, time| (self.attr.read_format & bit.0 != 0).then_some(time);
        assert_eq!(read.time_enabled, if_has(ReadFormat::TOTAL_TIME_ENABLED, self.time_enabled));
        assert_eq!(read.time_running, if_has(ReadFormat::TOTAL_TIME_RUNNING, self.time_running));
        assert_eq!(read.iter().collect::<Vec<_>>(), self.counters);
        assert_eq!(read.len(), self.counters.len());
        assert_eq!(read.get(self.counters.len()), None);
    }

    fn compare_branches(&self, sample: &Sample<'_>) {
        let Some(stack) = sample.branch_stack else { return };
        let expected = self.branches.iter().map(|&[from, to, flags]| Branch {
            from: Avma(from),
            to: Avma(to),
            flags: BranchFlags(flags),
        });
        let expected: Vec<_> = expected.collect();
        assert_eq!(stack.iter().collect::<Vec<_>>(), expected);
        assert_eq!(stack.iter().rev().collect::<Vec<_>>(), expected.into_iter().rev().collect::<Vec<_>>());
        assert_eq!(stack.iter().len(), self.branches.len());
        assert_eq!(stack.hw_index, (self.attr.branch_sample_type & HW_INDEX != 0).then_some(self.hw_index));
        for (index, &counters) in self.branch_counters.iter().enumerate() {
            let expected = (self.attr.branch_sample_type & COUNTERS != 0).then_some(counters);
            assert_eq!(stack.counters(index), expected);
        }
    }

    fn compare_registers(&self, found: Option<Registers<'_>>, field: F, abi: u64, mask: u64, values: &[u64]) {
        assert_eq!(found.is_some(), self.has(field));
        let Some(found) = found else { return };
        assert_eq!((found.abi, found.mask), (abi, mask));
        assert_eq!(found.values.iter().collect::<Vec<_>>(), values);
        let mut values = values.iter().copied();
        for register in 0..64 {
            let expected = if mask & 1 << register != 0 { values.next() } else { None };
            assert_eq!(found.get(register), expected, "register {register}");
        }
    }

    /// Without its last word a sample lacks a part of its last field, and that is an error, not another value.
    fn check_cut_short(&self, whole: &Recording) {
        let mut body = self.encode();
        // These may be absent without a word said, so that what is cut short can look whole.
        let optional_parts = self.has(F::BRANCH_STACK) && self.attr.branch_sample_type & (HW_INDEX | COUNTERS) != 0;
        if body.is_empty() || optional_parts {
            return;
        }
        body.truncate(body.len() - 8);
        let cut = open(&[Attr { ids: vec![self.id], ..self.attr.clone() }], &[record(9, 2, &body)]);
        let error = with_only_record(&cut, |raw| cut.sample(raw).map(drop)).unwrap_err().to_string();
        let place = with_only_record(whole, |raw| format!("at {:#x}", raw.offset));
        assert!(error.contains("sample record") && error.contains(&place), "{error}");
    }
}

/// The fields in the order of their bits.
fn fields() -> impl Iterator<Item = u64> + Clone {
    (0..25).map(|bit| 1 << bit)
}

/// The kernel refuses both kinds of weight together.
fn possible(sample_type: u64) -> bool {
    sample_type & F::WEIGHT.0 == 0 || sample_type & F::WEIGHT_STRUCT.0 == 0
}

fn attr(sample_type: u64) -> Attr {
    Attr { sample_type, read_format: 0x1f, regs_user: 0x8000_0000_00ff_0fff, regs_intr: 0x181, ..Attr::default() }
}

#[test]
fn every_field_alone() {
    for field in fields() {
        Values::new(attr(field), LENGTHS).check();
    }
}

#[test]
fn every_two_fields() {
    for (first, second) in fields().flat_map(|first| fields().map(move |second| (first, second))) {
        if possible(first | second) {
            Values::new(attr(first | second), LENGTHS).check();
        }
    }
}

#[test]
fn all_fields_but_one_or_two() {
    let all = F::KNOWN.0;
    for weight in [F::WEIGHT.0, F::WEIGHT_STRUCT.0] {
        for (first, second) in fields().flat_map(|first| fields().map(move |second| (first, second))) {
            let mut attr = attr(all & !weight & !first & !second);
            attr.branch_sample_type = HW_INDEX | COUNTERS;
            Values::new(attr, LENGTHS).check();
        }
    }
}

#[test]
fn every_layout_of_counter_values() {
    for read_format in 0..32 {
        for sample_type in [F::READ.0, F::READ.0 | F::IP.0 | F::CALLCHAIN.0] {
            Values::new(Attr { read_format, ..attr(sample_type) }, LENGTHS).check();
        }
    }
}

#[test]
fn a_thread_without_user_space_has_no_registers() {
    let lengths = Lengths { abi: 0, stack_words: 0, ..LENGTHS };
    Values::new(attr(F::REGS_USER.0 | F::STACK_USER.0 | F::REGS_INTR.0 | F::PHYS_ADDR.0), lengths).check();
}

/// `perf_output_sample()` writes only the count where there is no stack, even if the index is asked for.
#[test]
fn an_empty_stack_may_come_without_its_index() {
    for sample_type in [F::IP.0 | F::BRANCH_STACK.0, F::BRANCH_STACK.0 | F::CGROUP.0 | F::REGS_INTR.0 | F::AUX.0] {
        let lengths = Lengths { branches: 0, ..LENGTHS };
        let mut values = Values::new(attr(sample_type), lengths);
        let body = values.encode();
        values.attr.branch_sample_type = HW_INDEX | COUNTERS;
        let recording = open(&[values.attr.clone()], &[record(9, 2, &body)]);
        values.attr.branch_sample_type = 0;
        with_only_record(&recording, |raw| values.compare(&recording.sample(raw).unwrap()));
    }
}

/// The words of counters are there only where the hardware has them.
#[test]
fn counters_may_be_absent_though_asked_for() {
    let values = Values::new(attr(F::BRANCH_STACK.0 | F::WEIGHT.0), LENGTHS);
    let asked = Attr { branch_sample_type: COUNTERS, ..values.attr.clone() };
    let recording = open(&[asked], &[record(9, 2, &values.encode())]);
    with_only_record(&recording, |raw| values.compare(&recording.sample(raw).unwrap()));
}

/// Fields of later kernels come after all others.
#[test]
fn unknown_fields_are_noted_and_do_not_shift_known_ones() {
    let mut values = Values::new(attr(F::KNOWN.0 & !F::WEIGHT.0), LENGTHS);
    let body = [values.encode(), words(&[1, 2, 3])].concat();
    let known = values.attr.sample_type;
    values.attr.sample_type = known | 1 << 40;
    let recording = open(&[values.attr.clone()], &[record(9, 2, &body)]);
    assert!(recording.notes().iter().any(|note| note.contains("0x10000000000")), "{:?}", recording.notes());
    values.attr.sample_type = known;
    with_only_record(&recording, |raw| values.compare(&recording.sample(raw).unwrap()));
}

#[test]
fn a_branch_count_that_does_not_fit_is_refused_with_the_numbers() {
    let body = [words(&[0x1000, 3]), vec![0; 40]].concat();
    let recording = open(&[attr(F::IP.0 | F::BRANCH_STACK.0)], &[record(9, 2, &body)]);
    let error = with_only_record(&recording, |raw| recording.sample(raw).map(drop)).unwrap_err();
    assert_eq!(error.to_string(), "sample record at 0xf8 says 3 branches, 40 bytes left, needs 72");
    let huge = [words(&[0x1000, u64::MAX]), vec![0; 40]].concat();
    let recording = open(&[attr(F::IP.0 | F::BRANCH_STACK.0)], &[record(9, 2, &huge)]);
    let error = with_only_record(&recording, |raw| recording.sample(raw).map(drop)).unwrap_err();
    assert!(error.to_string().contains(&format!("says {} branches", u64::MAX)), "{error}");
}

proptest! {
    #[test]
    fn any_combination(
        sample_type in (0..=F::KNOWN.0).prop_filter("both weights", |&fields| possible(fields)),
        read_format in 0u64..32,
        hw_index: bool,
        branch_counters: bool,
        regs_user: u64,
        regs_intr: u64,
        counters in 0usize..5,
        callchain in 0usize..10,
        raw_words in 1usize..6,
        branches in 1usize..40,
        stack_words in 0usize..10,
        aux_words in 0usize..6,
        abi in 0u64..3,
    ) {
        let branch_sample_type = if hw_index { HW_INDEX } else { 0 } | if branch_counters { COUNTERS } else { 0 };
        let attr = Attr { sample_type, read_format, branch_sample_type, regs_user, regs_intr, ..Attr::default() };
        let lengths = Lengths { counters, callchain, raw_words, branches, stack_words, aux_words, abi };
        Values::new(attr, lengths).check();
    }
}
