// SPDX-License-Identifier: GPL-2.0
//! `docs/socket.schema.json` describes what is said at the socket: every line that any test here sends or gets is held
//! against it.

use std::sync::OnceLock;

use andante_admission::{
    Admission, Contract, Failure, Nearest, Obstacle, Offer, Overload, Piece, Placement, Promise,
    Refusal, Shortage, Test, Unproved, WindowFailure,
};
use jsonschema::Validator;
use serde::Serialize;
use serde_json::{Value, json};

use super::*;
use crate::protocol::{Limit, Refused};

fn in_docs(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(&in_docs("socket.schema.json")).unwrap()
}

/// Clients pass over what they do not know in a reply, so the schema allows it; here nothing may be unknown.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            if parts.contains_key("properties") {
                let unknown = parts.entry("additionalProperties");
                unknown.or_insert(json!(false));
            }
            parts.values_mut().for_each(strict);
        }
        Value::Array(parts) => parts.iter_mut().for_each(strict),
        _ => {}
    }
}

fn validator(of: &str) -> Validator {
    let mut schema = schema();
    strict(&mut schema);
    schema.as_object_mut().unwrap().remove("oneOf");
    schema["$ref"] = json!(format!("#/$defs/{of}"));
    jsonschema::validator_for(&schema).unwrap()
}

fn request() -> &'static Validator {
    static REQUEST: OnceLock<Validator> = OnceLock::new();
    REQUEST.get_or_init(|| validator("request"))
}

fn reply() -> &'static Validator {
    static REPLY: OnceLock<Validator> = OnceLock::new();
    REPLY.get_or_init(|| validator("reply"))
}

/// The daemon understands what is described, and nothing else.
pub fn is_as_described(line: &[u8], said: &impl Serialize) {
    reply_is_as_described(said);
    let asked: Option<Value> = serde_json::from_slice(line).ok();
    let described = asked.is_some_and(|asked| request().is_valid(&asked));
    let said = serde_json::to_value(said).unwrap();
    let understood = said["error"]["kind"] != "bad_request";
    let line = String::from_utf8_lossy(line);
    assert_eq!(described, understood, "{line}{said}");
}

pub fn reply_is_as_described(said: &impl Serialize) {
    let said = serde_json::to_value(said).unwrap();
    let wrong = reply().iter_errors(&said).map(|error| error.to_string());
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0], "{said}");
}

/// Each is on the page, and so are the examples.
#[test]
fn the_page_has_what_the_schema_has() {
    let page = in_docs("socket.md");
    let schema = schema();
    let requests = schema["$defs"]["request"]["oneOf"].as_array().unwrap();
    let ops = requests.iter().map(|one| &one["properties"]["op"]["const"]);
    let replies = schema["$defs"]["reply"]["properties"].as_object().unwrap();
    let kinds = replies["error"]["properties"]["kind"]["enum"]
        .as_array()
        .unwrap();
    let names = ops.chain(kinds).map(|name| name.as_str().unwrap());
    for name in names.chain(replies.keys().map(String::as_str)) {
        let (quoted, said) = (format!("`{name}`"), format!("{{\"{name}\":"));
        assert!(
            page.contains(&quoted) || page.contains(&said),
            "`{name}` is not on the page"
        );
    }
    for line in page
        .lines()
        .filter(|line| line.starts_with('{') && !line.contains('…'))
    {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(
            request().is_valid(&line) || reply().is_valid(&line),
            "{line}"
        );
    }
    assert!(page.contains("socket.schema.json"));
    let version = format!("version {}", andante_session::VERSION);
    assert!(schema["title"].as_str().unwrap().ends_with(&version));
}

