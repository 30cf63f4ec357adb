import type { ManagedModel } from '../../api/models.ts'

/** The prices that the form has, as decimal texts in USD per million tokens. */
export interface TypedPrice {
  readonly input: string
  readonly output: string
  /** Empty: as the gateway derives it from the input. */
  readonly cached: string
}

/** Prices that gateway.yaml derives where they are not given; `docs/configuration.md: Prices`. */
const DERIVED = {
  cache_write_5m: ['input', 1.25],
  cache_write_1h: ['input', 2],
  audio_input: ['input', 1],
  image_input: ['input', 1],
  audio_output: ['output', 1],
  image_output: ['output', 1],
  audio_cache_read: ['cache_read', 1],
  image_cache_read: ['cache_read', 1],
} as const

const A_DECIMAL = /^\d+(?:\.\d+)?$/
const DERIVED_NAMES: Readonly<Record<string, readonly [string, number]>> = DERIVED
const NEAR = 1e-9

/** Whether a text is an amount of USD. */
export function isPrice(text: string): boolean {
  return A_DECIMAL.test(text.trim())
}

/** The prices that the form begins with. */
export function typedPrice({ price }: ManagedModel): TypedPrice {
  return {
    input: textOf(price, 'input'),
    output: textOf(price, 'output'),
    cached: textOf(price, 'cache_read'),
  }
}

/**
 * The price to store: what was typed, with the other prices of the model. Those that were derived from what
 * was typed over are left out, so that they are derived anew.
 */
export function editedPrice({ price, tiers }: ManagedModel, { input, output, cached }: TypedPrice): object {
  const others = Object.entries(price ?? {}).filter(
    ([name]) => !['input', 'output', 'cache_read'].includes(name) && !isDerived(price, name),
  )
  return {
    ...Object.fromEntries(others),
    input: input.trim(),
    output: output.trim(),
    ...(cached.trim() !== '' && { cache_read: cached.trim() }),
    ...(tiers.length > 0 && { tiers }),
  }
}

/** USD that a call of 1,000 input and 500 output tokens costs; undefined where the prices are none. */
export function exampleCost({ input, output }: TypedPrice): number | undefined {
  if (!isPrice(input) || !isPrice(output)) return undefined
  return Number(((Number(input) * 1000 + Number(output) * 500) / 1_000_000).toPrecision(12))
}

function isDerived(price: ManagedModel['price'], name: string): boolean {
  const [from, factor] = DERIVED_NAMES[name] ?? []
  if (from === undefined || factor === undefined) return false
  return Math.abs(Number(textOf(price, name)) - Number(textOf(price, from)) * factor) < NEAR
}

function textOf(price: ManagedModel['price'], name: string): string {
  const amount = price?.[name]
  return typeof amount === 'string' ? amount : ''
}
