//! Function tables: which symbol names which address, and what fills the rest.

mod synthetic;

use analyzer::address::Svma;
use analyzer::code::{FunctionTable, Image, Origin, demangle};
use synthetic::{Segment, Symbol, TEXT, code, function};

fn symbol(name: &'static str, offset: u64, size: u64, kind: u8, binding: u8) -> Symbol {
    Symbol { name, address: TEXT + offset, size, kind, binding }
}

/// One line per function: offsets from [`TEXT`], name, and `+offset` if the range is not the beginning of what the name stands for.
fn listing(image: &Image) -> Vec<String> {
    let functions = FunctionTable::of(image);
    let line = |(id, function): (_, &analyzer::code::Function)| {
        let later = function.start.0 - function.symbol.0;
        let suffix = if later > 0 { format!("+{later:#x}") } else { String::new() };
        format!("{:x}-{:x} {}{suffix}", function.start.0 - TEXT, function.end.0 - TEXT, functions.name(id))
    };
    functions.iter().map(line).collect()
}

#[track_caller]
fn check(symbols: Vec<Symbol>, expected: &[&str]) {
    assert_eq!(listing(&code(&[0x90; 0x40], symbols).image()), expected);
}

#[test]
fn gaps_are_named_by_place() {
    check(vec![function("f", TEXT + 0x10, 0x10)], &["0-10 [.text+0x0]", "10-20 f", "20-40 [.text+0x20]"]);
}

#[test]
fn aliases_prefer_typed_then_global_then_weak_then_local() {
    let all = [("_label", 0, 1), ("__write", 2, 0), ("write", 2, 2), ("__libc_write", 2, 1)];
    let expected = ["__libc_write", "write", "__write", "_label"];
    for (dropped, name) in expected.iter().enumerate() {
        let kept = all.iter().filter(|alias| !expected[..dropped].contains(&alias.0));
        let symbols = kept.map(|&(name, kind, binding)| symbol(name, 0, 0x40, kind, binding)).collect();
        check(symbols, &[&format!("0-40 {name}")]);
    }
}

#[test]
fn aliases_of_one_rank_prefer_plain_names() {
    check(
        vec![function("memcpy@@GLIBC_2.14", TEXT, 0x40), function("__memcpy_chk", TEXT, 0x40)],
        &["0-40 __memcpy_chk"],
    );
    check(vec![function("_IO_puts", TEXT, 0x40), function("puts", TEXT, 0x40)], &["0-40 puts"]);
    check(vec![function("b", TEXT, 0x40), function("a", TEXT, 0x40)], &["0-40 a"]);
}

/// The longest extent counts, whichever alias names the function.
#[test]
fn aliases_of_different_size() {
    check(vec![symbol("short", 0, 0x10, 2, 1), symbol("long", 0, 0x40, 2, 0)], &["0-40 short"]);
}

#[test]
fn symbols_without_size_reach_to_the_next() {
    let symbols = vec![symbol("start", 0, 0, 0, 1), symbol("next", 0x10, 0, 2, 1), symbol("sized", 0x18, 8, 2, 1)];
    check(symbols, &["0-10 start", "10-18 next", "18-20 sized", "20-40 [.text+0x20]"]);
    check(vec![symbol("last", 0x30, 0, 2, 1)], &["0-30 [.text+0x0]", "30-40 last"]);
}

#[test]
fn where_functions_end_is_known_of_sizes_and_unwind_entries() {
    let known = |symbols: Vec<Symbol>| -> Vec<bool> {
        FunctionTable::of(&code(&[0x90; 0x40], symbols).image()).iter().map(|(_, one)| one.has_known_end).collect()
    };
    let symbols = vec![symbol("asm", 0, 0, 0, 1), symbol("sized", 0x18, 8, 2, 1)];
    assert_eq!(known(symbols), [false, true, false]);
    assert_eq!(known(vec![symbol("named", 0, 0, 2, 0), symbol("sized", 0, 0x40, 2, 1)]), [true]);
}

