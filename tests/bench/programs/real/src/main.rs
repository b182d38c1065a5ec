//! A real API server with pods, in place of the load server: `real OBJECTS SHAPE SEED`.
//!
//! Starts etcd and kube-apiserver, makes the pods of the load server as far as an API server lets anybody, and says where
//! clients find it. `push N` on its input makes N changes. Everything it started ends with it.

#[path = "../../../../cluster/certificates.rs"]
mod certificates;
#[path = "../../../../cluster/control_plane.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod control_plane;
#[path = "../../../pods.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod pods;
#[path = "../../../../cluster/process.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod process;
mod support;
#[path = "../../../../cluster/users.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod users;
mod writer;

use std::error::Error;
use std::{env, io};

use control_plane::ControlPlane;
use pods::Shape;
use users::User;
use writer::Writer;

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [objects, shape, seed] = arguments.as_slice() else {
        return Err("say OBJECTS SHAPE SEED".into());
    };
    let shape = match shape.as_str() {
        "typical" => Shape::Typical,
        "small" => Shape::Small,
        _ => return Err("a shape is typical or small".into()),
    };
    let plane = ControlPlane::start(&[]).await;
    let url = format!("https://{}", plane.address());
    let kubeconfig = User::Admin.write_kubeconfig(&plane.folder, &url);
    let mut writer = Writer::new(users::load(&kubeconfig))?;
    let bytes = writer.create(objects.parse()?, shape, seed.parse()?).await?;
    let at = kubeconfig.display();
    probe::tell(&format!(r#"{{"event":"listening","at":"{at}","object_bytes":{bytes}}}"#));
    for line in io::stdin().lines() {
        let line = line?;
        let count = line.strip_prefix("push ").ok_or(format!("no such command: {line}"))?;
        let last = writer.push(count.parse()?).await?;
        probe::tell(&format!(r#"{{"event":"pushed","last":{last}}}"#));
    }
    Ok(())
}
