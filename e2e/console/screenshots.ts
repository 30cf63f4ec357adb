/**
 * Takes pictures of every page of the console in a world of three months, in both themes, three widths and both
 * languages, and prints what axe finds, headings that are missing, errors in the browser's log, and pages and tables
 * that are wider than the window: `npm run screenshots`, after `npm run console`. `-- --only logs,usage --width 375,1440
 * --theme dark --language en` takes some of them, at other widths, too; `--url http://127.0.0.1:5173` takes them of a running `npm run dev -- --world`.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from './chromium.ts'
import { ANSWERED, startConsoleStage } from './console-stage.ts'
import { PASSWORDS } from './world-catalogue.ts'
import { addServices } from './world-services.ts'

const TARGET = join(import.meta.dirname, 'screenshots')
const RULES = ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']
const WIDTHS = [390, 1280, 1366]
const HEIGHTS: Readonly<Record<number, number>> = { 390: 844, 768: 1024 }
const LANGUAGES = { en: 'en-US', zh: 'zh-CN' } as const

/** Pages by the names of their pictures; the last ones are those of a member. */
const PAGES: readonly (readonly [name: string, path: string, user: string])[] = [
  ['overview', '/', 'root'],
  ['keys', '/keys', 'root'],
  ['key', '/keys/1', 'root'],
  ['create-key', '/keys?new=1', 'root'],
  ['playground', '/playground', 'root'],
  ['playground-two', '/playground?model=gpt-5-mini&model2=claude-haiku-4-5', 'root'],
  ['usage', '/usage', 'root'],
  ['usage-users', '/usage?period=90d&by=user', 'root'],
  ['usage-errors', '/usage?period=30d&by=channel', 'root'],
  ['logs', '/logs', 'root'],
  ['logs-failed', '/logs?status=failed&period=7d', 'root'],
  ['logs-refused', '/logs?status=refused&period=7d', 'root'],
  ['call', 'call', 'root'],
  ['failed-call', 'failed-call', 'root'],
  ['models', '/models', 'root'],
  ['live', '/live', 'root'],
  ['sessions', '/sessions', 'root'],
  ['session', 'session', 'root'],
  ['session-call', 'session-call', 'root'],
  ['what-if', '/what-if', 'root'],
  ['channels', '/channels', 'root'],
  ['channel', '/channels/8', 'root'],
  ['new-channel', '/channels/new', 'root'],
  ['routing', '/routing?model=gpt-5-mini', 'root'],
  ['guards', '/guards', 'root'],
  ['guard', '/guards/customers', 'root'],
  ['new-guard', '/guards?new=1', 'root'],
  ['tools', '/tools', 'root'],
  ['batches', '/batches', 'root'],
  ['batch', 'batch', 'root'],
  ['users', '/users', 'root'],
  ['user', '/users/3', 'root'],
  ['user-keys', '/users/3?tab=keys', 'root'],
  ['user-usage', '/users/3?tab=usage', 'root'],
  ['add-user', '/users?new=1', 'root'],
  ['groups', '/groups', 'root'],
  ['keys-of-all', '/user-keys', 'root'],
  ['audit', '/audit', 'root'],
  ['setup', '/setup', 'root'],
  ['settings', '/settings', 'root'],
  ['import', '/import', 'root'],
  ['account', '/account', 'root'],
  ['member-overview', '/', 'ann'],
  ['member-sessions', '/sessions', 'ann'],
  ['member-session', 'session', 'ann'],
  ['member-keys', '/keys', 'ann'],
  ['member-models', '/models', 'ann'],
  ['member-usage', '/usage', 'ann'],
  ['member-logs', '/logs', 'ann'],
  ['member-failed-call', 'failed-call', 'ann'],
  ['gone', '/keys/9999', 'ann'],
  ['sign-in', '/login', ''],
]

const { values: given } = parseArgs({
  options: {
    only: { type: 'string' },
    width: { type: 'string' },
    theme: { type: 'string' },
    language: { type: 'string' },
    url: { type: 'string' },
    whole: { type: 'boolean', default: false },
  },
})

const wanted = (name: string, choice: string | undefined): boolean =>
  choice?.split(',').includes(name) ?? true

/** What one combination of theme, width and language is shown with. */
interface Look {
  readonly theme: 'light' | 'dark'
  readonly width: number
  readonly language: keyof typeof LANGUAGES
}

let faults = 0

function report(name: string, fault: string): void {
  faults += 1
  console.log(`${name}: ${fault}`)
}

