import type { QueuedOperation } from './messages.ts'

/**
 * An operation's part in the turns: the id of the user whose turn it takes; `order` for one that nothing
 * overtakes, and that overtakes nothing; `free` for one that takes nobody's turn.
 */
export type Turn = number | 'order' | 'free'

/** What of a queue makes the next batch. */
export interface BatchRule {
  /** Operations in a batch. */
  readonly maxOperations: number
  /** Operations of one user in a batch. */
  readonly maxPerUser: number
  readonly turnOf: (operation: QueuedOperation) => Turn
}

const CALL_WRITES: ReadonlySet<string> = new Set(['hold', 'growHold', 'markProgress', 'settle'])
/** The user of reads of everybody's usage. */
const ALL_USERS = 0

/**
 * Writes keep their order, but where more wait than a batch takes, those of calls go in turns that go round
 * the users: of one user they keep their order too. Few enough at once that a batch stays short, whatever has
 * gathered.
 */
export const WRITES: BatchRule = {
  maxOperations: 500,
  maxPerUser: Number.POSITIVE_INFINITY,
  turnOf: ([name, input]) => (CALL_WRITES.has(name) ? (input as { userId: number }).userId : 'order'),
}

/** Reads have no order. Those of the usage log alone may take long: of each user's one at a time. */
export const READS: BatchRule = {
  maxOperations: 500,
  maxPerUser: 1,
  turnOf([, input]) {
    const filter = (input as { readonly filter?: { readonly userId?: number } } | undefined)?.filter
    return filter ? (filter.userId ?? ALL_USERS) : 'free'
  },
}

/** Parts a queue into the next batch and what waits on; both in the order of the queue. */
export function fairBatch<Waiting extends { readonly operation: QueuedOperation }>(
  queue: Waiting[],
  { maxOperations: most, maxPerUser: each, turnOf }: BatchRule,
): { readonly batch: Waiting[]; readonly rest: Waiting[] } {
  if (queue.length <= Math.min(most, each)) return { batch: queue, rest: [] }
  // One round has one operation of each user.
  const rounds: Waiting[][] = [[]]
  const counts = new Map<number, number>()
  let inTurns = 0
  for (; inTurns < queue.length; inTurns += 1) {
    const waiting = queue[inTurns] as Waiting
    const turn = turnOf(waiting.operation)
    if (turn === 'order') break
    let round = 0
    if (turn !== 'free') {
      round = counts.get(turn) ?? 0
      counts.set(turn, round + 1)
    }
    ;(rounds[round] ??= []).push(waiting)
  }
  const taken = new Set(rounds.slice(0, each).flat().slice(0, most))
  if (taken.size === inTurns) for (const waiting of queue.slice(inTurns, most)) taken.add(waiting)
  return {
    batch: queue.filter((waiting) => taken.has(waiting)),
    rest: queue.filter((waiting) => !taken.has(waiting)),
  }
}
