//! Writes a small recording that `perf script` opens: `cargo run -p hbbp-perfdata --example write FILE`

use std::fs::File;
use std::io::BufWriter;

use perfdata::{
    AttrFlags, Avma, Branch, BranchFlags, BranchSampleType, Comm, CpuMode, EventAttr, EventDescription, Features, Mmap,
    SampleFields, SampleFormat, SampleId, Writer,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file is to be written?")?;
    let attr = EventAttr {
        sample_period_or_freq: 1000,
        sample_format: SampleFormat::IP | SampleFormat::TID | SampleFormat::TIME | SampleFormat::BRANCH_STACK,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::EXCLUDE_KERNEL,
        branch_sample_type: BranchSampleType::USER | BranchSampleType::ANY,
        ..EventAttr::default()
    };
    let event = EventDescription { attr, name: "cycles:u".to_owned(), ids: vec![1] };
    let mut writer = Writer::create(BufWriter::new(File::create(&path)?), &[event])?;

    let (pid, tid, base) = (1234, 1234, 0x40_0000);
    let sample_id = SampleId { pid: Some(pid), tid: Some(tid), time: Some(1), ..SampleId::default() };
    writer.write_comm(&Comm { pid, tid, exec: true, name: b"loop", sample_id })?;
    writer.write_mmap2(&Mmap {
        cpu_mode: CpuMode::User,
        pid,
        tid,
        start: Avma(base),
        len: 0x1000,
        prot: 5,
        flags: 2,
        path: b"/bin/loop",
        sample_id,
        ..Mmap::default()
    })?;
    for time in 2..100 {
        let back = Branch { from: Avma(base + 0x140), to: Avma(base + 0x100), flags: BranchFlags::PREDICTED };
        let branches = [back; 16];
        let ip = Avma(base + 0x100);
        writer.write_sample(&SampleFields {
            cpu_mode: CpuMode::User,
            ip,
            pid,
            tid,
            time,
            branches: &branches,
            ..SampleFields::default()
        })?;
    }
    let features = Features { arch: Some("x86_64".to_owned()), branch_stack: true, ..Features::default() };
    writer.finish(&features)?;
    println!("written: perf script -i {path} -F ip,brstack");
    Ok(())
}
