//! `hbbp report`: what is in a page is what the other commands say, and nothing of a recording gets out of its place.

#[path = "support/hostile.rs"]
mod hostile;
#[path = "support/report.rs"]
mod page;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::collections::BTreeMap;

use page::{Page, is_near};
use serde_json::{Value, json};
use support::{Fixture, run, stdout_of};
use synthetic::{Recorder, burst_metadata};

fn fixtures() -> [Fixture; 2] {
    [Fixture::bursts("objects"), Fixture::simulated("ivy-bridge")]
}

fn page_of(fixture: &Fixture, more: &[&str]) -> Page {
    Page::of(&[&fixture.input().each_ref().map(String::as_str)[..], more].concat())
}

fn json_of(command: &[&str], fixture: &Fixture) -> Value {
    serde_json::from_str(&stdout_of(&[command, &["--format", "json"]].concat(), fixture)).unwrap()
}

/// Executed instructions by a key of instructions and one of blocks, added up as the page's script does.
fn added_up(page: &Page, attribute: &str, of_block: impl Fn(usize) -> String) -> BTreeMap<(String, String), f64> {
    let key = page.key(attribute);
    let mut sums = BTreeMap::new();
    for (block, kinds) in page.column("blocks", "kinds").iter().enumerate() {
        for kind in kinds.as_array().unwrap() {
            let value = key["of_kinds"][kind.as_u64().unwrap() as usize].as_u64().unwrap() as usize;
            let value = key["values"][value].as_str().unwrap().to_owned();
            *sums.entry((of_block(block), value)).or_default() +=
                page.column("blocks", "count")[block].as_f64().unwrap();
        }
    }
    sums
}

/// Every cell of a mix is what the page adds up to.
#[test]
fn mixes_are_those_of_mix() {
    for fixture in fixtures() {
        let page = page_of(&fixture, &[]);
        let functions = page.column("functions", "name");
        for attribute in ["mnemonic", "vectorization", "operands", "flops", "length"] {
            let sums = added_up(&page, attribute, |block| {
                let function = page.column("blocks", "function")[block].as_u64().unwrap() as usize;
                functions[function].as_str().unwrap().to_owned()
            });
            let mix = json_of(&["mix", "--rows", "function", "--columns", attribute], &fixture);
            assert!(is_near(&mix["instructions"], &page.data["instructions"]), "{}", mix["instructions"]);
            let rows = mix["rows"].as_array().unwrap();
            assert!(rows.len() > 10, "{attribute}: {mix}");
            for row in rows {
                let at = (row["function"].as_str().unwrap().to_owned(), row[attribute].as_str().unwrap().to_owned());
                let sum = sums.get(&at).copied().unwrap_or(0.0);
                assert!(is_near(&row["count"], &json!(sum)), "{attribute} {at:?}: {sum} and {row}");
            }
            assert_eq!(rows.len(), sums.len(), "{attribute}");
        }
        for of_block in ["module", "chosen"] {
            let sums = added_up(&page, "isa", |block| match of_block {
                "module" => {
                    let function = page.column("blocks", "function")[block].as_u64().unwrap() as usize;
                    let module = page.column("functions", "module")[function].as_u64().unwrap() as usize;
                    page.data["modules"][module].as_str().unwrap().to_owned()
                }
                _ => page.column("blocks", "chosen")[block].as_str().unwrap().to_owned(),
            });
            let mix = json_of(&["mix", "--rows", of_block, "--columns", "isa"], &fixture);
            for row in mix["rows"].as_array().unwrap() {
                let at = (row[of_block].as_str().unwrap().to_owned(), row["isa"].as_str().unwrap().to_owned());
                assert!(is_near(&row["count"], &json!(sums.get(&at))), "{at:?}: {row}");
            }
        }
    }
}

