import { expect, onTestFinished, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { residentBytes } from '../fixtures/resident-memory.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'

test('a gateway that becomes idle releases the memory that its calls needed', {
  timeout: 180_000,
}, async () => {
  const fixture = await startFixture((upstream) => plainConfiguration(upstream.baseUrl('m')))
  onTestFinished(() => fixture.close())
  const { pid, url } = fixture.gateway
  const megabytes = (): number => Math.round(residentBytes(pid) / 1e6)
  let most = 0
  const until = performance.now() + 10_000
  while (performance.now() < until) {
    const body = ask('m', { user: 'x'.repeat(100_000) })
    const answers = await Promise.all(Array.from({ length: 16 }, () => call(url, body, { key: 'ann' })))
    for (const { status } of answers) expect(status).toBeOneOf([200, 503])
    fixture.upstream.forget('m')
    most = Math.max(most, megabytes())
  }
  await expect.poll(megabytes, { timeout: 90_000, interval: 1_000 }).toBeLessThan(most * 0.8)
  console.log(`${most} MB at work, ${megabytes()} MB when idle`)
})
