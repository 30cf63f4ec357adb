import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

describe.skipIf(withoutBrowser())('calls under way', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  function stream(model = 'scripted'): Promise<Response> {
    return fetch(`${stage.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${PEOPLE.caller.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model,
        stream: true,
        messages: [{ role: 'user', content: 'Hello' }],
      }),
    })
  }

  test('a running call is listed and can be stopped, and the log then shows it as Stopped', async () => {
    const page = await stage.open('admin', '/live')
    await page.getByText('No call is under way.').waitFor()
    stage.upstream.script('scripted', { kind: 'stream', events: 3, word: 'drip ', ending: 'stall' })
    const answer = await stream()
    const table = page.getByRole('table', { name: 'Calls under way' })
    const row = table.getByRole('row', { name: /scripted/ })
    await row.waitFor()
    expect(await table.getByRole('columnheader').allInnerTexts()).toEqual(
      expect.arrayContaining(['Started', 'Model', 'Key', 'User', 'Channel', 'Tokens', 'Cost', 'Time']),
    )
    await expect
      .poll(() => row.innerText())
      .toMatch(/own\s+cal\s+scripted answering\s+[1-9]\d*\s+\$0\.\d*[1-9]/)
    await row.getByRole('button', { name: 'Stop' }).click()
    expect(await answer.text()).toContain('"code":"call_stopped"')
    await page.getByText('No call is under way.').waitFor()
    await page.goto('/logs')
    await page.getByRole('row', { name: /Stopped/ }).waitFor()
    await page.close()
  })

  test('several calls can be stopped before the first stop is answered', async () => {
    const page = await stage.open('admin', '/live')
    const script = { kind: 'stream', events: 3, word: 'drip ', ending: 'stall' } as const
    stage.upstream.script('scripted', script, script)
    const answers = await Promise.all([stream(), stream()])
    const asked = new Set<string>()
    const both = Promise.withResolvers<void>()
    await page.route('**/api/running/*/stop', async (route) => {
      asked.add(route.request().url())
      await both.promise
      await route.continue()
    })
    const buttons = page.getByRole('button', { name: 'Stop' })
    await buttons.nth(1).click()
    await buttons.nth(0).click()
    await expect.poll(() => asked.size).toBe(2)
    both.resolve()
    for (const answer of answers) expect(await answer.text()).toContain('"code":"call_stopped"')
    await page.getByText('No call is under way.').waitFor()
    await page.close()
  })

  test('a call that could not be stopped is named, also if another one was stopped meanwhile', async () => {
    const page = await stage.open('admin', '/live')
    const script = { kind: 'stream', events: 3, word: 'drip ', ending: 'stall' } as const
    stage.upstream.script('scripted', script)
    stage.upstream.script('tired', script)
    const answers = [await stream(), await stream('tired')]
    const stop = (model: string) =>
      page.getByRole('row').filter({ hasText: model }).getByRole('button', { name: 'Stop' })
    const failing = Promise.withResolvers<void>()
    let asked = 0
    await page.route('**/api/running/*/stop', async (route) => {
      asked += 1
      if (asked > 1) return route.continue()
      await failing.promise
      return route.fulfill({ status: 503, json: {} })
    })
    await stop('tired').click()
    await expect.poll(() => asked).toBe(1)
    await stop('scripted').click()
    await page.getByRole('status').filter({ hasText: 'scripted with “own” was stopped' }).waitFor()
    failing.resolve()
    await page.getByRole('alert').filter({ hasText: 'tired with “own” was not stopped' }).waitFor()
    await stop('tired').click()
    for (const answer of answers) expect(await answer.text()).toContain('"code":"call_stopped"')
    await page.close()
  })

  test('while the calls cannot be loaded, the error stays, also while they are asked for again', async () => {
    const page = await stage.open('admin', '/live')
    await page.route('**/api/running?*', (route) => route.fulfill({ status: 500, json: {} }))
    await page.reload()
    const error = page.getByRole('alert').filter({ hasText: 'This could not be loaded' })
    await error.waitFor()
    const shown = await error.elementHandle()
    for (let answer = 0; answer < 5; answer += 1) await page.waitForResponse(/api.running\?/)
    expect(await shown?.evaluate(({ isConnected }) => isConnected)).toBe(true)
    await page.unroute('**/api/running?*')
    await page.getByText('No call is under way.').waitFor()
    await page.close()
  })

  test('the page of running calls tells a member that it is for administrators', async () => {
    const page = await stage.open('member', '/live')
    await page.getByText('This page is for administrators.').waitFor()
    expect(await page.getByRole('link', { name: 'Live calls' }).count()).toBe(0)
    await page.close()
  })
})
