//! Recordings that are sent to a folder or a bucket, and put into a store from there: each counts once.

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use support::{Setup, hbbp};
use testing::Fixture;

/// A folder with recordings of two hosts, one that is large, and what is not to be sent.
fn spool(setup: &Setup) -> String {
    let folder = setup.path("spool");
    fs::create_dir(&folder).unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(format!("{folder}/{name}"), bytes).unwrap();
    let recording = fs::read(Fixture::bursts("threads").recording).unwrap();
    for number in 0..3 {
        put(&format!("record.2026-11-2{number}T12-00-00Z.data"), &[&recording[..], &[number]].concat());
    }
    // It goes in pieces.
    put("record.2026-11-23T12-00-00Z.data", &fs::read(Fixture::bursts("interpret").recording).unwrap());
    let mut open = recording.clone();
    open[48..56].fill(0);
    put("perf.data", &open);
    put("record.2026-11-24T12-00-00Z.cut.data", &open);
    put(".record.2026-11-25T12-00-00Z.data.partial", &open);
    put("notes.txt", b"nothing");
    put("other.data", b"nothing");
    folder
}

fn names(folder: &str) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn what_is_sent_to_a_folder_is_there_once() {
    let setup = Setup::new();
    let (spool, place, store) = (spool(&setup), setup.path("place"), setup.path("store"));
    let said = setup.said(&["push", &spool, &place]);
    assert!(said.contains("5 of 5 recordings sent to"), "{said}");
    assert!(said.contains("perf.data is being written or copied, or who did so was killed: it stays here"), "{said}");
    assert!(said.contains("other.data is no recording"), "{said}");
    let sent = names(&place);
    assert_eq!(sent.len(), 5, "{sent:?}");
    for name in &sent {
        let content = blake3::hash(&fs::read(format!("{place}/{name}")).unwrap()).to_string();
        assert!(name.ends_with(&format!(".{content}.data")), "{name}");
    }
    // What was cut off on its way or damaged there is sent again, and nothing else.
    fs::write(format!("{place}/{}", sent[1]), b"PERFILE2").unwrap();
    let damaged = format!("{place}/{}", sent[2]);
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[5000] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let said = setup.said(&["push", &spool, &place]);
    assert!(said.contains("2 of 5 recordings sent to") && said.contains("3 were there before"), "{said}");
    assert_eq!(names(&place), sent);
    // From there they go on under the names that they have.
    let next = setup.path("next");
    assert!(setup.said(&["push", &place, &next]).contains("5 of 5 recordings sent to"));
    assert_eq!(names(&next), sent);
    let error = setup.error(&["push", &place, &format!("{place}/../place")]);
    assert!(error.contains("both the folder and the destination") && names(&place) == sent, "{error}");
    let said = setup.said(&["ingest", &store, &place, "--keep-going", "--service", "web"]);
    // The one that its recorder left is named.
    assert!(said.contains("4 of 5 files put into") && said.contains(".cut.") && said.contains("1 left out"), "{said}");
    let said = setup.said(&["ingest", &store, &place, &spool, "--keep-going"]);
    assert!(said.contains("0 of 12 files put into") && said.contains("8 were there before"), "{said}");
    assert_eq!(setup.rows("store", "SELECT count(*), count(DISTINCT id) FROM recordings"), ["4,4"]);
    // What is damaged after it was sent is told by its name.
    let damaged = format!("{place}/{}", sent[0]);
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[5000] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let error = setup.error(&["ingest", &setup.path("other"), &damaged]);
    assert!(error.contains(&damaged) && error.contains("it has another content than its name says"), "{error}");
}

/// A recording that was written into a pipe: all that says so is its header.
fn of_a_pipe() -> Vec<u8> {
    [&b"PERFILE2"[..], &16_u64.to_le_bytes(), &[0; 64]].concat()
}

#[test]
fn what_may_not_be_whole_stays() {
    let setup = Setup::new();
    let (spool, place) = (setup.path("spool"), setup.path("place"));
    fs::create_dir(&spool).unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(format!("{spool}/{name}"), bytes).unwrap();
    let recording = fs::read(Fixture::bursts("threads").recording).unwrap();
    // Half of it is there, all but the end of it, all of it.
    for (name, bytes) in [("half", recording.len() / 2), ("most", recording.len() - 1), ("whole", recording.len())] {
        put(&format!("{name}.data"), &recording[..bytes]);
    }
    put("pipe.data", &of_a_pipe());
    let said = setup.said(&["push", &spool, &place]);
    assert!(said.contains("1 of 1 recordings sent to") && names(&place)[0].starts_with("whole."), "{said}");
    for name in ["half", "most"] {
        assert!(said.contains(&format!("{name}.data is being written or copied")), "{said}");
    }
    assert!(said.contains("pipe.data is of a pipe") && said.contains("less than 120 seconds ago"), "{said}");
    let pipe = fs::File::options().write(true).open(format!("{spool}/pipe.data")).unwrap();
    pipe.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(300)).unwrap();
    let said = setup.said(&["push", &spool, &place]);
    assert!(said.contains("1 of 2 recordings sent to") && said.contains("1 were there before"), "{said}");
}

