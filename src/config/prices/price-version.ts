import { createHash } from 'node:crypto'
import type { Decimal } from '../../domain/decimal.ts'
import { PLAIN_UNITS, type Price } from '../../domain/price.ts'
import type { Group } from '../../domain/records/group.ts'
import { TOKEN_KINDS, type TokenPrices } from '../../domain/token-kinds.ts'
import type { ModelSettings } from '../../domain/records/model.ts'

/** All settings that affect a charge. */
export interface Priced {
  readonly quotaPerUnit: number
  readonly groups: ReadonlyMap<string, Group>
  readonly models: ReadonlyMap<string, ModelSettings>
  /** Model → vendor whose price list applies. */
  readonly preferred: ReadonlyMap<string, string>
  readonly builtInVersion: string
}

/** Twelve hexadecimal digits that identify a set of prices, regardless of how the prices are written. */
export function priceVersion({ quotaPerUnit, groups, models, preferred, builtInVersion }: Priced): string {
  const content = [
    quotaPerUnit,
    byName(groups, ({ ratio }) => canonical(ratio)),
    byName(models, ({ vendor, price }) => [vendor ?? null, price ? priceContent(price) : null]),
    byName(preferred, (vendor) => vendor),
    builtInVersion,
  ]
  return createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 12)
}

function byName<T>(map: ReadonlyMap<string, T>, content: (value: T) => unknown): unknown[] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => [name, content(value)])
}

function priceContent({ tokens, tiers, image, tools, request, ...units }: Price): unknown[] {
  const all = tiers.map(({ above, tokens }) => [above, tokensContent(tokens)])
  const images = Object.entries(image).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return [
    tokensContent(tokens),
    all,
    ...[request, ...PLAIN_UNITS.map(({ name }) => units[name])].map(canonical),
    Object.entries(tools)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([kind, value]) => [kind, canonical(value)]),
    images.map(([form, value]) => [form, canonical(value)]),
  ]
}

function tokensContent(tokens: TokenPrices): string[] {
  return TOKEN_KINDS.map(({ name }) => canonical(tokens[name]))
}

/** Returns the same text for `0.30` and `0.3`. */
function canonical({ digits, scale }: Decimal): string {
  let [unscaled, places] = [digits, scale]
  while (places > 0 && unscaled % 10n === 0n) [unscaled, places] = [unscaled / 10n, places - 1]
  return `${unscaled}/${places}`
}