/// Keys of tasks and of the source, too: alone, and with a function.
#[test]
fn mixes_by_task_and_line_are_those_of_mix() {
    let (threads, objects) = (Fixture::bursts("threads"), Fixture::bursts("objects"));
    let [of_threads, of_objects] = [&threads, &objects].map(|fixture| page_of(fixture, &[]));
    let one_thread = "process, thread, comm, phase and cgroup are no keys: one thread ran, and no phase was marked";
    assert_eq!(of_objects.data["without_keys"], json!([one_thread]));
    // It has no debug information.
    assert!(of_threads.data["without_keys"][0].as_str().unwrap().starts_with("file and line are no keys: no line"));
    for name in ["process", "thread", "comm", "phase", "line", "file", "loop"] {
        let is_of_source = ["line", "file", "loop"].contains(&name);
        let (fixture, page) = if is_of_source { (&objects, &of_objects) } else { (&threads, &of_threads) };
        let functions = page.column("functions", "name");
        let key = page.key(name);
        let value = |of: &Value, at: &Value| {
            let place = of[at.as_u64().unwrap() as usize].as_u64().unwrap() as usize;
            key["values"][place].as_str().unwrap().to_owned()
        };
        let mut sums: BTreeMap<(String, String), f64> = BTreeMap::new();
        for (block, kinds) in page.column("blocks", "kinds").iter().enumerate() {
            let function = page.column("blocks", "function")[block].as_u64().unwrap() as usize;
            let function = functions[function].as_str().unwrap();
            let count = page.column("blocks", "count")[block].as_f64().unwrap();
            let length = kinds.as_array().unwrap().len();
            let mut add = |value, part: f64| *sums.entry((function.to_owned(), value)).or_default() += part;
            if key["of_tasks"].is_array() {
                for pair in page.column("blocks", "tasks")[block].as_array().unwrap() {
                    add(value(&key["of_tasks"], &pair[0]), pair[1].as_f64().unwrap() * count * length as f64);
                }
            } else if key["of_blocks"].is_array() {
                add(value(&key["of_blocks"], &json!(block)), length as f64 * count);
            } else {
                let begun = page.column("blocks", "places")[block].as_array().unwrap();
                let ends = begun.iter().skip(1).map(|next| next[0].as_u64().unwrap()).chain([length as u64]);
                for (pair, end) in begun.iter().zip(ends) {
                    add(value(&key["of_places"], &pair[1]), (end - pair[0].as_u64().unwrap()) as f64 * count);
                }
            }
        }
        let mix = json_of(&["mix", "--rows", &format!("function,{name}")], fixture);
        let rows = mix["rows"].as_array().unwrap();
        assert_eq!(rows.len(), sums.len(), "{name}");
        for row in rows {
            let at = (row["function"].as_str().unwrap().to_owned(), row[name].as_str().unwrap().to_owned());
            let (sum, count) = (sums[&at], row["count"].as_f64().unwrap());
            assert!((sum - count).abs() <= 1e-5 * count, "{at:?}: {sum} and {row}");
        }
        let mix = json_of(&["mix", "--rows", name], fixture);
        for row in mix["rows"].as_array().unwrap() {
            let at = key["values"].as_array().unwrap().iter().position(|value| *value == row[name]).unwrap();
            assert!(is_near(&row["count"], &key["counts"][at]), "{row}");
            assert!(is_near(&row["share_error"], &key["share_errors"][at]), "{row} {}", key["share_errors"][at]);
        }
    }
    assert!(of_threads.key("thread")["values"].as_array().unwrap().len() > 3);
    assert!(of_objects.key("line")["values"].as_array().unwrap().len() > 10);
    let without = page_of(&objects, &["--no-source"]);
    assert!(without.data["keys"].as_array().unwrap().iter().all(|key| key["name"] != "line"));
    // Without lines loops have addresses.
    assert!(of_objects.key("loop")["values"].as_array().unwrap().len() > 5);
    let is_without_line =
        |name: &Value| name.as_str().unwrap().contains('@') || name.as_str().unwrap().starts_with('[');
    assert!(without.key("loop")["values"].as_array().unwrap().iter().all(is_without_line));
    let no_cgroup = json!("cgroup is no key: the recording does not tell control groups");
    assert!(of_threads.data["without_keys"].as_array().unwrap().contains(&no_cgroup));
}

/// Bars and rows of one key have the numbers and the uncertainty that a mix of this key has.
#[test]
fn values_of_attributes_have_the_errors_of_mix() {
    for fixture in fixtures() {
        let page = page_of(&fixture, &[]);
        for name in ["mnemonic", "category", "isa-packing", "flops", "memory"] {
            let key = page.key(name);
            let mix = json_of(&["mix", "--rows", name], &fixture);
            let rows = mix["rows"].as_array().unwrap();
            assert_eq!(rows.len(), key["values"].as_array().unwrap().len(), "{name}");
            for row in rows {
                let at = key["values"].as_array().unwrap().iter().position(|value| *value == row[name]).unwrap();
                assert!(is_near(&row["count"], &key["counts"][at]), "{name} {row}");
                assert!(
                    is_near(&row["share_error"], &key["share_errors"][at]),
                    "{name} {row} {}",
                    key["share_errors"][at]
                );
                let little = key["rest_on_little"].as_array();
                let is_little = little.is_some_and(|little| little.contains(&json!(at)));
                assert_eq!(row["rests_on_little"], is_little, "{name} {row}");
            }
        }
    }
}

