import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { byTier, casesByTier, pairsByDay } from '../../../test/runner/tier.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, LONG_NAMES, startConsoleStage } from '../console-stage.ts'

const PAGES = [
  '/',
  '/keys',
  '/keys?new=1',
  '/playground',
  '/usage',
  '/logs',
  '/logs?status=refused',
  '/models',
  '/live',
  '/sessions',
  '/what-if',
  '/channels',
  '/channels/new',
  '/routing',
  '/guards',
  '/guards?new=1',
  '/tools',
  '/batches',
  '/users',
  '/users?new=1',
  '/user-keys',
  '/groups',
  '/audit',
  '/setup',
  '/settings',
  '/import',
  '/account',
] as const

const LOCALES = byTier(['en-US'], ['en-US', 'zh-CN'])
/** Windows of laptops and of a phone. */
const WIDTHS = [1280, 1366, 1440, 390]
/** With wide letters, with serifs, and with Chinese ones; .ci/run installs what Chromium does not bring. */
const FONTS = ['DejaVu Sans', 'DejaVu Serif', 'Noto Sans CJK SC']
const WINDOWS = pairsByDay(
  PAGES.flatMap((path) => WIDTHS.flatMap((width) => FONTS.map((font) => [path, width, font] as const))),
)
/** The pixels of a text that are seen at least: a dozen letters. */
const LEAST_OF_A_NAME = 84

/** What is wrong with the page as it is displayed now. */
function faultsOf(page: Page): Promise<string[]> {
  return page.evaluate((least) => {
    const found = new Set<string>()
    const width = document.documentElement.scrollWidth
    if (width > innerWidth) found.add(`the page is ${width} pixels wide`)
    for (const table of document.querySelectorAll('[data-wide] table'))
      found.add(`the table ${table.getAttribute('aria-label')} is wider than its place`)
    for (const cell of document.querySelectorAll<HTMLElement>('main td, main th')) {
      if (cell.offsetWidth === 0 || getComputedStyle(cell).display === 'none') continue
      const column = cell.dataset['label'] ?? cell.innerText
      const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
      for (let node = texts.nextNode(); node; node = texts.nextNode()) examine(node as Text, cell, column)
    }
    return [...found]

    function examine(node: Text, cell: HTMLElement, column: string): void {
      const { data, parentElement: parent } = node
      if (parent === null || data.trim() === '' || isHidden(parent)) return
      for (const { 0: word, index } of data.matchAll(/[\p{L}\p{N}]+/gu)) {
        // Chinese may be broken between any two characters.
        if (/\p{Script=Han}/u.test(word)) continue
        const tops = rectsOf(node, index, index + word.length).map(({ top }) => Math.round(top))
        if (new Set(tops).size > 1) found.add(`${column}: “${word}” is broken`)
      }
      const clip = clippingAncestor(parent, cell)
      const shown = (clip ?? cell).getBoundingClientRect()
      const isCut =
        clip !== undefined &&
        (clip.scrollWidth > clip.clientWidth + 1 || clip.scrollHeight > clip.clientHeight + 1)
      if (isCut && !parent.closest('[title]')?.getAttribute('title')?.includes(data.trim()))
        found.add(`${column}: “${data}” is cut, and no tooltip has the whole`)
      const lines = Math.round(shown.height / Number.parseFloat(getComputedStyle(parent).lineHeight))
      if (isCut && shown.width * lines < least)
        found.add(`${column}: of “${data}” ${Math.round(shown.width)} pixels are seen`)
      if (isCut && getComputedStyle(clip).textOverflow !== 'ellipsis')
        found.add(`${column}: “${data}” is cut without an ellipsis`)
      const place = cell.getBoundingClientRect()
      if (shown.right > place.right + 1 || shown.right > innerWidth + 1)
        found.add(`${column}: “${data}” ends outside of its cell`)
      if (clip) return
      for (const { right } of rectsOf(node, 0, data.length))
        if (right > place.right + 1) found.add(`${column}: “${data}” ends outside of its cell`)
    }

    function rectsOf(node: Text, from: number, to: number): DOMRect[] {
      const range = document.createRange()
      range.setStart(node, from)
      range.setEnd(node, to)
      return [...range.getClientRects()].filter((rect) => rect.width > 0)
    }

    /** The nearest element in the cell, or the cell, that cuts what does not fit. */
    function clippingAncestor(from: Element, cell: Element): Element | undefined {
      for (let one: Element | null = from; one; one = one.parentElement) {
        if (getComputedStyle(one).overflowX === 'hidden') return one
        if (one === cell) return undefined
      }
      return undefined
    }

    /** Whether it is there for screen readers alone. */
    function isHidden(element: Element): boolean {
      return element.closest('[data-hidden]') !== null || !element.checkVisibility()
    }
  }, LEAST_OF_A_NAME)
}

