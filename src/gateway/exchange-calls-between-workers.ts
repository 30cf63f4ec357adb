import type { Link } from '../ipc/link.ts'
import type { OtherProcesses } from '../management/usage/live-calls.ts'
import type { LiveCallBatch, LiveQuery } from '../management/usage/live-source.ts'

/**
 * A batch of settled calls for clients of another worker process that follow calls live; `name` identifies
 * their query.
 */
export interface WorkerCallBatch {
  readonly name: string
  readonly turn: LiveCallBatch
}

/**
 * Exchanges settled calls with the other worker processes through the main process. Each process gets those
 * that its clients follow live, one batch at a time.
 */
export function exchangeCallsBetweenWorkers(link: Link): OtherProcesses {
  return {
    follow: (queries) => link.send('follow', queries),
    onFollowed: (listener) => link.on('followed', (queries: readonly LiveQuery[]) => listener(queries)),
    send: (name, turn) => link.send('settled', { name, turn } satisfies WorkerCallBatch),
    onTurn: (listener) => link.on('settled', ({ name, turn }: WorkerCallBatch) => listener(name, turn)),
  }
}