/// What was not read of a module has the uncertainty that its row of a mix has.
#[test]
fn unread_code_has_the_errors_of_mix() {
    let mut unread = 0;
    for fixture in fixtures() {
        let page = page_of(&fixture, &[]);
        let mix = json_of(&["mix", "--rows", "module,function"], &fixture);
        for (index, start) in page.column("functions", "start").iter().enumerate().filter(|(_, start)| start.is_null())
        {
            let module = page.column("functions", "module")[index].as_u64().unwrap() as usize;
            let is_it = |row: &&Value| {
                row["module"] == page.data["modules"][module]
                    && row["function"] == page.column("functions", "name")[index]
            };
            let row = mix["rows"].as_array().unwrap().iter().find(is_it).unwrap();
            let error = &page.column("functions", "share_error")[index];
            assert!(is_near(&row["share_error"], error), "{row} {error} {start}");
            let is_little = page.column("functions", "rest_on_little").contains(&json!(index));
            assert_eq!(row["rests_on_little"], is_little, "{row}");
            unread += 1;
        }
    }
    assert!(unread > 0, "no fixture has unread code");
}

/// Shares of the time are those of annotate; where samples do not tell it, there are none.
#[test]
fn time_is_that_of_annotate() {
    let fixture = Fixture::bursts("objects");
    let page = page_of(&fixture, &["--no-source"]);
    let annotated = json_of(&["annotate", "--top", "0"], &fixture);
    let functions = annotated["functions"].as_array().unwrap();
    assert!(functions.len() > 10);
    for (index, function) in functions.iter().enumerate() {
        for (column, field) in [
            ("time", "time_share"),
            ("time_error", "time_share_error"),
            ("time_per_instruction", "time_per_instruction"),
        ] {
            let ours = &page.column("functions", column)[index];
            assert!(is_near(ours, &function[field]), "{column} {ours} {function}");
        }
    }
    let columns = ["time", "time_error", "time_per_instruction"].map(|column| page.column("functions", column).len());
    assert_eq!(columns, [page.column("functions", "name").len(); 3]);
    let all: f64 = page.column("functions", "time").iter().map(|time| time.as_f64().unwrap()).sum();
    assert!((0.99..1.0 + 1e-5).contains(&all), "{all}");
    assert!(page.column("functions", "time_per_instruction").iter().any(Value::is_number));
    let without = page_of(&Fixture::simulated("ivy-bridge"), &[]);
    assert_eq!(without.data["functions"].get("time"), None);
    assert_eq!(without.data.get("slow"), None);
}

/// What the page adds up of the time of blocks and tasks is what a mix has.
#[test]
fn times_of_blocks_and_tasks_are_those_of_mix() {
    let fixture = Fixture::bursts("threads");
    let page = page_of(&fixture, &["--no-source"]);
    let number = |value: &Value| value.as_f64().unwrap();
    let (mut by_thread, mut by_function) = (BTreeMap::<String, f64>::new(), BTreeMap::<String, f64>::new());
    let thread = page.key("thread");
    for (block, time) in page.column("blocks", "time").iter().enumerate() {
        let function = page.column("blocks", "function")[block].as_u64().unwrap() as usize;
        let function = page.column("functions", "name")[function].as_str().unwrap().to_owned();
        *by_function.entry(function).or_default() += number(time);
        let tasks = page.column("blocks", "tasks")[block].as_array().unwrap();
        let parts = page.column("blocks", "task_times")[block].as_array().unwrap();
        assert!(parts.len() == tasks.len() || parts.is_empty() && number(time) == 0.0, "{block}: {parts:?} {tasks:?}");
        for (task, part) in tasks.iter().zip(parts) {
            let value = &thread["of_tasks"][task[0].as_u64().unwrap() as usize];
            let value = thread["values"][value.as_u64().unwrap() as usize].as_str().unwrap().to_owned();
            *by_thread.entry(value).or_default() += number(time) * number(part);
        }
    }
    for (name, sums) in [("thread", by_thread), ("function", by_function)] {
        let mix = json_of(&["mix", "--rows", name, "--values", "time"], &fixture);
        let rows = mix["rows"].as_array().unwrap();
        assert!(rows.iter().filter(|row| number(&row["time_share"]) > 0.0).count() > 3, "{mix}");
        for row in rows.iter().filter(|row| number(&row["count"]) > 0.0) {
            let sum = sums.get(row[name].as_str().unwrap()).copied().unwrap_or_default();
            // Blocks without executions are not in the page.
            assert!((sum - number(&row["time_share"])).abs() < 0.01, "{sum} {row}");
        }
    }
}

