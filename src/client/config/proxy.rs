use std::net::IpAddr;

use super::address::shown;
use super::{ConfigError, Environment};
use crate::client::{ProxyAddress, Scheme, ServerAddress};

/// The proxy the environment asks for: `HTTPS_PROXY`, unless `NO_PROXY` names the server or the server is this machine.
///
/// Plain http has no proxy: ours are asked with CONNECT.
pub(super) fn proxy_of(
    environment: &Environment,
    server: &ServerAddress,
) -> Result<Option<ProxyAddress>, ConfigError> {
    let text = |names: [&'static str; 2]| {
        names.into_iter().find_map(|name| Some((name, environment.get(name)?.to_str()?.trim())))
    };
    let Some((name, address)) = text(["HTTPS_PROXY", "https_proxy"]) else { return Ok(None) };
    if server.scheme == Scheme::Http || server.is_loopback() || address.is_empty() {
        return Ok(None);
    }
    if text(["NO_PROXY", "no_proxy"]).is_some_and(|(_, list)| is_excepted(list, server)) {
        return Ok(None);
    }
    // As curl and Go read it: `proxy:3128` means `http://proxy:3128`.
    let address = match address.contains("://") {
        true => address.to_owned(),
        false => format!("http://{address}"),
    };
    let proxy = ProxyAddress::parse(&address)
        .map_err(|error| ConfigError::new(name, format!("{} {error}", shown(&address))))?;
    Ok(Some(proxy))
}

/// Whether one of the entries, between commas, is the server. An entry that makes no sense names nobody.
fn is_excepted(list: &str, server: &ServerAddress) -> bool {
    list.split(',').map(str::trim).any(|entry| names(entry, server))
}

fn names(entry: &str, server: &ServerAddress) -> bool {
    if entry == "*" {
        return true;
    }
    let address = server.host.parse::<IpAddr>().ok();
    if let Some((network, bits)) = entry.split_once('/') {
        let network = network.parse::<IpAddr>().ok().zip(bits.parse::<u32>().ok());
        return network
            .zip(address)
            .is_some_and(|((network, bits), address)| shares_prefix(network, address, bits));
    }
    let (host, port) = split_port(entry);
    if port.is_some_and(|port| port.parse() != Ok(server.port)) {
        return false;
    }
    if let Some(address) = address {
        return host.parse() == Ok(address);
    }
    let host = host.to_ascii_lowercase();
    let name = server.host.trim_end_matches('.');
    let is_below = |domain: &str| {
        name.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    };
    match host.strip_prefix("*.").or_else(|| host.strip_prefix('.')) {
        Some(domain) => !domain.is_empty() && is_below(domain),
        None => !host.is_empty() && (name == host || is_below(&host)),
    }
}

/// `host:port`, `[v6]:port`, `[v6]`, or a host or address alone.
fn split_port(entry: &str) -> (&str, Option<&str>) {
    if let Some((host, port)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, port.strip_prefix(':'));
    }
    match entry.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (entry, None),
    }
}

fn shares_prefix(network: IpAddr, address: IpAddr, bits: u32) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let differing = network.to_bits() ^ address.to_bits();
            bits <= 32 && differing.leading_zeros() >= bits
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let differing = network.to_bits() ^ address.to_bits();
            bits <= 128 && differing.leading_zeros() >= bits
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excepts(list: &str, server: &str) -> bool {
        is_excepted(list, &ServerAddress::parse(server).unwrap())
    }

    #[test]
    fn no_proxy_names_hosts_domains_networks_and_ports() {
        for (list, server) in [
            ("*", "https://anything"),
            ("a, example.com", "https://example.com"),
            ("EXAMPLE.com", "https://api.example.com"),
            (".example.com", "https://api.example.com"),
            ("*.example.com", "https://api.example.com"),
            ("example.com:6443", "https://example.com:6443"),
            ("10.0.0.1", "https://10.0.0.1:6443"),
            ("10.0.0.0/8,x", "https://10.200.3.4"),
            ("0.0.0.0/0", "https://10.200.3.4"),
            ("fd00::/8", "https://[fd12::1]:6443"),
            ("fd12::1", "https://[fd12::1]"),
            ("[fd12::1]:443", "https://[fd12::1]"),
        ] {
            assert!(excepts(list, server), "{list} {server}");
        }
    }

    #[test]
    fn no_proxy_names_nobody_else() {
        for (list, server) in [
            ("", "https://example.com"),
            (",,", "https://example.com"),
            (".", "https://example.com"),
            ("example.com", "https://badexample.com"),
            (".example.com", "https://example.com"),
            ("example.com:443", "https://example.com:6443"),
            ("10.0.0.0/8", "https://11.0.0.1"),
            ("10.0.0.0/33", "https://10.0.0.1"),
            ("10.0.0.0/8", "https://[fd12::1]"),
            ("10.0.0.0/8", "https://ten.example.com"),
            ("0.0.1", "https://10.0.0.1"),
        ] {
            assert!(!excepts(list, server), "{list} {server}");
        }
    }

    fn proxy(environment: &Environment, server: &str) -> Option<String> {
        let server = ServerAddress::parse(server).unwrap();
        proxy_of(environment, &server)
            .unwrap()
            .map(|proxy| format!("{}:{}", proxy.host, proxy.port))
    }

    #[test]
    fn the_environment_decides_for_servers_elsewhere() {
        let environment = Environment::empty()
            .variable("https_proxy", "proxy:3128")
            .variable("NO_PROXY", "10.0.0.0/8");
        assert_eq!(proxy(&environment, "https://example.com").as_deref(), Some("proxy:3128"));
        assert_eq!(proxy(&environment, "https://10.0.0.1"), None);
        assert_eq!(proxy(&environment, "https://127.0.0.1:6443"), None);
        assert_eq!(proxy(&environment, "https://localhost"), None);
        assert_eq!(proxy(&environment, "http://example.com"), None);
        assert_eq!(proxy(&Environment::empty(), "https://example.com"), None);
        let environment = environment.variable("HTTPS_PROXY", "http://first:1");
        assert_eq!(proxy(&environment, "https://example.com").as_deref(), Some("first:1"));
    }

    #[test]
    fn a_bad_proxy_of_the_environment_is_named_without_its_password() {
        let environment =
            Environment::empty().variable("HTTPS_PROXY", "socks5://me:secret@proxy:1080");
        let server = ServerAddress::parse("https://example.com").unwrap();
        assert_eq!(
            proxy_of(&environment, &server).unwrap_err().to_string(),
            "HTTPS_PROXY: \"…@proxy:1080\" is a SOCKS proxy, which is not supported: \
             use an HTTP proxy, http://HOST:PORT"
        );
    }
}
