import { describe, expect, test } from 'vitest'
import { keptEntry, keptStore } from '../../../test/stores/kept.ts'
import type { EntryToKeep } from '../../store/operations/kept.ts'
import type { RowStore } from '../../store/store.ts'
import { SignatureWrites } from './signature-store.ts'

/** A database whose commits end when the test decides, and what was written to it. */
function slowRows(): {
  readonly batches: number[][]
  readonly rows: Pick<RowStore, 'read' | 'write'>
  readonly finish: (error?: Error) => void
} {
  const batches: number[][] = []
  const waiting: PromiseWithResolvers<readonly []>[] = []
  return {
    batches,
    finish(error) {
      const commit = waiting.shift()
      if (error) commit?.reject(error)
      else commit?.resolve([])
    },
    rows: {
      read: () => Promise.reject(new Error('nothing is read')),
      write(...[, input]: unknown[]) {
        batches.push((input as { entries: EntryToKeep[] }).entries.map(({ userId }) => userId))
        const commit = Promise.withResolvers<readonly []>()
        waiting.push(commit)
        return commit.promise as never
      },
    },
  }
}

const reply = (userId: number, characters = 10): EntryToKeep[] => [
  keptEntry('signature', `of ${userId}`, { userId, facts: 'x'.repeat(characters) }),
]

function writesOn(
  rows: ReturnType<typeof slowRows>['rows'],
  isShared: boolean,
): { readonly writes: SignatureWrites; readonly unwritten: readonly number[] } {
  const unwritten: number[] = []
  const metrics = { add: (_name: string, count: number) => void unwritten.push(count) } as never
  return { writes: new SignatureWrites({ kept: keptStore(rows), isShared, metrics }), unwritten }
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

describe('writes of signatures', () => {
  test('signatures of a node with its own database are written at once, in the commit of the charge', () => {
    const { rows, batches } = slowRows()
    const { writes } = writesOn(rows, false)
    for (const user of [1, 2, 3]) void writes.write(reply(user))
    expect(batches).toEqual([[1], [2], [3]])
  })

  test('signatures of nodes with a shared database are collected during a commit, and written by the next one', async () => {
    const { rows, batches, finish } = slowRows()
    const { writes } = writesOn(rows, true)
    const done: number[] = []
    for (const user of [1, 2, 3]) void writes.write(reply(user)).then(() => done.push(user))
    await turn()
    const [first] = batches
    expect(batches).toHaveLength(1)
    finish()
    await turn()
    expect(done).toEqual(first)
    expect(batches.flat()).toEqual([1, 2, 3])
    void writes.write(reply(4)).then(() => done.push(4))
    finish()
    await turn()
    finish()
    await turn()
    expect(done).toEqual([1, 2, 3, 4])
    expect(batches.length).toBeLessThanOrEqual(3)
  })

  test('signatures that cannot be written or are too large are counted as unwritten, and the reply continues', async () => {
    const { rows, finish } = slowRows()
    const { writes, unwritten } = writesOn(rows, true)
    const failing = writes.write(reply(1))
    await turn()
    finish(new Error('no database'))
    await failing
    expect(unwritten).toEqual([1])
    void writes.write(reply(2, 20 * 1024 * 1024))
    await writes.write(reply(3, 20 * 1024 * 1024))
    expect(unwritten).toEqual([1, 1])
  })
})
