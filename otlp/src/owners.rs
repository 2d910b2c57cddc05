//! Whose profiles a recording is of: all of a file, or those of a service on a host.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{Cursor, Seek, Write};
use std::rc::Rc;

use crate::Error;
use crate::attributes::Whose;
use crate::made::Made;

/// As many recordings are made of a file, at most.
const MOST: usize = 1 << 12;

/// What a service did on a host. `None`: the profiles do not say it.
#[derive(Debug)]
pub struct OfOwner {
    /// The host (`host.name`).
    pub host: Option<String>,
    /// The service (`service.name`).
    pub service: Option<String>,
    /// Its version (`service.version`).
    pub version: Option<String>,
    /// The bytes of the recording; an error ([`Error::NothingToCount`]) if none of its samples count.
    pub recording: Result<Vec<u8>, Error>,
}

/// Host, service and version.
type Owner = [Option<Rc<str>>; 3];

/// A recording of each.
pub(crate) type Owners<W> = BTreeMap<Owner, Made<W>>;

/// The recordings that are made of a file.
pub(crate) enum Recordings<'r, W: Write> {
    /// One of all.
    One(&'r mut Made<W>),
    /// One of each owner, and where the next one is written.
    Apart(&'r mut Owners<W>, fn() -> W),
}

impl<W: Write + Seek> Recordings<'_, W> {
    /// The recording of all, if there is one.
    pub(crate) fn only(&mut self) -> Option<&mut Made<W>> {
        match self {
            Self::One(made) => Some(made),
            Self::Apart(..) => None,
        }
    }

    /// The recording that samples of these belong to.
    pub(crate) fn of(&mut self, whose: &Whose) -> Result<&mut Made<W>, Error> {
        let (owners, make) = match self {
            Self::One(made) => return Ok(made),
            Self::Apart(owners, make) => (owners, make),
        };
        let known = owners.len();
        match owners.entry([whose.host.clone(), whose.service.clone(), whose.version.clone()]) {
            Entry::Occupied(made) => Ok(made.into_mut()),
            Entry::Vacant(_) if known == MOST => Err(Error::Owners { most: MOST }),
            Entry::Vacant(new) => Ok(new.insert(Made::new(make())?)),
        }
    }
}

impl OfOwner {
    pub(crate) fn of([host, service, version]: Owner, made: Made<Cursor<Vec<u8>>>) -> Self {
        let [host, service, version] = [host, service, version].map(|text| text.map(|text| text.to_string()));
        OfOwner { host, service, version, recording: made.finish().map(Cursor::into_inner) }
    }
}
