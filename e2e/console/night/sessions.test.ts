import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { completionText, errorBody, usageText } from '../../../test/fixtures/behaviour.ts'
import { call } from '../../../test/fixtures/client.ts'
import { axeViolations } from '../axe.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

/** What a page must not run. */
const SCRIPT = '<img src=x onerror="document.title=1">'

interface Listed {
  readonly items: readonly { readonly session: string; readonly username: string; readonly calls: number }[]
}

describe.skipIf(withoutBrowser())('sessions and caches in the console', () => {
  let stage: ConsoleStage
  /** The sessions by who called. */
  const sessions = { messages: '', chat: '', caller: '' }

  beforeAll(async () => {
    stage = await startConsoleStage()
    await stage.api('POST', '/api/channel/', {
      name: 'asking',
      type: 14,
      base_url: stage.upstream.baseUrl('asking'),
      key: 'k',
      models: 'asking',
      cache_diagnostics: true,
    })
    await stage.api('PUT', '/api/models/price', {
      model: 'asking',
      price: { input: '1', output: '2', cache_read: '0.1', cache_write_5m: '1.25' },
    })
    sessions.chat = await chatSession()
    sessions.messages = await messagesSession()
    sessions.caller = await callerSession()
  })
  afterAll(async () => {
    await stage?.close()
  })

  /** Makes a call of a session. */
  async function turn(session: string, body: object, path: string, key: string = PEOPLE.root.key) {
    const { status, text } = await call(stage.gateway.url, body, {
      key: key.replace(/^sk-/, ''),
      path,
      headers: { 'x-session-id': session },
    })
    expect(status, text).toBe(200)
  }

  /** The id of the only session that was not listed before. */
  async function listed(calls: number): Promise<string> {
    const known = new Set(Object.values(sessions))
    const fresh = async () =>
      (await stage.api<Listed>('GET', '/api/sessions')).items.filter(({ session }) => !known.has(session))
    await vi.waitFor(async () => expect((await fresh()).map((one) => one.calls)).toEqual([calls]), {
      timeout: 60_000,
      interval: 100,
    })
    return (await fresh())[0]?.session ?? ''
  }

  /** Reads 2,000 tokens, then none: first with another system prompt, then with the same as before. */
  async function chatSession(): Promise<string> {
    const messages = (system: string) => [
      { role: 'system', content: system },
      { role: 'user', content: 'Hello' },
    ]
    for (const [system, prompt, cached] of [
      ['one', 4_000, 2_000],
      ['two', 5_000, 0],
    ] as const) {
      stage.upstream.script('scripted', { kind: 'whole', usage: usageText(prompt, 100, cached) })
      await turn('chat', { model: 'scripted', messages: messages(system) }, '/v1/chat/completions')
    }
    return listed(2)
  }

  /** Writes 3,000 tokens; then the provider reads none of them, and says why at length. */
  async function messagesSession(): Promise<string> {
    const missed = { cache_miss_reason: { type: 'messages_changed', why: SCRIPT.repeat(40) } }
    for (const [content, written, diagnostics] of [
      ['Hello', 3_000, null],
      ['Hello again', 0, missed],
    ] as const) {
      const usage = {
        input_tokens: 1_000,
        output_tokens: 100,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: written,
      }
      const body = {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'asking',
        content: [{ type: 'text', text: 'said' }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage,
        diagnostics,
      }
      stage.upstream.script('asking', { kind: 'whole', body: JSON.stringify(body) })
      const messages = [{ role: 'user', content }]
      await turn('messages', { model: 'asking', max_tokens: 100, messages }, '/v1/messages')
    }
    return listed(2)
  }

  /** Reads 2,000 tokens; then the first channel fails, and the second one reads none. */
  async function callerSession(): Promise<string> {
    const body = { model: 'shaky', messages: [{ role: 'user', content: 'Hello' }] }
    const cached = (tokens: number) => ({
      kind: 'whole' as const,
      body: completionText('said', usageText(4_000, 100, tokens)),
    })
    stage.upstream.script('first', cached(2_000))
    stage.upstream.script('second', cached(0))
    await turn('caller', body, '/v1/chat/completions', PEOPLE.caller.key)
    stage.upstream.script('first', { kind: 'status', status: 503, body: errorBody('away', 'api_error') })
    await turn('caller', body, '/v1/chat/completions', PEOPLE.caller.key)
    return listed(2)
  }

  const cells = async (page: Page, table: string): Promise<string[][]> => {
    const rows = await page.getByRole('table', { name: table }).locator('tbody tr').all()
    return Promise.all(rows.map((row) => row.locator('td').allInnerTexts()))
  }

  test('the usage page shows cache reads, savings, surcharges and cache breaks by reason; each reason links to its calls', async () => {
    // The sums are written a moment after the calls.
    const sums = () => stage.api<{ totals: { requests: number } }>('GET', '/api/usage?by=none')
    await expect.poll(async () => (await sums()).totals.requests).toBe(6)
    const page = await stage.open('root', '/usage?period=today')
    const cache = page.getByRole('region', { name: 'Cache' })
    const figures = async () => (await cache.locator('dl').innerText()).replaceAll(/\s+/g, ' ')
    // 4,000 of 4,000 + 5,000 + 4,000 + 1,000 + 4,000 + 4,000
    await expect.poll(figures).toContain('Read from caches 18% 4,000 of 22,000 input tokens')
    // 4,000 × 0.45 and 3,000 × 0.125 quota units
    expect(await figures()).toContain('Saved $0.0036')
    expect(await figures()).toContain('Surcharge $0.00075')
    expect(await figures()).toContain('Cache breaks 3 Gateway 1, Client 2')
    expect(await cache.getByText('$0.0036').getAttribute('title')).toBe('0.0036 USD')
    const table = cache.getByRole('table', { name: 'Cache breaks' })
    const rows = (await table.locator('tbody tr').allInnerTexts()).map((row) => row.split('\t'))
    expect(rows.map(([reason, causer, , calls]) => [reason, causer, calls])).toEqual([
      ['The channel changed', 'Gateway', '1'],
      ['The system prompt changed', 'Client', '1'],
      ['Earlier messages changed', 'Client', '1'],
    ])
    await table.getByRole('link', { name: 'The channel changed' }).click()
    await page
      .getByRole('status', { name: 'Totals of these calls' })
      .getByText(/^1 call\b/)
      .waitFor()
    const at = new URL(page.url())
    expect([at.pathname, at.searchParams.get('period'), at.searchParams.get('break')]).toEqual([
      '/logs',
      'today',
      'channel_moved',
    ])
    await page.getByRole('table', { name: 'Calls' }).getByRole('cell', { name: 'second' }).waitFor()

    await page.goto('/usage?period=today&model=shaky')
    await expect.poll(figures).toContain('25% 2,000 of 8,000 input tokens')
    expect(await table.locator('tbody tr').count()).toBe(1)
    await page.goto('/usage?period=today&model=asking')
    await expect.poll(figures).toContain('Surcharge $0.00075')
    await page.close()
  })

  test('savings and surcharges of caches are shown in the display currency', async () => {
    await stage.api('PUT', '/api/option/', { key: 'general_setting.quota_display_type', value: 'CNY' })
    const page = await stage.open('root', '/usage?period=today')
    const cache = page.getByRole('region', { name: 'Cache' })
    await cache.getByText('¥0.02628').waitFor()
    await page.close()
    await stage.api('PUT', '/api/option/', { key: 'general_setting.quota_display_type', value: 'USD' })
  })

  test('the usage page and the log link to the sessions of the same period, which administrators can filter by user', async () => {
    const page = await stage.open('root', '/usage?period=today')
    await page.getByRole('main').getByRole('link', { name: 'Sessions' }).click()
    const table = page.getByRole('table', { name: 'Sessions' })
    await table.waitFor()
    expect(new URL(page.url()).search).toContain('period=today')
    const rows = await cells(page, 'Sessions')
    expect(rows.map(([session, user]) => [session, user])).toEqual([
      [sessions.caller, 'cal'],
      [sessions.messages, 'root'],
      [sessions.chat, 'root'],
    ])
    // Model, key; calls, share, cost, saved, breaks
    expect(rows[2]?.slice(2, 4)).toEqual(['scripted', 'first'])
    expect(rows[2]?.slice(5)).toEqual(['2', '22%', '$0.0076', '$0.0018', 'system prompt\u00A01'])
    await page.getByRole('combobox', { name: 'User' }).fill('cal')
    await page.getByRole('option', { name: 'cal' }).click()
    await expect.poll(() => table.locator('tbody tr').count()).toBe(1)
    expect(new URL(page.url()).searchParams.get('user')).toBe('cal')
    await page.goto('/logs?period=yesterday')
    await page.getByRole('main').getByRole('link', { name: 'Sessions' }).click()
    await page.getByText('No sessions in this period.').waitFor()
    await page.close()
  })

  test("a member sees only the member's own sessions", async () => {
    const caller = await stage.open('caller', '/sessions')
    await caller.getByRole('table', { name: 'Sessions' }).waitFor()
    expect((await cells(caller, 'Sessions')).map(([session]) => session)).toEqual([sessions.caller])
    expect(await caller.getByRole('columnheader', { name: 'User' }).count()).toBe(0)
    expect(await caller.getByRole('combobox', { name: 'User' }).count()).toBe(0)
    await caller.goto(`/sessions/${sessions.chat}`)
    await caller.getByText('This session has no calls in the log, or is not yours.').waitFor()
    await caller.goto(`/sessions/${sessions.caller}`)
    await caller.getByText('The channel changed (Gateway)').waitFor()
    const headings = await caller.getByRole('columnheader').allInnerTexts()
    expect(headings).toContain('Model')
    expect(headings).not.toContain('Channel')
    await caller.close()
    const member = await stage.open('member', '/sessions')
    await member.getByText('No sessions in this period.').waitFor()
    await member.close()
  })

  test('the page of a session has its calls in order, and says why a cache broke', async () => {
    const page = await stage.open('root', '/sessions')
    await page.getByRole('link', { name: sessions.caller }).click()
    await page.getByRole('heading', { name: `Session ${sessions.caller}` }).waitFor()
    const table = page.getByRole('table', { name: 'Calls in order' })
    await table.getByText('The channel changed (Gateway)').waitFor()
    const rows = await cells(page, 'Calls in order')
    // Channel, input, cached, written, output, cost, saved, surcharge
    expect(rows.map((row) => row.slice(2))).toEqual([
      ['first', '4,000', '2,000', '0', '100', '$0.0024', '$0.0018', '$0.00'],
      ['second', '4,000', '0', '0', '100', '$0.0042', '$0.00', '$0.00'],
      [],
    ])
    const totals = await page.getByRole('group', { name: 'Totals of the session' }).innerText()
    expect(totals.replaceAll(/\s+/g, ' ')).toContain('Read from caches 25% 2,000 of 8,000 input tokens')
    await page.getByText('Cache breaks: channel 1.').waitFor()
    await page.close()
  })

  test("a provider's explanation of a cache miss is shown on the page of a session as plain text of limited length", async () => {
    const page = await stage.open('root', `/sessions/${sessions.messages}`)
    const table = page.getByRole('table', { name: 'Calls in order' })
    await table.getByText('Earlier messages changed (Client)').waitFor()
    const rows = await cells(page, 'Calls in order')
    expect(rows.map((row) => [row[3], row[5], row[9]])).toEqual([
      ['4,000', '3,000', '$0.00075'],
      ['1,000', '0', '$0.00'],
      [undefined, undefined, undefined],
    ])
    const verdict = await table.locator('code').innerText()
    expect(verdict).toContain(JSON.stringify(SCRIPT).slice(1, -1))
    expect(verdict).toHaveLength(501)
    expect(await page.locator('main img').count()).toBe(0)
    expect(await page.title()).toContain('Session')
    await page.close()
  })

  test('the details of a call link to its session, and show what the cache saved and why the cache was missed', async () => {
    const page = await stage.open('root', `/sessions/${sessions.chat}`)
    const rows = page.getByRole('table', { name: 'Calls in order' }).locator('[data-row-link]')
    await rows.first().click()
    const sheet = page.getByRole('dialog', { name: 'Call details' })
    await sheet.getByRole('heading', { name: 'Cache' }).waitFor()
    expect(await sheet.innerText()).toMatch(/Saved\s+\$0\.0018/)
    expect(await sheet.getByText('Cache break').count()).toBe(0)
    // The calls of the session stay in their order beside the list.
    await sheet.getByRole('button', { name: 'Next call' }).click()
    await sheet.getByText('The system prompt changed (Client)').waitFor()
    expect(new URL(page.url()).searchParams.get('session')).toBe(sessions.chat)
    await sheet.getByRole('link', { name: sessions.chat }).click()
    await page.getByRole('heading', { name: `Session ${sessions.chat}` }).waitFor()
    await page.close()
  })

  test('the address of the log can filter it by session', async () => {
    const page = await stage.open('root', `/logs?session=${sessions.caller}`)
    const totals = page.getByRole('status', { name: 'Totals of these calls' })
    await totals.getByText(/^2 calls/).waitFor()
    expect(await page.getByRole('textbox', { name: 'Session' }).inputValue()).toBe(sessions.caller)
    await page.reload()
    await totals.getByText(/^2 calls/).waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).first().click()
    await totals.getByText(/^6 calls/).waitFor()
    await page.close()
  })

  test.each([
    ['light', 1280],
    ['dark', 390],
    ['dark', 768],
  ] as const)(
    'in the %s theme at %i pixels no rule of axe is violated, and nothing is wider than the window',
    async (colorScheme, width) => {
      stage.complaints.length = 0
      const page = await stage.open('root', '/usage', { colorScheme, viewport: { width, height: 800 } })
      for (const [path, shown] of [
        ['/usage', 'The channel changed'],
        ['/sessions', sessions.caller],
        [`/sessions/${sessions.messages}`, 'Earlier messages changed (Client)'],
        [`/logs?session=${sessions.chat}&break=system_changed`, 'scripted'],
      ] as const) {
        await page.goto(path)
        await page.getByText(shown).first().waitFor()
        await page.waitForLoadState('networkidle')
        expect.soft(await axeViolations(page), path).toEqual([])
        expect
          .soft(await page.evaluate(() => document.documentElement.scrollWidth), path)
          .toBeLessThanOrEqual(width)
      }
      expect(stage.complaints).toEqual([])
      await page.close()
    },
  )
})
