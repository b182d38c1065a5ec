//! A server of pods for the benchmark: bytes rendered beforehand, written to sockets by plain threads.
//!
//! `load OBJECTS SHAPE SEED` listens on a port of its own choice and says which. It lists (whole or in pages), streams
//! lists and watches, and does on its input:
//!
//! ```text
//! push N          N changes, as fast as they are taken
//! pace N RATE     N changes, RATE a second, each written on its own
//! expire          ends every watch with 410
//! ```

#[path = "../../../pods.rs"]
mod pods;

mod cluster;
mod http;

use std::error::Error;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::{env, io, thread};

use cluster::Cluster;
use pods::Shape;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [objects, shape, seed] = arguments.as_slice() else {
        return Err("say OBJECTS SHAPE SEED".into());
    };
    let shape = match shape.as_str() {
        "typical" => Shape::Typical,
        "small" => Shape::Small,
        _ => return Err("a shape is typical or small".into()),
    };
    let cluster = Arc::new(Mutex::new(Cluster::new(objects.parse()?, shape, seed.parse()?)));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (bytes, objects) = cluster.lock().expect("nobody panics with it").size();
    let port = listener.local_addr()?.port();
    probe::tell(&format!(
        r#"{{"event":"listening","at":"http://127.0.0.1:{port}","object_bytes":{}}}"#,
        bytes / objects.max(1)
    ));
    let commanded = Arc::clone(&cluster);
    thread::spawn(move || {
        for line in io::stdin().lines() {
            let line = line.expect("the runner writes text");
            command(&commanded, &line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        std::process::exit(0);
    });
    for stream in listener.incoming() {
        let (stream, cluster) = (stream?, Arc::clone(&cluster));
        // A client that goes away ends its own connection, and nothing else.
        thread::spawn(move || http::serve(stream, &cluster).ok());
    }
    Ok(())
}

fn command(cluster: &Mutex<Cluster>, line: &str) -> Result<(), Box<dyn Error>> {
    let mut cluster = cluster.lock().expect("nobody panics with it");
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["push", count] => cluster.push(count.parse()?),
        ["pace", count, rate] => cluster.pace(count.parse()?, rate.parse()?),
        ["expire"] => cluster.expire(),
        _ => return Err("no such command".into()),
    }
    Ok(())
}
