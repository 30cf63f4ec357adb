import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../../../test/fixtures/behaviour.ts'
import { call } from '../../../test/fixtures/client.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

/** The message of an error, which has the id of its request. */
function messageOf(body: string): string {
  const { error } = JSON.parse(body) as { error: { message: string } }
  return error.message
}

describe.skipIf(withoutBrowser())('failed and refused calls in the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('the page of a failed call shows why it failed, and the error message that was sent', async () => {
    const words = 'temperature: <img src=x onerror=alert(1)> must be at most 2'
    stage.upstream.script('scripted', { kind: 'status', status: 400, body: errorBody(words) })
    expect(await stage.call('scripted', PEOPLE.caller.key)).toBe(400)
    expect(await stage.call('demo-chat', PEOPLE.caller.key)).toBe(200)
    // Suggestions of filters come from the sums, which are written later.
    const sums = () => stage.api<{ totals: { failed: number } }>('GET', '/api/usage')
    await expect.poll(async () => (await sums()).totals.failed).toBe(1)
    for (const person of ['root', 'caller'] as const) {
      const page = await stage.open(person, '/logs')
      const table = page.getByRole('table', { name: 'Calls' })
      await table.getByRole('row', { name: /demo-chat/ }).waitFor()
      await table.getByRole('columnheader', { name: 'Status' }).waitFor()
      await page.getByRole('combobox', { name: 'Cause' }).fill('by pro')
      await page.getByRole('option', { name: 'Refused by provider' }).click()
      await expect.poll(() => new URL(page.url()).searchParams.get('cause')).toBe('provider_refused')
      await page.keyboard.press('Escape')
      await page
        .getByRole('status', { name: 'Totals of these calls' })
        .getByText(/^1 call\b/)
        .waitFor()
      const row = table.getByRole('row', { name: /scripted/ })
      await row.getByText('Refused by provider').waitFor()
      expect(await table.getByRole('row', { name: /demo-chat/ }).count()).toBe(0)
      await row.locator('[data-row-link]').click()
      const sheet = page.getByRole('dialog', { name: 'Call details' })
      await sheet.getByRole('heading', { name: 'Why' }).waitFor()
      await sheet
        .getByText('The provider refused this request. Change it before you send it again. Not charged.')
        .waitFor()
      await sheet.locator('blockquote').getByText(words).waitFor()
      await page.close()
    }
  })

  test('the page of a failed call that was charged does not state that the call was free', async () => {
    stage.upstream.script('scripted', { kind: 'stream', events: 3, word: 'drip ', ending: 'reset' })
    const { headers } = await call(
      stage.gateway.url,
      { model: 'scripted', stream: true, messages: [{ role: 'user', content: 'hi' }] },
      { key: PEOPLE.caller.key },
    )
    const id = String(headers['x-request-id'])
    await expect
      .poll(() => stage.api<{ items: object[] }>('GET', `/api/log/?request_id=${id}`))
      .toMatchObject({ items: [{ cause: 'provider_broken', quota: expect.any(Number) }] })
    const page = await stage.open('caller', `/logs/${id}`)
    const sheet = page.getByRole('dialog', { name: 'Call details' })
    await sheet.getByText('The provider’s answer broke off.').waitFor()
    expect(await sheet.getByText('Not charged.').count()).toBe(0)
    await page.close()
  })

  test("administrators see the provider's message of each attempt, and members see no attempts of a call that succeeded", async () => {
    const words = 'the first provider is out of machines'
    stage.upstream.script('first', { kind: 'status', status: 500, body: errorBody(words) })
    stage.upstream.script('second', { kind: 'whole' })
    expect(await stage.call('shaky', PEOPLE.caller.key)).toBe(200)
    for (const person of ['root', 'caller'] as const) {
      const page = await stage.open(person, '/logs')
      await page
        .getByRole('table', { name: 'Calls' })
        .getByRole('row', { name: /shaky/ })
        .locator('[data-row-link]')
        .click()
      const sheet = page.getByRole('dialog', { name: 'Call details' })
      await sheet.locator('strong', { hasText: /^shaky$/ }).waitFor()
      const attempts = sheet.getByRole('list', { name: 'Attempts' })
      if (person === 'root') {
        await attempts.getByRole('listitem').filter({ hasText: 'first' }).getByText(words).waitFor()
        expect(await attempts.getByRole('listitem').count()).toBe(2)
      } else {
        expect(await attempts.count()).toBe(0)
        expect(await page.content()).not.toContain(words)
      }
      await page.close()
    }
  })

  test('a refused call is found by the request id, or by pasting the whole error message that contains the id', async () => {
    const { headers, status, text } = await call(
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
      ['root', 'Open the key', /^\/users\/\d+\/keys\/\d+$/],
      ['caller', 'Open the key', /^\/keys\/\d+$/],
    ] as const) {
      const page = await stage.open(person, `/logs/${id}`)
      const sheet = page.getByRole('dialog', { name: 'Call details' })
      await sheet.getByText('Refused', { exact: true }).waitFor()
      await sheet.getByText('No channel serves the model. Not charged.').waitFor()
      await sheet
        .locator('blockquote')
        .getByText(/no-such-model/)
        .waitFor()
      await sheet.getByText(id, { exact: true }).waitFor()
      expect(await sheet.getByRole('link', { name: link }).getAttribute('href')).toMatch(path)
      await page.goto('/logs?status=refused')
      const rows = page.getByRole('table', { name: 'Refused calls' }).locator('tbody tr')
      await rows.first().waitFor()
      await page.getByRole('textbox', { name: 'Call ID' }).fill(messageOf(text))
      await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining('no-such-model')])
      await page.close()
    }
    const other = await stage.open('member', `/logs/${id}`)
    await other.getByText('This call is not in the log, or not yours.').waitFor()
    await other.close()
  })
})
