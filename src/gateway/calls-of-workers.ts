import type { Link } from '../ipc/link.ts'
import type { OtherProcesses } from '../management/usage/live-calls.ts'
import type { LiveCallBatch, LiveQuery } from '../management/usage/live-source.ts'

/** Calls that another worker wants; `name` is the name of its query. */
export interface FollowedCallBatch {
  readonly name: string
  readonly turn: LiveCallBatch
}

/**
 * Exchanges settled calls with the other workers through their owner: those that readers want, one turn at a
 * time.
 */
export function callsOfWorkers(link: Link): OtherProcesses {
  return {
    follow: (queries) => link.send('follow', queries),
    onFollowed: (listener) => link.on('followed', (queries: readonly LiveQuery[]) => listener(queries)),
    send: (name, turn) => link.send('settled', { name, turn } satisfies FollowedCallBatch),
    onTurn: (listener) => link.on('settled', ({ name, turn }: FollowedCallBatch) => listener(name, turn)),
  }
}
