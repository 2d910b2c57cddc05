//! Pages of the guide that a test follows, so that what they say stays true.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a page has its reader do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write a file: a fenced block that names its language and the file.
    File {
        /// Its name.
        name: String,
        /// Its text.
        text: String,
    },
    /// Run a line of a shell: one that is indented, or that begins with `$ ` in a fenced block `console`, where `\` at its end continues it.
    Run {
        /// The line.
        line: String,
        /// What the page shows of what it prints, line by line.
        shown: Vec<String>,
    },
}

/// The steps of a page in Markdown.
pub fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(command) = line.strip_prefix("    ") {
            steps.push(Step::Run { line: command.to_owned(), shown: Vec::new() });
            continue;
        }
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match kind.split_once(' ') {
            Some((_, name)) => steps.push(Step::File { name: name.to_owned(), text: block.join("\n") + "\n" }),
            None if kind == "console" => steps.extend(console(&block)),
            None => {}
        }
    }
    steps
}

fn console(block: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for text in block {
        match (text.strip_prefix("$ "), steps.last_mut()) {
            (None, Some(Step::Run { line, shown })) if shown.is_empty() && line.ends_with('\\') => {
                line.push('\n');
                line.push_str(text);
            }
            (Some(line), _) => steps.push(Step::Run { line: line.to_owned(), shown: Vec::new() }),
            (None, Some(Step::Run { shown, .. })) => shown.push((*text).to_owned()),
            (None, _) => panic!("{text}: nothing prints it, for no line with `$ ` is before it"),
        }
    }
    steps
}

/// The words of a line without its numbers, which differ from run to run: words without letters are left out, digits in
/// others are alike, but for the line of the source in a name (`distance:10`).
fn words(line: &str) -> Vec<String> {
    let words = line.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic));
    words
        .map(|word| match word.split_once(':') {
            Some((name, rest)) => {
                let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                let (line, rest) = rest.split_at(digits);
                without_numbers(name) + ":" + line + &without_numbers(rest)
            }
            None => without_numbers(word),
        })
        .collect()
}

fn without_numbers(word: &str) -> String {
    let mut pieces = word.split(|c: char| c.is_ascii_digit() || c == ',').filter(|piece| !piece.is_empty());
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |all, piece| all + "#" + piece)
}

/// Lines of `shown` that `printed` has not, but for numbers. A line `...` stands for what the page leaves out.
pub fn not_printed<'a>(shown: &'a [String], printed: &str) -> Vec<&'a str> {
    let printed: Vec<Vec<String>> = printed.lines().map(words).collect();
    shown.iter().map(String::as_str).filter(|line| *line != "..." && !printed.contains(&words(line))).collect()
}

/// Where a reader is: a folder, and a shell. What it leaves running ends with it.
#[derive(Debug)]
pub struct Reader {
    folder: PathBuf,
    variables: Vec<(String, String)>,
    groups: Vec<u32>,
}

impl Reader {
    /// In this folder, with these programs on the path before all others, and these variables.
    pub fn new(folder: &Path, programs: &[&Path], variables: &[(&str, &str)]) -> Self {
        let mut path: Vec<String> = programs.iter().map(|folder| folder.display().to_string()).collect();
        path.extend(std::env::var("PATH"));
        let mut all = vec![("PATH".to_owned(), path.join(":"))];
        all.extend(variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
        Reader { folder: folder.to_owned(), variables: all, groups: Vec::new() }
    }

    /// Runs a line, and waits for what it does not leave to the background; what it printed to both outputs.
    ///
    /// # Panics
    /// It does not start, or fails.
    pub fn run(&mut self, line: &str) -> String {
        use std::os::unix::process::CommandExt;
        // A file, and no pipe: what stays in the background keeps it open.
        let path = self.folder.join(".printed");
        let printed = File::create(&path).unwrap();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", line])
            .current_dir(&self.folder)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        shell.stdin(Stdio::null()).stdout(printed.try_clone().unwrap()).stderr(printed).process_group(0);
        let mut shell = shell.spawn().unwrap();
        self.groups.push(shell.id());
        let status = shell.wait().unwrap();
        let printed = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(status.success(), "{line}: {status}: {printed}");
        printed
    }

    /// Does all steps of a page, and says on stderr what each line printed: what the page shows is taken from there.
    ///
    /// # Panics
    /// A line fails, or what is shown of it is not printed.
    pub fn follow(&mut self, page: &str) {
        for step in steps(page) {
            match step {
                Step::File { name, text } => fs::write(self.folder.join(name), text).unwrap(),
                Step::Run { line, shown } => {
                    let printed = self.run(&line);
                    eprintln!("$ {line}\n{printed}");
                    let missing = not_printed(&shown, &printed);
                    assert!(missing.is_empty(), "$ {line}\nshown, and not printed: {missing:#?}\nprinted: {printed}");
                }
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        for group in &self.groups {
            // Most are gone.
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).stderr(Stdio::null()).status();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reader, Step, not_printed, steps};

    const PAGE: &str = "# A page\n\nText.\n\n    true    # says nothing\n\n```c empty.c\nint main;\n```\n\n```console\n$ ls\nempty.c\n...\n\
                        $ wc -c empty.c\n10 empty.c\n```\n\n```toml\nnot = 1\n```\n";

    #[test]
    fn a_page_has_files_and_lines_to_run() {
        let run = |line: &str, shown: &[&str]| Step::Run {
            line: line.to_owned(),
            shown: shown.iter().map(|&line| line.to_owned()).collect(),
        };
        let file = Step::File { name: "empty.c".to_owned(), text: "int main;\n".to_owned() };
        let expected = [
            run("true    # says nothing", &[]),
            file,
            run("ls", &["empty.c", "..."]),
            run("wc -c empty.c", &["10 empty.c"]),
        ];
        assert_eq!(steps(PAGE), expected);
    }

    #[test]
    fn a_backslash_continues_a_line() {
        let steps = steps("```console\n$ echo a \\\n    b\na b\n```\n");
        assert_eq!(steps, [Step::Run { line: "echo a \\\n    b".to_owned(), shown: vec!["a b".to_owned()] }]);
    }

    #[test]
    fn numbers_may_differ_and_words_may_not() {
        let shown = ["distance:11  98.3 %  3.6".to_owned(), "...".to_owned()];
        assert!(not_printed(&shown, "head\ndistance:11   < 1 %\n").is_empty());
        assert_eq!(not_printed(&shown, "distances:11  98.3 %  3.6"), [&shown[0]]);
        assert_eq!(not_printed(&shown, "distance:10  98.3 %  3.6"), [&shown[0]], "another line of the source");
    }

    #[test]
    fn a_reader_does_what_the_page_says() {
        let folder = std::env::temp_dir().join(format!("hbbp-reader-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut reader = Reader::new(&folder, &[], &[("NAME", "empty.c")]);
        reader.follow(PAGE);
        assert_eq!(reader.run("cat $NAME; sleep 1000 & echo $! > pid"), "int main;\n");
        let pid = std::fs::read_to_string(folder.join("pid")).unwrap();
        drop(reader);
        let lives = || {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            state.is_ok_and(|state| !state.contains(") Z "))
        };
        let begun = std::time::Instant::now();
        while lives() {
            assert!(begun.elapsed().as_secs() < 120, "it still runs");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
