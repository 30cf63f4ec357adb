import { expect, test } from 'vitest'
import { withoutBalancer } from '../fixtures/balancer.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import { rollWhileCalled } from '../nodes/rolling.ts'

const NAME = 'a rolling restart behind HAProxy, at 500 calls a second'

test.skipIf(withoutRedis(NAME) || withoutBalancer(NAME))(
  'three nodes behind HAProxy are restarted in turn at 500 calls a second: no call fails, and each is charged once',
  { timeout: 180_000 },
  async () => {
    const [perSecond, seconds] = [500, 20]
    const report = await rollWhileCalled({ perSecond, seconds })
    console.info(JSON.stringify(report))
    expect(report.counts).toEqual({ 200: perSecond * seconds })
    expect(report.charged).toBe(perSecond * seconds)
    expect(report.stillLent).toBe(0)
  },
)