/** Displays the page in a font; the width of a text tells whether there is one. */
async function useFont(page: Page, font: string): Promise<number> {
  return page.evaluate((name) => {
    const style = document.querySelector('#tried-font') ?? document.createElement('style')
    style.id = 'tried-font'
    style.textContent = `body, body * { font-family: "${name}" !important }`
    document.head.append(style)
    const probe = document.createElement('span')
    probe.textContent = 'Handgloves 渠道'
    document.body.append(probe)
    const { width } = probe.getBoundingClientRect()
    probe.remove()
    return width
  }, font)
}

describe.skipIf(withoutBrowser())(
  'tables with long and Chinese names, in windows of four widths and three fonts',
  () => {
    let stage: ConsoleStage
    const pages = new Map<string, Page>()
    beforeAll(async () => {
      stage = await startConsoleStage('named')
      for (const locale of LOCALES)
        pages.set(locale, await stage.open('root', '/', { locale, bypassCSP: true }))
      for (const [place, name] of LONG_NAMES.entries()) {
        await stage.call(name, `sk-${place}`.padEnd(51, 'n'))
        await stage.call('tired')
        await stage.call('no-such-model', `sk-${place}`.padEnd(51, 'n'))
      }
    })
    afterAll(async () => {
      await stage?.close()
    })

    test('the fonts are installed: a text is not as wide in one as in another', async () => {
      const page = pages.get('en-US') as Page
      const widths = new Set<number>()
      for (const font of FONTS) widths.add(await useFont(page, font))
      expect(widths.size).toBe(FONTS.length)
    })

    test.each(LOCALES.flatMap((locale) => casesByTier(9, PAGES).map((path) => [path, locale] as const)))(
      '%s breaks no word, hides no name and overflows nowhere, in %s',
      async (path, locale) => {
        const page = pages.get(locale) as Page
        await page.goto(path)
        await page.locator('main h1, [role=dialog]').first().waitFor()
        await page.waitForLoadState('networkidle')
        const faults: string[] = []
        for (const [, width, font] of WINDOWS.filter(([one]) => one === path)) {
          await useFont(page, font)
          await page.setViewportSize({ width, height: 800 })
          // Twice, because a table learns of its new width after a frame.
          await page.evaluate(
            () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
          )
          faults.push(...(await faultsOf(page)).map((fault) => `${width} in ${font}: ${fault}`))
        }
        expect(faults).toEqual([])
      },
    )

    test('the page of a call has guards below its cost, with whole names, and each verdict in one line', async () => {
      const { items } = await stage.api<{ items: { id: string }[] }>(
        'GET',
        '/api/log/?page_size=1&reason=complete',
      )
      const page = await stage.open('root', `/logs/${items[0]?.id}`, {
        viewport: { width: 390, height: 800 },
      })
      const dialog = page.getByRole('dialog', { name: 'Call details' })
      const names = LONG_NAMES.slice(0, 2)
      for (const name of names) {
        const row = dialog.locator('dl > div').filter({ hasText: name })
        const faults = await row.evaluate((one) => {
          const [label, value] = one.children as unknown as [HTMLElement, HTMLElement]
          const lines = (element: HTMLElement): number => {
            const range = document.createRange()
            range.selectNodeContents(element)
            return new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom / 8))).size
          }
          return {
            cut: label.scrollWidth > label.clientWidth + 1,
            outside: [label, value].some((part) => part.getBoundingClientRect().right > innerWidth),
            lines: lines(value),
          }
        })
        expect(faults, name).toEqual({ cut: false, outside: false, lines: 1 })
      }
      const headings = await dialog.getByRole('heading', { level: 3 }).allInnerTexts()
      expect(headings.indexOf('Guards')).toBeGreaterThan(headings.indexOf('Cost'))
      await page.close()
    })
  },
)
