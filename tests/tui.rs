//! `hbbp tui`, driven in a terminal: what it shows is what the reports print, and the terminal is given back.

#[path = "support/hostile.rs"]
mod hostile;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/terminal.rs"]
mod terminal;

use rustix::process::Signal;
use serde_json::Value;
use support::{Fixture, run, stdout};
use terminal::Terminal;

const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";
const PAGE_DOWN: &str = "\x1b[6~";
const DOWN: &str = "\x1b[B";

/// What is in the last line when it waits for keys.
const WAITS: &str = "q quit";

/// A recording and more on a terminal, when the functions are on the screen.
fn open(columns: u16, rows: u16, fixture: &Fixture, more: &[&str]) -> Option<Terminal> {
    let input = fixture.input();
    let arguments = [&["tui"], &input.each_ref().map(String::as_str)[..], more].concat();
    let mut terminal = Terminal::open(columns, rows, &arguments, &[])?;
    terminal.wait_for_text(WAITS);
    Some(terminal)
}

fn json(arguments: &[&str], fixture: &Fixture) -> Value {
    let input = fixture.input();
    let input = input.each_ref().map(String::as_str);
    serde_json::from_str(&stdout(&[arguments, &input[..], &["--format", "json"]].concat())).unwrap()
}

/// A line without spaces at its end, and with one where there are more.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lines that are not empty, word by word.
fn all_words<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    lines.into_iter().map(words).filter(|line| !line.is_empty()).collect()
}

/// Whether a number is shown that is uncertain by so much: rounded to two digits of that.
fn is_shown(shown: &str, value: &Value, error: &Value) -> bool {
    let shown: f64 = shown.replace(',', "").parse().unwrap_or_else(|_| panic!("{shown:?} is no number"));
    let rounded = error.as_f64().map_or(0.5, |error| f64::max(0.5, 0.051 * error));
    (shown - value.as_f64().unwrap()).abs() <= rounded
}

/// Waits until a text is on the screen, and nothing more is to be done.
fn settled(terminal: &mut Terminal, text: &str) -> Vec<String> {
    terminal.wait_for(text, |lines| {
        lines.iter().any(|line| line.contains(text)) && lines.last().is_some_and(|line| line.contains(WAITS))
    })
}

#[test]
fn functions_and_code_are_those_of_annotate() {
    let fixture = Fixture::bursts("compress");
    let document = json(&["annotate"], &fixture);
    let functions = document["functions"].as_array().unwrap();
    // All of it is on one screen, and nothing is cut.
    let Some(mut terminal) = open(200, 500, &fixture, &[]) else { return };
    let lines = terminal.lines();
    let shown: Vec<&String> = lines.iter().skip(4).take(functions.len()).collect();
    for (line, function) in shown.into_iter().zip(functions) {
        assert!(line.contains(&format!("  {}  ", function["name"].as_str().unwrap())), "{line}: {function}");
        let count = line.split("  ").map(str::trim).find(|cell| cell.contains(',') || *cell == "0");
        assert!(is_shown(count.unwrap(), &function["executed"], &function["executed_error"]), "{line}: {function}");
    }
    let is_on_one_screen = |function: &Value| function["blocks"].as_array().unwrap().len() < 50;
    let short = functions.iter().enumerate().filter(|(_, function)| is_on_one_screen(function));
    for (place, function) in short.take(3) {
        terminal.press(&format!("1g{}{ENTER}", DOWN.repeat(place)));
        let name = function["name"].as_str().unwrap();
        let heading = format!("{name} (compress)");
        let lines = settled(&mut terminal, &heading);
        let code = &lines[5..];
        for block in function["blocks"].as_array().unwrap() {
            let start = format!("{:x}", block["start"].as_u64().unwrap());
            let line = code.iter().find(|line| line.split_whitespace().any(|word| word == start));
            let line = line.unwrap_or_else(|| panic!("{start} is not in {}", code.join("\n")));
            match block["seen"].as_str().unwrap() {
                "counted" => {
                    let before = line.split_whitespace().take_while(|word| *word != start);
                    assert!(
                        before.filter(|word| word.contains(',') || word.len() < 4).any(|word| {
                            word.replace(',', "").parse::<f64>().is_ok()
                                && is_shown(word, &block["count"], &block["count_error"])
                        }),
                        "{line}: {block}"
                    );
                }
                word => assert!(line.contains(&word.replace('-', " ")) || word == "by-other-source", "{line}"),
            }
        }
        // Word for word what the report prints.
        let input = fixture.input();
        let arguments = [&["annotate", "--source", "-f", name][..], &input.each_ref().map(String::as_str)].concat();
        let report = stdout(&arguments);
        let (_, listing) = report.split_once("\n\n").unwrap();
        let (listing, _) = listing.split_once("\n\n# lacks").unwrap();
        let shown = all_words(lines[3..lines.len() - 1].iter().map(String::as_str));
        assert_eq!(shown, all_words(listing.lines()));
    }
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.is_as_before());
}

