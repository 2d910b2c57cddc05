//! What `hbbp calibrate` measured of this machine, where it is kept.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
use collector::machine::Machine;
use formats::calibration::{Calibration, SCHEMA};

use reports::folders::data_folder;

/// The file: below `XDG_DATA_HOME`, by default `~/.local/share`.
pub fn file() -> anyhow::Result<PathBuf> {
    let folder =
        data_folder().context("a calibration is kept in XDG_DATA_HOME or HOME, and neither is set to a path")?;
    Ok(folder.join("calibration.json"))
}

/// Keeps a calibration for recordings to come.
pub fn keep(file: &Path, calibration: &Calibration) -> anyhow::Result<()> {
    let folder = file.parent().context("the file has no folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    // Whoever reads it meanwhile sees the old one or the new one.
    let mut new = tempfile::NamedTempFile::new_in(folder).with_context(|| folder.display().to_string())?;
    serde_json::to_writer(&mut new, calibration)?;
    new.persist(file).with_context(|| file.display().to_string())?;
    Ok(())
}

/// That of this machine, if there is one. What cannot be read, or is of another CPU, is left, and said by `say`.
pub fn of_machine(machine: &Machine, say: &dyn Fn(&str)) -> Option<Calibration> {
    let file = file().ok()?;
    let text = match fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            say(&format!("{}: {error}", file.display()));
            return None;
        }
    };
    let again = "run `hbbp calibrate` again, or remove the file";
    let Ok(calibration) = serde_json::from_slice::<Calibration>(&text) else {
        say(&format!("{}: no calibration of `hbbp calibrate`: {again}", file.display()));
        return None;
    };
    if calibration.schema.as_deref() != Some(SCHEMA) || calibration.cpuid.as_deref() != Some(&machine.cpuid()) {
        let of = calibration.cpuid.unwrap_or_else(|| "no CPU that it names".to_owned());
        say(&format!("{}: a calibration of {of}, and this is {}: {again}", file.display(), machine.cpuid()));
        return None;
    }
    Some(calibration)
}
