//! A slot: a service or a keystore, the caller's login, and the objects that the caller sees.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use cryptoki_sys::*;
use sha2::{Digest as _, Sha256};

use crate::backend::{Backend, EntryState, KeyEntry, NewKey, Source};
use crate::config::{Login, SlotConfig};
use crate::error::{Failure, Result, require};
use crate::object::attributes::{Attribute, Template};
use crate::object::certificate::Certificate;
use crate::object::{Object, ServiceKey, View, objects_of};
use crate::session::template;

/// How long a list of keys counts as new. Programs search several times in a row.
const LIST_LIFETIME: Duration = Duration::from_secs(1);

/// After this time, a key that a program destroyed may be destroyed.
const DESTRUCTION_DELAY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What stands for the key of the authorities' certificates.
const AUTHORITIES: &str = "";

/// Gives each object a handle that no other object ever gets.
static NEXT_HANDLE: AtomicU64 = AtomicU64::new(1);

/// Whether a session may change objects of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    ReadOnly,
    ReadWrite,
}

/// A slot with its token.
pub(crate) struct Slot {
    pub(crate) label: String,
    login: Login,
    address: String,
    certificates: Vec<Certificate>,
    source: Box<dyn Source>,
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    /// What has the keys; none before a login.
    backend: Option<Arc<dyn Backend>>,
    is_logged_in: bool,
    objects: Objects,
}

/// The objects, by their handles.
#[derive(Default)]
struct Objects {
    by_handle: BTreeMap<CK_OBJECT_HANDLE, Arc<Object>>,
    /// The objects of each key, and the revision of the key that they show.
    by_key: HashMap<Arc<str>, (u64, Vec<CK_OBJECT_HANDLE>)>,
    /// When the keys were listed.
    listed: Option<Instant>,
}

