//! Walks of real folders, and the digests of what is in them.
#![cfg(unix)]

use bulla_sums::{
    Algorithm, Dash, EntryFilter, Feed as _, FileSystems, FolderPolicy, HashMode, HashParams, Helpers,
    Hidden, Ignored, Job, JobOutcome, Links, Meter, NamePolicy, NoProgress, OpenPolicy, Output, PathFeed,
    PoolOptions, ReadError, ReadOptions, Rules, Threads, WalkError, hash_files, path_from, run_in_order,
};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The results of a walk: each file with its digest, and the errors.
#[derive(Default)]
struct WalkResult {
    files: Vec<(PathBuf, Result<Output, ReadError>)>,
    errors: Vec<WalkError>,
}

fn walk_with(paths: Vec<PathBuf>, rules: &Rules, hashing: HashParams, threads: usize) -> WalkResult {
    let reading = ReadOptions {
        hashing: Arc::new(hashing),
        open_policy: OpenPolicy::RegularFile(Links::Follow),
        name_policy: NamePolicy::MustStay,
        dash: Dash::FileName,
        by_blocks: true,
        meter: &NoProgress,
    };
    let work = |job: Job, helpers: &dyn Helpers| match job {
        Job::Folder(folder) => match folder.list(rules) {
            Err(error) => WalkResult { errors: vec![error], ..WalkResult::default() }.into(),
            Ok(listed) => {
                let result = WalkResult { errors: listed.errors, ..WalkResult::default() };
                JobOutcome { result, then: Some(listed.jobs) }
            }
        },
        Job::Batch(batch) => {
            let results = hash_files(&reading, batch.folder(), batch.names(), helpers);
            let then = batch.rest(results.len());
            let path = |index| path_from(&batch.folder().path_of(batch.name(index)));
            let files = results.into_iter().enumerate();
            let files = files.map(|(index, result)| (path(index), result.map(|hashed| hashed.output)));
            JobOutcome { result: WalkResult { files: files.collect(), errors: Vec::new() }, then }
        }
    };
    let mut all = WalkResult::default();
    let each = |found: WalkResult| {
        all.files.extend(found.files);
        all.errors.extend(found.errors);
        Ok::<_, ()>(())
    };
    let plan = PoolOptions { threads: Threads::AtMost(threads), meter: &NoProgress, on_large: &|| {} };
    run_in_order(&plan, Box::new(PathFeed::new(paths.into_iter(), FolderPolicy::Walk)), work, each).unwrap();
    all
}

fn walk(root: &Path, rules: &Rules) -> WalkResult {
    walk_with(vec![root.to_owned()], rules, HashParams::plain_blake3(), 3)
}

fn write(root: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// The paths below `root` that were found, in their order.
fn names(root: &Path, found: &WalkResult) -> Vec<String> {
    let name = |path: &PathBuf| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    found.files.iter().map(|(path, _)| name(path)).collect()
}

#[test]
fn every_file_is_found_in_the_order_of_paths_with_its_digest() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let sizes = [0, 1, 1000, 1024, 1025, 4096, 65_536, 131_071, 131_072, 200_000, 262_144, 1 << 20, 3 << 20];
    for index in 0..700 {
        let size = sizes[index % sizes.len()] / if index > 60 { 64 } else { 1 };
        let folder = ["a", "a.b", "a/c", "a/c/d/e", "z"][index % 5];
        write(root, &format!("{folder}/{index}"), vec![index as u8; size]);
    }
    let key = HashMode::Keyed([7; 32].into());
    for (hashing, keyed) in [(HashParams::plain_blake3(), false), (HashParams::blake3(key, 32, 0), true)] {
        for threads in [1, 2, 4] {
            let hashing = match keyed {
                true => HashParams::blake3(HashMode::Keyed([7; 32].into()), 32, 0),
                false => HashParams::plain_blake3(),
            };
            let found = walk_with(vec![root.to_owned()], &Rules::default(), hashing, threads);
            assert!(found.errors.is_empty());
            let mut sorted = names(root, &found);
            sorted.sort();
            assert_eq!(names(root, &found), sorted);
            assert_eq!(sorted.len(), 700);
            for (path, output) in &found.files {
                let content = fs::read(path).unwrap();
                let expected =
                    if keyed { blake3::keyed_hash(&[7; 32], &content) } else { blake3::hash(&content) };
                assert!(output.as_ref().unwrap().is(expected.as_bytes()), "{}", path.display());
            }
        }
        drop(hashing);
    }
}

