import { expect, test } from 'vitest'
import { whatIf } from './what-if.ts'

test('a what-if query whose filter matches hardly any call is refused after four million rows were read', async () => {
  let scans = 0
  const store = {
    read: () => {
      scans += 1
      return Promise.resolve({ entries: [], next: { id: String(scans), ended_ms: 1 } })
    },
    write: () => Promise.reject(new Error('nothing is written')),
  }
  const services = {
    store,
    settings: () => ({ models: { get: () => ({}) }, options: { usage_log_days: 90 } }),
    liveConfig: {},
    nowMs: () => 0,
  } as unknown as Parameters<typeof whatIf>[0]
  const asked = whatIf(services, { from: 0, to: 10, filters: { model_name: ['rare'] } })
  await expect(asked).rejects.toThrow('more than 4000000 calls would have to be looked at')
  expect(scans).toBe(2001)
})
