use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::dialer::{DialError, address};
use crate::client::{ProxyAddress, ServerAddress};

/// The head of a proxy's answer may not be larger.
const HEAD_CAP: usize = 8 << 10;

/// Asks a proxy for a tunnel to the server.
pub(super) async fn ask(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    proxy: &ProxyAddress,
    server: &ServerAddress,
) -> Result<(), DialError> {
    let shown = address(&proxy.host, proxy.port);
    let broken = |error: std::io::Error| DialError::Connect {
        to: format!("the proxy {shown}"),
        problem: error.to_string(),
    };
    let target = address(&server.host, server.port);
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(userinfo) = &proxy.userinfo {
        request += &format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(userinfo));
    }
    request += "\r\n";
    stream.write_all(request.as_bytes()).await.map_err(broken)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD_CAP {
            let answer = format!("its answer is larger than {HEAD_CAP} bytes");
            return Err(DialError::Proxy { proxy: shown, answer });
        }
        // Byte by byte: what follows the head belongs to the server.
        head.push(stream.read_u8().await.map_err(broken)?);
    }
    let answer = status_line(&head);
    let mut words = answer.split(' ');
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
    let is_success = words.next().is_some_and(|code| code.len() == 3 && code.starts_with('2'));
    if is_http && is_success { Ok(()) } else { Err(DialError::Proxy { proxy: shown, answer }) }
}

/// The first line, fit to be shown.
fn status_line(head: &[u8]) -> String {
    const LONGEST: usize = 200;
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let text = String::from_utf8_lossy(line);
    text.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Scheme;

    async fn answered(answer: &[u8]) -> (Result<(), DialError>, String) {
        let (mut ours, mut theirs) = tokio::io::duplex(64 << 10);
        theirs.write_all(answer).await.unwrap();
        let proxy = ProxyAddress {
            host: "proxy".to_owned(),
            port: 3128,
            userinfo: Some("user:pass@w%41rd".to_owned()),
        };
        let server = ServerAddress {
            scheme: Scheme::Https,
            host: "::1".to_owned(),
            port: 6443,
            path: String::new(),
        };
        let asked = ask(&mut ours, &proxy, &server).await;
        drop(ours);
        let mut seen = String::new();
        theirs.read_to_string(&mut seen).await.unwrap();
        (asked, seen)
    }

    #[tokio::test]
    async fn a_proxy_is_asked_for_the_server() {
        let (asked, seen) =
            answered(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n").await;
        assert_eq!(asked, Ok(()));
        let credentials = STANDARD.encode("user:pass@w%41rd");
        assert_eq!(
            seen,
            format!(
                "CONNECT [::1]:6443 HTTP/1.1\r\nHost: [::1]:6443\r\nProxy-Authorization: Basic {credentials}\r\n\r\n"
            )
        );
    }

    #[tokio::test]
    async fn a_refusal_is_shown_and_nothing_secret_with_it() {
        let (asked, _) = answered(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
        let error = asked.unwrap_err().to_string();
        assert!(error.contains("proxy:3128") && error.contains("407"), "{error}");
        assert!(error.contains("proxy-url") && !error.contains("pass@"), "{error}");
        let (asked, _) = answered(&[b'x'; 9000]).await;
        assert!(asked.unwrap_err().to_string().contains("larger than 8192 bytes"));
        let (asked, _) = answered(b"SSH-2.0-OpenSSH\r\n\r\n").await;
        assert!(asked.unwrap_err().to_string().contains("SSH-2.0"));
    }
}
