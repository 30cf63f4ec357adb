import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { extname, join } from 'node:path'
import process from 'node:process'
import { AxeBuilder } from '@axe-core/playwright'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchBrowser, withoutBrowser } from '../console/chromium.ts'

const ROOT = join(import.meta.dirname, '../..')
const BUILT = join(ROOT, 'site/built')
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
}

let server: Server | undefined
let url = ''
/** The pages by their paths, as HTML. */
const pages = new Map<string, string>()

beforeAll(async () => {
  const build = spawnSync(process.execPath, ['site/build.mjs'], {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 240_000,
  })
  if (build.status !== 0) throw new Error(`the site is not built: ${build.stdout}${build.stderr}`)
  for (const path of readdirSync(BUILT, { recursive: true, encoding: 'utf8' }))
    if (path.endsWith('.html') && path !== '404.html')
      pages.set(`/${path.replace(/(?:index)?\.html$/, '')}`, readFileSync(join(BUILT, path), 'utf8'))
  // Serves files as hosts of static sites do: /api is api.html.
  server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://site').pathname)
    const file = path.endsWith('/') ? `${path}index.html` : extname(path) === '' ? `${path}.html` : path
    try {
      const body = readFileSync(join(BUILT, file))
      response
        .writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' })
        .end(body)
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
})
afterAll(() => void server?.close())

test('the documentation site has a page for each document, a landing page, the changelog and the OpenAPI reference', () => {
  const documents = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `/${path.replace(/README\.md$/, 'overview.md').replace(/\.md$/, '')}`)
  for (const path of ['/', '/changelog', '/reference/management', ...documents])
    expect([...pages.keys()]).toContain(path)
  expect(pages.get('/')).toContain('Three ways to start')
  expect(pages.get('/reference/management')).toContain('GET /api/token/')
  expect(readdirSync(BUILT)).toContain('openapi.json')
})

test('each page of the documentation site, except the landing page, links to its source', () => {
  for (const [path, html] of pages) {
    if (path === '/') continue
    const source = /href="[^"]*\/blob\/main\/([^"#]+)"[^>]*>(?:(?!<\/a>).)*Source of this page/s.exec(
      html,
    )?.[1]
    expect(source, path).toBeDefined()
    expect(() => readFileSync(join(ROOT, source ?? '')), `${path}: ${source}`).not.toThrow()
  }
})

test('every link within the documentation site has a target, and every anchor a heading', () => {
  const broken: string[] = []
  for (const [path, html] of pages)
    for (const [, reference = ''] of html.matchAll(/\s(?:href|src)="([^"]*)"/g)) {
      if (/^(https?:|mailto:|data:)/.test(reference)) continue
      const target = new URL(reference.replaceAll('&amp;', '&'), `http://site${path}`)
      const page = pages.get(target.pathname.replace(/\.html$/, ''))
      const isThere = page !== undefined || readable(join(BUILT, decodeURIComponent(target.pathname)))
      const anchor = decodeURIComponent(target.hash.slice(1))
      if (!isThere || (anchor !== '' && page !== undefined && !page.includes(`id="${anchor}"`)))
        broken.push(`${path}: ${reference}`)
    }
  expect(broken).toEqual([])
})

function readable(path: string): boolean {
  try {
    readFileSync(path)
    return true
  } catch {
    return false
  }
}

test('the documentation site loads no scripts, styles or images from other hosts', () => {
  for (const [path, html] of pages)
    expect(html.match(/<(?:script|link|img)[^>]*(?:src|href)="https?:[^"]*"/g), path).toBeNull()
})

describe.skipIf(withoutBrowser())('the site in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  /** Pages of each kind, and the widths at which they are looked at. */
  const SEEN = [
    { path: '/', widths: [375, 800, 1440] },
    { path: '/comparison', widths: [375, 800, 1440] },
    { path: '/tutorials/claude-code', widths: [375, 1440] },
    { path: '/reference/rerank', widths: [375, 1440] },
  ]

  test.each(['light', 'dark'] as const)(
    'no page of the documentation site has accessibility faults or is cut off, at three widths, in the %s theme',
    async (colorScheme) => {
      const faults: string[] = []
      const context = await browser.newContext({ colorScheme, reducedMotion: 'reduce' })
      const page = await context.newPage()
      page.on('pageerror', ({ message }) => faults.push(message))
      for (const { path, widths } of SEEN)
        for (const width of widths) {
          await page.setViewportSize({ width, height: 900 })
          await page.goto(`${url}${path}`, { waitUntil: 'networkidle' })
          const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
          if (beyond > 0) faults.push(`${path} at ${width}: ${beyond} pixels beyond the edge`)
          const { violations } = await new AxeBuilder({ page }).analyze()
          for (const { id, nodes } of violations)
            faults.push(
              `${path} at ${width}: ${id}: ${nodes
                .slice(0, 2)
                .map(({ html }) => html.slice(0, 200))
                .join(' ')}`,
            )
        }
      await context.close()
      expect(faults).toEqual([])
    },
  )

  test('the search of the documentation site finds a setting by its name', async () => {
    const page = await browser.newPage()
    await page.goto(url, { waitUntil: 'networkidle' })
    await page.keyboard.press('Control+k')
    await page.getByRole('searchbox').fill('keep_responses')
    await page.locator('.VPLocalSearchBox .result').first().waitFor()
    expect(await page.locator('.VPLocalSearchBox .result').first().textContent()).toMatch(/\w/)
    await page.close()
  })
})