#[test]
fn every_function_gives_its_digest() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "a", "abc");
    // FIPS 180-4, RFC 7693.
    let digests = [
        (Algorithm::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            Algorithm::Sha512,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
        (
            Algorithm::Blake2b,
            "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d17d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923",
        ),
        (Algorithm::Blake2s, "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"),
    ];
    for (algorithm, digest) in digests {
        let hashing = HashParams::plain(algorithm, algorithm.default_length() as u64, 0).unwrap();
        let found = walk_with(vec![root.path().to_owned()], &Rules::default(), hashing, 1);
        let expected = hex::decode(digest).unwrap();
        assert!(found.files[0].1.as_ref().unwrap().is(&expected), "{algorithm:?}");
    }
    assert!(HashParams::plain(Algorithm::Sha256, 31, 0).is_none());
    assert!(HashParams::plain(Algorithm::Blake2b, 65, 0).is_none());
}

#[test]
fn rules_leave_files_out() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for name in ["a.rs", "b.py", ".hidden", ".folder/c.rs", "target/d.rs", "deep/e.rs", "deep/f.txt"] {
        write(root, name, name);
    }
    write(root, "large.rs", vec![0; 5000]);
    symlink("a.rs", root.join("link.rs")).unwrap();
    let with = |change: &dyn Fn(&mut Rules)| {
        let mut rules = Rules::default();
        change(&mut rules);
        names(root, &walk(root, &rules))
    };
    let all =
        [".folder/c.rs", ".hidden", "a.rs", "b.py", "deep/e.rs", "deep/f.txt", "large.rs", "target/d.rs"];
    assert_eq!(with(&|_| {}), all);
    assert_eq!(with(&|rules| rules.hidden = Hidden::Skip), all[2..]);
    assert_eq!(with(&|rules| rules.sizes = Some(1000..=u64::MAX)), ["large.rs"]);
    assert_eq!(with(&|rules| rules.globs(&["*.txt".into()]).unwrap()), ["deep/f.txt"]);
    assert_eq!(
        with(&|rules| rules.globs(&["*.rs".into(), "!target".into(), "!.folder".into()]).unwrap()),
        ["a.rs", "deep/e.rs", "large.rs"]
    );
    assert_eq!(with(&|rules| rules.types(&["py".into()]).unwrap()), ["b.py"]);
    let followed = with(&|rules| rules.links = Links::Follow);
    assert!(followed.contains(&"link.rs".to_owned()) && followed.len() == all.len() + 1);
    assert!(Rules::default().globs(&["[".into()]).is_err());
    assert!(Rules::default().types(&["nonsense".into()]).is_err());
}

#[test]
fn files_that_git_ignores_are_left_out_only_on_request() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    for name in
        ["kept", "a.log", "target/x", "sub/target/y", "sub/b.log", "sub/keep.log", "sub/only", "excluded"]
    {
        write(&root, name, name);
    }
    write(&root, ".git/info/exclude", "excluded\n");
    write(&root, ".gitignore", "*.log\n/target\n");
    write(&root, "sub/.gitignore", "!keep.log\nonly\n");
    let mut rules = Rules::default();
    assert_eq!(walk(&root, &rules).files.len(), 11);
    rules.ignored = Ignored::Skip;
    let found = names(&root, &walk(&root, &rules));
    assert_eq!(found, [".gitignore", "kept", "sub/.gitignore", "sub/keep.log", "sub/target/y"]);
    // A walk that begins further down honors the lists of the folders around it.
    let sub = root.join("sub");
    assert_eq!(names(&sub, &walk(&sub, &rules)), [".gitignore", "keep.log", "target/y"]);
}

