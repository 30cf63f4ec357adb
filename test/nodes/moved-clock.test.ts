import { describe, expect, test } from 'vitest'
import { SHARED } from './fixture.ts'
import { COST, warmNode } from './warm-node.ts'

describe.each(SHARED)('leased quota is not spent before $name has answered', (engine) => {
  test.each([1_300, -1_300])(
    'after its clock moves by %d seconds, a node spends leased quota only once the database has answered',
    async (seconds) => {
      const { proxy, clock, chat, statuses, used } = await warmNode(engine)
      proxy.setFault({ kind: 'cut' })
      expect(await statuses()).toBe(200)
      clock.move(seconds)
      const refused = await chat()
      expect(refused.status).toBe(503)
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
      proxy.setFault({ kind: 'pass' })
      await expect.poll(statuses).toBe(200)
      await expect.poll(used).toBe(3 * COST)
    },
  )
})