#[test]
fn what_cannot_be_sent_is_named_and_keeps_nothing_else() {
    let setup = Setup::new();
    let (spool, place) = (spool(&setup), setup.path("place"));
    // It can be opened, and not read.
    symlink("/proc/self/mem", format!("{spool}/bad\u{1b}[31m.data")).unwrap();
    // Something is there where the first one should be.
    let recording = fs::read(format!("{spool}/record.2026-11-20T12-00-00Z.data")).unwrap();
    let taken = format!("{place}/record.2026-11-20T12-00-00Z.{}.data", blake3::hash(&recording));
    fs::create_dir_all(format!("{taken}/x")).unwrap();
    let error = setup.error(&["push", &spool, &place]);
    assert!(error.contains("4 of 6 recordings sent to"), "{error}");
    assert!(error.contains("not all was sent: run it again to go on (2 failed)"), "{error}");
    assert!(error.contains("bad\\u{1b}[31m.data") && !error.contains('\u{1b}'), "{error:?}");
    assert!(error.contains("record.2026-11-20T12-00-00Z.data: "), "{error}");
    assert_eq!(names(&place).len(), 5);
}

#[test]
fn who_may_not_read_a_recording_may_not_read_its_copy() {
    let setup = Setup::new();
    let (spool, place) = (setup.path("spool"), setup.path("place"));
    fs::create_dir(&spool).unwrap();
    let recording = fs::read(Fixture::bursts("threads").recording).unwrap();
    for mode in [0o600, 0o644] {
        let file = format!("{spool}/{mode:o}.data");
        fs::write(&file, &recording).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    }
    setup.said(&["push", &spool, &place]);
    let mode = |name: &String| fs::metadata(format!("{place}/{name}")).unwrap().permissions().mode() & 0o777;
    let modes: Vec<u32> = names(&place).iter().map(mode).collect();
    assert!(modes[0] == 0o600 && modes.len() == 2, "{modes:?}");
}

#[test]
fn odd_names_in_a_folder_stop_nothing() {
    let setup = Setup::new();
    let (place, store) = (setup.path("place"), setup.path("store"));
    fs::create_dir_all(format!("{place}/below")).unwrap();
    let recording = fs::read(Fixture::bursts("threads").recording).unwrap();
    let names: [&[u8]; 4] = [b"plain.data", b"a\x1b[31m.data", b"\xff\xfe.data", b"below/per cent %2F.data"];
    for (number, name) in (0_u8..).zip(names) {
        let path = Path::new(&place).join(OsStr::from_bytes(name));
        fs::write(path, [&recording[..], &[number]].concat()).unwrap();
    }
    symlink("nothing", format!("{place}/gone.data")).unwrap();
    setup.said(&["ingest", &store, &place]);
    assert_eq!(setup.rows("store", "SELECT count(*) FROM recordings"), ["4"]);
    // It would never end.
    symlink(&place, format!("{place}/below/loop")).unwrap();
    let error = setup.error(&["ingest", &setup.path("other"), &place]);
    assert!(error.contains("below/loop: it is a link to"), "{error}");
    let said = setup.said(&["ingest", &setup.path("third"), &place, "--keep-going"]);
    assert!(said.contains("left out: ") && said.contains("below/loop: it is a link to"), "{said}");
    assert!(said.contains("4 of 5 files put into") && said.contains("1 left out"), "{said}");
}

#[test]
fn what_is_no_place_is_an_error() {
    let setup = Setup::new();
    let spool = spool(&setup);
    assert!(setup.error(&["push", &spool, "gopher://place"]).contains("expected a folder or s3://BUCKET/PREFIX"));
    assert!(setup.error(&["push", &setup.path("none"), &setup.path("place")]).contains("none"));
    assert!(setup.error(&["ingest", &setup.path("store"), "gs://bucket/x"]).contains("gs:// is not known"));
}

#[test]
fn an_archive_and_its_recording_are_one() {
    let setup = Setup::new();
    let fixture = Fixture::bursts("objects");
    let (recording, archive) = (fixture.recording.to_str().unwrap(), setup.path("objects.tar.zst"));
    let mut pack = Command::new(hbbp());
    let output = pack.args(["archive", recording, "-o", &archive, "--binary", &fixture.binary_option()]).output();
    assert!(output.unwrap().status.success());
    // It has its program with it.
    setup.said(&["ingest", &setup.path("packed"), &archive]);
    let expected = setup.merged(&[recording, "--binary", &fixture.binary_option()]);
    assert_eq!(setup.slice("packed", &[]), expected);
    assert!(expected.contains("\"read\":true"), "{expected}");
    let said = setup.said(&["ingest", &setup.path("packed"), recording, &archive]);
    assert!(said.contains("0 of 2 files put into") && said.contains("2 were there before"), "{said}");
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    fs::write(&archive, bytes).unwrap();
    let error = setup.error(&["ingest", &setup.path("packed"), &archive]);
    assert!(error.contains(&archive) && error.contains("the archive"), "{error}");
}

