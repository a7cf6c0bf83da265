//! Pictures of a graph: text for a terminal, mermaid and dot for others.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{Node, edges, layers, positions};
use crate::domain::frozen::JobType;

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// One line a job, in the order in which they can run.
    #[default]
    Text,
    /// A mermaid flowchart.
    Mermaid,
    /// Graphviz.
    Dot,
}

/// Draws the graph; the text ends with a newline.
pub fn render(nodes: &[Node], format: Format) -> String {
    match format {
        Format::Text => text(nodes),
        Format::Mermaid => mermaid(nodes),
        Format::Dot => dot(nodes),
    }
}

fn text(nodes: &[Node]) -> String {
    let mut rows: Vec<[String; 5]> = Vec::new();
    for (depth, layer) in layers(nodes).into_iter().enumerate() {
        for (place, node) in layer.into_iter().map(|at| &nodes[at]).enumerate() {
            let step = if place == 0 { (depth + 1).to_string() } else { String::new() };
            let id = node.id.clone();
            rows.push([step, id, word(node.kind).to_owned(), node.who.clone(), note(node)]);
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
            // Writing to a string can't fail.
            let _ = write!(line, "{cell:width$}  ");
        }
        line.push_str(&row[4]);
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn note(node: &Node) -> String {
    let mut parts = Vec::new();
    if let Some(state) = &node.state {
        parts.push(format!("[{state}]"));
    }
    if !node.needs.is_empty() {
        parts.push(format!("<- {}", node.needs.join(", ")));
    }
    parts.join(" ")
}

fn mermaid(nodes: &[Node]) -> String {
    let mut out = "flowchart TD\n".to_owned();
    for (at, node) in nodes.iter().enumerate() {
        let (open, close) = match node.kind {
            JobType::Checkpoint => ("{{", "}}"),
            JobType::Land => ("([", "])"),
            JobType::Review => ("[/", "/]"),
            _ => ("[", "]"),
        };
        let label = label(node, "<br/>").replace('"', "&quot;");
        let _ = writeln!(out, "    n{at}{open}\"{label}\"{close}");
    }
    for (from, to) in arrows(nodes) {
        let _ = writeln!(out, "    n{from} --> n{to}");
    }
    for (from, to) in returns(nodes) {
        let _ = writeln!(out, "    n{from} -. revise .-> n{to}");
    }
    out
}

fn dot(nodes: &[Node]) -> String {
    let mut out = "digraph run {\n    node [shape=box];\n".to_owned();
    for (at, node) in nodes.iter().enumerate() {
        let shape = match node.kind {
            JobType::Checkpoint => ", shape=diamond",
            JobType::Land => ", shape=ellipse",
            _ => "",
        };
        let label = label(node, "\n").replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = writeln!(out, "    n{at} [label=\"{label}\"{shape}];");
    }
    for (from, to) in arrows(nodes) {
        let _ = writeln!(out, "    n{from} -> n{to};");
    }
    for (from, to) in returns(nodes) {
        let _ = writeln!(out, "    n{from} -> n{to} [style=dashed, label=\"revise\", constraint=false];");
    }
    out.push_str("}\n");
    out
}

fn label(node: &Node, line_break: &str) -> String {
    let about = [word(node.kind), &node.who].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let lines = [Some(node.id.as_str()), Some(about.as_str()), node.state.as_deref()];
    lines.into_iter().flatten().collect::<Vec<_>>().join(line_break)
}

fn arrows(nodes: &[Node]) -> Vec<(usize, usize)> {
    let edges = edges(nodes);
    let arrow = |(to, needs): (usize, &Vec<usize>)| needs.iter().map(|from| (*from, to)).collect::<Vec<_>>();
    edges.iter().enumerate().flat_map(arrow).collect()
}

fn returns(nodes: &[Node]) -> Vec<(usize, usize)> {
    let positions = positions(nodes);
    let back = |(from, node): (usize, &Node)| Some((from, *positions.get(node.reviews.as_deref()?)?));
    nodes.iter().enumerate().filter_map(back).collect()
}

fn word(kind: JobType) -> &'static str {
    match kind {
        JobType::Generic => "generic",
        JobType::Draft => "draft",
        JobType::Build => "build",
        JobType::Test => "test",
        JobType::Review => "review",
        JobType::Synthesis => "synthesis",
        JobType::Checkpoint => "checkpoint",
        JobType::Land => "land",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Vec<Node> {
        let node = |id: &str, needs: &[&str], kind, who: &str, state: Option<&str>| Node {
            id: id.into(),
            needs: needs.iter().map(|need| (*need).into()).collect(),
            kind,
            reviews: (kind == JobType::Review).then(|| "draft".into()),
            who: who.into(),
            state: state.map(str::to_owned),
        };
        vec![
            node("draft", &[], JobType::Generic, "author/claude", Some("completed")),
            node("style", &["draft"], JobType::Review, "reviewer/codex", Some("running")),
            node("safety", &["draft"], JobType::Review, "reviewer", None),
            node("look", &["style", "safety"], JobType::Checkpoint, "", None),
            node("land", &["look"], JobType::Land, "", None),
        ]
    }

    #[test]
    fn a_panel_as_text() {
        insta::assert_snapshot!(render(&nodes(), Format::Text), @r"
        1  draft   generic     author/claude   [completed]
        2  style   review      reviewer/codex  [running] <- draft
           safety  review      reviewer        <- draft
        3  look    checkpoint                  <- style, safety
        4  land    land                        <- look
        ");
    }

    #[test]
    fn a_panel_as_mermaid() {
        insta::assert_snapshot!(render(&nodes(), Format::Mermaid), @r#"
        flowchart TD
            n0["draft<br/>generic author/claude<br/>completed"]
            n1[/"style<br/>review reviewer/codex<br/>running"/]
            n2[/"safety<br/>review reviewer"/]
            n3{{"look<br/>checkpoint"}}
            n4(["land<br/>land"])
            n0 --> n1
            n0 --> n2
            n1 --> n3
            n2 --> n3
            n3 --> n4
            n1 -. revise .-> n0
            n2 -. revise .-> n0
        "#);
    }

    #[test]
    fn a_panel_as_dot() {
        insta::assert_snapshot!(render(&nodes(), Format::Dot), @r#"
        digraph run {
            node [shape=box];
            n0 [label="draft\ngeneric author/claude\ncompleted"];
            n1 [label="style\nreview reviewer/codex\nrunning"];
            n2 [label="safety\nreview reviewer"];
            n3 [label="look\ncheckpoint", shape=diamond];
            n4 [label="land\nland", shape=ellipse];
            n0 -> n1;
            n0 -> n2;
            n1 -> n3;
            n2 -> n3;
            n3 -> n4;
            n1 -> n0 [style=dashed, label="revise", constraint=false];
            n2 -> n0 [style=dashed, label="revise", constraint=false];
        }
        "#);
    }
}
