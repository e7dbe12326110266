// SPDX-License-Identifier: GPL-2.0
//! Policies of classes: they are kept with the cgroups, and the scheduler is told of them.
//!
//! Whoever asks only has them looked at. Who may set one is who may write to the cgroup, as with weights, so
//! nobody is refused here.

use andante_sched::class::{ClassError, ClassPath};
use andante_sched::{LeafPolicy, PolicyError};

use crate::host::Host;
use crate::kernel::Kernel;
use crate::protocol::{Fault, FaultKind, Reply};

/// The class has the policy that is kept with its cgroup.
pub(crate) fn look(kernel: &mut dyn Kernel, host: &dyn Host, class: &str) -> Result<Reply, Fault> {
    let unknown = |error: ClassError| Fault::new(FaultKind::UnknownClass, error.to_string());
    let path = ClassPath::parse(class).map_err(unknown)?;
    let facts = host.class(&path);
    let facts = facts.ok_or_else(|| unknown(ClassError::Unknown(path.clone())))?;
    let policy = host.policy(&path).unwrap_or(LeafPolicy::Sfq);
    match kernel.set_policy(facts.cgroup_id, policy) {
        Ok(()) => Ok(Reply::Policy { policy }),
        Err(error) => {
            let kind = match error {
                PolicyError::NoClass | PolicyError::Inner => FaultKind::BadTerms,
                PolicyError::Shared => FaultKind::Full,
                PolicyError::Other(_) => FaultKind::Failed,
            };
            let message = format!("the policy of class {path} is not in force: {error}");
            Err(Fault::new(kind, message))
        }
    }
}

/// All classes have the policies that are kept with their cgroups; those that cannot are none of the scheduler's
/// yet, or share a class.
pub(crate) fn look_at_all(kernel: &mut dyn Kernel, host: &dyn Host) {
    for (cgroup_id, policy) in host.policies() {
        let _ = kernel.set_policy(cgroup_id, policy);
    }
}
