use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What to measure.
#[derive(Debug)]
pub struct Options {
    pub server: Server,
    /// Each number is measured; more than one shows growth.
    pub objects: Vec<usize>,
    pub events: usize,
    pub rounds: usize,
    /// Where the figures go, beside the table.
    pub json: Option<PathBuf>,
    /// Clients or `client/mode`s; empty is all.
    pub only: Vec<String>,
    pub shape: String,
    /// Where the programs are.
    pub programs: PathBuf,
    /// The day, as the table tells it.
    pub date: String,
}

/// Who serves the pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Server {
    /// Bytes rendered beforehand.
    #[default]
    Load,
    /// kube-apiserver, with etcd behind it.
    Real,
}

const HELP: &str = "\
tests/bench/side-by-side [--objects N,…] [--events N] [--rounds N] [--json FILE] [--only WHICH,…] [--shape typical|small]
                         [--server load|real]

  --objects  pods in the cluster (20000); several numbers are measured one by one, and show what grows with them
  --events   changes pushed as fast as they are taken (50000)
  --rounds   how often each client runs; the figures are medians (5)
  --json     also writes the figures here, for tests/bench/publish
  --only     clients (kubeflect, kube-rs, client-go) or single modes (kubeflect/typed), separated by commas
  --shape    typical: 6.1 KiB with managedFields; small: 1.6 KiB without
  --server   load: bytes rendered beforehand; real: kube-apiserver and etcd, built from their modules, with 2000 pods and
             5000 changes unless said otherwise, client-go with protobuf too, and no relist or latency";

/// What is run against a real server unless somebody picks.
const REAL: [&str; 7] = [
    "kube-rs/list",
    "client-go/list",
    "client-go/list-protobuf",
    "kubeflect/typed",
    "kubeflect/lazy",
    "kubeflect/lazy-list",
    "kubeflect/projection",
];

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            server: Server::Load,
            objects: Vec::new(),
            events: 0,
            rounds: 5,
            json: None,
            only: Vec::new(),
            shape: "typical".to_owned(),
            programs: PathBuf::from("."),
            date: String::new(),
        };
        while let Some(argument) = arguments.next() {
            if argument == "--help" || argument == "-h" {
                println!("{HELP}");
                std::process::exit(0);
            }
            let value = arguments.next().ok_or(format!("{argument} needs a value\n{HELP}"))?;
            let above_zero = |text: &str| match text.parse::<usize>() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(format!("{argument} {text}: write a number above 0")),
            };
            let number = || above_zero(&value);
            match argument.as_str() {
                "--objects" => {
                    options.objects = value.split(',').map(above_zero).collect::<Result<_, _>>()?
                }
                "--events" => options.events = number()?,
                "--rounds" => options.rounds = number()?,
                "--json" => options.json = Some(value.into()),
                "--only" => options.only = value.split(',').map(str::to_owned).collect(),
                "--shape" => options.shape = value,
                "--server" => options.server = Server::named(&value)?,
                "--programs" => options.programs = value.into(),
                "--date" => options.date = value,
                _ => return Err(format!("{argument} is no option\n{HELP}")),
            }
        }
        options.fill_in();
        Ok(options)
    }

    /// What nobody said.
    fn fill_in(&mut self) {
        let (objects, events) = match self.server {
            Server::Load => (20_000, 50_000),
            Server::Real => (2_000, 5_000),
        };
        if self.objects.is_empty() {
            self.objects = vec![objects];
        }
        if self.events == 0 {
            self.events = events;
        }
        if self.only.is_empty() && self.server == Server::Real {
            self.only = REAL.map(str::to_owned).into();
        }
    }

    pub fn wants(&self, client: &str, mode: &str) -> bool {
        let single = format!("{client}/{mode}");
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == client || *wanted == single)
    }

    /// The modes of a client that are named one by one.
    pub fn picked<'a>(&'a self, client: &'a str) -> impl Iterator<Item = &'a str> {
        let mode = move |wanted: &'a String| wanted.strip_prefix(client)?.strip_prefix('/');
        self.only.iter().filter_map(mode)
    }
}

impl Server {
    fn named(name: &str) -> Result<Self, String> {
        let known = [Self::Load, Self::Real].into_iter().find(|server| server.name() == name);
        known.ok_or(format!("--server {name}: a server is load or real"))
    }

    /// The program, too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Real => "real",
        }
    }
}
