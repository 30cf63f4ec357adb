import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { lockRow } from '../stores/locked-row.ts'
import { SHARED, setNodes } from '../nodes/fixture.ts'

/** Longer than a cached key is accepted without being read again, which is a minute. */
const LOCKED_MS = 75_000
/** Ten prompt and five output tokens. */
const COST = 30
const QUOTA = 50_000_000

test.each(SHARED)(
  'while a row of a user is locked for 75 seconds on $name, two nodes answer every call of that user and of others, and each is charged once',
  async (engine) => {
    const { upstream, database, chat } = await setNodes(engine, 2, (provider) => ({
      models: priced(['m']),
      channels: [channel('m', provider.baseUrl('m'))],
      users: [
        ROOT,
        user(2, 'ann', [token('ann', { remain_quota: QUOTA })]),
        user(3, 'bob', [token('bob', { remain_quota: QUOTA })]),
        // Calls less often than leases are kept idle.
        user(4, 'cam', [token('cam', { remain_quota: QUOTA })]),
      ],
    }))
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const calls = [0, 1].flatMap((node) => [
      { node, key: 'ann', everyMs: 200 },
      { node, key: 'bob', everyMs: 200 },
      { node, key: 'cam', everyMs: 7_000 },
    ])
    const statuses: number[] = []
    const made = new Map<string, number>()
    const callOnce = async ({ node, key }: { node: number; key: string }): Promise<void> => {
      const { status } = await chat(node, key, ask('m', { max_tokens: 20 }))
      statuses.push(status)
      made.set(key, (made.get(key) ?? 0) + 1)
    }
    for (const one of calls) await callOnce(one)
    const row = await lockRow(database.place, 'select 1 from users where id in (2, 4)')
    onTestFinished(() => row.unlock())
    const endMs = performance.now() + LOCKED_MS
    await Promise.all(
      calls.map(async (one) => {
        while (performance.now() < endMs) {
          await callOnce(one)
          await delay(one.everyMs)
        }
      }),
    )
    await row.unlock()
    expect(statuses.filter((status) => status !== 200)).toEqual([])
    const used = 'select username as name, used_quota as used from users where id > 1 order by id'
    await expect
      .poll(() => database.sql(used))
      .toEqual(['ann', 'bob', 'cam'].map((name) => ({ name, used: COST * (made.get(name) ?? 0) })))
  },
)
