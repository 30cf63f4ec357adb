import { describe, expect, test } from 'vitest'
import { ENGINES, openedRows } from '../../../test/stores/engines.ts'

const NOW = 1_760_000_000_000
const KEEP_MS = 1_000

describe.each(ENGINES)('calls with an idempotency key on $name', (engine) => {
  test('a call that takes longer than its answer is kept is known for that time from its end', async () => {
    const { store } = await openedRows(engine)
    const call = { lookup: 'l', userId: 2, fingerprint: 'f', node: 'n', leaseMs: 60_000 }
    const claim = (id: string, nowMs: number): Promise<string> =>
      store.write('claimCall', { ...call, claim: id, nowMs, expiresMs: nowMs + KEEP_MS })
    const endMs = NOW + 5 * KEEP_MS
    expect(await claim('first', NOW)).toBe('claimed')
    expect(await claim('second', endMs)).toBe('under way')
    await store.write('endClaim', { lookup: 'l', userId: 2, claim: 'first', expiresMs: endMs + KEEP_MS })
    expect(await claim('second', endMs + KEEP_MS - 1)).toBe('over')
    expect(await claim('second', endMs + KEEP_MS)).toBe('claimed')
  })
})
