//! A million hosts, mixed as they are: no site is asked sooner than it is owed, and what is allowed is used.

mod sim;

use std::process::ExitCode;
use std::time::Instant;

pub(crate) fn run(hosts: usize) -> ExitCode {
    let begin = Instant::now();
    let findings = sim::simulate(hosts);
    println!("hosts              {hosts}");
    println!("requests           {}", findings.requests);
    println!("virtual days       {:.2}", findings.days);
    println!("real seconds       {:.1}", begin.elapsed().as_secs_f64());
    println!("violations         {}", findings.violations);
    if let Some(first) = &findings.first {
        println!("the first          {first}");
    }
    println!("allowed rate used  {:.2} %", findings.used * 100.0);
    if let Some(delay) = findings.last_delay {
        println!(
            "for ever 429, 403  one request in {} s in the end",
            delay.as_secs()
        );
    }
    println!("hosts remembered   {} at most", findings.most_remembered);
    if let Some(peak) = peak() {
        println!("peak memory        {peak}");
    }
    let kept = findings.violations == 0
        && findings.used >= 0.98
        && findings
            .last_delay
            .is_none_or(|delay| delay.as_secs() >= 3_600);
    if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What the system has counted, where it says so.
fn peak() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