/// Functions, blocks, instructions, branches, loops and lines are those of annotate.
#[test]
fn code_is_that_of_annotate() {
    for fixture in fixtures() {
        let page = page_of(&fixture, &[]);
        let annotated = json_of(&["annotate", "--source"], &fixture);
        assert_eq!(page.data["head"], annotated["head"]);
        // Pages have no cycles of blocks, and say who has.
        let lacks = page.data["lacks"].as_array().unwrap().iter();
        let lacks: Vec<&Value> =
            lacks.filter(|lack| !lack.as_str().unwrap().contains("`hbbp annotate` reads them")).collect();
        assert_eq!(lacks, annotated["lacks"].as_array().unwrap().iter().collect::<Vec<_>>());
        let functions = annotated["functions"].as_array().unwrap();
        assert_eq!(page.data["code"].as_array().unwrap().len(), functions.len());
        let mut lines = 0;
        for (index, (function, code)) in functions.iter().zip(page.data["code"].as_array().unwrap()).enumerate() {
            let name = &function["name"];
            assert_eq!(code["function"], index);
            assert_eq!(page.column("functions", "name")[index], *name);
            assert_eq!(page.column("functions", "start")[index], function["start"], "{name}");
            assert!(is_near(&page.column("functions", "executed")[index], &function["executed"]), "{name}");
            assert!(is_near(&page.column("functions", "share_error")[index], &function["share_error"]), "{name}");
            let module = page.column("functions", "module")[index].as_u64().unwrap() as usize;
            assert_eq!(page.data["modules"][module], function["module"], "{name}");
            assert!(is_near(&code["calls"], &function["calls"]), "{name}");
            for (block, of) in pairs(&function["blocks"], &code["blocks"]) {
                check_block(&page, block, of);
                lines += of["lines"].as_array().map_or(0, Vec::len);
            }
            for (one, of) in pairs(&function["loops"], &code["loops"]) {
                for field in ["header", "parent", "depth", "first", "last", "size", "entries", "repeats", "trips"] {
                    assert!(one[field] == of[field] || is_near(&one[field], &of[field]), "{field}: {one} {of}");
                }
            }
        }
        assert!(lines > 0 || fixture.name != "objects", "no line of the source is in the page");
    }
}

/// Ways between blocks have the executions of the branches that lead there.
#[test]
fn edges_are_those_of_branches() {
    let page = page_of(&Fixture::bursts("objects"), &[]);
    let (mut taken, mut fallen) = (0, 0);
    for code in page.data["code"].as_array().unwrap() {
        let blocks = code["blocks"].as_array().unwrap();
        let counted = |index: usize| blocks[index]["seen"] == "counted";
        for (index, block) in blocks.iter().enumerate().filter(|(index, _)| counted(*index)) {
            let (branch, next) = (&block["branch"], index + 1);
            let Some(target) = blocks.iter().position(|block| block["start"] == branch["target"]) else { continue };
            let is_jump = branch["kind"] == "conditional" || branch["kind"] == "jump";
            if !is_jump || target == next {
                continue;
            }
            let edge = |to: usize| {
                let edges = code["edges"].as_array().unwrap();
                edges.iter().find(|edge| edge[0] == index && edge[1] == to).map_or(json!(0), |edge| edge[2].clone())
            };
            if counted(target) {
                assert!(is_near(&edge(target), &branch["taken"]), "{block}: {}", edge(target));
                taken += 1;
            }
            if next < blocks.len() && counted(next) && branch["kind"] == "conditional" {
                assert!(is_near(&edge(next), &branch["fallen"]), "{block}: {}", edge(next));
                fallen += 1;
            }
        }
    }
    assert!(taken > 20 && fallen > 20, "{taken} {fallen}");
}

