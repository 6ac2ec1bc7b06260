//! The official SDKs, as `make test` installs them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// Longer than any script takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// The Python with the SDK, isolated from the user's settings of Python and of proxies.
pub fn python() -> Command {
    let python = target().join("sdk-venv/bin/python");
    assert!(
        python.exists() && target().join("sdk-venv/stamp").exists(),
        "The official Python SDK is not installed ({} is missing). `make test` installs it and runs every test; \
         `make sdks` installs it alone.",
        python.display()
    );
    let mut command = Command::new(python);
    command.arg("-B");
    for name in ["PYTHONPATH", "PYTHONHOME", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env_remove(name);
    }
    command
}

/// Node with its SDK, or `None` where there is no Node. The tests then skip it.
pub fn node() -> Option<Command> {
    let modules = target().join("sdk-node/node_modules");
    modules.join("stripe").exists().then(|| {
        let mut command = Command::new("node");
        command.env("NODE_PATH", modules);
        command
    })
}

/// Runs a command to its end, and returns its output.
#[track_caller]
pub fn finish(mut command: Command) -> impl Future<Output = String> {
    let caller = std::panic::Location::caller();
    async move {
        let child = command.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(PATIENCE, child).await;
        let output = output.expect("the script ends in time").expect("the script starts");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{caller}: {command:?}\n{printed}\n{complaint}");
        printed
    }
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target")
}