#[test]
fn a_link_that_leads_back_is_reported_and_ends() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "a/b/file", "x");
    symlink("../..", root.join("a/b/up")).unwrap();
    symlink("nowhere", root.join("broken")).unwrap();
    assert_eq!(names(root, &walk(root, &Rules::default())), ["a/b/file"]);
    let mut rules = Rules::default();
    rules.links = Links::Follow;
    let found = walk(root, &rules);
    assert_eq!(names(root, &found), ["a/b/file"]);
    let errors: Vec<_> = found.errors.iter().map(|error| error.path.clone()).collect();
    assert_eq!(errors, [root.join("broken"), root.join("a/b/up")]);
}

#[test]
fn other_file_systems_are_left_out_on_request() {
    let mut rules = Rules::default();
    rules.file_systems = FileSystems::One;
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a/b", "x");
    assert_eq!(walk(folder.path(), &rules).files.len(), 1);
    // /proc is another file system than the root's.
    let found = walk_names(Path::new("/"), &rules);
    assert!(!found.contains(&PathBuf::from("/proc")), "{found:?}");
}

/// The folders in `root` that a walk would enter.
fn walk_names(root: &Path, rules: &Rules) -> Vec<PathBuf> {
    let listed = bulla_sums::PendingFolder::root(root.as_os_str().as_encoded_bytes()).list(rules).unwrap();
    let mut feed = listed.jobs;
    let mut folders = Vec::new();
    while let Some(job) = feed.next() {
        if let Job::Folder(folder) = job {
            folders.push(path_from(&folder.path()));
        }
    }
    folders
}

#[test]
fn what_the_kernel_makes_up_is_not_walked() {
    let found = walk(Path::new("/proc"), &Rules::default());
    assert!(found.files.is_empty());
    assert!(matches!(
        found.errors[..],
        [WalkError { kind: bulla_sums::WalkErrorKind::PseudoFileSystem, .. }]
    ));
}

