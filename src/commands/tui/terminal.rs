//! The screen: opened, drawn, and given back whatever happens.

use std::io;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, poll, read};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{disable_raw_mode, size};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::browser::Browser;
use super::screen;
use crate::output::Colours;

/// How long a terminal may take to be given back when a signal ends the process.
const PATIENCE: Duration = Duration::from_secs(1);

/// How large the terminal is, as an event.
///
/// # Errors
/// It does not say.
pub fn resized() -> anyhow::Result<Event> {
    let (width, height) = size().context("the size of the terminal is not known")?;
    Ok(Event::Resize(width, height))
}

/// Shows a browser until somebody has seen enough. The terminal is as before then, and also where this process panics, or a signal ends it.
///
/// # Errors
/// The terminal cannot be used.
pub fn show(browser: &mut Browser<'_>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM]).context("signals cannot be waited for")?;
    let waiting = signals.handle();
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            give_back_soon();
            let _ = emulate_default_handler(signal);
        }
    });
    let shown = open().and_then(|mut terminal| watch(&mut terminal, browser));
    let given_back = give_back();
    waiting.close();
    shown.and(given_back.context("the terminal cannot be given back"))
}

/// The same where the terminal may be lost, or nobody reads it, so that writing to it does not end.
fn give_back_soon() {
    // Nothing is written for this.
    let _ = disable_raw_mode();
    let (given_back, is_given_back) = channel();
    thread::spawn(move || {
        // Nothing is drawn any more.
        let _screen = io::stdout().lock();
        let _ = given_back.send(give_back());
        // Nor before the end.
        thread::park();
    });
    let _ = is_given_back.recv_timeout(PATIENCE);
}

/// As it was before: lines can be typed, what was there is seen again, and the cursor.
fn give_back() -> io::Result<()> {
    ratatui::try_restore()?;
    execute!(io::stdout(), Show)
}

fn open() -> anyhow::Result<DefaultTerminal> {
    ratatui::try_init().context("the terminal cannot be used for a screen")
}

fn watch(terminal: &mut DefaultTerminal, browser: &mut Browser<'_>) -> anyhow::Result<()> {
    let colours = Colours::of_terminal();
    while !browser.quits() {
        {
            let _screen = io::stdout().lock();
            terminal.draw(|frame| screen::draw(frame, browser, colours))?;
        }
        if browser.awaited().is_some() {
            browser.work();
            continue;
        }
        loop {
            let event = read()?;
            if is_stop(&event) {
                give_back()?;
                emulate_default_handler(SIGTSTP)?;
                *terminal = open()?;
                browser.update(&resized()?);
            } else {
                browser.update(&event);
            }
            // Keys that come faster than screens are drawn at once.
            if browser.awaited().is_some() || browser.quits() || !poll(Duration::ZERO)? {
                break;
            }
        }
    }
    Ok(())
}

/// Ctrl-Z: on a screen it comes as a key.
fn is_stop(event: &Event) -> bool {
    const STOP: KeyEvent = KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL);
    matches!(event, Event::Key(key) if *key == STOP)
}