/** Opens a page as a user, with cookies of a sign-in that is made once. */
async function openAs(
  browser: Browser,
  url: string,
  user: string,
  { theme, width, language }: Look,
): Promise<Page> {
  const context = await browser.newContext({
    baseURL: url,
    colorScheme: theme,
    locale: LANGUAGES[language],
    timezoneId: 'Europe/Berlin',
    viewport: { width, height: HEIGHTS[width] ?? 800 },
  })
  if (user !== '') {
    const data = { username: user, password: PASSWORDS[user] }
    const answer = await context.request.post('/api/user/login', { data })
    if (!answer.ok()) throw new Error(`${user} cannot sign in: ${await answer.text()}`)
  }
  const page = await context.newPage()
  const log = (text: string): void => report(`${page.url()} at ${width} in ${theme}, ${language}`, text)
  page.on('console', (message) => {
    if (message.type() === 'error' && !ANSWERED.test(message.text())) log(message.text())
  })
  page.on('pageerror', ({ message }) => log(message))
  return page
}

/** The path of a page; those of calls are found in the log. */
async function pathOf(page: Page, path: string, user: string): Promise<string> {
  if (path.startsWith('/')) return path
  if (path.startsWith('session')) return sessionPath(page, path)
  if (path === 'batch') {
    const batches = await page.request.get('/api/batches?page_size=1')
    return `/batches/${((await batches.json()) as { data: { items: { id: string }[] } }).data.items[0]?.id}`
  }
  const query = path === 'failed-call' ? 'reason=failed' : 'reason=complete'
  const answer = await page.request.get(`/api/log/${user === 'root' ? '' : 'self'}?page_size=1&${query}`)
  const { data } = (await answer.json()) as { data: { items: { id?: string; request_id?: string }[] } }
  const [call] = data.items
  return `/logs/${call?.request_id ?? call?.id}`
}

/** The session of the newest that broke a cache most often, or one of its calls of which the provider gave a verdict. */
async function sessionPath(page: Page, path: string): Promise<string> {
  const sessions = await page.request.get('/api/sessions?page_size=100')
  const { data } = (await sessions.json()) as {
    data: { items: { session: string; breaks: Record<string, number> }[] }
  }
  const [broken] = data.items.toSorted(
    (one, other) => Object.keys(other.breaks).length - Object.keys(one.breaks).length,
  )
  if (path === 'session') return `/sessions/${broken?.session}`
  const calls = await page.request.get(`/api/log/?page_size=100&session=${broken?.session}`)
  const { data: found } = (await calls.json()) as {
    data: { items: { id: string; cache_break: string; cache_verdict: string }[] }
  }
  const call =
    found.items.find(({ cache_verdict: verdict }) => verdict !== '') ??
    found.items.find(({ cache_break: reason }) => reason !== '')
  return `/logs/${call?.id}?session=${broken?.session}`
}

async function settle(page: Page): Promise<void> {
  await page.waitForLoadState('networkidle')
  await page.evaluate(() =>
    Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => undefined))),
  )
  await sleep(400)
}

async function picture(page: Page, name: string, { theme, width, language }: Look): Promise<void> {
  const file = `${name}-${width}-${theme}-${language}`
  await settle(page)
  const { scrollWidth, headings, wide } = await page.evaluate(() => ({
    scrollWidth: document.documentElement.scrollWidth,
    headings: document.querySelectorAll('h1').length,
    wide: [...document.querySelectorAll('[data-wide] table')].map((one) => one.getAttribute('aria-label')),
  }))
  if (scrollWidth > width) report(file, `is ${scrollWidth} pixels wide`)
  if (headings !== 1) report(file, `has ${headings} headings of the first level`)
  for (const table of wide) report(file, `the table ${table} is wider than its place`)
  const { violations } = await new AxeBuilder({ page }).withTags(RULES).analyze()
  for (const { id, nodes } of violations)
    for (const { html, failureSummary } of nodes) report(file, `${id}: ${html} ${failureSummary}`)
  await page.screenshot({ path: join(TARGET, `${file}.png`), fullPage: given.whole })
}

async function takeAll(browser: Browser, url: string): Promise<void> {
  const widths = given.width?.split(',').map(Number) ?? WIDTHS
  const looks = (['light', 'dark'] as const).flatMap((theme) =>
    widths.flatMap((width) => (['en', 'zh'] as const).map((language) => ({ theme, width, language }))),
  )
  for (const look of looks) {
    const { theme, language } = look
    if (!wanted(theme, given.theme) || !wanted(language, given.language)) continue
    const pages = PAGES.filter(([name]) => wanted(name, given.only))
    for (const user of new Set(pages.map(([, , one]) => one))) {
      const page = await openAs(browser, url, user, look)
      for (const [name, path] of pages.filter(([, , one]) => one === user)) {
        await page.goto(await pathOf(page, path, user))
        await picture(page, name, look)
      }
      await page.context().close()
    }
  }
}

mkdirSync(TARGET, { recursive: true })
await using opened = new AsyncDisposableStack()
let { url } = given
if (url === undefined) {
  const stage = opened.adopt(await startConsoleStage('world'), (one) => one.close())
  opened.use(await addServices(stage))
  ;({ url } = stage.gateway)
}
const browser = opened.adopt(await launchBrowser(), (one) => one.close())
await takeAll(browser, url)
console.log(`${faults} faults; the pictures are in ${TARGET}`)
if (faults > 0) process.exitCode = 1
