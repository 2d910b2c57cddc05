//! Programs in file systems that only they see, or that are gone when reports are made: layers of an overlay, as containers have them, and
//! images that are mounted for one program, as snaps are.

use serde_json::Value;

use super::containers::{
    Running, WITH_ID, WITHOUT_ID, forget_copies, hot, hot_of, is_unread, record_anew, record_by, spins_in,
};
use super::linked::built;
use super::*;

/// `hbbp` in a mount namespace of its own, after what a shell does there.
fn after(setup: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-ec", &format!("{setup}\nexec \"$@\""), "sh"]).arg(hbbp());
    command
}

/// Whether a shell can do this in a mount namespace of its own; said on stderr where it cannot.
fn can(place: &Place, setup: &str) -> bool {
    let tried = Command::new("unshare").args(["-m", "sh", "-ec", setup]).current_dir(place.folder()).output();
    let why = match &tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => errors(output),
        Err(why) => why.to_string(),
    };
    testing::skip!(Privileges, "nothing can be mounted: {why}");
    false
}

/// Starts a shell's script in a mount namespace of its own, which at last becomes the program.
fn start(place: &Place, script: &str) -> Running {
    Running::start(Command::new("unshare").args(["-m", "sh", "-ec", script]).current_dir(place.folder()))
}