#[test]
fn the_guide_shows_what_is_drawn() {
    let Some(mut terminal) = open(112, 26, &Fixture::bursts("compress"), &[]) else { return };
    terminal.press(&format!("/put_bit{ENTER}{ENTER}"));
    let lines = settled(&mut terminal, "put_bit (compress)");
    let shown: String = lines.iter().map(|line| format!("    {}\n", line.trim_end()).replace("    \n", "\n")).collect();
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/tui.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    assert!(guide.contains(&shown), "docs/guide/tui.md does not have\n{shown}");
}

#[test]
fn blocks_are_those_of_blocks() {
    let fixture = Fixture::bursts("compress");
    let input = fixture.input();
    let report = stdout(&[&["blocks", "--top", "20"][..], &input.each_ref().map(String::as_str)].concat());
    let (_, table) = report.split_once("\n\n").unwrap();
    let table = all_words(table.lines().take(21));
    let Some(mut terminal) = open(200, 60, &fixture, &[]) else { return };
    terminal.press("2");
    let lines = settled(&mut terminal, "  instr  ");
    assert_eq!(all_words(lines[3..].iter().map(String::as_str).take(21)), table);
}

#[test]
fn the_pivot_is_that_of_mix() {
    let fixture = Fixture::bursts("parse");
    let Some(mut terminal) = open(250, 150, &fixture, &[]) else { return };
    let check = |terminal: &mut Terminal, heading: &str, options: &[&str]| {
        let lines = settled(terminal, heading);
        let rows = &lines[4..lines.len() - 1];
        let input = fixture.input();
        let input = input.each_ref().map(String::as_str);
        let report = stdout(&[&["mix", "--top", "0"], options, &input[..]].concat());
        let (_, table) = report.split_once("\n\n").unwrap();
        let table = table.lines().filter(|line| !line.starts_with("?: "));
        assert_eq!(all_words(rows.iter().map(String::as_str)), all_words(table));
        let document = json(&[&["mix"], options].concat(), &fixture);
        let errors = document["head"]["precision"]["text"].as_str().unwrap();
        assert!(lines[2].starts_with(&format!("errors  {errors}")), "{}: {errors}", lines[2]);
        (all_words(rows.iter().skip(1).map(String::as_str)), document)
    };
    terminal.press("4");
    let (rows, document) = check(&mut terminal, "rows mnemonic; columns -; filter -", &[]);
    for (shown, row) in rows.iter().zip(document["rows"].as_array().unwrap()) {
        let cells: Vec<&str> = shown.split(' ').collect();
        assert_eq!(cells[0], row["mnemonic"]);
        assert!(is_shown(cells[1], &row["count"], &row["count_error"]), "{shown}: {row}");
    }
    terminal.press("cpacking\rfcategory!=branch; length>=3\r");
    check(
        &mut terminal,
        "rows mnemonic; columns packing; filter category!=branch; length>=3",
        &["--columns", "packing", "--filter", "category!=branch", "--filter", "length>=3"],
    );
    // Another analysis, in which threads are told apart.
    terminal.press("f\x15\rc\x15\rr\x15thread,module\r");
    check(&mut terminal, "rows thread,module; columns -; filter -", &["--rows", "thread,module"]);
}

