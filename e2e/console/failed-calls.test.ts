import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../../test/fixtures/behaviour.ts'
import { call } from '../../test/fixtures/client.ts'
import { withoutBrowser } from './chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from './console-stage.ts'

describe.skipIf(withoutBrowser())('failed and refused calls in the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('62, 63: the details of a failed call say why it failed, with the message that its caller was sent', async () => {
    const words = 'temperature: <img src=x onerror=alert(1)> must be at most 2'
    stage.upstream.script('scripted', { kind: 'status', status: 400, body: errorBody(words) })
    expect(await stage.call('scripted', PEOPLE.caller.key)).toBe(400)
    expect(await stage.call('demo-chat', PEOPLE.caller.key)).toBe(200)
    for (const person of ['root', 'caller'] as const) {
      const page = await stage.open(person, '/logs?cause=provider_refused')
      const table = page.getByRole('table', { name: 'Calls' })
      const row = table.getByRole('row', { name: /scripted/ })
      await row.getByText('Refused by the provider').waitFor()
      expect(await table.getByRole('row', { name: /demo-chat/ }).count()).toBe(0)
      await row.locator('[data-row-link]').click()
      const sheet = page.getByRole('dialog', { name: 'Call details' })
      await sheet.getByRole('heading', { name: 'Why' }).waitFor()
      await sheet
        .getByText('The provider refused this request. Change it before you send it again. Not charged.')
        .waitFor()
      await sheet.locator('blockquote').getByText(words).waitFor()
      await page.context().close()
    }
  })

  test('68: the details of a refused call are found by the id in its error', async () => {
    const { headers, status } = await call(
      stage.gateway.url,
      { model: 'no-such-model', messages: [{ role: 'user', content: 'hi' }] },
      { key: PEOPLE.caller.key },
    )
    expect(status).toBeGreaterThanOrEqual(400)
    const id = String(headers['x-request-id'])
    await expect
      .poll(() => stage.api<{ total: number }>('GET', `/api/log/refused?request_id=${id}`))
      .toMatchObject({ total: 1 })
    for (const [person, link, path] of [
      ['root', 'Open the user', /^\/users\/\d+$/],
      ['caller', 'Open the key', /^\/keys\/\d+$/],
    ] as const) {
      const page = await stage.open(person, `/logs/${id}`)
      const sheet = page.getByRole('dialog', { name: 'Call details' })
      await sheet.getByText('Refused', { exact: true }).waitFor()
      await sheet.getByText(/no-such-model.*Not charged\./).waitFor()
      await sheet.getByText(id, { exact: true }).waitFor()
      expect(await sheet.getByRole('link', { name: link }).getAttribute('href')).toMatch(path)
      await page.context().close()
    }
  })
})
