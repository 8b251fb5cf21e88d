//! Folders: finding, creating and syncing them.

use std::io;
use std::path::Path;

/// The folder that contains a path; `.` for a bare name.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Creates a folder and its missing parents, with mode 0700, and syncs each of them to the disk.
///
/// # Errors
/// Any error of the system.
///
/// ```
/// let base = std::env::temp_dir().join(format!("bulla-files-{}", std::process::id()));
/// bulla_files::create_folder(&base.join("a/b"))?;
/// assert!(base.join("a/b").is_dir());
/// # std::fs::remove_dir_all(base)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn create_folder(folder: &Path) -> io::Result<()> {
    let missing: Vec<_> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    for folder in missing.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
        match builder.create(folder) {
            // Another process made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            created => created?,
        }
        sync_folder(folder_of(folder))?;
    }
    Ok(())
}

/// Makes new names in a folder durable: a rename is on the disk only when its folder is.
///
/// # Errors
/// Any error of the system.
#[cfg(unix)]
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

/// Windows has no handle on a folder that can be synced; NTFS journals the rename.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
