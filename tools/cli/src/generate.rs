//! Generation of completions and manual pages.

use clap::Command;
use clap_complete::{Generator, Shell};
use std::{fs, io, path::Path};

/// Writes completions and manual pages of a command into the standard folders of shells and `man` below `folder`, which is
/// `/usr/share` or `~/.local/share` for an installation.
pub(crate) fn write(mut command: Command, folder: &Path) -> Result<(), String> {
    let name = command.get_name().to_owned();
    for (shell, place) in [
        (Shell::Bash, "bash-completion/completions"),
        (Shell::Zsh, "zsh/site-functions"),
        (Shell::Fish, "fish/vendor_completions.d"),
    ] {
        let folder = folder.join(place);
        let written = fs::create_dir_all(&folder)
            .and_then(|()| clap_complete::generate_to(shell, &mut command, &name, &folder).map(|_| ()));
        written.map_err(|error| failed(&folder.join(shell.file_name(&name)), &error))?;
    }
    let folder = folder.join("man/man1");
    let written = fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(command, &folder));
    written.map_err(|error| failed(&folder, &error))
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
