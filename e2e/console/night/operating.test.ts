import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../../../test/fixtures/behaviour.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'
import { atNight } from '../../../test/runner/tier.ts'

/** The number of consecutive failures after which a channel is in cooldown. */
const FAILURES = 5

describe.skipIf(withoutBrowser())('operating the gateway in the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  async function openNewestCall(page: Page, model: string): Promise<ReturnType<Page['locator']>> {
    await page
      .getByRole('row', { name: new RegExp(model) })
      .locator('[data-row-link]')
      .first()
      .click()
    const sheet = page.getByRole('dialog', { name: 'Call details' })
    await sheet.getByRole('heading', { name: 'Timing' }).waitFor()
    return sheet
  }

  const troubledIn = (page: Page): ReturnType<Page['locator']> =>
    page.getByRole('region', { name: 'Channels that need attention' })

  test("the lines of a call's cost add up to its charge to the unit, with cached tokens on their own line", async () => {
    stage.upstream.script('scripted', { kind: 'whole', content: 'hello', usage: usageText(1000, 100, 400) })
    await stage.call('scripted')
    const page = await stage.open('root', '/logs')
    const sheet = await openNewestCall(page, 'scripted')
    const lines = sheet.getByRole('table', { name: 'Cost lines' }).getByRole('row')
    const cells = async (): Promise<string[][]> =>
      (await lines.allInnerTexts()).map((text) => text.split(/\s*\t\s*/))
    await expect.poll(cells).toEqual([
      ['Charged for', 'Count', 'Price', 'Amount'],
      ['Input', '600', '$1.00/M', '$0.0006'],
      ['Cached input', '400', '$0.10/M', '$0.00004'],
      ['Output', '100', '$2.00/M', '$0.0002'],
      ['Sum', '$0.00084'],
      ['Ratio of the group “default”', '× 1'],
      ['Charge', '$0.00084'],
    ])
    await sheet.getByText('In quota units: 420 × 1 = 420, rounded once.').waitFor()
    const timing = await sheet.locator('dt').allInnerTexts()
    expect(timing).toEqual(expect.arrayContaining(['First token', 'Total']))
    await page.close()
  })

  test('a call that a second channel served shows both attempts to an administrator, and no attempts to a member', async () => {
    stage.upstream.script('first', { kind: 'status', status: 500 })
    expect(await stage.call('shaky', PEOPLE.caller.key)).toBe(200)
    const page = await stage.open('root', '/logs')
    const sheet = await openNewestCall(page, 'shaky')
    const attempts = sheet.getByRole('list', { name: 'Attempts' }).getByRole('listitem')
    await expect
      .poll(() => attempts.allInnerTexts())
      .toEqual([expect.stringMatching(/^first\s+.*500/), expect.stringMatching(/^second\s+Answered/)])
    await page.close()

    const own = await stage.open('caller', '/logs')
    const ownSheet = await openNewestCall(own, 'shaky')
    expect(await ownSheet.getByRole('heading', { name: 'Attempts' }).count()).toBe(0)
    expect(await ownSheet.innerText()).not.toContain('second')
    await own.close()
  })

  atNight(
    'a channel whose upstream is down is in cooldown, with the time left, and works when it is back',
    async () => {
      stage.upstream.script('tired', { kind: 'status', status: 503 })
      const page = await stage.open('root', '/channels')
      const row = page.getByRole('row', { name: /tired/ })
      await row.getByText('Not called yet', { exact: true }).waitFor()
      for (let failure = 0; failure < FAILURES; failure++) await stage.call('tired')
      // The cooldown may be over before it is shown; nothing tries the channel then.
      const shown = /^(?:Resting, .+ left|Being tried again|Waiting for a trial)$/
      await row.getByText(shown).waitFor()
      // Each failed trial doubles the cooldown.
      const reasonAfterCall = async (): Promise<unknown> => {
        await stage.call('tired')
        const texts = row.getByText(/^Resting, .+ left$/)
        return texts.evaluateAll(([text]) => text?.getAttribute('title'))
      }
      await expect.poll(reasonAfterCall, { interval: 500 }).toContain('503')
      const overview = await stage.open('root', '/')
      const troubled = troubledIn(overview)
      const item = troubled.getByRole('listitem').filter({ hasText: 'tired' })
      await item.getByText(shown).waitFor()
      expect(await item.innerText()).toContain('503')
      expect(await item.getByRole('link').getAttribute('href')).toMatch(/^\/channels\//)
      await overview.close()
      const own = await stage.open('caller', '/')
      await own.getByRole('heading', { level: 1 }).waitFor()
      expect(await troubledIn(own).count()).toBe(0)
      await own.close()

      stage.upstream.script('tired', { kind: 'whole' })
      await expect.poll(() => stage.call('tired'), { interval: 500, timeout: 240_000 }).toBe(200)
      await row.getByText('Works', { exact: true }).waitFor()
      await page.goto(new URL('/', page.url()).href)
      await troubledIn(page).waitFor()
      expect(await troubledIn(page).getByText('tired').count()).toBe(0)
      await page.close()
    },
  )

  atNight('the second of two tabs that edit one channel is warned that the first has saved it', async () => {
    const [id] = (
      await stage.api<{ ids: number[] }>('POST', '/api/channel/', {
        mode: 'single',
        channel: {
          name: 'shared',
          type: 1,
          key: 'k',
          models: 'm',
          group: 'default',
          priority: 0,
          weight: 1,
        },
      })
    ).ids
    const first = await stage.open('root', `/channels/${id}`)
    const second = await stage.open('root', `/channels/${id}`)
    await second.getByRole('textbox', { name: 'Name' }).waitFor()
    await first.getByRole('spinbutton', { name: 'Weight' }).fill('3')
    await first.getByRole('button', { name: 'Save changes' }).click()
    await first.getByRole('status').filter({ hasText: 'Channel “shared” saved' }).waitFor()

    await second.getByRole('spinbutton', { name: 'Priority' }).fill('9')
    await second.getByRole('spinbutton', { name: 'Weight' }).fill('4')
    await second.getByRole('button', { name: 'Save changes' }).click()
    const dialog = second.getByRole('dialog', { name: 'Changed meanwhile' })
    expect(await dialog.getByRole('row', { name: /Weight/ }).innerText()).toMatch(/4\s+3/)
    expect(await dialog.getByRole('row', { name: /Priority/ }).count()).toBe(0)
    await dialog.getByRole('button', { name: 'Take theirs' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await second.getByRole('spinbutton', { name: 'Weight' }).inputValue()).toBe('3')
    expect(await second.getByRole('spinbutton', { name: 'Priority' }).inputValue()).toBe('9')
    await second.getByRole('button', { name: 'Save changes' }).click()
    await second.getByRole('status').filter({ hasText: 'Channel “shared” saved' }).waitFor()
    const { weight, priority } = await stage.api<{ weight: number; priority: number }>(
      'GET',
      `/api/channel/${id}`,
    )
    expect({ weight, priority }).toEqual({ weight: 3, priority: 9 })
    await first.close()
    await second.close()
  })

  atNight('what is typed while a form is being saved stays typed', async () => {
    const page = await stage.open('root', `/users/${PEOPLE.caller.id}`)
    const name = page.getByRole('textbox', { name: 'Display name' })
    const remark = page.getByRole('textbox', { name: 'Remark' })
    const save = page.getByRole('button', { name: 'Save changes' })
    const typed = Promise.withResolvers<undefined>()
    await page.route('**/api/user/', async (route) => {
      await typed.promise
      await route.continue()
    })
    await name.fill('Cal')
    await save.click()
    await remark.fill('typed meanwhile')
    typed.resolve(undefined)
    const saved = page.getByRole('status').filter({ hasText: /^Saved/ })
    await saved.waitFor()
    expect(await remark.inputValue()).toBe('typed meanwhile')
    await save.click()
    const user = (): Promise<object> => stage.api('GET', `/api/user/${PEOPLE.caller.id}`)
    await expect.poll(user).toMatchObject({ display_name: 'Cal', remark: 'typed meanwhile' })
    await expect.poll(() => save.isDisabled()).toBe(true)
    await page.close()
  })

  test('changes by console and API, and revealed keys, are in the audit log; secrets are not', async () => {
    const page = await stage.open('root', '/keys')
    const row = page.getByRole('row', { name: /first/ })
    await row.getByRole('button', { name: 'Reveal key' }).click()
    await row.getByText(PEOPLE.root.key).waitFor()
    const { items } = await stage.api<{ items: { id: number; username: string }[] }>(
      'GET',
      '/api/user/?page_size=100',
    )
    const ann = items.find(({ username }) => username === 'ann')
    await stage.api('PUT', '/api/user/', { id: ann?.id, remark: 'changed by a program' })

    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Audit log' }).click()
    const changes = page.getByRole('table', { name: 'Changes' })
    const changed = changes.getByRole('row', { name: /changed by a program/ })
    expect(await changed.innerText()).toMatch(
      /root\s+API, 127\.0\.0\.1[\s\S]*Changed[\s\S]*ann\s+User[\s\S]*Remark:/,
    )
    const revealed = changes.getByRole('row', { name: /Revealed/ })
    expect(await revealed.innerText()).toMatch(/root\s+console, 127\.0\.0\.1[\s\S]*first\s+Key of root/)
    for (const secret of [PEOPLE.root.key, PEOPLE.root.accessToken, PEOPLE.member.password])
      expect(await page.content()).not.toContain(secret)

    await page.getByRole('textbox', { name: 'Object' }).fill('ann')
    await revealed.waitFor({ state: 'detached' })
    expect(page.url()).toContain('object=ann')
    const csv = await page.request.get(
      (await page.getByRole('link', { name: 'Download CSV' }).getAttribute('href')) ?? '',
    )
    expect(await csv.text()).toContain('changed by a program')
    await page.close()
  })

  atNight(
    'the log lists a call when it ends, without moving rows for a user who has scrolled down',
    async () => {
      stage.upstream.script('scripted', { kind: 'whole' })
      for (let call = 0; call < 25; call++) await stage.call('scripted')
      const page = await stage.open('root', '/logs')
      const totals = page.getByRole('status', { name: 'Totals of these calls' })
      await totals.filter({ hasText: 'calls' }).waitFor()
      await page.waitForLoadState('networkidle')
      const answers = ['log/stream', 'usage?', 'log/?'].map((part) =>
        page.waitForResponse((response) => response.url().includes(`/api/${part}`)),
      )
      await page.getByRole('switch', { name: 'Live' }).click({ force: true })
      await Promise.all(answers)
      const asked: string[] = []
      page.on('request', (request) => asked.push(new URL(request.url()).pathname))
      const rows = page.getByRole('table', { name: 'Calls' }).locator('tbody').getByRole('row')
      const before = await rows.count()
      // Failed calls have rows, but are not counted.
      const counted = Number.parseInt(await totals.innerText(), 10)
      await stage.call('demo-chat')
      await rows.filter({ hasText: 'demo-chat' }).first().waitFor()
      expect(await rows.first().innerText()).toContain('demo-chat')
      await expect.poll(() => rows.count()).toBe(before + 1)
      await totals.filter({ hasText: `${counted + 1} calls` }).waitFor()

      await page.evaluate(() => scrollTo({ top: 300, behavior: 'instant' }))
      await stage.call('demo-claude')
      const waiting = page.getByRole('button', { name: '1 new call' })
      await waiting.waitFor()
      expect(await rows.first().innerText()).toContain('demo-chat')
      await waiting.click()
      await rows.first().filter({ hasText: 'demo-claude' }).waitFor()
      expect(asked.filter((path) => /^\/api\/(?:log|usage)/.test(path))).toEqual([])
      await page.close()
    },
  )

  test('a price set in the console applies to the next call and can be reset; a price of gateway.yaml is locked', async () => {
    stage.upstream.script('scripted', { kind: 'whole', usage: usageText(1000, 100) })
    await stage.api('POST', '/api/channel/', {
      mode: 'single',
      channel: {
        name: 'priced here',
        type: 1,
        base_url: stage.upstream.baseUrl('scripted'),
        key: 'k',
        models: 'gpt-4o,unheard-of',
        group: 'default',
      },
    })
    const page = await stage.open('root', '/models')
    const table = page.getByRole('table', { name: 'Models' })
    await table.getByRole('row', { name: /unheard-of.*Without a price/ }).waitFor()
    expect(await table.locator('tbody').getByRole('row').first().innerText()).toContain('Without a price')
    const ofFile = table.getByRole('row', { name: /^scripted/ })
    expect(await ofFile.innerText()).toContain('gateway.yaml')
    expect(await ofFile.getByRole('button').count()).toBe(0)

    const row = table.getByRole('row', { name: /gpt-4o/ })
    const dialog = page.getByRole('dialog', { name: 'Edit price' })
    await row.getByRole('button', { name: 'Edit price' }).click()
    const input = dialog.getByRole('textbox', { name: 'Input', exact: true })
    await input.fill('three')
    await dialog.getByRole('button', { name: 'Save price' }).click()
    await expect.poll(() => input.getAttribute('aria-invalid')).toBe('true')
    await input.fill('3')
    await dialog.getByRole('textbox', { name: 'Output' }).fill('6')
    await dialog.getByText('1,000 in + 500 out = $0.006').waitFor()
    await dialog.getByRole('button', { name: 'Save price' }).click()
    await row.getByText('Set here').waitFor()
    await stage.call('gpt-4o')
    await row.getByRole('button', { name: 'Edit price' }).click()
    await dialog.getByRole('button', { name: 'Use built-in price' }).click()
    await row.getByText('Built in').waitFor()
    await stage.call('gpt-4o')
    // Millionths of a dollar, of 500,000 units each: (1000 × 2.5 + 100 × 10), then (1000 × 3 + 100 × 6).
    const quotas = async (): Promise<number[]> => {
      const { items } = await stage.api<{ items: { quota: number }[] }>('GET', '/api/log/?model_name=gpt-4o')
      return items.map(({ quota }) => quota)
    }
    await expect.poll(quotas).toEqual([1750, 1800])
    await page.close()
  })

  test('a changed form asks for confirmation before the page is left', async () => {
    const page = await stage.open('root', '/channels/new')
    await page.getByRole('textbox', { name: 'Name' }).fill('half done')
    const nav = page.getByRole('navigation', { name: 'Main' })
    await nav.getByRole('link', { name: 'Models' }).click()
    const dialog = page.getByRole('dialog', { name: 'Leave this form?' })
    await dialog.getByRole('button', { name: 'Stay here' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('half done')
    await nav.getByRole('link', { name: 'Models' }).click()
    await dialog.getByRole('button', { name: 'Leave without saving' }).click()
    await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor()
    await page.close()
  })

  atNight('a changed dialog stays open at a click beside it, and asks before it is closed', async () => {
    const page = await stage.open('root', '/keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    const dialog = page.getByRole('dialog', { name: 'Create key' })
    const question = page.getByRole('dialog', { name: 'Leave this form?' })
    const name = dialog.getByRole('textbox', { name: 'Name' })
    await name.fill('half done')
    await page.mouse.click(5, 5)
    await page.keyboard.press('Escape')
    await question.waitFor()
    await page.keyboard.press('Escape')
    await question.waitFor({ state: 'detached' })
    expect(await name.inputValue()).toBe('half done')
    await dialog.getByRole('button', { name: 'Close' }).click()
    await question.getByRole('button', { name: 'Leave without saving' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Create key' }).click()
    await name.waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })

    // What a button of the form changes is a change, too.
    await page.goto('/users?new=1')
    await page.getByRole('button', { name: 'Generate password' }).click()
    await page.keyboard.press('Escape')
    await question.getByRole('button', { name: 'Leave without saving' }).click()
    await page.getByRole('dialog', { name: 'Add user' }).waitFor({ state: 'detached' })

    await page.goto('/account')
    await page.getByRole('textbox', { name: 'Display name' }).fill('half done')
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Models' }).click()
    await question.getByRole('button', { name: 'Leave without saving' }).click()
    await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor()
    await page.close()
  })

  atNight('the folded navigation keeps its accessible names, also on the next page', async () => {
    const page = await stage.open('root', '/keys')
    const link = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Logs' })
    await link.waitFor()
    const width = (await link.boundingBox())?.width ?? 0
    await page.getByRole('button', { name: 'Fold menu' }).click()
    await page.locator('[data-folded]').first().waitFor()
    expect((await link.boundingBox())?.width).toBeLessThan(width / 2)
    await page.reload()
    await link.click()
    await page.getByRole('heading', { level: 1, name: 'Logs' }).waitFor()
    expect((await link.boundingBox())?.width).toBeLessThan(width / 2)
    await page.close()
  })
})
