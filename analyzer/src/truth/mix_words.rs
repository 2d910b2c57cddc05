//! What the mix tool of Intel SDE calls instructions, and the sums that it adds them to.

use ::instructions::{AddressMode, Attributes, Bytes, Category, Encoding, Form, Packing, mnemonic_name};
use iced_x86::{Formatter, Instruction};

use crate::annotate::formatter;

/// Conditions that XED, the decoder of SDE, names otherwise.
pub(super) const CONDITIONS: [(&str, &str); 6] =
    [("z", "e"), ("nz", "ne"), ("nbe", "a"), ("nb", "ae"), ("nl", "ge"), ("nle", "g")];

/// Mnemonics of which one is of a string of memory, and the other one of vectors.
const OF_STRINGS_TOO: [&str; 2] = ["movsd", "cmpsd"];

/// The name of the class of an instruction: `JNZ` of `jne`, `CALL_NEAR`, `REP_STOSB`, `XADD_LOCK`, `MOVSD_XMM`.
pub fn iclass(instruction: &Instruction) -> String {
    let mnemonic = mnemonic_name(instruction.mnemonic());
    let mut name = mnemonic.to_owned();
    for prefix in ["cmov", "set", "j"] {
        let condition = mnemonic.strip_prefix(prefix);
        if let Some((xed, _)) = CONDITIONS.iter().find(|(_, ours)| condition == Some(ours)) {
            name = format!("{prefix}{xed}");
        }
    }
    let is_string = instruction.is_string_instruction();
    match mnemonic {
        "call" => {
            name += if instruction.is_call_far() || instruction.is_call_far_indirect() { "_far" } else { "_near" }
        }
        "ret" => name += "_near",
        "retf" => name = "ret_far".into(),
        _ if OF_STRINGS_TOO.contains(&mnemonic) && !is_string => name += "_xmm",
        _ if instruction.has_lock_prefix() => name += "_lock",
        _ => {}
    }
    if is_string && instruction.has_repne_prefix() {
        name.insert_str(0, "repne_");
    } else if is_string && instruction.has_rep_prefix() {
        let compares = mnemonic.starts_with("cmps") || mnemonic.starts_with("scas");
        name.insert_str(0, if compares { "repe_" } else { "rep_" });
    }
    name.to_ascii_uppercase()
}

/// The extension that an instruction is of: `BASE`, `SSE4`, `AVX512EVEX`.
pub fn isa_extension(instruction: &Instruction) -> String {
    let of = Attributes::of(instruction);
    match of.isa {
        "sse4_1" | "sse4_2" | "popcnt" => "SSE4".into(),
        "adx" => "ADOX_ADCX".into(),
        "cet_ibt" | "cet_ss" => "CET".into(),
        isa if isa.starts_with("avx512") && of.encoding == Encoding::Evex => "AVX512EVEX".into(),
        isa if isa.starts_with("avx512") => "AVX512VEX".into(),
        isa => isa.to_ascii_uppercase(),
    }
}

/// The sums that one execution of an instruction is added to: `isa-ext-AVX`, `mem-read-32`, `elements_fp_double_4`.
pub fn sums(instruction: &Instruction) -> Vec<String> {
    let (of, form) = (Attributes::of(instruction), Form::of(instruction));
    let mut sums = vec![format!("isa-ext-{}", isa_extension(instruction))];
    sums.extend(isa_set(&of, &form).map(|set| format!("isa-set-{set}")));
    let known = |bytes: Bytes| if let Bytes::Known(bytes) = bytes { bytes } else { 0 };
    let (read, written) = (known(form.bytes_read), known(form.bytes_written));
    for (bytes, access) in [(read, "read"), (written, "write")] {
        if bytes > 0 {
            sums.push(format!("mem-{access}"));
            sums.push(format!("mem-{access}-{bytes}"));
            sums.extend(of.stack.then(|| format!("stack-{access}")));
            sums.extend((form.address_mode == AddressMode::RipRelative).then(|| format!("iprel-{access}")));
        }
    }
    sums.extend(of.lock.then(|| "mem-atomic".to_owned()));
    sums.extend(elements(&of));
    sums.extend(form_of_vector(&of, &form).map(str::to_owned));
    sums
}

/// The set within the extension; `None` of what every processor has, which the decoder does not divide as XED does.
fn isa_set(of: &Attributes, form: &Form) -> Option<String> {
    let name = match of.isa {
        "base" => return None,
        "sse4_1" => "SSE4".to_owned(),
        "sse4_2" => "SSE42".to_owned(),
        isa => isa.to_ascii_uppercase(),
    };
    if !of.isa.starts_with("avx512") {
        return Some(name);
    }
    let part = match form.vector_width {
        _ if of.encoding == Encoding::Vex => "KOP".to_owned(),
        _ if of.packing == Packing::Scalar => "SCALAR".to_owned(),
        Some(width) => width.to_string(),
        None => return Some(name),
    };
    Some(format!("{name}_{part}"))
}

