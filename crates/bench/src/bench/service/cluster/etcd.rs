//! Members of etcd on this machine, and what they say about themselves.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::quiet;
use serde_json::Value;

use super::super::served::{free_address, used_memory, written_bytes};

/// The most that etcd's database may hold: what etcd advises at the most.
const QUOTA: u64 = 8 << 30;

/// A cluster, which ends when it is dropped.
pub(super) struct Etcd {
    members: Vec<Member>,
}

struct Member {
    process: Child,
    client: String,
}

impl Etcd {
    /// Starts members, with their data in `folder`. If there is data, they go on with it.
    pub(super) fn start(folder: &Path, members: usize) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let addresses = |_| Ok((free_address()?, free_address()?));
        let addresses = (0..members).map(addresses).collect::<Result<Vec<(String, String)>>>()?;
        let all: Vec<_> =
            addresses.iter().enumerate().map(|(i, (_, peer))| format!("m{i}=http://{peer}")).collect();
        let mut etcd = Self { members: Vec::new() };
        for (number, (client, peer)) in addresses.into_iter().enumerate() {
            let log = File::create(folder.join(format!("m{number}.log")))?;
            let mut command = Command::new("etcd");
            command.args(["--name", &format!("m{number}"), "--data-dir"]).arg(data(folder, number));
            command.args(["--listen-client-urls", &format!("http://{client}")]);
            command.args(["--advertise-client-urls", &format!("http://{client}")]);
            command.args(["--listen-peer-urls", &format!("http://{peer}")]);
            command.args(["--initial-advertise-peer-urls", &format!("http://{peer}")]);
            command.args(["--initial-cluster", &all.join(","), "--log-level", "warn"]);
            command.args(["--quota-backend-bytes", &QUOTA.to_string()]);
            let process = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
            etcd.members.push(Member { process: process.context("cannot start etcd")?, client });
        }
        etcd.wait()?;
        Ok(etcd)
    }

    fn wait(&self) -> Result<()> {
        let start = Instant::now();
        for member in &self.members {
            while !get(&member.client, "/health").is_ok_and(|answer| answer.contains("\"true\"")) {
                ensure!(start.elapsed() < Duration::from_secs(60), "etcd does not start");
                thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }

    /// The addresses of all members, the `first` one first, as `serve.toml` has them.
    pub(super) fn endpoints(&self, first: usize) -> String {
        let mut all: Vec<_> =
            self.members.iter().map(|member| format!("\"http://{}\"", member.client)).collect();
        let members = all.len();
        all.rotate_left(first % members);
        all.join(", ")
    }

    /// The work that all members together have done so far.
    pub(super) fn done(&self) -> Result<Done> {
        let mut done = Done::default();
        for member in &self.members {
            let metrics = get(&member.client, "/metrics")?;
            let sum = |name: &str| sum(&metrics, name);
            done.computed += sum("process_cpu_seconds_total");
            done.reads += sum("grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Range\"");
            done.writes += sum("grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Txn\"");
            done.syncs += sum("etcd_disk_wal_fsync_duration_seconds_count");
            done.syncing += sum("etcd_disk_wal_fsync_duration_seconds_sum");
            done.written += written_bytes(member.process.id())?;
            done.database += sum("etcd_mvcc_db_total_size_in_bytes");
        }
        Ok(done)
    }

    /// The address of the first member.
    pub(super) fn endpoint(&self) -> String {
        self.endpoints(0).split(", ").next().unwrap_or_default().trim_matches('"').to_owned()
    }

    /// Has the first member forget former values, and give their space back.
    pub(super) fn forget_history(&self) -> Result<()> {
        let etcdctl = |arguments: &[&str]| {
            let mut etcdctl = Command::new("etcdctl");
            etcdctl.env("ETCDCTL_API", "3").args([
                "--endpoints",
                &self.endpoint(),
                "--command-timeout",
                "300s",
            ]);
            quiet(etcdctl.args(arguments))
        };
        let status: Value = serde_json::from_str(&etcdctl(&["endpoint", "status", "--write-out", "json"])?)?;
        let revision = status[0]["Status"]["header"]["revision"].to_string();
        etcdctl(&["compact", "--physical", &revision])?;
        etcdctl(&["defrag"])?;
        Ok(())
    }

    /// The memory of the first member, in MB.
    pub(super) fn memory(&self) -> Result<f64> {
        used_memory(self.members.first().context("no member")?.process.id())
    }
}

/// The work that etcd has done since it started.
#[derive(Clone, Copy, Default)]
pub(super) struct Done {
    /// Seconds of its threads.
    pub(super) computed: f64,
    /// Requests that read.
    pub(super) reads: f64,
    /// Requests that write on a condition, whether or not it was true.
    pub(super) writes: f64,
    /// How often the log of writes was synced, and for how many seconds.
    pub(super) syncs: f64,
    pub(super) syncing: f64,
    /// Bytes to the disk.
    pub(super) written: f64,
    /// The databases' size in bytes.
    pub(super) database: f64,
}

impl Done {
    /// The work that was done after `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            computed: self.computed - before.computed,
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            syncs: self.syncs - before.syncs,
            syncing: self.syncing - before.syncing,
            written: self.written - before.written,
            database: self.database - before.database,
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for member in &mut self.members {
            // It may have ended by itself.
            let _ = member.process.kill();
            let _ = member.process.wait();
        }
    }
}

fn data(folder: &Path, member: usize) -> PathBuf {
    folder.join(format!("m{member}"))
}

/// The body of an answer over HTTP.
fn get(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    // Version 1.0, so that the answer comes in one piece.
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let Some((_, body)) = answer.split_once("\r\n\r\n") else { bail!("etcd answers no HTTP") };
    Ok(body.to_owned())
}

/// The sum of all metrics whose names and labels begin so.
fn sum(metrics: &str, name: &str) -> f64 {
    let number = |line: &str| line.strip_prefix(name)?.rsplit(' ').next()?.parse::<f64>().ok();
    metrics.lines().filter_map(number).sum()
}

/// The time of writes of 2 KiB that are synced one by one, as etcd does it: the median, and the
/// 99th of 100, in milliseconds.
pub(super) fn sync_times(folder: &Path) -> Result<(f64, f64)> {
    fs::create_dir_all(folder)?;
    let path = folder.join("synced");
    let mut file = File::create(&path)?;
    let mut times = Vec::new();
    for _ in 0..300 {
        let start = Instant::now();
        file.write_all(&[1; 2048])?;
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    fs::remove_file(&path)?;
    times.sort_unstable_by(f64::total_cmp);
    Ok((times[150], times[297]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_added_over_their_labels() {
        let metrics = "# HELP a b\na{x=\"1\",y=\"2\"} 3\na{x=\"1\",y=\"3\"} 4\na{x=\"2\"} 8\nab 1.5e+02\n";
        assert_eq!(sum(metrics, "a{x=\"1\""), 7.0);
        assert_eq!(sum(metrics, "ab "), 150.0);
        assert_eq!(sum(metrics, "b"), 0.0);
    }
}
