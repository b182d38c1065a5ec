use std::net::Ipv6Addr;

use percent_encoding::percent_decode_str;

use crate::client::{ProxyAddress, Scheme, ServerAddress};

/// An address that can not be used. It does not repeat the address, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct AddressError {
    problem: &'static str,
}

const NO_SERVER: &str = "is no address of a server: write https://HOST:PORT";
const NO_PROXY_ADDRESS: &str = "is no address of a proxy: write http://HOST:PORT";

impl ServerAddress {
    /// Reads `https://host`, `https://host:port/prefix` or `http://…`; an address of IPv6 is in brackets.
    ///
    /// ```
    /// use kubeflect::client::ServerAddress;
    ///
    /// let address = ServerAddress::parse("https://[::1]:6443/clusters/dev/")?;
    /// assert_eq!((address.host.as_str(), address.port), ("::1", 6443));
    /// assert_eq!(address.to_string(), "https://[::1]:6443/clusters/dev");
    /// # Ok::<(), kubeflect::client::AddressError>(())
    /// ```
    ///
    /// # Errors
    /// When it has another scheme, no host, a bad port, a user, a query or a fragment.
    pub fn parse(address: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = split_scheme(address).ok_or(problem(NO_SERVER))?;
        let (scheme, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "https" => (Scheme::Https, 443),
            "http" => (Scheme::Http, 80),
            _ => {
                return Err(problem("has a scheme that is not supported: write https://HOST:PORT"));
            }
        };
        if rest.contains(['?', '#']) {
            return Err(problem("has a query or a fragment: leave out all from ? or #"));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(problem(
                "holds a user or a password: leave out all before @ and set up a user instead",
            ));
        }
        let (host, port) = split_port(authority).ok_or(problem(NO_SERVER))?;
        let path = path.trim_end_matches('/');
        let is_plain = |segment: &str| {
            !segment.is_empty()
                && segment != "."
                && segment != ".."
                && segment
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && !b"\\%\"<>".contains(&byte))
        };
        if !path.split('/').skip(1).all(is_plain) {
            return Err(problem(
                "has a path with empty, dotted or escaped segments: write it plainly",
            ));
        }
        Ok(Self { scheme, host, port: port.unwrap_or(default_port), path: path.to_owned() })
    }
}

impl ProxyAddress {
    /// Reads `http://host:port` or `http://user:password@host:port`.
    ///
    /// # Errors
    /// When it has another scheme, no host, a bad port or a path.
    pub fn parse(address: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = split_scheme(address).ok_or(problem(NO_PROXY_ADDRESS))?;
        match scheme.to_ascii_lowercase().as_str() {
            "http" => {}
            "https" => {
                return Err(problem(
                    "asks for TLS to the proxy, which is not supported: write http://HOST:PORT",
                ));
            }
            "socks4" | "socks4a" | "socks5" | "socks5h" | "socks" => {
                return Err(problem(
                    "is a SOCKS proxy, which is not supported: use an HTTP proxy, http://HOST:PORT",
                ));
            }
            _ => return Err(problem(NO_PROXY_ADDRESS)),
        }
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(problem(
                "has a path or a query, which a proxy has not: write http://HOST:PORT",
            ));
        }
        let (userinfo, authority) = match authority.rsplit_once('@') {
            None => (None, authority),
            Some((userinfo, authority)) => {
                let decoded = percent_decode_str(userinfo)
                    .decode_utf8()
                    .map_err(|_not_utf8| problem("holds a user or a password that is not UTF-8"))?;
                if decoded.chars().any(char::is_control) {
                    return Err(problem("holds a user or a password with control characters"));
                }
                (Some(decoded.into_owned()), authority)
            }
        };
        let (host, port) = split_port(authority).ok_or(problem(NO_PROXY_ADDRESS))?;
        Ok(Self { host, port: port.unwrap_or(80), userinfo })
    }
}

/// What an error may show of an address: all of it, unless there could be a password in it.
pub(super) fn shown(address: &str) -> String {
    const LONGEST: usize = 200;
    match address.rsplit_once('@') {
        Some((_secret, rest)) => format!("\"…@{}\"", clip(rest, LONGEST)),
        None => format!("\"{}\"", clip(address, LONGEST)),
    }
}

fn clip(text: &str, longest: usize) -> String {
    text.chars().take(longest).flat_map(char::escape_debug).collect()
}

fn problem(problem: &'static str) -> AddressError {
    AddressError { problem }
}

