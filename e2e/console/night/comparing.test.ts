import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

const UNITS_PER_USD = 500_000
/** The end is in view if it is at most this many pixels below. */
const A_PIXEL = 1

describe.skipIf(withoutBrowser())('a conversation with one or more models', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  function talk(page: Page): ReturnType<Page['locator']> {
    return page.getByRole('log', { name: 'Conversation' })
  }

  async function send(page: Page, text: string): Promise<void> {
    await page.getByRole('textbox', { name: 'Message' }).fill(text)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
  }

  /** Sends a message and waits until its answers have costs. */
  async function sendAndWait(page: Page, text: string, costs = 1): Promise<void> {
    const links = talk(page).getByRole('link', { name: /^Call details/ })
    const before = await links.count()
    await send(page, text)
    await expect.poll(() => links.count()).toBe(before + costs)
  }

  /** The pixels below what is visible of the conversation. */
  function below(page: Page): Promise<number> {
    return talk(page).evaluate((log) => log.scrollHeight - log.clientHeight - log.scrollTop)
  }

  async function isInWindow(page: Page, name: string): Promise<boolean> {
    const box = await page.getByRole('button', { name, exact: true }).boundingBox()
    const { height } = page.viewportSize() ?? { height: 0 }
    return box !== null && box.y >= 0 && box.y + box.height <= height
  }

  test('the conversation scrolls with a growing answer, unless the user has scrolled up; the button Newest scrolls to its end', async () => {
    const page = await stage.open('root', '/playground?model=scripted')
    stage.upstream.script('scripted', { kind: 'stream', events: 400, word: 'many words ' })
    await sendAndWait(page, 'Say much.')
    await sendAndWait(page, 'Say more.')
    expect(await talk(page).evaluate((log) => log.scrollHeight > log.clientHeight)).toBe(true)
    expect(await below(page)).toBeLessThanOrEqual(A_PIXEL)
    expect(await page.getByRole('button', { name: 'Newest' }).count()).toBe(0)
    expect(await isInWindow(page, 'Send')).toBe(true)

    stage.upstream.script('scripted', { kind: 'stream', events: 3, word: 'drip ', ending: 'stall' })
    await send(page, 'Go on.')
    await talk(page).getByText('drip drip drip').waitFor()
    expect(await below(page)).toBeLessThanOrEqual(A_PIXEL)
    await talk(page).hover()
    await page.mouse.wheel(0, -600)
    const newest = page.getByRole('button', { name: 'Newest' })
    await newest.waitFor()
    const top = await talk(page).evaluate((log) => log.scrollTop)
    await page.getByRole('button', { name: 'Stop' }).click()
    await talk(page).getByText('Stopped. What came until then is charged.').waitFor()
    expect(await talk(page).evaluate((log) => log.scrollTop)).toBe(top)
    await newest.click()
    expect(await below(page)).toBeLessThanOrEqual(A_PIXEL)
    await newest.waitFor({ state: 'detached' })

    // Settings that are higher than the window scroll by themselves.
    await page.setViewportSize({ width: 1280, height: 500 })
    expect(await isInWindow(page, 'Send')).toBe(true)
    const settings = page.getByRole('region', { name: 'Settings' })
    expect(await settings.evaluate((one) => one.scrollHeight > one.clientHeight)).toBe(true)
    expect(await page.evaluate(() => document.documentElement.scrollHeight <= innerHeight)).toBe(true)
    await page.close()
  })

  test('the playground compares the answers of four models to one prompt, and what each would cost in a month', async () => {
    const page = await stage.open('root', '/playground?model=demo-chat')
    for (const [place, name] of [
      [2, 'demo-claude'],
      [3, 'demo-reason'],
      [4, 'scripted'],
    ] as const) {
      await page.getByRole('button', { name: 'Add model' }).click()
      const choice = page.getByRole('combobox', { name: `Model ${place}` })
      await choice.click()
      await page.getByRole('option', { name: new RegExp(`^${name}`) }).click()
    }
    expect(await page.getByRole('button', { name: 'Add model' }).count()).toBe(0)
    stage.upstream.script('scripted', { kind: 'stream', events: 3, word: 'word ' })
    await sendAndWait(page, 'Say hello.', 4)
    const columns = talk(page).getByRole('region')
    expect(await columns.count()).toBe(4)
    const { items } = await stage.api<{ items: { model_name: string; quota: number }[] }>(
      'GET',
      '/api/log/self?page_size=4',
    )
    const calls = page.getByRole('spinbutton', { name: 'Calls a day' })
    await calls.fill('1000')
    const table = page.getByRole('table', { name: 'Comparison' })
    const headings = ['Model', 'Cost', 'First token', 'Total', 'Tokens per second', 'Per month']
    expect(await table.getByRole('columnheader').allInnerTexts()).toEqual(headings)
    for (const name of ['demo-chat', 'demo-claude', 'demo-reason', 'scripted']) {
      const quota = items.find(({ model_name }) => model_name === name)?.quota ?? Number.NaN
      const cells = table.getByRole('row', { name: new RegExp(`^${name} `) }).getByRole('cell')
      const exact = (cell: number): Promise<string | null> =>
        cells.nth(cell).locator('[title]').getAttribute('title')
      expect(await exact(1)).toBe(`${quota / UNITS_PER_USD} USD`)
      for (const time of [2, 3]) expect(await cells.nth(time).innerText()).toMatch(/^[\d.,]+ (?:ms|s)$/)
      expect(await cells.nth(4).innerText()).toMatch(/^[\d.,]*[1-9][\d.,]*$/)
      const column = talk(page).getByRole('region', { name: new RegExp(`^${name}\\b`) })
      expect(await column.getByRole('link', { name: /^Call details: \$/ }).count()).toBe(1)
      expect(await exact(5)).toBe(`${(quota * 1000 * 30) / UNITS_PER_USD} USD`)
    }
    // The address has the models, and a column can be left out again.
    expect(new URL(page.url()).searchParams.get('model4')).toBe('scripted')
    await page.getByRole('button', { name: 'Remove model' }).last().click()
    await expect.poll(() => page.getByRole('combobox', { name: /^Model/ }).count()).toBe(3)
    await page.close()
  })

  test('in a comparison in the playground each model is sent its own earlier answers', async () => {
    const page = await stage.open('root', '/playground?model=demo-chat&model2=scripted')
    stage.upstream.script('scripted', { kind: 'stream', events: 1, word: 'mine-alone' })
    await sendAndWait(page, 'Say hello.', 2)
    const bodies: { model: string; messages: { role: string; content: string }[] }[] = []
    page.on('request', (request) => {
      if (request.url().endsWith('/chat/completions'))
        bodies.push(request.postDataJSON() as (typeof bodies)[0])
    })
    await sendAndWait(page, 'And again.', 2)
    const said = (name: string): string =>
      bodies
        .find(({ model }) => model === name)
        ?.messages.filter(({ role }) => role === 'assistant')
        .map(({ content }) => content)
        .join('|') ?? ''
    expect(said('scripted')).toBe('mine-alone')
    expect(said('demo-chat')).not.toContain('mine-alone')
    expect(said('demo-chat')).not.toBe('')
    await page.close()
  })

  test("a reload keeps the playground's conversation in the tab; Clear and signing out remove it", async () => {
    // Not root, whose session the other tests share.
    const page = await stage.open('caller', '/playground?model=scripted')
    stage.upstream.script('scripted', { kind: 'stream', events: 1, word: 'remembered-answer' })
    await page.getByRole('textbox', { name: 'System prompt' }).fill('Be brief.')
    await sendAndWait(page, 'remembered-question')
    await page.getByRole('textbox', { name: 'Message' }).fill('half a message')
    await page.reload()
    await talk(page).getByText('remembered-answer').waitFor()
    await talk(page).getByText('remembered-question').waitFor()
    await talk(page)
      .getByRole('link', { name: /^Call details/ })
      .waitFor()
    expect(await page.getByRole('textbox', { name: 'System prompt' }).inputValue()).toBe('Be brief.')
    expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('half a message')
    const storage = (): Promise<string> => page.evaluate(() => JSON.stringify(Object.entries(sessionStorage)))
    expect(await storage()).toContain('remembered-answer')
    expect(await storage()).not.toContain(PEOPLE.caller.key.slice(0, 12))
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.reload()
    await talk(page).waitFor()
    expect(await talk(page).innerText()).not.toContain('remembered')
    expect(await storage()).not.toContain('remembered')

    await sendAndWait(page, 'remembered-question')
    await page.getByRole('button', { name: 'Account menu' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    expect(await storage()).not.toContain('remembered')
    await page.close()
  })

  test.each(['Responses', 'Gemini'] as const)(
    'the playground calls a model by the protocol %s, streams its answer and shows its cost',
    async (name) => {
      const page = await stage.open('root', '/playground?model=demo-chat')
      await page.getByRole('radio', { name }).check()
      const asked = page.waitForRequest(/\/api\/playground\//)
      await page.getByRole('textbox', { name: 'System prompt' }).fill('Be brief.')
      await sendAndWait(page, 'Say hello.')
      const path = name === 'Gemini' ? '/models/demo-chat:streamGenerateContent' : '/responses'
      expect(new URL((await asked).url()).pathname).toBe(`/api/playground${path}`)
      expect(await talk(page).getByRole('region').innerText()).toContain('simulated model')
      // The answer is part of the next request.
      const again = page.waitForRequest(/\/api\/playground\//)
      await sendAndWait(page, 'And again.')
      expect((await again).postData()).toContain('simulated model')
      await page.close()
    },
  )

  test('on a phone the playground has the model above the message, and does not mention the Enter key', async () => {
    const page = await stage.open('root', '/playground', {
      viewport: { width: 375, height: 740 },
      isMobile: true,
      hasTouch: true,
    })
    const top = async (locator: ReturnType<Page['locator']>): Promise<number> =>
      (await locator.boundingBox())?.y ?? Number.NaN
    const message = page.getByRole('textbox', { name: 'Message' })
    await message.waitFor()
    expect(await top(page.getByRole('combobox', { name: 'Model' }))).toBeLessThan(await top(message))
    expect(await isInWindow(page, 'Send')).toBe(true)
    expect(await page.getByText(/\bEnter\b/).count()).toBe(0)
    // Open settings take the place of the conversation.
    await page.getByRole('button', { name: 'Settings' }).click()
    await page.getByRole('textbox', { name: 'System prompt' }).waitFor()
    expect(await isInWindow(page, 'Send')).toBe(true)
    await page.close()
  })
})
