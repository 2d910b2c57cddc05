//! A debuginfod server on loopback. The first part of an address says how it behaves.
#![allow(dead_code)] // Each test program uses a part of it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use testing::Fixture;

/// It ends with the test.
pub struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    released: Arc<AtomicBool>,
}

impl Server {
    /// It has one file, whatever is asked for.
    pub fn of(file: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let file: Arc<[u8]> = fs::read(file).unwrap().into();
        let log = Arc::clone(&asked);
        let released = Arc::<AtomicBool>::default();
        let release = Arc::clone(&released);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, file, release) = (Arc::clone(&log), Arc::clone(&file), Arc::clone(&release));
                // A client that is gone is no error.
                std::thread::spawn(move || drop(answer(stream.unwrap(), &log, &file, &release)));
            }
        });
        Server { port, asked, released }
    }

    /// The address of one that behaves so.
    pub fn address(&self, way: &str) -> String {
        format!("http://127.0.0.1:{}/{way}", self.port)
    }

    /// What is held comes.
    pub fn release(&self) {
        self.released.store(true, Ordering::Relaxed);
    }

    /// The paths that were asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Longer than any client waits: after it all is sent, and a client that did wait has what it should not.
const TOO_LONG: Duration = Duration::from_secs(60);

fn answer(mut stream: TcpStream, log: &Mutex<Vec<String>>, file: &[u8], released: &AtomicBool) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    log.lock().unwrap().push(path.clone());
    let head = |status: &str, bytes: usize| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n").into_bytes()
    };
    let found = head("200 OK", file.len());
    match path.split('/').nth(1).unwrap_or_default() {
        "found" => stream.write_all(&[&found, file].concat()),
        "executable" if path.ends_with("/executable") => stream.write_all(&[&found, file].concat()),
        // The second half comes when the test says so.
        "held" => {
            let half = file.len() / 2;
            stream.write_all(&[&found, &file[..half]].concat())?;
            while !released.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(20));
            }
            stream.write_all(&file[half..])
        }
        "silent" => {
            sleep(TOO_LONG);
            stream.write_all(&[&found, file].concat())
        }
        "stalled" => {
            stream.write_all(&[&found, &file[..1000]].concat())?;
            sleep(TOO_LONG);
            stream.write_all(&file[1000..])
        }
        "dripping" => {
            stream.write_all(&found)?;
            let pieces = file.chunks(file.len().div_ceil(200));
            pieces.into_iter().try_for_each(|piece| {
                sleep(TOO_LONG / 200);
                stream.write_all(piece)
            })
        }
        "cut" => stream.write_all(&[&found, &file[..file.len() / 2]].concat()),
        "chunks" => {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n";
            stream.write_all(&[head, &file[..1000]].concat())
        }
        // The chunk's bytes never begin, and each read has one byte more of what comes before.
        "extension" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff;")?;
            for _ in 0..300 {
                sleep(TOO_LONG / 300);
                stream.write_all(b"x")?;
            }
            Ok(())
        }
        // Half of the file, as a whole answer. `sized` says how large the file is.
        "half" => stream.write_all(&[&head("200 OK", file.len() / 2), &file[..file.len() / 2]].concat()),
        "sized" => {
            let half = file.len() / 2;
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {half}\r\nX-DEBUGINFOD-SIZE: {}\r\nConnection: close\r\n\r\n",
                file.len()
            );
            stream.write_all(&[head.as_bytes(), &file[..half]].concat())
        }
        "other" => {
            let other = fs::read(Fixture::bursts("parse").binary)?;
            stream.write_all(&[head("200 OK", other.len()), other].concat())
        }
        "text" => stream.write_all(&[&head("200 OK", 5)[..], b"hello"].concat()),
        "failing" => stream.write_all(&head("500 Internal Server Error", 0)),
        "large" => stream.write_all(&head("200 OK", 1 << 40)),
        "around" => stream.write_all(
            format!("HTTP/1.1 302 Found\r\nLocation: {path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        ),
        "garbage" => stream.write_all(&[0xff; 4096]),
        _ => stream.write_all(&head("404 Not Found", 0)),
    }
}
