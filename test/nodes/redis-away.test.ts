import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Ground, layGround } from '../equipment/ground.ts'
import { withoutRedis } from '../equipment/redis-server.ts'
import { callWhileAway, warmAndCold } from './bank-away.ts'

describe.skipIf(withoutRedis('three nodes whose Redis is in trouble'))('three nodes whose Redis', () => {
  let ground: Ground
  beforeAll(async () => {
    ground = await layGround({ nodes: 3, configure: warmAndCold })
    ground.upstream.script('m', { kind: 'whole' })
  }, 300_000)
  afterAll(() => ground?.clear())

  test.each<[string, (ground: Ground) => unknown, (ground: Ground) => unknown]>([
    ['forgets everything', ({ redis }) => redis.command(['FLUSHALL']), () => {}],
    ['is killed', ({ redis }) => redis.kill(), ({ redis }) => redis.restart()],
    ['is out of reach', ({ redisCable }) => redisCable.hold(), ({ redisCable }) => redisCable.release()],
    ['sleeps', ({ redis }) => void redis.command(['DEBUG', 'SLEEP', '1']), () => sleep(100)],
  ])('%s serve everybody, and charge as ever', { timeout: 300_000 }, async (_, leave, comeBack) => {
    const report = await callWhileAway(ground, {
      forMs: 1000,
      leave: () => leave(ground),
      comeBack: () => comeBack(ground),
    })
    expect(report.warm.length).toBeGreaterThan(10)
    const unserved = [...report.warm, ...report.cold].filter(({ status }) => status !== 200)
    expect(unserved).toEqual([])
    expect(report.backlogMs).toBeLessThan(30_000)
  })
})