#[test]
fn a_pivot_can_be_asked_for_at_the_start() {
    let fixture = Fixture::bursts("compress");
    let Some(mut terminal) = open(100, 20, &fixture, &["--rows", "isa", "--filter", "isa!=base"]) else { return };
    terminal.press("4");
    terminal.wait_for_text("rows isa; columns -; filter isa!=base");
    let wrong = run(&["tui", "--rows", "isa", "--format", "json"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn two_recordings_are_compared_as_diff_does() {
    let [before, after] = ["ivy-bridge", "westmere"].map(Fixture::simulated);
    let [first, second] = [&before, &after].map(|of| of.recording.to_str().unwrap().to_owned());
    let binary = before.binary_option();
    let report = stdout(&["diff", &first, &second, "--binary", &binary, "--top", "0"]);
    let (_, table) = report.split_once("\n\n").unwrap();
    let (functions, _) = table.split_once("\n\n").unwrap();
    let arguments = ["tui", &first, &second, "--binary", &binary];
    let Some(mut terminal) = Terminal::open(150, 100, &arguments, &[]) else { return };
    settled(&mut terminal, "ivy-bridge.data (before)");
    terminal.press("5");
    let lines = settled(&mut terminal, "overlap  functions ");
    assert_eq!(all_words(lines[4..lines.len() - 1].iter().map(String::as_str)), all_words(functions.lines()));
    // The code of a function is that of the second recording; x shows that of the first.
    terminal.press(ENTER);
    let code = settled(&mut terminal, "of all instructions");
    assert!(code[0].contains("westmere.data (after)"), "{}", code[0]);
    terminal.press("x");
    let other = settled(&mut terminal, "ivy-bridge.data (before)");
    assert_eq!((&other[3], other[4] == code[4]), (&code[3], false));
    terminal.press("xq");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn changes_lead_to_functions_that_compilers_named_differently() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let record = |name: &str, symbols: [&str; 2]| {
        let binary = synthetic::with_symbols(folder.path(), name, symbols)?;
        let mut recorder = synthetic::Recorder::new(&binary);
        recorder.stack(&synthetic::AROUND);
        std::fs::write(path(&format!("{name}.data")), recorder.finish(&Default::default())).unwrap();
        Some(path(&format!("{name}.data")))
    };
    let Some(before) = record("one", ["work.constprop.0", "other"]) else { return };
    let Some(after) = record("three", ["work", "work.cold"]) else { return };
    let merged = path("after.flow");
    stdout(&["merge", &after, "-o", &merged]);
    for after in [&after, &merged] {
        let Some(mut terminal) = Terminal::open(150, 30, &["tui", &before, after], &[]) else { return };
        terminal.wait_for_text(WAITS);
        terminal.press("5");
        settled(&mut terminal, "overlap  functions ");
        // The whole head of the comparison.
        terminal.press("i");
        let head = terminal.wait_for_text("in files that are the same");
        let report = stdout(&["diff", &before, after]);
        let (of_report, _) = report.split_once("\n\n").unwrap();
        for title in ["note", "work"] {
            let line = of_report.lines().find(|line| words(line).trim_start_matches("# ").starts_with(title));
            let line = line.unwrap_or_else(|| panic!("{title}: {report}")).trim_start_matches("# ");
            // Files are called by their names here.
            let begin: String = words(line).chars().take(40).collect();
            assert!(head.iter().any(|line| words(line).starts_with(&begin)), "{begin}:\n{}", head.join("\n"));
        }
        terminal.press(&format!("qf\x15module={}; work{ENTER}", path("three")));
        settled(&mut terminal, "1/1 (of ");
        // The larger of those that were added up, and what it was before.
        terminal.press(ENTER);
        let code = settled(&mut terminal, "work (three)");
        assert!(code[0].contains("(after)"), "{}", code[0]);
        terminal.press("x");
        let code = settled(&mut terminal, "work.constprop.0 (one)");
        assert!(code[0].contains("(before)"), "{}", code[0]);
        terminal.press("q");
        assert_eq!(terminal.end(), 0);
    }
}

#[test]
fn merged_files_and_exact_counts_are_shown() {
    let fixture = Fixture::bursts("compress");
    let folder = tempfile::tempdir().unwrap();
    let merged = folder.path().join("merged.flow").to_str().unwrap().to_owned();
    let [_, recording, more @ ..] = fixture.input();
    let more = more.each_ref().map(String::as_str);
    stdout(&[&["merge", &recording, "-o", &merged], &more[..]].concat());
    let truth = fixture.truth().display().to_string();
    for file in [&merged, &truth] {
        let Some(mut terminal) = Terminal::open(200, 60, &[&["tui", file], &more[..]].concat(), &[]) else { return };
        terminal.wait_for_text(WAITS);
        terminal.press("4r\x15module,function\r");
        let lines = settled(&mut terminal, "rows module,function;");
        let report = stdout(&[&["mix", file, "--rows", "module,function", "--top", "0"], &more[..]].concat());
        let (_, table) = report.split_once("\n\n").unwrap();
        let shown = all_words(lines[4..lines.len() - 1].iter().map(String::as_str));
        assert_eq!(shown, all_words(table.lines().filter(|line| !line.starts_with("?: "))));
        // Another analysis, and code.
        terminal.press("r\x15thread\r");
        settled(&mut terminal, "rows thread;");
        terminal.press(&format!("1{ENTER}"));
        settled(&mut terminal, "of all instructions");
        terminal.press("q");
        assert_eq!(terminal.end(), 0);
    }
}

#[test]
fn screens_of_any_size_are_drawn() {
    let fixture = Fixture::bursts("objects");
    let Some(mut terminal) = open(100, 30, &fixture, &[]) else { return };
    terminal.press(ENTER);
    settled(&mut terminal, "(objects)");
    terminal.resize(60, 12);
    let narrow = terminal.wait_for_text("share");
    assert!(narrow.iter().any(|line| line.contains("4017")), "{}", narrow.join("\n"));
    // Keys work on the smallest, too.
    terminal.resize(20, 5);
    let views = [("1", "1 functions"), ("2", "2 blocks"), ("4", "4 pivot"), ("?", "Esc"), (ESCAPE, "4 pivot")];
    let typed = [("/xyz", "/xyz"), (ENTER, "nothing here"), ("f", "filter:"), (ESCAPE, "4 pivot"), ("3", "3 code")];
    for (keys, what) in views.into_iter().chain(typed) {
        terminal.press(keys);
        match keys {
            // With a key after it, it would be another one.
            ESCAPE => settled(&mut terminal, what),
            _ => terminal.wait_for_text(what),
        };
    }
    settled(&mut terminal, "3 code");
    terminal.resize(1, 1);
    terminal.resize(120, 40);
    settled(&mut terminal, "Enter follow");
    terminal.press("1");
    settled(&mut terminal, "Enter code");
    let lines = terminal.lines();
    assert!(lines[0].contains("1 functions  2 blocks") && lines.len() == 40, "{}", lines.join("\n"));
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.is_as_before());
}

#[test]
fn a_tiny_screen_scrolls() {
    let Some(mut terminal) = open(30, 5, &Fixture::bursts("objects"), &[]) else { return };
    terminal.wait_for_text("1/17");
    terminal.press(&PAGE_DOWN.repeat(3));
    terminal.wait_for_text("4/17");
    terminal.press("G");
    let last = terminal.wait_for_text("17/17");
    assert!(last.iter().any(|line| line.contains("0.00 %")), "{}", last.join("\n"));
    terminal.press("g");
    terminal.wait_for_text(" 1/17");
}

#[test]
fn signals_give_the_terminal_back() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let Some(mut terminal) = open(80, 24, &Fixture::bursts("compress"), &[]) else { return };
        assert!(!terminal.is_as_before() && terminal.screen().alternate_screen());
        terminal.signal(signal);
        assert_eq!(terminal.end(), -signal.as_raw(), "{signal:?}");
        assert!(terminal.is_as_before(), "{signal:?}");
    }
}

