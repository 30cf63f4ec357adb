import type { ChangeOrigin } from '../domain/audit.ts'
import type { ManagementServices } from './services.ts'

/**
 * Returns services through which every change is recorded in the audit log with this origin (who made it, and
 * how).
 */
export function withAuditOrigin<Parts extends Pick<ManagementServices, 'store' | 'ledger'>>(
  services: Parts,
  origin: ChangeOrigin,
): Parts {
  const { store, ledger } = services
  const recorded: Pick<ManagementServices, 'store' | 'ledger'> = {
    store: {
      read: (name, ...input) => store.read(name, ...input),
      write: (name, ...input) => store.write(name, ...withOrigin(input, origin)),
    },
    ledger: {
      changeUser: (change) => ledger.changeUser({ ...change, origin }),
      changeToken: (change) => ledger.changeToken({ ...change, origin }),
    },
  }
  return { ...services, ...recorded }
}

/** The input of a write with an origin, which every write takes beside its own members. */
function withOrigin<Input extends readonly unknown[]>([input]: Input, origin: ChangeOrigin): Input {
  return [{ ...(input as object), origin }] as readonly unknown[] as Input
}

/** The origin of changes made by commands, which anybody with access to the data folder can run. */
export function commandOrigin(actor: string, nowMs: number): ChangeOrigin {
  return { actorId: 0, actor, via: 'command', address: '', atMs: nowMs }
}
