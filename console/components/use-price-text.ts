import type { UnitPrice } from '../api/unit-prices.ts'
import { useFormatters } from './session.tsx'
import { useTexts } from '../locales/use-texts.tsx'

/** Prices of a model: per million tokens in USD, and those that are for something else. */
interface ModelPrices {
  readonly input: number | undefined
  readonly units: readonly UnitPrice[]
}

/**
 * Texts for the prices of a model. `input` has every price in its own unit (`$5.00 + $0.04 an image`), without that of
 * tokens if they cost nothing and something else does; `tokens` is another price of tokens, `–` in that case. `output` is
 * also `–` if output costs nothing and input does, as it is for embeddings, which have no output.
 */
export function usePriceText() {
  const { models } = useTexts()
  const { price } = useFormatters()
  const hasTokenPrice = ({ input, units }: ModelPrices): boolean =>
    units.length === 0 || (input !== undefined && input > 0)
  const unitText = ({ unit, usd, isLowest }: UnitPrice): string => {
    const text = models.unitPrices[unit](price(usd))
    return isLowest ? models.fromPrice(text) : text
  }
  const tokens = (model: ModelPrices, amount: number | undefined): string =>
    amount === undefined || (!hasTokenPrice(model) && amount === 0) ? '–' : price(amount)
  return {
    tokens,
    output: (model: ModelPrices, amount: number | undefined): string =>
      amount === 0 && model.input !== 0 ? '–' : tokens(model, amount),
    input: (model: ModelPrices): string =>
      [...(hasTokenPrice(model) ? [tokens(model, model.input)] : []), ...model.units.map(unitText)].join(
        ' + ',
      ),
  }
}
