import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']

/** Where the page, as it is displayed, violates a rule of WCAG that axe knows. */
export async function axeViolations(page: Page): Promise<string[]> {
  // A dialog that is still opening is not in its final state.
  await page.evaluate(() =>
    Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => {}))),
  )
  const { violations } = await new AxeBuilder({ page })
    // What passes is not described.
    .options({ runOnly: { type: 'tag', values: TAGS }, resultTypes: ['violations'] })
    // In the page alone, because the other mode opens a second page for frames of other origins.
    .setLegacyMode()
    .analyze()
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  )
}