#[test]
fn special_files_are_found_only_with_everything() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "file", "x");
    symlink("file", root.join("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    assert_eq!(names(root, &walk(root, &Rules::default())), ["file"]);
    let mut rules = Rules::default();
    rules.entries = EntryFilter::Everything;
    let found = walk(root, &rules);
    assert_eq!(names(root, &found), ["file", "link", "socket"]);
    // Nobody waits for it, or reads it.
    assert!(found.files[2].1.is_err());
}

#[test]
fn a_folder_deeper_than_any_path_is_walked() {
    let root = tempfile::tempdir().unwrap();
    // Paths of this depth are longer than the system's limit: only the walk, which opens folder by
    // folder, gets there.
    let name = "n".repeat(200);
    let mut folder = fs::File::open(root.path()).unwrap();
    for _ in 0..60 {
        rustix::fs::mkdirat(&folder, name.as_str(), rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
        folder = rustix::fs::openat(&folder, name.as_str(), flags, rustix::fs::Mode::empty()).unwrap().into();
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let mut file: fs::File =
        rustix::fs::openat(&folder, "file", flags, rustix::fs::Mode::RUSR).unwrap().into();
    std::io::Write::write_all(&mut file, b"deep").unwrap();
    let found = walk(root.path(), &Rules::default());
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    assert_eq!(found.files.len(), 1);
    assert!(found.files[0].0.as_os_str().len() > 12_000);
    assert!(found.files[0].1.as_ref().unwrap().is(blake3::hash(b"deep").as_bytes()));
}

#[test]
fn files_that_change_while_they_are_read_are_reported() {
    /// Writes to the file when the reader has read it.
    struct Writer(PathBuf);
    impl Meter for Writer {
        fn add_bytes(&self, _: u64) {
            use std::io::Write as _;
            let mut file = fs::File::options().append(true).open(&self.0).unwrap();
            file.write_all(b"more").unwrap();
        }
    }
    let root = tempfile::tempdir().unwrap();
    for size in [200_000, 3 << 20] {
        write(root.path(), "file", vec![0; size]);
        let meter = Writer(root.path().join("file"));
        let reading = ReadOptions {
            hashing: Arc::new(HashParams::plain_blake3()),
            open_policy: OpenPolicy::RegularFile(Links::Follow),
            name_policy: NamePolicy::MayChange,
            dash: Dash::FileName,
            by_blocks: true,
            meter: &meter,
        };
        let path = root.path().join("file");
        let mut errors = Vec::new();
        let work = |job: Job, helpers: &dyn Helpers| match job {
            Job::Batch(batch) => {
                JobOutcome::from(hash_files(&reading, batch.folder(), batch.names(), helpers))
            }
            Job::Folder(_) => panic!("a file is no folder"),
        };
        let each = |results| {
            errors.extend(results);
            Ok::<_, ()>(())
        };
        let plan = PoolOptions { threads: Threads::AtMost(2), meter: &meter, on_large: &|| {} };
        run_in_order(&plan, Box::new(PathFeed::new([path].into_iter(), FolderPolicy::Open)), work, each)
            .unwrap();
        assert!(matches!(errors[..], [Err(ReadError::Changed)]), "{errors:?}");
    }
}

#[test]
fn a_file_that_is_not_read_to_its_end_has_no_result_and_nothing_after_it() {
    use std::sync::atomic::{AtomicU64, Ordering};
    /// Stops the work when so many bytes were read.
    struct StopAt(u64, AtomicU64);
    impl Meter for StopAt {
        fn add_bytes(&self, bytes: u64) {
            self.1.fetch_add(bytes, Ordering::SeqCst);
        }
        fn is_stopped(&self) -> bool {
            self.1.load(Ordering::SeqCst) >= self.0
        }
    }
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for (name, size) in [("a", 10), ("b", 8 << 20), ("c", 10), ("d/e", 10)] {
        write(root, name, vec![1; size]);
    }
    let rules = Rules::default();
    for (threads, hashing) in [
        (1, HashParams::plain_blake3()),
        (3, HashParams::plain_blake3()),
        (3, HashParams::plain(Algorithm::Sha256, 32, 0).unwrap()),
    ] {
        let meter = StopAt(1 << 20, AtomicU64::new(0));
        let reading = ReadOptions {
            hashing: Arc::new(hashing),
            open_policy: OpenPolicy::RegularFile(Links::Refuse),
            name_policy: NamePolicy::MayChange,
            dash: Dash::FileName,
            by_blocks: true,
            meter: &meter,
        };
        let work = |job: Job, helpers: &dyn Helpers| match job {
            Job::Folder(folder) => match folder.list(&rules) {
                Ok(listed) => JobOutcome { result: Vec::new(), then: Some(listed.jobs) },
                Err(error) => panic!("{error:?}"),
            },
            Job::Batch(batch) => {
                let results = hash_files(&reading, batch.folder(), batch.names(), helpers);
                let then = batch.rest(results.len());
                JobOutcome { result: results, then }
            }
        };
        let mut sizes = Vec::new();
        let each = |results: Vec<Result<_, ReadError>>| {
            sizes.extend(
                results.into_iter().map(|result| result.map(|hashed: bulla_sums::HashedFile| hashed.size)),
            );
            Ok::<_, ()>(())
        };
        let plan = PoolOptions { threads: Threads::AtMost(threads), meter: &meter, on_large: &|| {} };
        run_in_order(
            &plan,
            Box::new(PathFeed::new([root.to_owned()].into_iter(), FolderPolicy::Walk)),
            work,
            each,
        )
        .unwrap();
        assert!(matches!(sizes[..], [Ok(10)]), "{threads} threads: {sizes:?}");
    }
}

/// Puts a link to it in the place of a folder or file.
fn replace_by_link(path: &Path) {
    let away = path.with_extension("away");
    fs::rename(path, &away).unwrap();
    symlink(&away, path).unwrap();
}

#[test]
fn a_link_that_takes_the_place_of_a_folder_is_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let rules = Rules::default();
    for name in ["sub/file", "named/file", "other/file"] {
        write(root, name, "x");
    }
    // After the folder around it was listed.
    let pending = bulla_sums::PendingFolder::root(root.as_os_str().as_encoded_bytes());
    let mut content = pending.list(&rules).unwrap().jobs;
    let mut folders = Vec::new();
    while let Some(job) = content.next() {
        let Job::Folder(folder) = job else { panic!("there are only folders") };
        folders.push(folder);
    }
    replace_by_link(&root.join("sub"));
    let entered: Vec<_> = folders.into_iter().map(|folder| folder.list(&rules).is_ok()).collect();
    assert_eq!(entered, [true, true, false]);
    // After it was looked at, because the user named it.
    let named = |name: &str, folders| PathFeed::new([root.join(name)].into_iter(), folders);
    let Some(Job::Folder(folder)) = named("named", FolderPolicy::WalkUnlessLink).next() else {
        panic!("a folder")
    };
    replace_by_link(&root.join("named"));
    assert!(folder.list(&rules).is_err());
    // A link that the user names.
    assert!(matches!(named("named", FolderPolicy::WalkUnlessLink).next(), Some(Job::Batch(_))));
    let Some(Job::Folder(folder)) = named("named", FolderPolicy::Walk).next() else { panic!("a folder") };
    assert!(folder.list(&rules).is_ok());
}

#[test]
fn a_name_that_leads_to_another_file_after_reading_is_an_error_if_it_has_to_stay() {
    /// Gives the name of a file that is open to another one.
    struct Replace(PathBuf, PathBuf);
    impl Meter for Replace {
        fn add_bytes(&self, _: u64) {}
        fn wants_names(&self) -> bool {
            true
        }
        fn set_current_file(&self, path: &Path) {
            assert_eq!(path, self.0);
            fs::rename(&self.1, &self.0).unwrap();
        }
    }
    let root = tempfile::tempdir().unwrap();
    for size in [10, 200_000, 3 << 20] {
        for name_policy in [NamePolicy::MustStay, NamePolicy::MayChange] {
            let (path, other) = (root.path().join("a"), root.path().join("b"));
            write(root.path(), "a", vec![1; size]);
            write(root.path(), "b", vec![1; size]);
            let meter = Replace(path.clone(), other);
            let reading = ReadOptions {
                hashing: Arc::new(HashParams::plain_blake3()),
                open_policy: OpenPolicy::RegularFile(Links::Refuse),
                name_policy,
                dash: Dash::FileName,
                by_blocks: true,
                meter: &meter,
            };
            let work = |job: Job, helpers: &dyn Helpers| match job {
                Job::Batch(batch) => hash_files(&reading, batch.folder(), batch.names(), helpers).into(),
                Job::Folder(_) => panic!("a file"),
            };
            let mut results = Vec::new();
            let each = |more: Vec<_>| {
                results.extend(more);
                Ok::<_, ()>(())
            };
            let plan = PoolOptions { threads: Threads::AtMost(2), meter: &meter, on_large: &|| {} };
            run_in_order(&plan, Box::new(PathFeed::new([path].into_iter(), FolderPolicy::Open)), work, each)
                .unwrap();
            match name_policy {
                NamePolicy::MustStay => {
                    assert!(matches!(results[..], [Err(ReadError::Replaced)]), "{results:?}")
                }
                NamePolicy::MayChange => assert!(matches!(results[..], [Ok(_)]), "{results:?}"),
            }
        }
    }
}