impl Slot {
    /// # Errors
    /// `CKR_HOST_MEMORY`.
    pub(crate) fn new(config: SlotConfig) -> Result<Self> {
        let SlotConfig { label, login, address, certificates, source } = config;
        let backend = match login {
            Login::Pin => None,
            Login::NotRequired => Some(source.open()?),
        };
        let state = SlotState { backend, ..SlotState::default() };
        Ok(Self { label, login, address, certificates, source, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> View<'_> {
        View { is_private: self.requires_login(), certificates: &self.certificates }
    }

    /// The address of the service, or the keystore's folder, for people.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A number that tells the token from others, in 16 hexadecimal digits. It does not depend on
    /// the order of the slots.
    pub(crate) fn serial_number(&self) -> String {
        let digest = Sha256::digest(format!("{}\n{}", self.label, self.address));
        digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn requires_login(&self) -> bool {
        self.login == Login::Pin
    }

    pub(crate) fn is_logged_in(&self) -> bool {
        self.state().is_logged_in
    }

    /// Logs the program in.
    ///
    /// # Errors
    /// `CKR_USER_ALREADY_LOGGED_IN`; those of [`Source::log_in`].
    pub(crate) fn log_in(&self, pin: &[u8]) -> Result<()> {
        require(!self.is_logged_in(), CKR_USER_ALREADY_LOGGED_IN)?;
        let backend = self.source.log_in(pin)?;
        let mut state = self.state();
        require(!state.is_logged_in, CKR_USER_ALREADY_LOGGED_IN)?;
        state.backend = Some(backend);
        state.is_logged_in = true;
        state.objects.forget_token();
        Ok(())
    }

    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN`; `CKR_HOST_MEMORY`.
    pub(crate) fn log_out(&self) -> Result<()> {
        let backend = match self.login {
            Login::Pin => None,
            Login::NotRequired => Some(self.source.open()?),
        };
        let mut state = self.state();
        require(state.is_logged_in, CKR_USER_NOT_LOGGED_IN)?;
        state.is_logged_in = false;
        state.backend = backend;
        state.objects.forget_token();
        Ok(())
    }

    /// What has the keys.
    ///
    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN`.
    pub(crate) fn backend(&self) -> Result<Arc<dyn Backend>> {
        self.state().backend.clone().ok_or(Failure(CKR_USER_NOT_LOGGED_IN))
    }

    /// Finds the objects that have all attributes of a template.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` and others if the keys cannot be listed.
    pub(crate) fn find(&self, template: &[Attribute]) -> Result<Vec<CK_OBJECT_HANDLE>> {
        let is_new = self.state().objects.listed.is_some_and(|listed| listed.elapsed() < LIST_LIFETIME);
        if is_new {
            let found = self.state().objects.find(template);
            // What is not there may have been made since.
            if !found.is_empty() {
                return Ok(found);
            }
        }
        self.list()?;
        Ok(self.state().objects.find(template))
    }

    /// Lists the keys. Before a login, nobody can.
    fn list(&self) -> Result<()> {
        let Ok(backend) = self.backend() else { return Ok(()) };
        let began = Instant::now();
        // Without the permission to read, a program sees no more than before a login.
        let keys = backend.keys().map_err(|failure| instead(failure, CKR_USER_NOT_LOGGED_IN))?;
        let mut state = self.state();
        let is_current = state.backend.as_ref().is_some_and(|now| Arc::ptr_eq(now, &backend));
        if is_current {
            state.objects.update(&keys, self.view())?;
            state.objects.listed = Some(began);
        }
        Ok(())
    }

    /// An object.
    ///
    /// # Errors
    /// `CKR_OBJECT_HANDLE_INVALID`.
    pub(crate) fn object(&self, handle: CK_OBJECT_HANDLE) -> Result<Arc<Object>> {
        self.state().objects.by_handle.get(&handle).cloned().ok_or(Failure(CKR_OBJECT_HANDLE_INVALID))
    }

    /// Makes a key, and shows it. The handles are those of its objects.
    ///
    /// # Errors
    /// Those of the service.
    pub(crate) fn create_key(&self, new: &NewKey) -> Result<Vec<(CK_OBJECT_CLASS, CK_OBJECT_HANDLE)>> {
        let made = self.backend()?.create(new);
        let key = made.map_err(|failure| instead(failure, CKR_ACTION_PROHIBITED))?;
        let mut state = self.state();
        state.objects.show(&key, Vec::new(), self.view())?;
        let handles = state.objects.by_key.get(&key.id).map_or(&[][..], |(_, handles)| handles);
        let class = |handle: &CK_OBJECT_HANDLE| Some((state.objects.by_handle.get(handle)?.class, *handle));
        Ok(handles.iter().filter_map(class).collect())
    }

    /// Adds objects of a session: all of them, or none.
    ///
    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN` for a private one before the login; `CKR_ATTRIBUTE_VALUE_INVALID`
    /// for a key that wants a PIN at each use, in a slot without a PIN.
    pub(crate) fn add<const N: usize>(&self, objects: [Object; N]) -> Result<[CK_OBJECT_HANDLE; N]> {
        let mut state = self.state();
        for object in &objects {
            let is_visible = !self.requires_login() || state.is_logged_in;
            require(is_visible || !object.attributes.is_set(CKA_PRIVATE), CKR_USER_NOT_LOGGED_IN)?;
            let asks = object.attributes.is_set(CKA_ALWAYS_AUTHENTICATE);
            require(!asks || self.requires_login(), CKR_ATTRIBUTE_VALUE_INVALID)?;
        }
        Ok(objects.map(|object| state.objects.add(object)))
    }

    /// Checks the PIN again, for one use of a key.
    ///
    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN`; those of [`Source::log_in`].
    pub(crate) fn check_pin(&self, pin: &[u8]) -> Result<()> {
        require(self.is_logged_in(), CKR_USER_NOT_LOGGED_IN)?;
        self.source.log_in(pin).map(drop)
    }

    /// Destroys an object. The service destroys a key only after some time, in which an operator
    /// can cancel that: the program sees the key no more, and its label is free.
    ///
    /// # Errors
    /// `CKR_OBJECT_HANDLE_INVALID`; `CKR_SESSION_READ_ONLY` for a key, without the right to write;
    /// `CKR_ACTION_PROHIBITED` for an older version, and for the public half of a key that remains;
    /// those of the service.
    pub(crate) fn destroy(&self, handle: CK_OBJECT_HANDLE, access: Access) -> Result<()> {
        let object = self.object(handle)?;
        require(object.attributes.is_set(CKA_DESTROYABLE), CKR_ACTION_PROHIBITED)?;
        if object.is_token_object() {
            require(access == Access::ReadWrite, CKR_SESSION_READ_ONLY)?;
            let version = object.key.as_ref().and_then(|key| key.version.as_ref());
            let key = version.ok_or(Failure(CKR_ACTION_PROHIBITED))?;
            match object.class {
                CKO_PUBLIC_KEY => {
                    let state = self.backend()?.key(&key.key)?.state;
                    require(state == EntryState::Gone, CKR_ACTION_PROHIBITED)?;
                }
                _ => self.destroy_key(key)?,
            }
        }
        self.state().objects.by_handle.remove(&handle);
        Ok(())
    }

    fn destroy_key(&self, key: &ServiceKey) -> Result<()> {
        require(key.is_latest, CKR_ACTION_PROHIBITED)?;
        let backend = self.backend()?;
        let scheduled = backend.schedule_destruction(&key.key, SystemTime::now() + DESTRUCTION_DELAY);
        scheduled.map_err(|failure| instead(failure, CKR_ACTION_PROHIBITED))?;
        // The key is named by its id from now on. If that fails, its label is only taken.
        let _ = backend.set_label(&key.key, None);
        Ok(())
    }

    /// Gives an object another label. Nothing else of a key of the service can be changed, and of
    /// an object of a session what its class permits.
    ///
    /// # Errors
    /// `CKR_OBJECT_HANDLE_INVALID`; `CKR_SESSION_READ_ONLY`; `CKR_ATTRIBUTE_READ_ONLY`;
    /// `CKR_ATTRIBUTE_VALUE_INVALID` for a label that the service does not take.
    pub(crate) fn change(
        &self,
        handle: CK_OBJECT_HANDLE,
        template: &[Attribute],
        access: Access,
    ) -> Result<()> {
        let object = self.object(handle)?;
        if !object.is_token_object() {
            return self.state().objects.change(handle, template);
        }
        require(access == Access::ReadWrite, CKR_SESSION_READ_ONLY)?;
        for attribute in template {
            let is_same = object.attributes.get(attribute.kind) == Some(&attribute.value);
            let is_label = attribute.kind == CKA_LABEL && object.attributes.is_set(CKA_MODIFIABLE);
            require(is_same || is_label, CKR_ATTRIBUTE_READ_ONLY)?;
        }
        let Some(label) = Template(template).get(CKA_LABEL) else { return Ok(()) };
        if object.attributes.get(CKA_LABEL) == Some(label) {
            return Ok(());
        }
        let label = std::str::from_utf8(label).map_err(|_| Failure(CKR_ATTRIBUTE_VALUE_INVALID))?;
        let version = object.key.as_ref().and_then(|key| key.version.as_ref());
        let id = &version.ok_or(Failure(CKR_ATTRIBUTE_READ_ONLY))?.key;
        let label = Some(label).filter(|label| !label.is_empty());
        let changed = self.backend()?.set_label(id, label);
        let key = changed.map_err(|failure| instead(failure, CKR_ACTION_PROHIBITED))?;
        let mut state = self.state();
        let shown = state.objects.by_key.remove(&key.id).map_or(Vec::new(), |(_, handles)| handles);
        state.objects.show(&key, shown, self.view())
    }

    /// Removes the objects of sessions that have ended.
    pub(crate) fn forget_sessions(&self, has_ended: impl Fn(CK_SESSION_HANDLE) -> bool) {
        let remains = |object: &Object| !object.session.is_some_and(&has_ended);
        self.state().objects.by_handle.retain(|_, object| remains(object));
    }
}

impl Objects {
    fn find(&self, template: &[Attribute]) -> Vec<CK_OBJECT_HANDLE> {
        let found = self.by_handle.iter().filter(|(_, object)| object.attributes.matches(template));
        found.map(|(handle, _)| *handle).collect()
    }

    fn add(&mut self, object: Object) -> CK_OBJECT_HANDLE {
        let handle = new_handle();
        self.by_handle.insert(handle, Arc::new(object));
        handle
    }

    /// Changes an object of a session. Nobody else changes or removes it meanwhile.
    fn change(&mut self, handle: CK_OBJECT_HANDLE, template: &[Attribute]) -> Result<()> {
        let object = self.by_handle.get_mut(&handle).ok_or(Failure(CKR_OBJECT_HANDLE_INVALID))?;
        let attributes = template::change(object, template)?;
        *object = Arc::new(object.with_attributes(attributes));
        Ok(())
    }

    /// Removes the objects of the token, and the private ones of sessions.
    fn forget_token(&mut self) {
        let remains = |object: &Object| !object.is_token_object() && !object.attributes.is_set(CKA_PRIVATE);
        self.by_handle.retain(|_, object| remains(object));
        self.by_key.clear();
        self.listed = None;
    }

    /// Shows these keys, and no others. An object keeps its handle as long as it is there.
    fn update(&mut self, keys: &[KeyEntry], view: View<'_>) -> Result<()> {
        let mut before = std::mem::take(&mut self.by_key);
        for key in keys {
            match before.remove(&key.id) {
                Some((revision, handles)) if revision == key.revision => {
                    self.by_key.insert(key.id.clone(), (revision, handles));
                }
                shown => self.show(key, shown.map_or(Vec::new(), |(_, handles)| handles), view)?,
            }
        }
        match before.remove(AUTHORITIES) {
            Some(shown) => self.by_key.insert(AUTHORITIES.into(), shown),
            None => {
                let objects = view.certificates.iter().filter_map(Certificate::authority);
                let handles = objects.map(|object| self.add(object)).collect();
                self.by_key.insert(AUTHORITIES.into(), (0, handles))
            }
        };
        for handle in before.into_values().flat_map(|(_, handles)| handles) {
            self.by_handle.remove(&handle);
        }
        Ok(())
    }

    /// Shows a key in place of the objects that it had before.
    fn show(&mut self, key: &KeyEntry, shown: Vec<CK_OBJECT_HANDLE>, view: View<'_>) -> Result<()> {
        let mut old: Vec<_> = shown
            .into_iter()
            .filter_map(|handle| Some((self.by_handle.remove(&handle)?.identity(), handle)))
            .collect();
        let mut handles = Vec::new();
        for object in objects_of(key, view)? {
            let identity = object.identity();
            let known = old.iter().position(|(old, _)| *old == identity);
            let handle = known.map_or_else(new_handle, |place| old.swap_remove(place).1);
            self.by_handle.insert(handle, Arc::new(object));
            handles.push(handle);
        }
        self.by_key.insert(key.id.clone(), (key.revision, handles));
        Ok(())
    }
}

/// The failure of a call that uses no key. If the token does not permit it, the code is another one
/// than for a key.
fn instead(failure: Failure, code: CK_RV) -> Failure {
    if failure == Failure(CKR_KEY_FUNCTION_NOT_PERMITTED) { Failure(code) } else { failure }
}

/// A handle that no object had before.
pub(crate) fn new_handle() -> CK_OBJECT_HANDLE {
    NEXT_HANDLE.fetch_add(1, Ordering::Relaxed) as CK_OBJECT_HANDLE
}