/// The folders of an overlay at `merged` are made anew, with `program` in the lower layer, and this mounts it. The layers are of one file
/// system, or of two: then inodes of `stat` may be others than those of the layers (`xino`).
fn overlay(place: &Place, program: &Path, has_two: bool) -> String {
    for folder in ["lower", "upper/made", "upper/work", "merged"] {
        let _ = fs::remove_dir_all(place.path(folder));
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    fs::copy(program, place.path("lower/program")).unwrap();
    let (own, xino) =
        if has_two { ("mount -t tmpfs tmpfs upper; mkdir upper/made upper/work;", ",xino=on") } else { ("", "") };
    format!(
        "cd {}; {own} mount -t overlay overlay -o lowerdir=lower,upperdir=upper/made,workdir=upper/work{xino} merged",
        place.folder().display()
    )
}

/// As a container has it: the overlay is gone when the report is made, and outside another program is at the path.
#[test]
fn a_program_in_layers_that_only_it_sees() {
    let Some(place) = Place::to_record() else { return };
    for (id, has_two) in [(WITH_ID, false), (WITHOUT_ID, true), (WITH_ID, true)] {
        let (Some(inside), Some(outside)) = (spins_in(&place, "inside", id), spins_in(&place, "outside", id)) else {
            return;
        };
        fs::copy(outside, place.path("new")).unwrap();
        let mount = overlay(&place, &inside, has_two);
        if !can(&place, &mount) {
            return;
        }
        // In the lower layer, copied to the upper one, or only in that.
        for (change, expected) in
            [("", "inside"), ("touch merged/program;", "inside"), ("cp new merged/program;", "outside")]
        {
            let mount = overlay(&place, &inside, has_two);
            fs::copy(place.path("new"), place.path("merged/program")).unwrap();
            let script = format!("{mount}; {change} exec merged/program 1");
            let files = record_anew(&place, &["--", "unshare", "-m", "sh", "-ec", &script]);
            assert_eq!(hot(&place), [expected], "{change} {id} {has_two}");
            assert_eq!((&files["elsewhere"], &files["unidentified"]), (&1.into(), &0.into()), "{change} {files}");
        }
        // While it runs: before the recording, and in it.
        for change in ["cp new merged/new; mv merged/new merged/program", "rm merged/program", "touch merged/program"] {
            for wait in ["0", "0.7"] {
                let _ = fs::remove_file(place.path("changed"));
                let mount = overlay(&place, &inside, has_two);
                let script = format!("{mount}; (sleep {wait}; {change}; touch changed) & exec merged/program 60");
                let running = start(&place, &script);
                wait_for("the program", || name_of(&running) == "program");
                if wait == "0" {
                    wait_for("the change", || place.path("changed").exists());
                }
                let files = record_anew(&place, &["-p", &running.id(), "--duration", "1.5"]);
                drop(running);
                assert!(place.path("changed").exists());
                assert_eq!(hot(&place), ["inside"], "{change} after {wait} {id} {has_two}");
                assert_eq!((&files["elsewhere"], &files["unidentified"]), (&1.into(), &0.into()), "{change} {files}");
            }
        }
    }
}

fn name_of(running: &Running) -> String {
    fs::read_to_string(format!("/proc/{}/comm", running.id())).unwrap_or_default().trim().to_owned()
}

/// The recorder sees the same overlay.
#[test]
fn a_program_in_layers_that_the_recorder_sees_too() {
    let Some(place) = Place::to_record() else { return };
    for (id, has_two) in [(WITH_ID, false), (WITHOUT_ID, true)] {
        let (Some(inside), Some(outside)) = (spins_in(&place, "inside", id), spins_in(&place, "outside", id)) else {
            return;
        };
        let mount = overlay(&place, &inside, has_two);
        if !can(&place, &mount) {
            return;
        }
        fs::copy(outside, place.path("new")).unwrap();
        // What is at the path when the report is made is in the lower layer, or was put into the upper one.
        for (script, setup, expected) in [
            ("merged/program 1", "", &["inside"][..]),
            ("touch merged/program; merged/program 1", "", &["inside"]),
            (
                "merged/program 5 & sleep 0.7; cp new merged/new; mv merged/new merged/program; wait",
                "cp new merged/program",
                &["inside"],
            ),
            (
                "merged/program 1; cp new merged/program; merged/program 1",
                "cp new merged/program",
                &["[unreadable]", "outside"],
            ),
        ] {
            let mount = overlay(&place, &inside, has_two);
            forget_copies(&place);
            let files = record_by(&place, after(&mount), &["--", "sh", "-ec", script]);
            let setup = format!("{mount}; {setup}");
            assert_eq!(hot_of(&place, after(&setup), &place.recording()), expected, "{script} {id} {has_two} {files}");
        }
    }
}

/// What is mapped stays as it was, and what is at its path has the same inode: that is another build, which must not be taken for it.
#[test]
fn a_library_of_a_lower_layer_that_was_written_in_its_place() {
    let Some(place) = Place::to_record() else { return };
    for id in [WITH_ID, WITHOUT_ID] {
        let (Some([program, first]), Some([_, second])) =
            (built(&place, ["own", "before"], id), built(&place, ["own", "after"], id))
        else {
            return;
        };
        fs::copy(second, place.path("new")).unwrap();
        for (change, expected) in
            [("cat new > merged/program", &["[unreadable]", "own"]), ("touch merged/program", &["before", "own"])]
        {
            let _ = fs::remove_file(place.path("changed"));
            let mount = overlay(&place, &first, false);
            if !can(&place, &mount) {
                return;
            }
            let script = format!(
                "{mount}; LD_PRELOAD=merged/program {} 60 & sleep 1; {change}; \
                 echo $! > changed; wait",
                program.display()
            );
            let running = start(&place, &script);
            wait_for("the change", || fs::read_to_string(place.path("changed")).is_ok_and(|pid| pid.ends_with('\n')));
            let pid = fs::read_to_string(place.path("changed")).unwrap();
            let files = record_anew(&place, &["-p", pid.trim(), "--duration", "1"]);
            send("-TERM", pid.trim().parse().unwrap());
            drop(running);
            assert_eq!(hot(&place), *expected, "{change} {id} {files}");
        }
    }
}

/// What mounts an image with the program at `mounted/program`; `None`, said on stderr, where none can be made or mounted.
fn image(place: &Place, program: &Path) -> Option<String> {
    let (folder, image) = (place.path("packed"), place.path("image"));
    for folder in [&folder, &place.path("mounted")] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::copy(program, folder.join("program")).unwrap();
    if !testing::has("mksquashfs") {
        return None;
    }
    let mut tool = Command::new("mksquashfs");
    let output = tool.arg(folder).arg(&image).args(["-noappend", "-quiet", "-no-progress"]).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let mount = format!("cd {}; mount -t squashfs -o loop,ro image mounted", place.folder().display());
    can(place, &mount).then_some(mount)
}

#[test]
fn a_program_of_an_image_that_only_it_sees() {
    let Some(place) = Place::to_record() else { return };
    for id in [WITH_ID, WITHOUT_ID] {
        let (Some(inside), Some(outside)) = (spins_in(&place, "inside", id), spins_in(&place, "outside", id)) else {
            return;
        };
        let Some(mount) = image(&place, &inside) else { return };
        fs::copy(outside, place.path("mounted/program")).unwrap();
        let script = format!("{mount}; exec mounted/program 60");
        let files = record_anew(&place, &["--", "unshare", "-m", "sh", "-ec", &script.replace("60", "1")]);
        assert_eq!(hot(&place), ["inside"], "{id} {files}");
        assert_eq!((&files["elsewhere"], &files["kept"]), (&1.into(), &1.into()), "{id}");
        // Taken away while it runs, it has no path any more that anybody could open.
        for gone in ["", "(sleep 0.7; umount -l mounted) &"] {
            let running = start(&place, &script.replace("exec", &format!("{gone} exec")));
            wait_for("the program", || name_of(&running) == "program");
            if !gone.is_empty() {
                let maps = format!("/proc/{}/mountinfo", running.id());
                wait_for("the end of the mount", || !fs::read_to_string(&maps).unwrap().contains("squashfs"));
            }
            record_anew(&place, &["-p", &running.id(), "--duration", "1"]);
            drop(running);
            fs::remove_file(place.path("image")).unwrap();
            assert_eq!(hot(&place), ["inside"], "{gone} {id}");
            assert!(image(&place, &inside).is_some());
        }
    }
}

/// From inside of a container the paths are those of the recorder: nothing is copied, and outside there is no such file. An archive that is
/// made inside has it.
#[test]
fn a_recording_that_was_made_inside_is_packed_inside() {
    let Some(place) = Place::to_record() else { return };
    let (Some(inside), Some(outside)) = (spins_in(&place, "inside", WITH_ID), spins_in(&place, "outside", WITH_ID))
    else {
        return;
    };
    let Some(mount) = image(&place, &inside) else { return };
    let archive = place.path("archive");
    let script = format!(
        "{mount}; mounted/program 60 & hbbp=$1; shift; \
         \"$hbbp\" \"$@\" -p $! --duration 1; \"$hbbp\" archive {} -o {}; kill $!",
        place.recording().display(),
        archive.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "--pid", "--fork", "--mount-proc", "sh", "-ec", &script, "sh"]).arg(hbbp());
    let files = record_by(&place, command, &[]);
    assert_eq!((&files["elsewhere"], &files["kept"]), (&0.into(), &0.into()));
    assert!(is_unread(&place), "{:?}", hot(&place));
    fs::copy(outside, place.path("mounted/program")).unwrap();
    assert!(is_unread(&place), "another program is there: {:?}", hot(&place));
    assert_eq!(hot_of(&place, Command::new(hbbp()), &archive), ["inside"]);
}

