//! `run graph`: the shape of a run with the state of each job, as text, mermaid or dot.

use serde::{Deserialize, Serialize};

use super::bounded;
use crate::domain::frozen::JobType;
use crate::domain::graph::{Format, Node, render};
use crate::error::Result;
use crate::store;
use crate::verbs::Ctx;
use crate::verbs::run::find;

/// Jobs drawn.
const SHOWN: u32 = 1_000;

/// How it is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Drawing {
    /// One line a job, in the order in which they can run.
    #[default]
    Text,
    /// A mermaid flowchart.
    Mermaid,
    /// Graphviz.
    Dot,
}

impl Drawing {
    const fn format(self) -> Format {
        match self {
            Drawing::Text => Format::Text,
            Drawing::Mermaid => Format::Mermaid,
            Drawing::Dot => Format::Dot,
        }
    }
}

/// What `run graph` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GraphRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
    /// How it is drawn.
    pub format: Drawing,
}

/// A job in the graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GraphNode {
    /// The job.
    pub job: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: JobType,
    /// Jobs that come before it.
    pub needs: Vec<String>,
    /// The job that it may send back.
    pub reviews: Option<String>,
    /// Who does it, as `role` or `role/lane`; empty for a person.
    pub who: String,
    /// Where it is.
    pub state: Option<String>,
}

/// What `run graph` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GraphReport {
    /// The run's name; none in a store without runs.
    pub run: Option<String>,
    /// The picture.
    pub graph: String,
    /// What it shows.
    pub jobs: Vec<GraphNode>,
    /// How many jobs are not shown.
    pub left_out: u32,
}

/// Draws a run.
pub fn graph(ctx: &Ctx, request: &GraphRequest) -> Result<GraphReport> {
    ctx.read(|read| {
        let Some(run) = find::if_any(ctx, read, request.run.as_deref())? else {
            return Ok(GraphReport { run: None, graph: String::new(), jobs: Vec::new(), left_out: 0 });
        };
        let mut jobs = store::job::of_run(read, run.id, SHOWN)?;
        let total = store::tally::counts(read, run.id)?.iter().map(|count| count.jobs).sum();
        let left_out = bounded(&mut jobs, SHOWN, total);
        let nodes: Vec<Node> =
            jobs.iter().map(|job| Node { state: Some(job.state.to_string()), ..Node::of(&job.spec) }).collect();
        let graph = render(&nodes, request.format.format());
        Ok(GraphReport { run: Some(run.name), graph, jobs: nodes.into_iter().map(shown).collect(), left_out })
    })
}

fn shown(node: Node) -> GraphNode {
    GraphNode {
        job: node.id,
        kind: node.kind,
        needs: node.needs,
        reviews: node.reviews,
        who: node.who,
        state: node.state,
    }
}