fn split_scheme(address: &str) -> Option<(&str, &str)> {
    address.split_once("://").filter(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
}

/// `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split_port(authority: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            let host = host.parse::<Ipv6Addr>().ok()?.to_string();
            match port {
                "" => (host, None),
                port => (host, Some(port.strip_prefix(':')?)),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (name(host)?, Some(port)),
            None => (name(authority)?, None),
        },
    };
    let port = match port {
        None => None,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(port.parse().ok().filter(|port| *port != 0)?)
        }
        Some(_) => return None,
    };
    Some((host, port))
}

/// A name of DNS, or an address of IPv4.
fn name(host: &str) -> Option<String> {
    let is_name = (1..=253).contains(&host.len())
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        && !host.starts_with(['.', '-'])
        && !host.contains("..");
    is_name.then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(address: &str) -> Result<String, String> {
        ServerAddress::parse(address)
            .map(|address| address.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_has_a_scheme_a_host_a_port_and_a_path() {
        for (address, read) in [
            ("https://Example.com", "https://example.com:443"),
            ("http://127.0.0.1:8001/", "http://127.0.0.1:8001"),
            ("HTTPS://10.0.0.1:6443", "https://10.0.0.1:6443"),
            ("https://[2001:DB8::1]:6443", "https://[2001:db8::1]:6443"),
            ("https://[::1]", "https://[::1]:443"),
            (
                "https://rancher.example.com/k8s/clusters/c-1/",
                "https://rancher.example.com:443/k8s/clusters/c-1",
            ),
        ] {
            assert_eq!(server(address), Ok(read.to_owned()));
        }
        assert_eq!(
            ServerAddress::parse("https://[::1]").map(|address| address.host),
            Ok("::1".to_owned())
        );
    }

    #[test]
    fn a_bad_server_says_what_to_write() {
        const PATH: &str = "has a path with empty, dotted or escaped segments: write it plainly";
        for (address, error) in [
            ("", NO_SERVER),
            ("example.com:6443", NO_SERVER),
            ("https://", NO_SERVER),
            ("https://:6443", NO_SERVER),
            ("https://host:0", NO_SERVER),
            ("https://host:65536", NO_SERVER),
            ("https://host:+1", NO_SERVER),
            ("https://host:", NO_SERVER),
            ("https://::1:6443", NO_SERVER),
            ("https://[::1", NO_SERVER),
            ("https://[nine]:1", NO_SERVER),
            ("https://ho st", NO_SERVER),
            ("https://host\r\n", NO_SERVER),
            ("ftp://host", "has a scheme that is not supported: write https://HOST:PORT"),
            ("https://host/?a=b", "has a query or a fragment: leave out all from ? or #"),
            ("https://host#a", "has a query or a fragment: leave out all from ? or #"),
            (
                "https://me:secret@host",
                "holds a user or a password: leave out all before @ and set up a user instead",
            ),
            ("https://host/a//b", PATH),
            ("https://host/a/../b", PATH),
            ("https://host/a%2fb", PATH),
            ("https://host/a b", PATH),
        ] {
            assert_eq!(server(address), Err(error.to_owned()), "{address}");
        }
    }

    #[test]
    fn a_proxy_may_have_a_user_that_is_never_shown() {
        let proxy = ProxyAddress::parse("http://me:s%40cret@proxy.example.com:3128/").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.example.com", 3128));
        assert_eq!(proxy.userinfo.as_deref(), Some("me:s@cret"));
        assert!(!format!("{proxy:?}").contains("cret"));
        assert_eq!(
            ProxyAddress::parse("http://[::1]").map(|proxy| (proxy.host, proxy.port)),
            Ok(("::1".to_owned(), 80))
        );
    }

    #[test]
    fn a_proxy_of_another_kind_is_refused() {
        for (address, error) in [
            (
                "socks5://proxy:1080",
                "is a SOCKS proxy, which is not supported: use an HTTP proxy, http://HOST:PORT",
            ),
            (
                "https://proxy",
                "asks for TLS to the proxy, which is not supported: write http://HOST:PORT",
            ),
            ("proxy:3128", NO_PROXY_ADDRESS),
            (
                "http://proxy/path",
                "has a path or a query, which a proxy has not: write http://HOST:PORT",
            ),
        ] {
            assert_eq!(ProxyAddress::parse(address).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn an_address_is_shown_without_what_may_be_a_password() {
        assert_eq!(shown("ftp://host"), "\"ftp://host\"");
        assert_eq!(shown("https://me:se@cret@host\n"), "\"…@host\\n\"");
    }
}
