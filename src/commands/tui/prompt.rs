//! A line in which something is typed.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a text is typed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To go to a line that has it.
    Search,
    /// To keep what passes.
    Filter,
    /// The keys of the rows of the pivot.
    Rows,
    /// The keys of its columns.
    Columns,
}

/// A line that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub purpose: Purpose,
    text: Vec<char>,
    /// What is typed goes before the character of this index.
    at: usize,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// It is being typed.
    More,
    /// It is done.
    Done,
    /// Nobody wants it any more.
    Cancelled,
}

impl Prompt {
    /// A line that begins as this text.
    pub fn new(purpose: Purpose, text: &str) -> Self {
        let text: Vec<char> = text.chars().collect();
        Prompt { purpose, at: text.len(), text }
    }

    /// What was typed so far.
    pub fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// What is before the place where more is typed.
    pub fn before(&self) -> String {
        self.text[..self.at].iter().collect()
    }

    /// What is asked for.
    pub fn question(&self) -> &'static str {
        match self.purpose {
            Purpose::Search => "/",
            Purpose::Filter => "filter: ",
            Purpose::Rows => "rows: ",
            Purpose::Columns => "columns: ",
        }
    }

    /// Types a key. `words` are what Tab completes the last one of a list to.
    pub fn press(&mut self, key: KeyEvent, words: &[String]) -> Typed {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return Typed::Done,
            KeyCode::Esc => return Typed::Cancelled,
            KeyCode::Backspace if self.text.is_empty() => return Typed::Cancelled,
            KeyCode::Char('c' | 'g') if with_control => return Typed::Cancelled,
            KeyCode::Char('u') if with_control => drop(self.text.drain(..std::mem::take(&mut self.at))),
            KeyCode::Char('w') if with_control => self.delete_word(),
            KeyCode::Char('a') if with_control => self.at = 0,
            KeyCode::Char('e') if with_control => self.at = self.text.len(),
            KeyCode::Char(_) if with_control => {}
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            KeyCode::Left => self.at = self.at.saturating_sub(1),
            KeyCode::Right => self.at = (self.at + 1).min(self.text.len()),
            KeyCode::Tab => self.complete(words),
            KeyCode::Delete if self.at < self.text.len() => drop(self.text.remove(self.at)),
            KeyCode::Backspace if self.at > 0 => {
                self.at -= 1;
                self.text.remove(self.at);
            }
            KeyCode::Char(c) => {
                self.text.insert(self.at, c);
                self.at += 1;
            }
            _ => {}
        }
        Typed::More
    }

    fn delete_word(&mut self) {
        let is_part = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let before = &self.text[..self.at];
        let end = before.iter().rposition(is_part).map_or(0, |last| last + 1);
        let start = before[..end].iter().rposition(|c| !is_part(c)).map_or(0, |last| last + 1);
        self.text.drain(start..self.at);
        self.at = start;
    }

    /// To the word that begins so, or as far as all words that do are alike.
    fn complete(&mut self, words: &[String]) {
        let before = self.before();
        let begun = before.rsplit([',', ';', ' ']).next().unwrap_or_default();
        let mut fitting = words.iter().filter(|word| word.starts_with(begun));
        let Some(first) = fitting.next() else { return };
        let alike = fitting.fold(first.as_str(), |alike, word| {
            let common = alike.bytes().zip(word.bytes()).take_while(|(one, other)| one == other).count();
            alike.get(..common).unwrap_or_default()
        });
        let rest: Vec<char> = alike.get(begun.len()..).unwrap_or_default().chars().collect();
        let length = rest.len();
        self.text.splice(self.at..self.at, rest);
        self.at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(prompt: &mut Prompt, code: KeyCode, modifiers: KeyModifiers) -> Typed {
        let words = ["function", "file", "module", "source-function"].map(str::to_owned);
        prompt.press(KeyEvent::new(code, modifiers), &words)
    }

    #[test]
    fn lines_are_typed_and_changed() {
        let mut prompt = Prompt::new(Purpose::Filter, "ab");
        for code in [KeyCode::Left, KeyCode::Char('ä'), KeyCode::End, KeyCode::Char('c'), KeyCode::Backspace] {
            assert_eq!(press(&mut prompt, code, KeyModifiers::NONE), Typed::More);
        }
        assert_eq!(prompt.text(), "aäb");
        press(&mut prompt, KeyCode::Home, KeyModifiers::NONE);
        press(&mut prompt, KeyCode::Delete, KeyModifiers::NONE);
        assert_eq!((prompt.text(), prompt.before()), ("äb".into(), String::new()));
        press(&mut prompt, KeyCode::Char('e'), KeyModifiers::CONTROL);
        press(&mut prompt, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(prompt.text(), "");
        assert_eq!(press(&mut prompt, KeyCode::Backspace, KeyModifiers::NONE), Typed::Cancelled);
        let mut prompt = Prompt::new(Purpose::Filter, "isa=avx, avx2");
        press(&mut prompt, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(prompt.text(), "isa=avx, ");
        press(&mut prompt, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(prompt.text(), "isa=");
        assert_eq!(press(&mut prompt, KeyCode::Esc, KeyModifiers::NONE), Typed::Cancelled);
        assert_eq!(press(&mut prompt, KeyCode::Enter, KeyModifiers::NONE), Typed::Done);
    }

    #[test]
    fn words_are_completed_as_far_as_they_are_known() {
        let completed = |text: &str| {
            let mut prompt = Prompt::new(Purpose::Rows, text);
            press(&mut prompt, KeyCode::Tab, KeyModifiers::NONE);
            prompt.text()
        };
        assert_eq!(completed("mo"), "module");
        assert_eq!(completed("module,fu"), "module,function");
        assert_eq!(completed("f"), "f");
        assert_eq!(completed("x"), "x");
        assert_eq!(completed(""), "");
    }
}
