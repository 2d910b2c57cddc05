//! The file to which `dwz` moved what several debug files have in common.

use std::path::Path;

use super::missing::Missing;
use super::sections::Sections;
use crate::binaries::Binary;
use crate::build_id::folder_and_name;
use crate::code::Image;

/// Its sections, where the image names one. It is where it is said to be, seen from the program, or where distributions install debug
/// files by build id. The error says that it is not there.
pub(super) fn alternate(image: &Image, binary: &Binary) -> Option<Result<Sections, Missing>> {
    let (name, build_id) = image.alternate_debug_file()?;
    let root = binary.symfs.as_deref().unwrap_or(Path::new("/"));
    let (folder, file) = folder_and_name(build_id.as_bytes())?;
    let by_id = root.join("usr/lib/debug/.build-id").join(folder).join(file + ".debug");
    let stated = match Path::new(&name).strip_prefix("/") {
        Ok(absolute) => root.join(absolute),
        Err(_) => binary.file.parent().unwrap_or(Path::new("")).join(&name),
    };
    let fits = |image: &Image| image.build_id() == Some(&build_id);
    let found = [stated, by_id].iter().find_map(|place| Image::open_debug(place).ok().filter(fits));
    Some(match found {
        Some(image) => Sections::of(&image).map_err(Missing::from),
        None => Err(Missing::Alternate(name)),
    })
}
