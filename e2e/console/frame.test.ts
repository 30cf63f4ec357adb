import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { atNight, byTier, casesByTier } from '../../test/runner/tier.ts'
import { axeViolations } from './axe.ts'
import { withoutBrowser } from './chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from './console-stage.ts'

/** Every page with its heading. */
const PAGES = [
  ['/', 'Overview'],
  ['/keys', 'API keys'],
  ['/keys/1', 'first'],
  ['/keys?new=1', 'API keys'],
  ['/playground', 'Playground'],
  ['/usage', 'Usage'],
  ['/logs', 'Logs'],
  ['/sessions', 'Sessions'],
  ['/models', 'Models'],
  ['/live', 'Live calls'],
  ['/what-if', 'What if'],
  ['/channels', 'Channels'],
  ['/channels/new', 'Add channel'],
  ['/routing', 'Routing'],
  ['/guards', 'Guards'],
  ['/guards?new=1', 'Add guard'],
  ['/tools', 'Tools'],
  ['/batches', 'Batches'],
  ['/users', 'Users'],
  ['/users?new=1', 'Users'],
  ['/groups', 'Groups'],
  ['/user-keys', 'Keys of all'],
  ['/audit', 'Audit log'],
  ['/setup', 'Set up Sluice'],
  ['/settings', 'Settings'],
  ['/import', 'Import'],
  ['/account', 'Account'],
] as const

const DESKTOP = { width: 1280, height: 800 }
const PHONE = { width: 375, height: 720 }

