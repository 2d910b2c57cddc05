//! The unit of systemd that packages have: `packaging/hbbp-record.service`.

use super::*;

fn unit() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/hbbp-record.service")).unwrap()
}

/// The words of its command after the program, with the values of its variables, of which some are others.
fn arguments(unit: &str, others: &[(&str, &str)]) -> Vec<String> {
    let values =
        |key: &str| unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect::<Vec<&str>>();
    let variables: Vec<(&str, &str)> = values("Environment").iter().map(|pair| pair.split_once('=').unwrap()).collect();
    let commands = values("ExecStart");
    assert_eq!(commands.len(), 1);
    let mut words = commands[0].split(' ').map(|word| {
        variables.iter().filter(|(name, _)| others.iter().all(|(other, _)| other != name)).chain(others).fold(
            word.to_owned(),
            |word, (name, value)| match word == format!("${name}") {
                true => (*value).to_owned(),
                false => word.replace(&format!("${{{name}}}"), value),
            },
        )
    });
    assert_eq!(words.next().unwrap(), "/usr/bin/hbbp");
    words.flat_map(|word| word.split_whitespace().map(str::to_owned).collect::<Vec<String>>()).collect()
}

#[test]
fn the_unit_of_packages_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hbbp-record.service");
    // Where it is checked, hbbp is another file.
    fs::write(&file, unit().replace("/usr/bin/hbbp", hbbp().to_str().unwrap())).unwrap();
    if !installed("systemd-analyze") {
        return;
    }
    let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output().unwrap();
    let said = errors(&output);
    // These hide the kernel's code and its names.
    assert!(!unit().lines().any(|line| line.starts_with("ProtectKernelTunables") || line.starts_with("ProtectProc")));
    assert!(unit().contains("CAP_SYS_RAWIO"));
    let of_unit: Vec<&str> = said.lines().filter(|line| line.contains("hbbp-record")).collect();
    assert!(of_unit.is_empty(), "{of_unit:#?}");
}

#[test]
fn the_command_of_the_unit_records_until_it_is_told_to_end() {
    let Some(place) = Place::to_record() else { return };
    let folder = place.folder().to_str().unwrap();
    let usual = arguments(&unit(), &[("STATE_DIRECTORY", folder)]);
    assert_eq!(usual[0], "record");
    let help = Command::new(hbbp()).args(["record", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for option in usual.iter().filter(|word| word.starts_with('-')) {
        assert!(help.contains(&format!("{option} ")) || help.contains(&format!("{option}\n")), "{option} is in --help");
    }
    let variables =
        [("STATE_DIRECTORY", folder), ("HBBP_ROTATE", "1s"), ("HBBP_KEEP", "2,1d"), ("HBBP_OPTIONS", "-F 97")];
    let mut command = with_default_signals(hbbp());
    let mut recorder = command.args(arguments(&unit(), &variables)).stderr(Stdio::piped()).spawn().unwrap();
    let finished = || {
        let mut names =
            fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.any(|name| name.starts_with("record.2") && name.ends_with(".data"))
    };
    wait_for("a file", || finished() || recorder.try_wait().unwrap().is_some());
    send("-TERM", recorder.id());
    let (status, said) = stderr_of(recorder);
    if said.contains("recording all processes needs") {
        testing::skip!(Privileges, "{said}");
        return;
    }
    assert!(status.success(), "{said}");
    let names: Vec<String> =
        fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 2, "{names:?} {said}");
    assert!(names.iter().all(|name| name.ends_with(".data") && !name.contains("cut")), "{names:?}");
}
