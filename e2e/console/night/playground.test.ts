import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'
import { atNight } from '../../../test/runner/tier.ts'

const run = promisify(execFile)

/** A response that would run scripts if it were interpreted as HTML. */
const HOSTILE =
  '<script>globalThis.hit = 1</script><img src=x onerror="globalThis.hit = 2"> [a link](javascript:globalThis.hit=3) end'

const TOOLS = JSON.stringify([
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'The weather of a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
])

describe.skipIf(withoutBrowser())('the playground', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  async function send(page: Page, text: string): Promise<void> {
    await page.getByRole('textbox', { name: 'Message' }).fill(text)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
  }

  function answers(page: Page): ReturnType<Page['locator']> {
    return page.getByRole('log', { name: 'Conversation' }).getByRole('region')
  }

  test('a playground response grows as it arrives; Stop ends it, and the log says that the client left', async () => {
    stage.upstream.script('scripted', { kind: 'stream', events: 3, word: 'drip ', ending: 'stall' })
    const page = await stage.open('root', '/playground?model=scripted')
    await send(page, 'go on and on')
    await answers(page).getByText('drip drip drip').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await answers(page).getByText('Stopped. What came until then is charged.').waitFor()
    const reasonOfNewest = async (): Promise<string | undefined> => {
      const { items } = await stage.api<{ items: { reason: string }[] }>(
        'GET',
        '/api/log/?model_name=scripted',
      )
      return items[0]?.reason
    }
    await expect.poll(reasonOfNewest).toBe('client_gone')
    await page.goto('/logs?model=scripted')
    await page.getByRole('row', { name: /Caller left/ }).waitFor()
    await page.close()
  })

  test("the cost below a playground response equals the cost in the call's details and over HTTP", async () => {
    const page = await stage.open('root', '/playground?model=demo-chat')
    await send(page, 'Say hello.')
    const link = answers(page).getByRole('link', { name: /^Call details/ })
    const cost = await link.innerText()
    const { items } = await stage.api<{ items: { id: string; quota: number }[] }>('GET', '/api/log/self')
    expect(await link.getAttribute('title')).toBe(`${((items[0]?.quota ?? 0) / 500_000).toString()} USD`)
    await link.click()
    const lines = page
      .getByRole('dialog', { name: 'Call details' })
      .getByRole('table', { name: 'Cost lines' })
    await lines.getByRole('row', { name: `Charge ${cost}` }).waitFor()
    expect(page.url()).toContain(items[0]?.id)
    await page.close()
  })

  atNight(
    'the playground folds thoughts, and compares two protocols side by side with their costs',
    async () => {
      const page = await stage.open('root', '/playground?model=demo-reason')
      await page.getByText('Chat completions and Messages', { exact: true }).click()
      await page.getByRole('combobox', { name: 'Thinking' }).click()
      await page.getByRole('option', { name: 'Low' }).click()
      await send(page, 'Why is the sky blue?')
      await expect
        .poll(() =>
          answers(page)
            .getByRole('link', { name: /^Call details/ })
            .count(),
        )
        .toBe(2)
      const thoughts = answers(page).locator('details', { hasText: 'Thinking' })
      expect(await thoughts.first().getAttribute('open')).toBeNull()
      expect(await thoughts.first().locator('p').isVisible()).toBe(false)
      await page.close()
    },
  )

  atNight(
    'the playground shows the arguments of a tool call, and Send is disabled until the tools are valid JSON',
    async () => {
      const page = await stage.open('root', '/playground?model=demo-chat')
      const field = page.getByRole('textbox', { name: 'Tools (JSON)' })
      await page.getByRole('textbox', { name: 'Message' }).fill('What is the weather in Paris?')
      await field.fill('[{')
      await page.getByText('This is not a JSON array of tools with names.').waitFor()
      expect(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled()).toBe(true)
      await field.fill(TOOLS)
      await send(page, 'What is the weather in Paris?')
      await answers(page).getByText('Calls get_weather').waitFor()
      // The arguments arrive after the name.
      await expect.poll(() => answers(page).innerText()).toContain('"city"')
      await page.getByRole('textbox', { name: 'Result of get_weather' }).fill('18 degrees')
      await page.getByRole('button', { name: 'Send results' }).click()
      await expect.poll(() => answers(page).count()).toBe(2)
      await page.close()
    },
  )

  atNight(
    'an image attached in the playground is shown, and sent in the format of each protocol',
    async () => {
      const page = await stage.open('root', '/playground?model=demo-chat')
      await page.getByText('Chat completions and Messages', { exact: true }).click()
      const png = await page.screenshot({ clip: { x: 0, y: 0, width: 8, height: 8 } })
      await page
        .locator('input[type=file]')
        .setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: png })
      await page.getByRole('img', { name: 'Image 1' }).waitFor()
      const bodyTo = async (path: string): Promise<string> =>
        (await page.waitForRequest(`**/api/playground/${path}`)).postDataBuffer()?.toString() ?? ''
      const bodies = Promise.all([bodyTo('chat/completions'), bodyTo('messages')])
      await send(page, 'What is this?')
      const [chat, messages] = await bodies
      expect(chat).toMatch(/"image_url":\{"url":"data:image\//)
      expect(messages).toMatch(/"source":\{"type":"base64","media_type":"image\//)
      await page.close()
    },
  )

  test('the code example of a playground request sends the same body as the playground itself', async () => {
    const page = await stage.open('root', '/playground?model=demo-chat')
    let sent: string | null = null
    page.on('request', (request) => {
      if (request.url().endsWith('/api/playground/chat/completions')) sent = request.postData()
    })
    await page.getByRole('textbox', { name: 'System prompt' }).fill("It's short.")
    await page.getByRole('textbox', { name: 'Message' }).fill('Say hello.')
    await page.getByRole('button', { name: 'View code' }).click()
    const dialog = page.getByRole('dialog', { name: 'View code' })
    await dialog.getByRole('tab', { name: 'curl' }).click()
    const curl = await dialog.getByRole('tabpanel').locator('pre').innerText()
    const env = { ...process.env, SLUICE_KEY: PEOPLE.root.key }
    const { stdout } = await run('sh', ['-c', curl.replace('curl ', 'curl --silent ')], {
      env,
      timeout: 60_000,
    })
    expect(stdout).toMatch(/^data: \{|"object": ?"chat\.completion"/)
    const shown: unknown = JSON.parse(
      /-d '([\s\S]*)'$/.exec(curl)?.[1]?.replaceAll(String.raw`'\''`, "'") ?? '',
    )
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await expect.poll(() => sent).not.toBeNull()
    expect(JSON.parse(sent ?? '')).toEqual(shown)
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor()
    // The call that was made, even if the settings have changed since.
    await page.getByRole('textbox', { name: 'System prompt' }).fill('Another one.')
    const opener = page.getByRole('button', { name: 'View code' })
    await opener.click()
    expect(await dialog.getByRole('tabpanel').locator('pre').innerText()).toBe(curl)
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await expect.poll(() => opener.evaluate((button) => button === document.activeElement)).toBe(true)
    await page.getByRole('textbox', { name: 'Message' }).fill('And again.')
    await opener.click()
    await dialog.getByRole('tabpanel').locator('pre').filter({ hasText: 'And again.' }).waitFor()
    await page.close()
  })

  test("the playground shows a model's output as text, which runs no script and has only safe links", async () => {
    stage.upstream.script('scripted', { kind: 'stream', events: 1, word: HOSTILE })
    stage.complaints.length = 0
    const page = await stage.open('root', '/playground?model=scripted')
    await send(page, 'attack me')
    await answers(page).getByText(/end$/).first().waitFor()
    await answers(page)
      .getByRole('link', { name: /^Call details/ })
      .waitFor()
    expect(await page.evaluate(() => 'hit' in globalThis)).toBe(false)
    expect(await answers(page).locator('script, img, a[href^="javascript"]').count()).toBe(0)
    expect(await answers(page).innerText()).toContain('<script>')
    expect(stage.complaints).toEqual([])
    await page.close()
  })

  test("the playground shows the gateway's message for a key without quota, with a link to the key", async () => {
    await stage.api('POST', '/api/token/', {
      name: 'almost empty',
      remain_quota: 1,
      unlimited_quota: false,
      expired_time: -1,
    })
    const { items } = await stage.api<{ items: { id: number; name: string }[] }>(
      'GET',
      '/api/token/?page_size=100',
    )
    const id = items.find(({ name }) => name === 'almost empty')?.id ?? 0
    const page = await stage.open('root', `/playground?model=demo-chat&key=${id}`)
    await send(page, 'Say hello.')
    const alert = answers(page).getByRole('alert')
    await alert.filter({ hasText: /quota/ }).waitFor()
    await alert.getByRole('link', { name: 'Open the key' }).click()
    await page.getByRole('heading', { level: 1, name: 'almost empty' }).waitFor()
    await page.close()
  })

  atNight('the playground keeps the model when another key is chosen that may call it', async () => {
    // The newest key is the one that the other tests would use, so this one is the last.
    await stage.api('POST', '/api/token/', {
      name: 'narrow',
      expired_time: -1,
      remain_quota: 0,
      unlimited_quota: true,
      model_limits_enabled: true,
      model_limits: 'demo-reason',
    })
    const page = await stage.open('root', '/playground')
    const [key, model] = ['Key', 'Model'].map((name) => page.getByRole('combobox', { name, exact: true }))
    const choose = async (name: string): Promise<void> => {
      await key?.click()
      await page.getByRole('option', { name, exact: true }).click()
    }
    await choose('narrow')
    await expect.poll(() => model?.inputValue()).toBe('demo-reason')
    await choose('first')
    await expect.poll(() => key?.inputValue()).toBe('first')
    expect(await model?.inputValue()).toBe('demo-reason')
    await page.close()
  })
})
