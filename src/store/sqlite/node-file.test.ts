import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { holdOf, settledCall, temporaryFolder } from '../../../test/stores/rows.ts'
import type { NodeFile } from '../node-file.ts'
import type { AccountName } from '../bank.ts'
import { openNodeFile } from './open.ts'

const WHO = { userId: 3, tokenId: 17 }

async function opened(path = join(temporaryFolder(), 'node.db'), bankId = 'bank'): Promise<NodeFile> {
  const file = await openNodeFile({ path, bankId })
  onTestFinished(() => file.close())
  return file
}

describe("a node's file", () => {
  test("a node's local file keeps the node's name, holds and unreported charges over restarts", async () => {
    const path = join(temporaryFolder(), 'node.db')
    const first = await opened(path)
    await first.write('hold', holdOf(WHO, 'a'))
    await first.write('hold', holdOf(WHO, 'b'))
    await first.write('settle', settledCall(WHO, 'a'))
    await first.close()
    const second = await opened(path)
    expect(second.node).toBe(first.node)
    expect(await second.write('outbox', { limit: 10, except: [] })).toMatchObject([
      { token_id: 17, user_id: 3, quota: 300 },
    ])
    // Charges the prompt only, because no output was recorded.
    expect(await second.write('recover', { owner: 'next', nowMs: 1 })).toEqual({ count: 1, quota: 100 })
    const rows = await second.write('outbox', { limit: 10, except: [] })
    expect(rows.map(({ row }) => (JSON.parse(row) as { id: string; reason: string }).reason)).toEqual([
      'complete',
      'crash',
    ])
    expect(await second.write('recover', { owner: 'next', nowMs: 1 })).toEqual({ count: 0, quota: 0 })
  })

  test("a node's local file keeps holds of background calls over restarts, and lets them be settled once", async () => {
    const path = join(temporaryFolder(), 'node.db')
    const first = await opened(path)
    await first.write('hold', holdOf(WHO, 'a'))
    await first.write('parkHold', { id: 'a', user_id: WHO.userId })
    await first.close()
    const second = await opened(path)
    expect((await second.write('recover', { owner: 'next', nowMs: 1 })).count).toBe(0)
    expect(await second.write('parkedHolds')).toMatchObject([{ id: 'a', amount: 1000, token_id: 17 }])
    for (let time = 0; time < 2; time += 1) await second.write('settle', settledCall(WHO, 'a'))
    expect(await second.write('parkedHolds')).toEqual([])
    expect(await second.write('outbox', { limit: 10, except: [] })).toHaveLength(1)
  })

  test("a node's local file keeps each settled call once in its outbox, until the call is reported to the shared database", async () => {
    const file = await opened()
    for (const id of ['a', 'a', 'b', 'c']) await file.write('settle', settledCall(WHO, id))
    const [a, b, c] = await file.write('outbox', { limit: 3, except: [] })
    await file.write('reported', { places: [a?.place ?? 0, c?.place ?? 0] })
    expect(a?.row).toContain('"id":"a"')
    expect(await file.write('outbox', { limit: 10, except: [] })).toEqual([b])
  })

  test('a node reports no calls whose key, user or budget is locked, and keeps them in its local file', async () => {
    const file = await opened()
    const settle = (id: string, tokenId: number, userId: number, budgets = '') =>
      file.write('settle', settledCall({ tokenId, userId }, id, { budgets }))
    await settle('a', 1, 1)
    await settle('b', 2, 1, '["b:month:2026-11-01:u:1"]')
    await settle('c', 3, 2, '["b:day:2026-11-23:t:3","b:month:2026-11-01:g:sales"]')
    const left = async (...except: AccountName[]) =>
      (await file.write('outbox', { limit: 10, except })).map(({ token_id: tokenId }) => tokenId)
    expect(await left()).toEqual([1, 2, 3])
    expect(await left('t:1')).toEqual([2, 3])
    expect(await left('u:1')).toEqual([3])
    expect(await left('b:month:2026-11-01:u:1')).toEqual([1, 3])
    expect(await left('b:month:2026-11-01:g:sales', 't:2')).toEqual([1])
  })

  test.each([
    ['a build from before the first release', 5, /a build of sluice from before version 0\.1\.0/],
    ['a newer version', 7, /newer version of sluice \(form 7, this version knows 6\)/],
  ])("a node's local file of %s is refused, and not changed", async (_, format, sentence) => {
    const path = join(temporaryFolder(), 'node.db')
    await (await openNodeFile({ path, bankId: 'bank' })).close()
    const file = new DatabaseSync(path)
    onTestFinished(() => file.close())
    file.exec(`PRAGMA user_version = ${format}`)
    await expect(openNodeFile({ path, bankId: 'bank' })).rejects.toThrow(sentence)
    expect(file.prepare('PRAGMA user_version').get()).toEqual({ user_version: format })
  })

  test("a node's local file with unreported charges is refused for another database than the one it was used with", async () => {
    const path = join(temporaryFolder(), 'node.db')
    const first = await opened(path)
    await first.write('settle', settledCall(WHO, 'a'))
    await first.close()
    await expect(openNodeFile({ path, bankId: 'another' })).rejects.toThrow(/another database.*DATABASE_URL/)
    const again = await opened(path)
    await again.write('reported', { places: [1] })
    await again.close()
    await expect(opened(path, 'another')).resolves.toMatchObject({ node: first.node })
  })
})
