use iced_x86::{Decoder, DecoderOptions};

use super::*;
use crate::mix::kind::Kind;

fn read(texts: &[&str]) -> Result<Taxonomies, String> {
    let names: Vec<String> = (0..texts.len()).map(|index| format!("{index}.toml")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().copied()).collect();
    Taxonomies::default().with(&files).map_err(|error| error.to_string())
}

fn kind(code: &[u8]) -> Kind {
    Kind::of(&Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode(), true)
}

const DIV: &[u8] = &[0xf7, 0xf1];
const XCHG_MEM: &[u8] = &[0x87, 0x07];
const XCHG_REG: &[u8] = &[0x87, 0xd8];
const LOCK_XADD: &[u8] = &[0xf0, 0x0f, 0xc1, 0x07];
const PUSH: &[u8] = &[0x50];
const ADDSD: &[u8] = &[0xf2, 0x0f, 0x58, 0xc1];
const ADDPS: &[u8] = &[0x0f, 0x58, 0xc1];
const VADDPS_YMM: &[u8] = &[0xc5, 0xfc, 0x58, 0xc1];
const VFMADD_YMM: &[u8] = &[0xc4, 0xe2, 0x75, 0xb8, 0xc2];
const VFMADD_ZMM: &[u8] = &[0x62, 0xf2, 0x75, 0x48, 0xb8, 0xc2];
const VFMADD_SD: &[u8] = &[0xc4, 0xe2, 0xf1, 0xb9, 0xc2];
const FADD: &[u8] = &[0xd8, 0xc1];
const ADD: &[u8] = &[0x01, 0xc8];
const MOV_LOAD: &[u8] = &[0x8b, 0x07];
const AESENC: &[u8] = &[0x66, 0x0f, 0x38, 0xdc, 0xc1];
const CVTSI2SD: &[u8] = &[0xf2, 0x0f, 0x2a, 0xc0];
const MOVZX: &[u8] = &[0x0f, 0xb6, 0xc0];
const CALL_RAX: &[u8] = &[0xff, 0xd0];
const SQRTSD: &[u8] = &[0xf2, 0x0f, 0x51, 0xc1];

#[test]
fn built_in_taxonomies_tell_instructions_apart() {
    let taxonomies = Taxonomies::default();
    assert_eq!(taxonomies.iter().count(), 10, "one cannot be read: {:?}", Taxonomies::built_in_error());
    let check = |name: &str, expected: &[(&[u8], &str)]| {
        let taxonomy = taxonomies.get(name).unwrap();
        for (code, group) in expected {
            assert_eq!(taxonomy.group_of(&kind(code)), *group, "{name} {code:x?}");
        }
    };
    check(
        "long-latency",
        &[
            (DIV, "division"),
            (SQRTSD, "square root"),
            (XCHG_MEM, "exchange with memory"),
            (XCHG_REG, "short"),
            (ADD, "short"),
        ],
    );
    check(
        "synchronization",
        &[
            (LOCK_XADD, "exchange and add"),
            (XCHG_MEM, "exchange"),
            (&[0xf0, 0x01, 0x07], "other locked"),
            (&[0xf3, 0x90], "pause"),
            (ADD, "none"),
        ],
    );
    check(
        "vectorization",
        &[
            (ADDSD, "scalar fp arithmetic"),
            (ADDPS, "packed sse 128"),
            (VADDPS_YMM, "packed avx 256"),
            (VFMADD_ZMM, "packed avx-512 512"),
            (FADD, "x87"),
            (CVTSI2SD, "scalar conversion or compare"),
            (ADD, "none"),
        ],
    );
    check(
        "vector-work",
        &[
            (ADDSD, "float"),
            (FADD, "float"),
            (VFMADD_SD, "fma"),
            (VFMADD_ZMM, "fma"),
            (CVTSI2SD, "conversion"),
            // movaps, paddd, pxor, xorps, comisd, unpcklps, fld1
            (&[0x0f, 0x28, 0xc1], "move"),
            (&[0x66, 0x0f, 0xfe, 0xc1], "integer"),
            (&[0x66, 0x0f, 0xef, 0xc0], "integer"),
            (&[0x0f, 0x57, 0xc0], "logical"),
            (&[0x66, 0x0f, 0x2f, 0xc1], "compare"),
            (&[0x0f, 0x14, 0xc1], "rearrange"),
            (&[0xd9, 0xe8], "x87"),
            (MOV_LOAD, "none"),
            (ADD, "none"),
        ],
    );
    check(
        "memory-traffic",
        &[
            (PUSH, "stack"),
            (LOCK_XADD, "locked"),
            (MOV_LOAD, "load"),
            (&[0xc5, 0xfc, 0x58, 0x07], "vector load"),
            (&[0x01, 0x07], "load and store"),
            (&[0xf3, 0xa4], "string"),
            (ADD, "none"),
        ],
    );
    check("control-flow", &[(CALL_RAX, "indirect call"), (&[0xc3], "return"), (ADD, "straight line")]);
    check("cryptography", &[(AESENC, "aes"), (ADD, "none")]);
    check("conversions", &[(CVTSI2SD, "integer to floating point"), (MOVZX, "wider integer"), (ADD, "none")]);
    check(
        "flops",
        &[
            (ADD, "0"),
            (ADDSD, "1"),
            (FADD, "1"),
            (VFMADD_SD, "2"),
            (ADDPS, "4"),
            (VADDPS_YMM, "8"),
            (VFMADD_YMM, "16"),
            (VFMADD_ZMM, "32"),
            (&[0x66, 0x0f, 0x3a, 0x0b, 0xc1, 0], "0"),
            // dpps xmm0,xmm1; vdpps ymm0,ymm1,ymm2; dppd xmm0,xmm1
            (&[0x66, 0x0f, 0x3a, 0x40, 0xc1, 0xff], "8"),
            (&[0xc4, 0xe3, 0x75, 0x40, 0xc2, 0xff], "16"),
            (&[0x66, 0x0f, 0x3a, 0x41, 0xc1, 0xff], "4"),
        ],
    );
    check(
        "isa-packing",
        &[
            (ADD, "base"),
            (ADDSD, "sse scalar"),
            (ADDPS, "sse packed"),
            (VADDPS_YMM, "avx packed"),
            (VFMADD_ZMM, "avx-512 packed"),
            (&[0xc5, 0xf8, 0x77], "avx none"),
            (FADD, "x87"),
        ],
    );
}

