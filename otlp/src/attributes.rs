//! Attributes: what was profiled, which file was mapped, what a frame is. The names are those of OpenTelemetry's semantic conventions.

use std::rc::Rc;

use perfdata::BuildId;

use crate::Error;
use crate::message::{AnyValue, KeyValue, KeyValueAndUnit};
use crate::tables::{Table, Tables};

/// An attribute that means something here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    Pid(u32),
    Tid(u32),
    Thread(Rc<str>),
    Executable(Rc<str>),
    ExecutablePath(Rc<str>),
    Service(Rc<str>),
    Version(Rc<str>),
    Host(Rc<str>),
    Container(Rc<str>),
    /// Of a mapping: the build id of its file.
    BuildId(BuildId),
    /// Of a mapping: a hash of parts of its file.
    Hash(Rc<str>),
    /// Of a frame: what it is of, `native`, `kernel`, `cpython`.
    FrameType(Rc<str>),
    /// Of a profile of hbbp's: its values are no numbers of executions.
    Relative,
    Other,
}

impl Attribute {
    fn of(key: &str, value: Option<&AnyValue>, tables: &Tables<'_>) -> Result<Self, Error> {
        let text = || match value {
            Some(AnyValue { string_value: Some(text), .. }) => Ok(Rc::from(text.as_str())),
            Some(AnyValue { string_value_strindex: Some(index), .. }) => {
                tables.shared_text(*index, "the value of an attribute")
            }
            _ => Ok(Rc::from("")),
        };
        let number = value.and_then(|value| u32::try_from(value.int_value?).ok());
        Ok(match key {
            "process.pid" => number.map_or(Self::Other, Self::Pid),
            "thread.id" => number.map_or(Self::Other, Self::Tid),
            "thread.name" => Self::Thread(text()?),
            "process.executable.name" => Self::Executable(text()?),
            "process.executable.path" => Self::ExecutablePath(text()?),
            "service.name" => Self::Service(text()?),
            "service.version" => Self::Version(text()?),
            "host.name" => Self::Host(text()?),
            "container.id" => Self::Container(text()?),
            "process.executable.build_id.gnu" => build_id(&text()?).map_or(Self::Other, Self::BuildId),
            "process.executable.build_id.htlhash" => Self::Hash(text()?),
            "profile.frame.type" => Self::FrameType(text()?),
            "hbbp.counts" if *text()? == *"relative" => Self::Relative,
            _ => Self::Other,
        })
    }

    /// That of a resource.
    pub(crate) fn of_resource(bytes: &[u8], tables: &Tables<'_>) -> Result<Self, Error> {
        let KeyValue { key, value, key_strindex } = crate::tables::decode("an attribute of a resource", bytes)?;
        let key = if key.is_empty() { tables.text(key_strindex, "the key of an attribute")? } else { key.into() };
        Self::of(&key, value.as_ref(), tables)
    }

    /// That of an index.
    pub(crate) fn of_index(index: i32, tables: &Tables<'_>) -> Result<Self, Error> {
        let KeyValueAndUnit { key_strindex, value, .. } = tables.entry(Table::Attributes, index, "an attribute")?;
        Self::of(&tables.text(key_strindex, "the key of an attribute")?, value.as_ref(), tables)
    }
}

/// The build id of these digits. Of a long one a recording has the beginning; one of zeros alone is none.
fn build_id(hex: &str) -> Option<BuildId> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    let bytes = bytes.filter(|bytes| rest.is_empty() && bytes.iter().any(|byte| *byte != 0))?;
    BuildId::new(bytes.get(..BuildId::MOST).unwrap_or(&bytes))
}

/// Whose samples they are: the attributes of a resource, and over them those of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whose {
    pub pid: Option<u32>,
    pub tid: Option<u32>,
    pub thread: Option<Rc<str>>,
    pub executable: Option<Rc<str>>,
    pub executable_path: Option<Rc<str>>,
    pub service: Option<Rc<str>>,
    pub version: Option<Rc<str>>,
    pub host: Option<Rc<str>>,
    pub container: Option<Rc<str>>,
}

impl Whose {
    /// Takes an attribute over. An empty text says nothing; of a long name of a service, a version or a host the beginning is kept.
    pub(crate) fn set(&mut self, attribute: &Attribute) {
        let (field, text) = match attribute {
            Attribute::Pid(pid) => return self.pid = Some(*pid),
            Attribute::Tid(tid) => return self.tid = Some(*tid),
            Attribute::Thread(text) => (&mut self.thread, text),
            Attribute::Executable(text) => (&mut self.executable, text),
            Attribute::ExecutablePath(text) => (&mut self.executable_path, text),
            Attribute::Service(text) => (&mut self.service, &label(text)),
            Attribute::Version(text) => (&mut self.version, &label(text)),
            Attribute::Host(text) => (&mut self.host, &label(text)),
            Attribute::Container(text) => (&mut self.container, text),
            _ => return,
        };
        if !text.is_empty() {
            *field = Some(text.clone());
        }
    }

    /// Whose a sample with these attributes is. The version of a resource's service is not that of another service.
    pub(crate) fn of_sample(
        &self,
        attributes: impl IntoIterator<Item = Result<Attribute, Error>>,
    ) -> Result<Self, Error> {
        let mut own = Whose { version: None, ..self.clone() };
        for attribute in attributes {
            own.set(&attribute?);
        }
        if own.version.is_none() && own.service == self.service {
            own.version.clone_from(&self.version);
        }
        Ok(own)
    }

    /// What the process is called.
    pub(crate) fn process(&self) -> Option<&str> {
        let of_path = || self.executable_path.as_deref().and_then(base_name);
        let others = || self.service.as_deref().or(self.thread.as_deref());
        self.executable.as_deref().or_else(of_path).or_else(others)
    }

    /// The path of a file that was mapped, of which profilers have the name alone: it is known of the program itself.
    pub(crate) fn path_of<'a>(&'a self, name: &'a Rc<str>) -> &'a Rc<str> {
        let program = self.executable_path.as_ref();
        program.filter(|path| !name.contains('/') && base_name(path) == Some(name)).unwrap_or(name)
    }
}

/// Letters of a name of a service, a version or a host that are kept: each row of a table may have it.
const MOST_LABEL: usize = 255;

fn label(text: &Rc<str>) -> Rc<str> {
    match beginning(text, MOST_LABEL) {
        kept if kept.len() < text.len() => kept.into(),
        _ => Rc::clone(text),
    }
}

/// The first letters of a text, so many at most.
pub(crate) fn beginning(text: &str, letters: usize) -> &str {
    text.char_indices().nth(letters).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

fn base_name(path: &str) -> Option<&str> {
    path.rsplit('/').next().filter(|name| !name.is_empty())
}
