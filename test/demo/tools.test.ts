import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DemoFixture, startDemoFixture } from '../fixtures/demo-fixture.ts'
import { askMcp, listed } from '../fixtures/mcp.ts'

let fixture: DemoFixture
beforeAll(async () => {
  fixture = await startDemoFixture()
})
afterAll(() => fixture?.close())

test('the demo has tools, of which the invalid ones are left out', async () => {
  const ask = (method: string, params = {}) => askMcp(fixture.gateway.url, 'ann', method, params)
  expect(listed((await ask('tools/list')).message).map(({ name }) => name)).toEqual([
    'clock_now',
    'files_list',
    'files_read',
    'hostile_help',
    'shifting_advise',
    'web_search',
  ])
  const searched = await ask('tools/call', { name: 'web_search', arguments: { query: 'tides' } })
  expect(searched.text).toContain('All about tides')
  expect((await ask('tools/call', { name: 'clock_now', arguments: {} })).message.result).toBeDefined()
})