#[test]
fn the_first_group_takes_an_instruction_and_groups_inherit() {
    let parent = r#"
        name = "parent"
        description = "."
        other = "rest"
        [[group]]
        name = "wide"
        vector-width = ">=256"
        [[group]]
        name = "memory"
        not = { memory = "none" }
    "#;
    let child = r#"
        name = "child"
        description = "."
        inherits = "parent"
        [[group]]
        name = "loads of one operand"
        inherits = "loads"
        operands = "reg"
        [[group]]
        name = "pushed"
        inherits = "memory"
        any = [{ mnemonic = "push" }, { mnemonic = "call", branch = "indirect-call" }]
        [[group]]
        name = "loads"
        memory = ["read", "read-write"]
        lock = false
    "#;
    // In any order of the files.
    for texts in [[parent, child], [child, parent]] {
        let taxonomies = read(&texts).unwrap();
        let child = taxonomies.get("child").unwrap();
        let groups: Vec<&str> = child.groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(groups, ["loads of one operand", "pushed", "loads", "wide", "memory"]);
        assert_eq!(child.groups[0].conditions(), "memory=read,read-write and lock=none and operands=reg");
        assert_eq!(
            child.groups[1].conditions(),
            "not (memory=none) and (mnemonic=push or mnemonic=call and branch=indirect-call)"
        );
        let check = |code: &[u8], group: &str| assert_eq!(child.group_of(&kind(code)), group, "{code:x?}");
        check(&[0xc3], "loads");
        check(&[0x58], "loads of one operand");
        check(PUSH, "pushed");
        check(CALL_RAX, "pushed");
        check(MOV_LOAD, "loads");
        check(LOCK_XADD, "memory");
        check(VADDPS_YMM, "wide");
        check(ADD, "rest");
    }
}

