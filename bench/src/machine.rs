//! What this machine is, and what its processes use of it (Linux: `/proc`).

use std::{
    fs,
    io::{Seek, Write},
    path::Path,
    time::{Duration, Instant},
};

use crate::Result;

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}; this is measured on Linux").into())
}

/// Fields of `/proc/PID/stat` behind the name, which may itself have spaces; the first is the state.
fn stat(pid: i32) -> Result<Vec<i64>> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    Ok(behind.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect())
}

fn ticks(ticks: i64) -> Duration {
    Duration::from_secs_f64(ticks.max(0) as f64 / ticks_per_second())
}

pub(crate) fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// CPU that a process has used, without its children.
pub(crate) fn cpu(pid: i32) -> Result<Duration> {
    let stat = stat(pid)?;
    Ok(ticks(stat.iter().skip(11).take(2).sum()))
}

/// CPU that a process and its children have used, those that have ended included.
pub(crate) fn cpu_of_all(pid: i32) -> Result<Duration> {
    let mut sum = ticks(stat(pid)?.iter().skip(11).take(4).sum());
    for child in children(pid)? {
        sum += cpu(child).unwrap_or_default(); // it may have ended since it was listed
    }
    Ok(sum)
}

pub(crate) fn children(pid: i32) -> Result<Vec<i32>> {
    let all = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    Ok(all.filter(|&other| stat(other).is_ok_and(|stat| stat.get(1) == Some(&i64::from(pid)))).collect())
}

/// How long all CPUs together have been idle, and existed, in ticks.
pub(crate) fn idle() -> Result<(f64, f64)> {
    let stat = read("/proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    let fields: Vec<f64> = line.split_whitespace().skip(1).take(8).filter_map(|field| field.parse().ok()).collect();
    Ok((fields.iter().skip(3).take(2).sum(), fields.iter().sum()))
}

/// Memory of a process that is in RAM, in bytes.
pub(crate) fn resident(pid: i32) -> Result<u64> {
    let status = read(&format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    Ok(line.split_whitespace().next().unwrap_or("0").parse::<u64>()? * 1024)
}

/// Raises what this process, and those that it starts, may have open to what the system allows; gives it.
pub(crate) fn files() -> Result<usize> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX)))
}

/// So many of `wished` connections at once as this process may have, and the server.
pub(crate) fn connections(wished: usize) -> Result<usize> {
    let files = files()?;
    let most = files.saturating_sub(200).min(25_000); // each has a port of its own on the loopback
    if most < wished {
        eprintln!("{most} connections instead of {wished}: this process may have {files} files open (`ulimit -n`)");
    }
    Ok(most.min(wished))
}

/// In a line.
pub(crate) fn describe() -> Result<String> {
    let cpus = std::thread::available_parallelism()?;
    let cpuinfo = read("/proc/cpuinfo")?;
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let meminfo = read("/proc/meminfo")?;
    let memory = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap_or_default();
    let memory: u64 = memory.split_whitespace().next().unwrap_or("0").parse()?;
    let kernel = read("/proc/sys/kernel/osrelease")?;
    let flush = flush(&std::env::temp_dir())?;
    Ok(format!(
        "{cpus} CPUs ({}), {} GiB of memory, Linux {}; a write of 8 KiB and its flush take {:.2} ms",
        model.trim_start_matches([' ', '\t', ':']),
        memory.div_ceil(1024 * 1024),
        kernel.trim(),
        flush.as_secs_f64() * 1e3,
    ))
}

/// The median of 200 writes of 8 KiB with their `fdatasync`.
fn flush(folder: &Path) -> Result<Duration> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut times = Vec::with_capacity(200);
    for _ in 0..200 {
        let start = Instant::now();
        file.rewind()?;
        file.write_all(&[7; 8192])?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
