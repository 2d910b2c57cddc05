//! `hbbp tui`, driven in a terminal.

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use support::Fixture;
use terminal::Terminal;

#[test]
fn try_it() {
    let fixture = Fixture::bursts("objects");
    let input = fixture.input();
    let arguments: Vec<&str> = ["tui"].into_iter().chain(input.iter().map(String::as_str)).collect();
    let Some(mut terminal) = Terminal::open(110, 30, &arguments, &[]) else { return };
    let see = |terminal: &Terminal| println!("{}\n-----", terminal.lines().join("\n"));
    terminal.wait_for_text("q quit");
    see(&terminal);
    for key in ["\r", "\r", "2", "4", "s", "?", "\x1b", "cpacking\r", "rfunction\r", "i"] {
        terminal.press(key);
        std::thread::sleep(std::time::Duration::from_millis(400));
        terminal.wait_for("x", |_| true);
        see(&terminal);
    }
    terminal.press("q");
    println!("{}", terminal.end());
    assert!(terminal.is_as_before());
}
