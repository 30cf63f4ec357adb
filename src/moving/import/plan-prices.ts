import { ratiosJson, type RatioName, type Ratios } from '../../domain/ratios.ts'
import { RATIO_OPTIONS } from '../../management/settings/model-ratios.ts'
import type { FamilyOptions } from './family-options.ts'
import type { PlannedEntry } from './plan-groups.ts'
import { carried } from './report.ts'

/** Plans the ratios of every model that an option names, exactly. */
export function planPrices(options: FamilyOptions): PlannedEntry[] {
  const models = new Map<string, { [Name in RatioName]?: Ratios[Name] }>()
  for (const [option, ratio] of RATIO_OPTIONS) {
    for (const [model, value] of options.decimals(option) ?? []) {
      models.set(model, { ...models.get(model), [ratio]: value })
    }
  }
  return [...models].flatMap(([name, ratios]): PlannedEntry[] => {
    const value = ratiosJson(ratios)
    if (value === undefined) return []
    const notes =
      ratios.model && !ratios.completion && !ratios.price
        ? [
            'nothing is saved there for its output: that follows the built-in price here, else it costs as much as input',
          ]
        : []
    return [{ entry: { section: 'ratios', name, value }, line: carried('price', undefined, name, notes) }]
  })
}