/// The members of two lists of one length; null is an empty one.
fn pairs<'a>(one: &'a Value, other: &'a Value) -> Vec<(&'a Value, &'a Value)> {
    let list = |value: &'a Value| value.as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(list(one).len(), list(other).len(), "{one} {other}");
    list(one).iter().zip(list(other)).collect()
}

fn check_block(page: &Page, block: &Value, of: &Value) {
    assert_eq!(block["start"], of["start"]);
    assert_eq!(block["seen"], of["seen"], "{block}");
    assert_eq!(block["loop"], of["loop"], "{block}");
    assert_eq!(block["bias"] == true, of["bias"] == true, "{block}");
    assert!(is_near(&block["share_error"], &of["share_error"]), "{block} {of}");
    match of["block"].as_u64() {
        Some(index) => {
            assert!(is_near(&block["count"], &page.column("blocks", "count")[index as usize]), "{block}");
            assert_eq!(block["chosen"], page.column("blocks", "chosen")[index as usize], "{block}");
            assert_eq!(block["start"], page.column("blocks", "start")[index as usize], "{block}");
        }
        None => assert_ne!(block["seen"], "counted", "{block}"),
    }
    let mut address = of["start"].as_u64().unwrap();
    for (instruction, text) in pairs(&block["instructions"], &of["instructions"]) {
        let text = text.as_u64().unwrap() as usize;
        assert_eq!(instruction["text"], page.column("texts", "text")[text], "{block}");
        assert_eq!(instruction["address"], address, "{block}");
        address += page.column("texts", "length")[text].as_u64().unwrap();
    }
    assert_eq!(block["end"], address);
    assert_eq!(block["branch"].is_null(), of["branch"].is_null(), "{block}");
    for field in ["taken", "fallen", "taken_rate"] {
        assert!(is_near(&block["branch"][field], &of["branch"][field]), "{field}: {block} {of}");
    }
    assert_eq!(block["branch"]["target"]["address"], of["branch"]["target"], "{block}");
    for line in of["lines"].as_array().into_iter().flatten() {
        let (at, line) = (line[0].as_u64().unwrap() as usize, line[1].as_u64().unwrap() as usize);
        assert_eq!(block["instructions"][at]["line"], page.column("source", "line")[line], "{block}");
    }
}

#[test]
fn the_same_recording_gives_the_same_page() {
    let fixture = Fixture::bursts("objects");
    let [one, other] = ["1", "3"].map(|threads| page_of(&fixture, &["--threads", threads]).html);
    assert!(one == other, "the page depends on the number of threads");
}

#[test]
fn a_page_stands_alone() {
    let page = page_of(&Fixture::bursts("objects"), &[]);
    let policy = page.html.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    let outside = page.html.split("id=\"data\">").next().unwrap();
    for loads in ["src=", "<link", "url(", "@import", "<iframe", "<img", "<object", "http:", "https:"] {
        assert!(!outside.contains(loads), "{loads}");
    }
    assert_eq!(page.html.matches("<script").count(), 2, "the data and the script");
    assert_eq!(page.html.matches("</script>").count(), 2);
}

/// As much code as is asked for; all functions have their names and numbers, and the mix is of all.
#[test]
fn code_of_the_hottest_functions_is_in_a_page() {
    let fixture = Fixture::bursts("objects");
    let [one, all] = ["1", "0"].map(|top| page_of(&fixture, &["--top", top, "--no-source"]));
    assert_eq!(one.data["code"].as_array().unwrap().len(), 1);
    assert!(all.data["code"].as_array().unwrap().len() > 10);
    assert_eq!(one.data["functions"], all.data["functions"]);
    assert_eq!(one.data["blocks"], all.data["blocks"]);
    assert_eq!(all.data["source"]["line"], json!([]));
}

#[test]
fn hostile_names_stay_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let Some(recording) = hostile::recording(folder.path()) else { return };
    let page = Page::of(&[&recording]);
    assert_eq!(page.html.matches("<script").count(), 2);
    assert_eq!(page.html.matches("</script").count(), 2);
    assert!(!page.html.contains("<!--") && !page.html.contains("<img"));
    assert!(page.html.contains("<title>&lt;b&gt;run&amp;.data: hbbp</title>"), "{}", &page.html[..2000]);
    let names: Vec<&str> = page.column("functions", "name").iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names, [hostile::NAME]);
}

#[test]
fn a_page_needs_samples_and_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let file = folder.path().join("empty.data");
    std::fs::write(&file, Recorder::traced(&binary).finish(&burst_metadata("nanoseconds"))).unwrap();
    let output = run(&["report", file.to_str().unwrap(), "-o", "-"]);
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no samples"), "{output:?}");
}