#[test]
fn a_group_of_an_inherited_name_adds_to_it() {
    let taxonomies = read(&[r#"
        name = "mine"
        description = "."
        inherits = "long-latency"
        [[group]]
        name = "division"
        mnemonic = "add"
    "#]);
    let taxonomies = taxonomies.unwrap();
    let mine = taxonomies.get("mine").unwrap();
    assert_eq!(
        [ADD, DIV, SQRTSD, MOVZX].map(|code| mine.group_of(&kind(code))),
        ["division", "division", "square root", "short"]
    );
}

#[test]
fn errors_say_what_and_where() {
    let check = |groups: &str, expected: &str| {
        let text = format!("name = \"mine\"\ndescription = \"x\"\n{groups}");
        assert_eq!(read(&[&text]).unwrap_err().lines().next().unwrap(), expected, "{text}");
    };
    check("[[group]]\nname = ", "0.toml:4:8: string values must be quoted, expected literal string");
    check(
        "kind = 1",
        "0.toml:3:1: a taxonomy has no key \"kind\"; there are name, description, inherits, other, group",
    );
    check("[[group]]", "0.toml:3:1: a group has no \"name\", and needs one");
    check("[group]", "0.toml:3:1: \"group\" is a table, and must be tables: [[group]]");
    check(
        "other = \"a,b\"",
        "0.toml:3:9: \"a,b\" cannot be a name: filters must find it, so it is not empty and has no ',', '*' or line breaks",
    );
    check(
        "[[group]]\nname = \"a\"\n  memory = \"load\"",
        "0.toml:5:12: memory is never \"load\": it is one of none, read, write, read-write",
    );
    check("[[group]]\nname = \"a\"\nmnemonic = [\"div*\", \"idvi\"]", "0.toml:5:21: mnemonic is never \"idvi\"");
    check("[[group]]\nname = \"a\"\nlength = \"<0\"", "0.toml:5:10: no instruction has length<0");
    check("[[group]]\nname = \"a\"\nlength = \"08\"", "0.toml:5:10: no instruction has length=08");
    check("[[group]]\nname = \"a\"\nlength = \"long\"", "0.toml:5:10: length is never \"long\": it is a number");
    check(
        "[[group]]\nname = \"a\"\nlength = \">=long\"",
        "0.toml:5:10: \"long\" is no whole number, and >= compares with one: >=8",
    );
    check("[[group]]\nname = \"a\"\nmemory = \">=8\"", "0.toml:5:10: memory has no numbers to compare");
    check("[[group]]\nname = \"a\"\nvector-width = \">512\"", "0.toml:5:16: no instruction has vector-width>512");
    check(
        "[[group]]\nname = \"a\"\nmnemonic = \"~(\"",
        "0.toml:5:12: \"(\" cannot be used as a regular expression: found open group without closing ')'",
    );
    check(
        "[[group]]\nname = \"a\"\noperands = \"reg-sea\"",
        "0.toml:5:12: operands is never \"reg-sea\": its parts are reg, mem, imm and target, joined by '-'",
    );
    check("[[group]]\nname = \"a\"\nany = []", "0.toml:5:7: \"any\" has no conditions");
    check("[[group]]\nname = \"a\"\nnot = {}", "0.toml:5:7: \"not\" has no conditions");
    check(
        "[[group]]\nname = \"a\"\nany = 1",
        "0.toml:5:7: \"any\" is a integer, and must be a list of tables: [{..}, {..}]",
    );
    check(
        "[[group]]\nname = \"a\"\nmemory = true",
        "0.toml:5:10: \"memory\" is a boolean, and must be a text, a number, true, false, or a list of them",
    );
    check("[[group]]\nname = \"a\"\n[[group]]\nname = \"a\"", "0.toml:6:8: there is another group \"a\"");
    check("[[group]]\nname = \"a\"\ninherits = \"b\"", "0.toml:5:12: there is no group \"b\" to inherit; there are a");
    check("[[group]]\nname = \"a\"\ninherits = \"a\"", "0.toml:5:12: a group inherits itself: a -> a");
    check("inherits = \"mine\"", "0.toml:3:12: a taxonomy inherits itself: mine -> mine");
    check(
        "inherits = \"absent\"",
        "0.toml:3:12: there is no taxonomy \"absent\" to inherit; there are control-flow, conversions, cryptography, flops, isa-packing, long-latency, memory-traffic, synchronization, vector-work, vectorization",
    );
    check(
        "[[group]]\nname = \"a\"\nnot = { any = [{ not = { any = [{ not = { lock = true } }] } }] }",
        "0.toml:5:41: levels of any and not are at most 4",
    );
    let unknown =
        read(&["name = \"mine\"\ndescription = \"x\"\n[[group]]\nname = \"a\"\nfunction = \"f\""]).unwrap_err();
    assert!(
        unknown.starts_with("0.toml:5:1: a group has no key \"function\"; there are name, description"),
        "{unknown}"
    );
    let check = |texts: &[&str], expected: &str| assert_eq!(read(texts).unwrap_err(), expected);
    check(&["name = \"mine\""], "0.toml:1:1: a taxonomy has no \"description\", and needs one");
    check(&["name = \"dso\"\ndescription = \"x\""], "0.toml:1:8: \"dso\" cannot be a name: it is that of a key of mix");
    check(
        &["name = \"A b\"\ndescription = \"x\""],
        "0.toml:1:8: \"A b\" cannot be a name: it needs letters from a to z, digits and '-'",
    );
    check(&["name = \"flops\"\ndescription = \"x\""], "0.toml:1:8: there is another taxonomy \"flops\"");
    let [one, other] = [("one", "other"), ("other", "one")]
        .map(|(name, parent)| format!("name = \"{name}\"\ndescription = \"x\"\ninherits = \"{parent}\""));
    check(&[&one, &other], "0.toml:3:12: a taxonomy inherits itself: one -> other -> one");
}

#[test]
fn groups_that_nothing_gets_to_are_found() {
    let unreachable = |groups: &[&str]| {
        let groups: String = groups
            .iter()
            .enumerate()
            .map(|(index, group)| format!("[[group]]\nname = \"{index}\"\n{group}\n"))
            .collect();
        match read(&[&format!("name = \"mine\"\ndescription = \"x\"\n{groups}")]) {
            Ok(_) => false,
            Err(error) => error.contains("no instruction gets to the group \"1\": \"0\"") || panic!("{error}"),
        }
    };
    assert!(unreachable(&["", "lock = true"]));
    assert!(unreachable(&["mnemonic = \"div*\"", "mnemonic = [\"divsd\", \"divss\"]\nmemory = \"read\""]));
    assert!(!unreachable(&["mnemonic = \"div*\"\nmemory = \"read\"", "mnemonic = \"divsd\""]));
    assert!(unreachable(&["vector-width = \">=128\"", "vector-width = \">=256\""]));
    assert!(!unreachable(&["vector-width = \">=256\"", "vector-width = \">=128\""]));
    assert!(unreachable(&["bytes-read = \">=4\"", "bytes-read = 16"]));
    assert!(unreachable(&["bytes-read = \">=4000\"", "bytes-read = \">=4001\""]));
    assert!(!unreachable(&["bytes-read = \">=4001\"", "bytes-read = \">=4000\""]));
    assert!(!unreachable(&["bytes-read = \">=1\"", "bytes-read = \"!=0\""]));
    assert!(!unreachable(&["bytes-read = [4, 8]", "bytes-read = [8, 12]"]));
    assert!(!unreachable(&["length = \"1*\"", "length = 10"]));
    assert!(unreachable(&["any = [{ lock = true }, { rep = true }]", "rep = true\nmemory = \"read\""]));
    assert!(unreachable(&[
        "memory = \"!=none\"",
        "any = [{ memory = \"read\" }, { memory = \"write\", lock = true }]"
    ]));
    assert!(
        unreachable(&[
            "not = { memory = [\"read\", \"write\"], lock = true }",
            "not = { memory = [\"read\", \"write\", \"none\"] }"
        ]) || unreachable(&["not = { memory = \"read\", lock = true }", "not = { memory = [\"read\", \"none\"] }"])
    );
    assert!(unreachable(&["lock = true", "inherits = \"0\"\nmemory = \"read-write\""]));
    assert!(unreachable(&["operands = \"reg-*\"", "operands = \"reg-*\""]));
    assert!(!unreachable(&["operands = \"reg-mem\"", "operands = \"reg-*\""]));
}

#[test]
fn large_files_end() {
    let many =
        |count: usize, text: &str| (0..count).map(|index| text.replace('#', &index.to_string())).collect::<String>();
    let head = "name = \"mine\"\ndescription = \"x\"\n";
    let too_much = |text: &str| read(&[text]).unwrap_err();
    assert!(too_much(&many(70_000, "x")).contains("bytes of a file are at most 65536"));
    assert!(
        too_much(&format!("{head}{}", many(257, "[[group]]\nname = \"#\"\nlength = #\n")))
            .contains("groups of a taxonomy")
    );
    let alternatives = many(65, "{ length = # },");
    assert!(
        too_much(&format!("{head}[[group]]\nname = \"a\"\nany = [{alternatives}]\n")).contains("conditions of a group")
    );
    let nested = format!("{head}[[group]]\nname = \"a\"\n{}lock = true{}", "not = { ".repeat(1000), " }".repeat(1000));
    assert!(read(&[&nested]).is_err());
    // As much as there can be.
    let groups = (0..50).map(|group| {
        let alternatives = (0..32).map(|index| format!("{{mnemonic=\"*\",bytes-read={}}},", 100 + 32 * group + index));
        format!("[[group]]\nname=\"{group}\"\nany=[{}]\n", alternatives.collect::<String>())
    });
    let most = format!("{head}{}", groups.collect::<String>());
    assert!(most.len() > 40_000, "{}", most.len());
    assert_eq!(read(&[&most]).unwrap().get("mine").unwrap().groups.len(), 50);
}

proptest::proptest! {
    /// Damaged text is read or refused.
    #[test]
    fn damaged_files_are_refused_without_panics(
        cut in 0_usize..4000, at in 0_usize..4000, put in "[\\[\\]{}=\"'~<>!*.,a-z0-9 \\n]{0,6}"
    ) {
        const TEXTS: [&str; 2] = [include_str!("built-in/vectorization.toml"), include_str!("built-in/flops.toml")];
        for text in TEXTS {
            let mut text = text.replacen("name = \"", "name = \"x-", 1);
            text.truncate(text.len() - cut % text.len() / 4);
            text.insert_str(at % text.len(), &put);
            if let Err(error) = read(&[&text]) {
                let place: Vec<&str> = error.splitn(4, ':').collect();
                proptest::prop_assert!(place[1].parse::<usize>().unwrap() <= text.lines().count() + 1, "{error}");
            }
        }
    }
}
