//! Recordings that are made of profiles: who ran, where, and what it counts; damaged profiles.

mod by_hand;

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use by_hand::{BEGAN, CPU, PERIOD, SAMPLES, Tables, Value, resource};
use formats::metadata::Metadata;
use otlp::{Error, Files, OfOwner, convert, convert_apart, convert_unpacked};
use perfdata::{BuildId, Chunk, FeatureBit, Record, Recording};

/// Files of nobody, or one whose bytes are 0x1000 further in it than their addresses.
struct Known(&'static str);

impl Files for Known {
    fn offset(&self, path: &str, _: Option<&BuildId>, address: u64) -> Option<u64> {
        (path == self.0).then(|| address + 0x1000)
    }

    fn id_of(&self, path: &str, htlhash: &str) -> Option<[u8; 20]> {
        (path == self.0 && htlhash == "abcd").then_some([9; 20])
    }
}

const NONE: Known = Known("");

/// What a recording has: samples (event, what is mapped there and its offset, process and thread by name, period), sentences.
#[derive(Debug, Default)]
struct Made {
    samples: BTreeMap<(String, String, u64, String, u64), u64>,
    times: Vec<u64>,
    sentences: Vec<String>,
    ids: BTreeMap<String, String>,
}

fn made(bytes: &[u8], files: &dyn Files) -> Result<Made, Error> {
    let recording = convert_unpacked(&bytes.to_vec().into(), files, Cursor::new(Vec::new()))?.into_inner();
    Ok(read(recording))
}

fn read(recording: Vec<u8>) -> Made {
    let recording = Recording::from_bytes(recording).unwrap();
    let (mut maps, mut names) = (Vec::new(), BTreeMap::new());
    let mut made = Made::default();
    let mut chunk = Chunk::new();
    let mut reader = recording.chunks();
    while reader.next_into(&mut chunk).unwrap() {
        for raw in chunk.records() {
            if !raw.is_sample() {
                match recording.parse(&raw).unwrap() {
                    Record::Mmap2(mmap) => {
                        let path = String::from_utf8_lossy(mmap.path).into_owned();
                        if let perfdata::MappedFile::BuildId(id) = mmap.file {
                            made.ids.insert(path.clone(), id.to_string());
                        }
                        maps.push((mmap.pid, mmap.start.0, mmap.len, mmap.pgoff, path));
                    }
                    Record::Comm(comm) => {
                        names.insert((comm.pid, comm.tid), String::from_utf8_lossy(comm.name).into_owned());
                    }
                    _ => {}
                }
                continue;
            }
            let sample = recording.sample(&raw).unwrap();
            let (pid, ip) = (sample.pid.unwrap(), sample.ip.unwrap().0);
            let map = maps
                .iter()
                .find(|(of, start, len, ..)| (*of == pid || *of == u32::MAX) && (*start..start + len).contains(&ip));
            let (path, offset) = match map {
                Some((_, start, _, pgoff, path)) if *start >> 63 == 0 => (path.clone(), ip - start + pgoff),
                Some((_, start, _, _, path)) => (path.clone(), ip - start),
                None => ("none".to_owned(), ip),
            };
            let event = recording.events()[sample.event].name.clone();
            let thread = names[&(pid, sample.tid.unwrap())].clone();
            *made.samples.entry((event, path, offset, thread, sample.period.unwrap())).or_default() += 1;
            made.times.push(sample.time.unwrap());
        }
    }
    let metadata = Metadata::read(&recording.features().other[&FeatureBit(250)]).unwrap();
    made.sentences = metadata.degradations;
    made
}

const GNU: &str = "process.executable.build_id.gnu";
const HASH: &str = "process.executable.build_id.htlhash";

/// What the eBPF profiler sends of a process: a program and a library, an interpreter, the kernel.
fn of_ebpf_profiler() -> Vec<u8> {
    let mut tables = Tables::new();
    let program = tables.mapping(
        [0x40_1000, 0x40_2000, 0x1000],
        "server",
        &[(GNU, Value::Text("0123456789abcdef")), (HASH, Value::Text("aa"))],
    );
    let library = tables.mapping([0x2_8000, 0x18_0000, 0x2_8000], "libc.so.6", &[(GNU, Value::Text("feed"))]);
    let kernel = tables.mapping([0, 0, 0], "vmlinux", &[(GNU, Value::Text("beef"))]);
    let module = tables.mapping([0, 0, 0], "nf_tables", &[]);
    let in_program = tables.location(program, 0x40_1010, "native", "");
    let caller = tables.location(program, 0x40_1017, "native", "");
    let in_library = tables.location(library, 0x2_9000, "native", "");
    let python = tables.location(0, 3, "cpython", "fib");
    let in_kernel = tables.location(kernel, 0xfff, "kernel", "do_syscall_64");
    let in_module = tables.location(module, 0x1f, "kernel", "nft_do_chain");
    let bpf = tables.location(0, 0x10, "kernel", "bpf_prog_6deef7357e7b4530_run");
    let hidden = tables.location(0, 0xffff_ffff_8100_0fff, "kernel", "");
    let aborted = tables.location(0, 4, "abort-marker", "");
    let thread = [("thread.name", Value::Text("worker")), ("thread.id", Value::Number(78))];
    let seconds = |seconds: &[u64]| seconds.iter().map(|second| BEGAN + second * 1_000_000_000).collect::<Vec<_>>();
    let mut samples = Vec::new();
    for (frames, at) in [
        (&[in_program, caller][..], &[1, 2, 3][..]),
        (&[in_library, caller], &[4]),
        (&[python, caller], &[4, 5]),
        (&[in_kernel, in_library, caller], &[1]),
        (&[in_module, in_kernel], &[1]),
        (&[bpf], &[2]),
        (&[hidden], &[3]),
        (&[aborted], &[0]),
        (&[], &[0]),
    ] {
        let stack = tables.stack(frames);
        samples.push(tables.sample(stack, &thread, &[], &seconds(at)));
    }
    let on_cpu = tables.profile(SAMPLES, (CPU, PERIOD), &samples);
    let stack = tables.stack(&[in_library]);
    let waiting = tables.sample(stack, &thread, &[5_000_000], &seconds(&[1]));
    let off_cpu = tables.profile(["off_cpu", "nanoseconds"], (["", ""], 0), &[waiting]);
    let attributes = [
        ("container.id", Value::Text("c0ffee")),
        ("process.pid", Value::Number(77)),
        ("process.executable.path", Value::Text("/srv/bin/server")),
        ("process.executable.name", Value::Text("server")),
    ];
    tables.request(&[resource(&attributes, &[off_cpu, on_cpu])])
}

#[test]
fn profiles_of_the_ebpf_profiler() {
    let made = made(&of_ebpf_profiler(), &NONE).unwrap();
    let expected: BTreeMap<_, _> = [
        ("/srv/bin/server", 0x1010, 3),
        ("libc.so.6", 0x2_9000, 1),
        ("//cpython", 1 << 35, 2),
        ("[kernel.kallsyms]_text", 0x1000, 1),
        ("[nf_tables]", 0x20, 1),
        ("bpf_prog_6deef7357e7b4530_run", 0x10, 1),
        // Where it is nobody knows, but that it is the kernel.
        ("none", 1 << 63 | 0x7fff_8100_1000, 1),
        ("none", 0, 2),
    ]
    .into_iter()
    .map(|(path, offset, count)| {
        (("otlp/cpu-samples/".to_owned(), path.to_owned(), offset, "worker".to_owned(), PERIOD), count)
    })
    .collect();
    assert_eq!(made.samples, expected);
    let ids = [("/srv/bin/server", "0123456789abcdef"), ("[kernel.kallsyms]_text", "beef"), ("libc.so.6", "feed")];
    assert_eq!(made.ids, ids.map(|(path, id)| (path.to_owned(), id.to_owned())).into());
    assert!(made.times.contains(&(BEGAN + 3_000_000_000)));
    let said = made.sentences.join("\n");
    for expected in [
        "OTLP profiles of go.opentelemetry.io/ebpf-profiler v0.0.1",
        "8 samples have callers, which are not used",
        "1 sample does not count what ran, and is left out: off_cpu (nanoseconds): 1",
        "of code without an address in a file, which is unread: cpython: 2, kernel: 1, programs of the kernel: 1, unknown code: 2",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
}

/// A profile of one place.
fn of_one(range: [u64; 3], name: &str, ids: &[(&str, Value<'_>)], address: u64, values: [&str; 2]) -> Vec<u8> {
    let mut tables = Tables::new();
    let mapping = tables.mapping(range, name, ids);
    let location = tables.location(mapping, address, "", "");
    let stack = tables.stack(&[location]);
    let sample = tables.sample(stack, &[], &[10], &[]);
    let profile = tables.profile(values, (CPU, 1_000_000), &[sample]);
    tables.request(&[resource(&[], &[profile])])
}

fn spots(made: &Made) -> Vec<(&str, u64, u64)> {
    made.samples.iter().map(|((_, path, offset, ..), count)| (path.as_str(), *offset, *count)).collect()
}

#[test]
fn addresses_are_of_processes_and_of_files() {
    let of = |range, address, files: &dyn Files| made(&of_one(range, "/a", &[], address, SAMPLES), files).unwrap();
    let process = [0x7f12_3456_7000, 0x7f12_3456_9000, 0x3000];
    assert_eq!(spots(&of(process, 0x7f12_3456_7010, &NONE)), [("/a", 0x3010, 10)]);
    // As a file states them, without a range, or outside of it.
    for range in [[0; 3], process] {
        assert_eq!(spots(&of(range, 0x40_1010, &Known("/a"))), [("/a", 0x40_2010, 10)]);
        assert_eq!(spots(&of(range, 0x40_1010, &NONE)), [("/a", (1 << 35) + 0x40_1010, 10)]);
    }
    assert_eq!(spots(&of([0, u64::MAX, u64::MAX], 0x40_1010, &NONE)), [("/a", (1 << 35) + 0x40_1010, 10)]);
}

/// Frames that have names alone are of no place in their file, least of all of its first.
#[test]
fn functions_by_name_have_a_place_of_their_own() {
    let made = made(&of_one([0x1000, 0x2000, 0x1000], "/bin/a", &[], 0, SAMPLES), &NONE).unwrap();
    assert_eq!(spots(&made), [("//a (no addresses)", 1 << 35, 10)]);
    let said = made.sentences.join("\n");
    assert!(said.contains("which is unread: functions by name: 10"), "{said}");
}

#[test]
fn instructions_by_address_count_instead_of_those_by_context() {
    let mut tables = Tables::new();
    let mapping = tables.mapping([0x1000, 0x2000, 0x1000], "/a", &[]);
    let (named, at) = (tables.location(mapping, 0, "", "f"), tables.location(mapping, 0x1010, "", "f"));
    let mut of = |kind: &str, location: u64, count: u64| {
        let stack = tables.stack(&[location]);
        let sample = tables.sample(stack, &[], &[count], &[]);
        tables.profile([kind, "count"], (["", ""], 0), &[sample])
    };
    let profiles = [of("executions", at, 3), of("instructions", named, 12), of(otlp::BY_ADDRESS, at, 12)];
    let made = made(&tables.request(&[resource(&[], &profiles)]), &NONE).unwrap();
    let samples: Vec<_> = made.samples.keys().map(|(_, path, offset, _, period)| (&**path, *offset, *period)).collect();
    assert_eq!(samples, [("/a", 0x1010, 12)]);
    let said = made.sentences.join("\n");
    assert!(said.contains("1 sample of instructions by calling context is left out"), "{said}");
}

#[test]
fn files_are_known_by_ids() {
    let id = |name: &str, ids: &[(&str, Value<'_>)]| {
        let made = made(&of_one([0x1000, 0x2000, 0x1000], name, ids, 0x1010, SAMPLES), &Known("/a")).unwrap();
        made.ids.get(name).cloned()
    };
    let unknown = format!("{}{}", "68626270", "00".repeat(16));
    assert_eq!(id("/a", &[(HASH, Value::Text("abcd"))]), Some("09".repeat(20)));
    assert_eq!(id("/a", &[(HASH, Value::Text("dcba"))]), Some(unknown.clone()));
    assert_eq!(id("/a", &[]), None);
    assert_eq!(id("a", &[]), Some(unknown));
    let long = "0123456789abcdef0123456789abcdef0123456789abcdef";
    assert_eq!(id("a", &[(GNU, Value::Text(long))]), Some(long[..40].to_owned()));
    for odd in ["", "0", "xy", "0000", "é1"] {
        assert_eq!(id("/a", &[(GNU, Value::Text(odd))]), None, "{odd}");
    }
}

#[test]
fn sums_are_samples_at_times_of_their_profile() {
    let of = |values| made(&of_one([0x1000, 0x2000, 0x1000], "/a", &[], 0x1010, values), &NONE).unwrap();
    let periods = |made: &Made| made.samples.iter().map(|((.., period), count)| (*period, *count)).collect::<Vec<_>>();
    let samples = of(SAMPLES);
    assert_eq!(periods(&samples), [(1_000_000, 10)]);
    assert!(samples.times.iter().all(|time| (BEGAN..BEGAN + 5_000_000_000).contains(time)));
    assert!(samples.times.iter().collect::<std::collections::BTreeSet<_>>().len() > 5);
    assert!(samples.sentences.join("\n").contains("10 samples are sums without times"));
    // 10 ms, of samples of 1 ms; 10 ns are less than a sample.
    assert_eq!(periods(&of(["cpu", "milliseconds"])), [(1_000_000, 10)]);
    assert_eq!(periods(&of(CPU)), [(10, 1)]);
    assert_eq!(periods(&of(["instructions", "count"])), [(10, 1)]);
}

#[test]
fn what_does_not_count_is_said() {
    let of = |values| made(&of_one([0x1000, 0x2000, 0x1000], "/a", &[], 0x1010, values), &NONE);
    let error = of(["inuse_space", "bytes"]).unwrap_err().to_string();
    assert!(error.contains("its profiles are of inuse_space (bytes): 1; expected samples"), "{error}");
    let error = made(b"\x0a\x04\x0a\x00\x12\x00", &NONE).unwrap_err().to_string();
    assert!(error.contains("it has no samples at all"), "{error}");
}

#[test]
fn one_message_or_many_packed_or_not() {
    let message = of_ebpf_profiler();
    let once = made(&message, &NONE).unwrap();
    let framed = |message: &[u8]| [&(message.len() as u32).to_be_bytes(), message].concat();
    let gzip = |bytes: &[u8]| {
        let mut packing = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packing.write_all(bytes).unwrap();
        packing.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let two = [framed(&message), framed(&message)].concat();
    let packed_two = [framed(&zstd(&message)), framed(&zstd(&message))].concat();
    let folder = std::env::temp_dir().join(format!("hbbp-otlp-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("profiles");
    for (bytes, times) in [
        (message.clone(), 1),
        (gzip(&message), 1),
        (zstd(&message), 1),
        (two.clone(), 2),
        (gzip(&two), 2),
        (packed_two, 2),
    ] {
        std::fs::write(&file, bytes).unwrap();
        assert!(otlp::is_otlp(&file));
        let made = read(convert(&file, &NONE, Cursor::new(Vec::new())).unwrap().into_inner());
        let expected: Vec<u64> = once.samples.values().map(|count| count * times).collect();
        assert_eq!(made.samples.values().copied().collect::<Vec<_>>(), expected);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    let cut = &two[..two.len() - 1];
    let error = made(cut, &NONE).unwrap_err().to_string();
    assert!(error.contains("message 2 has") && error.contains("cut short"), "{error}");
}

/// What profiles of several services and hosts become, in a file of two messages.
fn apart(resources: &mut dyn FnMut(&mut Tables) -> Vec<Vec<u8>>) -> Result<Vec<OfOwner>, Error> {
    let mut message = || {
        let mut tables = Tables::new();
        let resources = resources(&mut tables);
        tables.request(&resources)
    };
    let framed = [message(), message()].map(|message| [&(message.len() as u32).to_be_bytes(), &message[..]].concat());
    convert_apart(&framed.concat().into(), &NONE)
}

#[test]
fn each_service_on_each_host_has_a_recording() {
    let mut of = |tables: &mut Tables| {
        let mapping = tables.mapping([0x1000, 0x2000, 0x1000], "/a", &[]);
        // Owners whose resource, or whose sample, says it; profiles that do not count.
        let mut one = |owner: &[(&str, Value<'_>)], on_sample: &[(&str, Value<'_>)], values, address| {
            let location = tables.location(mapping, address, "", "");
            let stack = tables.stack(&[location]);
            let sample = tables.sample(stack, on_sample, &[10], &[]);
            resource(owner, &[tables.profile(values, (CPU, 1_000_000), &[sample])])
        };
        let [a, b] = ["a", "b"].map(|host| ("host.name", Value::Text(host)));
        let web = ("service.name", Value::Text("web"));
        let version = |version| ("service.version", Value::Text(version));
        vec![
            one(&[b, web, version("1")], &[], SAMPLES, 0x1010),
            one(&[a, web, version("1")], &[], SAMPLES, 0x1020),
            one(&[b, web, version("1")], &[version("2")], SAMPLES, 0x1030),
            one(&[], &[], SAMPLES, 0x1040),
            one(&[a], &[], ["inuse_space", "bytes"], 0x1050),
            // All samples of the resource are another's, whose version is not said: no recording is of nobody.
            one(&[a, ("service.name", Value::Text("agent")), version("9")], &[web], SAMPLES, 0x1060),
        ]
    };
    let found: Vec<_> = apart(&mut of)
        .unwrap()
        .into_iter()
        .map(|of| {
            let owner = [of.host, of.service, of.version].map(Option::unwrap_or_default).join(" ");
            let recorded = of.recording.map(|bytes| {
                let made = read(bytes);
                spots(&made).into_iter().map(|(_, offset, count)| (offset, count)).collect::<Vec<_>>()
            });
            (owner, recorded.map_err(|error| error.to_string().contains("its profiles are of inuse_space (bytes): 2")))
        })
        .collect();
    let expected = [
        ("  ", Ok(vec![(0x1040, 20)])),
        ("a  ", Err(true)),
        ("a web ", Ok(vec![(0x1060, 20)])),
        ("a web 1", Ok(vec![(0x1020, 20)])),
        // A profile of the first has samples of the second.
        ("b web 1", Ok(vec![(0x1010, 20)])),
        ("b web 2", Ok(vec![(0x1030, 20)])),
    ];
    assert_eq!(found, expected.map(|(owner, recorded)| (owner.to_owned(), recorded)));
}

/// A recording of each owner says who made the profiles, and what is relative, if its samples are in them.
#[test]
fn profilers_are_those_of_the_samples() {
    let mut of = |tables: &mut Tables| {
        let stack = tables.stack(&[]);
        let mut of_service = |name| tables.sample(stack, &[("service.name", Value::Text(name))], &[10], &[]);
        let samples = [of_service("web"), of_service("mail")];
        vec![resource(&[], &[tables.profile(SAMPLES, (CPU, 1_000_000), &samples)])]
    };
    let owners = apart(&mut of).unwrap();
    assert_eq!(owners.iter().map(|of| of.service.as_deref().unwrap()).collect::<Vec<_>>(), ["mail", "web"]);
    for of in owners {
        let said = read(of.recording.unwrap()).sentences.join("\n");
        assert!(said.contains("OTLP profiles of go.opentelemetry.io/ebpf-profiler v0.0.1"), "{said}");
    }
}

#[test]
fn owners_are_limited() {
    // As many as a file may be of, and one more.
    let numbers: Vec<String> = (0..=1 << 12).map(|number| number.to_string()).collect();
    let mut of = |tables: &mut Tables| {
        let stack = tables.stack(&[]);
        let sample = tables.sample(stack, &[], &[1], &[]);
        let profile = tables.profile(SAMPLES, (CPU, 1), &[sample]);
        numbers
            .iter()
            .map(|name| resource(&[("host.name", Value::Text(name))], std::slice::from_ref(&profile)))
            .collect()
    };
    let error = apart(&mut of).unwrap_err().to_string();
    assert!(error.contains("more than 4096 services, versions and hosts: split the file"), "{error}");
    // All together may have as much as one: 64 MiB, and 32 bytes for each of theirs. Each value, of a byte, becomes a record of some 60 bytes.
    let mut of = |tables: &mut Tables| {
        let stack = tables.stack(&[]);
        let sample = tables.sample(stack, &[], &vec![1; 1 << 21], &[]);
        let profile = tables.profile(SAMPLES, (CPU, 1), &[sample]);
        ["a", "b"].map(|name| resource(&[("host.name", Value::Text(name))], std::slice::from_ref(&profile))).into()
    };
    let error = apart(&mut of).unwrap_err().to_string();
    assert!(error.contains("the recording made of it grows to more than"), "{error}");
    // A long name is cut.
    let long = "ö".repeat(300);
    let mut of = |tables: &mut Tables| {
        let stack = tables.stack(&[]);
        let sample = tables.sample(stack, &[], &[1], &[]);
        let profile = tables.profile(SAMPLES, (CPU, 1), &[sample]);
        vec![resource(&[("service.name", Value::Text(&long))], &[profile])]
    };
    assert_eq!(apart(&mut of).unwrap()[0].service.as_deref(), Some("ö".repeat(255).as_str()));
}

/// As collectors write it: numbers of 64 bits are texts.
const JSON: &str = r#"{"resourceProfiles":[{"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"77"}},
{"key":"process.executable.name","value":{"stringValue":"server"}}],"droppedAttributesCount":0},"scopeProfiles":[{"scope":{"name":"p"},
"profiles":[{"sampleType":{"typeStrindex":1,"unitStrindex":2},"samples":[{"stackIndex":1,"linkIndex":0,"attributeIndices":[],
"timestampsUnixNano":["1790000000000000000",1790000001000000000]}],"timeUnixNano":"1790000000000000000","durationNano":"5000000000",
"periodType":{"typeStrindex":3,"unitStrindex":4},"period":"50000000","profileId":"00"}]}],"schemaUrl":"s"}],
"dictionary":{"mappingTable":[{},{"memoryStart":"4096","memoryLimit":"8192","fileOffset":"4096","filenameStrindex":5}],
"locationTable":[{},{"mappingIndex":1,"address":"4112"}],"functionTable":[{}],"linkTable":[{"traceId":"","spanId":""}],
"stringTable":["","samples","count","cpu","nanoseconds","/a"],"attributeTable":[{}],"stackTable":[{},{"locationIndices":[1]}]}}"#;

#[test]
fn json_of_collectors() {
    let lines = format!("{}\n{}\n", JSON.replace('\n', ""), JSON.replace('\n', ""));
    let of_lines = made(lines.as_bytes(), &NONE).unwrap();
    assert_eq!(spots(&of_lines), [("/a", 0x1010, 4)]);
    assert!(of_lines.samples.keys().all(|(.., thread, period)| thread == "server" && *period == 50_000_000));
    let error = made(&lines.as_bytes()[..lines.len() - 9], &NONE).unwrap_err().to_string();
    assert!(error.contains("message 2 is no JSON of OTLP profiles"), "{error}");
    let error = made(JSON.replace("\"4112\"", "\"-1\"").as_bytes(), &NONE).unwrap_err().to_string();
    assert!(error.contains("expected a whole number of 64 bits"), "{error}");
}

#[test]
fn indexes_lead_somewhere() {
    for (right, wrong, expected) in [
        ("\"stackIndex\":1", "\"stackIndex\":2", "a sample names entry 2 of stack_table, which has 2"),
        ("\"stackIndex\":1", "\"stackIndex\":-1", "a sample names entry -1 of stack_table"),
        ("[1]}]", "[9]}]", "a stack names entry 9 of location_table, which has 2"),
        ("\"mappingIndex\":1", "\"mappingIndex\":3", "a location names entry 3 of mapping_table"),
        ("\"filenameStrindex\":5", "\"filenameStrindex\":6", "a mapping names entry 6 of string_table"),
        ("\"typeStrindex\":1", "\"typeStrindex\":11", "a type of values names entry 11 of string_table"),
        ("\"attributeIndices\":[]", "\"attributeIndices\":[5]", "an attribute names entry 5 of attribute_table"),
    ] {
        assert!(JSON.contains(right));
        let error = made(JSON.replace(right, wrong).as_bytes(), &NONE).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn other_versions_are_refused_by_name() {
    let without = |table: &str| JSON.replace(table, "other");
    let error = made(without("stackTable").as_bytes(), &NONE).unwrap_err().to_string();
    assert!(error.contains("no table of stacks: it is of a version before opentelemetry-proto 1.8"), "{error}");
    let error = made(without("stringTable").as_bytes(), &NONE).unwrap_err().to_string();
    assert!(error.contains("no dictionary"), "{error}");
    // A sample of 1.9 has its attributes where 1.10 has a number.
    let mut tables = Tables::new();
    let stack = tables.stack(&[]);
    let old =
        by_hand::message(&[(1, by_hand::Field::Number(stack)), (2, by_hand::packed(&[1])), (3, by_hand::packed(&[0]))]);
    let profile = tables.profile(SAMPLES, (CPU, PERIOD), &[old]);
    let error = made(&tables.request(&[resource(&[], &[profile])]), &NONE).unwrap_err().to_string();
    assert!(error.contains("a sample cannot be read") && error.contains("opentelemetry-proto 1.10"), "{error}");
}

/// Damaged messages are refused, or read as something else; nothing worse.
#[test]
fn damage_is_survived() {
    let message = of_ebpf_profiler();
    for length in 0..message.len() {
        assert!(made(&message[..length], &NONE).is_err(), "cut at {length}");
    }
    for at in 0..message.len() {
        for bit in [0, 3, 7] {
            let mut damaged = message.clone();
            damaged[at] ^= 1 << bit;
            let _ = convert_unpacked(&damaged.into(), &NONE, Cursor::new(Vec::new()));
        }
    }
}

#[test]
fn little_data_does_not_become_much() {
    // A sum of 2^62 samples, a hundred thousand times.
    let mut tables = Tables::new();
    let stack = tables.stack(&[]);
    let sample = tables.sample(stack, &[], &[1 << 62], &[]);
    let profile = tables.profile(SAMPLES, (CPU, u64::MAX >> 1), &vec![sample; 100_000]);
    let message = tables.request(&[resource(&[], &[profile])]);
    let recording = convert_unpacked(&message.clone().into(), &NONE, Cursor::new(Vec::new())).unwrap().into_inner();
    assert!(recording.len() < 80 << 20, "{}", recording.len());
    // Twenty thousand processes of one long name, and all with a sample in a file of a long path.
    let long = "n".repeat(4096);
    let mut tables = Tables::new();
    let mapping = tables.mapping([0x1000, 0x2000, 0x1000], "/a", &[]);
    let far = tables.mapping([0x1000, 0x2000, 0x1000], &long, &[]);
    let processes = |tables: &mut Tables, mapping: u64| {
        let location = tables.location(mapping, 0x1010, "", "");
        let stack = tables.stack(&[location]);
        let resources: Vec<Vec<u8>> = (1..20_000)
            .map(|pid| {
                let of = [("process.pid", Value::Number(pid)), ("thread.id", Value::Number(pid + 1))];
                let names = [("thread.name", Value::Text(&long)), ("process.executable.name", Value::Text(&long))];
                let sample = tables.sample(stack, &[&of[..], &names].concat(), &[1], &[]);
                resource(&[], &[tables.profile(SAMPLES, (CPU, 1000), &[sample])])
            })
            .collect();
        tables.request(&resources)
    };
    let message = processes(&mut tables, mapping);
    let recording = convert_unpacked(&message.clone().into(), &NONE, Cursor::new(Vec::new())).unwrap().into_inner();
    assert!(recording.len() < 6 * message.len(), "{} {}", recording.len(), message.len());
    let names = read(recording).samples;
    assert!(names.keys().all(|(.., thread, _)| *thread == long[..15]), "names as Linux has them");
    let message = processes(&mut tables, far);
    match convert_unpacked(&message.clone().into(), &NONE, Cursor::new(Vec::new())) {
        Ok(recording) => assert!(recording.into_inner().len() < 32 * message.len() + (64 << 20)),
        Err(error) => assert!(error.to_string().contains("grows to more than"), "{error}"),
    }
    // Packed twice: each time it grows no more than data does.
    let mut packing = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packing.write_all(&vec![0x12; 64 << 20]).unwrap();
    let packed = packing.finish().unwrap();
    let framed = [&(packed.len() as u32).to_be_bytes(), &packed[..]].concat();
    let file = std::env::temp_dir().join(format!("hbbp-otlp-twice-{}", std::process::id()));
    std::fs::write(&file, zstd::encode_all(&framed[..], 1).unwrap()).unwrap();
    let error = convert(&file, &NONE, Cursor::new(Vec::new())).err().unwrap().to_string();
    std::fs::remove_file(&file).unwrap();
    assert!(error.contains("grows to more than"), "{error}");
    let packed = zstd::encode_all(&vec![0x12; 64 << 20][..], 1).unwrap();
    let framed = [&(packed.len() as u32).to_be_bytes(), &packed[..]].concat();
    let error = made(&framed, &NONE).unwrap_err().to_string();
    assert!(error.contains("grows to more than"), "{error}");
}