/// A taxonomy of one's own is one more key.
#[test]
fn taxonomies_of_files_are_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(
        &file,
        "name = \"mine\"\ndescription = \"Moves.\"\n[[group]]\nname = \"moves\"\nmnemonic = \"mov*\"\n",
    )
    .unwrap();
    let page = page_of(&Fixture::bursts("objects"), &["--taxonomy", file.to_str().unwrap()]);
    let mine = page.key("mine");
    assert_eq!((&mine["about"], &mine["is_taxonomy"]), (&json!("Moves."), &json!(true)));
    assert!(mine["values"].as_array().unwrap().contains(&json!("moves")));
}

/// Frames of a page, each with its stack and its instructions, of that column.
fn frames(page: &Page, column: &str) -> BTreeMap<Vec<String>, f64> {
    let contexts = |column: &str| page.data["contexts"][column].as_array().unwrap();
    let mut open: Vec<String> = Vec::new();
    let mut frames = BTreeMap::new();
    for ((name, depth), executed) in contexts("name").iter().zip(contexts("depth")).zip(contexts(column)) {
        open.truncate(depth.as_u64().unwrap() as usize);
        open.push(contexts("names")[name.as_u64().unwrap() as usize].as_str().unwrap().to_owned());
        assert!(frames.insert(open.clone(), executed.as_f64().unwrap()).is_none(), "{open:?} is there twice");
    }
    frames
}

/// The flame graph has the contexts that are exported, with what was inlined if debug information is read: each frame with what it and its
/// callees executed.
#[test]
fn frames_are_those_of_folded_stacks() {
    let sizes = [
        (&[][..], &["export", "--format", "folded"][..]),
        (&["--no-source"], &["export", "--format", "folded", "--no-inline"]),
    ]
    .map(|(more, export)| check_frames(more, export));
    assert!(sizes[0] > sizes[1], "nothing was inlined: {sizes:?}");
}

/// Returns how many there are.
fn check_frames(more: &[&str], export: &[&str]) -> usize {
    let fixture = Fixture::bursts("objects");
    let page = page_of(&fixture, more);
    let mut expected: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    let mut own_of: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    for line in stdout_of(export, &fixture).lines() {
        let (stack, executed) = line.rsplit_once(' ').unwrap();
        let names: Vec<String> = stack.split(';').map(str::to_owned).collect();
        *own_of.entry(names.clone()).or_default() += executed.parse::<f64>().unwrap();
        for depth in 1..=names.len() {
            *expected.entry(names[..depth].to_vec()).or_default() += executed.parse::<f64>().unwrap();
        }
    }
    let own_frames = frames(&page, "own");
    let frames = frames(&page, "executed");
    assert!(frames.len() > 30, "{}", frames.len());
    for (stack, own) in &own_frames {
        let exported = own_of.get(stack).copied().unwrap_or(0.0);
        assert!((own - exported).abs() <= 1e-6 * own + 1.0, "{stack:?}: {own} {exported}");
    }
    for (stack, executed) in &frames {
        // Exported numbers are whole.
        assert!((executed - expected[stack]).abs() <= 1e-6 * executed + 50.0, "{stack:?}: {executed} {expected:?}");
    }
    let [left, own] = [0, 1].map(|at| page.data["contexts"]["left_out"][at].as_f64().unwrap());
    assert_eq!(frames.len() + left as usize, expected.len());
    assert!(own < 1e-3 * page.data["instructions"].as_f64().unwrap());
    let functions = page.data["contexts"]["functions"].as_array().unwrap();
    let names = page.data["contexts"]["names"].as_array().unwrap();
    let known: Vec<_> = functions.iter().zip(names).filter_map(|(of, name)| Some((of.as_u64()?, name))).collect();
    assert!(known.len() > 10);
    for (function, name) in known {
        // Very long ones are cut inside.
        let name = name.as_str().unwrap();
        let (begin, end) = name.split_once('…').unwrap_or((name, ""));
        let whole = page.column("functions", "name")[function as usize].as_str().unwrap();
        assert!(whole.starts_with(begin) && whole.ends_with(end), "{name}");
    }
    frames.len()
}

