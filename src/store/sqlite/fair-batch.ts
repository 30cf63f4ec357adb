import type { QueuedOperation } from './messages.ts'

/**
 * Scheduling class of an operation: the id of the user whose share it uses; `order` if it must not be
 * reordered; `free` if it uses no share.
 */
export type Turn = number | 'order' | 'free'

/** Rule by which the next batch is taken from a queue. */
export interface BatchRule {
  /** Maximum number of operations in a batch. */
  readonly maxOperations: number
  /** Maximum number of operations of one user in a batch. */
  readonly maxPerUser: number
  readonly turnOf: (operation: QueuedOperation) => Turn
}

const CALL_WRITES: ReadonlySet<string> = new Set(['hold', 'growHold', 'markProgress', 'parkHold', 'settle'])
/** User id for reads of the usage of all users. */
const ALL_USERS = 0

/**
 * Rule for writes. They keep their order unless more are queued than a batch can contain; then those of calls
 * are taken round-robin by user, in order for each user. The batch size bounds the time of a commit.
 */
export const WRITES: BatchRule = {
  maxOperations: 500,
  maxPerUser: Number.POSITIVE_INFINITY,
  turnOf: ([name, input]) => (CALL_WRITES.has(name) ? (input as { user_id: number }).user_id : 'order'),
}

/**
 * Rule for reads: no order, and one read of the usage log per user at a time, because these may take long.
 */
export const READS: BatchRule = {
  maxOperations: 500,
  maxPerUser: 1,
  turnOf([, input]) {
    const filter = (input as { readonly filter?: { readonly user_id?: number } } | undefined)?.filter
    return filter ? (filter.user_id ?? ALL_USERS) : 'free'
  },
}

/** Splits a queue into the next batch and the remaining operations, both in the order of the queue. */
export function fairBatch<Pending extends { readonly operation: QueuedOperation }>(
  queue: Pending[],
  { maxOperations, maxPerUser, turnOf }: BatchRule,
): { readonly batch: Pending[]; readonly rest: Pending[] } {
  if (queue.length <= Math.min(maxOperations, maxPerUser)) return { batch: queue, rest: [] }
  // Each round takes one operation of each user.
  const rounds: Pending[][] = [[]]
  const counts = new Map<number, number>()
  let inTurns = 0
  for (; inTurns < queue.length; inTurns += 1) {
    const pending = queue[inTurns] as Pending
    const turn = turnOf(pending.operation)
    if (turn === 'order') break
    let round = 0
    if (turn !== 'free') {
      round = counts.get(turn) ?? 0
      counts.set(turn, round + 1)
    }
    ;(rounds[round] ??= []).push(pending)
  }
  const taken = new Set(rounds.slice(0, maxPerUser).flat().slice(0, maxOperations))
  if (taken.size === inTurns) for (const pending of queue.slice(inTurns, maxOperations)) taken.add(pending)
  return {
    batch: queue.filter((pending) => taken.has(pending)),
    rest: queue.filter((pending) => !taken.has(pending)),
  }
}