#[test]
fn labels_inside_functions_are_no_functions() {
    check(vec![function("f", TEXT, 0x40), symbol("loop", 0x10, 0, 0, 0)], &["0-40 f"]);
}

#[test]
fn nested_and_overlapping_symbols_interrupt() {
    let nested = vec![function("outer", TEXT, 0x30), function("inner", TEXT + 0x10, 8)];
    check(nested, &["0-10 outer", "10-18 inner", "18-30 outer+0x18", "30-40 [.text+0x30]"]);
    let overlapping = vec![function("first", TEXT, 0x18), function("second", TEXT + 0x10, 0x30)];
    check(overlapping, &["0-10 first", "10-40 second"]);
    let deep = vec![function("a", TEXT, 0x40), function("b", TEXT + 8, 0x10), function("c", TEXT + 0x10, 8)];
    check(deep, &["0-8 a", "8-10 b", "10-18 c", "18-40 a+0x18"]);
}

#[test]
fn symbols_outside_of_code_are_ignored() {
    let symbols = vec![
        function("before", TEXT - 8, 8),
        function("behind", TEXT + 0x40, 8),
        symbol("table", 0x10, 8, 1, 1),
        function("long", TEXT + 0x20, u64::MAX),
    ];
    check(symbols, &["0-20 [.text+0x0]", "20-40 long"]);
}

#[test]
fn lookup_by_address() {
    let image = code(&[0x90; 0x40], vec![function("f", TEXT + 0x10, 0x10)]).image();
    let functions = FunctionTable::of(&image);
    let name = |offset: u64| functions.at(Svma(TEXT + offset)).map(|id| functions.name(id).into_owned());
    assert_eq!(name(0xf).as_deref(), Some("[.text+0x0]"));
    assert_eq!(name(0x10).as_deref(), Some("f"));
    assert_eq!(name(0x1f).as_deref(), Some("f"));
    assert_eq!(name(0x20).as_deref(), Some("[.text+0x20]"));
    assert_eq!(name(0x40), None);
    assert_eq!(functions.at(Svma(TEXT - 1)), None);
}

/// Executable segments without sections, as the vdso of old kernels and packed programs have them.
#[test]
fn segments_without_sections_are_code() {
    let mut elf = code(&[0x90; 0x20], vec![]);
    elf.sections.clear();
    assert_eq!(listing(&elf.image()), ["0-20 [code+0x0]"]);
}

/// Sections of code in a segment leave out what is between them; another segment without any is code as a whole.
#[test]
fn sections_and_segments() {
    let mut elf = code(&[0x90; 0x40], vec![function("f", TEXT + 0x30, 0x40)]);
    elf.sections = vec![(".init", TEXT, 0x1000, 0x10), (".text", TEXT + 0x20, 0x1020, 0x1000)];
    elf.segments.push(Segment { address: TEXT + 0x1000, offset: 0x2000, flags: 5, bytes: vec![0x90; 8] });
    let expected = ["0-10 [.init+0x0]", "20-30 [.text+0x0]", "30-40 f", "1000-1008 [code+0x0]"];
    assert_eq!(listing(&elf.image()), expected);
}

#[test]
fn a_debug_file_names_the_functions_of_a_stripped_one() {
    let stripped = code(&[0x90; 0x40], vec![]).image();
    let with_symbols = code(&[0x90; 0x40], vec![function("main", TEXT + 0x10, 0x10)]).image();
    assert!(stripped.is_stripped() && !with_symbols.is_stripped());
    let functions = FunctionTable::with_debug_file(&stripped, &with_symbols);
    let id = functions.at(Svma(TEXT + 0x18)).unwrap();
    assert_eq!((functions.name(id).as_ref(), functions.get(id).origin), ("main", Origin::Symbol));
}

