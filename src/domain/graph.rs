//! The shape of a run: which job comes after which, and a picture of it.
//!
//! Nodes by name, edges by `needs`. It does not know what a job does; a state is a word that somebody else found.

mod render;

use std::collections::BTreeMap;

use crate::domain::frozen::{JobSpec, JobType};

pub use render::{Format, render};

/// A job as far as its place among others goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The job's name.
    pub id: String,
    /// Names of jobs that come before it.
    pub needs: Vec<String>,
    /// What it is.
    pub kind: JobType,
    /// The job that it may send back.
    pub reviews: Option<String>,
    /// Who does it, as `role` or `role/lane`; empty for a person.
    pub who: String,
    /// How it stands; none before a run.
    pub state: Option<String>,
}

impl Node {
    /// The node of a frozen job, without a state.
    pub fn of(job: &JobSpec) -> Node {
        let who = match (&job.role, &job.lane) {
            (Some(role), Some(lane)) => format!("{role}/{lane}"),
            (Some(role), None) => role.clone(),
            (None, _) => String::new(),
        };
        Node {
            id: job.id.clone(),
            needs: job.needs.clone(),
            kind: job.kind,
            reviews: job.reviewed_job().map(str::to_owned),
            who,
            state: None,
        }
    }
}

/// The nodes in layers: each stands in the first layer after all that it needs.
///
/// Positions into `nodes`, in their order within a layer; needs that name no node count as fulfilled. Nodes on or
/// behind a cycle are in no layer.
pub fn layers(nodes: &[Node]) -> Vec<Vec<usize>> {
    let edges = edges(nodes);
    let mut open: Vec<usize> = edges.iter().map(Vec::len).collect();
    let mut after = vec![Vec::new(); nodes.len()];
    for (node, needs) in edges.iter().enumerate() {
        for need in needs {
            after[*need].push(node);
        }
    }
    let mut layers = Vec::new();
    let mut layer: Vec<usize> = (0..nodes.len()).filter(|node| open[*node] == 0).collect();
    while !layer.is_empty() {
        let mut next = Vec::new();
        for follower in layer.iter().flat_map(|node| &after[*node]) {
            open[*follower] -= 1;
            if open[*follower] == 0 {
                next.push(*follower);
            }
        }
        next.sort_unstable();
        layers.push(std::mem::replace(&mut layer, next));
    }
    layers
}

/// The names along one cycle, the first again at the end; none when there is no cycle.
pub fn cycle(nodes: &[Node]) -> Option<Vec<String>> {
    let edges = edges(nodes);
    let mut is_placed = vec![false; nodes.len()];
    for node in layers(nodes).into_iter().flatten() {
        is_placed[node] = true;
    }
    // What no layer holds needs something that no layer holds: walking along needs must come round.
    let mut walked: Vec<usize> = Vec::new();
    let mut at = is_placed.iter().position(|placed| !placed)?;
    while !walked.contains(&at) {
        walked.push(at);
        at = *edges[at].iter().find(|need| !is_placed[**need])?;
    }
    let mut path: Vec<usize> = walked.iter().copied().skip_while(|node| *node != at).collect();
    path.push(at);
    Some(path.into_iter().rev().map(|node| nodes[node].id.clone()).collect())
}

/// For each node, which others come before it, directly or not.
pub fn ancestors(nodes: &[Node]) -> Vec<Ancestors> {
    let edges = edges(nodes);
    let mut all = vec![Ancestors::new(nodes.len()); nodes.len()];
    for node in layers(nodes).into_iter().flatten() {
        let mut own = Ancestors::new(nodes.len());
        for need in &edges[node] {
            own.add(*need);
            own.add_all(&all[*need]);
        }
        all[node] = own;
    }
    all
}

/// A set of positions.
#[derive(Clone, Debug)]
pub struct Ancestors(Vec<u64>);

impl Ancestors {
    fn new(size: usize) -> Ancestors {
        Ancestors(vec![0; size.div_ceil(64)])
    }

    fn add(&mut self, position: usize) {
        self.0[position / 64] |= 1 << (position % 64);
    }

    fn add_all(&mut self, other: &Ancestors) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// Whether a node is among them.
    pub fn has(&self, position: usize) -> bool {
        self.0.get(position / 64).is_some_and(|word| word & (1 << (position % 64)) != 0)
    }
}

/// Where each name stands; the first, should it stand twice.
fn positions(nodes: &[Node]) -> BTreeMap<&str, usize> {
    let mut positions = BTreeMap::new();
    for (position, node) in nodes.iter().enumerate() {
        positions.entry(node.id.as_str()).or_insert(position);
    }
    positions
}

/// For each node the positions of what it needs; unknown names and repetitions left out.
fn edges(nodes: &[Node]) -> Vec<Vec<usize>> {
    let positions = positions(nodes);
    let needs = |node: &Node| {
        let mut needs: Vec<usize> =
            node.needs.iter().filter_map(|need| positions.get(need.as_str()).copied()).collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    };
    nodes.iter().map(needs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, needs: &[&str]) -> Node {
        Node { id: id.into(), needs: needs.iter().map(|need| (*need).into()).collect(), ..Node::default() }
    }

    #[test]
    fn a_diamond_has_three_layers() {
        let nodes = [node("d", &["b", "c"]), node("b", &["a"]), node("c", &["a"]), node("a", &[])];
        assert_eq!(layers(&nodes), [vec![3], vec![1, 2], vec![0]]);
        assert_eq!(cycle(&nodes), None);
        let before = ancestors(&nodes);
        assert!(before[0].has(3) && before[0].has(1) && !before[1].has(2) && !before[3].has(0));
    }

    #[test]
    fn a_cycle_is_told_in_the_order_of_its_edges() {
        let nodes = [node("x", &["c"]), node("a", &["c"]), node("b", &["a"]), node("c", &["b"])];
        let path = cycle(&nodes).map(|path| path.join(" -> "));
        assert_eq!(path.as_deref(), Some("c -> a -> b -> c"));
        let alone = cycle(&[node("a", &["a"])]).map(|path| path.join(" -> "));
        assert_eq!(alone.as_deref(), Some("a -> a"));
    }

    #[test]
    fn unknown_needs_do_not_hold_a_node_back() {
        assert_eq!(layers(&[node("a", &["nobody"])]), [vec![0]]);
    }
}