#[test]
fn signals_end_it_where_nobody_reads_the_terminal() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let Some(mut terminal) = open(80, 24, &Fixture::bursts("compress"), &[]) else { return };
        terminal.hold();
        terminal.press("2");
        terminal.signal(signal);
        assert_eq!(terminal.end(), -signal.as_raw(), "{signal:?}");
        assert!(terminal.has_usual_modes(), "{signal:?}");
    }
}

#[test]
fn it_is_stopped_and_goes_on() {
    let Some(mut terminal) = open(80, 24, &Fixture::bursts("compress"), &[]) else { return };
    terminal.press("\x1a");
    terminal.wait_until(|terminal| terminal.is_stopped() && terminal.is_as_before());
    terminal.signal(Signal::CONT);
    terminal.wait_for_text(WAITS);
    assert!(terminal.screen().alternate_screen());
    terminal.press("\x03");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.is_as_before());
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let output = run(&["tui", "whatever.data"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{said}");
    assert!(said.contains("standard output is no terminal: use `hbbp mix`, `hbbp annotate`"), "{said}");
    let Some(mut dumb) = Terminal::open(80, 24, &["tui", "whatever.data"], &[("TERM", "dumb")]) else { return };
    assert_eq!(dumb.end(), 2);
    assert!(dumb.lines().concat().contains("TERM is dumb"), "{}", dumb.lines().join("\n"));
}

#[test]
fn what_is_wrong_is_said_before_the_screen_is_opened() {
    for (arguments, what) in [
        (&["tui", "/nonexistent.data"][..], "/nonexistent.data"),
        (&["tui", "/bin/sh"], "did you mean `hbbp tui -- /bin/sh`?"),
        (&["tui", "--rows", "colour", "/bin/sh"], "there is no key \"colour\""),
    ] {
        let Some(mut terminal) = Terminal::open(200, 24, arguments, &[]) else { return };
        assert_ne!(terminal.end(), 0, "{arguments:?}");
        assert!(terminal.lines().concat().contains(what), "{}", terminal.lines().join("\n"));
        assert!(!String::from_utf8_lossy(&terminal.written).contains("\x1b[?1049h"));
    }
}

#[test]
fn names_cannot_command_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recording) = hostile::recording(folder.path()) else { return };
    let Some(mut terminal) = Terminal::open(200, 30, &["tui", &recording], &[]) else { return };
    terminal.wait_for_text(WAITS);
    for (keys, what) in
        [("", "onerror=alert"), (ENTER, "(four)"), ("2", "instr"), ("4r\x15function\r", "rows function;")]
    {
        terminal.press(keys);
        let lines = settled(&mut terminal, what);
        assert!(lines.concat().contains("\\u{7}"), "{}", lines.join("\n"));
    }
    terminal.press("q");
    terminal.end();
    assert!(!terminal.written.contains(&7));
}

#[test]
fn there_are_colours_unless_nobody_wants_them() {
    let fixture = Fixture::bursts("compress");
    let input = fixture.input();
    let arguments = [&["tui"][..], &input.each_ref().map(String::as_str)].concat();
    for (variables, has_colours) in [(&[][..], true), (&[("NO_COLOR", "1")], false)] {
        let Some(mut terminal) = Terminal::open(120, 30, &arguments, variables) else { return };
        terminal.wait_for_text(WAITS);
        terminal.press(ENTER);
        settled(&mut terminal, "of all instructions");
        terminal.press("q");
        terminal.end();
        let written = String::from_utf8_lossy(&terminal.written).into_owned();
        assert_eq!(written.contains("38;5;1"), has_colours, "{variables:?}");
        assert_eq!(written.contains(";5;"), has_colours, "{variables:?}");
    }
}