/// Where nothing is known of callers, a page says why.
#[test]
fn a_page_without_contexts_says_why() {
    let fixture = Fixture::bursts("objects");
    let truth = fixture.truth();
    let truth = truth.to_str().unwrap();
    let why = |page: &Page| page.data["contexts"]["why"].as_str().unwrap().to_owned();
    assert!(why(&Page::of(&[truth])).starts_with("exact counts do not say"));
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let file = folder.path().join("samples.data");
    let mut recorder = Recorder::new(&binary);
    recorder.sample(0x401000);
    std::fs::write(&file, recorder.finish(&perfdata::Features::default())).unwrap();
    assert!(why(&Page::of(&[file.to_str().unwrap()])).starts_with("the recording has no stacks of taken branches"));
}

/// A page of two recordings has the changes of functions that `diff` prints, and of each value of a key what both mixes have.
#[test]
fn changes_are_those_of_diff() {
    let [before, after] = [Fixture::bursts("objects"), Fixture::bursts("interpret")];
    let inputs = [&before, &after].map(|fixture| fixture.input());
    let files = [0, 1].map(|side| inputs[side][1].as_str());
    let binaries: Vec<&str> = inputs.iter().flat_map(|input| &input[2..]).map(String::as_str).collect();
    let page = Page::of(&[&files[..], &binaries].concat());
    let diff = [&["diff", "--format", "json"], &files[..], &binaries].concat();
    let diff: Value = serde_json::from_str(&support::stdout(&diff)).unwrap();
    let changed = &page.data["changes"]["functions"];
    let functions = diff["functions"].as_array().unwrap();
    assert!(functions.len() > 10, "{}", functions.len());
    let has = |list: &str, at: usize| changed[list].as_array().unwrap().contains(&json!(at));
    for (at, of) in functions.iter().enumerate() {
        assert_eq!(changed["name"][at], of["function"], "{of}");
        for field in ["before", "after", "change_error"] {
            assert!(is_near(&changed[field][at], &of[field]), "{field} {of}");
        }
        assert_eq!(
            (json!(has("within", at)), json!(has("findings", at))),
            (of["within_error"].clone(), of["finding"].clone())
        );
        if let Some(function) = changed["function"][at].as_u64() {
            assert_eq!(page.column("functions", "name")[function as usize], of["function"]);
        }
    }
    assert!(functions.iter().any(|of| of["finding"] == true), "two programs differ");
    assert!(functions.iter().filter(|of| of["change_error"].is_number()).count() > 10, "{diff}");
    for name in ["isa", "mnemonic", "memory-traffic", "flops"] {
        check_values(&page, name, &[&["diff", "--format", "json", "--rows", name], &files[..], &binaries].concat());
    }
    let lines = page.data["changes"]["lines"].as_array().unwrap();
    let work = lines.iter().find(|line| line[0] == "work").unwrap()[1].as_str().unwrap();
    // The page has no folders.
    let said = diff["work"]["text"].as_str().unwrap().split(' ').map(|word| word.rsplit('/').next().unwrap());
    assert_eq!(work, said.collect::<Vec<_>>().join(" "));
    assert_eq!(page.data["before"]["instructions"], page_of(&before, &[]).data["instructions"]);
    let isa = page.data["changes"]["keys"].as_array().unwrap().iter().find(|key| key["name"] == "isa").unwrap();
    let values = isa["values"].as_array().unwrap();
    assert!(values.len() > 2 && isa["change_errors"].as_array().unwrap().iter().all(Value::is_number), "{isa}");
}

/// Both sides have the contexts that a page of each alone has.
#[test]
fn contexts_of_both_sides_are_there() {
    let [before, after] = [Fixture::bursts("interpret"), Fixture::bursts("objects")];
    let [of_before, of_after] = [&before, &after].map(|fixture| fixture.input());
    let page = Page::of(&[&of_before[1], &of_after[1], &of_before[2], &of_before[3], &of_after[2], &of_after[3]]);
    for (side, fixture) in [(&page.data["before"], &before), (&page.data, &after)] {
        assert!(side["contexts"]["name"].as_array().unwrap().len() > 2);
        assert_eq!(side["contexts"], page_of(fixture, &[]).data["contexts"]);
    }
}

