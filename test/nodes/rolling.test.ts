import { expect, test } from 'vitest'
import { withoutBalancer } from '../equipment/balancer.ts'
import { withoutRedis } from '../equipment/redis-server.ts'
import { rollWhileCalled } from './rolling.ts'

const NAME = 'a rolling restart behind HAProxy'

test.skipIf(withoutRedis(NAME) || withoutBalancer(NAME))(
  'three nodes behind HAProxy are restarted one after the other while calls come: none fails, each is charged once',
  { timeout: 60_000 },
  async () => {
    const [perSecond, seconds] = [50, 8]
    const report = await rollWhileCalled({ perSecond, seconds })
    console.info(JSON.stringify(report))
    expect(report.counts).toEqual({ 200: perSecond * seconds })
    expect(report.charged).toBe(perSecond * seconds)
    expect(report.stillLent).toBe(0)
  },
)
