import { expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { startCollector } from '../fixtures/collector.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { discard, runProgram } from '../operations/program.ts'

const CALLS = 16
/** Part of the time for which the event loop is blocked that one request may wait. */
const MAX_SHARE = 0.4
/** Milliseconds after which a request counts as having waited. */
const BLOCKED_MS = 20
/** Other work of the machine may slow down one of the measurements. */
const MAX_MEASUREMENTS = 3
/** About 1 MB in many small turns, which take longest to convert. */
const MESSAGES = Array.from({ length: 26_000 }, () => ({ role: 'user', content: 'x' }))

test('the texts of many calls that end together block the event loop for one call at a time', async () => {
  const [collector, upstream] = await Promise.all([startCollector(), startUpstream()])
  const program = await runProgram({
    config: {
      rate_limits: {},
      content_log: { what: 'full' },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true',
    },
  })
  try {
    await program.ready()
    const { url } = program
    const shares: number[] = []
    while (shares.length < MAX_MEASUREMENTS && shares.every((share) => share > MAX_SHARE)) {
      const release = Promise.withResolvers<void>()
      upstream.script('m', { kind: 'whole', content: 'yes', after: release.promise })
      const asked = Array.from({ length: CALLS }, () =>
        call(url, { model: 'm', messages: MESSAGES }, { key: 'ann' }),
      )
      await expect.poll(() => upstream.received('m').length).toBe(CALLS)
      release.resolve()
      const times: number[] = []
      for (const untilMs = performance.now() + 3_000; performance.now() < untilMs; ) {
        const began = performance.now()
        await call(url, undefined, { method: 'GET', path: '/healthz' })
        times.push(performance.now() - began)
      }
      for (const { status } of await Promise.all(asked)) expect(status).toBe(200)
      const blocked = times.filter((ms) => ms > BLOCKED_MS)
      shares.push(Math.max(0, ...blocked) / blocked.reduce((sum, ms) => sum + ms, 1))
    }
    expect(Math.min(...shares)).toBeLessThanOrEqual(MAX_SHARE)
  } finally {
    await discard(program)
    await Promise.all([collector.stop(), upstream.stop()])
  }
})
