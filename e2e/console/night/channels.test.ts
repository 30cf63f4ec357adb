import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

/** The pages of an administrator, the last one without calls or channels. */
const PAGES_OF_ADMINS = [
  '/',
  '/keys/1',
  '/playground',
  '/usage',
  '/logs',
  '/models',
  '/live',
  '/what-if',
  '/channels',
  '/routing',
  '/guards',
  '/users',
  '/users/1',
  '/audit',
  '/account',
]

describe.skipIf(withoutBrowser())('the list of channels', () => {
  let stage: ConsoleStage
  const long = `a-channel-${'with-a-long-name-'.repeat(4)}xy`
  beforeAll(async () => {
    stage = await startConsoleStage()
    stage.upstream.script('scripted', { kind: 'whole' })
    await stage.api('POST', '/api/channel/', {
      mode: 'single',
      channel: {
        name: long,
        type: 1,
        base_url: stage.upstream.baseUrl('scripted'),
        key: 'k',
        models: 'scripted',
        group: 'default',
      },
    })
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('the result of a channel test is shown in a line below the row of the channel, without moving the cells of this row', async () => {
    expect(long).toHaveLength(80)
    const page = await stage.open('root', '/channels')
    const row = page.getByRole('row', { name: new RegExp(long) })
    await row.getByText('Not called yet').waitFor()
    const boxes = (): Promise<unknown> =>
      row.getByRole('cell').evaluateAll((cells) =>
        cells.map((cell) => {
          const { x, y, width, height } = cell.getBoundingClientRect()
          return [x, y, width, height].map(Math.round)
        }),
      )
    const inView = async (): Promise<void> => {
      for (const part of [
        row.getByText('Not called yet').or(row.getByText('Works', { exact: true })),
        row.getByRole('button', { name: 'Disable' }),
        row.getByRole('button', { name: 'Delete' }),
      ]) {
        const { x = -1, width = 0 } = (await part.boundingBox()) ?? {}
        expect(x).toBeGreaterThan(224)
        expect(x + width).toBeLessThanOrEqual(1280)
      }
    }
    await inView()
    const before = await boxes()
    await row.getByRole('button', { name: 'Test', exact: true }).click()
    const line = row.locator('xpath=./following-sibling::tr[1]')
    await line
      .getByRole('status', { name: 'Test result' })
      .getByText(/^Answered in/)
      .waitFor()
    await inView()
    await row.getByText('Works', { exact: true }).waitFor()
    expect(await boxes()).toEqual(before)
    await row.getByRole('link').getByTitle(long, { exact: true }).waitFor()
    await line.getByRole('button', { name: 'Close' }).click()
    await line.getByRole('status', { name: 'Test result' }).waitFor({ state: 'detached' })
    // Where the table is wider than its place, the actions stay at its edge. A reader may widen texts this much.
    await page.setViewportSize({ width: 660, height: 800 })
    await page.locator('html').evaluate((root) => root.style.setProperty('letter-spacing', '0.12em'))
    await page.locator('main [data-wide] table').waitFor()
    const actions = row.locator('td[data-phone="actions"]')
    const { x = 0, width = 0 } = (await actions.boundingBox()) ?? {}
    expect(Math.round(x + width)).toBeLessThanOrEqual(660)
    expect(await actions.evaluate((cell) => getComputedStyle(cell).position)).toBe('sticky')
    await page.close()
  })

  test('the list of channels can be filtered by part of a name or by state, and Test all tests the shown ones in one request', async () => {
    const page = await stage.open('root', '/channels')
    const rows = page.getByRole('table', { name: 'Channels' }).locator('tbody').getByRole('link')
    await page.getByRole('searchbox', { name: 'Filter channels' }).fill('sec')
    await expect.poll(() => rows.allInnerTexts()).toEqual(['second'])
    expect(page.url()).toContain('q=sec')
    const asked: string[] = []
    page.on('request', (request) => {
      if (request.url().includes('/test')) asked.push(new URL(request.url()).pathname)
    })
    stage.upstream.script('second', { kind: 'status', status: 500 })
    await page.getByRole('button', { name: 'Test all' }).click()
    await page
      .getByRole('status', { name: 'Test result' })
      .getByText(/^Failed/)
      .waitFor()
    expect(asked).toEqual(['/api/channel/test/all'])
    expect(stage.upstream.received('first')).toHaveLength(0)
    await page.getByRole('searchbox', { name: 'Filter channels' }).fill('')
    await page.getByRole('radio', { name: 'Failing' }).check()
    await expect.poll(() => rows.allInnerTexts()).toEqual(['second'])
    await page.getByRole('radio', { name: 'Drained' }).check()
    await page.getByText('No channel matches.').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await expect.poll(() => rows.count()).toBeGreaterThan(4)
    await page.close()
  })

  test("the models of a channel are chosen from the provider's list, in which its present models are marked", async () => {
    const page = await stage.open('root', '/channels/new')
    stage.upstream.script('lister', {
      kind: 'whole',
      body: JSON.stringify({ data: ['gpt-a', 'gpt-b', 'gpt-c', 'other'].map((id) => ({ id })) }),
    })
    await page.getByRole('combobox', { name: 'Provider' }).click()
    await page.getByRole('option', { name: 'Other, compatible with OpenAI' }).click()
    await page.getByRole('textbox', { name: 'Base URL' }).fill(stage.upstream.baseUrl('lister'))
    const models = page.getByRole('combobox', { name: 'Models' })
    await models.fill('gpt-a,mine')
    await models.press('Enter')
    await page.getByRole('button', { name: 'Fetch models' }).click()
    const dialog = page.getByRole('dialog', { name: 'Fetch models' })
    await dialog.getByText('in the channel').waitFor()
    expect(await dialog.getByRole('checkbox', { checked: true }).count()).toBe(1)
    await dialog.getByRole('searchbox', { name: 'Filter models' }).fill('GPT')
    expect(await dialog.getByRole('checkbox').count()).toBe(3)
    await dialog.getByRole('button', { name: 'Take all' }).click()
    await dialog.getByRole('checkbox', { name: 'gpt-c' }).uncheck()
    await dialog.getByRole('button', { name: 'Take chosen' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Save channel' }).click()
    await page.getByRole('heading', { level: 1, name: 'channel' }).waitFor()
    const { items } = await stage.api<{ items: { models: string }[] }>(
      'GET',
      '/api/channel/search?model=mine',
    )
    expect(items.map((one) => one.models)).toEqual(['gpt-a,mine,gpt-b'])
    await page.close()
  })

  test('a failing channel is an incident on every page of an administrator, and on none of a member, until it works again', async () => {
    stage.upstream.script('first', { kind: 'status', status: 500 })
    stage.upstream.script('second', { kind: 'whole' }, { kind: 'status', status: 500 })
    expect(await stage.call('shaky')).toBe(200)
    expect(await stage.call('shaky')).toBeGreaterThanOrEqual(500)
    stage.upstream.script('second', { kind: 'whole' })
    const page = await stage.open('admin', '/keys')
    const incident = incidentOf(page, 'first')
    await incident.getByText(/Failing: 100% of its calls failed, since \d\d:\d\d\./).waitFor()
    await incident.getByText(/1 answered by other channels, 1 lost\./).waitFor()
    expect(await incident.getByRole('button').allInnerTexts()).toEqual(['Drain', 'Disable', 'Test', 'Hide'])
    for (const path of PAGES_OF_ADMINS) {
      await page.goto(path)
      await incident.waitFor()
    }
    const member = await stage.open('member', '/keys')
    await member.getByRole('heading', { level: 1 }).waitFor()
    expect(await member.getByRole('region', { name: 'Incident' }).count()).toBe(0)
    await member.close()

    stage.upstream.script('first', { kind: 'whole' })
    await incident.getByRole('button', { name: 'Drain' }).click()
    await incident.waitFor({ state: 'detached' })
    const undo = page.getByRole('button', { name: 'Undo' })
    await undo.waitFor()
    expect(
      await undo
        .locator('span')
        .last()
        .evaluate((one) => one.scrollWidth <= one.clientWidth),
    ).toBe(true)
    await undo.click()
    await incident.waitFor()
    await incident.getByRole('button', { name: 'Hide' }).click()
    await incident.waitFor({ state: 'detached' })
    expect(await stage.call('shaky')).toBe(200)
    await page.reload()
    await page.getByRole('heading', { level: 1, name: 'Account' }).waitFor()
    expect(await incident.count()).toBe(0)
    await page.close()
  })

  test('the buttons of an incident test its channel, and disable it, which one click undoes', async () => {
    const { ids } = await stage.api<{ ids: number[] }>('POST', '/api/channel/', {
      mode: 'single',
      channel: {
        name: 'ailing',
        type: 1,
        base_url: stage.upstream.baseUrl('ailing'),
        key: 'k',
        models: 'shaky',
        group: 'default',
        priority: 20,
      },
    })
    const page = await stage.open('admin', '/keys')
    const incident = incidentOf(page, 'ailing')
    const fail = async (): Promise<void> => {
      stage.upstream.script('ailing', { kind: 'status', status: 500 })
      for (let call = 0; call < 2; call += 1) expect(await stage.call('shaky')).toBe(200)
      await page.reload()
      await incident.waitFor()
      stage.upstream.forget('ailing')
    }
    await fail()
    const testing = incident.getByRole('button', { name: 'Test', exact: true })
    await testing.click()
    await page.getByText(/^Failed/).waitFor()
    expect(stage.upstream.received('ailing')).toHaveLength(1)
    expect(await incident.count()).toBe(1)
    stage.upstream.script('ailing', { kind: 'whole' })
    await testing.click()
    await page.getByText(/^Answered in/).waitFor()
    expect(stage.upstream.received('ailing')).toHaveLength(1)
    // A test says how the channel is; calls that are answered show that it is well.
    expect(await stage.call('shaky')).toBe(200)
    await incident.waitFor({ state: 'detached' })

    const status = async (): Promise<number> =>
      (await stage.api<{ status: number }>('GET', `/api/channel/${ids[0]}`)).status
    await fail()
    await incident.getByRole('button', { name: 'Disable' }).click()
    await incident.waitFor({ state: 'detached' })
    expect(await status()).toBe(2)
    expect(await stage.call('shaky')).toBe(200)
    expect(stage.upstream.received('ailing')).toHaveLength(0)
    await page.getByRole('button', { name: 'Undo' }).click()
    await expect.poll(status).toBe(1)
    await page.close()
    await stage.api('DELETE', `/api/channel/${ids[0]}`)
  })

  test('a channel with half of its attempts failed is shown as Degraded in the list and in its incident', async () => {
    for (let call = 0; call < 10; call += 1) {
      stage.upstream.script('tired', call % 2 === 0 ? { kind: 'status', status: 500 } : { kind: 'whole' })
      await stage.call('tired')
    }
    const page = await stage.open('admin', '/channels')
    const row = page.getByRole('row', { name: /^tired / })
    await row.getByText('Degraded', { exact: true }).waitFor()
    expect(await row.getByText('Works', { exact: true }).count()).toBe(0)
    await incidentOf(page, 'tired')
      .getByText(/Degraded: 50% of its calls failed/)
      .waitFor()
    await page.getByRole('radio', { name: 'Degraded' }).check()
    await expect
      .poll(() =>
        page.getByRole('table', { name: 'Channels' }).locator('tbody').getByRole('link').allInnerTexts(),
      )
      .toEqual(['tired'])
    await page.close()
  })

  test('a key of a channel can be added, retired and used again, and is never shown', async () => {
    const { ids } = await stage.api<{ ids: number[] }>('POST', '/api/channel/', {
      mode: 'single',
      channel: { name: 'rotated', type: 1, key: 'sk-first-key-0123456789', models: 'm', group: 'default' },
    })
    const page = await stage.open('root', `/channels/${ids[0]}`)
    const table = page.getByRole('table', { name: 'Keys' })
    await table.waitFor()
    const headings = await table.getByRole('columnheader').allInnerTexts()
    expect(headings).toEqual(expect.arrayContaining(['Key', 'State', 'Since', 'Calls']))
    await table.getByRole('row', { name: /1 sk-f\*+6789 Works/ }).waitFor()
    await page.getByRole('button', { name: 'Add key' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add key' })
    await dialog.getByRole('textbox', { name: 'API keys' }).fill('sk-second-key-9876543210')
    await dialog.getByRole('button', { name: 'Add key' }).click()
    const second = table.getByRole('row', { name: /sk-s\*+3210/ })
    await second.getByText('Works').waitFor()
    const first = table.getByRole('row', { name: /sk-f/ })
    await first.getByRole('button', { name: 'Retire' }).click()
    await first.getByText('Retired', { exact: true }).waitFor()
    await first.getByRole('button', { name: 'Use again' }).click()
    await first.getByText('Works').waitFor()
    await second.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog', { name: 'Remove key' }).getByRole('button', { name: 'Remove' }).click()
    await second.waitFor({ state: 'detached' })
    expect(await page.content()).not.toMatch(/first-key|second-key/)
    await page.close()
  })

  test('each channel key shows how much of its provider limits is left now and was left in the last hour, and the reset time', async () => {
    const headers = {
      'x-ratelimit-limit-requests': '1000',
      'x-ratelimit-remaining-requests': '37',
      'x-ratelimit-reset-requests': '10m0s',
      'anthropic-ratelimit-tokens-remaining': '80000',
    }
    stage.upstream.script('scripted', { kind: 'whole', headers })
    const { items } = await stage.api<{ items: { id: number; name: string }[] }>(
      'GET',
      '/api/channel/search?keyword=scripted&page_size=100',
    )
    const id = items.find(({ name }) => name === 'scripted')?.id
    // Other channels may serve the model, too.
    const left = async (): Promise<number | undefined> => {
      expect(await stage.call('scripted')).toBe(200)
      const keys = await stage.api<{ limits: { requests?: { remaining: number } } }[]>(
        'GET',
        `/api/channel/${id}/keys`,
      )
      return keys[0]?.limits.requests?.remaining
    }
    await expect.poll(left).toBe(37)
    const path = `/channels/${id}`
    const page = await stage.open('root', path)
    const row = page.getByRole('table', { name: 'Keys' }).getByRole('row').nth(1)
    await row.getByText('37 of 1,000 requests').waitFor()
    await row.getByText('80,000 tokens').waitFor()
    await row.getByRole('img', { name: 'Last hour: at least 4 % left' }).waitFor()
    const reset = Date.parse((await row.locator('time').first().getAttribute('datetime')) ?? '')
    expect(Math.abs(reset - Date.now() - 600_000)).toBeLessThan(120_000)
    await page.close()
    const chinese = await stage.open('root', path, { locale: 'zh-CN' })
    await chinese.getByText('剩余 37 / 1,000 次请求').waitFor()
    await chinese.getByRole('img', { name: '最近一小时：最低剩余 4%' }).waitFor()
    await chinese.close()
  })

  test('the buttons Drain and Undo stop and resume calls to a channel of gateway.yaml with one click each', async () => {
    const page = await stage.open('root', '/channels')
    const row = page.getByRole('row', { name: /^first / })
    await row.getByRole('button', { name: 'Drain' }).click()
    await row.getByText('Drained', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await row.getByText(/^(?:Works|Not called yet)$/).waitFor()
    await page.close()
  })

  test('the search by name and condition finds channels on all pages of the list', async () => {
    const channel = { type: 1, key: 'k', models: 'bulk', group: 'default', base_url: 'http://127.0.0.1:9' }
    for (let n = 1; n <= 120; n += 1)
      await stage.api('POST', '/api/channel/', { mode: 'single', channel: { ...channel, name: `bulk ${n}` } })
    const page = await stage.open('root', '/channels')
    const rows = page.getByRole('table', { name: 'Channels' }).locator('tbody').getByRole('link')
    await rows.nth(20).waitFor()
    expect(await rows.count()).toBeLessThan(120)
    await page.getByRole('searchbox', { name: 'Filter channels' }).fill('bulk 119')
    await expect.poll(() => rows.allInnerTexts()).toEqual(['bulk 119'])
    await page.getByRole('searchbox', { name: 'Filter channels' }).fill('bulk 1')
    await page.getByRole('radio', { name: 'Not called yet' }).check()
    // 1, 10 to 19 and 100 to 120.
    await expect.poll(() => rows.count()).toBe(32)
    await page.getByRole('radio', { name: 'Works' }).check()
    await page.getByText('No channel matches.').waitFor()
    await page.close()
  })
})

/** The notice about a channel that is in trouble. */
function incidentOf(page: Page, name: string): Locator {
  const region = page.getByRole('region', { name: 'Incident' })
  return region.getByRole('alert').filter({ has: page.getByRole('link', { name, exact: true }) })
}