describe.skipIf(withoutBrowser())('the frame of the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    await stage.call('demo-chat')
    await stage.call('demo-reason')
  })
  afterAll(async () => {
    await stage?.close()
  })

  async function settled(page: Page, heading: string): Promise<void> {
    await page.getByRole('heading', { level: 1, name: heading, exact: true, includeHidden: true }).waitFor()
    await page.waitForLoadState('networkidle')
  }

  // By day a third of the pages in one combination of theme and width.
  test.each(
    byTier(
      [['light', DESKTOP]],
      [
        ['light', DESKTOP],
        ['dark', PHONE],
        ['light', PHONE],
        ['dark', DESKTOP],
      ],
    ) as (readonly ['light' | 'dark', typeof DESKTOP])[],
  )(
    'in the %s theme at %o no page violates a rule of axe or its content security policy',
    async (colorScheme, viewport) => {
      stage.complaints.length = 0
      const page = await stage.open('root', '/', { colorScheme, viewport })
      for (const [path, heading] of casesByTier(8, PAGES)) {
        await page.goto(path)
        await settled(page, heading)
        expect.soft(await axeViolations(page), path).toEqual([])
      }
      await page.goto('/logs')
      await page.locator('[data-row-link]').first().click()
      await page
        .getByRole('dialog', { name: 'Call details' })
        .getByRole('heading', { name: 'Cost' })
        .waitFor()
      expect.soft(await axeViolations(page), 'details of a call').toEqual([])
      expect(stage.complaints).toEqual([])
      await page.close()
    },
  )

  test.each([
    ['root', byTier(8, 1), /^/],
    ['member', byTier(9, 1), /^\/(?:keys|playground|usage|logs|models|account)?$/],
  ] as const)(
    'a page makes at most four requests when %s opens it (every %dth by day)',
    async (who, nth, allowed) => {
      const page = await stage.open(who, '/account')
      await settled(page, 'Account')
      let asked: string[] = []
      page.on('request', (request) => {
        const { pathname } = new URL(request.url())
        if (pathname.startsWith('/api/')) asked.push(pathname)
      })
      const tried = PAGES.filter(([path]) => allowed.test(path)).filter((_, index) => index % nth === 0)
      for (const [path, heading] of tried) {
        asked = []
        await page.goto(path)
        await settled(page, heading)
        expect.soft(asked, path).toContain('/api/console')
        expect.soft(asked.slice(4), path).toEqual([])
      }
      await page.close()
    },
  )

  test('a member sees no page for administrators, and makes no requests for them', async () => {
    const page = await stage.open('member', '/')
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    const nav = page.getByRole('navigation', { name: 'Main' })
    await nav.getByRole('link', { name: 'API keys' }).waitFor()
    await expect
      .poll(() => nav.getByRole('link').allInnerTexts())
      .toEqual(['Overview', 'API keys', 'Playground', 'Usage', 'Logs', 'Sessions', 'Batches', 'Models'])
    for (const path of casesByTier(4, [
      '/channels',
      '/channels/new',
      '/guards',
      '/guards/secrets',
      '/tools',
      '/users',
      '/users/1',
      '/users/1/keys/1',
      '/user-keys',
      '/groups',
      '/audit',
      '/live',
      '/what-if',
    ])) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1, name: 'This page is for administrators.' }).waitFor()
    }
    await page.waitForLoadState('networkidle')
    expect(
      asked.filter((path) =>
        /^\/api\/(?:channel|guards|user\/(?!self)|option|group|log\/$|audit|token\/all|usage(?!\/self))/.test(
          path,
        ),
      ),
    ).toEqual([])
    await page.close()
  })

  test('the settings page tells an administrator that only root may open it', async () => {
    const page = await stage.open('admin', '/settings')
    await page.getByRole('heading', { level: 1, name: 'This page is for the root user.' }).waitFor()
    await page.close()
  })

  test('a channel of gateway.yaml is marked in the list of channels, and cannot be changed there', async () => {
    const page = await stage.open('root', '/channels')
    const row = page.getByRole('row', { name: /demo-chat-upstream/ })
    await row.getByTitle('from gateway.yaml').waitFor()
    expect(await row.getByRole('button').allInnerTexts()).toEqual(['Test', 'Drain'])
    await row.getByRole('button', { name: 'Test' }).click()
    await page
      .getByRole('status', { name: 'Test result' })
      .getByText(/^Answered in [\d.]+ s$/)
      .waitFor()
    await row.getByRole('link').click()
    await page.getByText(/This channel is declared in gateway.yaml/).waitFor()
    expect(await page.getByRole('button', { name: 'Save changes' }).count()).toBe(0)
    await page.close()
  })

  test('the test of a channel for images warns that the provider bills it, and Test all requests no images from any channel', async () => {
    stage.upstream.script('painter', { kind: 'whole', body: '{"data":[{"b64_json":"AAAA"}]}' })
    const painter = { name: 'painter', type: 1, key: 'sk-painter', models: 'gpt-image-1' }
    const base_url = stage.upstream.baseUrl('painter').replace(/\/v1$/, '')
    const { ids } = await stage.api<{ ids: number[] }>('POST', '/api/channel/', { ...painter, base_url })
    const page = await stage.open('root', '/channels')
    const row = page.getByRole('row', { name: /painter/ })
    const test = row.getByRole('button', { name: 'Test' })
    expect(await test.getAttribute('title')).toBe('Makes a picture or speech, which the provider bills.')
    await page.getByRole('button', { name: 'Test all' }).click()
    const line = row.locator('xpath=./following-sibling::tr[1]')
    await line.getByText(/^Answered in [\d.]+ s$/).waitFor()
    expect(await line.getByText(/The provider bills this test/).count()).toBe(0)
    const paths = () => stage.upstream.received('painter').map(({ path }) => path)
    expect(paths()).toEqual(['/v1/models'])
    const answered = page.getByRole('status', { name: 'Test result' }).filter({ hasText: /Answered/ })
    await expect.poll(() => answered.count()).toBeGreaterThan(5)
    await test.click()
    await line.getByText('The provider bills this test: it asked for a picture or speech.').waitFor()
    expect(paths()).toEqual(['/v1/models', '/v1/images/generations'])
    await page.close()
    await stage.api('DELETE', `/api/channel/${ids[0]}`)
  })

  test('a saved channel is in the list, and its key is not shown anywhere', async () => {
    const page = await stage.open('root', '/channels/new')
    const secret = 'sk-upstream-secret-0123456789'
    const bodies: Promise<string>[] = []
    page.on('response', (response) => {
      if (response.url().includes('/api/')) bodies.push(response.text().catch(() => ''))
    })
    await page.getByRole('textbox', { name: 'Name' }).fill('added')
    await page.getByRole('textbox', { name: 'API keys' }).fill(secret)
    await page.getByRole('combobox', { name: 'Models' }).fill('gpt-x,gpt-y')
    await page.getByRole('combobox', { name: 'Models' }).press('Enter')
    await page.getByRole('button', { name: 'Save channel' }).click()
    await page.getByRole('heading', { level: 1, name: 'added' }).waitFor()
    await page.getByRole('link', { name: 'All channels' }).click()
    await page.getByRole('row', { name: /added/ }).getByText('2 models').waitFor()
    expect((await Promise.all(bodies)).join()).not.toContain(secret)
    expect(await page.content()).not.toContain(secret)
    await page.close()
  })

  atNight('the head of a table stays above its rows in every column while they pass below it', async () => {
    const page = await stage.open('root', '/models', { viewport: { width: 1360, height: 360 } })
    const table = page.getByRole('table', { name: 'Models' })
    await table.getByRole('row').last().scrollIntoViewIfNeeded()
    const covered = await table.evaluate((shown) => {
      const heads = [...shown.querySelectorAll('th')]
      return heads.filter((head) => {
        const { left, top, height } = head.getBoundingClientRect()
        return document.elementFromPoint(left + 10, top + height / 2)?.closest('th') !== head
      }).length
    })
    expect(await table.evaluate((shown) => shown.getBoundingClientRect().top)).toBeLessThan(0)
    expect(covered).toBe(0)
    await page.close()
  })

  test('the overview shows the users who spend most in the month, and links to their usage', async () => {
    const page = await stage.open('admin', '/')
    const spenders = page.getByRole('region', { name: 'Who spends most' })
    await spenders.getByRole('listitem').filter({ hasText: 'root' }).getByText('100%').waitFor()
    await spenders.getByRole('link', { name: 'root' }).click()
    await settled(page, 'Usage')
    expect(page.url()).toMatch(/\?period=month&user=root$/)
    await page.close()
    const own = await stage.open('member', '/')
    await settled(own, 'Overview')
    expect(await own.getByRole('region', { name: 'Who spends most' }).count()).toBe(0)
    await own.close()
  })

  test("an administrator adds a user and then $5 to the user's quota, and the dialog shows the quota before and after", async () => {
    const page = await stage.open('admin', '/users?new=1')
    const dialog = page.getByRole('dialog', { name: 'Add user' })
    await dialog.getByRole('textbox', { name: 'Username' }).fill('cyd')
    await dialog.getByRole('textbox', { name: 'Password' }).fill('a long password')
    await dialog.getByRole('button', { name: 'Create user' }).click()
    const row = page.getByRole('row', { name: /cyd/ })
    await row.getByRole('button', { name: 'Add quota' }).click()
    await page.getByRole('textbox', { name: 'Amount' }).fill('5')
    await page.getByText('$0.00 → $5.00').waitFor()
    await page.getByRole('dialog', { name: 'Add quota' }).getByRole('button', { name: 'Add quota' }).click()
    await row.getByText('$5.00').waitFor()
    await row.getByRole('button', { name: 'Disable' }).click()
    await row.getByText('Disabled').waitFor()
    await page.close()
  })

  test("the filters of the log are in the page's address, survive a reload, and determine which calls the totals add up", async () => {
    const page = await stage.open('root', '/logs')
    const totals = page.getByRole('status', { name: 'Totals of these calls' })
    await totals.filter({ hasText: '2 calls' }).waitFor()
    await page.getByRole('combobox', { name: 'Model' }).fill('demo-reason')
    await page.getByRole('option', { name: 'demo-reason' }).click()
    await totals.filter({ hasText: '1 call ·' }).waitFor()
    expect(page.url()).toContain('model=demo-reason')
    await page.reload()
    await totals.filter({ hasText: '1 call ·' }).waitFor()
    await page.locator('.mantine-MultiSelect-pill').filter({ hasText: 'demo-reason' }).waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await totals.filter({ hasText: '2 calls' }).waitFor()

    stage.upstream.script('scripted', { kind: 'status', status: 500 })
    expect(await stage.call('scripted')).toBe(500)
    await page.getByRole('combobox', { name: 'Status' }).click()
    await page.getByRole('option', { name: 'Failed' }).click()
    await totals.filter({ hasText: '1 call · 0 tokens' }).waitFor()
    await page.getByRole('table', { name: 'Calls' }).getByRole('cell', { name: 'scripted' }).first().waitFor()
    expect(page.url()).toContain('status=failed')
    await page.getByRole('combobox', { name: 'Status' }).click()
    await page.getByRole('option', { name: 'Complete' }).click()
    await totals.filter({ hasText: '2 calls' }).waitFor()
    await page.close()
  })

  test('an unreachable gateway is reported, and pages recover when it is back', async () => {
    const page = await stage.open('root', '/keys')
    await page.getByRole('link', { name: 'first' }).waitFor()
    await stage.gateway.stop()
    await page.getByRole('link', { name: 'Models', exact: true }).click()
    await page.getByRole('alert').filter({ hasText: 'Connection lost. Trying again…' }).waitFor()
    await stage.gateway.restart()
    await page.getByRole('alert').filter({ hasText: 'Connection lost' }).waitFor({ state: 'detached' })
    await page.getByRole('table', { name: 'Models' }).waitFor()
    await page.close()
  })

  atNight(
    'pages and the list of shortcuts can be opened by keyboard, and the focus returns afterwards',
    async () => {
      const page = await stage.open('root', '/')
      await settled(page, 'Overview')
      await page.keyboard.press('Control+k')
      // Keys that are pressed before the palette has the focus do not go to it.
      await expectFocus(page.getByRole('combobox', { name: 'Search pages and actions' }))
      await page.keyboard.type('keys')
      await page.getByRole('option', { name: 'API keys', selected: true }).waitFor()
      await page.keyboard.press('Enter')
      await settled(page, 'API keys')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      const filter = page.getByRole('searchbox', { name: 'Filter keys' })
      await page.keyboard.press('/')
      await expectFocus(filter)
      const create = page.getByRole('button', { name: 'Create key' })
      await create.focus()
      await page.keyboard.press('?')
      await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await expectFocus(create)
      await page.close()
    },
  )

  test('what the arrow keys choose in the search is in sight, and so is the field', async () => {
    const page = await stage.open('root', '/')
    await settled(page, 'Overview')
    await page.keyboard.press('Control+k')
    const field = page.getByRole('combobox', { name: 'Search pages and actions' })
    await expectFocus(field)
    const options = page.getByRole('option')
    // The first option follows the last, and the last one is before the first.
    for (const [key, chosen] of [
      ['ArrowUp', options.last()],
      ['ArrowDown', options.first()],
    ] as const) {
      await page.keyboard.press(key)
      await page.getByRole('option', { selected: true }).and(chosen).waitFor()
      for (const seen of [chosen, field])
        expect(await seen.evaluate(isAtItsCentre), `after ${key}`).toBe(true)
    }
    await page.close()
  })

  atNight('the search says that it searches until the gateway has answered', async () => {
    const page = await stage.open('root', '/')
    await settled(page, 'Overview')
    const answer = Promise.withResolvers<void>()
    await page.route('**/api/find?*', async (route) => {
      await answer.promise
      await route.fulfill({ json: { success: true, data: { items: [] } } })
    })
    await page.keyboard.press('Control+k')
    const field = page.getByRole('combobox', { name: 'Search pages and actions' })
    await field.fill('nothing-like-this')
    const palette = page.getByRole('dialog', { name: 'Command palette' })
    await palette.getByText('Searching…').waitFor()
    expect(await palette.getByText('Nothing found.').count()).toBe(0)
    answer.resolve()
    await palette.getByText('Nothing found.').waitFor()
    expect(await palette.getByText('Searching…').count()).toBe(0)
    await page.close()
  })

  test('the start page makes at most four requests to the API, and none of them again within 25 s', async () => {
    const page = await stage.open('root', '/keys', { isAlone: true })
    await settled(page, 'API keys')
    // The page's clock only goes where it is moved: on a slow machine, loading the page takes none of the 25 s.
    const now = Date.now()
    await page.clock.install({ time: now - 3_600_000 })
    await page.clock.pauseAt(now)
    const asked: string[] = []
    page.on('request', (request) => {
      const { pathname } = new URL(request.url())
      if (pathname.startsWith('/api/')) asked.push(pathname)
    })
    await page.goto('/')
    const figure = page.getByRole('figure', { name: 'Last 30 days' }).getByRole('listitem')
    let movedMs = 0
    const drawn = async (): Promise<number> => {
      await page.clock.runFor(10)
      movedMs += 10
      return figure.count()
    }
    await expect.poll(drawn).toBeGreaterThan(0)
    await settled(page, 'Overview')
    await page.clock.runFor(25_000 - movedMs)
    await page.waitForLoadState('networkidle')
    expect(asked.length, asked.join()).toBeLessThanOrEqual(4)
    await page.close()
  })

  atNight(
    'at 320 pixels no page scrolls sideways, and nothing moves where reduced motion is set',
    async () => {
      const page = await stage.open('root', '/', {
        viewport: { width: 320, height: 640 },
        reducedMotion: 'reduce',
      })
      for (const [path, heading] of casesByTier(4, PAGES)) {
        await page.goto(path)
        await settled(page, heading)
        expect.soft(await page.evaluate(() => document.documentElement.scrollWidth), path).toBe(320)
      }
      await page.goto('/keys')
      const duration = await page
        .getByRole('button', { name: 'Create key' })
        .evaluate((button) => getComputedStyle(button).transitionDuration)
      expect(duration).toBe('0s')
      await page.close()
    },
  )

  atNight(
    'in a low window the pages of the navigation scroll, below the search and above the account',
    async () => {
      const page = await stage.open('root', '/', { viewport: { width: 1366, height: 560 } })
      await settled(page, 'Overview')
      const boxOf = (name: string) => page.getByRole('button', { name }).boundingBox()
      expect(await boxOf('Search')).toMatchObject({ height: 32 })
      const account = await boxOf('Account menu')
      expect((account?.y ?? 0) + (account?.height ?? 0)).toBeLessThanOrEqual(560)
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Settings' }).click()
      await settled(page, 'Settings')
      await page.close()
    },
  )

  atNight(
    'the theme follows the system, can be set and survives a reload; Chinese browsers get Chinese texts',
    async () => {
      const page = await stage.open('root', '/account', { colorScheme: 'dark' })
      await settled(page, 'Account')
      const theme = (): Promise<string | undefined> =>
        page.evaluate(() => document.documentElement.dataset['theme'])
      expect(await theme()).toBe('dark')
      await page.getByRole('radio', { name: 'Light' }).click()
      expect(await theme()).toBe('light')
      await page.reload({ waitUntil: 'commit' })
      await page.waitForFunction(() => document.documentElement.dataset['theme'] !== undefined)
      expect(await theme()).toBe('light')
      await page.close()

      const chinese = await stage.open('root', '/keys', { locale: 'zh-CN' })
      await settled(chinese, 'API 密钥')
      expect(await chinese.evaluate(() => document.documentElement.lang)).toBe('zh-CN')
      const buttons = await chinese.getByRole('button').allInnerTexts()
      expect(
        buttons.filter((text) =>
          /[a-z]{3}/i.test(text.replace(PEOPLE.root.key, '').replace(/root|Ctrl K/, '')),
        ),
      ).toEqual([])
      await chinese.close()
    },
  )

  async function expectFocus(locator: ReturnType<Page['locator']>): Promise<void> {
    await expect.poll(() => locator.evaluate((element) => element === document.activeElement)).toBe(true)
  }
})

/** Whether nothing covers the middle of an element of the page, and it is within the window. */
function isAtItsCentre(element: Element): boolean {
  const { x, y, width, height } = element.getBoundingClientRect()
  return element.contains(document.elementFromPoint(x + width / 2, y + height / 2))
}
