import type { Decimal } from './decimal.ts'
import { dearestImage, type ImageForm, imagePrice } from './image-price.ts'
import type { Price } from './price.ts'

/**
 * Units that have a single price in addition to tokens: the name of the price, the line in the cost of a
 * call, and the count in a usage. Charges, holds, settings, texts and ratios are derived from a row. Images
 * are below.
 */
export const PLAIN_UNITS = [
  /** USD per million characters of text that are spoken. */
  { name: 'characters', line: 'character', count: 'characters', isPerMillion: true },
  /** USD per second of a recording. */
  { name: 'second', line: 'second', count: 'seconds', isPerMillion: false },
  /** USD per search unit of a rerank call. */
  { name: 'search_unit', line: 'search_unit', count: 'searchUnits', isPerMillion: false },
] as const

type PlainUnit = (typeof PLAIN_UNITS)[number]

/** Prices of the units with one price. */
export type UnitPrices<T = Decimal> = Record<PlainUnit['name'], T>

/** Units that a usage measures, in the order of the lines of a cost; those priced per million are last. */
export const MEASURED_UNITS = [
  ...PLAIN_UNITS.map(({ name, line, count, isPerMillion }) => ({
    line,
    count,
    isPerMillion,
    /**
     * The price of a unit of this form, or the highest. Every charge reads this, so all objects have one
     * shape.
     */
    priceOf: (price: Price, _form?: ImageForm) => price[name],
  })),
  {
    line: 'image' as const,
    count: 'images' as const,
    isPerMillion: false,
    priceOf: ({ image }: Price, form?: ImageForm) => (form ? imagePrice(image, form) : dearestImage(image)),
  },
].toSorted((one, other) => Number(one.isPerMillion) - Number(other.isPerMillion))

/** Unit that is charged if no priced tokens are. */
export type MeasuredUnit = (typeof MEASURED_UNITS)[number]

/** Creates an object with a value for each unit with a single price. */
export function byUnit<T>(value: (unit: PlainUnit) => T): UnitPrices<T> {
  return Object.fromEntries(PLAIN_UNITS.map((unit) => [unit.name, value(unit)])) as UnitPrices<T>
}
