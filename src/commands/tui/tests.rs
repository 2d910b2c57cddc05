//! The views on recordings of the repository, drawn without a terminal.

use analyzer::mix::Key;
use clap::Parser;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use testing::Fixture;

use super::browser::View;
use super::*;
use crate::output::Colours;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

/// Calls `look` with a browser as `hbbp tui` makes it, on a screen of 100 columns and 30 lines.
fn with_browser(words: &[&str], look: impl FnOnce(&mut Browser<'_>)) {
    let args = Cli::parse_from(["tui"].iter().chain(words)).args;
    let taxonomies = args.pivot.kept.taxonomies().unwrap();
    let query = query::<Args>(READER.name, &args.pivot, &taxonomies, 1);
    let input = args.input.begin(&READER, None).unwrap();
    let browsed = browse(&args, (query, taxonomies), &input, |browser| {
        browser.update(&Event::Resize(100, 30));
        look(browser);
        Ok(())
    });
    browsed.unwrap();
}

fn of_fixture(fixture: &Fixture, more: &[&str], look: impl FnOnce(&mut Browser<'_>)) {
    let input = fixture.input();
    with_browser(&[&input.each_ref().map(String::as_str)[..], more].concat(), look);
}

/// Presses keys and does what there is to do after each.
fn press(browser: &mut Browser<'_>, keys: &[KeyCode]) {
    for key in keys {
        browser.update(&Event::Key(KeyEvent::new(*key, KeyModifiers::NONE)));
        browser.work();
    }
}

fn type_text(browser: &mut Browser<'_>, text: &str) {
    press(browser, &text.chars().map(KeyCode::Char).collect::<Vec<_>>());
}

/// What is drawn on a screen as large as the browser takes it to be.
fn drawn(browser: &Browser<'_>, colours: Colours) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(browser.size().width, browser.size().height)).unwrap();
    terminal.draw(|frame| screen::draw(frame, browser, colours)).unwrap();
    terminal
}

fn lines(browser: &Browser<'_>) -> Vec<String> {
    let terminal = drawn(browser, Colours::NONE);
    let buffer = terminal.backend().buffer();
    let cells = buffer.content.chunks(usize::from(buffer.area.width).max(1));
    cells.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect()
}

fn screen_of(browser: &Browser<'_>) -> String {
    lines(browser).join("\n")
}

/// The line that was chosen, as it is drawn.
fn chosen(browser: &Browser<'_>) -> Option<String> {
    let terminal = drawn(browser, Colours::NONE);
    let buffer = terminal.backend().buffer();
    let mut lines = buffer.content.chunks(usize::from(buffer.area.width).max(1)).skip(1);
    let is_reversed =
        |line: &&[ratatui::buffer::Cell]| line.iter().all(|cell| cell.modifier.contains(Modifier::REVERSED));
    lines.find(is_reversed).map(|line| line.iter().map(|cell| cell.symbol()).collect())
}

#[test]
fn views_follow_keys() {
    of_fixture(&Fixture::bursts("objects"), &[], |browser| {
        let screen = screen_of(browser);
        assert!(
            screen.contains("source  traced branches: 61 bursts") && screen.contains("errors  61 bursts"),
            "{screen}"
        );
        let hottest = chosen(browser).unwrap();
        assert!(hottest.contains("Polygon::area() const"), "{hottest}");
        press(browser, &[KeyCode::Down, KeyCode::Char('j'), KeyCode::Up]);
        assert!(chosen(browser).unwrap().contains(" main "), "{:?}", chosen(browser));
        press(browser, &[KeyCode::Enter]);
        assert_eq!(browser.view(), View::Code);
        assert!(screen_of(browser).contains("main (objects)"), "{}", screen_of(browser));
        press(browser, &[KeyCode::Esc]);
        assert_eq!(browser.view(), View::Functions);
        assert!(chosen(browser).unwrap().contains(" main "));
        press(browser, &[KeyCode::Tab]);
        assert_eq!(browser.view(), View::Blocks);
        press(browser, &[KeyCode::Enter]);
        // The block that was chosen is the one that is seen.
        assert!(chosen(browser).unwrap().contains("401723  cmp ecx"), "{:?}", chosen(browser));
        press(browser, &[KeyCode::Backspace, KeyCode::BackTab, KeyCode::BackTab]);
        assert_eq!(browser.view(), View::Pivot, "that of differences is not there");
        press(browser, &[KeyCode::Char('5')]);
        assert_eq!((browser.view(), browser.message.is_some()), (View::Pivot, true));
        press(browser, &[KeyCode::Char('q')]);
        assert!(browser.quits());
    });
}

#[test]
fn branches_lead_to_their_targets_and_back() {
    of_fixture(&Fixture::bursts("objects"), &[], |browser| {
        type_text(browser, "/introsort");
        press(browser, &[KeyCode::Enter, KeyCode::Enter]);
        assert!(screen_of(browser).contains("__introsort_loop"));
        press(browser, &[KeyCode::Char('g')]);
        type_text(browser, "/ j");
        press(browser, &[KeyCode::Enter]);
        let jump = chosen(browser).unwrap();
        let target = jump.split("0x").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().to_owned();
        press(browser, &[KeyCode::Enter]);
        let line = chosen(browser).unwrap();
        assert!(line.contains(&format!("{target}  ")) && !line.contains(&format!("0x{target}")), "{jump} -> {line}");
        press(browser, &[KeyCode::Esc]);
        assert_eq!(chosen(browser).unwrap(), jump);
        press(browser, &[KeyCode::Esc]);
        assert_eq!(browser.view(), View::Functions);
    });
}

#[test]
fn the_pivot_is_of_what_was_typed() {
    of_fixture(&Fixture::bursts("compress"), &["--rows", "isa"], |browser| {
        let keys =
            |browser: &Browser<'_>| browser.recorded().pivot.query.rows.iter().map(Key::to_string).collect::<Vec<_>>();
        press(browser, &[KeyCode::Char('4')]);
        assert_eq!(keys(browser), ["isa"]);
        type_text(browser, "c");
        type_text(browser, "packi");
        press(browser, &[KeyCode::Tab, KeyCode::Enter]);
        let screen = screen_of(browser);
        assert!(screen.contains("rows isa; columns packing; filter -") && screen.contains("[all]"), "{screen}");
        let instructions = |browser: &Browser<'_>| browser.sheet().unwrap().all();
        let all = instructions(browser);
        type_text(browser, "f");
        type_text(browser, "isa=base; length>=3");
        press(browser, &[KeyCode::Enter]);
        assert_eq!(instructions(browser), 1);
        assert!(all > 1);
        // What is wrong is said, and can be corrected.
        type_text(browser, "r,colour");
        press(browser, &[KeyCode::Enter]);
        assert!(browser.prompt.is_some());
        assert!(screen_of(browser).contains("there is no key \"colour\""), "{}", screen_of(browser));
        press(browser, &[KeyCode::Esc]);
        assert_eq!((browser.prompt.is_none(), keys(browser)), (true, vec!["isa".to_owned()]));
        type_text(browser, "f");
        press(browser, &[KeyCode::Home, KeyCode::Delete]);
        type_text(browser, "x");
        press(browser, &[KeyCode::Enter]);
        assert!(screen_of(browser).contains("there is no key \"xsa\""), "{}", screen_of(browser));
        press(browser, &[KeyCode::Esc]);
        // The functions of a row, and back.
        press(browser, &[KeyCode::Enter]);
        assert_eq!(keys(browser), ["function"]);
        assert!(screen_of(browser).contains("filter isa=base; length>=3; isa=base"), "{}", screen_of(browser));
        press(browser, &[KeyCode::Enter]);
        assert_eq!(browser.view(), View::Code);
        press(browser, &[KeyCode::Esc, KeyCode::Esc]);
        assert_eq!((browser.view(), keys(browser)), (View::Pivot, vec!["isa".to_owned()]));
    });
}

#[test]
fn lists_are_filtered_and_searched() {
    of_fixture(&Fixture::bursts("objects"), &[], |browser| {
        type_text(browser, "farea");
        press(browser, &[KeyCode::Enter]);
        assert_eq!(browser.sheet().unwrap().length(), 3, "{}", screen_of(browser));
        assert!(screen_of(browser).contains("1/3 (of 17) by share"), "{}", screen_of(browser));
        type_text(browser, "f; mnemonic=mov");
        press(browser, &[KeyCode::Enter]);
        assert!(screen_of(browser).contains("these rows have no mnemonic"), "{}", screen_of(browser));
        press(browser, &[KeyCode::Esc, KeyCode::Char('f')]);
        browser.update(&Event::Key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
        type_text(browser, "nothing");
        press(browser, &[KeyCode::Enter]);
        assert_eq!((browser.sheet().unwrap().length(), chosen(browser)), (0, None));
        press(browser, &[KeyCode::Enter, KeyCode::Char('G'), KeyCode::Char('n')]);
        type_text(browser, "/MEMM");
        press(browser, &[KeyCode::Enter]);
        assert!(screen_of(browser).contains("nothing here has \"MEMM\""));
    });
}

#[test]
fn colours_are_those_of_the_reports_and_can_be_left_out() {
    of_fixture(&Fixture::bursts("objects"), &[], |browser| {
        press(browser, &[KeyCode::Enter, KeyCode::Char('g')]);
        let colours = |colours: Colours| {
            let terminal = drawn(browser, colours);
            let cells = terminal.backend().buffer().content.iter().map(|cell| cell.fg);
            cells.filter(|colour| *colour != Color::Reset).collect::<Vec<_>>()
        };
        assert_eq!(colours(Colours::NONE), []);
        let red = Color::Indexed(1);
        assert!(colours(Colours::ALL).contains(&red));
    });
}

/// Whatever is pressed on whatever screen, something is drawn, and what was chosen is seen.
#[test]
fn no_keys_and_no_size_make_it_panic() {
    const KEYS: &str = "jkgGnNfrcsSxi?/12345abc=;,mov ";
    let simulated = ["ivy-bridge", "westmere"].map(|name| Fixture::simulated(name).recording.display().to_string());
    let binary = Fixture::simulated("westmere").binary_option();
    with_browser(&[&simulated[0], &simulated[1], "--binary", &binary], |browser| {
        let mut random = fastrand::Rng::with_seed(1);
        let others = [
            KeyCode::Enter,
            KeyCode::Enter,
            KeyCode::Esc,
            KeyCode::Tab,
            KeyCode::BackTab,
            KeyCode::Backspace,
            KeyCode::PageDown,
            KeyCode::PageUp,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::Left,
            KeyCode::Delete,
        ];
        for turn in 0..600 {
            let key = match random.bool() {
                true => KeyCode::Char(KEYS.chars().nth(random.usize(..KEYS.len())).unwrap()),
                false => others[random.usize(..others.len())],
            };
            press(browser, &[key]);
            if turn % 5 == 0 {
                let sizes = [(20, 5), (1, 1), (0, 0), (100, 30), (7, 3), (300, 80), (40, 12), (3, 200), (200, 2)];
                let (width, height) = sizes[random.usize(..sizes.len())];
                browser.update(&Event::Resize(width, height));
            }
            let seen = lines(browser);
            let has_rows = browser.sheet().map_or(browser.view() == View::Code, |sheet| sheet.length() > 0);
            let is_covered = browser.page.is_some() || browser.prompt.is_some();
            if has_rows && !is_covered && browser.size().height >= 5 && browser.size().width >= 20 {
                assert!(chosen(browser).is_some(), "{turn}, {key:?}:\n{}", seen.join("\n"));
            }
        }
    });
}