/// The number of floating-point elements that an instruction computes with: once for multiply and add in one.
fn elements(of: &Attributes) -> Option<String> {
    if !matches!(of.category, Category::FloatArithmetic | Category::Fma) {
        return None;
    }
    let (precision, bits) = match of.element.as_str() {
        "f32" => ("single", 32),
        "f64" => ("double", 64),
        _ => return None,
    };
    let number = match of.packing {
        Packing::Packed => of.width.as_str().parse::<u32>().ok()? / bits,
        _ => 1,
    };
    (of.isa != "x87").then(|| format!("elements_fp_{precision}_{number}"))
}

fn form_of_vector(of: &Attributes, form: &Form) -> Option<&'static str> {
    let is_scalar = of.packing == Packing::Scalar;
    if of.isa.starts_with("sse") || of.isa == "ssse3" {
        return match of.packing {
            Packing::Scalar => Some("sse-scalar"),
            Packing::Packed => Some("sse-packed"),
            _ => None,
        };
    }
    let is_avx = of.isa.starts_with("avx") || matches!(of.isa, "fma" | "f16c");
    match form.vector_width.filter(|_| is_avx) {
        Some(_) if is_scalar => Some("avx-scalar"),
        Some(128) => Some("avx128"),
        Some(256) => Some("avx256"),
        Some(512) => Some("avx512"),
        _ => None,
    }
}

/// The instruction in Intel's syntax.
pub fn disassembly(instruction: &Instruction) -> String {
    let mut text = String::new();
    formatter().format(instruction, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    use super::*;
    use crate::truth::mix_file::mnemonic_of_iclass;

    fn decoded(code: &[u8]) -> Instruction {
        Decoder::with_ip(64, code, 0x401000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn classes_are_read_as_the_mnemonics_that_they_are_of() {
        let check = |code: &[u8], expected: &str| {
            let instruction = decoded(code);
            assert_eq!(iclass(&instruction), expected);
            assert_eq!(mnemonic_of_iclass(expected), mnemonic_name(instruction.mnemonic()), "{expected}");
        };
        check(&[0x75, 0xfe], "JNZ");
        check(&[0x77, 0xfe], "JNBE");
        check(&[0x0f, 0x4d, 0xc1], "CMOVNL");
        check(&[0x0f, 0x94, 0xc0], "SETZ");
        check(&[0xe8, 0, 0, 0, 0], "CALL_NEAR");
        check(&[0xc3], "RET_NEAR");
        check(&[0xf3, 0xaa], "REP_STOSB");
        check(&[0xf2, 0xae], "REPNE_SCASB");
        check(&[0xf3, 0xa6], "REPE_CMPSB");
        check(&[0xa5], "MOVSD");
        check(&[0xf2, 0x0f, 0x10, 0xc1], "MOVSD_XMM");
        check(&[0xf0, 0x0f, 0xc1, 0x07], "XADD_LOCK");
        check(&[0x90], "NOP");
        // Of no other mnemonic the class would be read as another one.
        for mnemonic in Mnemonic::values() {
            let mut instruction = Instruction::default();
            let name = mnemonic_name(mnemonic);
            if let Some(code) = iced_x86::Code::values().find(|code| code.mnemonic() == mnemonic) {
                instruction.set_code(code);
                assert_eq!(mnemonic_of_iclass(&iclass(&instruction)), name);
            }
        }
    }

    #[test]
    fn instructions_are_added_to_their_sums() {
        let check = |code: &[u8], expected: &[&str]| assert_eq!(sums(&decoded(code)), expected);
        check(&[0x90], &["isa-ext-BASE"]);
        check(&[0x50], &["isa-ext-BASE", "mem-write", "mem-write-8", "stack-write"]);
        // addsd xmm0,[rip+4]; vfmadd231pd zmm0,zmm1,[rax]; vaddps ymm0,ymm0,ymm0; kmovw k1,eax; lock xadd [rdi],eax
        check(
            &[0xf2, 0x0f, 0x58, 0x05, 4, 0, 0, 0],
            &[
                "isa-ext-SSE2",
                "isa-set-SSE2",
                "mem-read",
                "mem-read-8",
                "iprel-read",
                "elements_fp_double_1",
                "sse-scalar",
            ],
        );
        check(
            &[0x62, 0xf2, 0xf5, 0x48, 0xb8, 0x00],
            &["isa-ext-AVX512EVEX", "isa-set-AVX512F_512", "mem-read", "mem-read-64", "elements_fp_double_8", "avx512"],
        );
        check(&[0xc5, 0xfc, 0x58, 0xc0], &["isa-ext-AVX", "isa-set-AVX", "elements_fp_single_8", "avx256"]);
        check(&[0xc5, 0xf8, 0x92, 0xc8], &["isa-ext-AVX512VEX", "isa-set-AVX512F_KOP"]);
        check(
            &[0xf0, 0x0f, 0xc1, 0x07],
            &["isa-ext-BASE", "mem-read", "mem-read-4", "mem-write", "mem-write-4", "mem-atomic"],
        );
    }
}