/// The values of a key have the noise that the rows of a `diff` have.
fn check_values(page: &Page, name: &str, diff: &[&str]) {
    let diff: Value = serde_json::from_str(&support::stdout(diff)).unwrap();
    let key = page.data["changes"]["keys"].as_array().unwrap().iter().find(|key| key["name"] == name).unwrap();
    let rows = diff["rows"].as_array().unwrap();
    let values = key["values"].as_array().unwrap();
    assert!(rows.len() > 1 && rows.len() == values.len(), "{name}: {diff} {key}");
    for row in rows {
        let at = values.iter().position(|value| *value == row[name]).unwrap();
        assert!(row["change_error"].is_number(), "{row}");
        assert!(is_near(&key["change_errors"][at], &row["change_error"]), "{row} {}", key["change_errors"][at]);
        let has = |list: &str| json!(key[list].as_array().unwrap().contains(&json!(at)));
        assert_eq!((has("within"), has("findings")), (row["within_error"].clone(), row["finding"].clone()), "{row}");
    }
}

/// A program in two folders is one: its modules and functions have the same names on both sides.
#[test]
fn a_program_at_another_path_has_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for side in ["old", "new"] {
        let folder = folder.path().join(side);
        std::fs::create_dir(&folder).unwrap();
        let Some(binary) = synthetic::program(&folder, "four", &[]) else { return };
        let mut recorder = Recorder::new(&binary);
        (0..100).for_each(|_| recorder.sample(0x401000));
        let file = folder.join("run.data");
        std::fs::write(&file, recorder.finish(&perfdata::Features::default())).unwrap();
        files.push(file.to_str().unwrap().to_owned());
    }
    let page = Page::of(&[&files[0], &files[1]]);
    assert_ne!(page.data["modules"], page.data["before"]["modules"]);
    assert_eq!(page.data["names"]["modules"], json!(["four"]));
    assert_eq!(page.data["names"], page.data["before"]["names"]);
    assert_eq!(page.data["changes"]["files"], json!(["old/run.data", "new/run.data"]));
    let diff = support::stdout(&["diff", "--rows", "module", "--format", "json", &files[0], &files[1]]);
    let diff: Value = serde_json::from_str(&diff).unwrap();
    let rows = diff["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["module"], &rows[0]["change"]), (1, &json!("four"), &json!(0.0)), "{diff}");
}

/// What one side alone knows is not compared, and that is said; numbers of processes and threads never are.
#[test]
fn keys_of_one_side_are_named() {
    let [before, after] = [Fixture::bursts("threads"), Fixture::bursts("objects")].map(|fixture| fixture.input());
    let page = Page::of(&[&before[1], &after[1], &before[2], &before[3], &after[2], &after[3]]);
    let sentences = |data: &Value| data["without_keys"].as_array().unwrap().clone();
    let (of_before, of_after) = (sentences(&page.data["before"]), sentences(&page.data));
    assert!(
        of_after.contains(&json!("not compared, because the other one alone has them: comm, phase")),
        "{of_after:?}"
    );
    assert!(
        of_before.contains(&json!("not compared, because the other one alone has them: line, file")),
        "{of_before:?}"
    );
    let numbers = "process and thread are no keys of two recordings, because their numbers are new ones in each: comm has their names";
    assert!(of_before.contains(&json!(numbers)), "{of_before:?}");
    let names: Vec<&Value> = page.data["before"]["keys"].as_array().unwrap().iter().map(|key| &key["name"]).collect();
    assert!(
        names.contains(&&json!("comm")) && !names.contains(&&json!("thread")) && !names.contains(&&json!("process"))
    );
}

#[test]
fn standard_input_is_no_second_recording() {
    let output = run(&["report", &Fixture::bursts("objects").input()[1], "-", "-o", "-"]);
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("the first recording only"), "{output:?}");
}

/// The same recording twice: nothing changed, and nothing is a finding.
#[test]
fn the_same_recording_has_not_changed() {
    let fixture = Fixture::bursts("objects");
    let input = fixture.input();
    let page = Page::of(&[&input[1], &input[1], &input[2], &input[3]]);
    let changes = &page.data["changes"];
    let files: Vec<&str> = changes["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    assert!(files[0].ends_with(" (before)") && files[1].ends_with(" (after)"), "{files:?}");
    assert_eq!(changes["functions"]["findings"], json!([]));
    assert_eq!(
        changes["functions"]["within"].as_array().unwrap().len(),
        changes["functions"]["name"].as_array().unwrap().len()
    );
    for key in changes["keys"].as_array().unwrap() {
        assert_eq!(key["findings"], json!([]), "{key}");
        assert_eq!(key["within"].as_array().unwrap().len(), key["values"].as_array().unwrap().len(), "{key}");
    }
}
