import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { plainConfiguration } from '../equipment/configuration.ts'
import { ask, askStream, type Stage, setStage } from '../equipment/stage.ts'

const MOST = 10

let stage: Stage
beforeAll(async () => {
  stage = await setStage((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    options: { max_calls: MOST },
  }))
})
afterAll(() => stage?.close())

describe('as many calls as there may be', () => {
  test('go on; one more is refused with 503 and retry-after, before its body is read', async () => {
    stage.upstream.script('m', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 50 })
    const streams = await Promise.all(Array.from({ length: MOST }, () => stage.live('ann', askStream('m'))))
    for (const { status } of streams) expect(status).toBe(200)

    // Announced, and never sent: whoever waited for it would wait for long.
    const refused = await stage.live('ann', '{', { headers: { 'content-length': '1000000' } })
    expect(refused.status).toBe(503)
    const answer = await refused.end()
    expect(answer.headers['retry-after']).toBe('1')
    expect(answer.json().error).toMatchObject({ type: 'gateway_error', code: 'overloaded' })
    expect(stage.upstream.received('m')).toHaveLength(MOST)

    for (const stream of streams) stream.abort()
    stage.upstream.script('m', { kind: 'whole' })
    await expect.poll(async () => (await stage.chat('ann', ask('m'))).status, { timeout: 5_000 }).toBe(200)
  })
})
