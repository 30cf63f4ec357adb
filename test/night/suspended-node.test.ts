import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { SHARED } from '../nodes/fixture.ts'
import { COST, warmNode } from '../nodes/warm-node.ts'

describe.each(SHARED)('a suspended node on $name', (engine) => {
  test('a node that was suspended for more than 5 s spends leased quota only once the database has answered', async () => {
    const { proxy, gateway, statuses, used } = await warmNode(engine)
    proxy.setFault({ kind: 'cut' })
    expect(await statuses()).toBe(200)
    gateway.pause()
    await delay(6_500)
    gateway.resume()
    expect(await statuses()).toBe(503)
    proxy.setFault({ kind: 'pass' })
    await expect.poll(statuses).toBe(200)
    await expect.poll(used).toBe(3 * COST)
  })
})
