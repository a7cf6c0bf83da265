//! The same directed graphs of `true` for the tool, for the anchor driver and for build tools.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

/// A family of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each job needs the one before.
    Chain(usize),
    /// No job needs another.
    Fan(usize),
    /// Each job needs every job of the layer before.
    Layers(usize, usize),
}

impl Shape {
    /// What each job needs, by number; earlier jobs only.
    pub fn needs(self) -> Vec<Vec<usize>> {
        match self {
            Shape::Chain(count) => (0..count).map(|job| job.checked_sub(1).into_iter().collect()).collect(),
            Shape::Fan(count) => vec![Vec::new(); count],
            Shape::Layers(layers, width) => (0..layers * width)
                .map(|job| {
                    (job / width)
                        .checked_sub(1)
                        .map_or(Vec::new(), |above| (above * width..(above + 1) * width).collect())
                })
                .collect(),
        }
    }

    /// A workflow of a lane that runs `true`, `parallel` at a time; its sessions do one job each with a `fresh` context.
    pub fn workflow(self, parallel: usize, context: &str) -> String {
        let mut text = format!(
            "schema = \"striatum.workflow/1\"\nid = \"w\"\n\n[parallelism]\nmax_active_jobs = {parallel}\n\n\
             [lanes.t]\ncommand = [\"true\"]\nmax_sessions = {parallel}\n\n\
             [roles.worker]\ncontext = \"{context}\"\n"
        );
        for (job, needs) in self.needs().iter().enumerate() {
            let needs: Vec<String> = needs.iter().map(|need| format!("\"j{need}\"")).collect();
            let _ = write!(
                text,
                "\n[[jobs]]\nid = \"j{job}\"\nrole = \"worker\"\nlane = \"t\"\ntree = \"none\"\nneeds = [{}]\n",
                needs.join(", ")
            );
        }
        text
    }

    /// For ninja: phony outputs, so that nothing is stat'ed into being up to date.
    pub fn ninja(self) -> String {
        let mut text = "rule r\n  command = true\n".to_owned();
        for (job, needs) in self.needs().iter().enumerate() {
            let _ = writeln!(text, "build j{job}: r {}", names(needs));
        }
        text
    }

    /// For make.
    pub fn makefile(self) -> String {
        let all: Vec<usize> = (0..self.needs().len()).collect();
        let mut text = format!("all: {0}\n.PHONY: all {0}\n", names(&all));
        for (job, needs) in self.needs().iter().enumerate() {
            let _ = write!(text, "j{job}: {}\n\t@true\n", names(needs));
        }
        text
    }
}

fn names(jobs: &[usize]) -> String {
    jobs.iter().map(|job| format!("j{job}")).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Chain(count) => write!(out, "chain:{count}"),
            Shape::Fan(count) => write!(out, "fan:{count}"),
            Shape::Layers(layers, width) => write!(out, "layers:{layers}x{width}"),
        }
    }
}

impl FromStr for Shape {
    type Err = Box<dyn std::error::Error>;

    fn from_str(text: &str) -> Result<Shape, Self::Err> {
        let (kind, size) = text.split_once(':').ok_or("a shape is KIND:SIZE")?;
        Ok(match (kind, size.split_once('x')) {
            ("chain", None) => Shape::Chain(size.parse()?),
            ("fan", None) => Shape::Fan(size.parse()?),
            ("layers", Some((layers, width))) => Shape::Layers(layers.parse()?, width.parse()?),
            _ => return Err(format!("{text} is no shape").into()),
        })
    }
}
