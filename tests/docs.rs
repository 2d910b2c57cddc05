//! The documents are true: links lead somewhere, commands and options exist, every field of real output is explained.

#[path = "support/report.rs"]
mod page;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

use page::Page;
use serde_json::Value;
use support::{Fixture, run, stdout};
use synthetic::{A, AROUND, Burst, Recorder, burst_metadata};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files and folders of the project, from its root.
fn files() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in read_dir(&folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if (name.starts_with('.') && name != ".ci") || name == "target" {
                continue;
            }
            found.insert(entry.path().strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// All Markdown files of the project.
fn documents() -> Vec<PathBuf> {
    files().iter().filter(|file| file.ends_with(".md")).map(|file| root().join(file)).collect()
}

fn text(file: &str) -> String {
    read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Documents of a folder below docs/.
fn of_folder(folder: &str) -> impl Iterator<Item = PathBuf> {
    let folder = root().join("docs").join(folder);
    documents().into_iter().filter(move |file| file.starts_with(&folder))
}

#[test]
fn pages_are_short() {
    let most = [("README.md", 120), ("ARCHITECTURE.md", 200)];
    let pages = most.into_iter().map(|(file, most)| (root().join(file), most));
    for (file, most) in pages.chain(of_folder("design").map(|file| (file, 120))) {
        let lines = read_to_string(&file).unwrap().lines().count();
        assert!(lines <= most, "{} has {lines} lines, at most {most} fit", file.display());
    }
}

#[test]
fn links_lead_to_files() {
    let mut links = 0;
    for file in documents() {
        let text = read_to_string(&file).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            links += 1;
            assert!(file.parent().unwrap().join(target).exists(), "{}: {target} is not there", file.display());
        }
    }
    assert!(links > 50, "only {links} links were found");
}

#[test]
fn source_files_that_are_named_exist() {
    let files = files();
    let exists = |named: &str| files.iter().any(|file| file == named || file.ends_with(&format!("/{named}")));
    let mut checked = 0;
    let pages = documents().into_iter().filter(|file| file.starts_with(root().join("docs")));
    for file in pages.chain([root().join("ARCHITECTURE.md"), root().join("README.md")]) {
        for named in read_to_string(&file).unwrap().split('`').skip(1).step_by(2) {
            // A folder is named with a slash at its end; what has other signs in it is no path.
            let is_path = named.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            if !is_path || !(named.ends_with(".rs") || named.ends_with('/')) || named.starts_with(['/', '.']) {
                continue;
            }
            checked += 1;
            assert!(exists(named.trim_end_matches('/')), "{}: there is no {named}", file.display());
        }
    }
    assert!(checked > 30, "only {checked} files were found");
}

#[test]
fn the_index_has_every_page() {
    let index = text("docs/README.md");
    for folder in ["guide", "design", "formats", "decisions", "results"] {
        for file in of_folder(folder) {
            let link = format!("({folder}/{})", file.file_name().unwrap().to_str().unwrap());
            assert!(index.contains(&link), "docs/README.md has no link {link}");
        }
    }
}

#[test]
fn results_say_when_where_and_how() {
    for file in of_folder("results") {
        let text = read_to_string(&file).unwrap();
        for fact in ["date", "machine", "kernel", "command"] {
            let row = format!("\n| {fact} | ");
            assert!(text.contains(&row), "{} does not say its {fact}", file.display());
        }
    }
}

#[test]
fn readme_names_the_test_command() {
    let command = text("README.md").lines().find_map(|line| line.strip_prefix("    cargo test ").map(str::to_owned));
    assert!(command.is_some_and(|options| options.contains("--workspace")), ".ci/run looks for it");
}

/// Words of a command line of `hbbp` as far as it is its own: after the name of the program, before a command to record, a pipe, a comment.
fn own_words(line: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let start = words.iter().position(|&word| word == "hbbp")?;
    // `env VARIABLES hbbp`, `CARGO=1 hbbp`, `perf record ..; hbbp`: whatever is before. But not "as hbbp does": prose is not in code.
    let own = words[start + 1..].iter().take_while(|word| !["--", "|", "#", ">", "->", "\\", "&&"].contains(word));
    Some(own.map(|word| word.trim_end_matches(';').to_owned()).collect())
}

/// Lines of code of a document: indented ones, fenced ones, and what is between backticks.
fn code(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced || line.starts_with("    ") {
            lines.push(line.trim().to_owned());
        } else {
            lines.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    lines
}

#[test]
fn commands_and_options_exist() {
    let help = stdout(&["--help"]);
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    let mut checked = 0;
    for file in documents() {
        for line in code(&read_to_string(&file).unwrap()) {
            let line = line.replace("cargo run --release -- ", "hbbp ");
            let line = line.strip_prefix("$ ").unwrap_or(&line);
            let Some(words) = own_words(line).filter(|words| !words.is_empty()) else { continue };
            let at = format!("{}: `{line}`", file.display());
            let command = words[0].trim_matches(|c: char| !c.is_alphanumeric() && c != '-').to_owned();
            if command.is_empty() || command.starts_with("--") {
                continue; // `hbbp --help`
            }
            // `hbbp export|merge|diff --model`
            if !command.chars().all(|c| c.is_ascii_lowercase()) {
                continue;
            }
            assert!(help.contains(&format!("\n  {command} ")), "{at}: there is no command {command}");
            let subcommand = words.get(1).filter(|_| ["model", "taxonomy"].contains(&command.as_str())).cloned();
            let arguments: Vec<&str> =
                [Some(command.as_str()), subcommand.as_deref(), Some("--help")].into_iter().flatten().collect();
            let help = helps.entry(arguments.join(" ")).or_insert_with(|| stdout(&arguments));
            for word in words.iter().filter(|word| word.starts_with('-') && *word != "-") {
                let option = word.split('=').next().unwrap().trim_end_matches([',', '.', ')']);
                let is_there =
                    help.split(|c: char| c.is_whitespace() || c == ',' || c == '=').any(|known| known == option);
                assert!(is_there, "{at}: {arguments:?} has no option {option}");
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "only {checked} options were found");
}

/// Names of all fields of a document, at any depth. What is below `open` has names by the data.
fn fields(value: &Value, open: &[&str], found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                found.insert(key.clone());
                if !open.contains(&key.as_str()) {
                    fields(value, open, found);
                }
            }
        }
        Value::Array(array) => array.iter().for_each(|value| fields(value, open, found)),
        _ => {}
    }
}

/// Checks that a page of docs/formats explains every field of a document; heads of reports and keys of mixes have pages of their own.
fn explains(page: &str, document: &str) {
    let value: Value = serde_json::from_str(document).unwrap();
    let pages = [&format!("docs/formats/{page}.md"), "docs/formats/head.md", "docs/guide/mix.md"].map(text).concat();
    let mut found = BTreeSet::new();
    fields(&value, &["environment", "kinds"], &mut found);
    assert!(found.len() > 3, "{document}");
    for field in found {
        let is_explained = [format!("`{field}`"), format!("{field:?}:")].iter().any(|named| pages.contains(named));
        assert!(is_explained, "docs/formats/{page}.md does not explain {field:?}");
    }
    if let Some(schema) = value["schema"].as_str() {
        assert!(pages.contains(schema), "docs/formats/{page}.md is of another version than {schema}");
    }
}

#[test]
fn every_field_of_real_output_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &["-Wl,--build-id=0x0123456789abcdef"]) else {
        return;
    };
    let mut recorder = Recorder::traced(&binary);
    recorder.burst(&Burst { ip: A, branches: &AROUND, instructions: 60, period: 5_000 });
    recorder.sample(A);
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (recording, flow, truth) = (file("run.data"), file("run.flow"), file("truth.json"));
    std::fs::write(&recording, recorder.finish(&burst_metadata("nanoseconds"))).unwrap();

    let json = |arguments: &[&str]| stdout(&[arguments, &["--format", "json"]].concat());
    explains("mix", &json(&["mix", "-i", &recording, "--rows", "mnemonic,function", "--columns", "packing"]));
    const NUMBERS: &str =
        "per-call,samples,taken,mispredicted,mispredict-rate,per-taken,intensity,flops-per-call,bytes-per-call";
    let pivot = ["--per", "function", "--rows", "mnemonic", "--values", NUMBERS, "--top", "3"];
    explains("mix", &json(&[&["mix", "-i", &recording][..], &pivot].concat()));
    explains(
        "vectorization",
        &support::stdout_of(&["vectorization", "--loops", "--format", "json"], &Fixture::bursts("objects")),
    );
    let blocks = json(&["blocks", "-i", &recording]);
    explains("blocks", &blocks);
    explains(
        "annotate",
        &support::stdout_of(&["annotate", "--source", "--format", "json"], &Fixture::bursts("objects")),
    );
    explains(
        "annotate",
        &support::stdout_of(&["annotate", "--trips", "--format", "json"], &Fixture::bursts("threads")),
    );
    explains("paths", &support::stdout_of(&["paths", "--format", "json"], &Fixture::bursts("threads")));
    let history = ["paths", "--to", "divisor", "--branches", "1", "--format", "json"];
    explains("paths", &support::stdout_of(&history, &Fixture::bursts("threads")));
    let fixture = Fixture::bursts("objects");
    explains("report", &Page::of(&fixture.input().each_ref().map(String::as_str)).data.to_string());
    explains("report", &Page::of(&[&recording, &recording]).data.to_string());
    assert!(run(&["merge", "-o", &flow, &recording]).status.success());
    explains("flow", &read_to_string(&flow).unwrap());
    explains("diff", &json(&["diff", &recording, &flow, "--rows", "mnemonic,isa"]));
    explains("doctor", &json(&["doctor"]));
    explains("taxonomy", &json(&["taxonomy", "show", "isa-packing"]));
    explains("taxonomy", &json(&["taxonomy", "list"]));
    explains("model", &json(&["model", "show", "software"]));

    // The blocks of the recording, taken for exact.
    let mut exact: Value = serde_json::from_str(&blocks).unwrap();
    exact["source"] = "truth".into();
    exact["instructions"] = 60.into();
    exact["head"] = serde_json::json!({"source": "truth", "unit": "executions", "engine": "callgrind-3.19.0", "command": "./four",
        "processes": 1, "counted": 60, "left_out": [{"what": "nothing", "instructions": 0}], "environment": {}});
    for block in exact["blocks"].as_array_mut().unwrap() {
        for number in ["ebs", "lbr", "ebs_samples", "lbr_streams"] {
            block[number] = 0.into();
        }
        block["count"] = 5.into();
        block["chosen"] = "truth".into();
    }
    std::fs::write(&truth, exact.to_string()).unwrap();
    explains("blocks", &exact.to_string());
    explains("validate", &json(&["validate", "-i", &recording, "--truth", &truth]));
}

#[cfg(feature = "training")]
#[test]
fn every_column_of_labelled_blocks_is_explained() {
    let page = text("docs/formats/labels.md");
    for column in model::training::columns() {
        assert!(page.contains(&format!("`{column}`")), "docs/formats/labels.md does not explain {column:?}");
    }
}

#[test]
fn every_field_of_the_metadata_of_recordings_is_explained() {
    let page = text("docs/formats/recording.md");
    let mut fields = 0;
    for file in ["metadata", "tracer", "simulation"] {
        for line in text(&format!("formats/src/{file}.rs")).lines() {
            // A field of an object in `tolerant_objects!`; its name in JSON is the same.
            let Some((name, _)) = line.strip_prefix("        pub ").and_then(|field| field.split_once(": ")) else {
                continue;
            };
            fields += 1;
            assert!(
                page.contains(&format!("`{name}`")),
                "docs/formats/recording.md does not explain {name:?} of {file}.rs"
            );
        }
    }
    assert!(fields > 60, "only {fields} fields were found");
}
