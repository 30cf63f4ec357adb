import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type BatchRule, fairBatch, READ_BATCH_RULE, WRITE_BATCH_RULE } from './group-commit.ts'
import type { QueuedOperation } from './messages.ts'

interface Waiting {
  readonly operation: QueuedOperation
}
const settle = (userId: number, id = ''): Waiting => ({ operation: ['settle', { user_id: userId, id }] })
const times = (count: number, one: () => Waiting): Waiting[] => Array.from({ length: count }, one)

const few: BatchRule = { ...WRITE_BATCH_RULE, maxOperations: 4 }

describe('writes', () => {
  test('database writes that fit into a batch are written in one batch, in order', () => {
    const queue = [settle(1), settle(2), settle(1)]
    expect(fairBatch(queue, few)).toEqual({ batch: queue, rest: [] })
  })

  test("if more database writes wait than fit into a batch, users take turns, and each user's writes stay in order", () => {
    const queue = [
      settle(1, 'a'),
      settle(1, 'b'),
      settle(1, 'c'),
      settle(1, 'd'),
      settle(1, 'e'),
      settle(2, 'f'),
    ]
    const { batch, rest } = fairBatch(queue, few)
    expect(batch).toEqual([queue[0], queue[1], queue[2], queue[5]])
    expect(rest).toEqual([queue[3], queue[4]])
  })

  test('database writes of calls are not moved past a write that belongs to no call', () => {
    const store: Waiting = { operation: ['changeUser', { userId: 2 }] }
    const queue = [...times(6, () => settle(1)), store, settle(2)]
    expect(fairBatch(queue, few).rest).toEqual(queue.slice(4))
    expect(fairBatch(queue.slice(4), few)).toEqual({ batch: queue.slice(4), rest: [] })
    expect(fairBatch([settle(1), store, ...times(9, () => settle(1)), settle(3)], few).batch).toHaveLength(4)
  })

  test('every database write is in exactly one batch, within the maximum size and in a permitted order', () => {
    const operation: fc.Arbitrary<QueuedOperation> = fc.oneof(
      fc.tuple(
        fc.constantFrom('hold', 'growHold', 'markProgress', 'settle'),
        fc.record({ user_id: fc.nat(3) }),
      ),
      fc.tuple(fc.constant('loadAccount'), fc.record({ tokenId: fc.nat(3) })),
    )
    fc.assert(
      fc.property(
        fc.array(operation, { maxLength: 40 }),
        fc.integer({ min: 1, max: 8 }),
        (operations, maxOperations) => {
          const rule = { ...WRITE_BATCH_RULE, maxOperations }
          let queue: Waiting[] = operations.map((one) => ({ operation: one }))
          const all = [...queue]
          const written: Waiting[] = []
          while (queue.length > 0) {
            const { batch, rest } = fairBatch(queue, rule)
            expect(batch.length).toBeGreaterThan(0)
            expect(batch.length).toBeLessThanOrEqual(maxOperations)
            written.push(...batch)
            queue = rest
          }
          expect(new Set(written)).toEqual(new Set(all))
          const places = new Map(written.map((one, place) => [one, place]))
          for (const [i, first] of all.entries())
            for (const second of all.slice(i + 1)) {
              const [turn, other] = [rule.turnOf(first.operation), rule.turnOf(second.operation)]
              if (turn === other || turn === 'order' || other === 'order')
                expect(places.get(first)).toBeLessThan(places.get(second) as number)
            }
        },
      ),
    )
  })
})

describe('reads', () => {
  const usage = (userId?: number): Waiting => ({ operation: ['listUsage', { filter: { user_id: userId } }] })
  const profile: Waiting = { operation: ['managedUser', { userId: 1 }] }

  test('a batch has one read of the usage log per user and one of those over all users, and all reads of other kinds', () => {
    const queue = [usage(1), usage(1), usage(), usage(2), profile, usage(), profile]
    const { batch, rest } = fairBatch(queue, READ_BATCH_RULE)
    expect(batch).toEqual([queue[0], queue[2], queue[3], queue[4], queue[6]])
    expect(rest).toEqual([queue[1], queue[5]])
    expect(fairBatch(rest, READ_BATCH_RULE).rest).toEqual([])
  })
})
