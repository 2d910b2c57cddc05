//! The servers as a source of files for analyses.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use analyzer::code::Image;
use analyzer::{BuildId, ByBuildId, Wanted};
use anyhow::{Context, anyhow};

use super::folder::{Folder, Kept, NAMES};
use super::server::{Answer, Client, Failure};
use super::settings::Settings;
use crate::output;

/// The servers, and the folder of what they gave. One file is got at a time.
pub struct Source {
    servers: Vec<String>,
    client: Client,
    folder: Folder,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What was asked for before, and what came of it.
    known: HashMap<(String, Wanted), Option<PathBuf>>,
    /// Servers that failed: they are not asked again.
    failed: HashSet<String>,
    is_cleaned: bool,
}

impl Source {
    /// `None` if the environment names no servers, or there is no folder for what they give.
    pub fn of_environment() -> Option<Arc<dyn ByBuildId>> {
        let settings = Settings::of_environment(|word| {
            say!("DEBUGINFOD_URLS: {word} is left out: only http:// and https:// are asked");
        })?;
        let Some(folder) = Folder::of_user() else {
            say!(
                "debuginfod servers are not asked: neither DEBUGINFOD_CACHE_PATH nor HOME says where to keep what they give"
            );
            return None;
        };
        let client = Client::new(&settings);
        Some(Arc::new(Source { servers: settings.servers, client, folder, state: Mutex::default() }))
    }

    fn find(&self, state: &mut State, build_id: &BuildId, wanted: Wanted) -> Option<PathBuf> {
        let (id, name) = (build_id.to_string(), name(wanted));
        match self.folder.find(&id, name) {
            Kept::File(file) => return Some(file),
            Kept::Absent => return None,
            Kept::Unknown => {}
        }
        if !std::mem::replace(&mut state.is_cleaned, true) {
            self.folder.clean();
        }
        let mut is_absent = true;
        for server in &self.servers {
            if state.failed.contains(server) {
                is_absent = false;
                continue;
            }
            match self.get(server, build_id, wanted) {
                Ok(Some(file)) => return Some(file),
                Ok(None) => {}
                Err(Failure { why, is_of_server }) => {
                    is_absent = false;
                    let again = if is_of_server { "; it is not asked again" } else { "" };
                    let what = match wanted {
                        Wanted::DebugFile => "debug information",
                        Wanted::Executable => "the file",
                    };
                    let why = reports::sentence(&why);
                    output::say(format!("debuginfod server {server}: {what} of build {id}: {why}{again}"));
                    if is_of_server {
                        state.failed.insert(server.clone());
                    }
                }
            }
        }
        if is_absent {
            self.folder.keep_absent(&id, name);
        }
        None
    }

    /// The file, from this server; `None` if it does not have it.
    fn get(&self, server: &str, build_id: &BuildId, wanted: Wanted) -> Result<Option<PathBuf>, Failure> {
        let (id, name) = (build_id.to_string(), name(wanted));
        let mut file = self.folder.begin(&id, name).context("it cannot be kept (DEBUGINFOD_CACHE_PATH)")?;
        match self.client.get(&format!("{server}/buildid/{id}/{name}"), file.as_file_mut())? {
            Answer::Absent => return Ok(None),
            Answer::Written => {}
        }
        let image = Image::open_debug(file.path()).context("what it gave is no file of this build")?;
        if image.build_id() != Some(build_id) {
            match image.build_id() {
                Some(other) => return Err(anyhow!("what it gave is of build {other}").into()),
                None => return Err(anyhow!("what it gave has no build id").into()),
            }
        }
        let (length, expected) = (image.length(), image.expected_length());
        if length < expected {
            return Err(anyhow!("what it gave ends after {length} bytes, and its sections after {expected}").into());
        }
        Ok(Some(self.folder.keep(file, &id, name).context("it cannot be kept (DEBUGINFOD_CACHE_PATH)")?))
    }
}

fn name(wanted: Wanted) -> &'static str {
    let [debug_information, executable] = NAMES;
    match wanted {
        Wanted::DebugFile => debug_information,
        Wanted::Executable => executable,
    }
}

impl ByBuildId for Source {
    fn get(&self, build_id: &BuildId, wanted: Wanted) -> Option<PathBuf> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (build_id.to_string(), wanted);
        if let Some(known) = state.known.get(&key) {
            return known.clone();
        }
        let found = self.find(&mut state, build_id, wanted);
        state.known.insert(key, found.clone());
        found
    }
}
