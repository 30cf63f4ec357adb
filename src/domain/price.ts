import { type Decimal, isMore, multiply, ZERO } from './decimal.ts'
import type { ImagePrices } from './image-price.ts'
import { byUnit, MEASURED_UNITS, type MeasuredUnit, type UnitPrices } from './price-units.ts'
import { byTokenKind, TOKEN_KINDS, type TokenKindRow, type TokenPrices } from './token-kinds.ts'
import { TOOL_KINDS } from '@sluice/wire/tool-use'
import type { ToolPrices } from './tool-use.ts'

/** Price of a model, before any group's ratio. `docs/configuration.md: Prices`. */
export interface Price extends Readonly<UnitPrices> {
  readonly tokens: TokenPrices
  /**
   * Prices for prompts of more than `above` tokens, in ascending order. They then apply to the whole call.
   */
  readonly tiers: readonly { readonly above: number; readonly tokens: TokenPrices }[]
  /** USD per call. */
  readonly request: Decimal
  /** USD per use of a tool that the provider runs, as far as stated. */
  readonly tools: ToolPrices
  readonly image: ImagePrices
}

/** The price of a free model. */
export const FREE_PRICE: Price = {
  tokens: byTokenKind(() => ZERO),
  tiers: [],
  request: ZERO,
  tools: Object.fromEntries(TOOL_KINDS.map((kind) => [kind, ZERO])),
  ...byUnit(() => ZERO),
  image: {},
}

/** Highest prices of tokens for a hold, over the tier of prompts above `above` tokens and all lower tiers. */
interface DearestTokens {
  readonly above: number
  /** Prices of prompt and output that are text only. */
  readonly input: Decimal
  readonly output: Decimal
  /** The same including audio and images. */
  readonly mediaInput: Decimal
  readonly mediaOutput: Decimal
}

/** Price of calls of one group. */
export interface Rate {
  /** The price of the model; if the ratio is 0, `FREE_PRICE` with the prices of tools. */
  readonly price: Price
  /** Ratio of the group. */
  readonly ratio: Decimal
  readonly quotaPerUnit: number
  /** Quota units for one US dollar, times the ratio. */
  readonly factor: Decimal
  /** One entry per tier, beginning with the base prices. */
  readonly dearest: readonly DearestTokens[]
  /** Measured units that have a price. */
  readonly units: readonly MeasuredUnit[]
  /** Whether any kind of token has a price. */
  readonly perToken: boolean
  /** Whether nothing that a call uses has a price, apart from tools. */
  readonly free: boolean
}

/** Precomputes what charges and holds of a group need from a price. */
export function rateOf(modelPrice: Price, ratio: Decimal, quotaPerUnit: number): Rate {
  const factor = multiply(ratio, { digits: BigInt(quotaPerUnit), scale: 0 })
  const price = factor.digits === 0n ? { ...FREE_PRICE, tools: modelPrice.tools } : modelPrice
  const tiers = [{ above: 0, tokens: price.tokens }, ...price.tiers]
  const perToken = tiers.some(({ tokens }) => TOKEN_KINDS.some(({ name }) => isMore(tokens[name], ZERO)))
  const units = MEASURED_UNITS.filter(({ priceOf }) => isMore(priceOf(price), ZERO))
  const free = !perToken && units.length === 0 && !isMore(price.request, ZERO)
  return { price, ratio, quotaPerUnit, factor, dearest: dearestTokens(tiers), units, perToken, free }
}

function dearestTokens(tiers: Price['tiers']): DearestTokens[] {
  return tiers.map(({ above }, index) => {
    const reached = tiers.slice(0, index + 1)
    const dearest = (isCounted: (kind: TokenKindRow) => boolean): Decimal =>
      reached
        .flatMap(({ tokens }) => TOKEN_KINDS.filter(isCounted).map(({ name }) => tokens[name]))
        .reduce((most, each) => (isMore(each, most) ? each : most), ZERO)
    return {
      above,
      input: dearest(({ side, medium }) => side === 'prompt' && !medium),
      output: dearest(({ side, medium }) => side === 'output' && !medium),
      mediaInput: dearest(({ side }) => side === 'prompt'),
      mediaOutput: dearest(({ side }) => side === 'output'),
    }
  })
}