/// Lines that no daemon of a test says.
#[test]
fn rare_answers_are_as_described() {
    let limits = vec![
        Limit::UserQuota {
            held_ppm: 1,
            asked_ppm: 2,
            limit_ppm: 3,
        },
        Limit::UsersQuota {
            held_ppm: 1,
            asked_ppm: 2,
            limit_ppm: 3,
        },
        Limit::SessionQuota {
            behind: true,
            held_ppm: 1,
            asked_ppm: 2,
            limit_ppm: 3,
        },
        Limit::Parent {
            name: "film".into(),
            limit_ppm: 3,
            held_ppm: 1,
            asked_ppm: 2,
        },
        Limit::Children {
            names: vec!["film".into()],
            held_ppm: 1,
            asked_ppm: 2,
        },
    ];
    let piece = |cpu| Piece {
        cpu,
        budget_ns: 1,
        offset_ns: 0,
        window_ns: 2,
    };
    let admission = Admission {
        placement: Placement::Split {
            pieces: vec![piece(0), piece(1)],
        },
        promise: Promise::Nothing(Unproved::PartialSlots),
        test: Test::WindowConstraint,
        weakened: vec!["film".into()],
    };
    let offer = Offer {
        contract: Contract::new("mpv", 1, 2),
        admission,
    };
    let obstacle = Obstacle {
        cpu: 0,
        failure: Failure::Utilisation {
            asked_ppm: 1,
            supply_ppm: 0,
        },
        overload: Some(Overload {
            at_ns: 1,
            demand_ns: 2,
            supply_ns: 1,
        }),
        windows: Some(WindowFailure::Endangers {
            unproved: Unproved::Overload,
            contracts: vec!["film".into()],
        }),
        holders: Vec::new(),
    };
    let refusal = Refusal {
        cpus: vec![obstacle],
        split: Some(Shortage {
            pieces: 2,
            window_ns: 1,
            found_ns: 1,
            needed_ns: 2,
        }),
        nearest: Nearest {
            largest_budget: Some(offer),
            shortest_period: None,
        },
    };
    reply_is_as_described(&Reply::Refused(Box::new(Refused { limits, refusal })));
}

/// A program that speaks otherwise is told so, and what to do.
#[test]
fn what_is_not_understood_is_refused() {
    let long = format!("{{\"op\":\"list\"{}}}", " ".repeat(16 << 10));
    let cases = [
        (r#"{"op":"hello","version":1}"#, "", r#"{"version":1}"#),
        (
            r#"{"op":"hello","version":2}"#,
            "version",
            "systemctl restart andante",
        ),
        (r#"{"op":"hello","version":0}"#, "version", "libandante"),
        (r#"{"op":"hello"}"#, "bad_request", "`version`"),
        (r#"{"op":"list","all":true}"#, "bad_request", "`all`"),
        (r#"{"op":"withdraw","now":true}"#, "bad_request", "`now`"),
        (
            r#"{"op":"retract","process":1,"role":"game","now":1}"#,
            "bad_request",
            "`now`",
        ),
        ("hello", "bad_request", "one JSON object a line"),
        ("", "bad_request", "one JSON object a line"),
        ("[]", "bad_request", "one JSON object a line"),
        (&long, "bad_request", "longer than 16384 bytes"),
    ];
    let lines: Vec<String> = cases.iter().map(|(line, ..)| format!("{line}\n")).collect();
    let answers = with_daemon(move |path| {
        let ask = |line: &String| {
            let mut stream = UnixStream::connect(path).unwrap();
            stream.write_all(line.as_bytes()).unwrap();
            let mut answer = String::new();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut answer).unwrap();
            answer
        };
        lines.iter().map(ask).collect::<Vec<_>>()
    });
    for ((line, kind, part), answer) in cases.iter().zip(answers) {
        let said: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            said["error"]["kind"].as_str().unwrap_or_default(),
            *kind,
            "{said}"
        );
        assert!(answer.contains(part), "{line}: {said}");
    }
}

/// A client asks nothing of a daemon that would take it for something else.
#[test]
fn a_client_of_another_version_does_not_ask() {
    for (says, part) in [
        (r#"{"hello":{"version":7}}"#, "libandante"),
        (
            r#"{"error":{"kind":"bad_request","message":"unknown variant `hello`"}}"#,
            "systemctl restart andante",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let other = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = std::io::BufRead::lines(std::io::BufReader::new(&stream));
            let first = lines.next().unwrap().unwrap();
            (&stream).write_all(format!("{says}\n").as_bytes()).unwrap();
            (first, lines.next().is_none())
        });
        let error = Client::connect(&path)
            .unwrap()
            .request(&Request::List {})
            .unwrap_err();
        assert!(
            matches!(&error, ClientError::Version(said) if said.contains(part)),
            "{error}"
        );
        let (first, was_all) = other.join().unwrap();
        assert_eq!(first, r#"{"op":"hello","version":1}"#);
        assert!(was_all, "it has asked nevertheless");
    }
}
