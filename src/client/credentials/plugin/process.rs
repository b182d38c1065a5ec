use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use futures::TryFutureExt as _;
use futures::future::{Either, select};
use secrecy::zeroize::Zeroizing;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::PluginOptions;

const LONGEST_OUTPUT: usize = 1024 * 1024;
const LONGEST_ERRORS: usize = 64 * 1024;
/// How long the standard error is read after the end.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// What an error shows of what the plugin wrote to its standard error.
const SHOWN_ERRORS: usize = 200;

/// Runs the plugin once and gives what it printed. Whatever happens, it does not outlive this.
///
/// Only the plugin itself is killed, not what it started in turn.
pub(super) async fn run(options: &PluginOptions) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut command = Command::new(&options.command);
    command
        .args(&options.arguments)
        .env_clear()
        .envs(&options.environment)
        .env("KUBERNETES_EXEC_INFO", options.exec_info())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| format!("can not be started: {}{}", error.kind(), options.hint()))?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("can not be started: it has no output".to_owned());
    };
    let mut errors = Vec::new();
    let ran = tokio::time::timeout(options.timeout, async {
        let errors = pin!(keep_start(stderr, &mut errors));
        let end = pin!(async {
            let status = child.wait().map_err(|error| format!("was lost: {}", error.kind()));
            tokio::try_join!(read_output(stdout), status)
        });
        // Either pipe may fill while the other is waited for.
        match select(end, errors).await {
            Either::Left((ended, errors)) => {
                // What it started may hold the pipe open for ever.
                let _said_all: bool = tokio::time::timeout(LAST_WORDS, errors).await.is_ok();
                ended
            }
            Either::Right(((), end)) => end.await,
        }
    })
    .await;
    let problem = match ran {
        Ok(Ok((output, status))) if status.success() => return Ok(output),
        Ok(Ok((_, status))) => format!("failed with {status}"),
        Ok(Err(problem)) => problem,
        Err(_elapsed) => format!("took longer than {:?} and was stopped", options.timeout),
    };
    // Also waits for its end, so that no zombie stays.
    if let Err(error) = child.kill().await {
        tracing::debug!(error = %error.kind(), "a plugin was gone before it could be killed");
    }
    Err(match shorten(&errors) {
        Some(errors) => format!("{problem}; it said: {errors}"),
        None => problem,
    })
}

async fn read_output(stdout: impl AsyncRead + Unpin) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut output = Zeroizing::new(Vec::new());
    let longest = u64::try_from(LONGEST_OUTPUT + 1).unwrap_or(u64::MAX);
    let read = stdout.take(longest).read_to_end(&mut output).await;
    read.map_err(|error| format!("can not be read from: {}", error.kind()))?;
    match output.len() <= LONGEST_OUTPUT {
        true => Ok(output),
        false => Err(format!("printed more than {} KiB and was stopped", LONGEST_OUTPUT / 1024)),
    }
}

/// Keeps the first of what is written, and reads on to the end: a plugin may say much and still be right.
async fn keep_start(mut stderr: impl AsyncRead + Unpin, kept: &mut Vec<u8>) {
    let mut chunk = [0; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut chunk).await {
        let room = LONGEST_ERRORS.saturating_sub(kept.len());
        kept.extend_from_slice(chunk.get(..length.min(room)).unwrap_or_default());
    }
}

/// One line without control characters, which could move a terminal's cursor.
fn shorten(errors: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(errors);
    let words = text.split(|character: char| character.is_whitespace() || character.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let end = line.char_indices().nth(SHOWN_ERRORS).map(|(end, _)| end);
    match end {
        _ if line.is_empty() => None,
        None => Some(line),
        Some(end) => Some(format!("{}…", line.get(..end).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shown_as_one_short_line() {
        assert_eq!(shorten(b" \n"), None);
        assert_eq!(
            shorten(b"no\x1b[31m login\r\nplease\n").as_deref(),
            Some("no [31m login please")
        );
        let long = shorten("ä".repeat(5000).as_bytes()).unwrap();
        assert_eq!(long.chars().count(), SHOWN_ERRORS + 1);
    }
}