#[cfg(feature = "s3")]
mod s3 {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use super::{Setup, spool};

    /// A server that speaks S3, with one bucket; it goes with this.
    struct Server {
        child: Child,
        endpoint: String,
    }

    impl Server {
        fn begin() -> Option<Self> {
            // Where it cannot be installed, `.ci/run` says so.
            if std::env::var_os("HBBP_S3_SERVER").is_some_and(|server| server == "none") || !testing::has("moto_server")
            {
                return None;
            }
            let mut server = Command::new("moto_server");
            server.args(["-H", "127.0.0.1", "-p", "0"]).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut child = server.spawn().unwrap();
            let mut said = BufReader::new(child.stderr.take().unwrap());
            let mut line = String::new();
            let endpoint = loop {
                line.clear();
                assert!(said.read_line(&mut line).unwrap() > 0, "the server ends without a word");
                if let Some(at) = line.find("http://127.0.0.1:") {
                    break line[at..].trim().to_owned();
                }
            };
            // It says something of every request.
            std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
            let server = Server { child, endpoint };
            let answer = server.request("PUT /bucket");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            Some(server)
        }

        fn request(&self, what: &str) -> String {
            let mut stream = TcpStream::connect(self.endpoint.strip_prefix("http://").unwrap()).unwrap();
            write!(stream, "{what} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        }

        fn objects(&self) -> usize {
            self.request("GET /bucket?list-type=2").matches("<Key>").count()
        }

        fn fleet(&self, setup: &Setup) -> Command {
            let mut fleet = setup.fleet();
            fleet.env("AWS_ENDPOINT_URL", &self.endpoint).env("AWS_REGION", "us-east-1").env("NO_PROXY", "127.0.0.1");
            fleet.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "secret");
            fleet
        }

        fn said(&self, setup: &Setup, arguments: &[&str]) -> String {
            let output = self.fleet(setup).args(arguments).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{arguments:?}: {said}");
            said
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    #[test]
    fn a_bucket_has_each_recording_once_whatever_happens_meanwhile() {
        let Some(mut server) = Server::begin() else { return };
        let setup = Setup::new();
        let (spool, store, place) = (spool(&setup), setup.path("store"), "s3://bucket/incoming");
        // One that is killed as soon as something is there, and then another.
        let mut killed = server.fleet(&setup).args(["push", &spool, place]).stderr(Stdio::null()).spawn().unwrap();
        while server.objects() == 0 && killed.try_wait().unwrap().is_none() {}
        let _ = killed.kill();
        killed.wait().unwrap();
        // The server may still be at work on what it has of the killed one, and may keep a part of a file.
        let said = server.said(&setup, &["push", &spool, place]);
        let number_before = |text: &str| -> usize {
            let before = said.split_once(text).and_then(|(before, _)| before.rsplit(' ').next());
            before.map_or(0, |number| number.parse().unwrap())
        };
        let sent = number_before(&format!(" of 5 recordings sent to {place}"));
        assert_eq!(sent + number_before(" were there before"), 5, "{said}");
        assert_eq!(server.objects(), 5);
        let said = server.said(&setup, &["push", &spool, place]);
        assert!(said.contains("0 of 5 recordings sent to") && said.contains("5 were there before"), "{said}");

        let said = server.said(&setup, &["ingest", &store, place, "--keep-going", "--service", "web"]);
        assert!(said.contains("4 of 5 files put into") && said.contains(".cut."), "{said}");
        let said = server.said(&setup, &["ingest", &store, place, &spool, "--keep-going"]);
        assert!(said.contains("0 of 12 files put into"), "{said}");
        let files = setup.rows("store", "SELECT file FROM recordings ORDER BY 1");
        assert!(
            files.len() == 4 && files[0].starts_with("s3://bucket/incoming/record.2026-11-20T12-00-00Z."),
            "{files:?}"
        );
        let here: Vec<String> =
            (0..4).map(|number| format!("{spool}/record.2026-11-2{number}T12-00-00Z.data")).collect();
        assert_eq!(setup.slice("store", &[]), setup.merged(&here.iter().map(String::as_str).collect::<Vec<_>>()));

        // Nobody answers any more.
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        let output = server.fleet(&setup).args(["push", &spool, place]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("not all was sent: run it again to go on"), "{error}");
        assert!(Path::new(&spool).join("record.2026-11-20T12-00-00Z.data").exists());
    }
}
