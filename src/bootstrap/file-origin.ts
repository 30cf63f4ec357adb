import type { Origin } from '../domain/audit.ts'

/** The origin of changes that no account and no command makes: the file, or the first start. */
export function fileOrigin(actor: string): Origin {
  return { actorId: 0, actor, via: 'file', address: '', atMs: Date.now() }
}