/// The fuzz target's seeds are small linked files: a library, its stripped copy, and a static program (`seeds/make.sh`).
fn linked(name: &str) -> Vec<String> {
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/analyzer/seeds/blocks");
    let seed = std::fs::read(seeds.join(name)).unwrap();
    let image = Image::parse(seed[13..].to_vec()).unwrap();
    let functions = FunctionTable::of(&image);
    let line = |(id, function): (_, &analyzer::code::Function)| {
        format!("{:x}-{:x} {:?} {}", function.start.0, function.end.0, function.origin, functions.name(id))
    };
    functions.iter().map(line).collect()
}

#[test]
fn plt_entries_are_named_after_what_they_call() {
    let library = [
        "2a0-2b0 EhFrame [.plt+0x0]",
        "2b0-2c0 Plt g@plt",
        "2c0-2d0 Plt pick@plt",
        "2d0-2ee Symbol f",
        "2ee-2ef Symbol outer",
        "2ef-2f2 Symbol nested",
        "2f2-2fa Symbol pick",
    ];
    assert_eq!(linked("library"), library);
    let stripped = [
        "2a0-2b0 EhFrame [.plt+0x0]",
        "2b0-2c0 Plt g@plt",
        "2c0-2d0 Plt pick@plt",
        "2d0-2ee DynamicSymbol f",
        "2ee-2f2 Gap [.text+0x1e]",
        "2f2-2fa DynamicSymbol pick",
    ];
    assert_eq!(linked("stripped"), stripped);
}

/// In a static program the entry calls what a resolver chooses, and the relocation knows only the resolver.
#[test]
fn plt_entries_of_resolvers() {
    let program = [
        "400100-400108 Plt pick@plt",
        "400108-400126 Symbol f",
        "400126-400127 Symbol outer",
        "400127-40012a Symbol nested",
        "40012a-400132 Symbol pick",
    ];
    assert_eq!(linked("program"), program);
}

#[test]
fn names_as_the_source_has_them() {
    let checks = [
        ("_ZN4core3fmt9Formatter3pad17h1234567890abcdefE", "core::fmt::Formatter::pad"),
        ("_RNvC6_123foo3bar", "123foo::bar"),
        ("_ZN3foo3barEi", "foo::bar(int)"),
        ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)"),
        ("_ZN3foo3barEi.cold", "foo::bar(int) [clone .cold]"),
        ("_ZN3foo3barEi@plt", "foo::bar(int)@plt"),
        ("memcpy@@GLIBC_2.14", "memcpy@@GLIBC_2.14"),
        ("main", "main"),
        ("_Z", "_Z"),
        ("[.text+0x10]", "[.text+0x10]"),
        ("", ""),
    ];
    for (mangled, expected) in checks {
        assert_eq!(demangle(mangled), expected);
    }
}

/// Every parameter is a pair of the one before: 2^60 ints in 600 bytes.
#[test]
fn demangling_does_not_explode() {
    let pairs = |levels: u32| {
        let more = (0..levels).map(|level| format!("S_IS{0}_S{0}_E", base36(level)));
        format!("_Z1fSt4pairIiiE{}", more.collect::<String>())
    };
    let two = "f(std::pair<int, int>, std::pair<std::pair<int, int>, std::pair<int, int> >)";
    assert_eq!(demangle(&pairs(1)), two);
    assert!(demangle(&pairs(7)).len() > 5_000);
    for levels in [8, 60] {
        assert_eq!(demangle(&pairs(levels)), pairs(levels));
    }
    let deep = format!("_Z1f{}i", "P".repeat(100_000));
    assert_eq!(demangle(&deep), deep);
}

fn base36(number: u32) -> String {
    let digit = |value: u32| char::from_digit(value, 36).unwrap().to_ascii_uppercase();
    if number < 36 { digit(number).to_string() } else { format!("{}{}", digit(number / 36), digit(number % 36)) }
}
