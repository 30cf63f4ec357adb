import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { holdOf, settledCall, temporaryFolder } from '../../../test/store-rows.ts'
import type { NodeFile } from '../node-file.ts'
import { openNodeFile } from './open-node-file.ts'

const WHO = { userId: 3, tokenId: 17 }

async function opened(path = join(temporaryFolder(), 'node.db'), bankId = 'bank'): Promise<NodeFile> {
  const file = await openNodeFile({ path, bankId })
  onTestFinished(() => file.close())
  return file
}

describe("a node's file", () => {
  test('keeps its name, its holds and its outbox over restarts', async () => {
    const path = join(temporaryFolder(), 'node.db')
    const first = await opened(path)
    await first.write('hold', holdOf(WHO, 'a'))
    await first.write('hold', holdOf(WHO, 'b'))
    await first.write('settle', settledCall(WHO, 'a'))
    await first.close()
    const second = await opened(path)
    expect(second.node).toBe(first.node)
    expect(await second.write('outbox', { limit: 10 })).toMatchObject([
      { tokenId: 17, userId: 3, quota: 300 },
    ])
    // Charges the prompt only, because no output was recorded.
    expect(await second.write('recover', { owner: 'next', nowMs: 1 })).toEqual({ count: 1, quota: 100 })
    const rows = await second.write('outbox', { limit: 10 })
    expect(rows.map(({ row }) => (JSON.parse(row) as { id: string; reason: string }).reason)).toEqual([
      'complete',
      'crash',
    ])
    expect(await second.write('recover', { owner: 'next', nowMs: 1 })).toEqual({ count: 0, quota: 0 })
  })

  test('keeps parked holds over restarts, and lets them be settled once', async () => {
    const path = join(temporaryFolder(), 'node.db')
    const first = await opened(path)
    await first.write('hold', holdOf(WHO, 'a'))
    await first.write('parkHold', { id: 'a', userId: WHO.userId })
    await first.close()
    const second = await opened(path)
    expect((await second.write('recover', { owner: 'next', nowMs: 1 })).count).toBe(0)
    expect(await second.write('parkedHolds')).toMatchObject([{ id: 'a', amount: 1000, tokenId: 17 }])
    for (let time = 0; time < 2; time += 1) await second.write('settle', settledCall(WHO, 'a'))
    expect(await second.write('parkedHolds')).toEqual([])
    expect(await second.write('outbox', { limit: 10 })).toHaveLength(1)
  })

  test('has each settled call once in its outbox, until it was reported', async () => {
    const file = await opened()
    for (const id of ['a', 'a', 'b', 'c']) await file.write('settle', settledCall(WHO, id))
    const [a, b] = await file.write('outbox', { limit: 2 })
    await file.write('reported', { place: b?.place ?? 0 })
    expect(await file.write('outbox', { limit: 10 })).toHaveLength(1)
    expect(a?.row).toContain('"id":"a"')
    expect(await file.write('outbox', { limit: 10 })).toMatchObject([
      { row: expect.stringContaining('"id":"c"') as string },
    ])
  })

  test('reports to no other bank than it was used with, while it has something to report', async () => {
    const path = join(temporaryFolder(), 'node.db')
    const first = await opened(path)
    await first.write('settle', settledCall(WHO, 'a'))
    await first.close()
    await expect(openNodeFile({ path, bankId: 'another' })).rejects.toThrow(/another database.*DATABASE_URL/)
    const again = await opened(path)
    await again.write('reported', { place: 1 })
    await again.close()
    await expect(opened(path, 'another')).resolves.toMatchObject({ node: first.node })
  })
})
