import { describe, expect, test } from 'vitest'
import { ENGINES, rowsWithAccount } from '../../../test/stores/engines.ts'
import { tokenVersion, userVersion } from '../../domain/object-version.ts'
import type { Json } from '../../domain/json.ts'

const VALUES = [1, 2, 3, 4]

/** How many of several simultaneous changes succeed; the others must be refused as outdated. */
async function winners(changes: readonly Promise<unknown>[]): Promise<number> {
  const outcomes = await Promise.allSettled(changes)
  const refused = outcomes.filter(({ status }) => status === 'rejected')
  for (const one of refused) expect(one).toMatchObject({ reason: { code: 'changed_meanwhile' } })
  return outcomes.length - refused.length
}

describe.each(ENGINES)('simultaneous changes that are based on one version, on $name', (engine) => {
  test('of several simultaneous changes of the same user or token, based on the same version, one succeeds', async () => {
    const { store, userId, tokenId } = await rowsWithAccount(engine)
    const user = await store.read('managedUser', { userId })
    const version = user ? userVersion(user) : ''
    const remarks = VALUES.map((value) =>
      store.write('changeUser', { userId, version, fields: { remark: `${value}` } }),
    )
    expect(await winners(remarks)).toBe(1)
    const keyed = await store.read('findTokenWithKey', { userId, tokenId })
    const basis = {
      tokenId,
      userId,
      version: keyed ? tokenVersion(keyed.token) : '',
      maxQuota: 1e9,
      nowMs: 1,
    }
    expect(
      await winners(
        VALUES.map((value) => store.write('changeToken', { ...basis, fields: { name: `n${value}` } })),
      ),
    ).toBe(1)
  })

  test('of several simultaneous changes of the same channel or setting, based on the same version, one succeeds', async () => {
    const { store } = await rowsWithAccount(engine)
    const channel = (weight: number) => ({
      name: 'c',
      declared: { protocol: 'chat', weight },
      keys: ['sk-x'],
      status: 1 as const,
      family: {},
    })
    const [id = 0] = await store.write('createChannels', { channels: [channel(0)], created_time: 1 })
    const { channels } = await store.read('storedConfiguration')
    const version = channels[0]?.version
    const changes = VALUES.map((weight) =>
      store.write('changeChannel', { id, channel: channel(weight), version }),
    )
    expect(await winners(changes)).toBe(1)
    // The values of guards are encrypted.
    for (const section of ['options', 'guards'] as const)
      for (const before of [undefined, '1']) {
        const entry = (value: Json | undefined) => ({ section, name: 'one', value })
        const settings = VALUES.map((value) =>
          store.write('setStoredSettings', {
            changes: [entry(String(value * 10))],
            expected: [entry(before)],
          }),
        )
        expect(await winners(settings)).toBe(1)
        await store.write('setStoredSettings', { changes: [entry('1')] })
      }
  })
})
