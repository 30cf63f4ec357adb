import type { Origin } from '../../domain/audit.ts'
import type { Db } from '../operations/operation.ts'
import { writes } from '../operations/writes.ts'
import type { Secrets } from '../secrets.ts'
import { appendEntries, type NewEntry } from './append.ts'
import { entriesBetween } from './entries-between.ts'
import { type ObjectReference, objectStates } from './object-states.ts'
import { AUDITED } from './operations.ts'

type AnyWrite = (db: Db, input: unknown, secrets: Secrets) => Promise<unknown>

/** Entry of `AUDITED`, for an operation whose name is known only when it runs. */
type AnyAudited =
  | {
      readonly touches?: (
        input: unknown,
        db: Db,
        secrets: Secrets,
      ) => readonly ObjectReference[] | Promise<readonly ObjectReference[]>
      readonly makes?: (output: unknown, input: unknown) => readonly ObjectReference[]
    }
  | {
      readonly entries: (
        input: unknown,
        db: Db,
        secrets: Secrets,
      ) => Promise<(output: unknown) => Iterable<NewEntry>>
    }
  | null

/**
 * Runs a write, and adds its changes to the audit log in the same transaction. An input without `origin` is
 * the gateway's own work, which is not logged.
 */
export async function auditedWrite(db: Db, name: string, input: unknown, secrets: Secrets): Promise<unknown> {
  const run = (): Promise<unknown> => (writes[name as keyof typeof writes] as AnyWrite)(db, input, secrets)
  const audited = AUDITED[name as keyof typeof writes] as AnyAudited
  const origin = (input as { readonly origin?: Origin } | undefined)?.origin
  if (!audited || !origin) return run()
  if ('entries' in audited) {
    const entriesOf = await audited.entries(input, db, secrets)
    const output = await run()
    await appendEntries(db, origin, entriesOf(output))
    return output
  }
  const touched = (await audited.touches?.(input, db, secrets)) ?? []
  const before = await objectStates(db, touched, secrets)
  const output = await run()
  const references = output === null ? [] : [...touched, ...(audited.makes?.(output, input) ?? [])]
  const after = await objectStates(db, references, secrets)
  if (references.length > 0) await appendEntries(db, origin, entriesBetween(before, after))
  return output
}
