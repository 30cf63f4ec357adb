import type { Link } from '../ipc/link.ts'
import type { OtherProcesses } from '../management/usage/live-calls.ts'
import type { LiveTurn, LiveQuery } from '../management/usage/live-source.ts'

/** Calls that another worker wants; `name` is the name of its query. */
export interface FollowedTurn {
  readonly name: string
  readonly turn: LiveTurn
}

/**
 * Exchanges settled calls with the other workers through their owner: those that readers want, one turn at a
 * time.
 */
export function callsOfWorkers(link: Link): OtherProcesses {
  return {
    follow: (queries) => link.send('follow', queries),
    onFollowed: (listener) => link.on('followed', (queries: readonly LiveQuery[]) => listener(queries)),
    send: (name, turn) => link.send('settled', { name, turn } satisfies FollowedTurn),
    onTurn: (listener) => link.on('settled', ({ name, turn }: FollowedTurn) => listener(name, turn)),
  }
}
