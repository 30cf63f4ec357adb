import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { completionText, usageText } from '../../../test/fixtures/behaviour.ts'
import { call } from '../../../test/fixtures/client.ts'
import { axeViolations } from '../axe.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'
import { atNight, byTier, casesByTier } from '../../../test/runner/tier.ts'

/** What a page must not run. */
const SCRIPT = '<img src=x onerror="document.title=1">'

const SOON = { timeout: 60_000, interval: 100 }

interface Listed {
  readonly items: readonly {
    readonly id: string
    readonly session: string
    readonly content_address: string
  }[]
}

describe.skipIf(withoutBrowser())('what was said, in the console', () => {
  let stage: ConsoleStage
  let calls: Listed['items'] = []

  beforeAll(async () => {
    stage = await startConsoleStage()
    await stage.declare('content_log: { what: full, readers: 100 }\n')
    const messages: { role: string; content: string }[] = []
    for (const [question, answer] of [
      ['What is it?', `A cat ${SCRIPT}`],
      ['And now?', 'Still a cat'],
    ] as const) {
      messages.push({ role: 'user', content: question })
      stage.upstream.script('scripted', { kind: 'whole', body: completionText(answer, usageText(20, 5)) })
      const { status, text } = await call(
        stage.gateway.url,
        { model: 'scripted', messages },
        {
          key: PEOPLE.caller.key.replace(/^sk-/, ''),
          headers: { 'x-session-id': 'a-conversation' },
        },
      )
      if (status !== 200) throw new Error(text)
      messages.push({ role: 'assistant', content: answer })
    }
    await vi.waitFor(async () => {
      calls = (await stage.api<Listed>('GET', '/api/log/?model_name=scripted')).items
      if (calls.length < 2 || calls.some(({ content_address: address }) => address === ''))
        throw new Error('content is not kept yet')
    }, SOON)
  })
  afterAll(async () => {
    await stage?.close()
  })

  /** Opens the page of a call once its content is kept, and shows the content. */
  async function openKept(who: 'root' | 'caller', id: string): Promise<Page> {
    await vi.waitFor(async () => {
      const row = await stage.api<Listed['items'][number]>('GET', `/api/log/${id}`)
      if (row.content_address === '') throw new Error('content is not kept yet')
    }, SOON)
    const page = await stage.open(who, `/logs/${id}`)
    await page.getByRole('button', { name: 'Show what was said' }).click()
    return page
  }

  test.each(byTier(['en-US'], ['en-US', 'zh-CN']))(
    'the page of a call shows its stored conversation after a click, in the language %s',
    async (locale) => {
      const page = await stage.open('root', `/logs/${calls[0]?.id}`, { locale })
      const [show, recorded] =
        locale === 'en-US'
          ? ['Show what was said', 'Each look at what others said is recorded.']
          : ['显示对话内容', '每次查看他人的内容都会被记录。']
      await page.getByText(recorded).waitFor()
      await page.getByRole('button', { name: show }).click()
      await page.getByText('Still a cat', { exact: true }).waitFor()
      await page.getByText(`A cat ${SCRIPT}`, { exact: true }).waitFor()
      expect(await page.locator('details').count()).toBe(2)
      expect(await axeViolations(page)).toEqual([])
      await page.close()
    },
  )

  atNight(
    'the page of a call shows tool calls and results folded, and files and unknown parts as they are',
    async () => {
      stage.upstream.script('scripted', { kind: 'whole', body: completionText('A cat', usageText(20, 5)) })
      const { headers } = await call(
        stage.gateway.url,
        {
          model: 'scripted',
          messages: [
            { role: 'system', content: 'Be brief' },
            {
              role: 'user',
              content: [
                { type: 'text', text: 'Look' },
                { type: 'image_url', image_url: { url: 'https://pictures.test/cat.png' } },
                { type: 'hologram', hologram: { at: 1 } },
              ],
            },
            {
              role: 'assistant',
              content: null,
              tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{"at":1}' } }],
            },
            { role: 'tool', tool_call_id: 'c', content: 'a whisker' },
          ],
        },
        { key: PEOPLE.caller.key.replace(/^sk-/, '') },
      )
      const page = await openKept('root', String(headers['x-request-id']))
      const said = page.getByRole('list', { name: 'Conversation' })
      for (const text of [
        'System',
        'Be brief',
        'Look',
        'File: image_url, https://pictures.test/cat.png',
        'A cat',
      ])
        await said.getByText(text, { exact: true }).waitFor()
      await said.getByText('"type": "hologram"').waitFor()
      expect(await said.getByText('a whisker', { exact: true }).isVisible()).toBe(false)
      await said.getByText('Result of a tool').click()
      await said.getByText('a whisker', { exact: true }).waitFor()
      await said.getByText('Calls look').click()
      await said.getByText('"at": 1').last().waitFor()
      expect(await axeViolations(page)).toEqual([])
      await page.close()
    },
  )

  test('what was said is shown as Markdown with pictures, and never as HTML', async () => {
    const dot =
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const picture = `data:image/png;base64,${dot}`
    const said = `**bold** ${SCRIPT} [a](javascript:alert(1)) ![far](https://pictures.test/far.png)`
    stage.upstream.script('scripted', { kind: 'whole', body: completionText(said, usageText(20, 5)) })
    const { headers } = await call(
      stage.gateway.url,
      {
        model: 'scripted',
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: '- one\n- two' },
              { type: 'image_url', image_url: { url: picture } },
            ],
          },
        ],
      },
      { key: PEOPLE.caller.key.replace(/^sk-/, '') },
    )
    const page = await openKept('caller', String(headers['x-request-id']))
    const turns = page.getByRole('list', { name: 'Conversation' })
    await turns.locator('strong', { hasText: 'bold' }).waitFor()
    expect(await turns.locator('ul > li').allInnerTexts()).toEqual(['one', 'two'])
    const image = turns.locator('img')
    expect(await image.evaluateAll((all) => all.map((one) => one.getAttribute('src')))).toEqual([picture])
    await expect.poll(() => image.evaluate((one: HTMLImageElement) => one.naturalWidth)).toBe(1)
    expect(
      await turns.getByRole('link').evaluateAll((all) => all.map((one) => one.getAttribute('href'))),
    ).toEqual(['https://pictures.test/far.png'])
    expect(await page.title()).not.toBe('1')
    await page.close()
  })

  const REDUCED = [
    {
      locale: 'en-US',
      hint: 'Less than the operator keeps, never more.',
      kept: ['What is kept of calls', 'Outlines without texts'],
      time: ['Kept for', '7 days'],
      share: ['Share of calls', 'Enter a number from 0 to 100.', '12.5'],
      save: 'Save changes',
      saved: { content_log_what: 'metadata', content_log_sample: 0.125, content_log_keep: 604_800 },
    },
    {
      locale: 'zh-CN',
      hint: '只能比运营方的设置更少，不能更多。',
      kept: ['调用内容的保留', '不保留'],
      time: ['保留时间', '1 小时'],
      share: ['调用比例', '请输入 0 到 100 之间的数字。', '5'],
      save: '保存更改',
      saved: { content_log_what: 'none', content_log_sample: 0.05, content_log_keep: 3_600 },
    },
  ]
  test.each(casesByTier(1, REDUCED))(
    'the holder of a key can reduce what is stored of its calls, in $locale',
    async (words) => {
      const tokens = () =>
        stage.api<{ items: { id: number }[] }>('GET', `/api/user/${PEOPLE.caller.id}/tokens`)
      const [token] = (await tokens()).items
      const page = await stage.open('caller', `/keys/${token?.id}?tab=settings`, { locale: words.locale })
      const choose = async ([name = '', option = '']: readonly string[]): Promise<void> => {
        await page.getByRole('combobox', { name, exact: true }).click()
        await page.getByRole('option', { name: option, exact: true }).click()
      }
      const [share = '', refusal = '', percent = ''] = words.share
      const save = page.getByRole('button', { name: words.save })
      await page.getByText(words.hint, { exact: true }).waitFor()
      await choose(words.kept)
      await choose(words.time)
      await page.getByRole('textbox', { name: share, exact: true }).fill('101')
      await save.click()
      await page.getByText(refusal).waitFor()
      await page.getByRole('textbox', { name: share, exact: true }).fill(percent)
      expect(await axeViolations(page)).toEqual([])
      await save.click()
      await expect.poll(async () => (await tokens()).items[0], SOON).toMatchObject(words.saved)
      await page.close()
    },
  )

  test("an administrator sets and resets which content of a user's calls is stored", async () => {
    const page = await stage.open('root', `/users/${PEOPLE.caller.id}`)
    const choose = async (name: string, option: string): Promise<void> => {
      await page.getByRole('combobox', { name, exact: true }).click()
      await page.getByRole('option', { name: option, exact: true }).click()
    }
    const saved = () => stage.api<object>('GET', `/api/user/${PEOPLE.caller.id}`)
    await choose('What is kept of calls', 'Everything, byte for byte')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await expect
      .poll(saved)
      .toMatchObject({ content_log_what: 'full', content_log_sample: null, content_log_keep: null })
    await choose('What is kept of calls', 'As set in general')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await expect.poll(saved).toMatchObject({ content_log_what: '' })
    await page.close()
  })

  atNight('the thread of a session shows each message once', async () => {
    const page = await stage.open('root', `/sessions/${calls[0]?.session}`)
    await page.getByRole('button', { name: 'Read as a thread' }).click()
    await page.getByText('Still a cat', { exact: true }).waitFor()
    expect(await page.getByText('What is it?', { exact: true }).count()).toBe(1)
    expect(await page.getByText('And now?', { exact: true }).count()).toBe(1)
    expect(await axeViolations(page)).toEqual([])
    await page.close()
  })

  test('sessions are in the navigation, with their first words; those of others only after a click', async () => {
    const own = await stage.open('caller', '/logs')
    await own.getByRole('navigation').getByRole('link', { name: 'Sessions' }).click()
    const table = own.getByRole('table', { name: 'Sessions' })
    await table.getByRole('link', { name: 'What is it?' }).waitFor()
    await table.getByRole('cell', { name: 'scripted' }).first().waitFor()
    await own.close()
    const root = await stage.open('root', '/sessions')
    const show = root.getByRole('button', { name: 'Show the first words of others' })
    await show.waitFor()
    expect(await root.getByRole('link', { name: 'What is it?' }).count()).toBe(0)
    await show.click()
    await root.getByRole('link', { name: 'What is it?' }).waitFor()
    expect(await axeViolations(root)).toEqual([])
    await root.close()
  })

  test('the list of sessions says that first words cannot be read now, and requests them again', async () => {
    const page = await stage.open('caller', '/logs')
    const seen = Promise.withResolvers<void>()
    let requests = 0
    await page.route('**/api/content/words?*', async (route) => {
      requests += 1
      const data = { items: [], unread: 1, may_read_others: false }
      if (requests === 1) return route.fulfill({ json: { success: true, message: '', data } })
      await seen.promise
      return route.continue()
    })
    await page.getByRole('navigation').getByRole('link', { name: 'Sessions' }).click()
    const missing = page.getByText('Calls whose texts cannot be read now: 1.')
    await missing.waitFor()
    expect(await page.getByRole('region', { name: 'How to keep what is said' }).count()).toBe(0)
    seen.resolve()
    await page.getByRole('link', { name: 'What is it?' }).waitFor()
    expect(await missing.count()).toBe(0)
    await page.close()
  })

  test('a search in what was said finds calls, marks the words, and leads to the call and its thread', async () => {
    const page = await stage.open('caller', '/sessions')
    await page.getByRole('searchbox', { name: 'Search in what was said' }).fill('still A CAT')
    await page.keyboard.press('Enter')
    const hits = page.getByRole('table', { name: 'Calls with these words' })
    await hits.locator('mark', { hasText: 'Still a cat' }).waitFor()
    expect(new URL(page.url()).searchParams.get('q')).toBe('still A CAT')
    await page.getByText(/^Looked at \d+ calls of this period; texts of \d+ are kept/).waitFor()
    expect(await axeViolations(page)).toEqual([])
    await hits.getByRole('link', { name: 'Read thread' }).click()
    await page.getByText('Still a cat', { exact: true }).waitFor()
    await page.close()
    const admin = await stage.open('admin', '/sessions?q=still+a+cat')
    await admin.getByText('Nothing that is kept has “still a cat” in it.').waitFor()
    await admin.getByRole('region', { name: 'How to keep what is said' }).getByText('content_log:').waitFor()
    const field = admin.getByRole('searchbox', { name: 'Search in what was said' })
    await field.fill('bravo')
    await admin.keyboard.press('Enter')
    await admin.waitForURL(/bravo/)
    await admin.goBack()
    await expect.poll(() => field.inputValue()).toBe('still a cat')
    await admin.close()
  })

  atNight(
    'a search in what was said does not run again by itself while the list of sessions moves on',
    async () => {
      const page = await stage.open('caller', '/keys', { isAlone: true })
      const starts: Record<string, Set<string | null>> = {}
      page.on('request', (request) => {
        const { pathname, searchParams } = new URL(request.url())
        const seen = (starts[pathname] ??= new Set())
        seen.add(searchParams.get('start_timestamp'))
      })
      await page.clock.install()
      await page.goto('/sessions?period=hour&q=still+a+cat')
      const hit = page.locator('mark', { hasText: 'Still a cat' })
      await hit.waitFor()
      await page.clock.fastForward(61_000)
      await expect.poll(() => starts['/api/sessions']?.size, SOON).toBeGreaterThan(1)
      await hit.waitFor()
      expect(starts['/api/content/search']?.size).toBe(1)
      await page.getByRole('combobox', { name: 'Period' }).click()
      await page.getByRole('option', { name: 'Today' }).click()
      await expect.poll(() => starts['/api/content/search']?.size, SOON).toBe(2)
      await page.context().close()
    },
  )

  test('members see the stored content of their own calls, and administrators whose role may not read content see none', async () => {
    const own = await stage.open('caller', `/logs/${calls[0]?.id}`)
    await own.getByRole('button', { name: 'Show what was said' }).click()
    await own.getByText('Still a cat', { exact: true }).waitFor()
    expect(await own.getByText('Each look at what others said is recorded.').count()).toBe(0)
    await own.close()
    const admin = await stage.open('admin', `/logs/${calls[0]?.id}`)
    await admin.getByRole('button', { name: 'Show what was said' }).click()
    await admin.getByText('Nothing is kept any more, or you may not read it.').waitFor()
    await admin.close()
    expect(stage.complaints).toEqual([])
  })
})
