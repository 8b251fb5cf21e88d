//! A proxy between one program and another that can be closed, or made to hold back what is under
//! way.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// What a proxy does with connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    Open,
    /// What is sent waits, and arrives when the gate is opened.
    Paused,
    /// Connections are ended, and new ones too.
    Closed,
}

type Rule = Box<dyn Fn(Option<&str>) -> bool + Send>;

struct ProxyState {
    gate: Gate,
    /// Who may connect, by the name with which nodes of etcd call each other.
    rule: Rule,
    connections: Vec<Connection>,
}

struct Connection {
    from: Option<String>,
    ends: [TcpStream; 2],
}

impl Connection {
    fn end(&self) {
        self.ends.iter().for_each(|end| drop(end.shutdown(Shutdown::Both)));
    }
}

pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<ProxyState>,
    changed: Condvar,
}

impl Proxy {
    /// To a port of this machine; open.
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = ProxyState { gate: Gate::Open, rule: Box::new(|_| true), connections: Vec::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || drop(shared.serve(stream, target)));
            }
        });
        Self { port, shared }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address at which HTTP clients reach what is behind it.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn set(&self, gate: Gate) {
        self.shared.state.lock().unwrap().gate = gate;
        self.shared.changed.notify_all();
        self.check();
    }

    /// Lets pass only those for whom `rule` is true.
    pub fn only_if(&self, rule: impl Fn(Option<&str>) -> bool + Send + 'static) {
        self.shared.state.lock().unwrap().rule = Box::new(rule);
    }

    /// Ends connections that may not be any more.
    pub fn check(&self) {
        let mut state = self.shared.state.lock().unwrap();
        let ProxyState { gate, rule, connections } = &mut *state;
        connections.retain(|connection| {
            let stays = *gate != Gate::Closed && rule(connection.from.as_deref());
            if !stays {
                connection.end();
            }
            stays
        });
    }
}

impl Shared {
    fn serve(&self, mut client: TcpStream, target: u16) -> std::io::Result<()> {
        let mut head = vec![0; 4096];
        let length = client.read(&mut head)?;
        head.truncate(length);
        let from = sender(&head);
        let mut server = TcpStream::connect(("127.0.0.1", target))?;
        // Otherwise small messages wait for the acknowledgement of the one before, 40 ms each.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        {
            let mut state = self.state.lock().unwrap();
            if state.gate == Gate::Closed || !(state.rule)(from.as_deref()) {
                return client.shutdown(Shutdown::Both);
            }
            let ends = [client.try_clone()?, server.try_clone()?];
            state.connections.push(Connection { from, ends });
        }
        self.pass();
        server.write_all(&head)?;
        let (back_from, back_to) = (server.try_clone()?, client.try_clone()?);
        std::thread::scope(|scope| {
            scope.spawn(|| self.copy(back_from, back_to));
            self.copy(client, server);
        });
        Ok(())
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            self.pass();
            if to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        drop(to.shutdown(Shutdown::Both));
        drop(from.shutdown(Shutdown::Both));
    }

    /// Waits while the gate is paused.
    fn pass(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| state.gate == Gate::Paused).unwrap());
    }
}

/// Who sends, if it is a node of etcd that says so.
fn sender(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("x-server-from:"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
