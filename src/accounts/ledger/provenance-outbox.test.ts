import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ENGINES, openedRows } from '../../../test/stores/engines.ts'
import { nodeFileAt, settledCall, temporaryFolder } from '../../../test/stores/rows.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import type { RowStore } from '../../store/store.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import { ProvenanceOutbox } from './provenance-outbox.ts'
import { sharedStore } from './shared-store.ts'

const ENDED_MS = 1_760_000_101_500

function callOf(id: string): SettledCall {
  return settledCall({ userId: 1, tokenId: 1 }, id, {
    provenance: {
      keyTag: 'tag',
      response: { id: `resp_${id}`, upstreamId: `up_${id}`, tokens: 30, previousId: null },
      reasoning: ['hash'],
    },
  })
}

/** The rows, in a version whose database can be made unreachable. */
function reachable(rows: RowStore): RowStore & { isAway: boolean } {
  return {
    isAway: false,
    read: (name, ...input) => rows.read(name, ...input),
    write(name, ...input) {
      return this.isAway ? Promise.reject(new StoreUnavailable('away')) : rows.write(name, ...input)
    },
    close: () => Promise.resolve(),
  }
}

describe.each(ENGINES)('what calls of a node leave behind, on $name', (engine) => {
  const idsIn = async (rows: RowStore, ids: readonly string[]): Promise<(string | undefined)[]> => {
    const find = (id: string) => rows.read('responseFacts', { id: `resp_${id}`, userId: 1, nowMs: ENDED_MS })
    return (await Promise.all(ids.map(find))).map((facts) => facts?.response.upstreamId)
  }

  test('the channel that made a response is known to all nodes once the call is settled', async () => {
    const { store: rows } = await openedRows(engine)
    const file = await nodeFileAt(join(temporaryFolder(), 'node.db'))
    const node = sharedStore(reachable(rows), {
      file,
      onSettled: () => {},
      held: () => 0,
      flush: () => Promise.resolve(),
    })
    onTestFinished(() => node.close())
    const settled = Array.from({ length: 450 }, async (_, index) => {
      await node.write('settle', callOf(`${index}`))
      return index % 150 === 149 ? idsIn(rows, [`${index}`]) : []
    })
    expect((await Promise.all(settled)).flat()).toEqual(['up_149', 'up_299', 'up_449'])
    expect(await rows.read('reasoningOrigins', { hashes: ['hash'], nowMs: ENDED_MS })).toEqual([
      { hash: 'hash', channel: 'c', keyTag: 'tag' },
    ])
    await vi.waitFor(async () => expect(await file.write('unshared', { limit: 1 })).toEqual([]), 60_000)
    await node.write('settle', callOf('last'))
    expect(await idsIn(rows, ['last'])).toEqual(['up_last'])
  })

  test('the channel that made a response is not forgotten if the process ends while the database is unreachable', async () => {
    const { store: rows } = await openedRows(engine)
    const path = join(temporaryFolder(), 'node.db')
    const shared = reachable(rows)
    shared.isAway = true
    const first = sharedStore(shared, {
      file: await nodeFileAt(path),
      onSettled: () => {},
      held: () => 0,
      flush: () => Promise.resolve(),
    })
    await Promise.all(['a', 'b'].map((id) => first.write('settle', callOf(id))))
    await first.close()
    expect(await idsIn(rows, ['a', 'b'])).toEqual([undefined, undefined])
    shared.isAway = false
    const next = sharedStore(shared, {
      file: await nodeFileAt(path),
      onSettled: () => {},
      held: () => 0,
      flush: () => Promise.resolve(),
    })
    onTestFinished(() => next.close())
    await vi.waitFor(async () => expect(await idsIn(rows, ['a', 'b'])).toEqual(['up_a', 'up_b']), 60_000)
  })

  test('the channel that made a response is written to the database when that is reachable again', async () => {
    const { store: rows } = await openedRows(engine)
    const shared = reachable(rows)
    shared.isAway = true
    const file = await nodeFileAt(join(temporaryFolder(), 'node.db'))
    const node = sharedStore(shared, {
      file,
      onSettled: () => {},
      held: () => 0,
      flush: () => Promise.resolve(),
    })
    onTestFinished(() => node.close())
    await node.write('settle', callOf('a'))
    shared.isAway = false
    await vi.waitFor(async () => expect(await idsIn(rows, ['a'])).toEqual(['up_a']), { timeout: 60_000 })
  })
})

test('a call whose provenance the database refuses does not make other calls wait for those that are settled later', async () => {
  const calls: { readonly place: number; readonly call: SettledCall }[] = []
  const settle = (id: string): void => void calls.push({ place: calls.length + 1, call: callOf(id) })
  let sharedUpTo = 0
  const file = {
    async write(name: string, { limit, place }: { readonly limit: number; readonly place: number }) {
      if (name === 'shared') sharedUpTo = place
      return name === 'unshared' ? calls.slice(sharedUpTo, sharedUpTo + limit) : undefined
    },
  }
  const written: string[] = []
  const rows = {
    async write(_: string, { calls: given }: { readonly calls: readonly SettledCall[] }) {
      // Others are settled as fast as one call after the other is shared.
      if (calls.length < 1000) settle(`later ${calls.length}`)
      const ids = given.map(({ provenance }) => provenance?.response?.upstreamId ?? '')
      if (ids.includes('up_bad')) throw new Error('refused')
      written.push(...ids)
    },
  }
  for (const id of ['first', 'bad', 'last']) settle(id)
  const outbox = new ProvenanceOutbox(file as never, rows as never)
  onTestFinished(() => outbox.close())
  await outbox.share()
  expect(written).toContain('up_first')
  expect(written).toContain('up_last')
  expect(calls.length).toBeLessThan(100)
})
