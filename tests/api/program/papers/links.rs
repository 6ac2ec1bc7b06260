//! Each link in a paper leads to a file, and to a heading in it.

use super::{Paper, papers, root};

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for paper in papers() {
        let prose = paper.prose();
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("https://") {
                continue;
            }
            links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { paper.path.clone() } else { paper.path.parent().unwrap().join(file) };
            assert!(target.exists(), "{:?} names {link}", paper.path);
            if !anchor.is_empty() {
                let target = target.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                let anchors = Paper::read(&target).anchors();
                assert!(anchors.iter().any(|known| known == anchor), "{:?} names {link}", paper.path);
            }
        }
    }
    assert!(links > 50, "{links}");
}

#[test]
fn every_paper_is_named_by_another() {
    let papers = papers();
    let prose: String = papers.iter().map(Paper::prose).collect();
    for paper in papers {
        let name = paper.path.file_name().unwrap().to_str().unwrap();
        assert!(prose.contains(&format!("{name})")) || prose.contains(&format!("{name}#")), "{name}");
    }
}
