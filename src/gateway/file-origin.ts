import type { Origin } from '../domain/audit.ts'

/**
 * Origin in the audit log of changes made by neither an account nor a command: by the file, or by the first
 * start.
 */
export function fileOrigin(actor: string): Origin {
  return { actorId: 0, actor, via: 'file', address: '', atMs: Date.now() }
}
