import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

/** A cell of a table, in pixels of the window. */
interface Cell {
  readonly column: string
  readonly isNumber: boolean
  readonly isActions: boolean
  readonly text: string
  readonly left: number
  readonly right: number
  /** Where its text begins and ends. */
  readonly textLeft: number
  readonly textRight: number
  /** Whether a part of the text is in the tooltip alone. */
  readonly isCut: boolean
}

/** The cells that are displayed, of the heading and all rows. */
function cellsOf(page: Page): Promise<Cell[]> {
  return page.locator('main table').evaluate((table) => {
    const cells = [...table.querySelectorAll<HTMLElement>('th, td')]
    return cells
      .filter((cell) => cell.offsetWidth > 0)
      .map((cell) => {
        const range = document.createRange()
        range.selectNodeContents(cell)
        const [box, text] = [cell.getBoundingClientRect(), range.getBoundingClientRect()]
        return {
          column: cell.dataset['label'] ?? 'a heading',
          isNumber: cell.dataset['number'] !== undefined,
          isActions: cell.dataset['phone'] === 'actions',
          text: cell.innerText,
          left: box.left,
          right: box.right,
          textLeft: text.left,
          textRight: text.right,
          isCut: [...cell.querySelectorAll('[title]')].some(
            ({ scrollWidth, clientWidth, scrollHeight, clientHeight }) =>
              clientWidth > 0 && (scrollWidth > clientWidth + 1 || scrollHeight > clientHeight + 1),
          ),
        }
      })
  })
}

/** The headings that are displayed. */
async function headingsOf(page: Page): Promise<string[]> {
  const shown = page.locator('main th').filter({ visible: true })
  return (await shown.allInnerTexts()).filter((text) => text !== '')
}

/** Borders of cells are between pixels. */
const A_PIXEL = 1

/** The columns of the log that are not hidden at first. */
const COLUMNS = [
  'Time',
  'Model',
  'Key',
  'User',
  'Channel',
  'Status',
  'Tokens',
  'Cost',
  'First token',
  'Total',
]
/** The columns that are left out where all others would not fit. */
const OPTIONAL = ['Key', 'Channel', 'First token']
/** The longest name of a key, a user, a model or a channel. */
const LONG_NAME = 'a-name-that-somebody-pasted-into-the-field-without-a-look-at-its-length-at-all'
/** The navigation is open in windows of this width, and above the page in narrower ones. */
const OPEN_FROM = 900

describe.skipIf(withoutBrowser())('tables in windows of all widths, in a world of three months', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage('world')
    const channel = {
      name: LONG_NAME,
      type: 1,
      base_url: stage.upstream.baseUrl('long'),
      key: 'k',
      models: LONG_NAME,
      group: 'default',
    }
    await stage.api('POST', '/api/channel/', { mode: 'single', channel })
    await stage.api('PUT', '/api/models/price', { model: LONG_NAME, price: { input: 1, output: 2 } })
    await stage.call(LONG_NAME)
  })
  afterAll(async () => {
    await stage?.close()
  })

  test.each([
    { width: 1280, locale: 'en-US', colorScheme: 'light', hidden: [] },
    { width: 1280, locale: 'en-US', colorScheme: 'dark', hidden: [] },
    { width: 1280, locale: 'zh-CN', colorScheme: 'light', hidden: [] },
    { width: 1280, locale: 'zh-CN', colorScheme: 'dark', hidden: [] },
    { width: 1440, locale: 'en-US', colorScheme: 'light', hidden: [] },
    { width: 1440, locale: 'zh-CN', colorScheme: 'dark', hidden: [] },
    { width: 1024, locale: 'en-US', colorScheme: 'light', hidden: OPTIONAL },
    { width: 1024, locale: 'zh-CN', colorScheme: 'dark', hidden: OPTIONAL },
    { width: 768, locale: 'en-US', colorScheme: 'dark', hidden: OPTIONAL },
    { width: 768, locale: 'zh-CN', colorScheme: 'light', hidden: OPTIONAL },
  ] as const)(
    'at $width pixels, the log in $locale and $colorScheme has its columns in view, beside the open navigation too, and no number is cut',
    async ({ width, locale, colorScheme, hidden }) => {
      const page = await stage.open('root', '/logs?period=30d', {
        viewport: { width, height: 800 },
        locale,
        colorScheme,
      })
      await page.locator('main tbody tr').nth(20).waitFor()
      await page.locator('main tbody tr').first().getByText(LONG_NAME).first().waitFor()
      const start = width < OPEN_FROM ? 0 : 224
      if (width >= OPEN_FROM)
        expect((await page.getByRole('navigation').boundingBox())?.width).toBeGreaterThan(180)
      const headings = await headingsOf(page)
      const expected = COLUMNS.filter((name) => !(hidden as readonly string[]).includes(name))
      if (locale === 'en-US') expect(headings).toEqual(expect.arrayContaining(expected))
      expect(headings.length).toBeGreaterThanOrEqual(expected.length)
      for (const cell of await cellsOf(page)) {
        expect(cell.left, cell.column).toBeGreaterThanOrEqual(start)
        expect(cell.right, cell.column).toBeLessThanOrEqual(width)
        if (cell.column === 'Model' && cell.text !== LONG_NAME) expect(cell.isCut, cell.text).toBe(false)
        if (!cell.isNumber) continue
        expect(cell.textLeft, `${cell.column}: ${cell.text}`).toBeGreaterThanOrEqual(cell.left)
        expect(cell.textRight, `${cell.column}: ${cell.text}`).toBeLessThanOrEqual(cell.right)
      }
      await page.close()
    },
  )

  test.each([
    ['/models', 768, 'en-US', 'Source'],
    ['/models', 768, 'zh-CN', undefined],
    ['/channels', 768, 'en-US', 'State'],
    ['/channels', 1280, 'zh-CN', undefined],
    ['/users', 768, 'en-US', 'Status'],
    ['/users', 768, 'zh-CN', undefined],
    ['/users', 1024, 'en-US', 'Left'],
    ['/users', 1280, 'en-US', 'Last active'],
    ['/guards', 768, 'en-US', 'Blocked'],
    ['/guards', 768, 'zh-CN', undefined],
    ['/guards', 1280, 'en-US', 'Delay p95'],
    ['/guards', 1280, 'zh-CN', undefined],
    ['/keys', 768, 'en-US', 'Left'],
    ['/users/3?tab=keys', 768, 'en-US', 'Status'],
  ] as const)(
    'no column of %s is below the buttons of its rows at %i pixels, in %s',
    async (path, width, locale, needed) => {
      const viewport = { width, height: 1024 }
      // A member has keys with budgets.
      const page = await stage.open(path === '/keys' ? 'member' : 'root', path, { viewport, locale })
      await page.locator('main tbody tr').first().waitFor()
      await expect.poll(() => page.locator('main [data-wide]').count()).toBe(0)
      if (needed !== undefined) expect(await headingsOf(page)).toContain(needed)
      const cells = await cellsOf(page)
      const left = Math.min(...cells.filter(({ isActions }) => isActions).map((cell) => cell.left))
      expect(left).toBeLessThan(width)
      for (const { isActions, column, right } of cells)
        if (!isActions) expect(right, column).toBeLessThanOrEqual(left + A_PIXEL)
      await page.close()
    },
  )
})
