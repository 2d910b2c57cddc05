//! A terminal of the tests' own: what a command draws on it, and keys that are pressed.
#![allow(dead_code)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Action, LocalModes, Termios, Winsize, tcflow, tcgetattr, tcsetwinsize};

use crate::support::{has, hbbp};

/// A command on a terminal.
pub struct Terminal {
    child: Child,
    /// The other end of what the command takes for its terminal.
    keyboard: File,
    /// Where the terminal stays open after the command has ended.
    end: OwnedFd,
    drawn: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    /// All that the command wrote.
    pub written: Vec<u8>,
}

/// Nothing takes this long.
const GIVE_UP: Duration = Duration::from_secs(180);

fn window(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Terminal {
    /// Starts `hbbp` with these arguments on a terminal of this size; `None` where that cannot be, which is said.
    pub fn open(columns: u16, rows: u16, arguments: &[&str], variables: &[(&str, &str)]) -> Option<Self> {
        // It makes the terminal the one of the command, whose size is asked for and whose changes are told.
        if !has("setsid") {
            return None;
        }
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let end = ioctl_tiocgptpeer(&keyboard, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        tcsetwinsize(&keyboard, window(columns, rows)).unwrap();
        let stdio = || Stdio::from(end.try_clone().unwrap());
        let inner = hbbp();
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(inner.get_program()).args(arguments);
        for (name, value) in inner.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR").envs(variables.iter().copied());
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        let keyboard = File::from(keyboard);
        let mut screen = keyboard.try_clone().unwrap();
        let (sender, drawn) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 1 << 16];
            while let Ok(length @ 1..) = screen.read(&mut bytes) {
                if sender.send(bytes[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let parser = parser(columns, rows);
        Some(Terminal { child, keyboard, end, drawn, parser, written: Vec::new() })
    }

    /// Presses keys: characters, or what a terminal sends for others.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes it another size, and waits until all was drawn anew. (A key that comes at the same time may wait for the next one in crossterm.)
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.screen_mut().set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
        let before = self.written.len();
        tcsetwinsize(&self.keyboard, window(columns, rows)).unwrap();
        let clears = |bytes: &[u8]| bytes.windows(4).any(|window| window == b"\x1b[2J");
        self.wait_until(|terminal| terminal.is_drawn() && clears(&terminal.written[before..]));
    }

    /// Waits until what is on the screen, when all of it was drawn, passes, and returns its lines.
    pub fn wait_for(&mut self, what: &str, is_there: impl Fn(&[String]) -> bool) -> Vec<String> {
        let begun = Instant::now();
        loop {
            while let Ok(bytes) = self.drawn.try_recv() {
                self.take(&bytes);
            }
            if self.is_drawn() {
                let lines = self.lines();
                if is_there(&lines) {
                    return lines;
                }
            }
            assert!(begun.elapsed() < GIVE_UP, "{what} is not on the screen:\n{}", self.lines().join("\n"));
            match self.drawn.recv_timeout(Duration::from_secs(1)) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Timeout) => {
                    let ended = self.child.try_wait().unwrap();
                    assert!(ended.is_none(), "{what}: ended with {ended:?}:\n{}", self.lines().join("\n"));
                }
                Err(RecvTimeoutError::Disconnected) => panic!("{what}: the terminal was closed"),
            }
        }
    }

    /// Waits until something is so.
    pub fn wait_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < GIVE_UP, "it does not come to that:\n{}", self.lines().join("\n"));
            if let Ok(bytes) = self.drawn.recv_timeout(Duration::from_millis(100)) {
                self.take(&bytes);
            }
        }
    }

    /// Whether the last screen was drawn to its end, where the cursor is put away or to its place.
    fn is_drawn(&self) -> bool {
        let mut sequences = self.written.rsplit(|byte| *byte == 0x1b);
        let mut before = || sequences.next().unwrap_or_default();
        let last = before();
        let is_put = last.ends_with(b"H") && before() == b"[?25h";
        !self.parser.screen().alternate_screen() || last == b"[?25l" || is_put
    }

    /// Waits until a text is on the screen.
    pub fn wait_for_text(&mut self, text: &str) -> Vec<String> {
        self.wait_for(text, |lines| lines.iter().any(|line| line.contains(text)))
    }

    /// What is on the screen.
    pub fn lines(&self) -> Vec<String> {
        let screen = self.parser.screen();
        let (_, columns) = screen.size();
        screen.rows(0, columns.get()).collect()
    }

    /// What the terminal shows.
    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// How it treats keys.
    pub fn modes(&self) -> Termios {
        tcgetattr(&self.keyboard).unwrap()
    }

    /// Whether keys are shown and lines can be corrected, as at a prompt of a shell.
    pub fn has_usual_modes(&self) -> bool {
        self.modes().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Whether that is so, and the screen is the usual one.
    pub fn is_as_before(&self) -> bool {
        let screen = self.parser.screen();
        self.has_usual_modes() && !screen.alternate_screen() && !screen.hide_cursor()
    }

    /// Whether it stands still until it is told to go on.
    pub fn is_stopped(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        status.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    }

    /// Sends a signal.
    pub fn signal(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Takes nothing that is written from now on: who writes waits.
    pub fn hold(&mut self) {
        tcflow(&self.end, Action::OOff).unwrap();
    }

    /// Waits for the end of the command, and returns its exit status, or minus the signal that killed it.
    pub fn end(&mut self) -> i32 {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < GIVE_UP, "it does not end:\n{}", self.lines().join("\n"));
            if let Ok(bytes) = self.drawn.recv_timeout(Duration::from_millis(20)) {
                self.take(&bytes);
            }
        };
        // What it wrote last is there already.
        while let Ok(bytes) = self.drawn.recv_timeout(Duration::from_millis(200)) {
            self.take(&bytes);
        }
        status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
    }

    fn take(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
        self.written.extend(bytes);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn parser(columns: u16, rows: u16) -> vt100::Parser {
    vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0)
}
