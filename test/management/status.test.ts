import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

let gateway: RunningGateway
const startedSeconds = Math.floor(Date.now() / 1000)

beforeAll(async () => {
  gateway = await startGateway({
    // A process that no other gateway used, because the time is that of its start.
    env: { NODE_DEBUG: '' },
    config: { options: { quota_per_unit: 1_000, display: 'CNY', usd_exchange_rate: 7.1 } },
  })
})
afterAll(() => gateway.discard())

test('GET /api/status is public, and returns the version and how quota is displayed', async () => {
  const response = await fetch(`${gateway.url}/api/status`)
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const body = (await response.json()) as { data: { start_time: number } }
  expect(response.status).toBe(200)
  expect(body).toEqual({
    success: true,
    message: '',
    data: {
      version: manifest.version,
      start_time: expect.any(Number),
      system_name: 'Sluice',
      setup: true,
      quota_per_unit: 1_000,
      quota_display_type: 'CNY',
      display_in_currency: true,
      usd_exchange_rate: 7.1,
      password_login_enabled: true,
      oidc_enabled: false,
      oidc_providers: [],
      register_enabled: false,
      password_register_enabled: false,
      email_verification: false,
    },
  })
  expect(body.data.start_time).toBeGreaterThanOrEqual(startedSeconds - 1)
  expect(body.data.start_time).toBeLessThanOrEqual(Math.floor(Date.now() / 1000))
})
