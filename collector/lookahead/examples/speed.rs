//! Prints what an interpreted instruction costs: `cargo run --release -p hbbp-lookahead --example speed`

use std::collections::HashMap;
use std::time::Instant;

use addresses::Avma;
use lookahead::{
    CodeCache, DataLines, Fault, Fuel, Memory, Overlay, PAGE, Page, Registers, StopReason, run, run_with_lines,
};

const CODE: u64 = 0x40_0000;
const DATA: u64 = 0x80_0000;

struct Pages(HashMap<u64, Box<Page>>);

impl Memory for Pages {
    fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault> {
        page.copy_from_slice(&self.0.get(&(address.0 >> 12)).ok_or(Fault)?[..]);
        Ok(())
    }
}

impl Pages {
    fn put(&mut self, address: u64, bytes: &[u8]) {
        for (index, &byte) in bytes.iter().enumerate() {
            let at = address + index as u64;
            self.0.entry(at >> 12).or_insert_with(|| Box::new([0; PAGE]))[(at & 0xfff) as usize] = byte;
        }
    }
}

fn registers() -> Registers {
    let mut registers = Registers { rip: CODE, ..Registers::default() };
    registers.general[4] = DATA + 0x8000;
    registers.general[6] = DATA;
    registers.general[7] = DATA + 0x4000;
    registers
}

/// Best of several bursts over a loop: by the interpreter alone, and with compiled blocks.
fn cached(name: &str, code: &[u8]) {
    let (interpreted, stop) = best_of(code, 0);
    let (compiled, _) = best_of(code, 1);
    println!("{name}: {interpreted:.1}, compiled {compiled:.1} ns per instruction ({stop:?})");
}

fn best_of(code: &[u8], compiled_after: u32) -> (f64, Option<StopReason>) {
    let mut memory = Pages(HashMap::new());
    memory.put(CODE, code);
    memory.put(DATA, &[1; 0x10000]);
    let (mut overlay, mut lines, mut sink) = (Overlay::new(1024), DataLines::default(), Vec::new());
    let mut cache = CodeCache::new(1 << 16).compiling_after(compiled_after);
    let mut best = f64::MAX;
    let mut stop = None;
    for _ in 0..20 {
        let mut registers = registers();
        overlay.clear();
        lines.clear();
        sink.clear();
        let fuel = Fuel { instructions: 200_000, branches: u64::MAX };
        let started = Instant::now();
        let outcome =
            run_with_lines(&mut registers, &mut overlay, &mut memory, &mut cache, fuel, &mut sink, &mut lines);
        best = best.min(started.elapsed().as_nanos() as f64 / outcome.instructions as f64);
        stop = Some(outcome.stop);
    }
    (best, stop)
}

/// New code every time: much of it once.
fn first_seen(name: &str, pattern: &[u8], per_pattern: u64) {
    let mut memory = Pages(HashMap::new());
    let mut code = Vec::new();
    while code.len() < 100_000 {
        code.extend_from_slice(pattern);
    }
    let instructions = (code.len() / pattern.len()) as u64 * per_pattern;
    memory.put(CODE, &code);
    memory.put(DATA, &[1; 0x10000]);
    let mut best = f64::MAX;
    for _ in 0..10 {
        let (mut overlay, mut cache, mut sink) = (Overlay::new(1024), CodeCache::new(1 << 20), Vec::new());
        let mut registers = registers();
        let fuel = Fuel { instructions: instructions - 1, branches: u64::MAX };
        let started = Instant::now();
        let outcome = run(&mut registers, &mut overlay, &mut memory, &mut cache, fuel, &[], &mut sink);
        best = best.min(started.elapsed().as_nanos() as f64 / outcome.instructions as f64);
    }
    println!("{name}: {best:.0} ns per instruction");
}

fn main() {
    cached(
        "integer loop with loads, stores and a call",
        &[
            0x8b, 0x04, 0x0e, // mov eax, [rsi+rcx]
            0x01, 0xc2, // add edx, eax
            0x89, 0x54, 0x0f, 0x04, // mov [rdi+rcx+4], edx
            0x48, 0x8d, 0x49, 0x04, // lea rcx, [rcx+4]
            0x81, 0xe1, 0xff, 0x0f, 0x00, 0x00, // and ecx, 0xfff
            0x84, 0xc0, // test al, al
            0x74, 0x02, // je +2
            0x31, 0xd0, // xor eax, edx
            0xe8, 0x05, 0x00, 0x00, 0x00, // call f
            0x49, 0xff, 0xc0, // inc r8
            0xeb, 0xdd, // jmp start
            0x53, // f: push rbx
            0x0f, 0xb6, 0xd8, // movzx ebx, al
            0xc1, 0xe3, 0x03, // shl ebx, 3
            0x49, 0x01, 0xd9, // add r9, rbx
            0x5b, // pop rbx
            0xc3, // ret
        ],
    );
    cached(
        "registers only",
        &[
            0x48, 0x01, 0xc8, 0x48, 0x31, 0xd1, 0x48, 0xff, 0xc2, 0x48, 0x39, 0xd0, 0x48, 0x8d, 0x44, 0x0a, 0x08, 0x48,
            0x85, 0xc0, 0xeb, 0xea,
        ],
    );
    cached(
        "half SSE2: movdqu, pcmpeqb, pmovmskb, pxor",
        &[
            0xf3, 0x0f, 0x6f, 0x06, // movdqu xmm0, [rsi]
            0x66, 0x0f, 0x74, 0xc1, // pcmpeqb xmm0, xmm1
            0x66, 0x0f, 0xd7, 0xc0, // pmovmskb eax, xmm0
            0x85, 0xc0, // test eax, eax
            0x48, 0xff, 0xc1, // inc rcx
            0x66, 0x0f, 0xef, 0xc9, // pxor xmm1, xmm1
            0x39, 0xca, // cmp edx, ecx
            0xeb, 0xe7,
        ],
    );
    cached(
        "all SSE2 double: addsd, mulsd, movsd",
        &[
            0xf2, 0x0f, 0x10, 0x06, // movsd xmm0, [rsi]
            0xf2, 0x0f, 0x59, 0xc1, // mulsd xmm0, xmm1
            0xf2, 0x0f, 0x58, 0xd0, // addsd xmm2, xmm0
            0xf2, 0x0f, 0x11, 0x17, // movsd [rdi], xmm2
            0xeb, 0xee,
        ],
    );
    cached(
        "all x87: fld, fadd, fstp",
        &[
            0xdd, 0x06, // fld qword [rsi]
            0xdc, 0x06, // fadd qword [rsi]
            0xdd, 0x1f, // fstp qword [rdi]
            0xeb, 0xf8,
        ],
    );
    first_seen(
        "first-seen integer code",
        &[0x8b, 0x04, 0x0e, 0x01, 0xc2, 0x89, 0x54, 0x0f, 0x04, 0x85, 0xc0, 0x75, 0x00],
        5,
    );
    first_seen("first-seen vector code", &[0xf3, 0x0f, 0x6f, 0x06, 0x66, 0x0f, 0xef, 0xc9, 0x85, 0xc0, 0x75, 0x00], 4);
}