/// Bursts are of the program's code wherever that is: its hottest blocks are counted by branches, and named when the mount is gone.
#[test]
fn blocks_are_counted_by_bursts_there_too() {
    let Some(place) = Place::to_trace() else { return };
    let Some(inside) = spins_in(&place, "inside", WITH_ID) else { return };
    let mounts =
        [Some((overlay(&place, &inside, false), "merged")), image(&place, &inside).map(|mount| (mount, "mounted"))];
    for (mount, folder) in mounts.into_iter().flatten().filter(|(mount, _)| can(&place, mount)) {
        forget_copies(&place);
        let script = format!("{mount}; exec {folder}/program 1");
        let mut command = Command::new(hbbp());
        command.args(["record", "--overhead", "20", "-o"]).arg(place.recording());
        command.args(["--", "unshare", "-m", "sh", "-ec", &script]).env("HOME", place.path("home"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        let mut blocks = Command::new(hbbp());
        blocks
            .args(["blocks", "--no-cache", "--format", "json"])
            .arg(place.recording())
            .env("HOME", place.path("home"));
        let output = blocks.output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let count = |block: &&Value| block["count"].as_f64().unwrap();
        let blocks = report["blocks"].as_array().unwrap().iter();
        let most = blocks.max_by(|one, other| count(one).total_cmp(&count(other))).unwrap();
        assert_eq!(most["function"], "inside", "{folder}: {most}");
        assert!(most["lbr"].as_f64().unwrap() > 0.0 && most["lbr_streams"].as_f64().unwrap() > 0.0, "{folder}: {most}");
    }
}

/// The recorder asks the process that serves the file when the recording ends, and not before: it could wait for ever.
#[test]
fn a_program_that_a_process_serves() {
    let Some(place) = Place::to_record() else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/serve.c");
    let Some(serve) = testing::c_program(&place.path("built"), "serve", &[source], &[]) else { return };
    fs::create_dir(place.path("served")).unwrap();
    let serving = |program: &Path| {
        let (folder, serve, program) = (place.folder().display(), serve.display(), program.display());
        format!("cd {folder}; {serve} served {program} & until [ -x served/program ]; do kill -0 $!; sleep 0.1; done")
    };
    for id in [WITH_ID, WITHOUT_ID] {
        let (Some(inside), Some(outside)) = (spins_in(&place, "inside", id), spins_in(&place, "outside", id)) else {
            return;
        };
        let mount = serving(&inside);
        if !can(&place, &mount) {
            return;
        }
        forget_copies(&place);
        let files = record_by(&place, after(&mount), &["--", "served/program", "1"]);
        assert_eq!((&files["identified"], &files["kept"]), (&0.into(), &0.into()), "{files}");
        assert_eq!(hot_of(&place, after(&mount), &place.recording()), ["inside"], "{id}");
        let other = hot_of(&place, after(&serving(&outside)), &place.recording());
        assert!(other.iter().all(|function| function == "[unreadable]"), "{id}: {other:?}");
        assert!(is_unread(&place), "{id}: {:?}", hot(&place));
    }
}
